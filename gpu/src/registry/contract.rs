//! What the registry says of a kernel: what it computes, and how it is launched.

use simt::{
    Bf16, Constants, Declaration, F16, Kernel, Taken, Tf32,
    checked::{
        In as CheckedIn, Out as CheckedOut, TensorMap as CheckedTensorMap,
        TensorMaps as CheckedTensorMaps,
    },
    device::{BoxShape, In, Out, TensorMap, TensorMaps},
};

use super::design::Speed;
use crate::{
    kernels::{gemm_wgmma, gemm_wgmma_tf32},
    problem::{Matrices, Problem},
};

/// A kernel and what it is for. Only the registry makes them, so that whoever runs one knows that it keeps its
/// contract.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry {
    /// In a few words, what sets it apart.
    pub summary: &'static str,
    /// Its place in the course; the rungs come in the order of [`KERNELS`](super::KERNELS).
    pub rung: Option<Rung>,
    /// How fast it is on an H200, where that was measured.
    pub on_gpu: Option<Speed>,
    /// How fast it is on the CPU device, where that was measured.
    pub on_cpu: Option<Speed>,
    /// What it computes, and how it is launched.
    pub contract: Contract,
}

impl Entry {
    /// The kernel's name: on the command line, in the PTX once that is loaded, and in Rust but for what its constants say.
    pub fn name(&self) -> &'static str {
        self.constants().variant().unwrap_or(self.declaration().name)
    }

    /// What its kernel's constants are.
    pub fn constants(&self) -> Constants {
        match &self.contract {
            Contract::ProductBf16(product) => product.constants,
            Contract::ProductBf16F32(product) => product.constants,
            Contract::ProductF16(product) => product.constants,
            Contract::ProductF16F32(product) => product.constants,
            Contract::TensorProduct(product) => product.constants,
            Contract::TensorProductBf16(product) => product.constants,
            Contract::TensorProductBf16F32(product) => product.constants,
            Contract::TensorProductF16(product) => product.constants,
            Contract::TensorProductF16F32(product) => product.constants,
            _ => Constants::NONE,
        }
    }

    /// Does it round factors of f32 to tf32?
    pub fn is_tf32(&self) -> bool {
        match &self.contract {
            Contract::ProductTf32(_) => true,
            Contract::TensorProduct(product) => product.kernel.is_tf32(),
            _ => false,
        }
    }

    /// Does it cut factors of f32 into slices?
    pub fn is_sliced(&self) -> bool {
        matches!(&self.contract, Contract::TensorProduct(product) if product.kernel.is_sliced())
    }

    /// Is it a product of scaled slices of f16?
    pub fn is_f16x3(&self) -> bool {
        matches!(&self.contract, Contract::TensorProduct(product) if product.kernel.is_f16x3())
    }

    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        self.contract.declaration()
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

/// What a kernel computes. Further kinds will join.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Contract {
    /// A product of f32.
    Product(Product),
    /// A product of f64.
    ProductF64(GeneralProduct<f64>),
    /// A product of bf16, with sums of f32 and C of bf16.
    ProductBf16(GeneralProduct<Bf16>),
    /// A product of bf16, with sums and C of f32.
    ProductBf16F32(GeneralProduct<Bf16, f32>),
    /// A product of f16, with sums of f32 and C of f16.
    ProductF16(GeneralProduct<F16>),
    /// A product of f16, with sums and C of f32.
    ProductF16F32(GeneralProduct<F16, f32>),
    /// A product of f32 that is rounded to tf32, with sums of f32.
    ProductTf32(GeneralProduct<f32>),
    /// A product of f32 of matrices that the tensor memory accelerator can copy.
    TensorProduct(TensorProduct<f32>),
    /// The same of bf16, on tensor cores, with sums of f32 and C of bf16.
    TensorProductBf16(TensorProduct<Bf16>),
    /// The same with C of f32.
    TensorProductBf16F32(TensorProduct<Bf16, f32>),
    /// That of f16, with C of f16.
    TensorProductF16(TensorProduct<F16>),
    /// The same with C of f32.
    TensorProductF16F32(TensorProduct<F16, f32>),
    /// Something else, with parameters of its own: whoever launches it names the kernel.
    Program(Program),
}

