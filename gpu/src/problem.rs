//! What a GEMM kernel is told besides its matrices: one parameter, which every thread reads.

/// `C = activation(alpha A B + beta C + bias)` for a batch of products: A is `m x k`, B is `k x n`, C is `m x n`.
///
/// Element (row, col) of a matrix stands at `row * strides[0] + col * strides[1]`, so that a transpose, a part of
/// a matrix and a leading dimension are nothing but strides.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Problem {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A and rows of B. With `k = 0` neither is read.
    pub k: u32,
    /// What is added to C: [`NO_BIAS`], [`ROW_BIAS`] or [`COL_BIAS`].
    pub bias: u32,
    /// What becomes of each element at the end: [`IDENTITY`], [`RELU`] or [`GELU`].
    pub activation: u32,
    /// Products of the launch, for kernels whose blocks go on from tile to tile and from product to product. Of the others
    /// blocks along z take products.
    pub products: u32,
    /// Columns of C in wide tiles, the first ones, of kernels that have tiles of two widths: as many as such tiles have, or more
    /// than there are. (Of eight bytes, so that nothing is left between the numbers.)
    pub wide: u64,
    /// Factor of A B, rounded to the type that the kernel keeps its sums in.
    pub alpha: f64,
    /// Factor of C, rounded likewise. With 0 C is not read.
    pub beta: f64,
    /// A's strides, in elements.
    pub a: [u64; 2],
    /// B's strides, in elements.
    pub b: [u64; 2],
    /// C's strides, in elements.
    pub c: [u64; 2],
    /// Elements from one product's A, B and C to the next one's.
    pub batch: [u64; 3],
}

impl Default for Problem {
    /// One product of empty matrices: sizes, strides and factors are 0.
    fn default() -> Self {
        Problem {
            m: 0,
            n: 0,
            k: 0,
            bias: NO_BIAS,
            activation: IDENTITY,
            products: 1,
            wide: 0,
            alpha: 0.0,
            beta: 0.0,
            a: [0; 2],
            b: [0; 2],
            c: [0; 2],
            batch: [0; 3],
        }
    }
}

impl Problem {
    /// `C = A B`, once, of dense row-major matrices.
    pub fn dense(m: u32, n: u32, k: u32) -> Self {
        let row_major = |cols: u32| [cols.into(), 1];
        let (a, b, c) = (row_major(k), row_major(n), row_major(n));
        Problem { m, n, k, alpha: 1.0, a, b, c, ..Problem::default() }
    }
}

/// Matrices that a kernel makes others of.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Matrices {
    /// Rows of each.
    pub rows: u32,
    /// Columns of each; a row's elements lie side by side.
    pub cols: u32,
    /// How many there are.
    pub count: u32,
    /// Patches of all, a block's each.
    pub patches: u32,
    /// Elements from one row to the next.
    pub pitch: u64,
    /// Elements from one matrix to the next.
    pub step: u64,
}

/// Nothing is added.
pub const NO_BIAS: u32 = 0;
/// Element i of the bias is added to row i of C.
pub const ROW_BIAS: u32 = 1;
/// Element j of the bias is added to column j of C.
pub const COL_BIAS: u32 = 2;

/// Elements stay as they are.
pub const IDENTITY: u32 = 0;
/// `max(x, 0)`.
pub const RELU: u32 = 1;
/// `x (1 + erf(x / sqrt(2))) / 2`.
pub const GELU: u32 = 2;

// SAFETY: `#[repr(C)]` numbers, six u32 and twelve words of eight bytes, without padding.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl simt::Record for Problem {}

// SAFETY: `#[repr(C)]` numbers, four u32 and two words of eight bytes, without padding.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl simt::Record for Matrices {}
