//! Designs: the kernels' sources, and the variants that each is loaded as.

#[cfg(feature = "cpu")]
use simt::AnyCheckedKernel;
use simt::{AnyKernel, Constants, Declaration, device::BoxShape};

use super::{
    lesson::Lesson,
    product::{Entry, Product, Program, Rung},
    row::Row,
    speed::{Costs, Speed},
    variant::{Access, Family, Scheme, Variant},
};
use crate::{
    collective::{fragment::SLAB, tma::SPAN, wgmma_shape},
    kernels::{
        emulated::{split_bf16x3::split_bf16x3, split_f16x2::split_f16x2},
        mma, wgmma_tf32,
    },
};

/// A kernel's source. Each of its variants is an [`Entry`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Design {
    /// The kernel.
    pub(super) kernel: &'static dyn AnyKernel,
    /// The same source, compiled for a checked launch.
    #[cfg(feature = "cpu")]
    pub(super) checked: Option<&'static dyn AnyCheckedKernel>,
    /// What the kernel computes.
    pub(super) of: Of,
    /// Its place in the course.
    pub(super) rung: Option<Rung>,
    /// Its speed on an H200. `None` if nobody has measured it.
    pub(super) on_gpu: Option<Speed>,
    /// Its speed on the CPU device.
    pub(super) on_cpu: Option<Speed>,
}

/// What a kernel computes.
#[derive(Debug)]
pub(super) enum Of {
    /// A lesson's product, and what sets the lesson apart.
    Lesson(Lesson, &'static str),
    /// A product.
    Product(Row),
    /// Something else: what runs the kernel, and what it does.
    Program(Program, &'static str),
}

impl Design {
    /// The same as a rung of the course: its idea, and FLOP for each byte of global memory.
    pub(super) const fn rung(self, idea: &'static str, flop_per_byte: f64) -> Self {
        Design { rung: Some(Rung { idea, flop_per_byte }), ..self }
    }

    /// The same with its speed on an H200.
    pub(super) const fn on_gpu(self, on_gpu: Option<Speed>) -> Self {
        Design { on_gpu, ..self }
    }

    /// A product's kernel: what its row says, and its speeds on a GPU and on the CPU device.
    pub(crate) const fn product(
        kernel: &'static dyn AnyKernel,
        row: Row,
        on_gpu: Option<Speed>,
        on_cpu: Option<Speed>,
    ) -> Self {
        Design {
            kernel,
            #[cfg(feature = "cpu")]
            checked: None,
            of: Of::Product(row),
            rung: None,
            on_gpu,
            on_cpu,
        }
    }

    /// The same, with the kernel that a checked launch runs.
    #[cfg(feature = "cpu")]
    pub(crate) const fn checked(self, checked: &'static dyn AnyCheckedKernel) -> Self {
        Design { checked: Some(checked), ..self }
    }

    /// What the kernel declares about itself.
    pub fn declaration(&self) -> &'static Declaration {
        self.kernel.declaration()
    }

    /// Whether it is compiled for each target by itself, because Hopper has other instructions for
    /// it, or begins before the kernels that it waits for have ended. Other kernels are compiled
    /// for one target, which newer GPUs run, too.
    pub fn is_for_each_target(&self) -> bool {
        let declaration = self.declaration();
        let is_dependent_there = declaration.dependent && declaration.arch.is_none();
        is_dependent_there || matches!(self.of, Of::Product(Row { is_for_each_target: true, .. }))
    }

    /// The entries of all variants.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let name = self.declaration().name;
        let entry =
            |name, summary, constants, product| self.entry(name, summary, constants, product);
        match self.of {
            Of::Program(_, summary) => vec![entry(name, summary, Constants::NONE, None)],
            Of::Lesson(lesson, summary) => {
                let product = lesson.product(self.product_of(lesson.variant(name)));
                vec![entry(name, summary, Constants::NONE, Some(product))]
            }
            Of::Product(row) => {
                let all = row.variants().into_iter().map(|(variant, constants)| {
                    let name: &str = variant.to_string().leak();
                    let Row { most_splits, narrow, packs_tail, .. } = row;
                    let product = self.product_of(variant);
                    let product = Product { most_splits, narrow, packs_tail, ..product };
                    let constants = match constants {
                        Constants::NONE => constants,
                        constants => constants.named(name),
                    };
                    entry(name, product.summary().leak(), constants, Some(product))
                });
                all.collect()
            }
        }
    }

