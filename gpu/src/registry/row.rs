//! What the row of a product's kernel says of it: everything that the host must know, and that the
//! kernel's declaration does not say.

use simt::{Constants, Half};

use super::variant::{Access, Family, Layout, Scheme, Type, Variant, with_layout};

/// A product's kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The kernel, with the first of its types and tiles, and no layout if it has several.
    variant: Variant,
    operands: Element,
    c: Element,
    layouts: Layouts,
    /// The tiles that the constant `cols` selects.
    tiles: &'static [[u32; 3]],
    /// The largest number of CTAs that split k.
    pub(super) most_splits: u32,
    /// The width of narrow tiles.
    pub(super) narrow: Option<u32>,
    /// It packs the last columns of B in the background.
    pub(super) packs_tail: bool,
}

/// A type of elements, or several, of which the kernel's constant for [`Half`] selects one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element(&'static [Type]);

/// f32.
pub(super) const F32: Element = Element(&[Type::F32]);
/// f64.
pub(super) const F64: Element = Element(&[Type::F64]);
/// bf16 or f16.
pub(super) const HALF: Element = Element(&Half::TYPES);

/// Which layouts of A and B a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layouts {
    /// That of its variant. Strides say all where it has none.
    One,
    /// All four: a variant each, by the constants `a_mn_major` and `b_mn_major`.
    Each,
}

impl Row {
    /// A kernel of one variant.
    pub(super) const fn of(variant: Variant) -> Self {
        Row {
            variant,
            operands: Element(&[]),
            c: Element(&[]),
            layouts: Layouts::One,
            tiles: &[],
            most_splits: 1,
            narrow: None,
            packs_tail: false,
        }
    }

    /// A kernel of a family, of any strides.
    const fn new(family: Family, [operands, c]: [Element; 2], tile: [u32; 3]) -> Self {
        let variant = Variant {
            family,
            operands: operands.0[0],
            c: c.0[0],
            scheme: Scheme::Native,
            tile,
            cluster: 1,
            stages: None,
            access: Access::Strided,
            layout: None,
        };
        Row { operands, c, ..Row::of(variant) }
    }

    /// CUDA cores of any GPU.
    pub(super) const fn gemm(types: [Element; 2], tile: [u32; 3]) -> Self {
        Row::new(Family::Gemm, types, tile)
    }

    /// The same, whose threads split k.
    pub(super) const fn dot(types: [Element; 2], tiles: &'static [[u32; 3]]) -> Self {
        let row = Row::new(Family::Gemm, types, tiles[0]);
        let variant = Variant { access: Access::Dot, ..row.variant };
        Row { variant, tiles, ..row }
    }

    /// f32 on Hopper's CUDA cores.
    pub(super) const fn tma(tile: [u32; 3], layout: Layout) -> Self {
        let row = Row::new(Family::Tma, [F32, F32], tile);
        let variant = Variant { access: Access::Tma, layout: Some(layout), ..row.variant };
        Row { variant, ..row }
    }

    /// Tensor cores from Ampere on.
    pub(super) const fn mma(types: [Element; 2], tile: [u32; 3]) -> Self {
        Row::new(Family::Mma, types, tile)
    }

    /// Hopper's tensor cores, all layouts.
    pub(super) const fn wgmma(types: [Element; 2], tile: [u32; 3]) -> Self {
        let row = Row::new(Family::Wgmma, types, tile);
        let variant = Variant { access: Access::Tma, ..row.variant };
        Row { variant, layouts: Layouts::Each, ..row }
    }

    /// f32 rounded to tf32 on Hopper's tensor cores.
    pub(super) const fn wgmma_tf32(tile: [u32; 3]) -> Self {
        Row::wgmma([F32, F32], tile).scheme(Scheme::Tf32).layout(Layout::NN)
    }

    /// f32 in slices on Hopper's tensor cores, all layouts.
    pub(super) const fn emulated(scheme: Scheme, tile: [u32; 3]) -> Self {
        Row::wgmma([F32, F32], tile).scheme(scheme)
    }

    /// How elements are multiplied.
    pub(super) const fn scheme(self, scheme: Scheme) -> Self {
        Row { variant: Variant { scheme, ..self.variant }, ..self }
    }

    /// One layout alone.
    pub(super) const fn layout(self, layout: Layout) -> Self {
        let variant = Variant { layout: Some(layout), ..self.variant };
        Row { variant, layouts: Layouts::One, ..self }
    }

    /// CTAs of a cluster that share a tile.
    pub(super) const fn cluster(self, cluster: u32) -> Self {
        Row { variant: Variant { cluster, ..self.variant }, ..self }
    }

    /// Stages of the pipeline, if designs differ in nothing else.
    pub(super) const fn stages(self, stages: u32) -> Self {
        Row { variant: Variant { stages: Some(stages), ..self.variant }, ..self }
    }

    /// Threads load A and B, with unaligned rows or columns.
    pub(super) const fn ldg(self) -> Self {
        Row { variant: Variant { access: Access::Ldg, ..self.variant }, ..self }
    }

    /// Unaligned rows of A, in so many alignment classes; A K-major, B N-major.
    pub(super) const fn unaligned(self, classes: u32) -> Self {
        let row = self.layout(Layout::NN);
        let variant = Variant { access: Access::UnalignedA(classes), ..row.variant };
        Row { variant, ..row }
    }

    /// It packs the last columns of B in the background.
    pub(super) const fn packs_tail(self) -> Self {
        Row { packs_tail: true, ..self }
    }

    /// Up to so many CTAs of a cluster split k.
    pub(super) const fn split_k(self, most_splits: u32) -> Self {
        Row { most_splits, ..self }
    }

    /// Narrow tiles of so many columns, too.
    pub(super) const fn or(self, narrow: u32) -> Self {
        Row { narrow: Some(narrow), ..self }
    }

    /// The variants, and the values of the constants that select each.
    pub(super) fn variants(&self) -> Vec<(Variant, Constants)> {
        let mut all = vec![(self.variant, Constants::NONE)];
        let each = |all: Vec<(Variant, Constants)>, with: &dyn Fn(Variant, Constants) -> Vec<_>| {
            all.into_iter().flat_map(|(variant, constants)| with(variant, constants)).collect()
        };
        if !self.tiles.is_empty() {
            all = each(all, &|variant, constants| {
                let of = |tile: &[u32; 3]| {
                    (Variant { tile: *tile, ..variant }, constants.with("cols", tile[1]))
                };
                self.tiles.iter().map(of).collect()
            });
        }
        let Element(types) = self.operands;
        if types.len() > 1 {
            all = each(all, &|variant, constants| {
                let of = |(number, ty): (usize, &Type)| {
                    // C of the same type, or of one that is not selected.
                    let c = self.c.0.get(number).copied().unwrap_or(variant.c);
                    let constants = constants.with_word(Half::CONSTANT, ty.name());
                    (Variant { operands: *ty, c, ..variant }, constants)
                };
                types.iter().enumerate().map(of).collect()
            });
        }
        if self.layouts == Layouts::Each {
            all = each(all, &|variant, constants| {
                let of = |layout: Layout| {
                    let constants = with_layout(constants, layout.k_major());
                    (Variant { layout: Some(layout), ..variant }, constants)
                };
                Layout::ALL.map(of).into()
            });
        }
        all
    }
}
