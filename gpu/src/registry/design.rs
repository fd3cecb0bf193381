//! Designs: the kernels' sources, and the variants that each is loaded as.

use simt::{AnyCheckedKernel, AnyKernel, Constants, Declaration, device::BoxShape};

use super::{
    lesson::Lesson,
    product::{Entry, Product, Program, Rung},
    speed::Speed,
    variant::{Access, Family, Layout, Scheme, Type, Variant, with_layout},
};
use crate::{
    collective::wgmma_shape,
    kernels::{
        emulated::{split_bf16x3::split_bf16x3, split_f16x2::split_f16x2},
        gemm::dot,
        tma::SLAB,
        wgmma_tf32,
    },
};

/// A kernel's source. Each of its variants is an [`Entry`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Design {
    /// The kernel.
    pub(super) kernel: &'static dyn AnyKernel,
    /// The same source, compiled for a checked launch.
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
    /// A product. The kernel's name says which. Besides: the largest number of CTAs that split k,
    /// and the width of narrow tiles.
    Product { most_splits: u32, narrow: Option<u32> },
    /// Something else: what runs the kernel, and what it does.
    Program(Program, &'static str),
}

impl Design {
    /// What the kernel declares about itself.
    pub fn declaration(&self) -> &'static Declaration {
        self.kernel.declaration()
    }

    /// The entries of all variants.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let name = self.declaration().name;
        let entry =
            |name, summary, constants, product| self.entry(name, summary, constants, product);
        match self.of {
            Of::Program(_, summary) => vec![entry(name, summary, Constants::NONE, None)],
            Of::Lesson(lesson, summary) => {
                let product = lesson.product(self.product(lesson.variant(name), 1, None));
                vec![entry(name, summary, Constants::NONE, Some(product))]
            }
            Of::Product { most_splits, narrow } => {
                let all = self.variants().into_iter().map(|(variant, constants)| {
                    let name: &str = variant.to_string().leak();
                    let product = self.product(variant, most_splits, narrow);
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
            checked: self.checked,
            constants,
            product,
            program: match self.of {
                Of::Program(program, _) => Some(program),
                Of::Lesson(..) | Of::Product { .. } => None,
            },
        }
    }

    /// The variants, and the values of the constants that select each.
    fn variants(&self) -> Vec<(Variant, Constants)> {
        let declaration = self.declaration();
        let declares = |name| declaration.constants.iter().any(|constant| constant.name == name);
        let of_name = |name: String| {
            let variant = name.parse::<Variant>();
            // A test reads the whole registry, so this never happens at a user.
            variant.unwrap_or_else(|error| panic!("a kernel's name says what it is: {error}"))
        };
        if declares("cols") {
            return dot_products(declaration.name, declares("half"))
                .map(|(name, constants)| (of_name(name), constants))
                .collect();
        }
        let of_type = |ty: Type| of_name(declaration.name.replace("half", ty.name()));
        let of_types = match declares("half") {
            true => [Type::BF16, Type::F16]
                .map(|ty| (of_type(ty), Constants::NONE.with_word("half", ty.name())))
                .into(),
            false => vec![(of_type(Type::F32), Constants::NONE)],
        };
        // With any strides, each launch chooses the layout (`Entry::constants_of`).
        if !declares("a_mn_major") || of_types[0].0.access == Access::Strided {
            return of_types;
        }
        let of_layouts = |(variant, constants): (Variant, Constants)| {
            Layout::ALL.map(|layout| {
                (
                    Variant { layout: Some(layout), ..variant },
                    with_layout(constants, layout.k_major()),
                )
            })
        };
        of_types.into_iter().flat_map(of_layouts).collect()
    }

    /// A product's kernel that is in no list.
    fn unlisted(
        kernel: &'static dyn AnyKernel,
        checked: &'static dyn AnyCheckedKernel,
        variant: Variant,
    ) -> Entry {
        let of = Of::Product { most_splits: 1, narrow: None };
        let design =
            Design { kernel, checked: Some(checked), of, rung: None, on_gpu: None, on_cpu: None };
        let product = design.product(variant, 1, None);
        design.entry(
            variant.to_string().leak(),
            product.summary().leak(),
            Constants::NONE,
            Some(product),
        )
    }

    fn product(&self, variant: Variant, most_splits: u32, narrow: Option<u32>) -> Product {
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
            most_splits,
            stores: None,
            persistent: variant.family == Family::Wgmma,
            narrow,
            has_all_layouts: variant.family == Family::Wgmma && variant.scheme != Scheme::Tf32,
            packs_tail: declaration.params.iter().any(|param| param.name == "last"),
            split,
        }
    }
}

/// The names of the variants of a kernel for dot products, one for each tile and type, and their
/// constants.
fn dot_products(name: &str, of_halves: bool) -> impl Iterator<Item = (String, Constants)> {
    let types = if of_halves { &[Type::BF16, Type::F16][..] } else { &[Type::F32] };
    dot::TILES.iter().flat_map(move |[rows, cols, steps]| {
        types.iter().map(move |ty| {
            let constants = Constants::NONE.with("cols", *cols);
            let constants = match of_halves {
                true => constants.with_word("half", ty.name()),
                false => constants,
            };
            let tile = format!("{rows}x{cols}x{steps}_dot");
            (name.replace("half", ty.name()).replace("dot", &tile), constants)
        })
    })
}

impl Entry {
    /// A kernel that is not in the registry: so a test multiplies with a type of its own.
    ///
    /// # Safety
    /// 1. Kernel and checked kernel are of one source. It has the parameters of the family's
    ///    kernels, and computes the product that `variant` says.
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
            Access::Dense | Access::Strided | Access::Tma => "",
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
        (_, Scheme::Tf32) => {
            let depth = wgmma_tf32::BLOCK_K;
            let a = BoxShape { rows: tile_a / cluster as usize, cols: depth, swizzle: 128 };
            [a, BoxShape { rows: depth, cols: 32, swizzle: 128 }]
        }
        _ => {
            let [a, b] = variant.k_major();
            let cluster = cluster as usize;
            [wgmma_boxes(a, tile_a / cluster), wgmma_boxes(b, tile_b / cluster)]
        }
    }
}

/// The TMA box of an operand of `wgmma`.
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
