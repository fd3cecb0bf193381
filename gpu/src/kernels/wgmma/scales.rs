//! Scales of numbers of 8 bits: what the sums are multiplied by.
//!
//! ```text
//!   scales     A has one for             B has one for         multiplied
//!   [`ROWS_COLS`]  a row                     a column              at the end
//!   [`BLOCKS`] a row's 128 k-steps       128 x 128             the sum of each stage, before it is added
//! ```
//!
//! A stage of these kernels has 128 k-steps, and a tile at most 128 columns, of one block. So a
//! stage has two scales a thread: those of its two rows. Copies bring them to a [`ScaleRing`] in
//! shared memory, up to 16 stages before they are needed: consumers load nothing from global memory
//! in the main loop.

use super::{
    collective::{accumulators::ROWS as FRAGMENT_ROWS, real::Real, stored::Stored},
    device::{warpgroup::*, *},
};
use crate::params::{BLOCKS, GemmParams, ROWS_COLS, ScaleStrides};

/// Lanes of a warp.
const WARP: usize = 32;

/// Rows between the two rows of a thread.
const NEXT_ROW: usize = 8;

/// Stages in a slot of a [`ScaleRing`]. A consumer waits once, and releases once, for all of them.
const SLOT: usize = 4;

/// Slots of a [`ScaleRing`].
const SLOTS: usize = 4;

/// Stages in a [`ScaleRing`].
const STAGES: usize = SLOT * SLOTS;

/// What the sums of tiles are multiplied by.
pub trait Scales {
    /// Those of blocks, if there are any.
    fn of_blocks(&self) -> Option<&Scaled<'_>>;

    /// Multiplies the sums of 64 rows from `first` on by the scales that are not of a stage.
    fn finish<C: Stored<Real: WgmmaSum>, const N: usize>(
        &self,
        problem: &GemmParams,
        sums: &mut Fragment<N, C::Real>,
        first: (usize, usize),
    );
}

/// There are none.
pub struct Unscaled;

impl Scales for Unscaled {
    #[inline(always)]
    fn of_blocks(&self) -> Option<&Scaled<'_>> {
        None
    }

    #[inline(always)]
    fn finish<C: Stored<Real: WgmmaSum>, const N: usize>(
        &self,
        _: &GemmParams,
        _: &mut Fragment<N, C::Real>,
        _: (usize, usize),
    ) {
    }
}

/// Those of the kernel's constant: perhaps none.
pub struct Scaled<'a> {
    /// [`NO_SCALES`](crate::params::NO_SCALES), [`ROWS_COLS`] or [`BLOCKS`].
    pub kind: u32,
    /// Where they are.
    pub strides: ScaleStrides,
    /// A's.
    pub a: &'a In<f32>,
    /// B's.
    pub b: &'a In<f32>,
}

impl Scaled<'_> {
    /// Where that of a row of A is, which may be beyond the last.
    #[inline(always)]
    fn place_of_row(&self, problem: &GemmParams, row: usize, stage: usize) -> usize {
        let [between_rows, between_stages] = self.strides.a.map(|stride| stride as usize);
        row.min(problem.m as usize - 1) * between_rows + stage * between_stages
    }

    /// Where that of a column of B is, or of 128.
    #[inline(always)]
    fn place_of_col(&self, col: usize, stage: usize) -> usize {
        let [between_stages, between_cols] = self.strides.b.map(|stride| stride as usize);
        stage * between_stages + col * between_cols
    }
}

impl Scales for Scaled<'_> {
    #[inline(always)]
    fn of_blocks(&self) -> Option<&Scaled<'_>> {
        (self.kind == BLOCKS).then_some(self)
    }

    #[inline(always)]
    #[track_caller]
    fn finish<C: Stored<Real: WgmmaSum>, const N: usize>(
        &self,
        problem: &GemmParams,
        sums: &mut Fragment<N, C::Real>,
        (first_row, first_col): (usize, usize),
    ) {
        if self.kind != ROWS_COLS {
            return;
        }
        // A lane loads those of every 32nd column, all at once, and lanes exchange them. If each
        // loaded those of its own columns, there would be registers for a few loads at a time.
        const { assert!(N <= 4 * WARP) };
        let (last, lane) = (problem.n as usize - 1, thread::lane_id() as usize);
        let mut of_cols = [C::Real::ONE; 4];
        for i in 0..N.div_ceil(WARP) {
            let place = self.place_of_col((first_col + i * WARP + lane).min(last), 0);
            of_cols[i] = C::Real::from_f64(self.b[place].into());
        }
        let mut part = |i: usize| {
            sums.map_pairs_of::<WARP>(i, |row, col, [left, right]| {
                let place = self.place_of_row(problem, first_row + row as usize, 0);
                let of_row = C::Real::from_f64(self.a[place].into());
                let [of_left, of_right] =
                    [col, col + 1].map(|col| warp::shuffle(warp::ALL, of_cols[i], col));
                // In this order the swap of A and B changes no bit.
                [left.times(of_row.times(of_left)), right.times(of_row.times(of_right))]
            });
        };
        // Written out, since registers cannot be indexed by a computed number.
        part(0);
        if const { N > WARP } {
            part(1);
            part(2);
            part(3);
        }
    }
}

