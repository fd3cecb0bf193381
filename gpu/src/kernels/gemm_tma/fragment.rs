//! What a thread reads of a stage: four steps of k of its 8 rows of A and of its 16 columns of B.
//!
//! A *slab* is 16 steps of k of an operand, and a *group* is four of those steps. Where the operand lies along k, 128
//! bits of a slab are one row's (or column's) group; else they are four rows of one step. Either way it takes 8 reads for
//! the rows of a group and 16 for the columns:
//!
//! ```text
//!   along k                                       along the outer side
//!     64 bytes a row, groups exchanged as the       a step's elements side by side, 64 or 128 of them
//!     accelerator swizzles them:
//!     group g of row r lies at g ^ (r / 2 % 4)
//!   a thread has rows y, y + 8, y + 16, ...        rows 4y to 4y + 3, 4y + 32 to 4y + 35
//!     (columns x, x + 4, x + 8, ...)                (columns 4x to 4x + 3, 4x + 16, ...)
//! ```
//!
//! With these rows the eight lanes that differ in y read eight different groups of banks.

use core::marker::PhantomData;

use super::{super::device::*, FOUR, Sums};

/// Steps of k of a slab: 64 bytes of a row, the span of the swizzle.
pub const SLAB: usize = 16;
/// Rows and columns of C that a thread computes.
pub const ROWS: usize = 8;
/// See [`ROWS`].
pub const COLS: usize = 16;
/// Lanes of a warp that differ in their rows, and in their columns.
const ROW_LANES: usize = 8;
/// See [`ROW_LANES`].
pub const COL_LANES: usize = 4;

/// An operand in global memory, slab by slab.
pub trait Operand {
    /// Does it lie along k?
    const K_MAJOR: bool;

    /// Begins to copy the slab that begins with row (or column) `outer` and step `p` to the elements from `at` on.
    fn load(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        product: u32,
        first: (u32, u32),
        done: Mbarrier,
    );
}

impl<const TILE: usize> Operand for Boxes<f32, TILE, SLAB, 64> {
    const K_MAJOR: bool = true;

    #[inline(always)]
    #[track_caller]
    fn load(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        done: Mbarrier,
    ) {
        tiles.load_box(at, self, (product, outer, p), done);
    }
}

impl<const TILE: usize> Operand for Boxes<f32, SLAB, TILE, 0> {
    const K_MAJOR: bool = false;

    #[inline(always)]
    #[track_caller]
    fn load(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        done: Mbarrier,
    ) {
        tiles.load_box(at, self, (product, p, outer), done);
    }
}

/// Where a thread finds its rows or columns: those of a slab of an operand, shared by `LANES` lanes of a warp.
pub struct Places<O, const TILE: usize, const LANES: usize> {
    /// Its first row, and the lane's number among those that differ in rows.
    first: usize,
    lane: usize,
    /// The first element that it reads of group 0, in the first stage.
    start: usize,
    operand: PhantomData<O>,
}

/// A thread's rows of A.
pub type Rows<A, const TILE: usize> = Places<A, TILE, ROW_LANES>;
/// A thread's columns of B.
pub type Cols<B, const TILE: usize> = Places<B, TILE, COL_LANES>;

impl<O: Operand, const TILE: usize, const LANES: usize> Places<O, TILE, LANES> {
    /// Of a slab that begins with that element, of a warp whose part of the tile begins with row (column) `first`.
    #[inline(always)]
    pub fn new(slab: usize, first: usize, lane: usize) -> Self {
        // Two by two lanes beside each other share rows and columns: so their 128-bit reads are put together.
        let (y, x) = (lane / 2 % 2 + lane / 8 * 2, lane % 2 + lane / 4 % 2 * 2);
        let lane = if LANES == ROW_LANES { y } else { x };
        let row = first + lane;
        let start = match O::K_MAJOR {
            true => slab + row * SLAB + row / 2 % 4 * FOUR,
            false => slab + first + lane * FOUR,
        };
        Places { first, lane, start, operand: PhantomData }
    }

    /// The row (column) of the tile that is the thread's i-th.
    #[inline(always)]
    pub fn outer(&self, i: usize) -> usize {
        match O::K_MAJOR {
            true => self.first + self.lane + i * LANES,
            false => self.first + self.lane * FOUR + i / FOUR * LANES * FOUR + i % FOUR,
        }
    }

    /// 128 bits: of a group that lies along k four steps of the thread's i-th row (column); else four of its rows,
    /// from the i-th on, of step p.
    #[inline(always)]
    #[track_caller]
    fn load<const GROUP: usize>(
        &self,
        tiles: &DynamicShared<f32>,
        stage: usize,
        i: usize,
        p: usize,
    ) -> Quad {
        let at = match O::K_MAJOR {
            true => {
                // The next of four lanes' rows is four further: in every other one the groups lie the other way round.
                let group = GROUP ^ (i * LANES / 2 % 4);
                // Rows begin at multiples of four groups: exchanging groups is an exclusive or with the place.
                ((stage + self.start) ^ (group * FOUR)) + i * LANES * SLAB
            }
            false => stage + self.start + (GROUP * FOUR + p) * TILE + i * LANES,
        };
        tiles.load128_in_order(at)
    }

