//! The packed epilogue, for a C of contiguous rows: accumulators are [finished in
//! registers](Epilogue::is_finished_in_registers), rounded, staged in shared memory, and stored by
//! sixteen bytes a lane.
//!
//! * **A warpgroup** has 64 rows; its warps do not wait for each other.
//! * **A warp** stages its 16 rows, 256 bytes of each at a time: 64 words of 32 bits. These are 64
//!   columns of f32, or 128 columns of bf16 or f16. If shared memory is scarce, it stages 128 bytes
//!   at a time.
//! * **A lane** rounds two neighbours before it stages them. With 16-bit elements this halves the
//!   space and the accesses. Sixteen lanes (or eight) then store a row.
//!
//! # Bank conflicts
//! There are none. Words are grouped in chunks of four, sixteen bytes. A row's chunks are swizzled
//! by exclusive or with a number of the row (`place`):
//!
//! ```text
//!   staging bf16    32 lanes, a word each: 8 rows, one chunk of each        the numbers of eight rows differ
//!   staging f32     16 lanes, two words each: 4 rows, two chunks of each    those of four rows differ in the upper two bits
//!   reading          8 lanes, four words each: eight chunks of a row
//! ```
//!
//! For a C with misaligned rows: [`misaligned_store`](super::misaligned_store).

use super::{
    accumulators::ROWS,
    device::{warpgroup::Fragment, *},
    epilogue::Epilogue,
    misaligned_store::store_misaligned,
    packed_element::{PackedStore, rows_at_once_of, staged_words},
    real::Real,
    vector::FOUR,
};
use crate::params::{COL_BIAS, IDENTITY, RELU, ROW_BIAS};

/// The index of a staged word, from the warp's first on.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn place<const WORDS: usize>(row: usize, word: usize) -> usize {
    let number = row % 4 * 2 + row / 4 % 2;
    row * WORDS + ((word / FOUR) ^ number) * FOUR + word % FOUR
}

/// What a lane loads before its accumulators are complete, so that nobody waits for it: old
/// elements of C, of the first `WORDS` words of the warp's rows, and every 32nd element of a bias
/// of columns.
pub struct Early<C: PackedStore> {
    old: [[C::Real; FOUR]; LOADS],
    bias: [C; BIAS_OF_LANE],
}

impl<C: PackedStore> Early<C> {
    /// Of a C that is not finished in registers.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn nothing() -> Self {
        Early {
            old: const { [[C::Real::ZERO; FOUR]; LOADS] },
            bias: [C::nearest(C::Real::ZERO); BIAS_OF_LANE],
        }
    }

    /// Loads what the epilogue of the warp's rows needs. The first element is (row, col).
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn load<const WORDS: usize, const N: usize, const ALL: bool>(
        epilogue: &Epilogue<C>,
        lane: usize,
        first: (usize, usize),
    ) -> Self {
        let mut early = Early::nothing();
        if ALL
            && epilogue.beta().differs(C::Real::ZERO)
            && epilogue.is_finished_in_registers::<ALL>()
        {
            early.old = old_of::<_, WORDS, N>(epilogue, lane, first, 0);
        }
        if epilogue.bias() == COL_BIAS {
            for i in 0..BIAS_OF_LANE {
                if 32 * i < N {
                    let col = (first.1 + 32 * i + lane) as u32;
                    early.bias[i] = epilogue.stored_bias_of_col(col);
                }
            }
        }
        early
    }
}

/// Words of a row that are staged at a time, unless shared memory is scarce.
pub const WORDS: usize = 64;

/// Whether a warp stores tiles of so many staged columns in this way. (With sums of i32, 128 x 128
/// would spill.)
pub const fn suits<C: PackedStore>(cols: usize) -> bool {
    cols >= WORDS && !C::Real::IS_SCALED_SUM
}

/// Columns of which a lane loads the bias.
const BIAS_OF_LANE: usize = 8;

/// Stores a warp's 16 x `N` accumulators to C. The first is (row, col). All is [finished in
/// registers](Epilogue::is_finished_in_registers). `WORDS` words of a row are staged at a time,
/// from `base` on. `lane` is the lane's number.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
    const ALL: bool,
