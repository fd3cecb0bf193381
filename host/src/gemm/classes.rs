//! Rows that begin anywhere, as matrices whose rows begin at multiples of sixteen bytes.

/// Every so many'th row of a matrix that begins at a multiple of sixteen bytes, as a matrix that does, too: all of its rows begin as
/// many elements behind a multiple of that number.
pub(super) struct Class {
    /// Its first element.
    pub(super) start: usize,
    pub(super) rows: usize,
    /// Elements of a row, those included that lie before it.
    pub(super) len: usize,
}

impl Class {
    /// The class of a row, of so many. Where there is no such row, it is the first one alone, which nobody asks for.
    pub(super) fn new(
        (class, classes): (usize, usize),
        count: usize,
        len: usize,
        pitch: usize,
    ) -> Self {
        let (start, rows) = match count.checked_sub(class) {
            None | Some(0) => (0, 1),
            Some(rows) => (class * pitch, rows.div_ceil(classes)),
        };
        let shift = start % classes;
        Class { start: start - shift, rows, len: len + shift }
    }
}