    /// All the thread's rows in a group: for each step of k.
    #[inline(always)]
    #[track_caller]
    fn load_group<const GROUP: usize>(
        &self,
        tiles: &DynamicShared<f32>,
        stage: usize,
    ) -> [[f32; ROWS]; FOUR] {
        let mut rows = [[0.0; ROWS]; FOUR];
        for i in 0..ROWS {
            if O::K_MAJOR {
                let steps = self.load::<GROUP>(tiles, stage, i, 0);
                for p in 0..FOUR {
                    rows[p][i] = steps[p];
                }
            } else if i % FOUR == 0 {
                for p in 0..FOUR {
                    let four = self.load::<GROUP>(tiles, stage, i, p);
                    rows[p][i..i + FOUR].copy_from_slice(&four);
                }
            }
        }
        rows
    }

    /// The `number`th of the reads that bring the thread's columns in a group.
    #[inline(always)]
    #[track_caller]
    fn load_quad<const GROUP: usize>(
        &self,
        tiles: &DynamicShared<f32>,
        stage: usize,
        number: usize,
    ) -> Quad {
        let (i, p) = match O::K_MAJOR {
            true => (number, 0),
            false => (number % FOUR * FOUR, number / FOUR),
        };
        self.load::<GROUP>(tiles, stage, i, p)
    }
}

/// What 128 bits are.
type Quad = [f32; FOUR];
/// Columns are read so many quads before they are multiplied, each of which is 32 multiply-adds. Quads that lie along k
/// are all in use until the last of their four steps, and leave no registers for a second.
const fn quads_ahead<B: Operand>() -> usize {
    if B::K_MAJOR { 1 } else { MOST_AHEAD }
}
const MOST_AHEAD: usize = 2;
/// Quads of the columns of a group.
const QUADS: usize = COLS;

/// What a thread multiplies next: four steps of k of its rows, and the first quads of its columns.
pub struct Fragment {
    rows: [[f32; ROWS]; FOUR],
    ahead: [Quad; MOST_AHEAD],
}

impl Fragment {
    /// Nothing comes next.
    pub const NONE: Fragment =
        Fragment { rows: [[0.0; ROWS]; FOUR], ahead: [[0.0; FOUR]; MOST_AHEAD] };

    /// Of a group of a stage, which begins with that element.
    #[inline(always)]
    #[track_caller]
    pub fn load<const GROUP: usize, A: Operand, B: Operand, const TILE: usize>(
        tiles: &DynamicShared<f32>,
        stage: usize,
        rows: &Rows<A, TILE>,
        cols: &Cols<B, TILE>,
    ) -> Self {
        let rows = rows.load_group::<GROUP>(tiles, stage);
        let mut ahead = [[0.0; FOUR]; MOST_AHEAD];
        for number in 0..quads_ahead::<B>() {
            ahead[number] = cols.load_quad::<GROUP>(tiles, stage, number);
        }
        Fragment { rows, ahead }
    }

    /// Multiplies the rows by all columns of the group. `next` reads what comes then, when the columns' last quads have
    /// been read.
    #[inline(always)]
    #[track_caller]
    pub fn multiply_add<const GROUP: usize, B: Operand, const TILE: usize>(
        mut self,
        tiles: &DynamicShared<f32>,
        stage: usize,
        cols: &Cols<B, TILE>,
        sums: &mut Sums,
        next: impl FnOnce() -> Fragment,
    ) -> Fragment {
        let (mut next, mut following) = (Some(next), Fragment::NONE);
        // As LLVM does not unroll so long a loop.
        macro_rules! quads {
            ($($number:literal)*) => {$(
                let quad = self.ahead[$number % quads_ahead::<B>()];
                if $number + quads_ahead::<B>() < QUADS {
                    let read = cols.load_quad::<GROUP>(tiles, stage, $number + quads_ahead::<B>());
                    self.ahead[$number % quads_ahead::<B>()] = read;
                } else if let Some(next) = next.take() {
                    following = next();
                }
                multiply_add_quad::<B, $number>(&self.rows, quad, sums);
            )*};
        }
        quads! { 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 }
        following
    }
}

/// A quad of the columns by all that it meets: four steps of one column, or four columns of one step. To and fro, so that
/// each multiply-add has an operand in common with the one before: the register file need not be asked for it again.
#[inline(always)]
#[track_caller]
fn multiply_add_quad<B: Operand, const NUMBER: usize>(
    rows: &[[f32; ROWS]; FOUR],
    quad: Quad,
    sums: &mut Sums,
) {
    if B::K_MAJOR {
        for p in 0..FOUR {
            for i in 0..ROWS {
                let i = if p % 2 == 0 { i } else { ROWS - 1 - i };
                sums[i][NUMBER] = fma_in_order(rows[p][i], quad[p], sums[i][NUMBER]);
            }
        }
    } else {
        let (p, first) = (NUMBER / FOUR, NUMBER % FOUR * FOUR);
        for i in 0..ROWS {
            for j in 0..FOUR {
                let j = if i % 2 == 0 { j } else { FOUR - 1 - j };
                sums[i][first + j] = fma_in_order(rows[p][i], quad[j], sums[i][first + j]);
            }
        }
    }
}