    fn entry(
        &self,
        name: &'static str,
        summary: &'static str,
        constants: Constants,
        product: Option<Product>,
    ) -> Entry {
        Entry {
            name,
            summary,
            rung: self.rung,
            on_gpu: self.on_gpu,
            on_cpu: self.on_cpu,
            kernel: self.kernel,
            #[cfg(feature = "cpu")]
            checked: self.checked,
            constants,
            product,
            program: match self.of {
                Of::Program(program, _) => Some(program),
                Of::Lesson(..) | Of::Product(_) => None,
            },
        }
    }

    /// A product's kernel that is in no list.
    #[cfg(feature = "cpu")]
    fn unlisted(
        kernel: &'static dyn AnyKernel,
        checked: &'static dyn AnyCheckedKernel,
        variant: Variant,
    ) -> Entry {
        let design = Design::product(kernel, Row::of(variant), None, None).checked(checked);
        let product = design.product_of(variant);
        design.entry(
            variant.to_string().leak(),
            product.summary().leak(),
            Constants::NONE,
            Some(product),
        )
    }

    /// What follows from a variant.
    fn product_of(&self, variant: Variant) -> Product {
        let declaration = self.declaration();
        let split: Option<&'static dyn AnyKernel> = match variant.scheme {
            Scheme::Bf16x6 => Some(&split_bf16x3),
            Scheme::F16x3 => Some(&split_f16x2),
            Scheme::Native | Scheme::Tf32 => None,
        };
        Product {
            variant,
            // A kernel that declares no block size has one thread for each element of the tile.
            block: declaration.block.unwrap_or([variant.tile[1], variant.tile[0], 1]),
            boxes: boxes(&variant),
            most_splits: 1,
            stores: None,
            persistent: variant.family == Family::Wgmma,
            narrow: None,
            // `wgmma` reads 8-bit operands along k alone, as those of tf32.
            has_all_layouts: variant.access != Access::Strided
                && matches!(variant.family, Family::Mma | Family::Wgmma)
                && variant.scheme != Scheme::Tf32
                && variant.operands.bytes() > 1,
            packs_tail: false,
            split,
            costs: Costs::of(&variant),
        }
    }
}

impl Entry {
    /// A kernel that is not in the registry: so a test multiplies with a type of its own.
    ///
    /// # Safety
    /// 1. Kernel and checked kernel are of one source. It has the parameters of the family's
    ///    kernels, and computes the product that `variant` says.
    #[cfg(feature = "cpu")]
    #[doc(hidden)]
    pub unsafe fn unlisted(
        kernel: &'static dyn AnyKernel,
        checked: &'static dyn AnyCheckedKernel,
        variant: Variant,
    ) -> &'static Self {
        Box::leak(Box::new(Design::unlisted(kernel, checked, variant)))
    }
}

impl Product {
    /// What sets the kernel apart, in a few words.
    fn summary(&self) -> String {
        let Variant { family, operands, c, scheme, tile: [rows, cols, _], .. } = self.variant;
        let types = match scheme {
            Scheme::Native if operands == c => operands.to_string(),
            Scheme::Native => format!("{operands}, C of {c}"),
            Scheme::Tf32 => "f32 rounded to tf32".to_owned(),
            Scheme::Bf16x6 => "f32 in slices of bf16".to_owned(),
            Scheme::F16x3 => "f32 emulated by slices of f16".to_owned(),
        };
        let cores = match family {
            Family::Lesson(_) | Family::Gemm => "CUDA cores",
            Family::Tma => "Hopper's CUDA cores",
            Family::Mma if self.variant.access == Access::Tma => "Hopper's tensor cores by TMA",
            Family::Mma => "any GPU's tensor cores",
            Family::Wgmma => "Hopper's tensor cores",
        };
        let narrow =
            self.narrow.map(|narrow| format!(" and {rows} x {narrow}")).unwrap_or_default();
        let cluster = match self.variant.cluster {
            1 => String::new(),
            blocks => format!(" of {blocks} blocks"),
        };
        let split = if self.most_splits > 1 { ", split-K in a cluster" } else { "" };
        let access = match self.variant.access {
            Access::Strided if self.is_direct() => ", straight from global memory",
            Access::Dense | Access::Strided | Access::Pieces | Access::Tma => "",
            Access::Dot => ", threads split k",
            Access::Ldg => ", unaligned rows",
            Access::UnalignedA(classes) => &format!(", unaligned rows of A in {classes} classes"),
        };
        let stages = self.variant.stages.map(|stages| format!(", {stages} stages"));
        let stages = stages.unwrap_or_default();
        let layout = self.variant.layout.map(|layout| {
            let [a, b] = layout.k_major();
            let [a, b] = [if a { "K" } else { "M" }, if b { "K" } else { "N" }];
            format!("; A {a}-major, B {b}-major")
        });
        let layout = layout.unwrap_or_default();
        format!(
            "{types}, on {cores}, {rows} x {cols}{narrow} tiles{cluster}{stages}{split}{access}{layout}"
        )
    }
}