/// Bytes of the [`ScaleRing`] of a tile of `rows`, if products of `T` have one.
pub const fn ring_bytes<T: Factor>(rows: usize) -> usize {
    match T::HAS_SHORT_SUMS {
        true => STAGES * (rows + 1) * size_of::<f32>() + SLOTS * 2 * size_of::<u64>(),
        false => 0,
    }
}

/// Scales of blocks in shared memory: a ring of slots of four stages. A warp copies them there, and
/// the consumers' warps read them. A tile begins with a slot of its own.
///
/// Four bytes at a time, since the caller chooses the strides.
pub struct ScaleRing<const ROWS: usize> {
    slots: Pipeline<SLOTS>,
    of_rows: Shared<f32, STAGES, ROWS>,
    of_cols: Shared<f32, STAGES>,
}

impl<const ROWS: usize> ScaleRing<ROWS> {
    /// Declares it, if products of `T` have scales of blocks.
    #[inline(always)]
    #[track_caller]
    pub fn declare<T: Factor>() -> Option<Self> {
        const { assert!(ROWS.is_multiple_of(WARP), "each lane copies as many rows") };
        if const { !T::HAS_SHORT_SUMS } {
            return None;
        }
        let (of_rows, of_cols) = (shared![f32; STAGES, ROWS], shared![f32; STAGES]);
        Some(ScaleRing { slots: pipeline![SLOTS], of_rows, of_cols })
    }

    /// Initialises its barriers, as [`Pipeline::init`] does.
    #[inline(always)]
    #[track_caller]
    pub fn init(&self) {
        self.slots.init_for_writers(WARP as u32, const { (ROWS / FRAGMENT_ROWS) as u32 });
    }

    /// The side of the warp that copies.
    #[inline(always)]
    pub fn copies(&mut self) -> ScaleCopies<'_, ROWS> {
        let ScaleRing { slots, of_rows, of_cols } = self;
        ScaleCopies { slots: slots.producer(), of_rows, of_cols }
    }

    /// The side of a thread that multiplies. Without scales of blocks nothing is read.
    #[inline(always)]
    pub fn reads(&self, are_of_blocks: bool) -> StageScales<'_, ROWS> {
        StageScales { are_of_blocks, slots: self.slots.consumer(), ring: self, first: 0 }
    }
}

/// Copies scales to a [`ScaleRing`].
pub struct ScaleCopies<'a, const ROWS: usize> {
    slots: Producer<'a, SLOTS>,
    of_rows: &'a mut Shared<f32, STAGES, ROWS>,
    of_cols: &'a mut Shared<f32, STAGES>,
}

impl<const ROWS: usize> ScaleCopies<'_, ROWS> {
    /// Begins to copy the scales of `stage` and of those after it, if it is the first of a slot.
    /// The tile at (row, col) has stages from `begin` to `end`. All lanes call it.
    #[inline(always)]
    #[track_caller]
    pub fn begin(
        &mut self,
        (problem, scales): (&GemmParams, &Scaled<'_>),
        (begin, stage, end): (u32, u32, u32),
        (row, col): (u32, u32),
    ) {
        if !(stage - begin).is_multiple_of(SLOT as u32) {
            return;
        }
        let slot = self.slots.acquire_warp() * SLOT;
        let (lane, stage) = (thread::lane_id() as usize, stage as usize);
        let count = SLOT.min(end as usize - stage);
        for number in 0..count {
            for part in 0..const { ROWS / WARP } {
                let to = part * WARP + lane;
                let from = scales.place_of_row(problem, row as usize + to, stage + number);
                let to = (slot + number) * ROWS + to;
                self.of_rows.copy_async::<1>(to, scales.a, from, true);
            }
        }
        if lane < count {
            let from = scales.place_of_col(col as usize / 128, stage + lane);
            self.of_cols.copy_async::<1>(slot + lane, scales.b, from, true);
        }
        self.slots.full().arrive_after_copies();
        self.slots.advance();
    }

    /// Waits until all scales have been read: no copy is in flight when the warp ends.
    #[inline(always)]
    #[track_caller]
    pub fn finish(self) {
        self.slots.drain_warp();
    }
}

/// Reads a thread's scales of a tile's stages, one after the other.
pub struct StageScales<'a, const ROWS: usize> {
    are_of_blocks: bool,
    slots: Consumer<'a, SLOTS>,
    ring: &'a ScaleRing<ROWS>,
    /// The first stage of the slot.
    first: usize,
}

impl<const ROWS: usize> StageScales<'_, ROWS> {
    /// The scales of stage `number` of a tile's `stages`: of `row` of the tile, and of that eight
    /// below. All lanes call it.
    #[inline(always)]
    #[track_caller]
    pub fn next<R: Real>(&mut self, (number, stages): (u32, u32), row: usize) -> [R; 2] {
        if !self.are_of_blocks {
            return [R::ONE; 2];
        }
        let in_slot = number as usize % SLOT;
        if in_slot == 0 {
            self.first = self.slots.wait_warp() * SLOT;
        }
        let (at, ScaleRing { of_rows, of_cols, .. }) = (self.first + in_slot, self.ring);
        let read = [of_rows[(at, row)], of_rows[(at, row + NEXT_ROW)], of_cols[at]];
        let [upper, lower, of_cols] = read.map(|scale| R::from_f64(scale.into()));
        if in_slot == SLOT - 1 || number + 1 == stages {
            self.slots.release_read_warp();
            self.slots.advance();
        }
        [upper.times(of_cols), lower.times(of_cols)]
    }
}
