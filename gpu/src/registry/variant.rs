//! A product's kernel as a value, and how it is written: its name.
//!
//! ```text
//!   wgmma_bf16_f32_256x256x64_c2_ua8_nn
//!   |     |    |   |          |  |   layout of A and B, as in CBLAS; absent if the kernel takes any
//!   |     |    |   |          |  how A and B are loaded (dot, ldg, ua8), if not in the family's usual way
//!   |     |    |   |          CTAs of a cluster that share a tile, if several; then the number of stages (`_s12`), if
//!   |     |    |   |          another design has the same tile
//!   |     |    |   tile: m x n of C, and the k-steps of a stage
//!   |     |    type of C, if it differs from that of A and B
//!   |     type of A and B, or the scheme that multiplies f32 (tf32, bf16x6, f16x3)
//!   family
//! ```

use std::fmt;

use simt::Constants;
pub use simt::types::Type;

/// A product's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The units and the instructions that multiply.
    pub family: Family,
    /// The type of A and B.
    pub operands: Type,
    /// The type of C and of the bias.
    pub c: Type,
    /// How elements of A and B are multiplied.
    pub scheme: Scheme,
    /// Rows and columns of the tile of C that a CTA computes, or a cluster whose CTAs share a tile;
    /// and the k-steps of a pipeline stage. Lessons do not say the latter: 0.
    pub tile: [u32; 3],
    /// CTAs of a cluster that share a tile.
    pub cluster: u32,
    /// Stages of the pipeline, if designs differ in nothing else.
    pub stages: Option<u32>,
    /// How A and B are loaded.
    pub access: Access,
    /// The layout of A and B, if strides do not say it.
    pub layout: Option<Layout>,
}

/// The units and the instructions that multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// A lesson of the course, on CUDA cores or tensor cores. It has a name of its own.
    Lesson(&'static str),
    /// CUDA cores of any GPU.
    Gemm,
    /// Hopper's CUDA cores. TMA loads the operands.
    Tma,
    /// Tensor cores from Ampere on, by `mma.sync`.
    Mma,
    /// Hopper's tensor cores, by `wgmma`.
    Wgmma,
}

impl Family {
    /// The first word of its kernels' names. A lesson is a family of its own.
    pub fn name(self) -> &'static str {
        match self {
            Family::Lesson(name) => name,
            Family::Gemm => "gemm",
            Family::Tma => "tma",
            Family::Mma => "mma",
            Family::Wgmma => "wgmma",
        }
    }
}

/// How elements are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// As they are. Sums have the type of the elements; those of bf16 and f16 are f32.
    Native,
    /// f32 rounded to tf32.
    Tf32,
    /// f32 split into three slices of bf16: six products in place of one.
    Bf16x6,
    /// f32 split into two scaled slices of f16: three products in place of one.
    F16x3,
}

/// How A and B are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Dense row-major matrices, one product at a time.
    Dense,
    /// By threads, with any strides.
    Strided,
    /// By threads that split k, with any strides.
    Dot,
    /// By threads, with unaligned rows or columns.
    Ldg,
    /// By threads, sixteen bytes at a time. Rows are 16-byte aligned.
    Pieces,
    /// By TMA. Row starts (column starts) are 16-byte aligned.
    Tma,
    /// By TMA, with unaligned rows of A. The number is that of alignment classes; each has its own
    /// tensor map.
    UnalignedA(u32),
}

/// The layout of A and B, as in CBLAS for row-major matrices: N is stored row by row, T column by
/// column. In a K-major operand, elements along k are neighbours in memory: an A row by row, a B
/// column by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// A K-major, B MN-major.
    NN,
    /// Both K-major.
    NT,
    /// Both MN-major.
    TN,
    /// A MN-major, B K-major.
    TT,
}

impl Layout {
    /// All four layouts.
    pub const ALL: [Layout; 4] = [Layout::NN, Layout::NT, Layout::TN, Layout::TT];

    /// Whether A, and B, are K-major.
    pub fn k_major(self) -> [bool; 2] {
        match self {
            Layout::NN => [true, false],
            Layout::NT => [true, true],
            Layout::TN => [false, false],
            Layout::TT => [false, true],
        }
    }
}

/// The words that values are written as.
macro_rules! words {
    ($($ty:ident { $($value:ident = $word:literal),+ })+) => {$(
        impl $ty {
            /// The word in a kernel's name.
            pub fn name(self) -> &'static str {
                match self {
                    $($ty::$value => $word),+
                }
            }
        }

        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    )+};
}

words! {
    Scheme { Native = "native", Tf32 = "tf32", Bf16x6 = "bf16x6", F16x3 = "f16x3" }
    Layout { NN = "nn", NT = "nt", TN = "tn", TT = "tt" }
}

impl Scheme {
    /// Whether elements are split into slices.
    pub fn is_split(self) -> bool {
        matches!(self, Scheme::Bf16x6 | Scheme::F16x3)
    }
}

impl Access {
    /// Alignment classes of A's rows. The rows of a class have the same misalignment.
    pub fn classes(self) -> usize {
        match self {
            Access::UnalignedA(classes) => classes as usize,
            _ => 1,
        }
    }
}

impl Variant {
    /// Whether A, and B, are K-major, if the kernel has a layout.
    pub fn k_major(&self) -> [bool; 2] {
        self.layout.map_or([true, false], Layout::k_major)
    }

    fn written(&self, operands: &str) -> String {
        let family = match self.family {
            Family::Lesson(name) => return name.to_owned(),
            family => family.name(),
        };
        let [m, n, k] = self.tile;
        let types = match self.scheme {
            Scheme::Native if self.operands == self.c => operands.to_owned(),
            Scheme::Native => format!("{operands}_{}", self.c),
            scheme => scheme.to_string(),
        };
        let mut name = format!("{family}_{types}_{m}x{n}x{k}");
        if self.cluster > 1 {
            name += &format!("_c{}", self.cluster);
        }
        if let Some(stages) = self.stages {
            name += &format!("_s{stages}");
        }
        match self.access {
            Access::Dot => name += "_dot",
            Access::Ldg => name += "_ldg",
            Access::UnalignedA(classes) => name += &format!("_ua{classes}"),
            Access::Dense | Access::Strided | Access::Pieces | Access::Tma => {}
        }
        if let Some(layout) = self.layout {
            name += &format!("_{layout}");
        }
        name
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&self.written(self.operands.name()))
    }
}

/// Adds the constants that say whether A, and B, are K-major.
pub(super) fn with_layout(constants: Constants, k_major: [bool; 2]) -> Constants {
    let [a, b] = k_major.map(|is_k_major| u32::from(!is_k_major));
    constants.with("a_mn_major", a).with("b_mn_major", b)
}