/// The TMA boxes of A and of B.
fn boxes(variant: &Variant) -> [BoxShape; 2] {
    let ([rows, cols, _], cluster) = (variant.tile, variant.cluster);
    let [tile_a, tile_b] = [rows, cols].map(|size| size as usize);
    match (variant.family, variant.scheme) {
        // A K-major box has rows of one span of the swizzle. An MN-major box has rows along the
        // outer side. With an unaligned A, B's boxes have a few more k-steps.
        (Family::Tma, _) => {
            let (classes, before) = match variant.access {
                Access::UnalignedA(classes) => (classes as usize, classes as usize),
                _ => (1, 0),
            };
            let of = |is_k_major: bool, tile: usize, before: usize| match is_k_major {
                true => BoxShape { rows: tile, cols: SLAB, swizzle: SLAB * 4 },
                false => BoxShape { rows: SLAB + before, cols: tile, swizzle: 0 },
            };
            let [a, b] = variant.k_major();
            [of(a, tile_a / classes, 0), of(b, tile_b, before)]
        }
        // A box has rows of one span: along k, or sixteen outer elements.
        (Family::Mma, _) => {
            let [a, b] = variant.k_major();
            let of = |is_k_major: bool, tile: usize| {
                let rows = if is_k_major { tile } else { mma::boxes::DEPTH };
                BoxShape { rows, cols: mma::boxes::DEPTH, swizzle: 128 }
            };
            [of(a, tile_a), of(b, tile_b)]
        }
        (_, Scheme::Tf32) => {
            let depth = wgmma_tf32::BLOCK_K;
            let a = BoxShape { rows: tile_a / cluster as usize, cols: depth, swizzle: 128 };
            [a, BoxShape { rows: depth, cols: 32, swizzle: 128 }]
        }
        _ => {
            let [a, b] = variant.k_major();
            let (cluster, bytes) = (cluster as usize, variant.operands.bytes());
            let of = |is_k_major, tile| match (variant.scheme, bytes) {
                (Scheme::Native, 1) => BoxShape { rows: tile, cols: SPAN, swizzle: SPAN },
                _ => wgmma_boxes(is_k_major, tile),
            };
            [of(a, tile_a / cluster), of(b, tile_b / cluster)]
        }
    }
}

/// The TMA box of a 16-bit operand of `wgmma`.
fn wgmma_boxes(is_k_major: bool, tile: usize) -> BoxShape {
    const BLOCK_K: usize = wgmma_shape::BLOCK_K;
    // If the tile is one and a half boxes for each of two CTAs, an MN-major box has half the
    // k-steps, and a K-major box half the rows.
    let has_halves = tile > BLOCK_K && !tile.is_multiple_of(BLOCK_K);
    let rows = match (has_halves, is_k_major) {
        (true, _) => BLOCK_K / 2,
        (false, true) => tile,
        (false, false) => BLOCK_K,
    };
    // A tile of 16 columns has boxes of 16 columns.
    let cols = if is_k_major || tile > BLOCK_K { BLOCK_K } else { tile };
    BoxShape { rows, cols, swizzle: 2 * cols }
}
