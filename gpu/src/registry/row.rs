//! What the row of a product's kernel says of it: everything that the host must know, and that the
//! kernel's declaration does not say.

use simt::{Constants, Fp8, Half};

use super::variant::{Access, Family, Layout, Scheme, Type, Variant, with_layout};

/// The element type of a kernel's parameters: one type, or several, of which the kernel's constant
/// for [`Half`], or for [`Fp8`], selects one.
pub(crate) trait Elements {
    const TYPES: &'static [Type];
    /// That constant.
    const CONSTANT: &'static str = "";
}

macro_rules! elements {
    ($($ty:ident: $row:ident),*) => {$(
        impl Elements for $ty {
            const TYPES: &'static [Type] = &[Type::$row];
        }
    )*};
}

elements! { f32: F32, f64: F64, i8: I8, i32: I32 }

impl Elements for Half {
    const TYPES: &'static [Type] = &Half::TYPES;
    const CONSTANT: &'static str = Half::CONSTANT;
}

impl Elements for Fp8 {
    const TYPES: &'static [Type] = &Fp8::TYPES;
    const CONSTANT: &'static str = Fp8::CONSTANT;
}

/// A product's kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The kernel, with the first of its types and tiles, and no layout if it has several.
    variant: Variant,
    operands: &'static [Type],
    c: &'static [Type],
    /// The constants that select among these, where there are several.
    choices: [&'static str; 2],
    layouts: Layouts,
    /// The tiles that the constant `cols` selects.
    tiles: &'static [[u32; 3]],
    /// The largest number of CTAs that split k.
    pub(super) most_splits: u32,
    /// The width of narrow tiles.
    pub(super) narrow: Option<u32>,
    /// It packs the last columns of B in the background.
    pub(super) packs_tail: bool,
    /// Hopper has a version of its own, with other instructions. Other kernels are compiled for one
    /// target, which newer GPUs run, too.
    pub(super) is_for_each_target: bool,
}

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
            operands: &[],
            c: &[],
            choices: [""; 2],
            layouts: Layouts::One,
            tiles: &[],
            most_splits: 1,
            narrow: None,
            packs_tail: false,
            is_for_each_target: false,
        }
    }

    /// A kernel of a family, of any strides.
    const fn new<T: Elements, C: Elements>(family: Family, tile: [u32; 3]) -> Self {
        let variant = Variant {
            family,
            operands: T::TYPES[0],
            c: C::TYPES[0],
            scheme: Scheme::Native,
            tile,
            cluster: 1,
            stages: None,
            access: Access::Strided,
            layout: None,
        };
        let choices = [T::CONSTANT, C::CONSTANT];
        Row { operands: T::TYPES, c: C::TYPES, choices, ..Row::of(variant) }
    }

    /// CUDA cores of any GPU.
    pub(crate) const fn gemm<T: Elements, C: Elements>(tile: [u32; 3]) -> Self {
        Row::new::<T, C>(Family::Gemm, tile)
    }

    /// The same, whose threads split k.
    pub(crate) const fn dot<T: Elements, C: Elements>(tiles: &'static [[u32; 3]]) -> Self {
        let row = Row::new::<T, C>(Family::Gemm, tiles[0]);
        let variant = Variant { access: Access::Dot, ..row.variant };
        Row { variant, tiles, ..row }
    }

    /// f32 on Hopper's CUDA cores.
    pub(crate) const fn tma(tile: [u32; 3], layout: Layout) -> Self {
        let row = Row::new::<f32, f32>(Family::Tma, tile);
        let variant = Variant { access: Access::Tma, layout: Some(layout), ..row.variant };
        Row { variant, ..row }
    }

    /// Tensor cores from Ampere on.
    pub(crate) const fn mma<T: Elements, C: Elements>(tile: [u32; 3]) -> Self {
        Row::new::<T, C>(Family::Mma, tile)
    }

    /// Hopper's tensor cores, all layouts.
    pub(crate) const fn wgmma<T: Elements, C: Elements>(tile: [u32; 3]) -> Self {
        Row::new::<T, C>(Family::Wgmma, tile).by_tma()
    }

    /// f32 rounded to tf32 on Hopper's tensor cores.
    pub(crate) const fn wgmma_tf32(tile: [u32; 3]) -> Self {
        Row::wgmma::<f32, f32>(tile).scheme(Scheme::Tf32).layout(Layout::NN)
    }

    /// f32 in slices on Hopper's tensor cores, all layouts.
    pub(crate) const fn emulated(scheme: Scheme, tile: [u32; 3]) -> Self {
        Row::wgmma::<f32, f32>(tile).scheme(scheme)
    }

    /// How elements are multiplied.
    pub(crate) const fn scheme(self, scheme: Scheme) -> Self {
        Row { variant: Variant { scheme, ..self.variant }, ..self }
    }

    /// Operands are loaded by TMA, in all layouts.
    pub(crate) const fn by_tma(self) -> Self {
        let variant = Variant { access: Access::Tma, ..self.variant };
        Row { variant, layouts: Layouts::Each, ..self }
    }

    /// Threads copy A and B by sixteen bytes, both K-major.
    pub(crate) const fn in_pieces(self) -> Self {
        let row = self.layout(Layout::NT);
        let variant = Variant { access: Access::Pieces, ..row.variant };
        Row { variant, ..row }
    }

    /// One layout alone.
    pub(crate) const fn layout(self, layout: Layout) -> Self {
        let variant = Variant { layout: Some(layout), ..self.variant };
        Row { variant, layouts: Layouts::One, ..self }
    }

    /// CTAs of a cluster that share a tile.
    pub(crate) const fn cluster(self, cluster: u32) -> Self {
        Row { variant: Variant { cluster, ..self.variant }, ..self }
    }

    /// Stages of the pipeline, if designs differ in nothing else.
    pub(crate) const fn stages(self, stages: u32) -> Self {
        Row { variant: Variant { stages: Some(stages), ..self.variant }, ..self }
    }

    /// Threads load A and B, with unaligned rows or columns.
    pub(crate) const fn ldg(self) -> Self {
        Row { variant: Variant { access: Access::Ldg, ..self.variant }, ..self }
    }

    /// Unaligned rows of A, in so many alignment classes; A K-major, B N-major.
    pub(crate) const fn unaligned(self, classes: u32) -> Self {
        let row = self.layout(Layout::NN);
        let variant = Variant { access: Access::UnalignedA(classes), ..row.variant };
        Row { variant, ..row }
    }

    /// It packs the last columns of B in the background.
    pub(crate) const fn packs_tail(self) -> Self {
        Row { packs_tail: true, ..self }
    }

    /// Hopper has a version of its own.
    pub(crate) const fn for_each_target(self) -> Self {
        Row { is_for_each_target: true, ..self }
    }

    /// Up to so many CTAs of a cluster split k.
    pub(crate) const fn split_k(self, most_splits: u32) -> Self {
        Row { most_splits, ..self }
    }

    /// Narrow tiles of so many columns, too.
    pub(crate) const fn or(self, narrow: u32) -> Self {
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
        let (types, [of_operands, of_c]) = (self.operands, self.choices);
        let is_one_choice = of_operands == of_c;
        if types.len() > 1 {
            all = each(all, &|variant, constants| {
                let of = |(number, ty): (usize, &Type)| {
                    // C of the same type, or of one that is not selected here.
                    let c = self.c.get(number).copied().filter(|_| is_one_choice);
                    let constants = constants.with_word(of_operands, ty.name());
                    (Variant { operands: *ty, c: c.unwrap_or(variant.c), ..variant }, constants)
                };
                types.iter().enumerate().map(of).collect()
            });
        }
        if self.c.len() > 1 && !is_one_choice {
            all = each(all, &|variant, constants| {
                let of =
                    |c: &Type| (Variant { c: *c, ..variant }, constants.with_word(of_c, c.name()));
                self.c.iter().map(of).collect()
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
