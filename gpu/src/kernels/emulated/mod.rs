//! Emulated fp32: f32 as accurate as fp32, on Hopper's tensor cores. Factors are split into slices
//! of bf16 or f16.
//!
//! A number of 24 bits is the sum of three numbers of 8 bits, each rounded to the nearest of what
//! is left:
//!
//! ```text
//!   x = x0 + x1 + x2      |x1| <= 2^-8 |x|      |x2| <= 2^-17 |x|
//!
//!   x y = x0 y2 + x1 y1 + x2 y0     about 2^-16 of it: the first band
//!       + x0 y1 + x1 y0             about 2^-8: the second band
//!       + x0 y0                     the third band
//!       (+ x1 y2 + x2 y1 + x2 y2    at most 2^-24 |x y| together: left out)
//! ```
//!
//! These are six products of bf16, each exact, in place of one of f32. Tensor cores do sixteen
//! times as many. [`split_bf16x3`] splits, [`bf16x6`] multiplies. Two scaled slices of f16 need
//! only three products ([`split_f16x2`], [`f16x3`]).
//!
//! # Why it is accurate
//! The tensor cores truncate what is beyond 25 bits below the greatest addend, and what is beyond
//! an f32. So all errors have one sign, and k of them are k times as much. Against this:
//!
//! * **Sums are short**: 64 k-steps, in accumulators that start at zero. Then they are added to
//!   an f32 in another register, rounded to the nearest (*promotion*, as DeepGEMM does for fp8).
//! * **Small products come first.** So of the 24 MMAs of 64 steps, all but the last four truncate
//!   small sums.
//!
//! The result is within `(k / 64 + 45) 2^-24` of the exact sum, relative to the sum of the absolute
//! values of the terms. (A sum of k fused multiply-adds has k in place of this.) Of it, 1.01 are
//! the products that are left out, k / 64 the promotion, and the rest truncation: in four MMAs 17
//! addends by 2^-25 of the greatest each, and the sum by 2^-23. The bands before truncate 2^-7 of
//! that.
//!
//! Results that slices cannot represent are detected, and recomputed ([`recompute`]).
//!
//! # Warps, tiles and clusters
//! ```text
//!   kernel                      blocks    warpgroups    part of a warpgroup    stages: a slice of A and of B, 64 k-steps
//!   wgmma_bf16x6_256x192x64_c2    2         2 + 1         64 x 192 or 128        5 x 40 KiB
//!   wgmma_bf16x6_256x128x64_c2    2         2 + 1         64 x 128               6 x 32 KiB
//!   wgmma_bf16x6_64x128x64        1         1 + 1         64 x 128               8 x 24 KiB
//! ```
//!
//! * **A block** is persistent, and computes tiles as in [`wgmma`](super::wgmma). A pipeline stage
//!   is one slice of A and of B. The slices arrive in the order 2, 1, 0, and each is released after
//!   its band. So the next slices are copied while the others are multiplied.
//! * **Two warpgroups** multiply in turn ([ping-pong](super::collective::ordered_barrier)): while
//!   one waits and promotes, the tensor cores work for the other. If the pipeline has fewer than
//!   two times three stages, the first band is a turn of its own, and is awaited. Then both
//!   warpgroups have read slice 2 after half of the time, and its successor has the other half to
//!   arrive.
//! * **A third warpgroup** has a producer warp, and warps that compute error bounds
//!   ([`warp_roles`]).
//! * **A thread** holds two sets of sums, the accumulators and the promoted ones: 128 registers for
//!   64 x 128, and 192 of 232 for 64 x 192. Tiles need not be larger: a band uses each slice with
//!   each, so what is read is multiplied twice. Why wide tiles are worth the trouble: [`f16x3`],
//!   [`two_widths`].
//! * **A cluster** of two blocks has tiles one below the other. Each block copies half the columns
//!   of B to both: with 128 columns it reads 24 bytes a cycle from L2, without a cluster 32.
//! * **Clusters keep pace** (`grid::Pace`). Otherwise they drift apart when k is long, and each
//!   reads from memory what its neighbours have read before. (Those of [`f16x3`] do not: it made no
//!   difference.)

pub mod bf16x6;
pub mod epilogue;
pub mod f16x3;
pub mod planes;
pub mod recompute;
pub mod scales;
pub mod split_bf16x3;
pub mod split_f16x2;
pub mod stream_counters;
pub mod table;
pub mod two_widths;
pub mod uniform;
pub mod value_range;
pub mod warp_roles;

pub use self::table::*;
use super::{collective, device};