impl Contract {
    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        match self {
            Contract::Product(product) => product.declaration(),
            Contract::ProductF64(product) => &product.kernel.kernel.declaration,
            Contract::ProductBf16(product) => &product.kernel.kernel.declaration,
            Contract::ProductBf16F32(product) => &product.kernel.kernel.declaration,
            Contract::ProductF16(product) => &product.kernel.kernel.declaration,
            Contract::ProductF16F32(product) => &product.kernel.kernel.declaration,
            Contract::ProductTf32(product) => &product.kernel.kernel.declaration,
            Contract::TensorProduct(product) => product.kernel.declaration(),
            Contract::TensorProductBf16(product) => product.kernel.declaration(),
            Contract::TensorProductBf16F32(product) => product.kernel.declaration(),
            Contract::TensorProductF16(product) => product.kernel.declaration(),
            Contract::TensorProductF16F32(product) => product.kernel.declaration(),
            Contract::Program(program) => program.declaration,
        }
    }

    /// Do A, and B, lie column by column where this kernel takes them as they are? Else row by row, as C does.
    pub fn by_columns(&self) -> [bool; 2] {
        let [a, b] = match self {
            Contract::TensorProduct(product) => product.along_k,
            Contract::TensorProductBf16(product) => product.along_k,
            Contract::TensorProductBf16F32(product) => product.along_k,
            Contract::TensorProductF16(product) => product.along_k,
            Contract::TensorProductF16F32(product) => product.along_k,
            _ => return [false; 2],
        };
        [!a, b]
    }
}

/// A kernel that is no product.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Program {
    /// What it says of itself.
    pub declaration: &'static Declaration,
}

/// `C = A B` of dense row-major matrices: A is `m x k`, B is `k x n`, C is `m x n`, any size.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Product {
    /// Threads of a block.
    pub block: [u32; 3],
    /// Rows and columns of C that a block computes. Blocks along x take columns, along y rows.
    pub tile: [u32; 2],
    /// The kernel.
    pub kernel: ProductKernel,
}

/// A product's kernel: its parameters are m, n, k, A, B, C.
#[derive(Clone, Copy, Debug)]
pub enum ProductKernel {
    /// Matrices as views.
    Views {
        /// The kernel.
        kernel: &'static Kernel<ViewParams>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedParams>,
    },
    /// Matrices as raw pointers. One version is run fast and checked.
    Pointers(&'static Kernel<PointerParams>),
    /// A general product, of which `C = A B` is a case.
    Gemm(GemmKernel<f32>),
}

/// A general product of A and B of `T`, with C and the bias of `O`: its kernel is told as much as one of f32.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GeneralProduct<T: Taken, O: Taken = T> {
    /// Threads of a block.
    pub block: [u32; 3],
    /// Rows and columns of C that a block computes.
    pub tile: [u32; 2],
    /// What the kernel's constants are.
    pub constants: Constants,
    /// The kernel.
    pub kernel: GemmKernel<T::As, O::As>,
}

/// The kernel of a general product: its parameters are a [`Problem`], A and B of `T`, C and the bias of `O`.
///
/// Blocks along x take columns of C, along y rows, along z products of a batch. The bias may be empty where the
/// problem has none.
#[derive(Clone, Copy, Debug)]
pub struct GemmKernel<T: 'static, O: 'static = T> {
    /// The kernel.
    pub kernel: &'static Kernel<GemmParams<T, O>>,
    /// The same source, compiled for [`simt::check::launch`].
    pub checked: &'static Kernel<CheckedGemmParams<T, O>>,
}

/// Problem, A, B, C, bias.
pub type GemmParams<T, O = T> = (Problem, In<T>, In<T>, Out<O>, In<O>);
/// Problem, A, B, C, bias as views that report every access.
pub type CheckedGemmParams<T, O = T> =
    (Problem, CheckedIn<T>, CheckedIn<T>, CheckedOut<O>, CheckedIn<O>);

