//! LdgRows that begin anywhere, on their way to shared memory by ordinary reads and writes: where the tensor memory accelerator
//! would take none.
//!
//! Either way in which an operand may lie, what a stage needs of it are groups of 64 rows of 64 elements: in global memory
//! from some place on, `pitch` elements apart; in shared memory 128 bytes each, swizzled as the accelerator would put them
//! down.
//!
//! ```text
//!   K-major   a row is 64 steps of k of a row of A (a column of B)      the next stage's begins 64 elements further on
//!   MN-major  a row is 64 rows of A (columns of B) of a step of k       ... 64 rows further down
//! ```
//!
//! * **A lane** writes the same sixteen bytes of every eighth row of a group. Where a row begins anywhere, these lie in two
//!   such pieces of what it reads, and it takes them out of both. Eight rows begin a multiple of sixteen bytes after each
//!   other, however far apart rows are; so do those of the next stage: by how much a lane shifts stays the same.
//! * **A warp** writes 128 bytes of four rows at once, and has half of a group: its sixteen reads are begun before one is
//!   waited for.
//! * **Zeros** take the place of steps of k behind the last one. LdgRows of A (columns of B) that there are not may be anything:
//!   nobody looks at their sums.
//! * **Nothing is read outside** of what lies between the operand's first element and its last. Sixteen bytes that may reach
//!   out, at its two ends, are written element by element, afterwards.

use super::{
    device::{warpgroup::*, *},
    unaligned_vector::shifted,
    wgmma_shape::{BLOCK_K, WGMMA_M},
};

/// Elements of sixteen bytes.
const N: usize = 8;
/// LdgRows of a group that a lane writes to.
const ROWS_PER_LANE: usize = WGMMA_M / 8;

/// Where an operand of a product lies, and what a block needs of it: rows of A (columns of B) from `outer` on.
#[derive(Clone, Copy)]
pub struct Place {
    /// Whether the operand is K-major.
    pub k_major: bool,
    /// Elements from one row of A (column of B) to the next.
    pub between_outer: u64,
    /// Elements from one step of k to the next.
    pub between_steps: u64,
    /// The product's first element.
    pub start: usize,
    /// LdgRows of A (columns of B) in all, and steps of k.
    pub count: (u32, u32),
    /// The first row of A (column of B) of the CTA's tile.
    pub outer: u32,
}

/// What a lane reads and writes, of half a group.
pub struct LdgRows<T: Factor> {
    from: In<T>,
    /// The first row's first element for this lane, in the first stage.
    first: usize,
    /// Elements by which that lies behind a multiple of sixteen bytes.
    shift: usize,
    /// Elements from a row to the next.
    pitch: usize,
    /// Which of a group's rows the first is.
    row: u32,
    /// LdgRows from the group's first on, and elements from the lane's first on, that there are in the first stage.
    left: (u32, u32),
    /// LdgRows and elements that a stage has fewer than the one before.
    fewer: (u32, u32),
    /// The last rows of the operand, in which sixteen bytes may reach beyond its last element.
    last: u32,
}

/// Sixteen bytes of each row, as two pieces.
pub struct InFlight([[[u32; 4]; 2]; ROWS_PER_LANE]);

