//! How fast kernels are, and which products that holds for.

/// How fast a kernel is, and how much work it needs for that (docs/log/selection.md, "The model's
/// numbers").
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// GFLOP/s of one SM of an H200, or of one CPU core.
    pub gflops: f64,
    /// The fraction of this that a single block reaches.
    pub alone: f64,
    /// Microseconds before the first operation and after the last.
    pub fixed_us: f64,
    /// Microseconds of an SM for each further tile, beside its operations: one that C fills, and
    /// one that extends beyond the columns of C.
    pub tile_us: [f64; 2],
    /// The products that the speed holds for.
    pub of: Products,
}

impl Speed {
    /// What a row need not say.
    pub(crate) const OF_ALL: Speed =
        Speed { gflops: 0.0, alone: 1.0, fixed_us: 0.0, tile_us: [0.0; 2], of: Products::All };
}

/// The products that a kernel's speed holds for. Sizes are those of the launch, after A and B have
/// been swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// All products.
    All,
    /// Products of at most this many columns.
    Columns(usize),
    /// Single products whose shorter side, m or n, is at least this long and at most 64.
    ShorterSide(usize),
    /// Products on GPUs other than Hopper, which has faster units.
    OtherGpus,
    /// The same, with 16-byte aligned rows or columns. Other operands are copied element by
    /// element, which is slow.
    OtherGpusAligned,
}
