//! Boxes of a tensor as TMA copies them: with strides, zeros for elements outside the tensor, and
//! the shared-memory swizzle.

use std::ops::Range;

use super::tensor_core::swizzle::Swizzle;
use crate::Tf32;

/// What a load delivers for a byte that is skipped: NaN, in every type of floats.
const SKIPPED: u8 = 0xff;

/// A box of `rows x cols` elements in global memory. Of its rows and columns a range in the middle
/// is inside the matrix.
#[derive(Clone, Copy, Debug)]
pub struct GlobalBox {
    /// The address of the first element, and the bytes of an element.
    pub(super) first: *const u8,
    pub(super) element: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Rows before the matrix's first row, and the rows after them that are inside.
    pub(super) rows_before: usize,
    pub(super) rows_inside: usize,
    /// Columns before the matrix's first column; those after them that the tensor map
    /// [skips](super::device::TensorMap::skipping); and those after these that are elements of the
    /// matrix.
    pub(super) cols_before: usize,
    pub(super) cols_skipped: usize,
    pub(super) cols_inside: usize,
    /// Bytes from one row to the next in global memory.
    pub(super) row_stride: usize,
    pub(super) swizzle: Swizzle,
    /// Whether its elements are f32 that a load rounds to tf32.
    pub(super) rounds: bool,
}

impl GlobalBox {
    /// `count` elements of that many bytes, one after another.
    pub(super) fn line(first: *const u8, element: usize, count: usize) -> Self {
        GlobalBox {
            first,
            element,
            rows: 1,
            cols: count,
            rows_before: 0,
            rows_inside: 1,
            cols_before: 0,
            cols_skipped: 0,
            cols_inside: count,
            row_stride: 0,
            swizzle: Swizzle::None,
            rounds: false,
        }
    }

    /// Bytes of the box in shared memory.
    pub(super) fn bytes(&self) -> usize {
        self.rows * self.cols * self.element
    }

    /// Bytes that a load brings to an SM, as Nsight Compute counts them: of each row the sectors of
    /// 32 bytes that the matrix has part in, and as many as the zeros beside them fill. `base` is
    /// the address of the matrix's buffer, which is taken to start a sector. What is skipped
    /// counts: TMA loads it.
    pub(super) fn loaded(&self, base: usize) -> usize {
        let row = self.cols * self.element;
        let outside = row - (self.cols_skipped + self.cols_inside) * self.element;
        let rows = self.parts().count();
        self.stored(base)
            + 32 * (rows * outside.div_ceil(32) + (self.rows - rows) * row.div_ceil(32))
    }

    /// Bytes that a store brings from an SM: of each row the sectors that the matrix has part in.
    pub(super) fn stored(&self, base: usize) -> usize {
        let [skipped, inside] = [self.cols_skipped, self.cols_inside].map(|of| of * self.element);
        let sectors = |part: *const u8| {
            ((part.addr() - base).wrapping_sub(skipped) % 32 + skipped + inside).div_ceil(32)
        };
        32 * self.parts().map(sectors).sum::<usize>()
    }

    /// Bytes of shared memory that it may touch: the swizzle permutes 16-byte groups within lines
    /// of 128 bytes.
    pub(super) fn extent(&self) -> usize {
        match self.swizzle {
            Swizzle::None => self.bytes(),
            _ => self.bytes().next_multiple_of(128),
        }
    }

    /// The parts of shared memory that it occupies, if it is at that address: offset and bytes of
    /// each. In a last line that it does not fill, these are single 16-byte groups.
    pub(super) fn places(&self, address: usize) -> impl Iterator<Item = (usize, usize)> {
        let whole = match self.swizzle {
            Swizzle::None => self.bytes(),
            _ => self.bytes() / 128 * 128,
        };
        // A swizzled row consists of whole groups, one after another.
        let groups = if whole < self.bytes() { whole / 16..self.bytes() / 16 } else { 0..0 };
        let groups = self.groups(address).skip(groups.start).take(groups.len());
        let lines = (whole > 0).then_some((0, whole));
        lines.into_iter().chain(groups.map(|group| (group.place, group.width)))
    }

    /// The parts of its rows that are inside the matrix: the address of each, with `cols_inside`
    /// elements.
    pub(super) fn parts(&self) -> impl Iterator<Item = *const u8> {
        let GlobalBox { rows_before, rows_inside, cols_inside, row_stride, .. } = *self;
        let rows = if cols_inside > 0 { rows_inside } else { 0 };
        let first = self.first.wrapping_add((self.cols_before + self.cols_skipped) * self.element);
        (rows_before..rows_before + rows).map(move |row| first.wrapping_add(row * row_stride))
    }

