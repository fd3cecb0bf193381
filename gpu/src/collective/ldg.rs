//! Operands that threads load: unaligned rows, which TMA cannot take.
//!
//! In either layout a stage needs groups of 64 rows of 64 elements. In global memory the rows of a
//! group are `pitch` elements apart. In shared memory a row is 128 bytes, swizzled as TMA would do
//! it.
//!
//! ```text
//!   K-major    a row is 64 k-steps of one row of A (column of B)      the next stage starts 64 elements further on
//!   MN-major   a row is 64 rows of A (columns of B) of one k-step        ... 64 rows further down
//! ```
//!
//! * **A warp** loads half a group. It issues its sixteen loads before it waits for the first. One
//!   store writes 128 bytes of four rows.
//! * **A lane** stores the same sixteen bytes of every eighth row. In an unaligned row these are in
//!   two pieces of the source. Rows that are eight apart have the same misalignment, and the rows
//!   of the next stage have it too. So a lane always shifts by the same number of bytes.
//! * **Past the end of k** a stage holds zeros. Rows of A (columns of B) past the end may hold
//!   anything: their sums are not stored.
//! * **Nothing is read outside** the operand. Pieces that may exceed its first or last element are
//!   loaded element by element at the end. If there are gaps between rows, so are those that may
//!   exceed a row.

use super::{
    device::{warpgroup::*, *},
    unaligned_vector::shifted,
    wgmma_shape::{BLOCK_K, WGMMA_M},
};

/// Elements of sixteen bytes.
const N: usize = 8;
/// Rows of a group that a lane stores.
const ROWS_PER_LANE: usize = WGMMA_M / 8;

/// An operand of a product, and the CTA's part of it: rows of A (columns of B) from `outer` on.
#[derive(Clone, Copy)]
pub struct Place {
    /// Whether the operand is K-major.
    pub k_major: bool,
    /// Elements from one row of A (column of B) to the next.
    pub between_outer: u64,
    /// Elements from one k-step to the next.
    pub between_steps: u64,
    /// The product's first element.
    pub start: usize,
    /// Rows of A (columns of B), and k-steps, of the whole operand.
    pub count: (u32, u32),
    /// The first row of A (column of B) of the CTA's tile.
    pub outer: u32,
}

/// The part of half a group that a lane loads and stores.
pub struct LdgRows<T: Factor> {
    from: In<T>,
    /// The lane's first element of its first row, in the first stage.
    first: usize,
    /// Misalignment of that element: elements from the last multiple of sixteen bytes to it.
    shift: usize,
    /// Elements from one row to the next.
    pitch: usize,
    /// The number of the first row in its group.
    row: u32,
    /// The extent of the operand in the first stage: rows from the start of the group, and elements
    /// from the lane's first element.
    left: (u32, u32),
    /// Rows and elements that each stage has fewer than the one before.
    fewer: (u32, u32),
    /// The first element of the matrix.
    start: usize,
    /// In the first stage, the elements of a row before the lane's first one. Without gaps, more
    /// than a piece has.
    before: u32,
    /// The last rows of the operand, whose pieces may exceed its last element.
    last: u32,
}

/// Two pieces of sixteen bytes for each row.
pub struct InFlight([[[u32; 4]; 2]; ROWS_PER_LANE]);

impl<T: Factor> LdgRows<T> {
    /// The rows of half a group of the CTA's tile. Halves 0 and 1 are the first group, and so on.
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
        let (of_row, skipped_cols) =
            if place.k_major { (steps, 0) } else { (outer, skipped as u32) };
        let gaps = pitch > of_row as usize;
        LdgRows {
            from,
            first,
            shift: (from.misalignment::<16>() + first) % N,
            pitch,
            row,
            left: (count, len.saturating_sub(col)),
            fewer,
            start: place.start,
            before: if gaps { skipped_cols + col } else { N as u32 },
            // Two pieces exceed a row by less than their length. (With a pitch of 0, all rows are
            // the last. With gaps no row may be exceeded.)
            last: match pitch {
                _ if gaps => u32::MAX,
                0 => u32::MAX,
                1..16 => 2 * N as u32,
                _ => 1,
            },
        }
    }

    /// The start of the lane's first row in a stage.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn at(&self, stage: u32) -> usize {
        let (rows, cols) = self.fewer;
        // One of the two is 0.
        self.first + stage as usize * (rows as usize * self.pitch + cols as usize)
    }

    /// For a stage: the rows, from the start of the group, in which the lane has elements; the
    /// number of these rows that it may load by sixteen bytes; and the elements of each row.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn left(&self, stage: u32) -> (u32, u32, u32) {
        let rows = self.left.0.saturating_sub(stage * self.fewer.0);
        let cols = self.left.1.saturating_sub(stage * self.fewer.1);
        // In a gap before a row no piece may begin.
        let before = self.before + stage * self.fewer.1;
        let is_inside = cols >= 2 * N as u32 && before as usize >= self.shift;
        let within = if is_inside { rows } else { rows.saturating_sub(self.last) };
        if cols > 0 { (rows, within, cols) } else { (0, 0, 0) }
    }

    /// Whether the first piece of the first row starts before the matrix.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn begins_before(&self, stage: u32) -> bool {
        self.at(stage) - self.start < self.shift
    }

    /// Issues the loads of a stage.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn fetch(&self, stage: u32) -> InFlight {
        let (_, within, cols) = self.left(stage);
        let first = within.saturating_sub(self.row);
        // All elements may be in the first piece.
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

    /// Stores the loaded pieces of a stage to shared memory. `group` is the first element of the
    /// group.
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
        // The swizzle: sixteen-byte chunk c of row r is at c ^ (r % 8) (PTX ISA, "Shared memory
        // matrix layout"). It is the same for every eighth row.
        let chunk = (thread::lane_id() % 8) ^ self.row;
        let to = group + self.row as usize * BLOCK_K + chunk as usize * N;
        for i in 0..ROWS_PER_LANE {
            let [first, second] = fetched.0[i];
            let words = masked(shifted(first, second, self.shift * size_of::<T>()), masks);
            tiles.store128(to + i * 8 * BLOCK_K, from_words::<T, N>(words));
        }
        // The rows that were not loaded by pieces.
        let mut row = self.row;
        if !self.begins_before(stage) {
            row += within.saturating_sub(row).next_multiple_of(8);
        }
        let end = rows.min(WGMMA_M as u32);
        while row < end {
            // Four rows are loaded before one is awaited. Those past the last are the last one.
            let read: [[T; N]; 4] = core::array::from_fn(|i| {
                let below = ((row + 8 * i as u32).min(end - 1) - self.row) as usize;
                let at = self.at(stage) + below * self.pitch;
                core::array::from_fn(|i| self.from[at + i.min(cols as usize - 1)])
            });
            for i in 0..4 {
                if row < end {
                    let below = (row - self.row) as usize;
                    let words = masked(to_words(read[i]), masks);
                    tiles.store128(to + below * BLOCK_K, from_words::<T, N>(words));
                }
                row += 8;
            }
        }
    }
}

/// The words, without the bits that the masks lack.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn masked(words: [u32; 4], masks: [u32; 4]) -> [u32; 4] {
    [0, 1, 2, 3].map(|word| words[word] & masks[word])
}