/// A general product of A and B of `T`, with C and the bias of `O`, whose operands the tensor memory accelerator copies: their
/// elements lie side by side along one side, and rows (or columns) and matrices begin at multiples of sixteen bytes. C's
/// strides are any.
///
/// Blocks are as those of a [`GemmKernel`]; but several of them along z may be a cluster, which splits k; or a block goes
/// on to [further tiles](Self::walkers).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TensorProduct<T: Taken, O: Taken = T> {
    /// Rows and columns of C that a block computes.
    pub tile: [u32; 2],
    /// Steps of k in a stage: a block of a cluster takes a number of whole ones.
    pub steps: u32,
    /// Blocks of a cluster that may split k, at most.
    pub most_splits: u32,
    /// The boxes of A.
    pub a: BoxShape,
    /// The boxes of B.
    pub b: BoxShape,
    /// Do A, and B, lie along k? A lies along m otherwise, B along n.
    pub along_k: [bool; 2],
    /// Are there kernels like it for the other three ways in which A and B may lie? Then nothing is turned over for it, nor
    /// exchanged unless its tile is narrower than a stage; a copy has rows at multiples of sixteen bytes, and is else as the
    /// operand is.
    pub is_one_of_four: bool,
    /// Where a block goes on to further tiles, and from product to product: how many blocks, which are a cluster, share a
    /// tile. Then all blocks are along x, as many as the tiles of all products take or fewer; where a cluster along z splits
    /// k, as many as they take.
    pub walkers: Option<u32>,
    /// Columns of the tiles that it has beside those of [`tile`](Self::tile), where it has [two
    /// widths](crate::kernels::gemm_sliced::widths).
    pub narrow: Option<u32>,
    /// What the kernel's constants are.
    pub constants: Constants,
    /// The kernel.
    pub kernel: TensorKernel<T::As, O::As>,
}

/// The kernel of a product by tensor copies.
#[derive(Clone, Copy, Debug)]
pub enum TensorKernel<T: 'static, O: 'static = T> {
    /// It takes a map of A and one of B.
    Boxes {
        /// The kernel.
        kernel: &'static Kernel<TensorParams<T, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedTensorParams<T, O>>,
    },
    /// A's rows begin anywhere, the first at a multiple of sixteen bytes: there are maps of every fourth row of A, which
    /// begin at the multiple before.
    ShiftedA {
        /// The kernel.
        kernel: &'static Kernel<ShiftedParams<T, O, 4>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedShiftedParams<T, O, 4>>,
    },
    /// The same of elements of two bytes: there are maps of every eighth row of A, and a tile's rows are all of one of them.
    ClassesOfA {
        /// The kernel.
        kernel: &'static Kernel<ClassesParams<T, O, { gemm_wgmma::CLASSES }>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedClassesParams<T, O, { gemm_wgmma::CLASSES }>>,
    },
    /// The same with maps of every sixteenth row of A, which begin at the multiple of 32 bytes before (from A's first element on).
    SectorClassesOfA {
        /// The kernel.
        kernel: &'static Kernel<ClassesParams<T, O, { gemm_wgmma::SECTOR_CLASSES }>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedClassesParams<T, O, { gemm_wgmma::SECTOR_CLASSES }>>,
    },
    /// It takes maps as [`Boxes`](TensorKernel::Boxes), of f32 that are rounded to tf32 as they are copied: `T` is f32. It
    /// takes any of its operands turned over, too.
    Tf32 {
        /// The kernel.
        kernel: &'static Kernel<TensorParams<Tf32, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedTensorParams<Tf32, O>>,
    },
    /// The same of A's rows that begin anywhere: there are maps of every eighth row of A, which begin at the multiple of 32 bytes
    /// before (from A's first element on), and a tile's rows are all of one of them.
    Tf32ClassesOfA {
        /// The kernel.
        kernel: &'static Kernel<ShiftedParams<Tf32, O, { gemm_wgmma_tf32::CLASSES }>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedShiftedParams<Tf32, O, { gemm_wgmma_tf32::CLASSES }>>,
    },
    /// Its warps gather A and B themselves, whose rows begin anywhere: it takes views, as a [`GemmKernel`]. Of its boxes
    /// there are none.
    Gathered {
        /// The kernel.
        kernel: &'static Kernel<GemmParams<T, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedGemmParams<T, O>>,
    },
    /// It takes maps of planes, slices of A and B that another kernel has made before, as matrices
    /// [`SLICES`](crate::kernels::gemm_sliced::SLICES) times as many; and A and B themselves.
    Sliced {
        /// The kernel that makes the slices.
        cut: &'static Kernel<CutParams<T>>,
        /// The kernel.
        kernel: &'static Kernel<SlicedParams<T, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedSlicedParams<T, O>>,
    },
    /// The same of scaled slices of f16, [`SLICES`](crate::kernels::gemm_sliced::halves::SLICES) of a number.
    SlicedF16 {
        /// The kernel that makes the slices.
        cut: &'static Kernel<CutParams<T, F16>>,
        /// The kernel.
        kernel: &'static Kernel<SlicedParams<T, O, F16>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedSlicedParams<T, O, F16>>,
    },
}

