//! The list of all kernels: a new kernel is a new file, an entry here, and the file's name in `registry/sources.rs`.
//!
//! The command's `kernels`, the tests, the benchmarks and the documentation's tables all read it. What an entry says is
//! `registry/contract.rs`'s.

mod contract;
mod design;
#[macro_use]
mod entries;
mod representatives;
mod sources;

use std::sync::LazyLock;

use simt::{Constants, device::BoxShape};

use self::entries::{PLAIN, SLAB_STEPS, tile_ratio, wgmma_boxes};
pub use self::{
    contract::*,
    design::*,
    representatives::REPRESENTATIVES,
    sources::{source, text},
};
use crate::kernels::{basic::BLOCK, gemm_tma::SLAB, gemm_wgmma::DEPTH, gemm_wgmma_tf32};

/// Every kernel's source, in the order in which they are taught.
pub static DESIGNS: &[Design] = &[
    Design {
        summary: "one thread an element, everything from global memory",
        rung: Some(Rung {
            idea: "the triple loop with its two outer loops spread over threads",
            flop_per_byte: 0.25,
        }),
        contract: Contract::Product(Product {
            block: [BLOCK as u32, BLOCK as u32, 1],
            tile: [BLOCK as u32, BLOCK as u32],
            kernel: views!(basic::basic),
        }),
        ..PLAIN
    },
    Design {
        summary: "16 x 16 tiles, B read down its columns",
        rung: Some(Rung {
            idea: "what a block reads from global memory, all its threads use; but a warp reads B down its columns",
            flop_per_byte: tile_ratio(16, 16),
        }),
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: views!(tiled_uncoalesced::tiled_uncoalesced),
        }),
        ..PLAIN
    },
    Design {
        summary: "16 x 16 tiles, B's transposed in shared memory",
        rung: Some(Rung {
            idea: "neighbouring threads read neighbouring elements of B; but its tile lies transposed, in two banks",
            flop_per_byte: tile_ratio(16, 16),
        }),
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: views!(tiled_conflicts::tiled_conflicts),
        }),
        ..PLAIN
    },
    Design {
        summary: "16 x 16 tiles in shared memory, two barriers a phase",
        rung: Some(Rung {
            idea: "both tiles lie as they are read: no bank conflicts",
            flop_per_byte: tile_ratio(16, 16),
        }),
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: views!(tiled::tiled16),
        }),
        on_gpu: speed!(61.0, 0.3, 1.5),
        ..PLAIN
    },
    Design {
        summary: "32 x 32 tiles in shared memory, two barriers a phase",
        rung: Some(Rung {
            idea: "a tile of twice the width: each loaded element is used twice as often",
            flop_per_byte: tile_ratio(32, 32),
        }),
        contract: Contract::Product(Product {
            block: [32, 32, 1],
            tile: [32, 32],
            kernel: views!(tiled::tiled32),
        }),
        on_gpu: speed!(67.0, 0.65, 2.0),
        ..PLAIN
    },
    Design {
        summary: "outer products: an element of B in a register, A's tile shared, 16 elements of C a thread",
        rung: Some(Rung {
            idea: "one element of B in a register serves 16 multiply-adds, and 128 bits of A's tile four",
            flop_per_byte: tile_ratio(16, 64),
        }),
        contract: Contract::Product(Product {
            block: [64, 1, 1],
            tile: [16, 64],
            kernel: views!(outer_product::outer_product),
        }),
        ..PLAIN
    },
    Design {
        summary: "outer products, 16 steps of k unrolled",
        rung: Some(Rung {
            idea: "no loop around a step of k, and 16 reads of B that do not wait for each other",
            flop_per_byte: tile_ratio(16, 64),
        }),
        contract: Contract::Product(Product {
            block: [64, 1, 1],
            tile: [16, 64],
            kernel: views!(unrolled::unrolled),
        }),
        ..PLAIN
    },
    Design {
        summary: "outer products, the next tile of A read ahead",
        rung: Some(Rung {
            idea: "the next tile is on its way while this one is multiplied, and one barrier a phase is enough",
            flop_per_byte: tile_ratio(16, 64),
        }),
        contract: Contract::Product(Product {
            block: [64, 1, 1],
            tile: [16, 64],
            kernel: views!(prefetched::prefetched),
        }),
        ..PLAIN
    },
    Design {
        summary: "128 x 128 tiles, 8 x 8 elements a thread",
        rung: Some(Rung {
            idea: "8 x 8 elements of C a thread: 16 elements read for 64 multiply-adds",
            flop_per_byte: tile_ratio(128, 128),
        }),
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [128, 128],
            kernel: views!(register_blocked::register_blocked),
        }),
        ..PLAIN
    },
    Design {
        summary: "128 x 128 tiles, 8 x 8 elements a thread, 128-bit accesses",
        rung: Some(Rung {
            idea: "four elements an instruction, from shared and from global memory",
            flop_per_byte: tile_ratio(128, 128),
        }),
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [128, 128],
            kernel: views!(vectorised::vectorised),
        }),
        ..PLAIN
    },
    Design {
        summary: "128 x 256 tiles, 64 x 64 a warp, 8 x 16 elements a thread",
        rung: Some(Rung {
            idea: "8 x 16 elements a thread: 24 read for 128 multiply-adds",
            flop_per_byte: tile_ratio(128, 256),
        }),
        contract: Contract::Product(Product {
            block: [256, 1, 1],
            tile: [128, 256],
            kernel: views!(warp_tiled::warp_tiled),
        }),
        ..PLAIN
    },
    Design {
        summary: "128 x 256 tiles by asynchronous copies, three stages",
        rung: Some(Rung {
            idea: "copies that go on by themselves, two phases ahead, past the registers",
            flop_per_byte: tile_ratio(128, 256),
        }),
        contract: Contract::Product(Product {
            block: [256, 1, 1],
            tile: [128, 256],
            kernel: views!(async_copy::async_copy),
        }),
        on_gpu: speed!(322.0, 1.0, 6.0),
        ..PLAIN
    },
    Design {
        summary: "tiled16 in Rust-CUDA's idiom: raw pointers, `cuda_std`'s vocabulary",
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: pointers!(rust_cuda::rust_cuda_tiled16),
        }),
        on_gpu: speed!(61.0, 0.3, 1.5),
        ..PLAIN
    },
    Design {
        summary: "tiled16 by a matrix type with a stride, whose sub-matrices are matrices",
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: views!(tiled_submatrix::tiled_submatrix),
        }),
        on_gpu: speed!(61.0, 0.3, 1.5),
        ..PLAIN
    },
    Design {
        summary: "general product, 32 x 32 tiles, 4 x 4 elements a thread",
        contract: Contract::Product(Product {
            block: [64, 1, 1],
            tile: [32, 32],
            kernel: ProductKernel::Gemm(gemm!(gemm_32)),
        }),
        on_gpu: speed!(200.0, 0.22, 3.0),
        on_cpu: speed!(8.0, 1.0, 20.0),
        ..PLAIN
    },
    Design {
        summary: "general product, 64 x 64 tiles, 4 x 4 elements a thread",
        contract: Contract::Product(Product {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: ProductKernel::Gemm(gemm!(gemm_64)),
        }),
        on_gpu: speed!(238.0, 0.65, 4.0),
        on_cpu: speed!(11.0, 1.0, 40.0),
        ..PLAIN
    },
    Design {
        summary: "general product, 128 x 128 tiles, 8 x 8 elements a thread",
        contract: Contract::Product(Product {
            block: [256, 1, 1],
            tile: [128, 128],
            kernel: ProductKernel::Gemm(gemm!(gemm_128)),
        }),
        on_gpu: speed!(310.0, 0.87, 6.0),
        on_cpu: speed!(16.0, 1.0, 40.0),
        ..PLAIN
    },
    Design {
        summary: "general, 128 x 128 tiles by tensor copies; A or B along k",
        contract: tensor!(gemm_tma_128_nn, 128, 128, SLAB_STEPS, 1, n, n),
        on_gpu: speed!(410.0, 0.87, 5.0),
        ..PLAIN
    },
    Design {
        summary: "general, 128 x 128 tiles by tensor copies; A along m, B along n",
        contract: tensor!(gemm_tma_128_tn, 128, 128, SLAB_STEPS, 1, t, n),
        on_gpu: speed!(410.0, 0.87, 5.0),
        ..PLAIN
    },
    Design {
        summary: "general, 64 x 64 tiles by tensor copies, k over a cluster; A or B along k",
        contract: tensor!(gemm_tma_64_nn, 64, 64, 2 * SLAB_STEPS, 8, n, n),
        on_gpu: speed!(385.0, 0.87, 5.4),
        ..PLAIN
    },
    Design {
        summary: "general, 64 x 64 tiles by tensor copies, k over a cluster; A along m, B along n",
        contract: tensor!(gemm_tma_64_tn, 64, 64, 2 * SLAB_STEPS, 8, t, n),
        on_gpu: speed!(385.0, 0.87, 5.4),
        ..PLAIN
    },
    Design {
        summary: "general, 72 x 80 tiles from rings with producers; A or B along k",
        contract: tensor!(gemm_tma_72x80_nn, 72, 80, 8, 1, n, n),
        on_gpu: speed!(392.0, 1.0, 3.9),
        ..PLAIN
    },
    Design {
        summary: "general, 72 x 80 tiles from rings with producers; A's rows begin anywhere",
        contract: Contract::TensorProduct(TensorProduct {
            tile: [72, 80],
            steps: 8,
            most_splits: 1,
            a: BoxShape { rows: 72 / 4, cols: SLAB, swizzle: SLAB * 4 },
            b: BoxShape { rows: SLAB + 4, cols: 80, swizzle: 0 },
            along_k: [true, false],
            is_one_of_four: false,
            walkers: None,
            narrow: None,
            constants: Constants::NONE,
            kernel: TensorKernel::ShiftedA {
                kernel: &crate::kernels::gemm_tma::gemm_tma_72x80_on,
                checked: &crate::checked::kernels::gemm_tma::gemm_tma_72x80_on,
            },
        }),
        on_gpu: speed!(389.0, 1.0, 4.2),
        ..PLAIN
    },
    Design {
        summary: "general, 16 x 256 tiles by tensor copies, k over a cluster; A or B along k",
        contract: tensor!(gemm_tma_16x256_nn, 16, 256, SLAB_STEPS, 8, n, n),
        on_gpu: speed!(360.0, 0.87, 5.4),
        ..PLAIN
    },
    Design {
        summary: "general, 256 x 16 tiles by tensor copies, k over a cluster; A or B along k",
        contract: tensor!(gemm_tma_256x16_nn, 256, 16, SLAB_STEPS, 8, n, n),
        on_gpu: speed!(360.0, 0.87, 5.4),
        ..PLAIN
    },
    Design {
        summary: "general product of f64, 64 x 64 tiles, 4 x 4 elements a thread",
        contract: Contract::ProductF64(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            constants: Constants::NONE,
            kernel: gemm!(gemm_f64_64),
        }),
        on_gpu: speed!(100.0, 0.3, 3.0),
        on_cpu: speed!(6.0, 1.0, 40.0),
        ..PLAIN
    },
    // Not measured: as fast as this at least.
    cuda_cores! { gemm_bf16_64 gemm_f16_64: half; 100.0, 0.65, 4.0; 6.0, 1.0, 40.0 },
    cuda_cores! { gemm_bf16_f32_64 gemm_f16_f32_64: f32; 100.0, 0.65, 4.0; 6.0, 1.0, 40.0 },
    // Not measured on the devices that they are for: from how long a stage's reads of shared memory, or its products, take a
    // multiprocessor.
    mma! { gemm_mma_64x64 gemm_mma_f16_64x64: half, 64 x 64 by 128; 1500.0, 0.5, 4.0, OtherGpus },
    mma! { gemm_mma_f32_64x64 gemm_mma_f16_f32_64x64: f32, 64 x 64 by 128; 1500.0, 0.5, 4.0, OtherGpus },
    mma! { gemm_mma_128x128 gemm_mma_f16_128x128: half, 128 x 128 by 128; 2600.0, 0.7, 4.5, OtherGpusAligned },
    mma! { gemm_mma_f32_128x128 gemm_mma_f16_f32_128x128: f32, 128 x 128 by 128; 2600.0, 0.7, 4.5, OtherGpusAligned },
    // Nor these (on an H200 430 and 910). Estimated, from an A100's 1444 GFLOP/s a multiprocessor in tf32 (156 TFLOP/s, as
    // published), and how much of the time of products their reads of shared memory and rounding take (docs/measurements.md).
    mma! { gemm_mma_tf32_64x64: tf32, 64 x 64 by 128; 650.0, 0.5, 4.0, OtherGpus },
    mma! { gemm_mma_tf32_128x128: tf32, 128 x 128 by 128; 1050.0, 0.7, 4.5, OtherGpusAligned },
    // Fitted to 1024³ and 2048³. Larger products are slower, all alike, where the card's power limits them.
    wgmma! { gemm_wgmma_128x256 gemm_wgmma_f16_128x256: half, 128 x 256 of 1; 6000.0, 1.0, 4.5 },
    wgmma! { gemm_wgmma_f32_128x256 gemm_wgmma_f16_f32_128x256: f32, 128 x 256 of 1; 6000.0, 1.0, 4.5 },
    wgmma! { gemm_wgmma_256x256 gemm_wgmma_f16_256x256: half, 256 x 256 of 2; 6100.0, 1.0, 4.5 },
    wgmma! { gemm_wgmma_f32_256x256 gemm_wgmma_f16_f32_256x256: f32, 256 x 256 of 2; 6100.0, 1.0, 4.5 },
    // Fitted to 2304³, 3072³ and 4096³, beside those of 256 x 256.
    wgmma! { gemm_wgmma_256x192 gemm_wgmma_f16_256x192: half, 256 x 192 of 2; 5900.0, 1.0, 4.5 },
    wgmma! { gemm_wgmma_f32_256x192 gemm_wgmma_f16_f32_256x192: f32, 256 x 192 of 2; 5900.0, 1.0, 4.5 },
    // As the one of the same tile; and seven more maps to encode, in which the host is not to fall behind, or fifteen.
    wgmma! { gemm_wgmma_256x256_on gemm_wgmma_f16_256x256_on: half, 256 x 256 of 2, o n; 6100.0, 1.0, 9.0 },
    wgmma! { gemm_wgmma_f32_256x256_on gemm_wgmma_f16_f32_256x256_on: f32, 256 x 256 of 2, o n; 6100.0, 1.0, 9.0 },
    wgmma! { gemm_wgmma_256x256_sn gemm_wgmma_f16_256x256_sn: half, 256 x 256 of 2, s n; 6100.0, 1.0, 10.0 },
    wgmma! { gemm_wgmma_f32_256x256_sn gemm_wgmma_f16_f32_256x256_sn: f32, 256 x 256 of 2, s n; 6100.0, 1.0, 10.0 },
    wgmma! { gemm_wgmma_128x128 gemm_wgmma_f16_128x128: half, 128 x 128 in 8; 5000.0, 1.0, 4.5 },
    wgmma! { gemm_wgmma_f32_128x128 gemm_wgmma_f16_f32_128x128: f32, 128 x 128 in 8; 5000.0, 1.0, 4.5 },
    // Fitted to 512³, 1024³ and 16 x 4096 x 4096.
    wgmma! { gemm_wgmma_64x128 gemm_wgmma_f16_64x128: half, 64 x 128 in 8; 5900.0, 1.0, 4.0 },
    wgmma! { gemm_wgmma_f32_64x128 gemm_wgmma_f16_f32_64x128: f32, 64 x 128 in 8; 5900.0, 1.0, 4.0 },
    wgmma! { gemm_wgmma_128x64 gemm_wgmma_f16_128x64: half, 128 x 64 in 8; 5500.0, 1.0, 4.0 },
    wgmma! { gemm_wgmma_f32_128x64 gemm_wgmma_f16_f32_128x64: f32, 128 x 64 in 8; 5500.0, 1.0, 4.0 },
    wgmma! { gemm_wgmma_64x64 gemm_wgmma_f16_64x64: half, 64 x 64 in 8; 2800.0, 0.5, 4.0 },
    wgmma! { gemm_wgmma_f32_64x64 gemm_wgmma_f16_f32_64x64: f32, 64 x 64 in 8; 2800.0, 0.5, 4.0 },
    // Fitted to 64 x 4096 x 4096. Deep rings draw a stream that is multiplied by little, and were measured of nothing else.
    wgmma! { gemm_wgmma_deep_64x64 gemm_wgmma_f16_deep_64x64: half, 64 x 64 in 8; 5000.0, 1.0, 2.0, ShorterSide(17) },
    wgmma! { gemm_wgmma_f32_deep_64x64 gemm_wgmma_f16_f32_deep_64x64: f32, 64 x 64 in 8; 5000.0, 1.0, 2.0, ShorterSide(17) },
    // Fitted to 16 x 4096 x 4096 whole and in two parts. Of an instruction of 16 columns the next one waits for the end.
    wgmma! { gemm_wgmma_64x16 gemm_wgmma_f16_64x16: half, 64 x 16 in 8; 840.0, 1.0, 1.3, Columns(16) },
    wgmma! { gemm_wgmma_f32_64x16 gemm_wgmma_f16_f32_64x16: f32, 64 x 16 in 8; 840.0, 1.0, 1.3, Columns(16) },
    // Fitted to 255 x 170 x 151, 511 x 509 x 513 and 1000 x 700 x 513.
    wgmma_any! { gemm_wgmma_any_64x128 gemm_wgmma_any_f16_64x128: half, 64 x 128; 1245.0, 1.0, 3.4 },
    wgmma_any! { gemm_wgmma_any_f32_64x128 gemm_wgmma_any_f16_f32_64x128: f32, 64 x 128; 1245.0, 1.0, 3.4 },
    wgmma_any! { gemm_wgmma_any_64x64 gemm_wgmma_any_f16_64x64: half, 64 x 64; 860.0, 1.0, 2.7 },
    wgmma_any! { gemm_wgmma_any_f32_64x64 gemm_wgmma_any_f16_f32_64x64: f32, 64 x 64; 860.0, 1.0, 2.7 },
    // Ahead of lone blocks by 0.2 to 1 %.
    wgmma_tf32! { gemm_wgmma_tf32_256x256_nn: 256 x 256 of 2; 3120.0, 1.0, 4.5 },
    // A round of it takes 0.777 of the time of one of 256 x 256, at 3072³.
    wgmma_tf32! { gemm_wgmma_tf32_192x256_nn: 192 x 256 of 2; 3010.0, 1.0, 4.5 },
    // Fitted to 1024³ and 2048³.
    wgmma_tf32! { gemm_wgmma_tf32_256x128_nn: 256 x 128 of 1; 3100.0, 1.0, 4.5 },
    wgmma_tf32! { gemm_wgmma_tf32_128x128_nn: 128 x 128 of 1; 2700.0, 1.0, 4.5 },
    wgmma_tf32! { gemm_wgmma_tf32_128x64_nn: 128 x 64 of 1; 1950.0, 1.0, 4.0 },
    // As those of the same tile, and seven more maps to encode.
    wgmma_tf32! { gemm_wgmma_tf32_256x256_on: 256 x 256 of 2, rows anywhere; 3120.0, 1.0, 9.0 },
    wgmma_tf32! { gemm_wgmma_tf32_128x64_on: 128 x 64 of 1, rows anywhere; 1950.0, 1.0, 8.5 },
    // What 80 bytes a nanosecond are enough for, which a multiprocessor draws from the second-level cache for tiles of 128 x 64.
    // 512³ and 16 x 4096 x 4096 take as long.
    wgmma_tf32! { gemm_wgmma_tf32_32x32_nn: 32 x 32 in 8; 640.0, 1.0, 4.0 },
    wgmma_tf32! { gemm_wgmma_tf32_64x32_nn: 64 x 32 in 8; 850.0, 1.0, 4.0 },
    // 256 x 128 was fitted to 1024³, 2048³ and 4096³. Sustained, 256 x 192 is ahead of it by 1, 3 and 0.4 % at 4096³, 8192³ and 16384³.
    sliced! { gemm_sliced_bf16x6_256x192: bf16x6, 256 x 192 or 128 of 2; 1040.0, 1.0, 5.0 },
    sliced! { gemm_sliced_bf16x6_256x128: bf16x6, 256 x 128 of 2; 1020.0, 1.0, 4.5 },
    sliced! { gemm_sliced_bf16x6_64x128: bf16x6, 64 x 128 of 1; 780.0, 1.0, 4.0 },
    // What 8192³ by 256 x 192, and 4096³ and 8192³ by 256 x 128 came to, one burst each; that of 64 x 128 is a guess. Where it is
    // sustained the wider tiles are ahead by 4 to 7 %, in short bursts at 4096³ behind by 2 %.
    sliced! { gemm_sliced_f16x3_256x192: f16x3, 256 x 192 or 128 of 2; 1930.0, 1.0, 5.0 },
    sliced! { gemm_sliced_f16x3_256x128: f16x3, 256 x 128 of 2; 1900.0, 1.0, 4.5 },
    sliced! { gemm_sliced_f16x3_64x128: f16x3, 64 x 128 of 1; 1450.0, 1.0, 4.0 },
    Design {
        summary: "tiled16 without boundary checks, for sizes that are multiples of 16",
        contract: program!(padded::padded16),
        on_gpu: speed!(61.0, 0.3, 1.5),
        ..PLAIN
    },
    Design {
        summary: "tiled_uncoalesced for a B that the CPU has transposed",
        contract: program!(tiled_transposed::tiled_transposed),
        ..PLAIN
    },
    Design {
        summary: "c = a + b, one thread an element",
        contract: program!(vec_add::vec_add),
        ..PLAIN
    },
    Design {
        summary: "image blur, every pixel of a box from global memory",
        contract: program!(blur::blur),
        ..PLAIN
    },
    Design {
        summary: "image blur, a tile and its halo in shared memory",
        contract: program!(blur::blur_shared),
        ..PLAIN
    },
    Design {
        summary: "a variable in a register: every thread counts for itself",
        contract: program!(memories::register_counter),
        ..PLAIN
    },
    Design {
        summary: "a variable in shared memory: every block counts from zero",
        contract: program!(memories::shared_counter),
        ..PLAIN
    },
    Design {
        summary: "a variable in global memory: every launch goes on counting",
        contract: program!(memories::global_counter),
        ..PLAIN
    },
    Design {
        summary: "a pointer in global memory: x = -x where the host lets it point",
        contract: program!(memories::pointed_negation),
        ..PLAIN
    },
    Design {
        summary: "variables in constant memory: a polynomial's coefficients",
        contract: program!(memories::constant_polynomial),
        ..PLAIN
    },
    Design {
        summary: "matrices copied to where tensor copies can take them from",
        contract: program!(gemm::pad::pad_rows),
        ..PLAIN
    },
    Design {
        summary: "matrices copied likewise, turned over: columns become rows",
        contract: program!(gemm::pad::turn_rows),
        ..PLAIN
    },
    Design {
        summary: "matrices of two-byte elements copied to where tensor copies can take them from",
        contract: program!(gemm::pad::pad_rows_u16),
        ..PLAIN
    },
    Design {
        summary: "matrices of two-byte elements copied likewise, turned over: columns become rows",
        contract: program!(gemm::pad::turn_rows_u16),
        ..PLAIN
    },
    Design {
        summary: "matrices of f32 cut into three slices of bf16",
        contract: program!(gemm_sliced::slices::cut_bf16x3),
        ..PLAIN
    },
    Design {
        summary: "matrices of f32 cut into two scaled slices of f16",
        contract: program!(gemm_sliced::halves::cut_f16x2),
        ..PLAIN
    },
    Design {
        summary: "the sums of the rows of a pitched array",
        contract: program!(pitched::row_sums),
        ..PLAIN
    },
    Design {
        summary: "a pitched array of three dimensions times a number, in place",
        contract: program!(pitched::scale_box),
        ..PLAIN
    },
];