    /// Copies the box to shared memory.
    ///
    /// # Safety
    /// 1. The elements inside the matrix are valid.
    /// 2. `to` is valid for [`extent`](Self::extent).
    pub(super) unsafe fn load(&self, to: *mut u8) {
        for Group { global, skipped, inside, place, width } in self.groups(to.addr()) {
            let mut bytes = [0; 16];
            bytes[skipped].fill(SKIPPED);
            let into = bytes[inside.clone()].as_mut_ptr();
            // SAFETY: inside the matrix; and inside the box, whose groups the swizzle permutes.
            unsafe {
                global.wrapping_add(inside.start).copy_to_nonoverlapping(into, inside.len());
                if self.rounds {
                    round_to_tf32(&mut bytes);
                }
                to.add(place).copy_from_nonoverlapping(bytes.as_ptr(), width);
            }
        }
    }

    /// Copies the box to global memory, from `read`: its [`extent`](Self::extent) as read at that
    /// address of shared memory. Nothing is written outside the matrix.
    ///
    /// # Safety
    /// 1. The elements inside the matrix are valid, and may be written.
    pub(super) unsafe fn store(&self, read: &[u8], address: usize) {
        for Group { global, inside, place, .. } in self.groups(address) {
            let from = &read[place + inside.start..place + inside.end];
            let to = global.wrapping_add(inside.start).cast_mut();
            // SAFETY: inside the matrix, as the caller promises.
            unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        }
    }

    /// The 16-byte groups, which the swizzle permutes, of the box at that address of shared memory.
    fn groups(&self, address: usize) -> impl Iterator<Item = Group> {
        let row_bytes = self.cols * self.element;
        let groups = (0..self.rows)
            .flat_map(move |row| (0..row_bytes).step_by(16).map(move |group| (row, group)));
        // The swizzle depends on the address and repeats after at most 1024 bytes. A block's shared
        // memory begins at a multiple of that.
        let start = (address % 1024) as u32;
        // Bytes of a row up to where the skipped columns begin, to where they end, and to where the
        // matrix ends.
        let before = self.cols_before * self.element;
        let skipped = before + self.cols_skipped * self.element;
        let end = skipped + self.cols_inside * self.element;
        groups.map(move |(row, group)| {
            let is_inside =
                row.checked_sub(self.rows_before).is_some_and(|row| row < self.rows_inside);
            let of_group = |at: usize| if is_inside { at.saturating_sub(group).min(16) } else { 0 };
            let address = start + (row * row_bytes + group) as u32; // at most 512 KiB
            Group {
                global: self.first.wrapping_add(row * self.row_stride + group),
                skipped: of_group(before)..of_group(skipped),
                inside: of_group(skipped)..of_group(end),
                place: (self.swizzle.apply(address) - start) as usize,
                width: (row_bytes - group).min(16),
            }
        })
    }
}

/// Rounds four f32 as TMA does where the tensor map's type is tf32: to nearest, ties to even.
/// Measured on an H200 with ties, with the greatest f32 and with subnormal numbers
/// (docs/log/wgmma-tf32.md; NVIDIA's documentation says that TMA rounds, and not how). NaN was not
/// measured.
fn round_to_tf32(bytes: &mut [u8; 16]) {
    const DROPPED: u32 = 13;
    for bytes in bytes.as_chunks_mut::<4>().0 {
        let value = f32::from_ne_bytes(*bytes);
        let bits = value.to_bits();
        let just_below_half = (1 << (DROPPED - 1)) - 1;
        let rounded = match value.is_nan() {
            true => Tf32::from_f32(value).to_bits(),
            // A carry out of the fraction increments the exponent; from the greatest exponent it
            // gives infinity.
            false => (bits + just_below_half + (bits >> DROPPED & 1)) >> DROPPED << DROPPED,
        };
        *bytes = rounded.to_ne_bytes();
    }
}

/// A group of at most 16 bytes of a row.
struct Group {
    /// Its address in global memory; and the bytes of it that the tensor map skips, and that are
    /// inside the matrix.
    global: *const u8,
    skipped: Range<usize>,
    inside: Range<usize>,
    /// Its offset in the box, and its bytes.
    place: usize,
    width: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_swizzle_permutes_groups_of_sixteen_bytes() {
        for span in [32, 64, 128] {
            let swizzled = |at: u32| Swizzle::of_span(span).apply(at) as usize;
            let mut places = (0..1024).step_by(16).map(swizzled).collect::<Vec<_>>();
            let span = span as usize;
            // The same group of eight rows is in eight different groups of banks.
            let rows = 8 * span / 128;
            let mut column = (0..8).map(|row| places[row * span / 16] % 128).collect::<Vec<_>>();
            column.sort_unstable();
            column.dedup();
            assert_eq!(column.len(), 8, "{span}: {rows}");
            places.sort_unstable();
            assert!(places.iter().enumerate().all(|(i, place)| i * 16 == *place));
        }
        assert_eq!(Swizzle::Bytes128.apply(0x80), 0x90);
        assert_eq!(Swizzle::Bytes128.apply(0x3f0), 0x380);
        assert_eq!(Swizzle::Bytes64.apply(0x180), 0x1b0);
    }

