//! What the registry says of a kernel: what it computes, and how to launch it.

use std::fmt;

#[cfg(feature = "cpu")]
use simt::AnyCheckedKernel;
use simt::{AnyKernel, Constants, Declaration, Value, device::BoxShape};

use super::{
    speed::{Costs, Speed},
    variant::{Access, Family, Layout, Scheme, Type, Variant, with_layout},
};
use crate::params::{GemmParams, NO_SCALES};

/// The constant for the smooth activation that a kernel is loaded with.
const SMOOTH: &str = "smooth";

/// The constant for the scales of A and B.
const SCALES: &str = "scales";

/// A kernel and what it computes.
///
/// Safe functions launch a kernel because its entry says what it computes. So only the registry
/// makes entries, and nobody can copy one and change it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry {
    pub(super) name: &'static str,
    /// What sets the kernel apart, in a few words.
    pub summary: &'static str,
    /// Its place in the course. Rungs are in the order of [`KERNELS`](super::KERNELS).
    pub rung: Option<Rung>,
    /// Its speed on an H200, if measured.
    pub on_gpu: Option<Speed>,
    /// Its speed on the CPU device, if measured.
    pub on_cpu: Option<Speed>,
    /// The kernel.
    pub kernel: &'static dyn AnyKernel,
    /// The same source, compiled for [`simt::check::launch`]. `None` for a program with parameters
    /// of its own.
    #[cfg(feature = "cpu")]
    pub checked: Option<&'static dyn AnyCheckedKernel>,
    /// The values of the kernel's constants, except those that [the operands of a
    /// launch](Self::constants_of) decide.
    pub constants: Constants,
    /// The product that it computes. `None` for another program, whose launch names the kernel.
    pub product: Option<Product>,
    /// What runs the kernel, if it computes no product.
    pub program: Option<Program>,
}

/// What runs a kernel that computes no product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A subcommand of the command.
    Command(&'static str),
    /// An example of crate `host`.
    Example(&'static str),
    /// A product that needs the kernel.
    Product,
    /// A function of the library.
    Function(&'static str),
}

impl Program {
    /// The name of the subcommand, example or function. Products have many names.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Program::Command(name) | Program::Example(name) | Program::Function(name) => Some(name),
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
            Program::Function(name) => write!(f, "the library's `{name}` launches it"),
        }
    }
}

