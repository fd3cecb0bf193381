//! An operand's way from global to shared memory: A and B alike.
//!
//! Along one side of an operand the products' sums run: that is k. The other is its *outer* side, m for A and n for
//! B. In shared memory an operand's tile lies step of k by step of k, so that a thread finds the outer elements that
//! it multiplies side by side; in global memory either side may be the one whose elements lie side by side:
//!
//! ```text
//!                     a warp's copies                          of a thread
//!   along the outer   rows of the tile, as in shared memory    four neighbours: one copy of sixteen bytes, where
//!                                                              they are aligned and all inside
//!   along k           columns of the tile: it is turned over   four, each to another row of the array
//! ```

use super::{
    collective::{stored::Stored, vector::FOUR},
    device::*,
};
use crate::params::GemmParams;

/// What a thread copies of A or of B: four elements of each of its block's tiles in turn.
pub struct Operand<'a, T> {
    matrix: &'a In<T>,
    /// Where its first element of the next tile stands, and that of the tile after it.
    from: usize,
    to_next: usize,
    /// From one of the four to the next: in global memory, and in the tile.
    from_step: usize,
    to_step: usize,
    /// The first one's place in the tile.
    to: usize,
    /// How many of the four are inside along the outer side, and how many steps of k there are from theirs on.
    inside: u32,
    steps: u32,
    /// Are the four one copy?
    wide: bool,
}

/// Which operand it is.
pub enum Which {
    /// `m x k`.
    A,
    /// `k x n`, with its sides exchanged.
    B,
}

impl<'a, T: Stored> Operand<'a, T> {
    /// For a block whose tile of C begins at `first` on the operand's outer side.
    #[inline(always)]
    pub fn new<const TILE: usize, const BLOCK_K: usize, const PITCH: usize>(
        which: Which,
        matrix: &'a In<T>,
        problem: &GemmParams,
        first: usize,
    ) -> Self {
        // The outer side's size, the strides along it and along k, and from one product to the next.
        let (size, strides, batch) = match which {
            Which::A => (problem.m, (problem.a[0], problem.a[1]), problem.batch[0]),
            Which::B => (problem.n, (problem.b[1], problem.b[0]), problem.batch[1]),
        };
        let (size, strides) = (size as usize, (strides.0 as usize, strides.1 as usize));
        let start = thread::block_idx_z() as usize * batch as usize;
        let t = thread::thread_idx_x() as usize;
        // Where elements lie side by side along neither side, it is as if they did along k.
        let along_outer = strides.0 == 1;
        // The place of the first of the four, and from there to the next, on the outer side.
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

    /// Begins to copy the four elements of the next tile to the one that begins with element `first` of the array.
    /// Zeros take the place of those outside: they add nothing to a sum.
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
