//! A product to be tried, as plain data: all that was drawn, apart from the numbers in the
//! matrices.

use std::fmt;

use gpu::registry::{Entry, Type};
use gpu_gemm::{Activation, Compute, gemm::Target, simt::types::NumberFormat};
use tests::gemm::{Place, Side};

/// The types of A and B, and of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(pub Type, pub Type);

impl Types {
    /// f32.
    pub const F32: Types = Types(Type::F32, Type::F32);
    /// f64.
    pub const F64: Types = Types(Type::F64, Type::F64);

    /// All of floating-point numbers of 16 bits and more that the library multiplies.
    pub fn all() -> Vec<Types> {
        let floats = Type::products().filter(|(operands, _)| operands.format().is_wide_float());
        floats.map(|(operands, c)| Types(operands, c)).collect()
    }

    /// The type of A and B, and that of C.
    pub fn of(self) -> [Type; 2] {
        [self.0, self.1]
    }

    /// Those of a kernel.
    pub fn of_entry(entry: &Entry) -> Option<Self> {
        let variant = entry.product.as_ref()?.variant;
        Some(Types(variant.operands, variant.c))
    }

    /// The largest integer up to which all are numbers of A's type, or of tf32 for f32.
    pub fn largest(self) -> u64 {
        1 << match self.0.bytes() {
            8 => 20,
            _ => self.0.format().digits().min(NumberFormat::TF32.digits()),
        }
    }

    /// A sum of products below this is exact in any order, times 3 or a quarter and with some more,
    /// in the type of the sums.
    pub fn largest_sum(self) -> u64 {
        if self == Types::F64 { 1 << 46 } else { 1 << 20 }
    }
}

/// Which kernel multiplies.
#[derive(Clone, Copy)]
pub enum Kernel {
    /// The one that the library chooses for the device.
    Chosen,
    /// The one that it would choose on that GPU, split as there, on any device.
    AsOn(Target),
    /// This one.
    Named(&'static Entry),
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Kernel::Chosen => f.write_str("Chosen"),
            Kernel::AsOn(target) => write!(f, "AsOn{:?}", target.capability),
            Kernel::Named(entry) => f.write_str(entry.name()),
        }
    }
}

/// How the product is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// `Gemm::run`.
    Run,
    /// `Gemm::launch`.
    Launch,
    /// `Gemm::launch_batch`.
    Batch,
    /// `Gemm::launch_array`, of matrices at equal distances. C is foreign memory.
    Array,
    /// `Gemm::run_slices`.
    Slices,
    /// The same, of arrays of ndarray.
    Arrays,
    /// `Gemm::plan_on`, and a launch of that plan.
    Planned,
}

impl Way {
    /// All.
    pub const ALL: [Way; 7] =
        [Way::Run, Way::Launch, Way::Batch, Way::Array, Way::Slices, Way::Arrays, Way::Planned];
}

/// Which matrix is split into slices before, for an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The operand.
    Itself,
    /// Its transpose.
    Transposed,
    /// Its first rows, all but one.
    Part,
}

/// A mistake in the request, which must be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A bias with one element too few, or with one too many where there is none.
    Bias,
    /// B has one product less than A.
    Count,
    /// B has one row less than A has columns.
    Size,
    /// C begins at A's first element.
    Shares,
    /// C begins at A's last element.
    SharesLast,
    /// 0 or 9 blocks split k.
    Splits,
    /// 0 or 4097 partial products.
    Partials,
    /// The plan is one for another n.
    PlannedSize,
    /// The plan is one for another distance of A's rows.
    PlannedStrides,
}

/// `C = activation(alpha A B + beta C + bias)`, and how it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// The types.
    pub types: Types,
    /// m, n, k.
    pub size: [usize; 3],
    /// The places of A, B and C. All have one count.
    pub places: [Place; 3],
    /// Whether the rows, and the columns, of A, B and C run backwards: arrays alone.
    pub inverted: [[bool; 2]; 3],
    /// B is in A's memory, and has its first element.
    pub shared: bool,
    /// The factor of A B.
    pub alpha: f64,
    /// The factor of C.
    pub beta: f64,
    /// The side that has a bias.
    pub bias: Option<Side>,
    /// The activation.
    pub activation: Activation,
    /// The largest integer in A, B, C and the bias.
    pub largest: u64,
    /// The arithmetic that is allowed.
    pub compute: Compute,
    /// The kernel.
    pub kernel: Kernel,
    /// Blocks of a cluster that split k.
    pub split_k: Option<u32>,
    /// Partial products.
    pub partials: Option<u32>,
    /// The limit of the workspace.
    pub workspace_limit: Option<u64>,
    /// What is split into slices before: for A, for B.
    pub prepared: [Option<Form>; 2],
    /// How it is asked for.
    pub way: Way,
    /// Whether `Stream::prepare` comes before the launch.
    pub prepares: bool,
    /// Whether other numbers follow in the same memory.
    pub again: bool,
    /// The mistake.
    pub wrong: Option<Wrong>,
    /// The seed of all numbers.
    pub numbers: u64,
}

impl Product {
    /// The sizes of A, B and C.
    pub fn sizes(&self) -> [(usize, usize); 3] {
        let [m, n, k] = self.size;
        [(m, k), (k, n), (m, n)]
    }

    /// Products of the batch.
    pub fn count(&self) -> usize {
        self.places[2].count.unwrap_or(1)
    }

    /// Whether A and B are read.
    pub fn multiplies(&self) -> bool {
        self.size[2] > 0 && self.alpha != 0.0
    }

    /// Whether it is A B alone.
    pub fn is_plain(&self) -> bool {
        let is_bare = self.bias.is_none() && self.activation == Activation::Identity;
        self.alpha == 1.0 && self.beta == 0.0 && is_bare
    }

    /// The kernel that is named.
    pub fn named(&self) -> Option<&'static Entry> {
        match self.kernel {
            Kernel::Named(entry) => Some(entry),
            _ => None,
        }
    }
}

/// Elements from the first of the first matrix to the last of the last, with both.
pub fn extent(place: &Place, size: (usize, usize)) -> usize {
    match (place.count.unwrap_or(1), place.extent(size)) {
        (0, _) | (_, 0) => 0,
        (count, one) => (count - 1) * place.step + one,
    }
}

/// Calls `with` for each element: its number, product by product and row by row, and its distance
/// from the first.
pub fn each(place: &Place, (rows, cols): (usize, usize), mut with: impl FnMut(usize, usize)) {
    let [between_rows, between_cols] = place.strides;
    let mut number = 0;
    for i in 0..place.count.unwrap_or(1) {
        for row in 0..rows {
            let start = i * place.step + row * between_rows;
            for col in 0..cols {
                with(number, start + col * between_cols);
                number += 1;
            }
        }
    }
}
