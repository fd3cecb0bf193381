//! An operand's way from global to shared memory, for A and B alike.
//!
//! Sums run along k. The other side of an operand is its *outer* side: m for A, n for B. In shared
//! memory a tile is stored k-step by k-step, so that the outer elements that a thread
//! multiplies are neighbours. In global memory either side may be contiguous:
//!
//! ```text
//!   contiguous      a warp copies                            a thread copies
//!   outer side      rows of the tile, as in shared memory    four neighbours: one 16-byte copy if they are aligned and
//!                                                            all inside
//!   k               columns of the tile, transposed          four elements, each to another row of the tile
//! ```

use super::{
    collective::{stored::Stored, vector::FOUR},
    device::*,
};
use crate::params::GemmParams;

/// A thread's copies of A or B: four elements of each tile of its block.
pub struct Operand<'a, T> {
    matrix: &'a In<T>,
    /// Its first element of the next tile, and the step from tile to tile.
    from: usize,
    to_next: usize,
    /// From one of the four elements to the next: in global memory, and in the tile.
    from_step: usize,
    to_step: usize,
    /// The first one's place in the tile.
    to: usize,
    /// How many of the four are inside on the outer side, and the k-steps from theirs on.
    inside: u32,
    steps: u32,
    /// Whether the four are one copy.
    wide: bool,
}

/// Which operand.
pub enum Which {
    /// `m x k`.
    A,
    /// `k x n`, transposed.
    B,
}

/// Where the matrix of an operand is in global memory.
pub struct Place {
    /// Its size on the outer side.
    pub size: usize,
    /// Its strides along the outer side and along k.
    pub strides: (usize, usize),
    /// Its first element: that of the block's product.
    pub start: usize,
}

impl Which {
    /// Where the operand is.
    #[inline(always)]
    pub fn place(self, problem: &GemmParams) -> Place {
        let (size, strides, batch) = match self {
            Which::A => (problem.m, (problem.a[0], problem.a[1]), problem.batch[0]),
            Which::B => (problem.n, (problem.b[1], problem.b[0]), problem.batch[1]),
        };
        let (size, strides) = (size as usize, (strides.0 as usize, strides.1 as usize));
        Place { size, strides, start: thread::block_idx_z() as usize * batch as usize }
    }
}

impl<'a, T: Stored> Operand<'a, T> {
    /// The operand of a block whose tile of C starts at `first` on the outer side.
    #[inline(always)]
    pub fn new<const TILE: usize, const BLOCK_K: usize, const PITCH: usize>(
        which: Which,
        matrix: &'a In<T>,
        problem: &GemmParams,
        first: usize,
    ) -> Self {
        let Place { size, strides, start } = which.place(problem);
        let t = thread::thread_idx_x() as usize;
        // If neither side is contiguous, the operand is handled as if k were.
        let along_outer = strides.0 == 1;
        // The place of the first element, and the step to the next one on the outer side.
        let (outer, p, step) = if along_outer {
            (t % (TILE / FOUR) * FOUR, t / (TILE / FOUR), 1)
        } else {
            (t / BLOCK_K, t % BLOCK_K, TILE / FOUR)
        };
        let even = start.is_multiple_of(FOUR) && strides.1.is_multiple_of(FOUR);
        let aligned = along_outer && even && matrix.is_aligned128();
        let is_inside = |i: &u32| first + outer + *i as usize * step < size;
        let inside = (0..FOUR as u32).filter(is_inside).count() as u32;
        Operand {
            matrix,
            from: start + (first + outer) * strides.0 + p * strides.1,
            to_next: BLOCK_K * strides.1,
            from_step: step * strides.0,
            to_step: step,
            to: p * PITCH + outer,
            inside,
            steps: problem.k.saturating_sub(p as u32),
            wide: aligned && inside == FOUR as u32,
        }
    }

    /// Issues the copies of the next tile to the stage that starts with element `first`. Elements
    /// outside become zeros, which add nothing to a sum.
    #[inline(always)]
    #[track_caller]
    pub fn begin_copies<const STEPS: usize, const PITCH: usize, const BLOCK_K: usize>(
        &mut self,
        tiles: &mut Shared<T::Real, STEPS, PITCH>,
        first: usize,
    ) {
        let (to, is_step) = (first + self.to, self.steps > 0);
        if self.wide {
            T::copy_four(tiles, to, self.matrix, self.from, is_step);
        } else {
            for i in 0..FOUR {
                let (to, from) = (to + i * self.to_step, self.from + i * self.from_step);
                let valid = is_step && (i as u32) < self.inside;
                T::copy_one(tiles, to, self.matrix, from, valid);
            }
        }
        self.from += self.to_next;
        self.steps = self.steps.saturating_sub(BLOCK_K as u32);
    }
}
