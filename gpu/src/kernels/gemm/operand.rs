//! An operand's way from global to shared memory: A and B alike.
//!
//! Along one side of an operand the products' sums run: that is k. The other is its *outer* side, m for A and n for
//! B. In shared memory an operand's tile lies step of k by step of k, so that a thread finds the outer elements that
//! it multiplies side by side; in global memory either side may be the one whose elements lie side by side.

use super::{super::device::*, FOUR, real::Real};
use crate::problem::Problem;

/// What a thread brings of A or of B: four elements that lie side by side, of each of its block's tiles in turn.
pub struct Operand<'a, T> {
    matrix: &'a In<T>,
    /// Where the four of the next tile begin.
    next: usize,
    /// From there to those of the tile after it, and from one of the four to the next.
    to_next: usize,
    to_neighbour: usize,
    /// Their place in a tile: outer, k.
    place: (usize, usize),
    /// Do elements lie side by side along k? Where neither side has such, k it is.
    along_k: bool,
    /// Do the four begin at a multiple of sixteen bytes?
    wide: bool,
    /// How many elements there are from the first of them on, along the outer side and along k.
    room: (usize, usize),
    depth: usize,
}

impl<'a, T: Real> Operand<'a, T> {
    /// Of A, for thread `t` of a block whose tile of C begins at `first_row`.
    #[inline(always)]
    pub fn of_a<const TILE: usize>(
        matrix: &'a In<T>,
        problem: &Problem,
        first_row: usize,
        (t, depth): (usize, usize),
    ) -> Self {
        let strides = (problem.a[0] as usize, problem.a[1] as usize);
        let size = (problem.m as usize, problem.k as usize);
        let start = thread::block_idx_z() as usize * problem.batch[0] as usize;
        Operand::new::<TILE>(matrix, start, size, strides, first_row, (t, depth))
    }

    /// Of B, for thread `t` of a block whose tile of C begins at `first_col`.
    #[inline(always)]
    pub fn of_b<const TILE: usize>(
        matrix: &'a In<T>,
        problem: &Problem,
        first_col: usize,
        (t, depth): (usize, usize),
    ) -> Self {
        let strides = (problem.b[1] as usize, problem.b[0] as usize);
        let size = (problem.n as usize, problem.k as usize);
        let start = thread::block_idx_z() as usize * problem.batch[1] as usize;
        Operand::new::<TILE>(matrix, start, size, strides, first_col, (t, depth))
    }

    /// `size` and `strides` are of the outer side and of k.
    #[inline(always)]
    fn new<const TILE: usize>(
        matrix: &'a In<T>,
        start: usize,
        size: (usize, usize),
        strides: (usize, usize),
        first: usize,
        (t, depth): (usize, usize),
    ) -> Self {
        // Neighbouring threads bring neighbouring fours.
        let along_k = strides.0 != 1;
        let place = if along_k {
            (t / (depth / FOUR), t % (depth / FOUR) * FOUR)
        } else {
            (t % (TILE / FOUR) * FOUR, t / (TILE / FOUR))
        };
        let (to_neighbour, between) = if along_k { (strides.1, strides.0) } else { strides };
        let even = start.is_multiple_of(FOUR) && between.is_multiple_of(FOUR);
        Operand {
            matrix,
            next: start + (first + place.0) * strides.0 + place.1 * strides.1,
            to_next: depth * strides.1,
            to_neighbour,
            place,
            along_k,
            wide: to_neighbour == 1 && even && matrix.is_aligned128(),
            room: (size.0.saturating_sub(first + place.0), size.1.saturating_sub(place.1)),
            depth,
        }
    }

    /// The four elements of the next tile, and zeros for those outside, which add nothing to a sum.
    #[inline(always)]
    #[track_caller]
    pub fn bring(&mut self) -> [T; FOUR] {
        let (outer, k) = self.room;
        let (room, inside) = if self.along_k { (k, outer > 0) } else { (outer, k > 0) };
        let room = if inside { room } else { 0 };
        let mut four = [T::ZERO; FOUR];
        if self.wide && room >= FOUR {
            four = T::load(self.matrix, self.next);
        } else {
            for i in 0..FOUR {
                if i < room {
                    four[i] = self.matrix[self.next + i * self.to_neighbour];
                }
            }
        }
        self.next += self.to_next;
        self.room.1 = k.saturating_sub(self.depth);
        four
    }

    /// Writes them to a tile that begins at step `first` of the array, and in which element (outer, k) stands at
    /// k * PITCH + outer.
    #[inline(always)]
    #[track_caller]
    pub fn put<const STEPS: usize, const PITCH: usize>(
        &self,
        tile: &mut Shared<T, STEPS, PITCH>,
        first: usize,
        four: [T; FOUR],
    ) {
        let (outer, k) = (self.place.0, first + self.place.1);
        if self.along_k {
            for i in 0..FOUR {
                tile[(k + i, outer)] = four[i];
            }
        } else {
            T::store_shared(tile, k * PITCH + outer, four);
        }
    }
}
