//! The copies of an operand's tiles for the loop of [`stream`](super::stream): a few at a time,
//! between the instructions that multiply. So they take few registers, and no branch.
//!
//! All copies are of sixteen bytes, or all of one element, and no end of a row cuts one. Then each
//! is inside of the operand or outside. Which are inside is computed once: a bit each, of a tile
//! that k does not cut, and of the last one. What lies outside becomes zeros.

use super::{
    device::*,
    element::{MmaElement, place},
    tile::Which,
};
use crate::params::GemmParams;

/// An operand of a block, in a layout.
#[derive(Clone, Copy)]
pub struct Given<'a, T> {
    /// Which operand.
    pub which: Which,
    /// Its elements.
    pub matrix: &'a In<T>,
    /// The first outer element of the block's tile.
    pub first: usize,
    /// Whether it is K-major, otherwise MN-major.
    pub k_major: bool,
}

impl<T: MmaElement> Given<'_, T> {
    /// Whether the operand can be copied by so many bytes: it is as `k_major` says, all rows are
    /// aligned, and no end of a row cuts a copy.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn has_copies_of(&self, problem: &GemmParams, bytes: usize) -> bool {
        let (size, [of_outer, of_k], batch) = self.which.of(problem);
        let (pitch, between, len) = match self.k_major {
            true => (of_outer, of_k, problem.k),
            false => (of_k, of_outer, size),
        };
        let places = (batch | pitch | u64::from(len)) as usize | self.matrix.misalignment::<16>();
        between == 1 && places.is_multiple_of(bytes / size_of::<T>())
    }
}

/// What a thread copies of the tiles of an operand, `OUTER` rows of A (columns of B) by a panel's
/// k-steps.
pub struct Parts<'a, T, const OUTER: usize, const THREADS: usize, const BYTES: usize> {
    matrix: &'a In<T>,
    /// The start of the next copy.
    next: usize,
    /// The place of the first copy in a tile.
    to: usize,
    /// Which copies are inside: of a tile inside of k, and of the last one.
    inside: [u32; 2],
    /// From a copy to the next of its panel; from a panel's last to the thread's next panel; and
    /// from a tile's last to the next tile.
    to_row: usize,
    to_panel: usize,
    to_tile: usize,
}

impl<'a, T: MmaElement, const OUTER: usize, const THREADS: usize, const BYTES: usize>
    Parts<'a, T, OUTER, THREADS, BYTES>
{
    /// Rows that a block copies at once, of one panel or of several.
    const ROWS: usize = THREADS * (BYTES / size_of::<T>()) / T::PANEL;
    const ROWS_AT_ONCE: usize = if Self::ROWS < T::PANEL { Self::ROWS } else { T::PANEL };
    const PANELS_AT_ONCE: usize = Self::ROWS.div_ceil(T::PANEL);
    /// Copies of a thread to a panel, and to a tile.
    const OF_PANEL: usize = T::PANEL / Self::ROWS_AT_ONCE;
    const OF_TILE: usize = Self::OF_PANEL * OUTER / (Self::PANELS_AT_ONCE * T::PANEL);

    /// The copies of all tiles. The operand [has](Given::has_copies_of) copies of `BYTES`.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(given: Given<'a, T>, problem: &GemmParams) -> Self {
        const {
            assert!(Self::OF_TILE <= 32, "a bit each");
            // The swizzle of a row is that of the thread's first, by `^` that of the distance. Of
            // 16-bit types the latter is none, and f64 has none at all.
            assert!(Self::ROWS_AT_ONCE.is_multiple_of(if T::STEP < 16 { 4 } else { 8 }));
            assert!(OUTER.is_multiple_of(Self::PANELS_AT_ONCE * T::PANEL), "whole panels");
        }
        let Given { which, matrix, first, k_major } = given;
        let (size, [of_outer, of_k], batch) = which.of(problem);
        let (of_outer, of_k) = (of_outer as usize, of_k as usize);
        let pitch = if k_major { of_outer } else { of_k };
        let width = BYTES / size_of::<T>();
        let t = thread::thread_idx_x() as usize;
        let (row, at) = (t * width / T::PANEL, t * width % T::PANEL);
        // The thread's first panel, and its row there.
        let (first_panel, row) = match Self::PANELS_AT_ONCE {
            1 => (0, row),
            _ => (row / T::PANEL * T::PANEL, row % T::PANEL),
        };
        // A bit for each copy of a tile with so many k-steps. Unrolled: as a loop it would take
        // microseconds before the first copy.
        let left = (size as usize).saturating_sub(first);
        let inside = |steps: u32| {
            let mut all = 0;
            for copy in 0..Self::OF_TILE {
                let row = copy % Self::OF_PANEL * Self::ROWS_AT_ONCE + row;
                let panel = copy / Self::OF_PANEL * Self::PANELS_AT_ONCE * T::PANEL + first_panel;
                let (outer, k) = if k_major { (panel + row, at) } else { (panel + at, row) };
                all |= u32::from(outer < left && (k as u32) < steps) << copy;
            }
            all
        };
        let to_row = Self::ROWS_AT_ONCE * pitch;
        let to_last_row = (Self::OF_PANEL - 1) * to_row;
        let to_last_panel = (OUTER - Self::PANELS_AT_ONCE * T::PANEL) * of_outer;
        let start = thread::block_idx_z() as usize * batch as usize;
        Parts {
            matrix,
            next: start + (first + first_panel) * of_outer + row * pitch + at,
            to: first_panel * T::PITCH + place::<T>(row, at / T::PIECE) + at % T::PIECE,
            inside: [inside(T::PANEL as u32), inside(problem.k % T::PANEL as u32)],
            to_row,
            to_panel: (Self::PANELS_AT_ONCE * T::PANEL * of_outer).wrapping_sub(to_last_row),
            to_tile: (T::PANEL * of_k).wrapping_sub(to_last_panel + to_last_row),
        }
    }

    /// Which copies of the next tile are inside, if `steps` k-steps are left.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn inside(&self, steps: u32) -> u32 {
        match steps {
            0 => 0,
            _ if steps < T::PANEL as u32 => self.inside[1],
            _ => self.inside[0],
        }
    }

    /// Issues the `part`th of `parts` of the copies of the next tile, in order.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn copy(
        &mut self,
        tiles: &mut DynamicShared<T>,
        tile: usize,
        inside: u32,
        (part, parts): (usize, usize),
    ) {
        for copy in part * Self::OF_TILE / parts..(part + 1) * Self::OF_TILE / parts {
            let panel = copy / Self::OF_PANEL * Self::PANELS_AT_ONCE;
            let row = copy % Self::OF_PANEL * Self::ROWS_AT_ONCE;
            let to = self.to ^ (T::swizzle(row) * T::PIECE);
            let place = tile + to + (panel * T::PANEL + row) * T::PITCH;
            T::copy::<BYTES>(tiles, place, self.matrix, self.next, inside >> copy & 1 == 1);
            let step = match copy + 1 {
                next if next == Self::OF_TILE => self.to_tile,
                next if next.is_multiple_of(Self::OF_PANEL) => self.to_panel,
                _ => self.to_row,
            };
            self.next = add_in_order(self.next, step);
        }
    }
}