    /// As measured on an H200.
    #[test]
    fn tf32_is_rounded_to_the_nearest_and_even_one() {
        let (last, half) = (2f32.powi(-10), 2f32.powi(-11));
        for (value, expected) in [
            (1.0 + half, 1.0),
            (1.0 + 3.0 * half, 1.0 + 2.0 * last),
            (1.0 + half + 2f32.powi(-20), 1.0 + last),
            (-1.0 - half, -1.0),
            (1.0 + half / 2.0, 1.0),
            (f32::MAX, f32::INFINITY),
            (f32::from_bits(0x0008_0100), f32::from_bits(0x0008_0000)),
        ] {
            let mut bytes = [0; 16];
            bytes[4..8].copy_from_slice(&value.to_ne_bytes());
            round_to_tf32(&mut bytes);
            assert_eq!(bytes.as_chunks::<4>().0[1], expected.to_ne_bytes(), "{value}");
        }
    }

    /// A box of 1 x 16 f32, and one of 9 rows of 16 bytes.
    #[test]
    fn places_in_a_line_that_the_box_does_not_fill() {
        let source = |rows, cols| GlobalBox {
            first: std::ptr::null(),
            element: 4,
            rows,
            cols,
            rows_before: 0,
            rows_inside: rows,
            cols_before: 0,
            cols_skipped: 0,
            cols_inside: cols,
            row_stride: 64,
            swizzle: Swizzle::Bytes128,
            rounds: false,
        };
        let places = |of: GlobalBox, at| of.places(at).collect::<Vec<_>>();
        assert_eq!(places(source(1, 16), 0), [(0, 16), (16, 16), (32, 16), (48, 16)]);
        assert_eq!(places(source(1, 16), 512), [(64, 16), (80, 16), (96, 16), (112, 16)]);
        assert_eq!(places(source(9, 4), 0), [(0, 128), (144, 16)]);
        assert_eq!(places(source(8, 32), 0), [(0, 1024)]);
        let plain = GlobalBox { swizzle: Swizzle::None, ..source(1, 12) };
        assert_eq!(places(plain, 512), [(0, 48)]);
    }

    #[test]
    fn elements_outside_the_matrix_are_zeros() {
        let matrix = (0..15u32).collect::<Vec<_>>();
        let source = GlobalBox {
            first: matrix[6..].as_ptr().cast(),
            element: 4,
            rows: 3,
            cols: 4,
            rows_before: 0,
            rows_inside: 2,
            cols_before: 0,
            cols_skipped: 0,
            cols_inside: 3,
            row_stride: 20,
            swizzle: Swizzle::None,
            rounds: false,
        };
        let mut tile = [u32::MAX; 12];
        // SAFETY: three columns from the second on, two rows of five.
        unsafe { source.load(tile.as_mut_ptr().cast()) };
        assert_eq!(tile, [6, 7, 8, 0, 11, 12, 13, 0, 0, 0, 0, 0]);
        assert_eq!((source.bytes(), source.parts().count()), (48, 2));
        // And back: elements outside the box stay as they are.
        let mut written = [100u32; 15];
        let target = GlobalBox { first: written[6..].as_mut_ptr().cast(), ..source };
        // SAFETY: as above.
        unsafe { target.store(tile.map(u32::to_ne_bytes).as_flattened(), 0) };
        let expected = [100, 100, 100, 100, 100, 100, 6, 7, 8, 100, 100, 11, 12, 13, 100];
        assert_eq!(written, expected);
    }

    /// A box that begins four columns before the matrix, whose first column is skipped.
    #[test]
    fn columns_before_the_matrix_are_zeros_and_skipped_ones_are_not_read() {
        let matrix = (0..15u32).collect::<Vec<_>>();
        let source = GlobalBox {
            first: matrix.as_ptr().wrapping_sub(4).cast(),
            element: 4,
            rows: 2,
            cols: 8,
            rows_before: 0,
            rows_inside: 2,
            cols_before: 4,
            cols_skipped: 1,
            cols_inside: 2,
            row_stride: 20,
            swizzle: Swizzle::None,
            rounds: false,
        };
        let mut tile = [7; 16];
        // SAFETY: the second and the third column of two rows of five.
        unsafe { source.load(tile.as_mut_ptr().cast()) };
        assert_eq!(tile, [0, 0, 0, 0, u32::MAX, 1, 2, 0, 0, 0, 0, 0, u32::MAX, 6, 7, 0]);
        assert_eq!(source.parts().next(), Some(matrix[1..].as_ptr().cast()));
        // Of each row one sector that the matrix has part in, and one for the zeros.
        assert_eq!(source.loaded(matrix.as_ptr().addr()), 2 * 64);
    }
}
