//! A tile's sums on their way to a C whose rows begin at multiples of sixteen bytes: rounded first, then put down in shared
//! memory, and taken up by sixteen bytes a lane.
//!
//! What a thread rounds before it puts it down takes half the place and half the accesses if C is of two bytes. A warp's
//! sixteen rows are on their way 256 bytes at a time: 64 words of 32 bits, 64 columns of f32 and 128 of bf16 or f16. Sixteen
//! lanes then write what follows each other in a row.
//!
//! Neither way meets a bank twice. A word's *chunk* of four, sixteen bytes, is exchanged with another one of the row, by
//! exclusive or with a number of the row's ([`place`]):
//!
//! ```text
//!   put down, bf16     32 lanes a word each: 8 rows, one chunk of each        the numbers of eight rows differ
//!   put down, f32      16 lanes two words each: 4 rows, two chunks of each    and of four rows in their upper two bits
//!   taken up           8 lanes four words each: eight chunks of a row
//! ```

use super::{
    super::{
        device::{warpgroup::Fragment, *},
        gemm::{FOUR, epilogue::Epilogue, stored::Stored},
    },
    output::ROWS,
};

/// Words of a row that are on their way at a time.
const WORDS: usize = 64;
/// An element of C as a part of a word.
pub trait InWords: Stored<Real = f32> {
    /// Elements of a word.
    const EACH: usize;

    /// Calls `act` with row and column of the first of two neighbours, and both, for all of this thread that belong to the
    /// `part`th 64 words of a row. Columns are counted from the part's first.
    fn each_pair_of<const N: usize>(
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
}

impl InWords for f32 {
    const EACH: usize = 1;

    #[inline(always)]
    fn each_pair_of<const N: usize>(
        sums: &Fragment<N>,
        part: usize,
        act: impl FnMut(u32, u32, [f32; 2]),
    ) {
        // A register has no number that is computed.
        match part {
            0 => sums.for_each_pair_of::<0>(act),
            1 => sums.for_each_pair_of::<1>(act),
            2 => sums.for_each_pair_of::<2>(act),
            _ => sums.for_each_pair_of::<3>(act),
        }
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
}

macro_rules! halves {
    ($($half:ident)*) => {$(
        impl InWords for $half {
            const EACH: usize = 2;

            #[inline(always)]
            fn each_pair_of<const N: usize>(
                sums: &Fragment<N>,
                part: usize,
                mut act: impl FnMut(u32, u32, [f32; 2]),
            ) {
                match part {
                    0 => {
                        sums.for_each_pair_of::<0>(&mut act);
                        sums.for_each_pair_of::<1>(|row, col, two| act(row, 64 + col, two));
                    }
                    _ => {
                        sums.for_each_pair_of::<2>(&mut act);
                        sums.for_each_pair_of::<3>(|row, col, two| act(row, 64 + col, two));
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
        }
    )*};
}

halves! { Bf16 F16 }

/// Where a word of a row lies, of a warp's.
#[inline(always)]
fn place(row: usize, word: usize) -> usize {
    let number = row % 4 * 2 + row / 4 % 2;
    row * WORDS + ((word / FOUR) ^ number) * FOUR + word % FOUR
}

/// Writes a warp's 16 x `N` sums, the first of which is (row, col), to a C that is `alpha A B` and
/// [lies by sixteen bytes](Epilogue::lies_by_16_bytes). A warp's words begin at `base`.
#[inline(always)]
#[track_caller]
pub fn store<C: InWords, const N: usize, const STAGED: usize, const PITCH: usize>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    base: usize,
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
) {
    let lane = thread::lane_id() as usize;
    let cols = const { WORDS * C::EACH };
    let (rows_left, cols_left) = epilogue.left(first);
    let alpha = epilogue.alpha();
    // A lane's four words of each second row.
    let (row_of_lane, word) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR) * FOUR);
    let mut to = epilogue.place(first) + row_of_lane * epilogue.between_rows() + word * C::EACH;
    for part in 0..cols_left.div_ceil(cols).min(N / cols) {
        C::each_pair_of(sums, part, |row, col, two| {
            // Put so, all but the lane's part is known to the compiler.
            let row = lane / 4 + row as usize % ROWS / 8 * 8;
            let col = lane % 4 * 2 + col as usize / 8 * 8;
            C::put(staged, base + place(row, col / C::EACH), two.map(|sum| alpha * sum));
        });
        warp::sync_warp(warp::ALL);
        let is_inside = part * cols + word * C::EACH < cols_left;
        let rows = if is_inside { rows_left } else { 0 };
        let mut at = to;
        // Eight rows are read before one is written, so that no read is waited for alone.
        for eight in (0..ROWS).step_by(8) {
            let mut words = [[0.0; FOUR]; 4];
            for i in 0..4 {
                words[i] = staged.load128(base + place(eight + 2 * i + row_of_lane, word));
            }
            for i in 0..4 {
                let valid = eight + 2 * i + row_of_lane < rows;
                C::write(epilogue.c(), at, words[i], valid);
                at += 2 * epilogue.between_rows();
            }
        }
        to += cols;
        warp::sync_warp(warp::ALL);
    }
}