impl<T: Factor> LdgRows<T> {
    /// LdgRows of half a group, of those of the block: the first and the second of the first group, and so on.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(from: In<T>, place: Place, half: usize) -> Self {
        let lane = thread::lane_id();
        let (row, col) = (half as u32 % 2 * 4 + lane / 8, lane % 8 * N as u32);
        let (outer, steps) = place.count;
        let first = place.outer + (half / 2 * WGMMA_M) as u32;
        let depth = BLOCK_K as u32;
        let (pitch, count, len, fewer) = match place.k_major {
            true => (place.between_outer, outer.saturating_sub(first), steps, (0, depth)),
            false => (place.between_steps, steps, outer.saturating_sub(first), (depth, 0)),
        };
        let pitch = pitch as usize;
        let skipped = match place.k_major {
            true => first as usize * pitch,
            false => first as usize,
        };
        let first = place.start + skipped + row as usize * pitch + col as usize;
        LdgRows {
            from,
            first,
            shift: (from.misalignment::<16>() + first) % N,
            pitch,
            row,
            left: (count, len.saturating_sub(col)),
            fewer,
            // Two pieces reach beyond a row by less than their length. (LdgRows that are all one are the last, all of them.)
            last: match pitch {
                0 => u32::MAX,
                1..16 => 2 * N as u32,
                _ => 1,
            },
        }
    }

    /// Where the lane's first row begins in that stage.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn at(&self, stage: u32) -> usize {
        let (rows, cols) = self.fewer;
        // One of the two.
        self.first + stage as usize * (rows as usize * self.pitch + cols as usize)
    }

    /// LdgRows from the group's first on that the lane has anything of in that stage, those of them that it may read by sixteen
    /// bytes, and elements of each.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn left(&self, stage: u32) -> (u32, u32, u32) {
        let rows = self.left.0.saturating_sub(stage * self.fewer.0);
        let cols = self.left.1.saturating_sub(stage * self.fewer.1);
        let within = if cols >= 2 * N as u32 { rows } else { rows.saturating_sub(self.last) };
        if cols > 0 { (rows, within, cols) } else { (0, 0, 0) }
    }

    /// Does the first piece of the first row begin before the buffer?
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn begins_before(&self, stage: u32) -> bool {
        self.at(stage) < self.shift
    }

    /// Begins to read what the lane writes in that stage.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn fetch(&self, stage: u32) -> InFlight {
        let (_, within, cols) = self.left(stage);
        let first = within.saturating_sub(self.row);
        // All elements may lie in the first piece.
        let is_second_read = self.shift > 0 && cols as usize + self.shift > N;
        let second = if is_second_read { first } else { 0 };
        let begins_before = self.begins_before(stage);
        let mut at = self.at(stage).wrapping_sub(self.shift);
        let mut pieces = [[[0; 4]; 2]; ROWS_PER_LANE];
        for i in 0..ROWS_PER_LANE {
            let row = 8 * i as u32;
            let is_inside = row < first && (i > 0 || !begins_before);
            pieces[i][0] = to_words::<T, N>(self.from.load128_if(at, is_inside));
            let next = at.wrapping_add(N);
            pieces[i][1] = to_words::<T, N>(self.from.load128_if(next, row < second));
            at = at.wrapping_add(8 * self.pitch);
        }
        InFlight(pieces)
    }

    /// Writes what was read for that stage to the half group's, whose group begins at that element of shared memory.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn store(
        &self,
        stage: u32,
        fetched: &InFlight,
        tiles: &mut DynamicShared<T>,
        group: usize,
    ) {
        let (rows, within, cols) = self.left(stage);
        let masks = [0, 1, 2, 3].map(|word| match cols.saturating_sub(2 * word) {
            0 => 0,
            1 => 0xffff,
            _ => u32::MAX,
        });
        // A row is 128 bytes, of which sixteen have the number that they would have unswizzled, combined with the row's
        // (PTX ISA, "Shared memory matrix layout"); and that is the same for every eighth.
        let chunk = (thread::lane_id() % 8) ^ self.row;
        let to = group + self.row as usize * BLOCK_K + chunk as usize * N;
        for i in 0..ROWS_PER_LANE {
            let [first, second] = fetched.0[i];
            let words = masked(shifted(first, second, self.shift * size_of::<T>()), masks);
            tiles.store128(to + i * 8 * BLOCK_K, from_words::<T, N>(words));
        }
        // LdgRows that were left out.
        let mut row = self.row;
        if !self.begins_before(stage) {
            row += within.saturating_sub(row).next_multiple_of(8);
        }
        while row < rows.min(WGMMA_M as u32) {
            let below = (row - self.row) as usize;
            let at = self.at(stage) + below * self.pitch;
            let elements: [T; N] =
                core::array::from_fn(|i| self.from[at + i.min(cols as usize - 1)]);
            let words = masked(to_words(elements), masks);
            tiles.store128(to + below * BLOCK_K, from_words::<T, N>(words));
            row += 8;
        }
    }
}

/// The bits that the masks have.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn masked(words: [u32; 4], masks: [u32; 4]) -> [u32; 4] {
    [0, 1, 2, 3].map(|word| words[word] & masks[word])
}