impl Entry {
    /// The kernel's name: on the command line, and in the PTX once that is loaded. In Rust the name
    /// lacks what the constants say.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The same kernel with another speed, for a fit. It is never freed.
    #[doc(hidden)]
    pub fn with_speed(&self, speed: Speed) -> &'static Self {
        Box::leak(Box::new(Entry { on_gpu: Some(speed), ..*self }))
    }

    /// What the kernel declares about itself.
    pub fn declaration(&self) -> &'static Declaration {
        self.kernel.declaration()
    }

    /// The values of the kernel's constants for operands of these strides.
    ///
    /// A kernel of [any strides](Access::Strided) may have constants for its layouts. They choose
    /// the instructions that read K-major or MN-major operands. The product is right whatever they
    /// say. So it is if a kernel is loaded with another smooth activation than the launch's, but
    /// slower.
    pub fn constants_of(&self, problem: &GemmParams) -> Constants {
        // For A and B, the strides along the outer side and along k. If neither is 1, the operand
        // counts as K-major.
        let k_major = [problem.a, [problem.b[1], problem.b[0]]]
            .map(|[of_outer, of_k]| of_k == 1 || of_outer != 1);
        let constants = match self.has_layouts_of_launch() {
            true => with_layout(self.constants, k_major).named(self.name),
            false => self.constants,
        };
        match self.values_of(SMOOTH).any(|smooth| smooth == problem.activation) {
            true => constants.with(SMOOTH, problem.activation),
            false => constants,
        }
    }

    /// These constants, for scales of that [kind](crate::params::ROWS_COLS).
    pub fn with_scales(&self, constants: Constants, kind: u32) -> Constants {
        if self.has_scales() { constants.with(SCALES, kind) } else { constants }
    }

    /// Whether the kernel multiplies A and B by scales, if it is loaded so.
    pub fn has_scales(&self) -> bool {
        self.values_of(SCALES).next().is_some()
    }

    /// Whether that kind of scales is among them, or it is [none](crate::params::NO_SCALES).
    pub fn takes_scales(&self, kind: u32) -> bool {
        kind == NO_SCALES || self.values_of(SCALES).any(|value| value == kind)
    }

    /// Every value of [`constants_of`](Self::constants_of). These are the specialisations that the
    /// driver compiles.
    pub fn specialisations(&self) -> Vec<Constants> {
        let all = match self.has_layouts_of_launch() {
            true => {
                let of = |of: Layout| with_layout(self.constants, of.k_major()).named(self.name);
                Layout::ALL.map(of).into()
            }
            // A kernel beside products has one name for bf16 and f16.
            false if self.product.is_none() => self.declaration().specialisations(),
            false => vec![self.constants],
        };
        [SMOOTH, SCALES].into_iter().fold(all, |all, name| {
            let with =
                |of: &Constants| self.values_of(name).map(|value| of.with(name, value)).collect();
            match self.values_of(name).next() {
                Some(_) => all.iter().flat_map::<Vec<_>, _>(with).collect(),
                None => all,
            }
        })
    }

    /// The numbers that a constant may have: the smooth activations, or the kinds of scales, with
    /// none of each. None if the kernel has no such constant.
    fn values_of(&self, name: &str) -> impl Iterator<Item = u32> {
        let constants = self.declaration().constants.iter();
        let values =
            constants.filter(move |constant| constant.name == name).flat_map(|of| of.values);
        values.filter_map(|value| match value {
            Value::Number(number) => Some(*number),
            Value::Word(_) => None,
        })
    }

    fn has_layouts_of_launch(&self) -> bool {
        let mut constants = self.declaration().constants.iter();
        let is_general = self.product.as_ref().is_some_and(Product::is_general);
        is_general && constants.any(|constant| constant.name == "a_mn_major")
    }

    /// Whether the kernel takes A, and B, stored column by column. Otherwise it takes them row by
    /// row, like C.
    pub fn by_columns(&self) -> [bool; 2] {
        self.product.as_ref().map_or([false; 2], Product::by_columns)
    }

    /// How the kernel multiplies elements of A and B.
    pub fn scheme(&self) -> Scheme {
        self.product.as_ref().map_or(Scheme::Native, |product| product.variant.scheme)
    }

    /// Whether the kernel rounds f32 to tf32.
    pub fn is_tf32(&self) -> bool {
        self.scheme() == Scheme::Tf32
    }

    /// Whether the kernel splits f32 into slices.
    pub fn is_emulated(&self) -> bool {
        self.scheme().is_split()
    }
}

/// A step of the course: a kernel that differs from the rung before by one idea.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rung {
    /// The idea, in one line.
    pub idea: &'static str,
    /// The arithmetic intensity that follows on paper: FLOP for each byte that the threads of a
    /// block read from global memory.
    pub flop_per_byte: f64,
}

/// A product of any size. A is `m x k`, B is `k x n`, C is `m x n`.
///
/// A lesson takes m, n, k, and row-major A, B and C: dense, or by tensor maps. Another kernel takes
/// [`GemmParams`](crate::params::GemmParams), A and B as it [loads](Access) them, C with any
/// strides, and the bias, which may be empty if there is none. Arguments are bound by the names of
/// the parameters.
///
/// Blocks along x take columns of C, blocks along y rows, blocks along z the products of a batch.
/// In a cluster, blocks along z split k. A [persistent](Self::persistent) kernel has all its blocks
/// along x.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Product {
    /// Which product, and how it is computed.
    pub variant: Variant,
    /// Threads of a block.
    pub block: [u32; 3],
    /// The TMA boxes of A and of B.
    pub boxes: [BoxShape; 2],
    /// The largest number of CTAs of a cluster that may split k.
    pub most_splits: u32,
    /// The TMA boxes of C, if the kernel stores C by TMA. Then the rows of C are 16-byte aligned;
    /// the plan has another C stored in the workspace, and copied.
    pub stores: Option<BoxShape>,
    /// Whether CTAs are persistent: a CTA goes on to further tiles, and from one product of a batch
    /// to the next. Then the grid has one CTA a tile, or fewer. If a cluster along z splits k, the
    /// grid has exactly as many CTAs as the tiles need.
    pub persistent: bool,
    /// Columns of the narrow tiles, if the kernel has [two tile
    /// widths](crate::kernels::emulated::two_widths).
    pub narrow: Option<u32>,
    /// Whether all four layouts have a kernel of this tile. Then operands are never transposed, and
    /// A and B are swapped only if the tile is narrower than a stage. A copy has 16-byte aligned
    /// rows and keeps the layout of the operand.
    pub has_all_layouts: bool,
    /// Whether the kernel packs the tail of B itself, in the background of the product of the other
    /// columns.
    pub packs_tail: bool,
    /// The kernel that splits A and B into slices, if this one multiplies slices. Then the
    /// arguments are [`GemmParams`](crate::params::GemmParams), tensor maps of the planes of A and
    /// B, A and B themselves, what is known of their patches, C, the bias, and the
    /// [counters](crate::kernels::emulated::stream_counters) of the stream.
    pub split: Option<&'static dyn AnyKernel>,
    /// What its operands cost beside its operations.
    pub costs: Costs,
}

