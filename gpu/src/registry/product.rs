//! What the registry says of a kernel: what it computes, and how it is launched.

use std::fmt;

use simt::{AnyCheckedKernel, AnyKernel, Constants, Declaration, device::BoxShape};

use super::{
    design::{Speed, with_layout},
    variant::{Access, Family, Layout, Scheme, Type, Variant},
};
use crate::problem::Problem;

/// A kernel and what it is for. Only the registry makes them, and nobody can copy one and change it: safe functions launch a kernel
/// because its entry says what it computes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry {
    pub(super) name: &'static str,
    /// In a few words, what sets it apart.
    pub summary: &'static str,
    /// Its place in the course; the rungs come in the order of [`KERNELS`](super::KERNELS).
    pub rung: Option<Rung>,
    /// How fast it is on an H200, where that was measured.
    pub on_gpu: Option<Speed>,
    /// How fast it is on the CPU device, where that was measured.
    pub on_cpu: Option<Speed>,
    /// The kernel.
    pub kernel: &'static dyn AnyKernel,
    /// The same source, compiled for [`simt::check::launch`]; none of a program with parameters of its own.
    pub checked: Option<&'static dyn AnyCheckedKernel>,
    /// What the kernel's constants are, but for those that [a launch's operands](Self::constants_of) decide.
    pub constants: Constants,
    /// The product that it computes; none of another program, whose launch names the kernel.
    pub product: Option<Product>,
    /// What runs it, where it computes no product.
    pub program: Option<Program>,
}

/// What runs a kernel that computes no product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A subcommand of the command.
    Command(&'static str),
    /// An example of crate `host`.
    Example(&'static str),
    /// A product that needs it, by itself.
    Product,
}

impl Program {
    /// What it is called; a product has many names.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Program::Command(name) | Program::Example(name) => Some(name),
            Program::Product => None,
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Program::Command(name) => write!(f, "`cargo run -p host -- {name}` runs it"),
            Program::Example(name) => write!(f, "`cargo run -p host --example {name}` runs it"),
            Program::Product => f.write_str("a product that needs it launches it"),
        }
    }
}

impl Entry {
    /// The kernel's name: on the command line, in the PTX once that is loaded, and in Rust but for what its constants say.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        self.kernel.declaration()
    }

    /// What the kernel's constants are for operands of these strides. A kernel of [any strides](Access::Strided) that has constants for
    /// its layouts takes K-major operands, and MN-major ones, by instructions for them. (The product is the same whatever they say.)
    pub fn constants_of(&self, problem: &Problem) -> Constants {
        // A's, and B's, stride of the outer side and of k; where neither is 1, it is as if k's were.
        let k_major = [problem.a, [problem.b[1], problem.b[0]]]
            .map(|[of_outer, of_k]| of_k == 1 || of_outer != 1);
        match self.has_layouts_of_launch() {
            true => with_layout(self.constants, k_major).named(self.name),
            false => self.constants,
        }
    }

    /// Every value of [`constants_of`](Self::constants_of): the kernels that the driver's compiler is given.
    pub fn specialisations(&self) -> Vec<Constants> {
        match self.has_layouts_of_launch() {
            true => {
                let of = |of: Layout| with_layout(self.constants, of.k_major()).named(self.name);
                Layout::ALL.map(of).into()
            }
            false => vec![self.constants],
        }
    }

    fn has_layouts_of_launch(&self) -> bool {
        let mut constants = self.declaration().constants.iter();
        let is_general = self.product.as_ref().is_some_and(Product::is_general);
        is_general && constants.any(|constant| constant.name == "a_mn_major")
    }

    /// Do A, and B, lie column by column where its product's kernel takes them as they are? Else row by row, as C does.
    pub fn by_columns(&self) -> [bool; 2] {
        self.product.as_ref().map_or([false; 2], Product::by_columns)
    }

    /// What its product's factors are multiplied as.
    pub fn scheme(&self) -> Scheme {
        self.product.as_ref().map_or(Scheme::Native, |product| product.variant.scheme)
    }

    /// Does it round factors of f32 to tf32?
    pub fn is_tf32(&self) -> bool {
        self.scheme() == Scheme::Tf32
    }

    /// Does it split factors of f32 into slices?
    pub fn is_sliced(&self) -> bool {
        self.scheme().is_split()
    }
}

