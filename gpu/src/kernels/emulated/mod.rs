//! The general product of f32 on Hopper's tensor cores, as accurate as f32: factors that are cut into slices of bf16.
//!
//! A number of 24 bits is the sum of three of 8 bits, each rounded to the nearest of what is left:
//!
//! ```text
//!   x = x0 + x1 + x2      |x1| <= 2^-8 |x|      |x2| <= 2^-17 |x|
//!
//!   x y = x0 y2 + x1 y1 + x2 y0     about 2^-16 of it: the first band
//!       + x0 y1 + x1 y0             about 2^-8: the second
//!       + x0 y0                     the third
//!       (+ x1 y2 + x2 y1 + x2 y2    at most 2^-24 |x y| together: left out)
//! ```
//!
//! Six products of bf16, each exact, in place of one of f32, and tensor cores do sixteen times as many. [`slices`] cuts; here
//! is what multiplies.
//!
//! # Why it is accurate
//! The tensor cores cut off what is beyond 25 bits below the greatest of what they add, and what is beyond an f32. That is no
//! rounding: all errors have one sign, and k of them are k times as much. Against this:
//!
//! * **Sums are short**: 64 steps of k, in accumulators that begin at zero. Then they are added to an f32 in another register,
//!   rounded to the nearest (*promotion*; DeepGEMM does so for fp8).
//! * **The small products come first**, so that of the 24 instructions of 64 steps all but the last four cut off where sums
//!   are small.
//!
//! What comes out is within `(k / 64 + 45) 2^-24` of the exact sum, relative to the sum of the terms' absolute values. (An
//! f32 that k fused multiply-adds go into has k in its place.) Of this 1.01 are the products that are left out; k / 64 the
//! promotion; the rest the cutting off: of four instructions 17 addends each by 2^-25 of the greatest, and the sum by 2^-23.
//! What the bands before cut off is 2^-7 of that.
//!
//! What slices cannot hold is told by the result, and computed again ([`exceptions`]).
//!
//! Half as many products are those of two slices of f16, which are scaled ([`f16x3`]).
//!
//! # How it goes
//! Tiles and the walk are those of [`gemm_wgmma`](super::gemm_wgmma), and there is one warp that copies ([`roles`]). Other is:
//!
//! ```text
//!   kernel                       blocks   warpgroups   a warpgroup's part   the ring: one slice of A and of B, 64 steps of k
//!   wgmma_bf16x6_256x192x64_c2     2        2 + 1       64 x 192 or 128       5 x 40 KiB
//!   wgmma_bf16x6_256x128x64_c2     2        2 + 1          64 x 128           6 x 32 KiB
//!   wgmma_bf16x6_64x128x64      1        1 + 1          64 x 128           8 x 24 KiB
//! ```
//!
//! * **A stage of the ring is one slice** of A and of B. In the order 2, 1, 0 they are needed no longer, each after its band:
//!   the next but one are copied while the others are still multiplied.
//! * **Two sets of 64 x 128 sums** are 128 registers a thread, and of 64 x 192 columns 192 of 232. A tile need not be larger: what is
//!   read is multiplied twice, since a band uses each slice with each. Why wide tiles are worth the trouble, and how they come out
//!   even: [`f16x3`], [`widths`].
//! * **Two warpgroups multiply in turn** ([`OrderedBarrier`]): while one waits and promotes, the tensor cores work for the other. Where the
//!   ring has less than two times three stages, the first band is a turn of its own, and waited for: so both have read the slices 2
//!   after half of the time, and what takes their place has the other half to come.
//! * **Two blocks of a cluster** have tiles one below the other, and each copies half of their columns of B to both: of 128 columns a
//!   block draws 24 bytes a cycle from the second-level cache, alone 32.
//! * **Clusters keep step** ([`grid::Pace`]): else they drift apart in a long k, and each reads from memory what its neighbours have
//!   read before. (Those of [`f16x3`] do not: there it made no difference.)

mod bf16x6;
mod epilogue;
pub mod f16x3;
pub mod planes;
pub mod recompute;
pub mod scales;
pub mod split_bf16x3;
pub mod split_f16x2;
pub mod stream_counters;
mod table;
pub mod two_widths;
mod uniform;
pub mod value_range;
mod warp_roles;

pub use self::table::*;
use super::{collective, device};
