//! Boxes of a tensor as the tensor memory accelerator copies them: strides, zeros for what lies outside, the swizzle.

use super::tensor_core::swizzle::Swizzle;

/// What is copied: a box of `rows x cols` elements of one matrix, of which the first ones of both lie inside.
#[derive(Clone, Copy, Debug)]
pub struct BoxSource {
    /// The first element, and bytes of one.
    pub(super) first: *const u8,
    pub(super) element: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) rows_inside: usize,
    pub(super) cols_inside: usize,
    /// Bytes from one row to the next in global memory.
    pub(super) row_stride: usize,
    pub(super) swizzle: Swizzle,
}

impl BoxSource {
    /// Bytes that it takes in shared memory.
    pub(super) fn bytes(&self) -> usize {
        self.rows * self.cols * self.element
    }

    /// The parts of rows that are read: their addresses, all of `cols_inside` elements.
    pub(super) fn parts(&self) -> impl Iterator<Item = *const u8> {
        let BoxSource { first, rows_inside, cols_inside, row_stride, .. } = *self;
        let rows = if cols_inside > 0 { rows_inside } else { 0 };
        (0..rows).map(move |row| first.wrapping_add(row * row_stride))
    }

    /// Copies it to shared memory.
    ///
    /// # Safety
    /// 1. What lies inside is valid.
    /// 2. `to` is valid for [`bytes`](Self::bytes), and aligned to eight spans of the swizzle.
    pub(super) unsafe fn copy(&self, to: *mut u8) {
        let row_bytes = self.cols * self.element;
        for row in 0..self.rows {
            let inside = if row < self.rows_inside { self.cols_inside * self.element } else { 0 };
            let from = self.first.wrapping_add(row * self.row_stride);
            // The swizzle moves groups of sixteen bytes.
            for group in (0..row_bytes).step_by(16) {
                let mut bytes = [0; 16];
                let count = inside.saturating_sub(group).min(16);
                let width = (row_bytes - group).min(16);
                // It is one of the address, which is a multiple of its pattern's, and so one of the place in the box.
                let place = self.swizzle.apply((row * row_bytes + group) as u32) as usize; // at most 512 KiB
                // SAFETY: inside the matrix; and inside the box, whose groups the swizzle exchanges.
                unsafe {
                    from.add(group).copy_to_nonoverlapping(bytes.as_mut_ptr(), count);
                    to.add(place).copy_from_nonoverlapping(bytes.as_ptr(), width);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_swizzle_exchanges_groups_of_sixteen_bytes() {
        for span in [32, 64, 128] {
            let swizzled = |at: u32| Swizzle::of_span(span).apply(at) as usize;
            let mut places = (0..1024).step_by(16).map(swizzled).collect::<Vec<_>>();
            let span = span as usize;
            // The same group of eight rows of a span lies in as many different banks as there can be.
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

    #[test]
    fn zeros_take_the_place_of_what_lies_outside() {
        let matrix = (0..15u32).collect::<Vec<_>>();
        let source = BoxSource {
            first: matrix[6..].as_ptr().cast(),
            element: 4,
            rows: 3,
            cols: 4,
            rows_inside: 2,
            cols_inside: 3,
            row_stride: 20,
            swizzle: Swizzle::None,
        };
        let mut tile = [u32::MAX; 12];
        // SAFETY: three columns from the second on, two rows of five.
        unsafe { source.copy(tile.as_mut_ptr().cast()) };
        assert_eq!(tile, [6, 7, 8, 0, 11, 12, 13, 0, 0, 0, 0, 0]);
        assert_eq!((source.bytes(), source.parts().count()), (48, 2));
    }
}
