//! The list of all kernels. A new kernel is a line of its family's table and a row here
//! (docs/design/architecture.md, "Adding a kernel").
//!
//! The command's `kernels`, the tests, the benchmarks and the documentation's tables all read this
//! list. A row says what a product's kernel is (`registry/row.rs`); its variants
//! (`registry/variant.rs`) follow, and their names.

mod design;
#[macro_use]
mod entries;
mod lesson;
mod product;
mod representatives;
mod row;
// For messages of the checker.
#[cfg(feature = "cpu")]
mod sources;
mod speed;
mod variant;

use std::sync::LazyLock;

#[cfg(feature = "cpu")]
pub use self::sources::{source, text};
pub use self::{
    design::Design,
    product::*,
    representatives::REPRESENTATIVES,
    speed::{Products, Speed},
    variant::*,
};
use self::{
    design::Of,
    entries::{bf16_ratio, tile_ratio},
    lesson::Lesson,
    row::{F32, F64, HALF, Row},
};
use crate::kernels::gemm::dot;

/// Every kernel's source, in the order in which the course teaches them.
pub static DESIGNS: &[Design] = &[
    Design {
        rung: Some(Rung {
            idea: "the triple loop with its two outer loops spread over threads",
            flop_per_byte: 0.25,
        }),
        ..lesson!(basic::basic, 16 x 16, "one thread an element, everything from global memory")
    },
    Design {
        rung: Some(Rung {
            idea: "what a block reads from global memory, all its threads use; but a warp reads B down its columns",
            flop_per_byte: tile_ratio(16, 16),
        }),
        ..lesson!(tiled_uncoalesced::tiled_uncoalesced, 16 x 16, "16 x 16 tiles, B read down its columns")
    },
    Design {
        rung: Some(Rung {
            idea: "neighbouring threads read neighbouring elements of B; but its tile lies transposed, in two banks",
            flop_per_byte: tile_ratio(16, 16),
        }),
        ..lesson!(tiled_conflicts::tiled_conflicts, 16 x 16, "16 x 16 tiles, B's transposed in shared memory")
    },
    Design {
        rung: Some(Rung {
            idea: "both tiles lie as they are read: no bank conflicts",
            flop_per_byte: tile_ratio(16, 16),
        }),
        on_gpu: speed! { gflops: 61.0, alone: 0.2, fixed_us: 1.5, tile_us: [0.3, 0.3] },
        ..lesson!(tiled::tiled16, 16 x 16, "16 x 16 tiles in shared memory, two barriers a phase")
    },
    Design {
        rung: Some(Rung {
            idea: "a tile of twice the width: each loaded element is used twice as often",
            flop_per_byte: tile_ratio(32, 32),
        }),
        on_gpu: speed! { gflops: 67.0, alone: 0.65, fixed_us: 2.0, tile_us: [1.0, 1.0] },
        ..lesson!(tiled::tiled32, 32 x 32, "32 x 32 tiles in shared memory, two barriers a phase")
    },
    Design {
        rung: Some(Rung {
            idea: "one element of B in a register serves 16 multiply-adds, and 128 bits of A's tile four",
            flop_per_byte: tile_ratio(16, 64),
        }),
        ..lesson!(outer_product::outer_product, 16 x 64, "outer products: an element of B in a register, A's tile shared, 16 elements of C a thread")
    },
    Design {
        rung: Some(Rung {
            idea: "no loop around a k-step, and 16 reads of B that do not wait for each other",
            flop_per_byte: tile_ratio(16, 64),
        }),
        ..lesson!(unrolled::unrolled, 16 x 64, "outer products, 16 k-steps unrolled")
    },
    Design {
        rung: Some(Rung {
            idea: "the next tile is on its way while this one is multiplied, and one barrier a phase is enough",
            flop_per_byte: tile_ratio(16, 64),
        }),
        ..lesson!(prefetched::prefetched, 16 x 64, "outer products, the next tile of A read ahead")
    },
    Design {
        rung: Some(Rung {
            idea: "8 x 8 elements of C a thread: 16 elements read for 64 multiply-adds",
            flop_per_byte: tile_ratio(128, 128),
        }),
        ..lesson!(register_blocked::register_blocked, 128 x 128, "128 x 128 tiles, 8 x 8 elements a thread")
    },
    Design {
        rung: Some(Rung {
            idea: "four elements an instruction, from shared and from global memory",
            flop_per_byte: tile_ratio(128, 128),
        }),
        ..lesson!(vectorised::vectorised, 128 x 128, "128 x 128 tiles, 8 x 8 elements a thread, 128-bit accesses")
    },
    Design {
        rung: Some(Rung {
            idea: "8 x 16 elements a thread: 24 read for 128 multiply-adds",
            flop_per_byte: tile_ratio(128, 256),
        }),
        ..lesson!(warp_tiled::warp_tiled, 128 x 256, "128 x 256 tiles, 64 x 64 a warp, 8 x 16 elements a thread")
    },
    Design {
        rung: Some(Rung {
            idea: "copies that go on by themselves, two phases ahead, past the registers",
            flop_per_byte: tile_ratio(128, 256),
        }),
        // On Hopper it is used by name only: a C whose rows are not 16-byte aligned takes it 30 us
        // a tile.
        on_gpu: speed! { gflops: 322.0, alone: 1.0, fixed_us: 6.0, tile_us: [1.0, 1.5], of: Products::OtherGpus },
        ..lesson!(async_copy::async_copy, 128 x 256, "128 x 256 tiles by asynchronous copies, three stages")
    },
    Design {
        rung: Some(Rung {
            idea: "a warp multiplies 16 x 16 elements by 16 x 16 together, in two instructions",
            flop_per_byte: bf16_ratio(16, 16),
        }),
        ..lesson!(tensor::mma::tensor_mma, 32 x 32; "tensor cores fed from global memory")
    },
    Design {
        rung: Some(Rung {
            idea: "tiles in shared memory, read by `ldmatrix`; swizzled, so that there are no bank conflicts",
            flop_per_byte: bf16_ratio(128, 128),
        }),
        ..lesson!(tensor::ldmatrix::tensor_ldmatrix, 128 x 128; "128 x 128 tiles in shared memory, fragments by `ldmatrix`")
    },
    Design {
        rung: Some(Rung {
            idea: "the next tiles are on their way while one is multiplied",
            flop_per_byte: bf16_ratio(128, 128),
        }),
        ..lesson!(tensor::cp_async::tensor_cp_async, 128 x 128; "128 x 128 tiles, three stages by `cp.async`")
    },
    Design {
        rung: Some(Rung {
            idea: "one instruction of four warps multiplies 64 x 256 x 16 elements of shared memory",
            flop_per_byte: bf16_ratio(64, 256),
        }),
        ..lesson!(tensor::wgmma::tensor_wgmma, 64 x 256; "64 x 256 tiles, `wgmma` of one warpgroup, four stages by `cp.async`")
    },
    Design {
        rung: Some(Rung {
            idea: "one thread copies whole boxes, swizzled and with zeros outside; an mbarrier counts their bytes",
            flop_per_byte: bf16_ratio(64, 256),
        }),
        ..lesson!(tensor::tma::tensor_tma, 64 x 256, tma(); "64 x 256 tiles, four stages by TMA")
    },
    Design {
        rung: Some(Rung {
            idea: "a warp that only loads; no barrier in the loop, and MMAs of two stages are queued",
            flop_per_byte: bf16_ratio(64, 256),
        }),
        ..lesson!(tensor::producer::tensor_producer, 64 x 256, tma(); "64 x 256 tiles, a producer warp and a ring of four stages")
    },
    Design {
        rung: Some(Rung {
            idea: "two warpgroups share the columns of B, and take the producer's registers",
            flop_per_byte: bf16_ratio(128, 256),
        }),
        ..lesson!(tensor::wide::tensor_wide, 128 x 256, tma(); "128 x 256 tiles, two warpgroups of consumers")
    },
    Design {
        rung: Some(Rung {
            idea: "a block goes on to its next tile with a full ring; tiles of one time share operands in L2",
            flop_per_byte: bf16_ratio(128, 256),
        }),
        ..lesson!(tensor::persistent::tensor_persistent, 128 x 256, tma(), persistent(1); "128 x 256 tiles, persistent CTAs in raster groups")
    },
    Design {
        rung: Some(Rung {
            idea: "two blocks load B for each other",
            flop_per_byte: bf16_ratio(256, 256),
        }),
        ..lesson!(tensor::cluster::tensor_cluster, 256 x 256, tma(), persistent(2); "256 x 256 tiles of two blocks, B by multicast")
    },
    Design {
        rung: Some(Rung {
            idea: "C is stored from shared memory by TMA, while the next tile is multiplied",
            flop_per_byte: bf16_ratio(256, 256),
        }),
        ..lesson!(tensor::tma_store::tensor_tma_store, 256 x 256, tma(), persistent(2), tma_store(); "256 x 256 tiles of two blocks, C stored by TMA")
    },
    Design {
        on_gpu: speed! { gflops: 61.0, alone: 0.2, fixed_us: 1.5, tile_us: [0.3, 0.3] },
        ..lesson!(rust_cuda::rust_cuda_tiled16, 16 x 16, "tiled16 in Rust-CUDA's idiom: raw pointers, `cuda_std`'s vocabulary")
    },
    Design {
        on_gpu: speed! { gflops: 61.0, alone: 0.2, fixed_us: 1.5, tile_us: [0.3, 0.3] },
        ..lesson!(tiled_submatrix::tiled_submatrix, 16 x 16, "tiled16 by a matrix type with a stride, whose sub-matrices are matrices")
    },
    product! { gemm::gemm_f32_32x32x8: Row::gemm([F32, F32], [32, 32, 8]); gpu { gflops: 160.0, alone: 0.27, fixed_us: 3.0, tile_us: [0.25, 0.35] }; cpu { gflops: 8.0, alone: 1.0, fixed_us: 20.0 } },
    // Fitted to random shapes on an H100 (docs/log/general-product.md, "Through registers").
    product! { gemm::gemm_f32_64x64x16: Row::gemm([F32, F32], [64, 64, 16]); gpu { gflops: 250.0, alone: 0.22, fixed_us: 4.0, tile_us: [1.0, 1.1] }; cpu { gflops: 11.0, alone: 1.0, fixed_us: 40.0 } },
    product! { gemm::gemm_f32_64x32x16: Row::gemm([F32, F32], [64, 32, 16]); gpu { gflops: 205.0, alone: 0.22, fixed_us: 4.0, tile_us: [0.4, 0.45] }; cpu { gflops: 12.0, alone: 1.0, fixed_us: 40.0 } },
    product! { gemm::gemm_f32_64x16x16: Row::gemm([F32, F32], [64, 16, 16]); gpu { gflops: 145.0, alone: 0.22, fixed_us: 4.0, tile_us: [0.3, 0.3] }; cpu { gflops: 7.0, alone: 1.0, fixed_us: 40.0 } },
    product! { gemm::gemm_f32_128x128x8: Row::gemm([F32, F32], [128, 128, 8]); gpu { gflops: 310.0, alone: 0.87, fixed_us: 5.5, tile_us: [0.8, 2.0] }; cpu { gflops: 16.0, alone: 1.0, fixed_us: 40.0 } },
    product! { gemm::gemm_f32_4x64x1: Row::gemm([F32, F32], [4, 64, 1]); cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 } },
    // Fitted to products of few rows or columns on an H100 (docs/log/dot-products.md).
    product! { gemm::gemm_f32_dot: Row::dot([F32, F32], &dot::TILES); gpu { gflops: 110.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.45, 0.45] } },
    product! { tma::tma_f32_128x128x32_nn: Row::tma([128, 128, 32], Layout::NN); gpu { gflops: 410.0, alone: 0.87, fixed_us: 6.0, tile_us: [1.2, 6.5] } },
    product! { tma::tma_f32_128x128x32_tn: Row::tma([128, 128, 32], Layout::TN); gpu { gflops: 410.0, alone: 0.87, fixed_us: 6.0, tile_us: [1.2, 6.5] } },
    product! { tma::tma_f32_64x64x64_nn: Row::tma([64, 64, 64], Layout::NN).split_k(8); gpu { gflops: 385.0, alone: 0.87, fixed_us: 4.5, tile_us: [0.3, 2.6] } },
    product! { tma::tma_f32_64x64x64_tn: Row::tma([64, 64, 64], Layout::TN).split_k(8); gpu { gflops: 385.0, alone: 0.87, fixed_us: 4.5, tile_us: [0.3, 2.6] } },
    product! { tma::tma_f32_72x80x8_nn: Row::tma([72, 80, 8], Layout::NN); gpu { gflops: 392.0, alone: 1.0, fixed_us: 3.9, tile_us: [1.4, 3.2] } },
    product! { tma::tma_f32_72x80x8_ua4_nn: Row::tma([72, 80, 8], Layout::NN).unaligned(4); gpu { gflops: 389.0, alone: 1.0, fixed_us: 4.5, tile_us: [1.4, 3.7] } },
    product! { tma::tma_f32_16x256x32_nn: Row::tma([16, 256, 32], Layout::NN).split_k(8); gpu { gflops: 360.0, alone: 0.87, fixed_us: 4.3, tile_us: [1.5, 1.9] } },
    product! { tma::tma_f32_256x16x32_nn: Row::tma([256, 16, 32], Layout::NN).split_k(8); gpu { gflops: 360.0, alone: 0.87, fixed_us: 4.3, tile_us: [1.8, 1.8] } },
    product! { gemm::gemm_f64_64x64x16: Row::gemm([F64, F64], [64, 64, 16]); gpu { gflops: 100.0, alone: 0.3, fixed_us: 3.0, tile_us: [0.8, 0.8] }; cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 } },
    product! { gemm::gemm_f64_4x64x1: Row::gemm([F64, F64], [4, 64, 1]); cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 } },
    // Fitted to random shapes on an H100.
    product! { gemm::gemm_half_64x64x16: Row::gemm([HALF, HALF], [64, 64, 16]); gpu { gflops: 180.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }; cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 } },
    product! { gemm::gemm_half_f32_64x64x16: Row::gemm([HALF, F32], [64, 64, 16]); gpu { gflops: 180.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }; cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 } },
    product! { gemm::gemm_half_4x64x1: Row::gemm([HALF, HALF], [4, 64, 1]); cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 } },
    product! { gemm::gemm_half_f32_4x64x1: Row::gemm([HALF, F32], [4, 64, 1]); cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 } },
    product! { gemm::gemm_half_dot: Row::dot([HALF, HALF], &dot::TILES); gpu { gflops: 110.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.45, 0.45] } },
    product! { gemm::gemm_half_f32_dot: Row::dot([HALF, F32], &dot::TILES); gpu { gflops: 110.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.45, 0.45] } },
    // Not measured on the GPUs that they are for. Derived from the time that an SM takes to read a
    // stage from shared memory, or to multiply it. (On an H200: 1446 and 2075 at 2048³.)
    product! { mma::mma_half_64x64x64: Row::mma([HALF, HALF], [64, 64, 64]); gpu { gflops: 1500.0, alone: 0.5, fixed_us: 4.0, tile_us: [0.8, 0.8], of: Products::OtherGpus } },
    product! { mma::mma_half_f32_64x64x64: Row::mma([HALF, F32], [64, 64, 64]); gpu { gflops: 1500.0, alone: 0.5, fixed_us: 4.0, tile_us: [0.8, 0.8], of: Products::OtherGpus } },
    product! { mma::mma_half_128x128x32: Row::mma([HALF, HALF], [128, 128, 32]); gpu { gflops: 2600.0, alone: 0.7, fixed_us: 4.5, tile_us: [0.8, 0.8], of: Products::OtherGpusAligned } },
    product! { mma::mma_half_f32_128x128x32: Row::mma([HALF, F32], [128, 128, 32]); gpu { gflops: 2600.0, alone: 0.7, fixed_us: 4.5, tile_us: [0.8, 0.8], of: Products::OtherGpusAligned } },
    // Fitted to random shapes on an H100, for operands that `wgmma` cannot read as they are.
    product! { mma::mma_tf32_64x64x32: Row::mma([F32, F32], [64, 64, 32]).scheme(Scheme::Tf32); gpu { gflops: 711.0, alone: 0.35, fixed_us: 6.0, tile_us: [1.6, 2.0] } },
    // Not measured on the GPUs that it is for (on an H200: 936). Estimated from an A100's published
    // 156 TFLOP/s in tf32, which is 1444 GFLOP/s per SM, and from the share of the MMA time that
    // reading shared memory and rounding take (docs/log/mma.md).
    product! { mma::mma_tf32_128x128x32: Row::mma([F32, F32], [128, 128, 32]).scheme(Scheme::Tf32); gpu { gflops: 1050.0, alone: 0.7, fixed_us: 4.5, tile_us: [0.8, 0.8], of: Products::OtherGpusAligned } },
    // Fitted on an H200 to cubes, to 64x64x100000 and to 4096x4096x16 (docs/log/mma.md, "f64").
    product! { mma::mma_f64_64x64x32: Row::mma([F64, F64], [64, 64, 32]); gpu { gflops: 365.0, alone: 0.66, fixed_us: 5.0, tile_us: [1.6, 1.6] } },
    product! { mma::mma_f64_128x128x32: Row::mma([F64, F64], [128, 128, 32]); gpu { gflops: 403.0, alone: 1.0, fixed_us: 5.5, tile_us: [8.0, 8.0] } },
    // Fitted to 1024³ and 2048³. Larger products are slower, all of them alike, where the power
    // limit slows the card.
    product! { wgmma::wgmma_half_128x256x64: Row::wgmma([HALF, HALF], [128, 256, 64]); gpu { gflops: 6000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] } },
    product! { wgmma::wgmma_half_f32_128x256x64: Row::wgmma([HALF, F32], [128, 256, 64]); gpu { gflops: 6000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] } },
    product! { wgmma::wgmma_half_256x256x64_c2: Row::wgmma([HALF, HALF], [256, 256, 64]).cluster(2); gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] } },
    product! { wgmma::wgmma_half_f32_256x256x64_c2: Row::wgmma([HALF, F32], [256, 256, 64]).cluster(2); gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] } },
    // Fitted to 2304³, 3072³ and 4096³, together with the 256 x 256 tiles.
    product! { wgmma::wgmma_half_256x192x64_c2: Row::wgmma([HALF, HALF], [256, 192, 64]).cluster(2); gpu { gflops: 5900.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.2] } },
    product! { wgmma::wgmma_half_f32_256x192x64_c2: Row::wgmma([HALF, F32], [256, 192, 64]).cluster(2); gpu { gflops: 5900.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.2] } },
    // The speed of the aligned kernel of the same tile.
    product! { wgmma::wgmma_half_256x256x64_c2_ua8_nn: Row::wgmma([HALF, HALF], [256, 256, 64]).cluster(2).unaligned(8).packs_tail(); gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] } },
    product! { wgmma::wgmma_half_f32_256x256x64_c2_ua8_nn: Row::wgmma([HALF, F32], [256, 256, 64]).cluster(2).unaligned(8).packs_tail(); gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] } },
    product! { wgmma::wgmma_half_256x256x64_c2_ua16_nn: Row::wgmma([HALF, HALF], [256, 256, 64]).cluster(2).unaligned(16).packs_tail(); gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] } },
    product! { wgmma::wgmma_half_f32_256x256x64_c2_ua16_nn: Row::wgmma([HALF, F32], [256, 256, 64]).cluster(2).unaligned(16).packs_tail(); gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] } },
    product! { wgmma::wgmma_half_128x128x64: Row::wgmma([HALF, HALF], [128, 128, 64]).split_k(8); gpu { gflops: 5000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.8] } },
    product! { wgmma::wgmma_half_f32_128x128x64: Row::wgmma([HALF, F32], [128, 128, 64]).split_k(8); gpu { gflops: 5000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.8] } },
    // Fitted to 512³, 1024³ and 16 x 4096 x 4096.
    product! { wgmma::wgmma_half_64x128x64: Row::wgmma([HALF, HALF], [64, 128, 64]).split_k(8); gpu { gflops: 5900.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] } },
    product! { wgmma::wgmma_half_f32_64x128x64: Row::wgmma([HALF, F32], [64, 128, 64]).split_k(8); gpu { gflops: 5900.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] } },
    product! { wgmma::wgmma_half_128x64x64: Row::wgmma([HALF, HALF], [128, 64, 64]).split_k(8); gpu { gflops: 5500.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.75, 1.6] } },
    product! { wgmma::wgmma_half_f32_128x64x64: Row::wgmma([HALF, F32], [128, 64, 64]).split_k(8); gpu { gflops: 5500.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.75, 1.6] } },
    product! { wgmma::wgmma_half_64x64x64: Row::wgmma([HALF, HALF], [64, 64, 64]).split_k(8); gpu { gflops: 2800.0, alone: 0.5, fixed_us: 2.2, tile_us: [0.45, 0.7] } },
    product! { wgmma::wgmma_half_f32_64x64x64: Row::wgmma([HALF, F32], [64, 64, 64]).split_k(8); gpu { gflops: 2800.0, alone: 0.5, fixed_us: 2.2, tile_us: [0.45, 0.7] } },
    // Fitted to 64 x 4096 x 4096. Pipelines with many stages are for memory-bound products, and
    // were measured on nothing else.
    product! { wgmma::wgmma_half_64x64x64_s12: Row::wgmma([HALF, HALF], [64, 64, 64]).stages(12).split_k(8); gpu { gflops: 5000.0, alone: 1.0, fixed_us: 2.0, tile_us: [0.6, 1.45], of: Products::ShorterSide(17) } },
    product! { wgmma::wgmma_half_f32_64x64x64_s12: Row::wgmma([HALF, F32], [64, 64, 64]).stages(12).split_k(8); gpu { gflops: 5000.0, alone: 1.0, fixed_us: 2.0, tile_us: [0.6, 1.45], of: Products::ShorterSide(17) } },
    // Fitted to 16 x 4096 x 4096, whole and with a split of two, and to tall products. With 16
    // columns an MMA waits for the end of the one before.
    product! { wgmma::wgmma_half_64x16x64: Row::wgmma([HALF, HALF], [64, 16, 64]).split_k(8); gpu { gflops: 840.0, alone: 1.0, fixed_us: 1.5, tile_us: [1.05, 1.45], of: Products::Columns(64) } },
    product! { wgmma::wgmma_half_f32_64x16x64: Row::wgmma([HALF, F32], [64, 16, 64]).split_k(8); gpu { gflops: 840.0, alone: 1.0, fixed_us: 1.5, tile_us: [1.05, 1.45], of: Products::Columns(64) } },
    // Fitted to random shapes on an H100: 1440 and 970 at 1958³, 1630 and 990 with few tiles.
    product! { wgmma::wgmma_half_64x128x64_ldg: Row::wgmma([HALF, HALF], [64, 128, 64]).ldg(); gpu { gflops: 1480.0, alone: 1.0, fixed_us: 2.7, tile_us: [0.3, 0.3] } },
    product! { wgmma::wgmma_half_f32_64x128x64_ldg: Row::wgmma([HALF, F32], [64, 128, 64]).ldg(); gpu { gflops: 1480.0, alone: 1.0, fixed_us: 2.7, tile_us: [0.3, 0.3] } },
    product! { wgmma::wgmma_half_64x64x64_ldg: Row::wgmma([HALF, HALF], [64, 64, 64]).ldg(); gpu { gflops: 970.0, alone: 1.0, fixed_us: 2.2, tile_us: [0.5, 0.5] } },
    product! { wgmma::wgmma_half_f32_64x64x64_ldg: Row::wgmma([HALF, F32], [64, 64, 64]).ldg(); gpu { gflops: 970.0, alone: 1.0, fixed_us: 2.2, tile_us: [0.5, 0.5] } },
    // Faster than CTAs without a cluster by 0.2 to 1 %.
    product! { wgmma_tf32::wgmma_tf32_256x256x32_c2_nn: Row::wgmma_tf32([256, 256, 32]).cluster(2); gpu { gflops: 3120.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] } },
    // At 3072³ a wave of these tiles takes 0.777 of the time of a wave of 256 x 256.
    product! { wgmma_tf32::wgmma_tf32_192x256x32_c2_nn: Row::wgmma_tf32([192, 256, 32]).cluster(2); gpu { gflops: 3010.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] } },
    // Fitted to 1024³ and 2048³.
    product! { wgmma_tf32::wgmma_tf32_256x128x32_nn: Row::wgmma_tf32([256, 128, 32]); gpu { gflops: 3100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 2.0] } },
    product! { wgmma_tf32::wgmma_tf32_128x128x32_nn: Row::wgmma_tf32([128, 128, 32]); gpu { gflops: 2700.0, alone: 1.0, fixed_us: 3.5, tile_us: [0.8, 2.3] } },
    product! { wgmma_tf32::wgmma_tf32_128x64x32_nn: Row::wgmma_tf32([128, 64, 32]); gpu { gflops: 1950.0, alone: 1.0, fixed_us: 3.5, tile_us: [0.6, 1.9] } },
    // The speed of the aligned kernel of the same tile.
    product! { wgmma_tf32::wgmma_tf32_256x256x32_c2_ua8_nn: Row::wgmma_tf32([256, 256, 32]).cluster(2).unaligned(8); gpu { gflops: 3120.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] } },
    product! { wgmma_tf32::wgmma_tf32_128x64x32_ua8_nn: Row::wgmma_tf32([128, 64, 32]).unaligned(8); gpu { gflops: 1950.0, alone: 1.0, fixed_us: 3.5, tile_us: [0.6, 1.9] } },
    // The rate that 80 bytes a nanosecond allow. An SM draws as much from L2 for tiles of 128 x 64.
    // 512³ and 16 x 4096 x 4096 take as long as this predicts.
    product! { wgmma_tf32::wgmma_tf32_32x32x32_nn: Row::wgmma_tf32([32, 32, 32]).split_k(8); gpu { gflops: 640.0, alone: 1.0, fixed_us: 4.0, tile_us: [1.0, 1.5] } },
    product! { wgmma_tf32::wgmma_tf32_64x32x32_nn: Row::wgmma_tf32([64, 32, 32]).split_k(8); gpu { gflops: 850.0, alone: 1.0, fixed_us: 4.5, tile_us: [1.2, 1.9] } },
    // 256 x 128 was fitted to 1024³, 2048³ and 4096³. In sustained mode 256 x 192 is faster by 1, 3
    // and 0.4 % at 4096³, 8192³ and 16384³.
    product! { emulated::wgmma_bf16x6_256x192x64_c2: Row::emulated(Scheme::Bf16x6, [256, 192, 64]).cluster(2).or(128); gpu { gflops: 1040.0, alone: 1.0, fixed_us: 5.0, tile_us: [0.8, 0.8] } },
    product! { emulated::wgmma_bf16x6_256x128x64_c2: Row::emulated(Scheme::Bf16x6, [256, 128, 64]).cluster(2); gpu { gflops: 1020.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] } },
    product! { emulated::wgmma_bf16x6_64x128x64: Row::emulated(Scheme::Bf16x6, [64, 128, 64]); gpu { gflops: 780.0, alone: 1.0, fixed_us: 4.0, tile_us: [0.8, 0.8] } },
    // Measured in one burst each: 256 x 192 at 8192³, 256 x 128 at 4096³ and 8192³. The value of 64
    // x 128 is a guess. In sustained mode the wider tiles are faster by 4 to 7 %; in short bursts
    // at 4096³ they are slower by 2 %.
    product! { emulated::wgmma_f16x3_256x192x64_c2: Row::emulated(Scheme::F16x3, [256, 192, 64]).cluster(2).or(128); gpu { gflops: 1930.0, alone: 1.0, fixed_us: 5.0, tile_us: [0.8, 0.8] } },
    product! { emulated::wgmma_f16x3_256x128x64_c2: Row::emulated(Scheme::F16x3, [256, 128, 64]).cluster(2); gpu { gflops: 1900.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] } },
    product! { emulated::wgmma_f16x3_64x128x64: Row::emulated(Scheme::F16x3, [64, 128, 64]); gpu { gflops: 1450.0, alone: 1.0, fixed_us: 4.0, tile_us: [0.8, 0.8] } },
    Design {
        on_gpu: speed! { gflops: 61.0, alone: 0.2, fixed_us: 1.5, tile_us: [0.3, 0.3] },
        ..program!(
            lessons::padded::padded16,
            Example("padding"),
            "tiled16 without boundary checks, for sizes that are multiples of 16"
        )
    },
    program!(
        lessons::tiled_transposed::tiled_transposed,
        Example("transposed_b"),
        "tiled_uncoalesced for a B that the CPU has transposed"
    ),
    program!(lessons::vec_add::vec_add, Example("vec_add"), "c = a + b, one thread an element"),
    program!(
        lessons::blur::blur,
        Command("blur"),
        "image blur, every pixel of a box from global memory"
    ),
    program!(
        lessons::blur::blur_shared,
        Command("blur"),
        "image blur, a tile and its halo in shared memory"
    ),
    program!(
        lessons::memories::register_counter,
        Example("memories"),
        "a variable in a register: every thread counts for itself"
    ),
    program!(
        lessons::memories::shared_counter,
        Example("memories"),
        "a variable in shared memory: every block counts from zero"
    ),
    program!(
        lessons::memories::global_counter,
        Example("memories"),
        "a variable in global memory: every launch goes on counting"
    ),
    program!(
        lessons::memories::pointed_negation,
        Example("symbols"),
        "a pointer in global memory: x = -x where the host lets it point"
    ),
    program!(
        lessons::memories::constant_polynomial,
        Example("symbols"),
        "variables in constant memory: a polynomial's coefficients"
    ),
    program!(
        kernels::pack::pack_rows,
        Product,
        "matrices packed for TMA, with 16-byte aligned rows"
    ),
    program!(kernels::pack::transpose_rows, Product, "matrices transposed for TMA"),
    program!(kernels::pack::pack_rows_u16, Product, "matrices of 16-bit elements packed for TMA"),
    program!(
        kernels::pack::transpose_rows_u16,
        Product,
        "matrices of 16-bit elements transposed for TMA"
    ),
    program!(kernels::reduce::reduce_f32, Product, "the sum of partial products, with C of f32"),
    program!(kernels::reduce::reduce_f64, Product, "the sum of partial products, with C of f64"),
    program!(
        kernels::reduce::reduce_half,
        Product,
        "the sum of partial products, with C of bf16 or f16"
    ),
    program!(
        kernels::emulated::split_bf16x3::split_bf16x3,
        Product,
        "f32 matrices split into three slices of bf16"
    ),
    program!(
        kernels::emulated::split_f16x2::split_f16x2,
        Product,
        "f32 matrices split into two scaled slices of f16"
    ),
    program!(
        lessons::pitched::row_sums,
        Example("pitched"),
        "the sums of the rows of a pitched array"
    ),
    program!(
        lessons::pitched::scale_box,
        Example("pitched"),
        "a pitched array of three dimensions times a number, in place"
    ),
];