>(
    sums: &mut Fragment<N, C::Real>,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    lane: (usize, usize),
    (epilogue, early): (&mut Epilogue<C>, Early<C>),
    first: (usize, usize),
) {
    scale(sums, epilogue);
    if ALL && epilogue.beta().differs(C::Real::ZERO) {
        add_old::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, early.old, first);
    }
    complete::<_, _, _, _, ALL>(sums, staged, lane, (epilogue, early.bias), first.0);
    match epilogue.is_16_byte_aligned() {
        true => store_aligned::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, first),
        false => store_misaligned::<_, WORDS, _, _, _>(sums, staged, lane, epilogue, first),
    }
}

/// Adds the bias to the accumulators, where they are, and applies the activation. The first is in
/// row `row`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn complete<
    C: PackedStore,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
    const ALL: bool,
>(
    sums: &mut Fragment<N, C::Real>,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
    (epilogue, bias): (&Epilogue<C>, [C; BIAS_OF_LANE]),
    row: usize,
) {
    match epilogue.bias() {
        COL_BIAS => add_bias_of_cols(sums, staged, (base, lane), bias),
        ROW_BIAS if ALL => {
            // A lane has two rows.
            let row = row as u32 + lane as u32 / 4;
            let bias = [epilogue.bias_of_row(row), epilogue.bias_of_row(row + 8)];
            sums.map_pairs(|row, _, two| two.map(|sum| sum.plus(bias[row as usize % ROWS / 8])));
        }
        _ => {}
    }
    match epilogue.activation() {
        IDENTITY => {}
        RELU => sums.map(Real::relu),
        _ if C::PER_WORD == 2 => sums.map(|sum| C::smooth(epilogue.smooth(), sum)),
        // Not finished in registers.
        _ => {}
    }
}

/// Words from the staged bias of a lane to that of the next. The four are eight banks apart.
const BIAS_PITCH: usize = 72;

/// Adds the bias of each column.
///
/// A lane has two columns of every eight. Loaded one by one they would be 64 loads. So a lane loads
/// every 32nd column, and the warp exchanges them through shared memory, where C will be staged: in
/// the order in which a lane needs them, so that it reads four at a time.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn add_bias_of_cols<C: PackedStore, const N: usize, const STAGED: usize, const PITCH: usize>(
    sums: &mut Fragment<N, C::Real>,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
    bias: [C; BIAS_OF_LANE],
) {
    const {
        assert!(
            N <= 32 * BIAS_OF_LANE && 4 * BIAS_PITCH <= ROWS * PITCH,
            "it fits where C is staged"
        )
    };
    // Through a shuffle, so that the compiler does not compute what follows before the loop over
    // tiles, and keep it in registers.
    let lane = warp::shuffle(warp::ALL, lane as u32, lane as u32) as usize;
    let to = base + lane % 8 / 2 * BIAS_PITCH + lane / 8 * 2 + lane % 2;
    for i in 0..BIAS_OF_LANE {
        if 32 * i < N {
            staged[to + 8 * i] = bias[i].widened();
        }
    }
    warp::sync_warp(warp::ALL);
    let from = base + lane % 4 * BIAS_PITCH;
    sums.map_pairs(|_, col, two| {
        // In this form the compiler knows all but the lane's part.
        let eight = col as usize / 8;
        let bias: [C::Real; FOUR] = staged.load128(from + eight / 2 * FOUR);
        [two[0].plus(bias[eight % 2 * 2]), two[1].plus(bias[eight % 2 * 2 + 1])]
    });
    warp::sync_warp(warp::ALL);
}

