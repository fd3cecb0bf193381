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
//! A row of C may begin anywhere: its first multiple of sixteen bytes is some elements *late*. Then a lane takes up two chunks,
//! and of them the sixteen bytes that lie at a multiple in C. Elements before a row's first multiple and behind its last are
//! stored one by one, those of all sixteen rows together.

use super::{
    super::{
        device::{warpgroup::Fragment, *},
        gemm::{FOUR, epilogue::Epilogue, pieces::shifted, stored::Stored},
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

    /// Writes the elements of four words where that is `valid`, sixteen bytes that lie at a multiple of as many.
    fn write(view: &mut Out<Self>, index: usize, words: [f32; FOUR], valid: bool);

    /// That element of a word.
    fn element(word: f32, number: usize) -> Self;
}

impl InWords for f32 {
    const EACH: usize = 1;

    #[inline(always)]
    fn each_pair_of<const WORDS: usize, const N: usize>(
        sums: &Fragment<N>,
        part: usize,
        act: impl FnMut(u32, u32, [f32; 2]),
    ) {
        each_pair_of::<WORDS, N>(sums, part, act);
    }

    #[inline(always)]
    #[track_caller]
    fn put<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<f32, ROWS, PITCH>,
        at: usize,
        two: [f32; 2],
    ) {
        staged.store64(at, two);
    }

    #[inline(always)]
    #[track_caller]
    fn write(view: &mut Out<f32>, index: usize, words: [f32; FOUR], valid: bool) {
        view.store_if(index, words, valid);
    }

    #[inline(always)]
    fn element(word: f32, _: usize) -> f32 {
        word
    }
}

macro_rules! halves {
    ($($half:ident)*) => {$(
        impl InWords for $half {
            const EACH: usize = 2;

            #[inline(always)]
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

            #[inline(always)]
            #[track_caller]
            fn put<const ROWS: usize, const PITCH: usize>(
                staged: &mut Shared<f32, ROWS, PITCH>,
                at: usize,
                two: [f32; 2],
            ) {
                let [first, second] = $half::from_two_f32(two).map(|half| u32::from(half.to_bits()));
                staged[at] = f32::from_bits(first | second << 16);
            }

            #[inline(always)]
            #[track_caller]
            fn write(view: &mut Out<$half>, index: usize, words: [f32; FOUR], valid: bool) {
                let words = words.map(f32::to_bits);
                let eight: [$half; 2 * FOUR] =
                    core::array::from_fn(|i| $half::from_bits((words[i / 2] >> (16 * (i % 2))) as u16));
                view.store_if(index, eight, valid);
            }

            #[inline(always)]
            fn element(word: f32, number: usize) -> $half {
                $half::from_bits((word.to_bits() >> (16 * number)) as u16)
            }
        }
    )*};
}

halves! { Bf16 F16 }

/// Words of a row that are put down at a time, of `N` columns.
const fn words_put<C: InWords, const WORDS: usize, const N: usize>() -> usize {
    if N / C::EACH < WORDS { N / C::EACH } else { WORDS }
}

/// Rows that a warp takes up at a time.
const fn rows_taken(words: usize) -> usize {
    32 * FOUR / words
}

/// Where a word of a row lies, of a warp's.
#[inline(always)]
fn place<const WORDS: usize>(row: usize, word: usize) -> usize {
    let number = row % 4 * 2 + row / 4 % 2;
    row * WORDS + ((word / FOUR) ^ number) * FOUR + word % FOUR
}

/// Writes a warp's 16 x `N` sums, the first of which is (row, col), to a C that
/// [is `alpha A B` in rows](Epilogue::is_scaled_in_rows), `WORDS` words of a row at a time. A warp's words begin at `base`; it is its
/// lane of that number that comes here.
#[inline(always)]
#[track_caller]
pub fn store<
    C: InWords,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    lane: (usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
) {
    match epilogue.lies_by_16_bytes() {
        true => store_even::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, first),
        false => store_late::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, first),
    }
}

/// Puts down the `part`th words of each of a warp's rows.
#[inline(always)]
#[track_caller]
fn put<C: InWords, const WORDS: usize, const N: usize, const STAGED: usize, const PITCH: usize>(
    sums: &Fragment<N>,
    part: usize,
    staged: &mut Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
    alpha: f32,
) {
    C::each_pair_of::<WORDS, _>(sums, part, |row, col, two| {
        // Put so, all but the lane's part is known to the compiler.
        let row = lane / 4 + row as usize % ROWS / 8 * 8;
        let col = lane % 4 * 2 + col as usize / 8 * 8;
        C::put(staged, base + place::<WORDS>(row, col / C::EACH), two.map(|sum| alpha * sum));
    });
    warp::sync_warp(warp::ALL);
}