/// All variants of all kernels, in the order of [`DESIGNS`].
pub static KERNELS: LazyLock<Vec<Entry>> =
    LazyLock::new(|| DESIGNS.iter().flat_map(Design::entries).collect());

/// The tiled kernel that is small enough to be followed by eye. It runs on the CPU device alone and
/// is in no list.
pub static TOY: LazyLock<Entry> = LazyLock::new(|| {
    lesson!(toy::tiled2, 2 x 2, "the tiled kernel with 2 x 2 tiles, to be followed phase by phase")
        .entries()
        .remove(0)
});

/// Finds a kernel by its name.
pub fn find(name: &str) -> Option<&'static Entry> {
    KERNELS.iter().find(|entry| entry.name() == name)
}

/// The rungs of the course on CUDA cores, first to last.
pub fn ladder() -> impl Iterator<Item = (&'static Entry, &'static Rung)> {
    ladder_of(Type::F32)
}

/// The rungs of a ladder, first to last: of f32 on CUDA cores, or of bf16 on tensor cores.
pub fn ladder_of(operands: Type) -> impl Iterator<Item = (&'static Entry, &'static Rung)> {
    let rungs = KERNELS.iter().filter_map(|entry| Some((entry, entry.rung.as_ref()?)));
    rungs.filter(move |(entry, _)| {
        entry.product.as_ref().is_some_and(|product| product.variant.operands == operands)
    })
}

/// The products of f32 that the profiler can count and trace, in the order of [`KERNELS`]: the
/// lessons on CUDA cores, and the general products.
pub fn products() -> impl Iterator<Item = (&'static Entry, &'static Product)> {
    KERNELS.iter().filter_map(|entry| {
        let product = entry.product.as_ref()?;
        product.is_of_f32_views().then_some((entry, product))
    })
}
