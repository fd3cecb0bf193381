//! An A along k whose rows begin anywhere, though the accelerator takes them at multiples of sixteen bytes alone.
//!
//! Of rows r, r + 8, r + 16, ... each begins as many elements behind such a multiple as the others, up to seven: their
//! *shift*. So they are a matrix of their own, a *class*, that begins at the multiple before, with a map of its own:
//!
//! ```text
//!   map 0   rows 0, 8, 16, ...   k:           0  1  2  3  4  5  6  7 | ...      shift 0
//!   map 1   rows 1, 9, 17, ...   k:        *  0  1  2  3  4  5  6 | 7 ...       shift 1, of rows of 513 elements
//!   map 2   rows 2, 10, ...      k:     *  *  0  1  2  3  4  5 | 6  7 ...       shift 2
//! ```
//!
//! A tile's rows are all of one class, and its steps of k as many behind as the shift says: B's rows are copied from so many
//! before, where below the first there are zeros. `*` is the end of the row before. B's zeros do not do away with it, for it
//! may be infinite, so it is cleared where it lies in shared memory, in a tile's first stage.
//!
//! It is the way of [`gemm_tma`'s `Shifted`](super::super::gemm_tma), whose threads have rows of one class each and mend what
//! they have in registers; here the tensor cores read, and a tile has them.

use super::{
    super::device::{warpgroup::*, *},
    DEPTH,
    operand::{GROUP, Operand, SPAN},
};
use crate::problem::Problem;

/// Elements of sixteen bytes, and classes of rows.
pub const CLASSES: usize = 8;

/// An A of rows that begin anywhere, the first at a multiple of sixteen bytes, of which a tile has `TILE`: a map for each
/// class.
pub struct Shifted<T: Factor, const TILE: usize>([Boxes<T, TILE, DEPTH, SPAN>; CLASSES]);

impl<T: Factor, const TILE: usize> Shifted<T, TILE> {
    /// That of the maps.
    #[inline(always)]
    pub fn new(maps: [&TensorMap<T>; CLASSES]) -> Self {
        Shifted(maps.map(|map| map.boxes()))
    }
}

impl<T: Factor + Default, const TILE: usize> Operand for Shifted<T, TILE> {
    type Element = T;
    type Layout = KMajor<DEPTH>;

    const TILE: usize = TILE;
    const STEP: usize = CLASSES;

    #[inline(always)]
    fn prefetch(&self) {
        self.0.iter().for_each(Boxes::prefetch);
    }

    #[inline(always)]
    fn shift(problem: &Problem, row: u32) -> u32 {
        row.wrapping_mul(problem.a[0] as u32) % CLASSES as u32
    }

    #[inline(always)]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        product: u32,
        (row, p): (u32, u32),
        done: Mbarrier,
    ) {
        const { assert!(BLOCKS == 1, "a block copies its own rows") };
        let place = (product, row / CLASSES as u32, p);
        // A parameter has no number that is computed.
        let boxes = match row % CLASSES as u32 {
            0 => self.0[0],
            1 => self.0[1],
            2 => self.0[2],
            3 => self.0[3],
            4 => self.0[4],
            5 => self.0[5],
            6 => self.0[6],
            _ => self.0[7],
        };
        tiles.load_box(at, &boxes, place, done);
    }

    #[inline(always)]
    #[track_caller]
    fn clear_before(
        tiles: &mut DynamicShared<T>,
        at: usize,
        shift: u32,
        barrier: NamedBarrier<128>,
    ) {
        let row = thread::thread_idx_x() as usize % 128;
        if row < GROUP {
            // The swizzle exchanges a row's pieces of sixteen bytes as the row's number says.
            let first = at + row * DEPTH + row % 8 * CLASSES;
            let mut piece: [T; CLASSES] = tiles.load128(first);
            for i in 0..CLASSES {
                piece[i] = if (i as u32) < shift { T::default() } else { piece[i] };
            }
            tiles.store128(first, piece);
        }
        // Of what these threads have written, before what their tensor cores read.
        fence_proxy_async();
        barrier.sync();
    }
}
