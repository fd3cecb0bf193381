//! The meaning of what a header leaves open.

/// The meaning of arrays that have more than one. By default such a file is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// The matrix for an array of one dimension.
    pub vector: Option<Vector>,
    /// Whether two raw bytes (`V2`) are a bfloat16. `ml_dtypes` writes it like this.
    pub bf16: bool,
}

/// The matrix for an array of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// A matrix with one row.
    Row,
    /// A matrix with one column.
    Column,
}
