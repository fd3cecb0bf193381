//! Lessons: kernels of the course, which compute `A B` of dense row-major matrices and nothing
//! else.

use simt::device::BoxShape;

use super::{
    product::Product,
    variant::{Access, Family, Scheme, Type, Variant},
};
use crate::collective::wgmma_shape::{BLOCK_K, WGMMA_M};

/// What a row of the registry says of a lesson.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lesson {
    operands: Type,
    tile: [u32; 3],
    cluster: u32,
    access: Access,
    persistent: bool,
    stores: bool,
}

impl Lesson {
    /// A lesson of f32, on CUDA cores, with a tile of that size.
    pub(super) const fn f32(rows: u32, cols: u32) -> Self {
        Lesson {
            operands: Type::F32,
            tile: [rows, cols, 0],
            cluster: 1,
            access: Access::Dense,
            persistent: false,
            stores: false,
        }
    }

    /// A lesson of bf16, on tensor cores, whose threads load A and B.
    pub(super) const fn bf16(rows: u32, cols: u32) -> Self {
        Lesson { operands: Type::BF16, ..Lesson::f32(rows, cols) }
    }

    /// The same, but TMA loads A and B.
    pub(super) const fn tma(self) -> Self {
        let [rows, cols, _] = self.tile;
        Lesson { access: Access::Tma, tile: [rows, cols, BLOCK_K as u32], ..self }
    }

    /// The same with persistent CTAs; `cluster` of them share a tile.
    pub(super) const fn persistent(self, cluster: u32) -> Self {
        Lesson { persistent: true, cluster, ..self }
    }

    /// The same, but TMA stores C.
    pub(super) const fn tma_store(self) -> Self {
        Lesson { stores: true, ..self }
    }

    /// The lesson as a variant.
    pub(super) fn variant(&self, name: &'static str) -> Variant {
        Variant {
            family: Family::Lesson(name),
            operands: self.operands,
            c: self.operands,
            scheme: Scheme::Native,
            tile: self.tile,
            cluster: self.cluster,
            stages: None,
            access: self.access,
            layout: None,
        }
    }

    /// What the lesson says beyond its variant.
    pub(super) fn product(&self, product: Product) -> Product {
        // The rows of a warp.
        let stores = BoxShape { rows: WGMMA_M / 4, cols: BLOCK_K, swizzle: 128 };
        Product { persistent: self.persistent, stores: self.stores.then_some(stores), ..product }
    }
}