impl<T: Taken, O: Taken> TensorProduct<T, O> {
    /// The kernel's name, as [`Entry::name`].
    pub fn name(&self) -> &'static str {
        self.constants.variant().unwrap_or(self.kernel.declaration().name)
    }

    /// Tiles that so many rows of C take, one below the other.
    pub fn tiles_down(&self, rows: usize) -> usize {
        let classes = match self.kernel {
            // A tile has rows of all classes.
            TensorKernel::ShiftedA { .. } => 1,
            _ => self.kernel.classes(),
        };
        rows.min(classes) * rows.div_ceil(classes).div_ceil(self.tile[0] as usize)
    }
}

impl<T, O> TensorKernel<T, O> {
    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        match self {
            TensorKernel::Boxes { kernel, .. } => &kernel.declaration,
            TensorKernel::ShiftedA { kernel, .. } => &kernel.declaration,
            TensorKernel::Tf32 { kernel, .. } => &kernel.declaration,
            TensorKernel::Gathered { kernel, .. } => &kernel.declaration,
            TensorKernel::Sliced { kernel, .. } => &kernel.declaration,
            TensorKernel::SlicedF16 { kernel, .. } => &kernel.declaration,
            TensorKernel::ClassesOfA { kernel, .. } => &kernel.declaration,
            TensorKernel::SectorClassesOfA { kernel, .. } => &kernel.declaration,
            TensorKernel::Tf32ClassesOfA { kernel, .. } => &kernel.declaration,
        }
    }

    /// May rows of A and B begin anywhere?
    pub fn gathers(&self) -> bool {
        matches!(self, TensorKernel::Gathered { .. })
    }

    /// Classes of A's rows, each of which begins another number of elements behind a multiple: up to one less than there are classes.
    pub fn classes(&self) -> usize {
        match self {
            TensorKernel::ShiftedA { .. } => 4,
            TensorKernel::ClassesOfA { .. } => gemm_wgmma::CLASSES,
            TensorKernel::SectorClassesOfA { .. } => gemm_wgmma::SECTOR_CLASSES,
            TensorKernel::Tf32ClassesOfA { .. } => gemm_wgmma_tf32::CLASSES,
            _ => 1,
        }
    }

    /// May A's rows begin anywhere?
    pub fn shifts_a(&self) -> bool {
        self.classes() > 1
    }

    /// Does it copy some of B's columns itself, beside the product of the others?
    pub fn copies_beside(&self) -> bool {
        matches!(self, TensorKernel::ClassesOfA { .. } | TensorKernel::SectorClassesOfA { .. })
    }

    /// Are operands rounded to tf32?
    pub fn is_tf32(&self) -> bool {
        matches!(self, TensorKernel::Tf32 { .. } | TensorKernel::Tf32ClassesOfA { .. })
    }

    /// Are operands cut into slices?
    pub fn is_sliced(&self) -> bool {
        matches!(self, TensorKernel::Sliced { .. } | TensorKernel::SlicedF16 { .. })
    }

    /// Are these scaled slices of f16?
    pub fn is_f16x3(&self) -> bool {
        matches!(self, TensorKernel::SlicedF16 { .. })
    }
}

