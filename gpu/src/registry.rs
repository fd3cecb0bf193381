//! The list of all kernels: a new kernel is a new file, an entry here, and the file's name in `registry/sources.rs`.
//!
//! The command's `kernels`, the tests, the benchmarks and the documentation's tables all read it. What an entry says is
//! `registry/contract.rs`'s.

mod contract;
#[macro_use]
mod entries;
mod representatives;
mod sources;

use std::sync::LazyLock;

use simt::{Constants, device::BoxShape};

use self::entries::{SLAB_STEPS, tile_ratio, wgmma_boxes};
pub use self::{
    contract::*,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
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
        of_f16: None,
    },
    Design {
        summary: "tiled16 in Rust-CUDA's idiom: raw pointers, `cuda_std`'s vocabulary",
        rung: None,
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: pointers!(rust_cuda::rust_cuda_tiled16),
        }),
        of_f16: None,
    },
    Design {
        summary: "tiled16 by a matrix type with a stride, whose sub-matrices are matrices",
        rung: None,
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: views!(tiled_submatrix::tiled_submatrix),
        }),
        of_f16: None,
    },
    Design {
        summary: "general product, 32 x 32 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::Product(Product {
            block: [64, 1, 1],
            tile: [32, 32],
            kernel: ProductKernel::Gemm(gemm!(gemm_32)),
        }),
        of_f16: None,
    },
    Design {
        summary: "general product, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::Product(Product {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: ProductKernel::Gemm(gemm!(gemm_64)),
        }),
        of_f16: None,
    },
    Design {
        summary: "general product, 128 x 128 tiles, 8 x 8 elements a thread",
        rung: None,
        contract: Contract::Product(Product {
            block: [256, 1, 1],
            tile: [128, 128],
            kernel: ProductKernel::Gemm(gemm!(gemm_128)),
        }),
        of_f16: None,
    },
    Design {
        summary: "general, 128 x 128 tiles by tensor copies; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_128_nn, 128, 128, SLAB_STEPS, 1, n, n),
        of_f16: None,
    },
    Design {
        summary: "general, 128 x 128 tiles by tensor copies; A along m, B along n",
        rung: None,
        contract: tensor!(gemm_tma_128_tn, 128, 128, SLAB_STEPS, 1, t, n),
        of_f16: None,
    },
    Design {
        summary: "general, 64 x 64 tiles by tensor copies, k over a cluster; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_64_nn, 64, 64, 2 * SLAB_STEPS, 8, n, n),
        of_f16: None,
    },
    Design {
        summary: "general, 64 x 64 tiles by tensor copies, k over a cluster; A along m, B along n",
        rung: None,
        contract: tensor!(gemm_tma_64_tn, 64, 64, 2 * SLAB_STEPS, 8, t, n),
        of_f16: None,
    },
    Design {
        summary: "general, 72 x 80 tiles from rings with producers; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_72x80_nn, 72, 80, 8, 1, n, n),
        of_f16: None,
    },
    Design {
        summary: "general, 72 x 80 tiles from rings with producers; A's rows begin anywhere",
        rung: None,
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
        of_f16: None,
    },
    Design {
        summary: "general, 16 x 256 tiles by tensor copies, k over a cluster; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_16x256_nn, 16, 256, SLAB_STEPS, 8, n, n),
        of_f16: None,
    },
    Design {
        summary: "general, 256 x 16 tiles by tensor copies, k over a cluster; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_256x16_nn, 256, 16, SLAB_STEPS, 8, n, n),
        of_f16: None,
    },
    Design {
        summary: "general product of f64, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductF64(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_f64_64),
        }),
        of_f16: None,
    },
    Design {
        summary: "general product of bf16, C of bf16, on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductBf16(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_bf16_64),
        }),
        of_f16: None,
    },
    Design {
        summary: "general product of bf16, C of f32, on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductBf16F32(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_bf16_f32_64),
        }),
        of_f16: None,
    },
    Design {
        summary: "general product of f16, C of f16, on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductF16(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_f16_64),
        }),
        of_f16: None,
    },
    Design {
        summary: "general product of f16, C of f32, on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductF16F32(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_f16_f32_64),
        }),
        of_f16: None,
    },
    mma! { gemm_mma_64x64: bf16 bf16, 64 x 64 by 128 },
    mma! { gemm_mma_f32_64x64: bf16 f32, 64 x 64 by 128 },
    mma! { gemm_mma_f16_64x64: f16 f16, 64 x 64 by 128 },
    mma! { gemm_mma_f16_f32_64x64: f16 f32, 64 x 64 by 128 },
    mma! { gemm_mma_128x128: bf16 bf16, 128 x 128 by 128 },
    mma! { gemm_mma_f32_128x128: bf16 f32, 128 x 128 by 128 },
    mma! { gemm_mma_f16_128x128: f16 f16, 128 x 128 by 128 },
    mma! { gemm_mma_f16_f32_128x128: f16 f32, 128 x 128 by 128 },
    mma! { gemm_mma_tf32_64x64: f32 f32, 64 x 64 by 128 },
    mma! { gemm_mma_tf32_128x128: f32 f32, 128 x 128 by 128 },
    wgmma! { gemm_wgmma_128x256 gemm_wgmma_f16_128x256: half, 128 x 256 of 1 },
    wgmma! { gemm_wgmma_f32_128x256 gemm_wgmma_f16_f32_128x256: f32, 128 x 256 of 1 },
    wgmma! { gemm_wgmma_256x256 gemm_wgmma_f16_256x256: half, 256 x 256 of 2 },
    wgmma! { gemm_wgmma_f32_256x256 gemm_wgmma_f16_f32_256x256: f32, 256 x 256 of 2 },
    wgmma! { gemm_wgmma_256x192 gemm_wgmma_f16_256x192: half, 256 x 192 of 2 },
    wgmma! { gemm_wgmma_f32_256x192 gemm_wgmma_f16_f32_256x192: f32, 256 x 192 of 2 },
    wgmma! { gemm_wgmma_256x256_on gemm_wgmma_f16_256x256_on: half, 256 x 256 of 2, o n },
    wgmma! { gemm_wgmma_f32_256x256_on gemm_wgmma_f16_f32_256x256_on: f32, 256 x 256 of 2, o n },
    wgmma! { gemm_wgmma_256x256_sn gemm_wgmma_f16_256x256_sn: half, 256 x 256 of 2, s n },
    wgmma! { gemm_wgmma_f32_256x256_sn gemm_wgmma_f16_f32_256x256_sn: f32, 256 x 256 of 2, s n },
    wgmma! { gemm_wgmma_128x128 gemm_wgmma_f16_128x128: half, 128 x 128 in 8 },
    wgmma! { gemm_wgmma_f32_128x128 gemm_wgmma_f16_f32_128x128: f32, 128 x 128 in 8 },
    wgmma! { gemm_wgmma_64x128 gemm_wgmma_f16_64x128: half, 64 x 128 in 8 },
    wgmma! { gemm_wgmma_f32_64x128 gemm_wgmma_f16_f32_64x128: f32, 64 x 128 in 8 },
    wgmma! { gemm_wgmma_128x64 gemm_wgmma_f16_128x64: half, 128 x 64 in 8 },
    wgmma! { gemm_wgmma_f32_128x64 gemm_wgmma_f16_f32_128x64: f32, 128 x 64 in 8 },
    wgmma! { gemm_wgmma_64x64 gemm_wgmma_f16_64x64: half, 64 x 64 in 8 },
    wgmma! { gemm_wgmma_f32_64x64 gemm_wgmma_f16_f32_64x64: f32, 64 x 64 in 8 },
    wgmma! { gemm_wgmma_deep_64x64 gemm_wgmma_f16_deep_64x64: half, 64 x 64 in 8 },
    wgmma! { gemm_wgmma_f32_deep_64x64 gemm_wgmma_f16_f32_deep_64x64: f32, 64 x 64 in 8 },
    wgmma! { gemm_wgmma_64x16 gemm_wgmma_f16_64x16: half, 64 x 16 in 8 },
    wgmma! { gemm_wgmma_f32_64x16 gemm_wgmma_f16_f32_64x16: f32, 64 x 16 in 8 },
    wgmma_any! { gemm_wgmma_any_64x128 gemm_wgmma_any_f16_64x128: half, 64 x 128 },
    wgmma_any! { gemm_wgmma_any_f32_64x128 gemm_wgmma_any_f16_f32_64x128: f32, 64 x 128 },
    wgmma_any! { gemm_wgmma_any_64x64 gemm_wgmma_any_f16_64x64: half, 64 x 64 },
    wgmma_any! { gemm_wgmma_any_f32_64x64 gemm_wgmma_any_f16_f32_64x64: f32, 64 x 64 },
    Design {
        summary: "general product of f32 with factors of tf32, on tensor cores, 256 x 256 tiles of two blocks",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_256x256_nn, 256 x 256 of 2 in 1, Tf32),
        of_f16: None,
    },
    Design {
        summary: "general product of f32 with factors of tf32, on tensor cores, 256 x 128 tiles",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_256x128_nn, 256 x 128 of 1 in 1, Tf32),
        of_f16: None,
    },
    Design {
        summary: "general product of f32 with factors of tf32, on tensor cores, 128 x 128 tiles",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_128x128_nn, 128 x 128 of 1 in 1, Tf32),
        of_f16: None,
    },
    Design {
        summary: "general product of f32 with factors of tf32, on tensor cores, 128 x 64 tiles",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_128x64_nn, 128 x 64 of 1 in 1, Tf32),
        of_f16: None,
    },
    Design {
        summary: "general product of f32 with factors of tf32, on tensor cores, 256 x 256 tiles of two blocks; A's rows begin anywhere",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_256x256_on, 256 x 256 of 2 in 1, Tf32ClassesOfA),
        of_f16: None,
    },
    Design {
        summary: "general product of f32 with factors of tf32, on tensor cores, 128 x 64 tiles; A's rows begin anywhere",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_128x64_on, 128 x 64 of 1 in 1, Tf32ClassesOfA),
        of_f16: None,
    },
    Design {
        summary: "general product of f32 with factors of tf32, on tensor cores, 32 x 32 tiles, k over a cluster",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_32x32_nn, 32 x 32 of 1 in 8, Tf32),
        of_f16: None,
    },
    Design {
        summary: "general product of f32 with factors of tf32, on tensor cores, 64 x 32 tiles, k over a cluster",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_64x32_nn, 64 x 32 of 1 in 8, Tf32),
        of_f16: None,
    },
    sliced! { gemm_sliced_bf16x6_256x192: bf16x6, 256 x 192 or 128 of 2 },
    sliced! { gemm_sliced_bf16x6_256x128: bf16x6, 256 x 128 of 2 },
    sliced! { gemm_sliced_bf16x6_64x128: bf16x6, 64 x 128 of 1 },
    sliced! { gemm_sliced_f16x3_256x192: f16x3, 256 x 192 or 128 of 2 },
    sliced! { gemm_sliced_f16x3_256x128: f16x3, 256 x 128 of 2 },
    sliced! { gemm_sliced_f16x3_64x128: f16x3, 64 x 128 of 1 },
    Design {
        summary: "tiled16 without boundary checks, for sizes that are multiples of 16",
        rung: None,
        contract: program!(padded::padded16),
        of_f16: None,
    },
    Design {
        summary: "tiled_uncoalesced for a B that the CPU has transposed",
        rung: None,
        contract: program!(tiled_transposed::tiled_transposed),
        of_f16: None,
    },
    Design {
        summary: "c = a + b, one thread an element",
        rung: None,
        contract: program!(vec_add::vec_add),
        of_f16: None,
    },
    Design {
        summary: "image blur, every pixel of a box from global memory",
        rung: None,
        contract: program!(blur::blur),
        of_f16: None,
    },
    Design {
        summary: "image blur, a tile and its halo in shared memory",
        rung: None,
        contract: program!(blur::blur_shared),
        of_f16: None,
    },
    Design {
        summary: "a variable in a register: every thread counts for itself",
        rung: None,
        contract: program!(memories::register_counter),
        of_f16: None,
    },
    Design {
        summary: "a variable in shared memory: every block counts from zero",
        rung: None,
        contract: program!(memories::shared_counter),
        of_f16: None,
    },
    Design {
        summary: "a variable in global memory: every launch goes on counting",
        rung: None,
        contract: program!(memories::global_counter),
        of_f16: None,
    },
    Design {
        summary: "a pointer in global memory: x = -x where the host lets it point",
        rung: None,
        contract: program!(memories::pointed_negation),
        of_f16: None,
    },
    Design {
        summary: "variables in constant memory: a polynomial's coefficients",
        rung: None,
        contract: program!(memories::constant_polynomial),
        of_f16: None,
    },
    Design {
        summary: "matrices copied to where tensor copies can take them from",
        rung: None,
        contract: program!(gemm::pad::pad_rows),
        of_f16: None,
    },
    Design {
        summary: "matrices copied likewise, turned over: columns become rows",
        rung: None,
        contract: program!(gemm::pad::turn_rows),
        of_f16: None,
    },
    Design {
        summary: "matrices of two-byte elements copied to where tensor copies can take them from",
        rung: None,
        contract: program!(gemm::pad::pad_rows_u16),
        of_f16: None,
    },
    Design {
        summary: "matrices of two-byte elements copied likewise, turned over: columns become rows",
        rung: None,
        contract: program!(gemm::pad::turn_rows_u16),
        of_f16: None,
    },
    Design {
        summary: "matrices of f32 cut into three slices of bf16",
        rung: None,
        contract: program!(gemm_sliced::slices::cut_bf16x3),
        of_f16: None,
    },
    Design {
        summary: "matrices of f32 cut into two scaled slices of f16",
        rung: None,
        contract: program!(gemm_sliced::halves::cut_f16x2),
        of_f16: None,
    },
    Design {
        summary: "the sums of the rows of a pitched array",
        rung: None,
        contract: program!(pitched::row_sums),
        of_f16: None,
    },
    Design {
        summary: "a pitched array of three dimensions times a number, in place",
        rung: None,
        contract: program!(pitched::scale_box),
        of_f16: None,
    },
];

/// Every kernel, in the order of [`DESIGNS`]: each of its variants.
pub static KERNELS: LazyLock<Vec<Entry>> =
    LazyLock::new(|| DESIGNS.iter().flat_map(Design::entries).collect());

/// The tiled kernel small enough to be followed by eye. It is for the CPU device alone and in no list.
pub static TOY: Entry = Entry {
    summary: "the tiled kernel with 2 x 2 tiles, to be followed phase by phase",
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
