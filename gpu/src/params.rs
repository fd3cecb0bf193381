//! The parameters of a GEMM kernel besides its matrices.

/// `C = activation(alpha A B + beta C + bias)` for a batch of products. A is `m x k`, B is `k x n`,
/// C is `m x n`.
///
/// Element (row, col) of a matrix is at `row * strides[0] + col * strides[1]`. So strides express a
/// transpose, a part of a matrix, and a leading dimension.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GemmParams {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A and rows of B. If `k = 0`, neither is read.
    pub k: u32,
    /// What is added to C: [`NO_BIAS`], [`ROW_BIAS`] or [`COL_BIAS`].
    pub bias: u32,
    /// The activation function: [`IDENTITY`], [`RELU`], [`GELU`], [`GELU_TANH`] or [`SILU`].
    pub activation: u32,
    /// Products of the batch, for persistent CTAs. In other kernels, blocks along z take the
    /// products.
    pub products: u32,
    /// For kernels with two tile widths, the columns of C in wide tiles. They are the first
    /// columns: a multiple of the width, or more than n.
    pub wide_cols: u32,
    /// For kernels whose threads split k, the k-steps of all partial products, of which the last
    /// may have fewer than k; 0 for a batch.
    pub all_k: u32,
    /// Factor of A B, rounded to the type of the sums.
    pub alpha: f64,
    /// Factor of C, rounded likewise. If it is 0, C is not read.
    pub beta: f64,
    /// A's strides, in elements.
    pub a: [u64; 2],
    /// B's strides, in elements.
    pub b: [u64; 2],
    /// C's strides, in elements.
    pub c: [u64; 2],
    /// Elements from the A, B and C of one product to those of the next.
    pub batch: [u64; 3],
}

impl Default for GemmParams {
    /// One product of empty matrices: sizes, strides and factors are 0.
    fn default() -> Self {
        GemmParams {
            m: 0,
            n: 0,
            k: 0,
            bias: NO_BIAS,
            activation: IDENTITY,
            products: 1,
            wide_cols: 0,
            all_k: 0,
            alpha: 0.0,
            beta: 0.0,
            a: [0; 2],
            b: [0; 2],
            c: [0; 2],
            batch: [0; 3],
        }
    }
}

impl GemmParams {
    /// `C = A B`, once, of dense row-major matrices.
    pub fn dense(m: u32, n: u32, k: u32) -> Self {
        let row_major = |cols: u32| [cols.into(), 1];
        let (a, b, c) = (row_major(k), row_major(n), row_major(n));
        GemmParams { m, n, k, alpha: 1.0, a, b, c, ..GemmParams::default() }
    }
}

/// The matrices that a kernel packs, transposes or splits.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MatrixBatch {
    /// Rows of each matrix.
    pub rows: u32,
    /// Columns of each matrix. The elements of a row are contiguous.
    pub cols: u32,
    /// Number of matrices.
    pub count: u32,
    /// Patches of all matrices. Each block takes one.
    pub patches: u32,
    /// Elements from one row to the next.
    pub pitch: u64,
    /// Elements from one matrix to the next.
    pub step: u64,
}

/// Where the scales of A and B are: elements from one to the next.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ScaleStrides {
    /// A's: from a row to the next, and from 128 k-steps to the next.
    pub a: [u64; 2],
    /// B's: from 128 k-steps to the next, and from a column or 128 columns to the next.
    pub b: [u64; 2],
}

/// A matrix that is rounded to 8 bits, and the groups that have a scale each. Pitches and strides
/// are in elements.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct QuantiseParams {
    /// The matrix's rows.
    pub rows: u32,
    /// The matrix's columns.
    pub cols: u32,
    /// Rows of a group: 1 or 128.
    pub down: u32,
    /// Columns of a group: of one row any number, of 128 rows 128.
    pub width: u32,
    /// Groups side by side.
    pub across: u32,
    /// Threads of a group: 8 for at most 128 elements, or 32, 64, .. up to 512. 512 where it has
    /// several rows.
    pub threads: u32,
    /// From one row to the next: where a group has several rows, at most [`MOST_PITCH`].
    pub from_pitch: u64,
    /// From one row of the result to the next.
    pub to_pitch: u64,
    /// From the scale of a group to that of the one below, and to the next.
    pub scales: [u64; 2],
}

/// 32 rows of this many elements are counted by 32 bits.
pub const MOST_PITCH: u64 = (1 << 27) - 1;

/// Sums stay as they are.
pub const NO_SCALES: u32 = 0;
/// A scale for each row of A, and one for each column of B.
pub const ROWS_COLS: u32 = 1;
/// A scale for each 1 x 128 of A, and one for each 128 x 128 of B.
pub const BLOCKS: u32 = 2;

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
/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`.
pub const GELU_TANH: u32 = 3;
/// `x / (1 + exp(-x))`.
pub const SILU: u32 = 4;

// SAFETY: `#[repr(C)]` numbers, eight u32 and eleven words of eight bytes, without padding.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl simt::Record for GemmParams {}

// SAFETY: `#[repr(C)]` numbers, six u32 and four words of eight bytes, without padding.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl simt::Record for QuantiseParams {}

// SAFETY: `#[repr(C)]` numbers, four words of eight bytes.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl simt::Record for ScaleStrides {}

// SAFETY: `#[repr(C)]` numbers, four u32 and two words of eight bytes, without padding.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl simt::Record for MatrixBatch {}