/// Adds beta times the old elements of C to the accumulators. A lane loads sixteen bytes, and the
/// old elements reach the lanes with their sums through shared memory, where C will be staged. The
/// next part is loaded while one is added. Rows of C are [16-byte
/// aligned](Epilogue::is_16_byte_aligned).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
#[allow(unused_assignments, reason = "after the last part nobody reads what would be loaded next")]
fn add_old<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &mut Fragment<N, C::Real>,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &Epilogue<C>,
    mut old: [[C::Real; FOUR]; LOADS],
    first: (usize, usize),
) {
    let cols = const { WORDS * C::PER_WORD };
    // Through a shuffle, so that the compiler does not compute what follows before the loop over
    // tiles, and keep it in registers.
    let lane = warp::shuffle(warp::ALL, lane as u32, lane as u32) as usize;
    let each = const { rows_at_once_of(WORDS) };
    let (row_of_lane, word) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR) * FOUR);
    let (beta, (_, cols_left)) = (epilogue.beta(), epilogue.left(first));
    unrolled!(for part in [0 1 2 3] {
        // A branch a part: in straight code ptxas moves all loads before the first addition.
        if part * cols < N && part * cols < cols_left {
            for i in 0..ROWS / each {
                staged.store128(base + place::<WORDS>(each * i + row_of_lane, word), old[i]);
            }
            warp::sync_warp(warp::ALL);
            if (part + 1) * cols < N {
                old = old_of::<_, WORDS, N>(epilogue, lane, first, part + 1);
            }
            C::map_pairs_of::<WORDS, N>(sums, part, |row, col, two| {
                // In this form the compiler knows all but the lane's part.
                let row = lane / 4 + row as usize % ROWS / 8 * 8;
                let col = lane % 4 * 2 + col as usize / 8 * 8;
                let at = base + place::<WORDS>(row, col / C::PER_WORD);
                let old = C::staged_two(staged, at);
                [fma(beta, old[0], two[0]), fma(beta, old[1], two[1])]
            });
            warp::sync_warp(warp::ALL);
        }
    });
}

/// Loads of a lane for 16 rows of 64 words.
const LOADS: usize = ROWS / 2;

/// Loads a lane's old elements of C of the `part`th `WORDS` words of the warp's rows, those that C
/// has.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn old_of<C: PackedStore, const WORDS: usize, const N: usize>(
    epilogue: &Epilogue<C>,
    lane: usize,
    first: (usize, usize),
    part: usize,
) -> [[C::Real; FOUR]; LOADS] {
    let (cols, each) = const { (WORDS * C::PER_WORD, rows_at_once_of(WORDS)) };
    let (row_of_lane, word) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR) * FOUR);
    let (rows_left, cols_left) = epilogue.left(first);
    let col = part * cols + word * C::PER_WORD;
    let rows = if col < cols_left.min(N) { rows_left } else { 0 };
    let at = epilogue.place(first) + row_of_lane * epilogue.between_rows() + col;
    core::array::from_fn(|i| {
        let valid = each * i + row_of_lane < rows;
        C::load_words(epilogue.old(), at + i * each * epilogue.between_rows(), valid)
    })
}

/// Multiplies the accumulators by alpha.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn scale<C: PackedStore, const N: usize>(sums: &mut Fragment<N, C::Real>, epilogue: &Epilogue<C>) {
    let alpha = epilogue.alpha();
    if alpha.differs(C::Real::ONE) {
        sums.map(|sum| alpha.times(sum));
    }
}

/// Stages the `part`th words of each of a warp's rows.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn stage<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &Fragment<N, C::Real>,
    part: usize,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
) {
    C::each_pair_of::<WORDS, _>(sums, part, |row, col, two| {
        // In this form the compiler knows all but the lane's part.
        let row = lane / 4 + row as usize % ROWS / 8 * 8;
        let col = lane % 4 * 2 + col as usize / 8 * 8;
        C::stage(staged, base + place::<WORDS>(row, col / C::PER_WORD), two);
    });
    warp::sync_warp(warp::ALL);
}

/// [`store`] for a C with [16-byte aligned rows](Epilogue::is_16_byte_aligned).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn store_aligned<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &Fragment<N, C::Real>,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
) {
    let cols = const { WORDS * C::PER_WORD };
    let (rows_left, cols_left) = epilogue.left(first);
    // A lane's four words, of every second row or of every fourth.
    let each = const { rows_at_once_of(WORDS) };
    let (row_of_lane, word) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR) * FOUR);
    let mut to = epilogue.place(first) + row_of_lane * epilogue.between_rows() + word * C::PER_WORD;
    for part in 0..cols_left.div_ceil(cols).min(N.div_ceil(cols)) {
        stage::<C, WORDS, _, _, _>(sums, part, staged, (base, lane));
        let col = part * cols + word * C::PER_WORD;
        let rows = if col < cols_left.min(N) { rows_left } else { 0 };
        let mut at = to;
        // A lane reads four rows before it stores one, so that reads overlap.
        for four in (0..ROWS).step_by(4 * each) {
            let mut words = const { [[C::Real::ZERO; FOUR]; 4] };
            for i in 0..4 {
                // A lane beyond the staged words reads those of another lane.
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
