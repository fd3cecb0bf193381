//! What a file's header leaves open.

/// What a file is taken for where its header does not say. By default nothing is taken for anything: such a file is
/// refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// The matrix that an array of one dimension is.
    pub vector: Option<Vector>,
    /// Are two raw bytes (`V2`) a bfloat16? So `ml_dtypes` writes it, and NumPy what it read of that.
    pub bf16: bool,
}

/// The matrix that an array of one dimension is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// One of one row.
    Row,
    /// One of one column.
    Column,
}