impl Product {
    /// Whether this is a lesson: it computes `A B` of dense row-major matrices and nothing else.
    pub fn is_lesson(&self) -> bool {
        matches!(self.variant.family, Family::Lesson(_))
    }

    /// Whether the kernel takes every product, with the bits of one sum along k.
    pub fn is_general(&self) -> bool {
        self.variant.access == Access::Strided
    }

    /// Whether the threads of a block split k. Such a kernel takes every product. Its bits are its
    /// own.
    pub fn is_dot(&self) -> bool {
        self.variant.access == Access::Dot
    }

    /// Whether the kernel requires certain layouts, and is not a lesson.
    pub fn is_tma_or_ldg(&self) -> bool {
        !self.is_lesson() && self.requires_layouts()
    }

    /// Whether the kernel requires certain layouts of its operands, because it loads them by TMA,
    /// by `ldg`, or sixteen bytes at a time. A lesson may load by TMA, too.
    pub fn requires_layouts(&self) -> bool {
        match self.variant.access {
            Access::Dense | Access::Strided | Access::Dot => false,
            Access::Ldg | Access::Pieces | Access::Tma | Access::UnalignedA(_) => true,
        }
    }

    /// Whether the kernel reads A and B straight from global memory and computes no elements
    /// outside C.
    pub fn is_direct(&self) -> bool {
        self.is_general() && self.variant.tile[2] == 1
    }

    /// Whether the kernel multiplies views of f32 on CUDA cores.
    pub fn is_of_f32_views(&self) -> bool {
        let Variant { family, operands, .. } = self.variant;
        matches!(family, Family::Lesson(_) | Family::Gemm) && operands == Type::F32
    }

    /// Whether the profiler can count and trace the kernel: a lesson, or one on CUDA cores of a
    /// type that is computed as it is, f32 or f64.
    pub fn is_counted(&self) -> bool {
        let Variant { family, operands, c, .. } = self.variant;
        let as_it_is = operands == c && operands.sums() == Some(operands.format());
        self.is_lesson() || family == Family::Gemm && as_it_is
    }

    /// Rows and columns of a tile.
    pub fn tile(&self) -> [u32; 2] {
        let [rows, cols, _] = self.variant.tile;
        [rows, cols]
    }

    /// K-steps of a pipeline stage. A CTA that splits k takes whole stages.
    pub fn steps(&self) -> usize {
        self.variant.tile[2] as usize
    }

    /// If CTAs are persistent, the number of CTAs that share a tile.
    pub fn sharing(&self) -> Option<u32> {
        self.persistent.then_some(self.variant.cluster)
    }

    /// Tiles down a C of `rows` rows.
    pub fn tiles_down(&self, rows: usize) -> usize {
        let classes = match self.variant.family {
            // A tile has rows of all classes.
            Family::Tma => 1,
            _ => self.variant.access.classes(),
        };
        rows.min(classes) * rows.div_ceil(classes).div_ceil(self.variant.tile[0] as usize)
    }

    /// Whether the kernel takes A, and B, stored column by column. Otherwise it takes them row by
    /// row, like C.
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

/// The parameters of a lesson that takes raw pointers: m, n, k, A, B, C. One version of it serves
/// the fast and the checked launch.
pub type PointerParams = (u32, u32, u32, *const f32, *const f32, *mut f32);