/// A step of the course: a kernel that differs from the rung before by one idea.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rung {
    /// The idea, in a line.
    pub idea: &'static str,
    /// The ratio of computation to memory that follows from it on paper: FLOP for each byte that the threads of
    /// a block read from global memory.
    pub flop_per_byte: f64,
}

/// A product: A is `m x k`, B is `k x n`, C is `m x n`, of any size.
///
/// A lesson's parameters are m, n, k, A, B and C, dense and row-major; another kernel's a [`Problem`](crate::problem::Problem), A
/// and B as it [loads](Access) them, C with any strides and the bias, which may be empty where the problem has none. All go by their
/// names.
///
/// Blocks along x take columns of C, along y rows, along z products of a batch, or in clusters parts of k; but a kernel of
/// [persistent](Self::persistent) blocks has all along x.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Product {
    /// Which product, and how it is computed.
    pub variant: Variant,
    /// Threads of a block.
    pub block: [u32; 3],
    /// The boxes of A and of B.
    pub boxes: [BoxShape; 2],
    /// Blocks of a cluster that may split k, at most.
    pub most_splits: u32,
    /// Does a block go on to further tiles, and from product to product? Then there are as many blocks as the tiles of all products
    /// take, or fewer; where a cluster along z splits k, as many as they take.
    pub persistent: bool,
    /// Columns of the tiles that it has beside those of its variant, where it has [two
    /// widths](crate::kernels::gemm_sliced::widths).
    pub narrow: Option<u32>,
    /// Are there variants of all four layouts, of this tile? Then nothing is transposed for it, nor exchanged unless its tile is narrower
    /// than a stage; a copy has rows at multiples of sixteen bytes, and is else as the operand is.
    pub has_all_layouts: bool,
    /// Does it copy some of B's columns itself, in the background of the product of the others?
    pub packs_tail: bool,
    /// The kernel that splits A and B into slices, where it multiplies these: of a Problem, tensor maps of A's and B's planes, A and B
    /// themselves, what is known of their patches, C, the bias, the stream's [board](crate::kernels::gemm_sliced::board).
    pub split: Option<&'static dyn AnyKernel>,
}

impl Product {
    /// Is it a lesson's, which computes `A B` of dense row-major matrices and nothing else?
    pub fn is_lesson(&self) -> bool {
        matches!(self.variant.family, Family::Lesson(_))
    }

    /// Does it take every product?
    pub fn is_general(&self) -> bool {
        self.variant.access == Access::Strided
    }

    /// Does it need operands that lie in certain ways?
    pub fn is_particular(&self) -> bool {
        !self.is_lesson() && !self.is_general()
    }

    /// Does it read A and B straight from global memory, and compute no more than C has?
    pub fn is_direct(&self) -> bool {
        self.is_general() && self.variant.tile[2] == 1
    }

    /// Does it multiply views of f32 on CUDA cores: a lesson's, or a general one? Its every access can be counted and traced.
    pub fn is_of_f32_views(&self) -> bool {
        let Variant { family, operands, .. } = self.variant;
        matches!(family, Family::Lesson(_) | Family::Gemm) && operands == Type::F32
    }

    /// Rows and columns of a tile.
    pub fn tile(&self) -> [u32; 2] {
        let [rows, cols, _] = self.variant.tile;
        [rows, cols]
    }

    /// Steps of k of a stage: a block of a cluster takes a number of whole ones.
    pub fn steps(&self) -> usize {
        self.variant.tile[2] as usize
    }

    /// Of persistent blocks, how many share a tile.
    pub fn sharing(&self) -> Option<u32> {
        self.persistent.then_some(self.variant.cluster)
    }

    /// Tiles that so many rows of C take, one below the other.
    pub fn tiles_down(&self, rows: usize) -> usize {
        let classes = match self.variant.family {
            // A tile has rows of all classes.
            Family::Tma => 1,
            _ => self.variant.access.classes(),
        };
        rows.min(classes) * rows.div_ceil(classes).div_ceil(self.variant.tile[0] as usize)
    }

    /// Do A, and B, lie column by column where the kernel takes them as they are? Else row by row, as C does.
    pub fn by_columns(&self) -> [bool; 2] {
        match self.variant.layout {
            None => [false; 2],
            Some(layout) => {
                let [a, b] = layout.k_major();
                [!a, b]
            }
        }
    }
}

/// m, n, k, A, B, C as raw pointers: the parameters of a lesson whose one version is run fast and checked.
pub type PointerParams = (u32, u32, u32, *const f32, *const f32, *mut f32);