/// Every kernel, in the order of [`DESIGNS`]: each of its variants.
pub static KERNELS: LazyLock<Vec<Entry>> =
    LazyLock::new(|| DESIGNS.iter().flat_map(Design::entries).collect());

/// The tiled kernel small enough to be followed by eye. It is for the CPU device alone and in no list.
pub static TOY: Entry = Entry {
    summary: "the tiled kernel with 2 x 2 tiles, to be followed phase by phase",
    on_gpu: None,
    on_cpu: None,
    rung: None,
    contract: Contract::Product(Product {
        block: [2, 2, 1],
        tile: [2, 2],
        kernel: views!(toy::tiled2),
    }),
};

/// The kernel of a name.
pub fn find(name: &str) -> Option<&'static Entry> {
    KERNELS.iter().find(|entry| entry.name() == name)
}

/// The rungs of the course, first to last.
pub fn ladder() -> impl Iterator<Item = (&'static Entry, &'static Rung)> {
    KERNELS.iter().filter_map(|entry| Some((entry, entry.rung.as_ref()?)))
}

/// The kernels that compute a product of f32, in the order of [`KERNELS`].
pub fn products() -> impl Iterator<Item = (&'static Entry, &'static Product)> {
    KERNELS.iter().filter_map(|entry| match &entry.contract {
        Contract::Product(product) => Some((entry, product)),
        _ => None,
    })
}
