//! A tile's sums on their way to a C whose rows' elements lie side by side: rounded first, then put down in shared memory, and
//! taken up by sixteen bytes a lane.
//!
//! What a thread rounds before it puts it down takes half the place and half the accesses if C is of two bytes. A warp's
//! sixteen rows are on their way 256 bytes at a time: 64 words of 32 bits, 64 columns of f32 and 128 of bf16 or f16. Sixteen
//! lanes then write what follows each other in a row. (Where shared memory is short, 128 bytes at a time, and eight lanes.)
//!
//! Neither way meets a bank twice. A word's *chunk* of four, sixteen bytes, is exchanged with another one of the row, by
//! exclusive or with a number of the row's ([`place`]):
//!
//! ```text
//!   put down, bf16     32 lanes a word each: 8 rows, one chunk of each        the numbers of eight rows differ
//!   put down, f32      16 lanes two words each: 4 rows, two chunks of each    and of four rows in their upper two bits
//!   taken up           8 lanes four words each: eight chunks of a row
//! ```
//!
//! A row of C may begin anywhere, some elements *behind* a multiple of sixteen bytes. Then it is put down as many elements further
//! on, so that a chunk that is taken up lies at a multiple in C. Elements of two bytes are put down in pairs: a row that begins an odd
//! number of them behind is put down one less further on, and its chunks move by half a word when they are taken up, each with the word
//! before it. What of a row goes beyond a part's words goes before those of the next part. Elements before a row's first multiple and
//! behind its last are stored one by one, once a tile.
//!
//! ```text
//!   C, bf16        . . . . . 0 1 2 | 3 4 5 6 7 8 9 10 | ..      a row that begins five behind
//!   words, part 0  . .  . .  0 1  2 3  |  4 5  6 7 ..  122 123  |  124 125  126 127
//!   taken up       . .  . .  . 0  1 2  |  3 4  5 6 ..  121 122  |
//!   words, part 1  124 125  126 127  128 129 ..                     122 123 is kept beside them
//! ```
//!
//! There rows are [`PITCH`](super::output::PITCH) words apart, four banks and some times 32: words of two elements meet no bank twice,
//! those of f32, which are put down one at a time, each bank twice.

use super::{
    accumulators::ROWS,
    device::{warpgroup::Fragment, *},
    epilogue::Epilogue,
    misaligned_store::store_misaligned,
    packed_element::{PackedStore, rows_at_once_of, staged_words},
    vector::FOUR,
};

/// Where a word of a row lies, of a warp's.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn place<const WORDS: usize>(row: usize, word: usize) -> usize {
    let number = row % 4 * 2 + row / 4 % 2;
    row * WORDS + ((word / FOUR) ^ number) * FOUR + word % FOUR
}

/// Writes a warp's 16 x `N` sums, the first of which is (row, col), to a C that
/// [is `alpha A B` in rows](Epilogue::is_scaled_in_rows), `WORDS` words of a row at a time. A warp's words begin at `base`; it is its
/// lane of that number that comes here.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &mut Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    lane: (usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
) {
    scale(sums, epilogue);
    match epilogue.is_16_byte_aligned() {
        true => store_aligned::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, first),
        false => store_misaligned::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, first),
    }
}

/// Multiplies with alpha.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn scale<C: PackedStore, const N: usize>(sums: &mut Fragment<N>, epilogue: &Epilogue<C>) {
    let alpha = epilogue.alpha();
    if alpha != 1.0 {
        sums.map(|sum| alpha * sum);
    }
}

/// Puts down the `part`th words of each of a warp's rows.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn stage<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &Fragment<N>,
    part: usize,
    staged: &mut Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
) {
    C::each_pair_of::<WORDS, _>(sums, part, |row, col, two| {
        // Put so, all but the lane's part is known to the compiler.
        let row = lane / 4 + row as usize % ROWS / 8 * 8;
        let col = lane % 4 * 2 + col as usize / 8 * 8;
        C::stage(staged, base + place::<WORDS>(row, col / C::PER_WORD), two);
    });
    warp::sync_warp(warp::ALL);
}

/// [`store`] to a C that [lies by sixteen bytes](Epilogue::lies_by_16_bytes).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn store_aligned<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
) {
    let cols = const { WORDS * C::PER_WORD };
    let (rows_left, cols_left) = epilogue.left(first);
    // A lane's four words of each second row, or of each fourth.
    let each = const { rows_at_once_of(WORDS) };
    let (row_of_lane, word) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR) * FOUR);
    let mut to = epilogue.place(first) + row_of_lane * epilogue.between_rows() + word * C::PER_WORD;
    for part in 0..cols_left.div_ceil(cols).min(N.div_ceil(cols)) {
        stage::<C, WORDS, _, _, _>(sums, part, staged, (base, lane));
        let col = part * cols + word * C::PER_WORD;
        let rows = if col < cols_left.min(N) { rows_left } else { 0 };
        let mut at = to;
        // Eight rows or sixteen are read before one is written, so that no read is waited for alone.
        for four in (0..ROWS).step_by(4 * each) {
            let mut words = [[0.0; FOUR]; 4];
            for i in 0..4 {
                // A lane for which nothing was put down reads another one's.
                let word = word % const { staged_words::<C, WORDS, N>() };
                let row = four + each * i + row_of_lane;
                words[i] = staged.load128(base + place::<WORDS>(row, word));
            }
            for i in 0..4 {
                let valid = four + each * i + row_of_lane < rows;
                C::store_words(epilogue.c(), at, words[i], valid);
                at += each * epilogue.between_rows();
            }
        }
        to += cols;
        warp::sync_warp(warp::ALL);
    }
}
