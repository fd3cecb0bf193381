//! Boxes of bytes in rows, for copies.

/// The memory of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    Device,
}

/// The rows of a box of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// The first byte's address.
    pub(crate) start: u64,
    /// Bytes from one row to the next.
    pub(crate) pitch: usize,
    /// Rows from one slice to the next.
    pub(crate) slice_rows: usize,
}

impl Rows {
    /// The address of a row of the box.
    pub(crate) fn row(&self, row: usize, slice: usize) -> *mut u8 {
        (self.start as *mut u8).wrapping_add((slice * self.slice_rows + row) * self.pitch)
    }
}
