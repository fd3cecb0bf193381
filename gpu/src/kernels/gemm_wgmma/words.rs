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
    super::{
        device::{warpgroup::Fragment, *},
        gemm::{FOUR, epilogue::Epilogue, stored::Stored},
    },
    output::{ROWS, each_pair_of},
};

/// An element of C as a part of a word.
pub trait InWords: Stored<Real = f32> {
    /// Elements of a word.
    const EACH: usize;

    /// Calls `act` with row and column of the first of two neighbours, and both, for all of this thread that belong to the
    /// `part`th `WORDS` words of a row. Columns are counted from the part's first.
    fn each_pair_of<const WORDS: usize, const N: usize>(
        sums: &Fragment<N>,
        part: usize,
        act: impl FnMut(u32, u32, [f32; 2]),
    );

    /// Rounds two neighbours of a row and puts them down, from that word on.
    fn put<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<f32, ROWS, PITCH>,
        at: usize,
        two: [f32; 2],
    );

    /// As [`put`](Self::put), also from an odd word on.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn put_anywhere<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<f32, ROWS, PITCH>,
        at: usize,
        two: [f32; 2],
    ) {
        Self::put(staged, at, two);
    }

    /// Four words, or, if that `is_half`, those that begin half a word before them, for which it takes the word `before`.
    fn moved(before: impl FnOnce() -> f32, words: [f32; FOUR], is_half: bool) -> [f32; FOUR];

    /// Writes the elements of four words where that is `valid`, sixteen bytes that lie at a multiple of as many.
    fn write(view: &mut Out<Self>, index: usize, words: [f32; FOUR], valid: bool);

    /// That element of a word.
    fn element(word: f32, number: usize) -> Self;
}