/// [`store`] to a C that [lies by sixteen bytes](Epilogue::lies_by_16_bytes).
#[inline(always)]
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
    let alpha = epilogue.alpha();
    // A lane's four words of each second row, or of each fourth.
    let each = const { rows_taken(WORDS) };
    let (row_of_lane, word) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR) * FOUR);
    let mut to = epilogue.place(first) + row_of_lane * epilogue.between_rows() + word * C::EACH;
    for part in 0..cols_left.div_ceil(cols).min(N.div_ceil(cols)) {
        put::<C, WORDS, _, _, _>(sums, part, staged, (base, lane), alpha);
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

/// [`store`] to a C whose rows begin and end anywhere.
#[inline(always)]
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
    (row, col): (usize, usize),
) {
    let cols = const { WORDS * C::EACH };
    let (_, left) = epilogue.left((row, col));
    let alpha = epilogue.alpha();
    for part in 0..left.div_ceil(cols).min(N.div_ceil(cols)) {
        put::<C, WORDS, _, _, _>(sums, part, staged, (base, lane), alpha);
        let first = (row, col + part * cols);
        let width = cols.min(N - part * cols).min(left - part * cols);
        write_pieces::<_, WORDS, N, _, _>(staged, (base, lane), epilogue, first, width);
        write_ends::<_, WORDS, _, _>(staged, (base, lane), epilogue, first, width);
        warp::sync_warp(warp::ALL);
    }
}

/// Writes what lies at multiples of sixteen bytes, of so many columns.
#[inline(always)]
#[track_caller]
fn write_pieces<
    C: InWords,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    staged: &Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
    width: usize,
) {
    let piece = const { FOUR * C::EACH };
    // A lane's four words of each second row, or of each fourth.
    let each = const { rows_taken(WORDS) };
    let (row_of_lane, word) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR) * FOUR);
    let col = word * C::EACH;
    // Of a lane whose piece does not lie within so many columns, even if it is not late, no rows.
    let most_late = width.saturating_sub(col + piece) as u32;
    let rows = if col + piece <= width { epilogue.left(first).0 } else { 0 };
    let rows = rows.saturating_sub(row_of_lane) as u32;
    let mut at = epilogue.place(first) + row_of_lane * epilogue.between_rows() + col;
    // Rows that are eight apart begin as far behind a multiple.
    let late: [u32; 4] =
        core::array::from_fn(|i| epilogue.late(at + each * i * epilogue.between_rows()) as u32);
    // Eight rows or sixteen are read before one is written, so that no read is waited for alone.
    for four in (0..ROWS).step_by(4 * each) {
        let mut words = [[0.0; FOUR]; 4];
        for i in 0..4 {
            let row = four + each * i + row_of_lane;
            // Behind a row's last piece nothing is taken of the next chunk: it may be any that was put down.
            let [own, next] = [word, word + FOUR].map(|word| {
                let word = word % const { words_put::<C, WORDS, N>() };
                let words: [f32; FOUR] = staged.load128(base + place::<WORDS>(row, word));
                words.map(f32::to_bits)
            });
            words[i] = shifted(own, next, late[i] as usize * size_of::<C>()).map(f32::from_bits);
        }
        for i in 0..4 {
            let valid = ((four + each * i) as u32) < rows && late[i] <= most_late;
            C::write(epilogue.c(), at + late[i] as usize, words[i], valid);
            at += each * epilogue.between_rows();
        }
    }
}

/// Writes, of so many columns, what lies before each row's first multiple of sixteen bytes, and behind its last.
#[inline(always)]
#[track_caller]
fn write_ends<C: InWords, const WORDS: usize, const STAGED: usize, const PITCH: usize>(
    staged: &Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
    width: usize,
) {
    let piece = const { FOUR * C::EACH };
    // Each end is less than a piece.
    let lanes = 2 * piece;
    let (row_of_lane, number) = (lane / lanes, lane % lanes);
    let (rows, _) = epilogue.left(first);
    for row in (row_of_lane..ROWS).step_by(32 / lanes) {
        let to = epilogue.place(first) + row * epilogue.between_rows();
        let late = epilogue.late(to);
        let col = match number < piece {
            true if number < late => number,
            true => width,
            false => late + width.saturating_sub(late) / piece * piece + number - piece,
        };
        if row < rows && col < width {
            let word = staged[base + place::<WORDS>(row, col / C::EACH)];
            epilogue.c()[to + col] = C::element(word, col % C::EACH);
        }
    }
}
