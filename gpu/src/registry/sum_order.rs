//! In which order a kernel adds the products of an element of C. Kernels of one order give the
//! same bits, whatever their tiles: `tests/gemm/invariant.rs` compares them.

use std::fmt;

use super::{
    product::Product,
    variant::{Access, Family, Scheme, Type},
};

/// The order in which a block adds the products of an element of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SumOrder {
    /// One sum along k, a fused multiply-add after the other.
    Serial {
        /// Zeros follow the last product. They make a sum of -0, which is left by an underflow, to
        /// one of +0.
        padded: bool,
    },
    /// One sum along k, an instruction of `mma.sync` after the other.
    Mma,
    /// One sum along k, an instruction of `wgmma` after the other.
    Wgmma,
    /// Several sums, which are added at the end: each takes so many k-steps, then the next one.
    Dealt {
        /// The number of sums.
        sums: u32,
        /// The k-steps that a sum takes at a time.
        steps: u32,
    },
    /// Any: sums of integers are exact.
    Exact,
    /// An order that no other tile has, or one that depends on the row.
    Own,
}

impl fmt::Display for SumOrder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SumOrder::Serial { .. } => f.write_str("one sum along k, by multiply-adds"),
            SumOrder::Mma => f.write_str("one sum along k, by mma.sync"),
            SumOrder::Wgmma => f.write_str("one sum along k, by wgmma"),
            SumOrder::Dealt { sums, steps } => {
                write!(f, "{sums} sums, which take {steps} k-steps in turn")
            }
            SumOrder::Exact => f.write_str("any order: sums of integers are exact"),
            SumOrder::Own => f.write_str("an order that no other kernel has"),
        }
    }
}

impl Product {
    /// The order in which a block adds `k` products.
    pub fn sum_order(&self, k: usize) -> SumOrder {
        let variant = &self.variant;
        let depth = variant.tile[2];
        let serial = SumOrder::Serial { padded: !k.is_multiple_of(self.steps().max(1)) };
        match (variant.family, variant.scheme, variant.access) {
            // Alignment classes shift the k-steps by the row. Scales and bounds of slices are those
            // of a patch, which has other rows, too.
            (Family::Lesson(_), ..)
            | (_, _, Access::Dense | Access::Dot | Access::UnalignedA(_))
            | (_, Scheme::Bf16x6 | Scheme::F16x3, _) => SumOrder::Own,
            _ if variant.operands == Type::I8 => SumOrder::Exact,
            (Family::Gemm, ..) => serial,
            // The tensor cores add f64 one by one.
            (Family::Mma, ..) if variant.operands.bytes() == 8 => serial,
            (Family::Mma, ..) => SumOrder::Mma,
            // Four warps split a stage.
            (Family::Tma, ..) if self.most_splits > 1 => {
                SumOrder::Dealt { sums: 4, steps: depth / 4 }
            }
            // 72 x 80 has an order of its own. In 128 x 128 a tile that extends beyond C adds its
            // sums to 0, so that -0 becomes +0; other tiles do not.
            (Family::Tma, ..) => SumOrder::Own,
            // Two warpgroups take stages in turn.
            (Family::Wgmma, Scheme::Tf32, _) if self.most_splits > 1 => {
                SumOrder::Dealt { sums: 2, steps: depth }
            }
            (Family::Wgmma, ..) => SumOrder::Wgmma,
        }
    }
}