impl InWords for f32 {
    const EACH: usize = 1;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn each_pair_of<const WORDS: usize, const N: usize>(
        sums: &Fragment<N>,
        part: usize,
        act: impl FnMut(u32, u32, [f32; 2]),
    ) {
        each_pair_of::<WORDS, N>(sums, part, act);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn put<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<f32, ROWS, PITCH>,
        at: usize,
        two: [f32; 2],
    ) {
        staged.store64(at, two);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn put_anywhere<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<f32, ROWS, PITCH>,
        at: usize,
        two: [f32; 2],
    ) {
        staged[at] = two[0];
        staged[at + 1] = two[1];
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn moved(_: impl FnOnce() -> f32, words: [f32; FOUR], _: bool) -> [f32; FOUR] {
        words
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn write(view: &mut Out<f32>, index: usize, words: [f32; FOUR], valid: bool) {
        view.store_if(index, words, valid);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn element(word: f32, _: usize) -> f32 {
        word
    }
}

/// A word of two halves, the first one below.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn packed([first, second]: [u16; 2]) -> u32 {
    u32::from(first) | u32::from(second) << 16
}

impl InWords for Half {
    const EACH: usize = 2;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn each_pair_of<const WORDS: usize, const N: usize>(
        sums: &Fragment<N>,
        part: usize,
        mut act: impl FnMut(u32, u32, [f32; 2]),
    ) {
        const { assert!(WORDS == 64, "two parts of 64 columns each") };
        match part {
            0 => {
                sums.for_each_pair_of::<64, 0>(&mut act);
                sums.for_each_pair_of::<64, 1>(|row, col, two| act(row, 64 + col, two));
            }
            _ => {
                sums.for_each_pair_of::<64, 2>(&mut act);
                sums.for_each_pair_of::<64, 3>(|row, col, two| act(row, 64 + col, two));
            }
        }
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn put<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<f32, ROWS, PITCH>,
        at: usize,
        two: [f32; 2],
    ) {
        staged[at] = f32::from_bits(packed(Half::from_two_f32(two).map(Half::to_bits)));
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn moved(before: impl FnOnce() -> f32, words: [f32; FOUR], is_half: bool) -> [f32; FOUR] {
        let by = 16 * u32::from(is_half);
        let mut before = before().to_bits();
        words.map(|word| {
            let both = u64::from(word.to_bits()) << 32 | u64::from(before);
            before = word.to_bits();
            f32::from_bits((both << by >> 32) as u32)
        })
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn write(view: &mut Out<Half>, index: usize, words: [f32; FOUR], valid: bool) {
        let words = words.map(f32::to_bits);
        let eight: [Half; 2 * FOUR] =
            core::array::from_fn(|i| Half::from_bits((words[i / 2] >> (16 * (i % 2))) as u16));
        view.store_if(index, eight, valid);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn element(word: f32, number: usize) -> Half {
        Half::from_bits((word.to_bits() >> (16 * number)) as u16)
    }
}

/// Words of a row that are put down at a time, of `N` columns.
const fn words_put<C: InWords, const WORDS: usize, const N: usize>() -> usize {
    if N / C::EACH < WORDS { N / C::EACH } else { WORDS }
}

/// Rows that a warp takes up at a time.
const fn rows_taken(words: usize) -> usize {
    32 * FOUR / words
}

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
    C: InWords,
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
    match epilogue.lies_by_16_bytes() {
        true => store_even::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, first),
        false => store_late::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, first),
    }
}

/// Multiplies with alpha.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn scale<C: InWords, const N: usize>(sums: &mut Fragment<N>, epilogue: &Epilogue<C>) {
    let alpha = epilogue.alpha();
    if alpha != 1.0 {
        sums.map(|sum| alpha * sum);
    }
}

/// Puts down the `part`th words of each of a warp's rows.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn put<C: InWords, const WORDS: usize, const N: usize, const STAGED: usize, const PITCH: usize>(
    sums: &Fragment<N>,
    part: usize,
    staged: &mut Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
) {
    C::each_pair_of::<WORDS, _>(sums, part, |row, col, two| {
        // Put so, all but the lane's part is known to the compiler.
        let row = lane / 4 + row as usize % ROWS / 8 * 8;
        let col = lane % 4 * 2 + col as usize / 8 * 8;
        C::put(staged, base + place::<WORDS>(row, col / C::EACH), two);
    });
    warp::sync_warp(warp::ALL);
}

/// [`store`] to a C that [lies by sixteen bytes](Epilogue::lies_by_16_bytes).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn store_even<
    C: InWords,
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
    let cols = const { WORDS * C::EACH };
    let (rows_left, cols_left) = epilogue.left(first);
    // A lane's four words of each second row, or of each fourth.
    let each = const { rows_taken(WORDS) };
    let (row_of_lane, word) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR) * FOUR);
    let mut to = epilogue.place(first) + row_of_lane * epilogue.between_rows() + word * C::EACH;
    for part in 0..cols_left.div_ceil(cols).min(N.div_ceil(cols)) {
        put::<C, WORDS, _, _, _>(sums, part, staged, (base, lane));
        let col = part * cols + word * C::EACH;
        let rows = if col < cols_left.min(N) { rows_left } else { 0 };
        let mut at = to;
        // Eight rows or sixteen are read before one is written, so that no read is waited for alone.
        for four in (0..ROWS).step_by(4 * each) {
            let mut words = [[0.0; FOUR]; 4];
            for i in 0..4 {
                // A lane for which nothing was put down reads another one's.
                let word = word % const { words_put::<C, WORDS, N>() };
                let row = four + each * i + row_of_lane;
                words[i] = staged.load128(base + place::<WORDS>(row, word));
            }
            for i in 0..4 {
                let valid = four + each * i + row_of_lane < rows;
                C::write(epilogue.c(), at, words[i], valid);
                at += each * epilogue.between_rows();
            }
        }
        to += cols;
        warp::sync_warp(warp::ALL);
    }
}