/// Problem, A, B, C, bias.
pub type TensorParams<T, O = T> = (Problem, TensorMap<T>, TensorMap<T>, Out<O>, In<O>);
/// Problem, A, B, C, bias as views that report every access.
pub type CheckedTensorParams<T, O = T> =
    (Problem, CheckedTensorMap<T>, CheckedTensorMap<T>, CheckedOut<O>, CheckedIn<O>);
/// Problem, A's classes of rows, B, C, bias.
pub type ShiftedParams<T, O, const CLASSES: usize> =
    (Problem, TensorMaps<T, CLASSES>, TensorMap<T>, Out<O>, In<O>);
/// Problem, A's classes of rows, B, C, bias as views that report every access.
pub type CheckedShiftedParams<T, O, const CLASSES: usize> =
    (Problem, CheckedTensorMaps<T, CLASSES>, CheckedTensorMap<T>, CheckedOut<O>, CheckedIn<O>);
/// Problem, A's classes of rows, B, what is copied beside, from where and to where, words to count it by, C, bias.
pub type ClassesParams<T, O, const CLASSES: usize> = (
    Problem,
    TensorMaps<T, CLASSES>,
    TensorMap<T>,
    Matrices,
    In<T>,
    Out<T>,
    Out<u32>,
    Out<O>,
    In<O>,
);
/// The same as views that report every access.
pub type CheckedClassesParams<T, O, const CLASSES: usize> = (
    Problem,
    CheckedTensorMaps<T, CLASSES>,
    CheckedTensorMap<T>,
    Matrices,
    CheckedIn<T>,
    CheckedOut<T>,
    CheckedOut<u32>,
    CheckedOut<O>,
    CheckedIn<O>,
);
/// What is cut: of A and of B; A, B; and made of it: planes of A and of B, ranges of A and of B.
pub type CutParams<T, S = Bf16> =
    (Matrices, Matrices, In<T>, In<T>, Out<S>, Out<S>, Out<S>, Out<S>);
/// Problem, planes of A and of B, A, B, the ranges of A and of B, C, bias, the stream's
/// [board](crate::kernels::gemm_sliced::board).
pub type SlicedParams<T, O = T, S = Bf16> =
    (Problem, TensorMap<S>, TensorMap<S>, In<T>, In<T>, In<S>, In<S>, Out<O>, In<O>, Out<u32>);
/// Problem, planes of A and of B, A, B, the ranges of A and of B, C, bias, the stream's board as views that report every access.
pub type CheckedSlicedParams<T, O = T, S = Bf16> = (
    Problem,
    CheckedTensorMap<S>,
    CheckedTensorMap<S>,
    CheckedIn<T>,
    CheckedIn<T>,
    CheckedIn<S>,
    CheckedIn<S>,
    CheckedOut<O>,
    CheckedIn<O>,
    CheckedOut<u32>,
);

/// m, n, k, A, B, C with the matrices as views.
pub type ViewParams = (u32, u32, u32, In<f32>, In<f32>, Out<f32>);
/// m, n, k, A, B, C with the matrices as views that report every access.
pub type CheckedParams = (u32, u32, u32, CheckedIn<f32>, CheckedIn<f32>, CheckedOut<f32>);
/// m, n, k, A, B, C with the matrices as raw pointers.
pub type PointerParams = (u32, u32, u32, *const f32, *const f32, *mut f32);

impl Product {
    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        match self.kernel {
            ProductKernel::Views { kernel, .. } => &kernel.declaration,
            ProductKernel::Pointers(kernel) => &kernel.declaration,
            ProductKernel::Gemm(gemm) => &gemm.kernel.declaration,
        }
    }
}
