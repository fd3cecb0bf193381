//! The shape of the boxes that TMA copies.

/// The shape of a box that TMA copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoxShape {
    /// Rows, 1 to 256.
    pub rows: usize,
    /// Columns, 1 to 256. The bytes of a row are a multiple of sixteen; with a swizzle, at most a
    /// span.
    pub cols: usize,
    /// Bytes of the swizzle span: 32, 64 or 128; 0 for none.
    pub swizzle: usize,
}

impl BoxShape {
    /// Checks that TMA copies boxes of this shape, of elements of that number of bytes. The error
    /// names the value and the limit.
    pub(crate) fn check(self, element: usize) -> Result<(), String> {
        let BoxShape { rows, cols, swizzle } = self;
        let row = cols * element;
        match () {
            () if !(1..=256).contains(&rows) || !(1..=256).contains(&cols) => {
                Err(format!("a box of {rows} x {cols}: 1 to 256 rows and columns"))
            }
            () if !row.is_multiple_of(16) => {
                Err(format!("a box whose row has {row} bytes: a multiple of sixteen"))
            }
            () if !matches!(swizzle, 0 | 32 | 64 | 128) => {
                Err(format!("a swizzle of {swizzle} bytes: 0, 32, 64 or 128"))
            }
            () if swizzle > 0 && row > swizzle => Err(format!(
                "a box whose row has {row} bytes, swizzled over {swizzle}: at most a span"
            )),
            () => Ok(()),
        }
    }
}