/// [`store`] to a C whose rows begin and end anywhere, of sums that have been [multiplied with alpha](scale).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store_late<
    C: InWords,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    first @ (first_row, col): (usize, usize),
) {
    const { assert!(PITCH >= WORDS + FOUR, "words move up by less than a chunk, and one is kept") };
    let cols = const { (WORDS * C::EACH) as u32 };
    // Numbers of 32 bits: with 64 each step would be two instructions.
    let (rows, width) = epilogue.left(first);
    let left = (rows.min(ROWS) as u32, width.min(N) as u32);
    for part in 0..left.1.div_ceil(cols) {
        // What follows from it would else be computed before the loop, and kept.
        let anew = |lane: usize| warp::shuffle(warp::ALL, lane as u32, lane as u32) as usize;
        let lane = anew(lane);
        let row = lane / 4;
        // Rows that are eight apart begin as far behind.
        let behind = behind(epilogue, epilogue.place((first_row + row, col))) as usize;
        let to = base + row * PITCH + lane % 4 * 2 / C::EACH + behind / C::EACH;
        C::each_pair_of::<WORDS, _>(sums, part as usize, |row, col, two| {
            // Put so, all but the lane's part is known to the compiler.
            let at = to + row as usize % ROWS / 8 * 8 * PITCH + col as usize / 8 * 8 / C::EACH;
            C::put_anywhere(staged, at, two);
        });
        warp::sync_warp(warp::ALL);
        let lane = anew(lane);
        let place = (part * cols, base, lane);
        write_pieces::<_, WORDS, N, _, _>(staged, place, epilogue, first, left);
        let is_last = left.1 <= (part + 1) * cols;
        for end in u32::from(part > 0)..1 + u32::from(is_last) {
            write_end::<_, WORDS, _, _>(staged, place, epilogue, first, left, end == 1);
        }
        warp::sync_warp(warp::ALL);
        if !is_last {
            keep::<_, WORDS, _, _>(staged, (base, lane), epilogue, first);
        }
    }
}

/// Elements by which a place of C lies behind a multiple of sixteen bytes.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn behind<C: InWords>(epilogue: &Epilogue<C>, place: usize) -> u32 {
    let piece = const { (FOUR * C::EACH) as u32 };
    (piece - epilogue.late(place) as u32) % piece
}

/// The place in a row of so many words where the last one of the part before is kept.
const fn kept(words: usize) -> usize {
    words + FOUR - 1
}

/// Puts what is behind a part's words before those of the next part, and the last of its words where [`before`] looks for it.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn keep<C: InWords, const WORDS: usize, const STAGED: usize, const PITCH: usize>(
    staged: &mut Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &Epilogue<C>,
    (first_row, col): (usize, usize),
) {
    // Two lanes a row, two words each.
    let row = lane / 2;
    let moved = behind(epilogue, epilogue.place((first_row + row, col))) as usize / C::EACH;
    let row = base + row * PITCH;
    for i in 0..2 {
        let number = lane % 2 * 2 + i;
        if number <= moved {
            let to = if number == 0 { kept(WORDS) } else { number - 1 };
            staged[row + to] = staged[row + WORDS - 1 + number];
        }
    }
    warp::sync_warp(warp::ALL);
}

/// The place in a row of the word before that one: of a part's first, that of the part before.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn before<const WORDS: usize>(word: usize, part: u32) -> usize {
    match (word, part) {
        // There is none.
        (0, 0) => 0,
        (0, _) => kept(WORDS),
        _ => word - 1,
    }
}

