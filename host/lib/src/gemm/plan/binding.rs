//! A launch of a kernel as data: what each of its parameters is bound to. That is a value, or a
//! part of one of the memories that a plan knows.

use std::ops::Range;

use gpu::{
    params::{GemmParams, MatrixBatch, ScaleStrides},
    registry::Entry,
};
use simt::{AnyKernel, LaunchConfig, device::BoxShape};

/// A launch of a kernel, and what each of its parameters is bound to.
#[derive(Debug)]
pub(in crate::gemm) struct Launched {
    pub(in crate::gemm) kernel: &'static dyn AnyKernel,
    pub(in crate::gemm) config: LaunchConfig,
    pub(in crate::gemm) purpose: Purpose,
    pub(in crate::gemm) arguments: Vec<Argument>,
}

/// What a launch is for.
#[derive(Debug)]
pub(in crate::gemm) enum Purpose {
    Prepare,
    Multiply {
        entry: &'static Entry,
        /// The first row of C, and rows of C.
        first_row: usize,
        rows: u32,
        /// Elements from one row of A, B and C to the next, by which a finding names an element.
        pitches: [usize; 3],
    },
    Reduce,
}

/// A parameter's name, and what it is bound to.
#[derive(Debug)]
pub(in crate::gemm) struct Argument {
    pub(in crate::gemm) parameter: &'static str,
    pub(in crate::gemm) binding: Binding,
    /// The kernel need not access all elements. The checker says nothing of those that it leaves.
    pub(in crate::gemm) is_sparse: bool,
}

impl Argument {
    pub(super) fn new(parameter: &'static str, binding: Binding) -> Self {
        Argument { parameter, binding, is_sparse: false }
    }

    pub(super) fn sparse(parameter: &'static str, binding: Binding) -> Self {
        Argument { parameter, binding, is_sparse: true }
    }
}

/// What a parameter is bound to. No two bindings of one launch have an element in common that the
/// kernel writes, but for the columns of B that it packs in the background: it waits for these
/// before it reads them.
#[derive(Debug)]
pub(in crate::gemm) enum Binding {
    U32(u32),
    U64(u64),
    Problem(GemmParams),
    Matrix(MatrixBatch),
    Scales(ScaleStrides),
    /// Elements that the kernel reads.
    Read(Input, Part),
    /// Elements that it writes.
    Write(Target, Part),
    /// Tensor maps of what it reads: one, or one for each alignment class.
    Maps(Vec<Map>),
    /// The tensor map through which it stores C.
    Stores(Target, Part, Stored),
}

/// A memory that a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gemm) enum Input {
    /// The kernel's A (0), or its B (1).
    Operand(usize),
    Bias,
    /// The scales of the kernel's A (0), or of its B (1).
    Scales(usize),
    Workspace,
    Partials,
    /// The planes of an operand's slices, made before: those of a
    /// [`PreparedMatrix`](crate::PreparedMatrix).
    Planes(usize),
    /// The ranges of their values.
    Ranges(usize),
}

/// A memory that a kernel writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gemm) enum Target {
    C,
    Workspace,
    Partials,
    /// Words that are zero before the launch and after it.
    Zeros,
    /// The stream's counters.
    Counters,
}

/// A part of a memory: elements from `start` on. `len`: all to the end where it is `None`.
#[derive(Clone, Copy, Debug)]
pub(in crate::gemm) struct Part {
    pub(in crate::gemm) start: usize,
    pub(in crate::gemm) len: Option<usize>,
}

impl Part {
    /// All elements.
    pub(in crate::gemm) const ALL: Part = Part::from(0);
    /// None.
    pub(in crate::gemm) const NOTHING: Part = Part { start: 0, len: Some(0) };

    /// From an element to the end.
    pub(in crate::gemm) const fn from(start: usize) -> Self {
        Part { start, len: None }
    }

    pub(in crate::gemm) fn of(range: &Range<usize>) -> Self {
        Part { start: range.start, len: Some(range.len()) }
    }
}

/// A matrix that is stored through boxes: rows and columns, from one row to the next, and the
/// boxes.
#[derive(Clone, Copy, Debug)]
pub(in crate::gemm) struct Stored {
    pub(in crate::gemm) size: [usize; 2],
    pub(in crate::gemm) pitch: usize,
    pub(in crate::gemm) shape: BoxShape,
}

/// A tensor map: matrices, rows and columns from `start` on.
#[derive(Debug)]
pub(in crate::gemm) struct Map {
    pub(in crate::gemm) from: Input,
    pub(in crate::gemm) start: usize,
    pub(in crate::gemm) extents: [usize; 3],
    pub(in crate::gemm) strides: [usize; 2],
    pub(in crate::gemm) shape: BoxShape,
    /// Columns before the operand's own: each row starts that many elements after a multiple of
    /// sixteen bytes. Nobody's value depends on what is there.
    pub(in crate::gemm) skipped: usize,
    /// Rows of the operand, elements of a row, and from one row to the next. Nobody reads the
    /// padding.
    pub(in crate::gemm) rows: [usize; 3],
}

impl Map {
    /// Elements between the rows, and the place of the first of them.
    pub(in crate::gemm) fn padding(&self) -> (usize, usize) {
        let [rows, len, pitch] = self.rows;
        (rows.saturating_sub(1) * pitch.saturating_sub(len), len)
    }
}