/// Writes what lies at multiples of sixteen bytes, of so many columns.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn write_pieces<
    C: InWords,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    staged: &Shared<f32, STAGED, PITCH>,
    (part, base, lane): (u32, usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
    (rows, width): (u32, u32),
) {
    let piece = const { FOUR * C::EACH };
    // A lane's four words of each second row, or of each fourth.
    let each = const { rows_taken(WORDS) };
    let (row_of_lane, chunk) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR));
    let col = part + (chunk * piece) as u32;
    let rows = if width < piece as u32 { 0 } else { rows };
    let rows = rows.saturating_sub(row_of_lane as u32);
    let most = width.saturating_sub(piece as u32);
    let between = epilogue.between_rows();
    let start = epilogue.place(first) + row_of_lane * between;
    // A lane for which nothing was put down reads the second chunk, of which all was, however far behind the row begins.
    let is_put = chunk < const { words_put::<C, WORDS, N>() / FOUR };
    let word = if is_put { chunk * FOUR } else { FOUR };
    let before_word = before::<WORDS>(word, part);
    let from = base + row_of_lane * PITCH;
    for two in (0..8 / each).step_by(2) {
        let mut words = [[[0.0; FOUR]; 2]; 2];
        let (mut cols, mut places) = ([0; 2], [0; 2]);
        for i in 0..2 {
            let row = (two + i) * each;
            let place = start + row * between;
            let behind = behind(epilogue, place);
            // Before the first column there is none: a large number.
            cols[i] = col.wrapping_sub(behind);
            places[i] = (place + col as usize).wrapping_sub(behind as usize);
            let (word, before) = match cols[i] > col {
                true => (FOUR, FOUR - 1),
                false => (word, before_word),
            };
            // Rows that are eight apart begin as far behind.
            for below in 0..2 {
                let from = from + (row + 8 * below) * PITCH;
                let is_half = !(behind as usize).is_multiple_of(C::EACH);
                words[i][below] =
                    C::moved(|| staged[from + before], staged.load128(from + word), is_half);
            }
        }
        for i in 0..2 {
            for below in 0..2 {
                let row = ((two + i) * each + 8 * below) as u32;
                let valid = row < rows && cols[i] <= most;
                let place = places[i].wrapping_add(8 * below * between);
                C::write(epilogue.c(), place, words[i][below], valid);
            }
        }
    }
}

/// Writes, of so many columns, what lies before each row's first multiple of sixteen bytes, or behind its last.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn write_end<C: InWords, const WORDS: usize, const STAGED: usize, const PITCH: usize>(
    staged: &Shared<f32, STAGED, PITCH>,
    (part, base, lane): (u32, usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
    (rows, width): (u32, u32),
    is_last: bool,
) {
    // Each end is less than a piece.
    let piece = const { FOUR * C::EACH };
    let (row_of_lane, number) = (lane / piece, lane % piece);
    let each = const { 32 / (FOUR * C::EACH) };
    let rows = rows.saturating_sub(row_of_lane as u32);
    let between = epilogue.between_rows();
    let start = epilogue.place(first) + row_of_lane * between;
    let width = width - part;
    for row in (0..8).step_by(each) {
        let to = start + row * between;
        let behind = behind(epilogue, to);
        let end = width + behind;
        let (least, most) = match is_last {
            true => (end / piece as u32 * piece as u32, end),
            false => (behind, end.min(piece as u32)),
        };
        let at = if is_last { least } else { 0 } + number as u32;
        // A row's only piece may be none whole: that is written as what lies before.
        let is_head = part == 0 && behind > 0;
        let is_this = if is_last { !is_head || least > 0 } else { is_head };
        let valid = is_this && at >= least && at < most;
        // Where there is nothing to be written any word is read.
        let from = if valid { at } else { behind };
        let half = behind % C::EACH as u32;
        let (word, half) = match from < half {
            true => (before::<WORDS>(0, part), C::EACH - 1),
            false => ((from - half) as usize / C::EACH, (from - half) as usize % C::EACH),
        };
        let from = base + row_of_lane * PITCH + word;
        let to = (to + (part + at) as usize).wrapping_sub(behind as usize);
        for below in 0..2 {
            let word = staged[from + (row + 8 * below) * PITCH];
            let valid = valid && ((row + 8 * below) as u32) < rows;
            let element = C::element(word, half);
            epilogue.c().store_if(to.wrapping_add(8 * below * between), [element], valid);
        }
    }
}
