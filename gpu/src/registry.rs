//! The list of all kernels: a new kernel is a new file, and an entry and the file's name here.
//!
//! The command's `kernels`, the tests, the benchmarks and the documentation's tables all read it.

use simt::{
    Bf16, Declaration, F16, Kernel, Tf32,
    checked::{In as CheckedIn, Out as CheckedOut, TensorMap as CheckedTensorMap},
    device::{BoxShape, In, Out, TensorMap},
};

use crate::{
    kernels::{
        basic::BLOCK,
        gemm_tma::SLAB,
        gemm_wgmma::{CLASSES, DEPTH},
        gemm_wgmma_tf32,
    },
    problem::{Matrices, Problem},
};

/// A kernel on views in both versions: from the module tree, and from the same files below `checked`.
macro_rules! views {
    ($($path:ident)::+) => {
        ProductKernel::Views {
            kernel: &crate::kernels::$($path)::+,
            checked: &crate::checked::kernels::$($path)::+,
        }
    };
}

/// A general product in both versions.
macro_rules! gemm {
    ($name:ident) => {
        GemmKernel {
            kernel: &crate::kernels::gemm::$name,
            checked: &crate::checked::kernels::gemm::$name,
        }
    };
}

/// A general product by tensor copies, of such a tile a block; `n` or `t` for A and for B, as in BLAS.
macro_rules! tensor {
    ($name:ident, $rows:literal, $cols:literal, $steps:expr, $splits:literal, $a:ident, $b:ident) => {
        Contract::TensorProduct(TensorProduct {
            tile: [$rows, $cols],
            steps: $steps,
            most_splits: $splits,
            a: boxes!(a $a $rows),
            b: boxes!(b $b $cols),
            along_k: [along_k!(a $a), along_k!(b $b)],
            is_one_of_four: false,
            walkers: None,
            narrow: None,
            kernel: TensorKernel::Boxes {
                kernel: &crate::kernels::gemm_tma::$name,
                checked: &crate::checked::kernels::gemm_tma::$name,
            },
        })
    };
}

/// Steps of k of a slab.
const SLAB_STEPS: u32 = SLAB as u32;

/// A general product on tensor cores, as an entry of its own: A and B of a type, C of another; such a tile, of so many blocks,
/// or whose k so many may split; `n` or `t` for A and for B.
macro_rules! wgmma {
    ($name:ident: $t:ident $c:ident, $rows:tt x $cols:tt of $blocks:tt, $a:ident $b:ident) => {
        wgmma! { @ $name: $t $c, $rows x $cols of $blocks in 1, $a $b }
    };
    ($name:ident: $t:ident $c:ident, $rows:tt x $cols:tt in $parts:tt, $a:ident $b:ident) => {
        wgmma! { @ $name: $t $c, $rows x $cols of 1 in $parts, $a $b }
    };
    (@ $name:ident: $t:ident $c:ident, $rows:tt x $cols:tt of $blocks:tt in $parts:tt, $a:ident $b:ident) => {
        Entry {
            summary: concat!(
                "general product of ", stringify!($t), ", C of ", stringify!($c), ", on tensor cores, ",
                $rows, " x ", $cols, " tiles", of_blocks!($blocks $parts), "; ", lie!($a $b)
            ),
            rung: None,
            contract: wgmma_contract!($t $c)(TensorProduct {
                tile: [$rows, $cols],
                steps: DEPTH as u32,
                most_splits: $parts,
                a: wgmma_boxes(along_k!(a $a), $rows / $blocks),
                b: wgmma_boxes(along_k!(b $b), $cols / $blocks),
                along_k: [along_k!(a $a), along_k!(b $b)],
                is_one_of_four: true,
                walkers: Some($blocks),
                narrow: None,
                kernel: wgmma_kernel!($a $name),
            }),
        }
    };
}

/// The same of operands whose rows begin anywhere.
macro_rules! wgmma_any {
    ($name:ident: $t:ident $c:ident, $rows:tt x $cols:tt, $a:ident $b:ident) => {
        Entry {
            summary: concat!(
                "general product of ", stringify!($t), ", C of ", stringify!($c), ", on tensor cores, rows anywhere, ",
                $rows, " x ", $cols, " tiles; ", lie!($a $b)
            ),
            rung: None,
            contract: wgmma_contract!($t $c)(TensorProduct {
                tile: [$rows, $cols],
                steps: DEPTH as u32,
                most_splits: 1,
                a: wgmma_boxes(along_k!(a $a), $rows),
                b: wgmma_boxes(along_k!(b $b), $cols),
                along_k: [along_k!(a $a), along_k!(b $b)],
                is_one_of_four: true,
                walkers: Some(1),
                narrow: None,
                kernel: TensorKernel::Gathered {
                    kernel: &crate::kernels::gemm_wgmma::$name,
                    checked: &crate::checked::kernels::gemm_wgmma::$name,
                },
            }),
        }
    };
}

/// Its kernel: with a map for A, or with eight.
macro_rules! wgmma_kernel {
    (o $name:ident) => {
        TensorKernel::ClassesOfA {
            kernel: &crate::kernels::gemm_wgmma::$name,
            checked: &crate::checked::kernels::gemm_wgmma::$name,
        }
    };
    ($a:ident $name:ident) => {
        TensorKernel::Boxes {
            kernel: &crate::kernels::gemm_wgmma::$name,
            checked: &crate::checked::kernels::gemm_wgmma::$name,
        }
    };
}

/// The contract of such types.
#[rustfmt::skip]
macro_rules! wgmma_contract {
    (bf16 bf16) => { Contract::TensorProductBf16 };
    (bf16 f32) => { Contract::TensorProductBf16F32 };
    (f16 f16) => { Contract::TensorProductF16 };
    (f16 f32) => { Contract::TensorProductF16F32 };
}

/// How many blocks a tile is of, in words.
#[rustfmt::skip]
macro_rules! of_blocks {
    (1 1) => { "" };
    (2 1) => { " of two blocks" };
    (1 8) => { ", k over a cluster" };
}

/// How operands lie, in words.
#[rustfmt::skip]
macro_rules! lie {
    (o n) => { "A along k, in rows that begin anywhere, B along n" };
    (n n) => { "A along k, B along n" };
    (n t) => { "A and B along k" };
    (t n) => { "A along m, B along n" };
    (t t) => { "A along m, B along k" };
}

/// A general product of f32 with factors of tf32, on tensor cores, such a tile a block, whose k so many may split; A along
/// k, B along n.
macro_rules! wgmma_tf32 {
    ($name:ident, $rows:literal x $cols:literal in $splits:literal) => {
        Contract::TensorProduct(TensorProduct {
            tile: [$rows, $cols],
            steps: gemm_wgmma_tf32::DEPTH as u32,
            most_splits: $splits,
            a: BoxShape { rows: $rows, cols: gemm_wgmma_tf32::DEPTH, swizzle: 128 },
            b: BoxShape { rows: gemm_wgmma_tf32::DEPTH, cols: 32, swizzle: 128 },
            along_k: [true, false],
            is_one_of_four: false,
            walkers: Some(1),
            narrow: None,
            kernel: TensorKernel::Tf32 {
                kernel: &crate::kernels::gemm_wgmma_tf32::$name,
                checked: &crate::checked::kernels::gemm_wgmma_tf32::$name,
            },
        })
    };
}

/// A general product of f32 whose factors are cut into slices, on tensor cores, as an entry of its own: such slices, such a tile;
/// `n` or `t` for A and for B.
macro_rules! sliced {
    ($name:ident: $kind:ident, $rows:tt x $cols:tt $(or $narrow:tt)? of $blocks:tt, $a:ident $b:ident) => {
        Entry {
            summary: concat!(
                "general product of f32 in ", slices!($kind), ", on tensor cores, ", $rows, " x ", $cols,
                $(" and ", $rows, " x ", $narrow,)? " tiles", of_blocks!($blocks 1), "; ", lie!($a $b)
            ),
            rung: None,
            contract: Contract::TensorProduct(TensorProduct {
                tile: [$rows, $cols],
                steps: DEPTH as u32,
                most_splits: 1,
                a: wgmma_boxes(along_k!(a $a), $rows / $blocks),
                b: wgmma_boxes(along_k!(b $b), $cols / $blocks),
                along_k: [along_k!(a $a), along_k!(b $b)],
                is_one_of_four: true,
                walkers: Some($blocks),
                narrow: narrow!($($narrow)?),
                kernel: sliced_kernel!($kind $name),
            }),
        }
    };
}

/// What slices are of.
macro_rules! slices {
    (bf16x6) => {
        "slices of bf16"
    };
    (f16x3) => {
        "scaled slices of f16"
    };
}

/// The kernel, and the one that cuts.
macro_rules! sliced_kernel {
    (bf16x6 $name:ident) => {
        TensorKernel::Sliced {
            cut: &crate::kernels::gemm_sliced::slices::cut_bf16x3,
            kernel: &crate::kernels::gemm_sliced::$name,
            checked: &crate::checked::kernels::gemm_sliced::$name,
        }
    };
    (f16x3 $name:ident) => {
        TensorKernel::SlicedF16 {
            cut: &crate::kernels::gemm_sliced::halves::cut_f16x2,
            kernel: &crate::kernels::gemm_sliced::$name,
            checked: &crate::checked::kernels::gemm_sliced::$name,
        }
    };
}

/// Columns of a second width, if there is one.
macro_rules! narrow {
    () => {
        None
    };
    ($cols:tt) => {
        Some($cols)
    };
}

/// A general product on the tensor cores of every GPU, as an entry of its own: A and B of a type, of 16 bits or f32 that is
/// rounded to tf32, C of another; such a tile, by so many threads.
macro_rules! mma {
    ($name:ident: $t:ident $c:ident, $rows:tt x $cols:tt by $threads:tt) => {
        Entry {
            summary: concat!(
                "general product of ", mma_types!($t $c), ", on every GPU's tensor cores, ", $rows, " x ", $cols,
                " tiles"
            ),
            rung: None,
            contract: mma_contract!($t $c)(GeneralProduct {
                block: [$threads, 1, 1],
                tile: [$rows, $cols],
                kernel: GemmKernel {
                    kernel: &crate::kernels::gemm_mma::$name,
                    checked: &crate::checked::kernels::gemm_mma::$name,
                },
            }),
        }
    };
}

/// Such types, in words.
#[rustfmt::skip]
macro_rules! mma_types {
    (f32 f32) => { "f32 with factors of tf32" };
    ($t:ident $c:ident) => { concat!(stringify!($t), ", C of ", stringify!($c)) };
}

/// The contract of such types.
#[rustfmt::skip]
macro_rules! mma_contract {
    (bf16 bf16) => { Contract::ProductBf16 };
    (bf16 f32) => { Contract::ProductBf16F32 };
    (f16 f16) => { Contract::ProductF16 };
    (f16 f32) => { Contract::ProductF16F32 };
    (f32 f32) => { Contract::ProductTf32 };
}

/// Does an operand lie along k?
macro_rules! along_k {
    (a o) => {
        true
    };
    (a n) => {
        true
    };
    (a t) => {
        false
    };
    (b n) => {
        false
    };
    (b t) => {
        true
    };
}

/// The boxes of an operand of tensor cores.
const fn wgmma_boxes(along_k: bool, tile: usize) -> BoxShape {
    // Of one and a half boxes each of two blocks copies half of the steps of k; along k, one and a half are three.
    let has_halves = tile > DEPTH && !tile.is_multiple_of(DEPTH);
    let rows = match (has_halves, along_k) {
        (true, _) => DEPTH / 2,
        (false, true) => tile,
        (false, false) => DEPTH,
    };
    // A tile of 16 columns has boxes as narrow.
    let cols = if along_k || tile > DEPTH { DEPTH } else { tile };
    BoxShape { rows, cols, swizzle: 2 * cols }
}

/// The boxes of an operand: along k, in spans of the swizzle; or along its outer side.
macro_rules! boxes {
    (a n $tile:literal) => {
        BoxShape { rows: $tile, cols: SLAB, swizzle: SLAB * 4 }
    };
    (a t $tile:literal) => {
        BoxShape { rows: SLAB, cols: $tile, swizzle: 0 }
    };
    (b n $tile:literal) => {
        boxes!(a t $tile)
    };
    (b t $tile:literal) => {
        boxes!(a n $tile)
    };
}

/// A kernel on raw pointers.
macro_rules! pointers {
    ($($path:ident)::+) => {
        ProductKernel::Pointers(&crate::kernels::$($path)::+)
    };
}

/// A kernel with parameters of its own.
macro_rules! program {
    ($($path:ident)::+) => {
        Contract::Program(Program { declaration: &crate::kernels::$($path)::+.declaration })
    };
}

/// FLOP for each byte that a block reads, when a `rows x cols` tile of C takes `rows` elements of A and `cols`
/// of B for each step of k: `2 rows cols / 4 (rows + cols)`.
const fn tile_ratio(rows: u32, cols: u32) -> f64 {
    (rows * cols) as f64 / (2 * (rows + cols)) as f64
}

/// Every kernel, in the order in which they are taught.
pub static KERNELS: &[Entry] = &[
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
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
    },
    Entry {
        summary: "tiled16 in Rust-CUDA's idiom: raw pointers, `cuda_std`'s vocabulary",
        rung: None,
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: pointers!(rust_cuda::rust_cuda_tiled16),
        }),
    },
    Entry {
        summary: "tiled16 by a matrix type with a stride, whose sub-matrices are matrices",
        rung: None,
        contract: Contract::Product(Product {
            block: [16, 16, 1],
            tile: [16, 16],
            kernel: views!(tiled_submatrix::tiled_submatrix),
        }),
    },
    Entry {
        summary: "general product, 32 x 32 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::Product(Product {
            block: [64, 1, 1],
            tile: [32, 32],
            kernel: ProductKernel::Gemm(gemm!(gemm_32)),
        }),
    },
    Entry {
        summary: "general product, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::Product(Product {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: ProductKernel::Gemm(gemm!(gemm_64)),
        }),
    },
    Entry {
        summary: "general product, 128 x 128 tiles, 8 x 8 elements a thread",
        rung: None,
        contract: Contract::Product(Product {
            block: [256, 1, 1],
            tile: [128, 128],
            kernel: ProductKernel::Gemm(gemm!(gemm_128)),
        }),
    },
    Entry {
        summary: "general, 128 x 128 tiles by tensor copies; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_128_nn, 128, 128, SLAB_STEPS, 1, n, n),
    },
    Entry {
        summary: "general, 128 x 128 tiles by tensor copies; A along m, B along n",
        rung: None,
        contract: tensor!(gemm_tma_128_tn, 128, 128, SLAB_STEPS, 1, t, n),
    },
    Entry {
        summary: "general, 64 x 64 tiles by tensor copies, k over a cluster; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_64_nn, 64, 64, 2 * SLAB_STEPS, 8, n, n),
    },
    Entry {
        summary: "general, 64 x 64 tiles by tensor copies, k over a cluster; A along m, B along n",
        rung: None,
        contract: tensor!(gemm_tma_64_tn, 64, 64, 2 * SLAB_STEPS, 8, t, n),
    },
    Entry {
        summary: "general, 72 x 80 tiles from rings with producers; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_72x80_nn, 72, 80, 8, 1, n, n),
    },
    Entry {
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
            kernel: TensorKernel::ShiftedA {
                kernel: &crate::kernels::gemm_tma::gemm_tma_72x80_on,
                checked: &crate::checked::kernels::gemm_tma::gemm_tma_72x80_on,
            },
        }),
    },
    Entry {
        summary: "general, 16 x 256 tiles by tensor copies, k over a cluster; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_16x256_nn, 16, 256, SLAB_STEPS, 8, n, n),
    },
    Entry {
        summary: "general, 256 x 16 tiles by tensor copies, k over a cluster; A or B along k",
        rung: None,
        contract: tensor!(gemm_tma_256x16_nn, 256, 16, SLAB_STEPS, 8, n, n),
    },
    Entry {
        summary: "general product of f64, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductF64(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_f64_64),
        }),
    },
    Entry {
        summary: "general product of bf16, C of bf16, on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductBf16(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_bf16_64),
        }),
    },
    Entry {
        summary: "general product of bf16, C of f32, on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductBf16F32(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_bf16_f32_64),
        }),
    },
    Entry {
        summary: "general product of f16, C of f16, on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductF16(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_f16_64),
        }),
    },
    Entry {
        summary: "general product of f16, C of f32, on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
        rung: None,
        contract: Contract::ProductF16F32(GeneralProduct {
            block: [256, 1, 1],
            tile: [64, 64],
            kernel: gemm!(gemm_f16_f32_64),
        }),
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
    wgmma! { gemm_wgmma_128x256_nn:           bf16 bf16, 128 x 256 of 1, n n },
    wgmma! { gemm_wgmma_128x256_nt:           bf16 bf16, 128 x 256 of 1, n t },
    wgmma! { gemm_wgmma_128x256_tn:           bf16 bf16, 128 x 256 of 1, t n },
    wgmma! { gemm_wgmma_128x256_tt:           bf16 bf16, 128 x 256 of 1, t t },
    wgmma! { gemm_wgmma_f32_128x256_nn:       bf16 f32, 128 x 256 of 1, n n },
    wgmma! { gemm_wgmma_f32_128x256_nt:       bf16 f32, 128 x 256 of 1, n t },
    wgmma! { gemm_wgmma_f32_128x256_tn:       bf16 f32, 128 x 256 of 1, t n },
    wgmma! { gemm_wgmma_f32_128x256_tt:       bf16 f32, 128 x 256 of 1, t t },
    wgmma! { gemm_wgmma_f16_128x256_nn:       f16 f16, 128 x 256 of 1, n n },
    wgmma! { gemm_wgmma_f16_128x256_nt:       f16 f16, 128 x 256 of 1, n t },
    wgmma! { gemm_wgmma_f16_128x256_tn:       f16 f16, 128 x 256 of 1, t n },
    wgmma! { gemm_wgmma_f16_128x256_tt:       f16 f16, 128 x 256 of 1, t t },
    wgmma! { gemm_wgmma_f16_f32_128x256_nn:   f16 f32, 128 x 256 of 1, n n },
    wgmma! { gemm_wgmma_f16_f32_128x256_nt:   f16 f32, 128 x 256 of 1, n t },
    wgmma! { gemm_wgmma_f16_f32_128x256_tn:   f16 f32, 128 x 256 of 1, t n },
    wgmma! { gemm_wgmma_f16_f32_128x256_tt:   f16 f32, 128 x 256 of 1, t t },
    wgmma! { gemm_wgmma_256x256_nn:           bf16 bf16, 256 x 256 of 2, n n },
    wgmma! { gemm_wgmma_256x256_nt:           bf16 bf16, 256 x 256 of 2, n t },
    wgmma! { gemm_wgmma_256x256_tn:           bf16 bf16, 256 x 256 of 2, t n },
    wgmma! { gemm_wgmma_256x256_tt:           bf16 bf16, 256 x 256 of 2, t t },
    wgmma! { gemm_wgmma_f32_256x256_nn:       bf16 f32, 256 x 256 of 2, n n },
    wgmma! { gemm_wgmma_f32_256x256_nt:       bf16 f32, 256 x 256 of 2, n t },
    wgmma! { gemm_wgmma_f32_256x256_tn:       bf16 f32, 256 x 256 of 2, t n },
    wgmma! { gemm_wgmma_f32_256x256_tt:       bf16 f32, 256 x 256 of 2, t t },
    wgmma! { gemm_wgmma_f16_256x256_nn:       f16 f16, 256 x 256 of 2, n n },
    wgmma! { gemm_wgmma_f16_256x256_nt:       f16 f16, 256 x 256 of 2, n t },
    wgmma! { gemm_wgmma_f16_256x256_tn:       f16 f16, 256 x 256 of 2, t n },
    wgmma! { gemm_wgmma_f16_256x256_tt:       f16 f16, 256 x 256 of 2, t t },
    wgmma! { gemm_wgmma_f16_f32_256x256_nn:   f16 f32, 256 x 256 of 2, n n },
    wgmma! { gemm_wgmma_f16_f32_256x256_nt:   f16 f32, 256 x 256 of 2, n t },
    wgmma! { gemm_wgmma_f16_f32_256x256_tn:   f16 f32, 256 x 256 of 2, t n },
    wgmma! { gemm_wgmma_f16_f32_256x256_tt:   f16 f32, 256 x 256 of 2, t t },
    wgmma! { gemm_wgmma_256x256_on:           bf16 bf16, 256 x 256 of 2, o n },
    wgmma! { gemm_wgmma_f32_256x256_on:       bf16 f32, 256 x 256 of 2, o n },
    wgmma! { gemm_wgmma_f16_256x256_on:       f16 f16, 256 x 256 of 2, o n },
    wgmma! { gemm_wgmma_f16_f32_256x256_on:   f16 f32, 256 x 256 of 2, o n },
    wgmma! { gemm_wgmma_128x128_nn:           bf16 bf16, 128 x 128 in 8, n n },
    wgmma! { gemm_wgmma_128x128_nt:           bf16 bf16, 128 x 128 in 8, n t },
    wgmma! { gemm_wgmma_128x128_tn:           bf16 bf16, 128 x 128 in 8, t n },
    wgmma! { gemm_wgmma_128x128_tt:           bf16 bf16, 128 x 128 in 8, t t },
    wgmma! { gemm_wgmma_f32_128x128_nn:       bf16 f32, 128 x 128 in 8, n n },
    wgmma! { gemm_wgmma_f32_128x128_nt:       bf16 f32, 128 x 128 in 8, n t },
    wgmma! { gemm_wgmma_f32_128x128_tn:       bf16 f32, 128 x 128 in 8, t n },
    wgmma! { gemm_wgmma_f32_128x128_tt:       bf16 f32, 128 x 128 in 8, t t },
    wgmma! { gemm_wgmma_f16_128x128_nn:       f16 f16, 128 x 128 in 8, n n },
    wgmma! { gemm_wgmma_f16_128x128_nt:       f16 f16, 128 x 128 in 8, n t },
    wgmma! { gemm_wgmma_f16_128x128_tn:       f16 f16, 128 x 128 in 8, t n },
    wgmma! { gemm_wgmma_f16_128x128_tt:       f16 f16, 128 x 128 in 8, t t },
    wgmma! { gemm_wgmma_f16_f32_128x128_nn:   f16 f32, 128 x 128 in 8, n n },
    wgmma! { gemm_wgmma_f16_f32_128x128_nt:   f16 f32, 128 x 128 in 8, n t },
    wgmma! { gemm_wgmma_f16_f32_128x128_tn:   f16 f32, 128 x 128 in 8, t n },
    wgmma! { gemm_wgmma_f16_f32_128x128_tt:   f16 f32, 128 x 128 in 8, t t },
    wgmma! { gemm_wgmma_64x128_nn:           bf16 bf16, 64 x 128 in 8, n n },
    wgmma! { gemm_wgmma_64x128_nt:           bf16 bf16, 64 x 128 in 8, n t },
    wgmma! { gemm_wgmma_64x128_tn:           bf16 bf16, 64 x 128 in 8, t n },
    wgmma! { gemm_wgmma_64x128_tt:           bf16 bf16, 64 x 128 in 8, t t },
    wgmma! { gemm_wgmma_f32_64x128_nn:       bf16 f32, 64 x 128 in 8, n n },
    wgmma! { gemm_wgmma_f32_64x128_nt:       bf16 f32, 64 x 128 in 8, n t },
    wgmma! { gemm_wgmma_f32_64x128_tn:       bf16 f32, 64 x 128 in 8, t n },
    wgmma! { gemm_wgmma_f32_64x128_tt:       bf16 f32, 64 x 128 in 8, t t },
    wgmma! { gemm_wgmma_f16_64x128_nn:       f16 f16, 64 x 128 in 8, n n },
    wgmma! { gemm_wgmma_f16_64x128_nt:       f16 f16, 64 x 128 in 8, n t },
    wgmma! { gemm_wgmma_f16_64x128_tn:       f16 f16, 64 x 128 in 8, t n },
    wgmma! { gemm_wgmma_f16_64x128_tt:       f16 f16, 64 x 128 in 8, t t },
    wgmma! { gemm_wgmma_f16_f32_64x128_nn:   f16 f32, 64 x 128 in 8, n n },
    wgmma! { gemm_wgmma_f16_f32_64x128_nt:   f16 f32, 64 x 128 in 8, n t },
    wgmma! { gemm_wgmma_f16_f32_64x128_tn:   f16 f32, 64 x 128 in 8, t n },
    wgmma! { gemm_wgmma_f16_f32_64x128_tt:   f16 f32, 64 x 128 in 8, t t },
    wgmma! { gemm_wgmma_128x64_nn:           bf16 bf16, 128 x 64 in 8, n n },
    wgmma! { gemm_wgmma_128x64_nt:           bf16 bf16, 128 x 64 in 8, n t },
    wgmma! { gemm_wgmma_128x64_tn:           bf16 bf16, 128 x 64 in 8, t n },
    wgmma! { gemm_wgmma_128x64_tt:           bf16 bf16, 128 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f32_128x64_nn:       bf16 f32, 128 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f32_128x64_nt:       bf16 f32, 128 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f32_128x64_tn:       bf16 f32, 128 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f32_128x64_tt:       bf16 f32, 128 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f16_128x64_nn:       f16 f16, 128 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f16_128x64_nt:       f16 f16, 128 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f16_128x64_tn:       f16 f16, 128 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f16_128x64_tt:       f16 f16, 128 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f16_f32_128x64_nn:   f16 f32, 128 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f16_f32_128x64_nt:   f16 f32, 128 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f16_f32_128x64_tn:   f16 f32, 128 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f16_f32_128x64_tt:   f16 f32, 128 x 64 in 8, t t },
    wgmma! { gemm_wgmma_64x64_nn:            bf16 bf16, 64 x 64 in 8, n n },
    wgmma! { gemm_wgmma_64x64_nt:            bf16 bf16, 64 x 64 in 8, n t },
    wgmma! { gemm_wgmma_64x64_tn:            bf16 bf16, 64 x 64 in 8, t n },
    wgmma! { gemm_wgmma_64x64_tt:            bf16 bf16, 64 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f32_64x64_nn:        bf16 f32, 64 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f32_64x64_nt:        bf16 f32, 64 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f32_64x64_tn:        bf16 f32, 64 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f32_64x64_tt:        bf16 f32, 64 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f16_64x64_nn:        f16 f16, 64 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f16_64x64_nt:        f16 f16, 64 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f16_64x64_tn:        f16 f16, 64 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f16_64x64_tt:        f16 f16, 64 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f16_f32_64x64_nn:    f16 f32, 64 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f16_f32_64x64_nt:    f16 f32, 64 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f16_f32_64x64_tn:    f16 f32, 64 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f16_f32_64x64_tt:    f16 f32, 64 x 64 in 8, t t },
    wgmma! { gemm_wgmma_deep_64x64_nn:          bf16 bf16, 64 x 64 in 8, n n },
    wgmma! { gemm_wgmma_deep_64x64_nt:          bf16 bf16, 64 x 64 in 8, n t },
    wgmma! { gemm_wgmma_deep_64x64_tn:          bf16 bf16, 64 x 64 in 8, t n },
    wgmma! { gemm_wgmma_deep_64x64_tt:          bf16 bf16, 64 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f32_deep_64x64_nn:      bf16 f32, 64 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f32_deep_64x64_nt:      bf16 f32, 64 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f32_deep_64x64_tn:      bf16 f32, 64 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f32_deep_64x64_tt:      bf16 f32, 64 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f16_deep_64x64_nn:      f16 f16, 64 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f16_deep_64x64_nt:      f16 f16, 64 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f16_deep_64x64_tn:      f16 f16, 64 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f16_deep_64x64_tt:      f16 f16, 64 x 64 in 8, t t },
    wgmma! { gemm_wgmma_f16_f32_deep_64x64_nn:  f16 f32, 64 x 64 in 8, n n },
    wgmma! { gemm_wgmma_f16_f32_deep_64x64_nt:  f16 f32, 64 x 64 in 8, n t },
    wgmma! { gemm_wgmma_f16_f32_deep_64x64_tn:  f16 f32, 64 x 64 in 8, t n },
    wgmma! { gemm_wgmma_f16_f32_deep_64x64_tt:  f16 f32, 64 x 64 in 8, t t },
    wgmma! { gemm_wgmma_64x16_nn:               bf16 bf16, 64 x 16 in 8, n n },
    wgmma! { gemm_wgmma_64x16_nt:               bf16 bf16, 64 x 16 in 8, n t },
    wgmma! { gemm_wgmma_64x16_tn:               bf16 bf16, 64 x 16 in 8, t n },
    wgmma! { gemm_wgmma_64x16_tt:               bf16 bf16, 64 x 16 in 8, t t },
    wgmma! { gemm_wgmma_f32_64x16_nn:           bf16 f32, 64 x 16 in 8, n n },
    wgmma! { gemm_wgmma_f32_64x16_nt:           bf16 f32, 64 x 16 in 8, n t },
    wgmma! { gemm_wgmma_f32_64x16_tn:           bf16 f32, 64 x 16 in 8, t n },
    wgmma! { gemm_wgmma_f32_64x16_tt:           bf16 f32, 64 x 16 in 8, t t },
    wgmma! { gemm_wgmma_f16_64x16_nn:           f16 f16, 64 x 16 in 8, n n },
    wgmma! { gemm_wgmma_f16_64x16_nt:           f16 f16, 64 x 16 in 8, n t },
    wgmma! { gemm_wgmma_f16_64x16_tn:           f16 f16, 64 x 16 in 8, t n },
    wgmma! { gemm_wgmma_f16_64x16_tt:           f16 f16, 64 x 16 in 8, t t },
    wgmma! { gemm_wgmma_f16_f32_64x16_nn:       f16 f32, 64 x 16 in 8, n n },
    wgmma! { gemm_wgmma_f16_f32_64x16_nt:       f16 f32, 64 x 16 in 8, n t },
    wgmma! { gemm_wgmma_f16_f32_64x16_tn:       f16 f32, 64 x 16 in 8, t n },
    wgmma! { gemm_wgmma_f16_f32_64x16_tt:       f16 f32, 64 x 16 in 8, t t },
    wgmma_any! { gemm_wgmma_any_64x128_nn:           bf16 bf16, 64 x 128, n n },
    wgmma_any! { gemm_wgmma_any_64x128_nt:           bf16 bf16, 64 x 128, n t },
    wgmma_any! { gemm_wgmma_any_64x128_tn:           bf16 bf16, 64 x 128, t n },
    wgmma_any! { gemm_wgmma_any_64x128_tt:           bf16 bf16, 64 x 128, t t },
    wgmma_any! { gemm_wgmma_any_f32_64x128_nn:       bf16 f32,  64 x 128, n n },
    wgmma_any! { gemm_wgmma_any_f32_64x128_nt:       bf16 f32,  64 x 128, n t },
    wgmma_any! { gemm_wgmma_any_f32_64x128_tn:       bf16 f32,  64 x 128, t n },
    wgmma_any! { gemm_wgmma_any_f32_64x128_tt:       bf16 f32,  64 x 128, t t },
    wgmma_any! { gemm_wgmma_any_f16_64x128_nn:       f16 f16,   64 x 128, n n },
    wgmma_any! { gemm_wgmma_any_f16_64x128_nt:       f16 f16,   64 x 128, n t },
    wgmma_any! { gemm_wgmma_any_f16_64x128_tn:       f16 f16,   64 x 128, t n },
    wgmma_any! { gemm_wgmma_any_f16_64x128_tt:       f16 f16,   64 x 128, t t },
    wgmma_any! { gemm_wgmma_any_f16_f32_64x128_nn:   f16 f32,   64 x 128, n n },
    wgmma_any! { gemm_wgmma_any_f16_f32_64x128_nt:   f16 f32,   64 x 128, n t },
    wgmma_any! { gemm_wgmma_any_f16_f32_64x128_tn:   f16 f32,   64 x 128, t n },
    wgmma_any! { gemm_wgmma_any_f16_f32_64x128_tt:   f16 f32,   64 x 128, t t },
    wgmma_any! { gemm_wgmma_any_64x64_nn:            bf16 bf16, 64 x 64, n n },
    wgmma_any! { gemm_wgmma_any_64x64_nt:            bf16 bf16, 64 x 64, n t },
    wgmma_any! { gemm_wgmma_any_64x64_tn:            bf16 bf16, 64 x 64, t n },
    wgmma_any! { gemm_wgmma_any_64x64_tt:            bf16 bf16, 64 x 64, t t },
    wgmma_any! { gemm_wgmma_any_f32_64x64_nn:        bf16 f32,  64 x 64, n n },
    wgmma_any! { gemm_wgmma_any_f32_64x64_nt:        bf16 f32,  64 x 64, n t },
    wgmma_any! { gemm_wgmma_any_f32_64x64_tn:        bf16 f32,  64 x 64, t n },
    wgmma_any! { gemm_wgmma_any_f32_64x64_tt:        bf16 f32,  64 x 64, t t },
    wgmma_any! { gemm_wgmma_any_f16_64x64_nn:        f16 f16,   64 x 64, n n },
    wgmma_any! { gemm_wgmma_any_f16_64x64_nt:        f16 f16,   64 x 64, n t },
    wgmma_any! { gemm_wgmma_any_f16_64x64_tn:        f16 f16,   64 x 64, t n },
    wgmma_any! { gemm_wgmma_any_f16_64x64_tt:        f16 f16,   64 x 64, t t },
    wgmma_any! { gemm_wgmma_any_f16_f32_64x64_nn:    f16 f32,   64 x 64, n n },
    wgmma_any! { gemm_wgmma_any_f16_f32_64x64_nt:    f16 f32,   64 x 64, n t },
    wgmma_any! { gemm_wgmma_any_f16_f32_64x64_tn:    f16 f32,   64 x 64, t n },
    wgmma_any! { gemm_wgmma_any_f16_f32_64x64_tt:    f16 f32,   64 x 64, t t },
    Entry {
        summary: "general product of f32 with factors of tf32, on tensor cores, 256 x 128 tiles",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_256x128_nn, 256 x 128 in 1),
    },
    Entry {
        summary: "general product of f32 with factors of tf32, on tensor cores, 128 x 128 tiles",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_128x128_nn, 128 x 128 in 1),
    },
    Entry {
        summary: "general product of f32 with factors of tf32, on tensor cores, 128 x 64 tiles",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_128x64_nn, 128 x 64 in 1),
    },
    Entry {
        summary: "general product of f32 with factors of tf32, on tensor cores, 32 x 32 tiles, k over a cluster",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_32x32_nn, 32 x 32 in 8),
    },
    Entry {
        summary: "general product of f32 with factors of tf32, on tensor cores, 64 x 32 tiles, k over a cluster",
        rung: None,
        contract: wgmma_tf32!(gemm_wgmma_tf32_64x32_nn, 64 x 32 in 8),
    },
    sliced! { gemm_sliced_bf16x6_256x192_nn: bf16x6, 256 x 192 or 128 of 2, n n },
    sliced! { gemm_sliced_bf16x6_256x192_nt: bf16x6, 256 x 192 or 128 of 2, n t },
    sliced! { gemm_sliced_bf16x6_256x192_tn: bf16x6, 256 x 192 or 128 of 2, t n },
    sliced! { gemm_sliced_bf16x6_256x192_tt: bf16x6, 256 x 192 or 128 of 2, t t },
    sliced! { gemm_sliced_bf16x6_256x128_nn: bf16x6, 256 x 128 of 2, n n },
    sliced! { gemm_sliced_bf16x6_256x128_nt: bf16x6, 256 x 128 of 2, n t },
    sliced! { gemm_sliced_bf16x6_256x128_tn: bf16x6, 256 x 128 of 2, t n },
    sliced! { gemm_sliced_bf16x6_256x128_tt: bf16x6, 256 x 128 of 2, t t },
    sliced! { gemm_sliced_bf16x6_64x128_nn: bf16x6, 64 x 128 of 1, n n },
    sliced! { gemm_sliced_bf16x6_64x128_nt: bf16x6, 64 x 128 of 1, n t },
    sliced! { gemm_sliced_bf16x6_64x128_tn: bf16x6, 64 x 128 of 1, t n },
    sliced! { gemm_sliced_bf16x6_64x128_tt: bf16x6, 64 x 128 of 1, t t },
    sliced! { gemm_sliced_f16x3_256x192_nn: f16x3, 256 x 192 or 128 of 2, n n },
    sliced! { gemm_sliced_f16x3_256x192_nt: f16x3, 256 x 192 or 128 of 2, n t },
    sliced! { gemm_sliced_f16x3_256x192_tn: f16x3, 256 x 192 or 128 of 2, t n },
    sliced! { gemm_sliced_f16x3_256x192_tt: f16x3, 256 x 192 or 128 of 2, t t },
    sliced! { gemm_sliced_f16x3_256x128_nn: f16x3, 256 x 128 of 2, n n },
    sliced! { gemm_sliced_f16x3_256x128_nt: f16x3, 256 x 128 of 2, n t },
    sliced! { gemm_sliced_f16x3_256x128_tn: f16x3, 256 x 128 of 2, t n },
    sliced! { gemm_sliced_f16x3_256x128_tt: f16x3, 256 x 128 of 2, t t },
    sliced! { gemm_sliced_f16x3_64x128_nn: f16x3, 64 x 128 of 1, n n },
    sliced! { gemm_sliced_f16x3_64x128_nt: f16x3, 64 x 128 of 1, n t },
    sliced! { gemm_sliced_f16x3_64x128_tn: f16x3, 64 x 128 of 1, t n },
    sliced! { gemm_sliced_f16x3_64x128_tt: f16x3, 64 x 128 of 1, t t },
    Entry {
        summary: "tiled16 without boundary checks, for sizes that are multiples of 16",
        rung: None,
        contract: program!(padded::padded16),
    },
    Entry {
        summary: "tiled_uncoalesced for a B that the CPU has transposed",
        rung: None,
        contract: program!(tiled_transposed::tiled_transposed),
    },
    Entry {
        summary: "c = a + b, one thread an element",
        rung: None,
        contract: program!(vec_add::vec_add),
    },
    Entry {
        summary: "image blur, every pixel of a box from global memory",
        rung: None,
        contract: program!(blur::blur),
    },
    Entry {
        summary: "image blur, a tile and its halo in shared memory",
        rung: None,
        contract: program!(blur::blur_shared),
    },
    Entry {
        summary: "a variable in a register: every thread counts for itself",
        rung: None,
        contract: program!(memories::register_counter),
    },
    Entry {
        summary: "a variable in shared memory: every block counts from zero",
        rung: None,
        contract: program!(memories::shared_counter),
    },
    Entry {
        summary: "a variable in global memory: every launch goes on counting",
        rung: None,
        contract: program!(memories::global_counter),
    },
    Entry {
        summary: "a pointer in global memory: x = -x where the host lets it point",
        rung: None,
        contract: program!(memories::pointed_negation),
    },
    Entry {
        summary: "variables in constant memory: a polynomial's coefficients",
        rung: None,
        contract: program!(memories::constant_polynomial),
    },
    Entry {
        summary: "matrices copied to where tensor copies can take them from",
        rung: None,
        contract: program!(gemm::pad::pad_rows),
    },
    Entry {
        summary: "matrices copied likewise, turned over: columns become rows",
        rung: None,
        contract: program!(gemm::pad::turn_rows),
    },
    Entry {
        summary: "matrices of two-byte elements copied to where tensor copies can take them from",
        rung: None,
        contract: program!(gemm::pad::pad_rows_u16),
    },
    Entry {
        summary: "matrices of two-byte elements copied likewise, turned over: columns become rows",
        rung: None,
        contract: program!(gemm::pad::turn_rows_u16),
    },
    Entry {
        summary: "matrices of f32 cut into three slices of bf16",
        rung: None,
        contract: program!(gemm_sliced::slices::cut_bf16x3),
    },
    Entry {
        summary: "matrices of f32 cut into two scaled slices of f16",
        rung: None,
        contract: program!(gemm_sliced::halves::cut_f16x2),
    },
    Entry {
        summary: "the sums of the rows of a pitched array",
        rung: None,
        contract: program!(pitched::row_sums),
    },
    Entry {
        summary: "a pitched array of three dimensions times a number, in place",
        rung: None,
        contract: program!(pitched::scale_box),
    },
];

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

/// The kernels' files, each with its place below this one's folder: whoever points at a line of a kernel can
/// show it where the sources are not at hand.
const SOURCES: &[(&str, &str)] = &[
    ("kernels/async_copy.rs", include_str!("kernels/async_copy.rs")),
    ("kernels/basic.rs", include_str!("kernels/basic.rs")),
    ("kernels/blur.rs", include_str!("kernels/blur.rs")),
    ("kernels/gemm/epilogue.rs", include_str!("kernels/gemm/epilogue.rs")),
    ("kernels/gemm/mod.rs", include_str!("kernels/gemm/mod.rs")),
    ("kernels/gemm/operand.rs", include_str!("kernels/gemm/operand.rs")),
    ("kernels/gemm/pad.rs", include_str!("kernels/gemm/pad.rs")),
    ("kernels/gemm/pieces.rs", include_str!("kernels/gemm/pieces.rs")),
    ("kernels/gemm/real.rs", include_str!("kernels/gemm/real.rs")),
    ("kernels/gemm/stored.rs", include_str!("kernels/gemm/stored.rs")),
    ("kernels/gemm_mma/entries.rs", include_str!("kernels/gemm_mma/entries.rs")),
    ("kernels/gemm_mma/mod.rs", include_str!("kernels/gemm_mma/mod.rs")),
    ("kernels/gemm_mma/number.rs", include_str!("kernels/gemm_mma/number.rs")),
    ("kernels/gemm_mma/operand.rs", include_str!("kernels/gemm_mma/operand.rs")),
    ("kernels/gemm_mma/output.rs", include_str!("kernels/gemm_mma/output.rs")),
    ("kernels/gemm_sliced/board.rs", include_str!("kernels/gemm_sliced/board.rs")),
    ("kernels/gemm_sliced/entries.rs", include_str!("kernels/gemm_sliced/entries.rs")),
    ("kernels/gemm_sliced/exceptions.rs", include_str!("kernels/gemm_sliced/exceptions.rs")),
    ("kernels/gemm_sliced/f16x3.rs", include_str!("kernels/gemm_sliced/f16x3.rs")),
    ("kernels/gemm_sliced/halves.rs", include_str!("kernels/gemm_sliced/halves.rs")),
    ("kernels/gemm_sliced/mod.rs", include_str!("kernels/gemm_sliced/mod.rs")),
    ("kernels/gemm_sliced/output.rs", include_str!("kernels/gemm_sliced/output.rs")),
    ("kernels/gemm_sliced/range.rs", include_str!("kernels/gemm_sliced/range.rs")),
    ("kernels/gemm_sliced/roles.rs", include_str!("kernels/gemm_sliced/roles.rs")),
    ("kernels/gemm_sliced/slices.rs", include_str!("kernels/gemm_sliced/slices.rs")),
    ("kernels/gemm_sliced/turns.rs", include_str!("kernels/gemm_sliced/turns.rs")),
    ("kernels/gemm_sliced/widths.rs", include_str!("kernels/gemm_sliced/widths.rs")),
    ("kernels/gemm_tma/fragment.rs", include_str!("kernels/gemm_tma/fragment.rs")),
    ("kernels/gemm_tma/mod.rs", include_str!("kernels/gemm_tma/mod.rs")),
    ("kernels/gemm_tma/parts.rs", include_str!("kernels/gemm_tma/parts.rs")),
    ("kernels/gemm_tma/rings.rs", include_str!("kernels/gemm_tma/rings.rs")),
    ("kernels/gemm_wgmma/entries.rs", include_str!("kernels/gemm_wgmma/entries.rs")),
    ("kernels/gemm_wgmma/gather.rs", include_str!("kernels/gemm_wgmma/gather.rs")),
    ("kernels/gemm_wgmma/gathered.rs", include_str!("kernels/gemm_wgmma/gathered.rs")),
    ("kernels/gemm_wgmma/mod.rs", include_str!("kernels/gemm_wgmma/mod.rs")),
    ("kernels/gemm_wgmma/operand.rs", include_str!("kernels/gemm_wgmma/operand.rs")),
    ("kernels/gemm_wgmma/output.rs", include_str!("kernels/gemm_wgmma/output.rs")),
    ("kernels/gemm_wgmma/parts.rs", include_str!("kernels/gemm_wgmma/parts.rs")),
    ("kernels/gemm_wgmma/shifted.rs", include_str!("kernels/gemm_wgmma/shifted.rs")),
    ("kernels/gemm_wgmma/walk.rs", include_str!("kernels/gemm_wgmma/walk.rs")),
    ("kernels/gemm_wgmma/words.rs", include_str!("kernels/gemm_wgmma/words.rs")),
    ("kernels/gemm_wgmma_tf32/columns.rs", include_str!("kernels/gemm_wgmma_tf32/columns.rs")),
    ("kernels/gemm_wgmma_tf32/mod.rs", include_str!("kernels/gemm_wgmma_tf32/mod.rs")),
    ("kernels/gemm_wgmma_tf32/narrow.rs", include_str!("kernels/gemm_wgmma_tf32/narrow.rs")),
    ("kernels/gemm_wgmma_tf32/output.rs", include_str!("kernels/gemm_wgmma_tf32/output.rs")),
    ("kernels/memories.rs", include_str!("kernels/memories.rs")),
    ("kernels/outer_product.rs", include_str!("kernels/outer_product.rs")),
    ("kernels/padded.rs", include_str!("kernels/padded.rs")),
    ("kernels/pitched.rs", include_str!("kernels/pitched.rs")),
    ("kernels/prefetched.rs", include_str!("kernels/prefetched.rs")),
    ("kernels/register_blocked.rs", include_str!("kernels/register_blocked.rs")),
    ("kernels/rust_cuda.rs", include_str!("kernels/rust_cuda.rs")),
    ("kernels/tile.rs", include_str!("kernels/tile.rs")),
    ("kernels/tiled.rs", include_str!("kernels/tiled.rs")),
    ("kernels/tiled_conflicts.rs", include_str!("kernels/tiled_conflicts.rs")),
    ("kernels/tiled_submatrix.rs", include_str!("kernels/tiled_submatrix.rs")),
    ("kernels/tiled_transposed.rs", include_str!("kernels/tiled_transposed.rs")),
    ("kernels/tiled_uncoalesced.rs", include_str!("kernels/tiled_uncoalesced.rs")),
    ("kernels/toy.rs", include_str!("kernels/toy.rs")),
    ("kernels/unrolled.rs", include_str!("kernels/unrolled.rs")),
    ("kernels/vec_add.rs", include_str!("kernels/vec_add.rs")),
    ("kernels/vectorised.rs", include_str!("kernels/vectorised.rs")),
    ("kernels/warp_tiled.rs", include_str!("kernels/warp_tiled.rs")),
];

/// A line of a kernel's file, counted from 1. `file` is its path as the compiler was given it.
pub fn source(file: &str, line: u32) -> Option<&'static str> {
    text(file)?.lines().nth((line as usize).checked_sub(1)?)
}

/// The text of a kernel's file. `file` is its path as the compiler was given it.
pub fn text(file: &str) -> Option<&'static str> {
    // Another crate may have files of the same names: its folder is another.
    let folder = file!().strip_suffix("registry.rs")?;
    let name = file.strip_prefix(folder)?;
    let (_, text) = SOURCES.iter().find(|(known, _)| *known == name)?;
    Some(text)
}

/// A kernel and what it is for. Only this file makes them, so that whoever runs one knows that it keeps its
/// contract.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry {
    /// In a few words, what sets it apart.
    pub summary: &'static str,
    /// Its place in the course; the rungs come in the order of [`KERNELS`].
    pub rung: Option<Rung>,
    /// What it computes, and how it is launched.
    pub contract: Contract,
}

impl Entry {
    /// The kernel's name: in Rust, in the PTX and on the command line.
    pub fn name(&self) -> &'static str {
        self.declaration().name
    }

    /// Does it round factors of f32 to tf32?
    pub fn is_tf32(&self) -> bool {
        match &self.contract {
            Contract::ProductTf32(_) => true,
            Contract::TensorProduct(product) => product.kernel.is_tf32(),
            _ => false,
        }
    }

    /// Does it cut factors of f32 into slices?
    pub fn is_sliced(&self) -> bool {
        matches!(&self.contract, Contract::TensorProduct(product) if product.kernel.is_sliced())
    }

    /// Is it a product of scaled slices of f16?
    pub fn is_f16x3(&self) -> bool {
        matches!(&self.contract, Contract::TensorProduct(product) if product.kernel.is_f16x3())
    }

    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        match &self.contract {
            Contract::Product(product) => product.declaration(),
            Contract::ProductF64(product) => &product.kernel.kernel.declaration,
            Contract::ProductBf16(product) => &product.kernel.kernel.declaration,
            Contract::ProductBf16F32(product) => &product.kernel.kernel.declaration,
            Contract::ProductF16(product) => &product.kernel.kernel.declaration,
            Contract::ProductF16F32(product) => &product.kernel.kernel.declaration,
            Contract::ProductTf32(product) => &product.kernel.kernel.declaration,
            Contract::TensorProduct(product) => product.kernel.declaration(),
            Contract::TensorProductBf16(product) => product.kernel.declaration(),
            Contract::TensorProductBf16F32(product) => product.kernel.declaration(),
            Contract::TensorProductF16(product) => product.kernel.declaration(),
            Contract::TensorProductF16F32(product) => product.kernel.declaration(),
            Contract::Program(program) => program.declaration,
        }
    }
}

/// A step of the course: a kernel that differs from the rung before by one idea.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rung {
    /// The idea, in a line.
    pub idea: &'static str,
    /// The ratio of computation to memory that follows from it on paper: FLOP for each byte that the threads of
    /// a block read from global memory.
    pub flop_per_byte: f64,
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

/// What a kernel computes. Further kinds will join.
#[derive(Debug)]
#[non_exhaustive]
pub enum Contract {
    /// A product of f32.
    Product(Product),
    /// A product of f64.
    ProductF64(GeneralProduct<f64>),
    /// A product of bf16, with sums of f32 and C of bf16.
    ProductBf16(GeneralProduct<Bf16>),
    /// A product of bf16, with sums and C of f32.
    ProductBf16F32(GeneralProduct<Bf16, f32>),
    /// A product of f16, with sums of f32 and C of f16.
    ProductF16(GeneralProduct<F16>),
    /// A product of f16, with sums and C of f32.
    ProductF16F32(GeneralProduct<F16, f32>),
    /// A product of f32 that is rounded to tf32, with sums of f32.
    ProductTf32(GeneralProduct<f32>),
    /// A product of f32 of matrices that the tensor memory accelerator can copy.
    TensorProduct(TensorProduct<f32>),
    /// The same of bf16, on tensor cores, with sums of f32 and C of bf16.
    TensorProductBf16(TensorProduct<Bf16>),
    /// The same with C of f32.
    TensorProductBf16F32(TensorProduct<Bf16, f32>),
    /// That of f16, with C of f16.
    TensorProductF16(TensorProduct<F16>),
    /// The same with C of f32.
    TensorProductF16F32(TensorProduct<F16, f32>),
    /// Something else, with parameters of its own: whoever launches it names the kernel.
    Program(Program),
}

impl Contract {
    /// Do A, and B, lie column by column where this kernel takes them as they are? Else row by row, as C does.
    pub fn by_columns(&self) -> [bool; 2] {
        let [a, b] = match self {
            Contract::TensorProduct(product) => product.along_k,
            Contract::TensorProductBf16(product) => product.along_k,
            Contract::TensorProductBf16F32(product) => product.along_k,
            Contract::TensorProductF16(product) => product.along_k,
            Contract::TensorProductF16F32(product) => product.along_k,
            _ => return [false; 2],
        };
        [!a, b]
    }
}

/// A kernel that is no product.
#[derive(Debug)]
#[non_exhaustive]
pub struct Program {
    /// What it says of itself.
    pub declaration: &'static Declaration,
}

/// `C = A B` of dense row-major matrices: A is `m x k`, B is `k x n`, C is `m x n`, any size.
#[derive(Debug)]
#[non_exhaustive]
pub struct Product {
    /// Threads of a block.
    pub block: [u32; 3],
    /// Rows and columns of C that a block computes. Blocks along x take columns, along y rows.
    pub tile: [u32; 2],
    /// The kernel.
    pub kernel: ProductKernel,
}

/// A product's kernel: its parameters are m, n, k, A, B, C.
#[derive(Clone, Copy, Debug)]
pub enum ProductKernel {
    /// Matrices as views.
    Views {
        /// The kernel.
        kernel: &'static Kernel<ViewParams>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedParams>,
    },
    /// Matrices as raw pointers. One version is run fast and checked.
    Pointers(&'static Kernel<PointerParams>),
    /// A general product, of which `C = A B` is a case.
    Gemm(GemmKernel<f32>),
}

/// A general product of A and B of `T`, with C and the bias of `O`: its kernel is told as much as one of f32.
#[derive(Debug)]
#[non_exhaustive]
pub struct GeneralProduct<T: 'static, O: 'static = T> {
    /// Threads of a block.
    pub block: [u32; 3],
    /// Rows and columns of C that a block computes.
    pub tile: [u32; 2],
    /// The kernel.
    pub kernel: GemmKernel<T, O>,
}

/// The kernel of a general product: its parameters are a [`Problem`], A and B of `T`, C and the bias of `O`.
///
/// Blocks along x take columns of C, along y rows, along z products of a batch. The bias may be empty where the
/// problem has none.
#[derive(Clone, Copy, Debug)]
pub struct GemmKernel<T: 'static, O: 'static = T> {
    /// The kernel.
    pub kernel: &'static Kernel<GemmParams<T, O>>,
    /// The same source, compiled for [`simt::check::launch`].
    pub checked: &'static Kernel<CheckedGemmParams<T, O>>,
}

/// Problem, A, B, C, bias.
pub type GemmParams<T, O = T> = (Problem, In<T>, In<T>, Out<O>, In<O>);
/// Problem, A, B, C, bias as views that report every access.
pub type CheckedGemmParams<T, O = T> =
    (Problem, CheckedIn<T>, CheckedIn<T>, CheckedOut<O>, CheckedIn<O>);

/// A general product of A and B of `T`, with C and the bias of `O`, whose operands the tensor memory accelerator copies: their
/// elements lie side by side along one side, and rows (or columns) and matrices begin at multiples of sixteen bytes. C's
/// strides are any.
///
/// Blocks are as those of a [`GemmKernel`]; but several of them along z may be a cluster, which splits k; or a block goes
/// on to [further tiles](Self::walkers).
#[derive(Debug)]
#[non_exhaustive]
pub struct TensorProduct<T: 'static, O: 'static = T> {
    /// Rows and columns of C that a block computes.
    pub tile: [u32; 2],
    /// Steps of k in a stage: a block of a cluster takes a number of whole ones.
    pub steps: u32,
    /// Blocks of a cluster that may split k, at most.
    pub most_splits: u32,
    /// The boxes of A.
    pub a: BoxShape,
    /// The boxes of B.
    pub b: BoxShape,
    /// Do A, and B, lie along k? A lies along m otherwise, B along n.
    pub along_k: [bool; 2],
    /// Are there kernels like it for the other three ways in which A and B may lie? Then nothing is turned over for it, nor
    /// exchanged unless its tile is narrower than a stage; a copy has rows at multiples of sixteen bytes, and is else as the
    /// operand is.
    pub is_one_of_four: bool,
    /// Where a block goes on to further tiles, and from product to product: how many blocks, which are a cluster, share a
    /// tile. Then all blocks are along x, as many as the tiles of all products take or fewer; where a cluster along z splits
    /// k, as many as they take.
    pub walkers: Option<u32>,
    /// Columns of the tiles that it has beside those of [`tile`](Self::tile), where it has [two
    /// widths](crate::kernels::gemm_sliced::widths).
    pub narrow: Option<u32>,
    /// The kernel.
    pub kernel: TensorKernel<T, O>,
}

/// The kernel of a product by tensor copies.
#[derive(Clone, Copy, Debug)]
pub enum TensorKernel<T: 'static, O: 'static = T> {
    /// It takes a map of A and one of B.
    Boxes {
        /// The kernel.
        kernel: &'static Kernel<TensorParams<T, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedTensorParams<T, O>>,
    },
    /// A's rows begin anywhere, the first at a multiple of sixteen bytes: there are maps of every fourth row of A, which
    /// begin at the multiple before.
    ShiftedA {
        /// The kernel.
        kernel: &'static Kernel<ShiftedParams<T, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedShiftedParams<T, O>>,
    },
    /// The same of elements of two bytes: there are maps of every eighth row of A, and a tile's rows are all of one of them.
    ClassesOfA {
        /// The kernel.
        kernel: &'static Kernel<ClassesParams<T, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedClassesParams<T, O>>,
    },
    /// It takes maps as [`Boxes`](TensorKernel::Boxes), of f32 that are rounded to tf32 as they are copied: `T` is f32. It
    /// takes any of its operands turned over, too.
    Tf32 {
        /// The kernel.
        kernel: &'static Kernel<TensorParams<Tf32, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedTensorParams<Tf32, O>>,
    },
    /// Its warps gather A and B themselves, whose rows begin anywhere: it takes views, as a [`GemmKernel`]. Of its boxes
    /// there are none.
    Gathered {
        /// The kernel.
        kernel: &'static Kernel<GemmParams<T, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedGemmParams<T, O>>,
    },
    /// It takes maps of planes, slices of A and B that another kernel has made before, as matrices
    /// [`SLICES`](crate::kernels::gemm_sliced::SLICES) times as many; and A and B themselves.
    Sliced {
        /// The kernel that makes the slices.
        cut: &'static Kernel<CutParams<T>>,
        /// The kernel.
        kernel: &'static Kernel<SlicedParams<T, O>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedSlicedParams<T, O>>,
    },
    /// The same of scaled slices of f16, [`SLICES`](crate::kernels::gemm_sliced::halves::SLICES) of a number.
    SlicedF16 {
        /// The kernel that makes the slices.
        cut: &'static Kernel<CutParams<T, F16>>,
        /// The kernel.
        kernel: &'static Kernel<SlicedParams<T, O, F16>>,
        /// The same source, compiled for [`simt::check::launch`].
        checked: &'static Kernel<CheckedSlicedParams<T, O, F16>>,
    },
}

impl<T, O> TensorProduct<T, O> {
    /// Tiles that so many rows of C take, one below the other.
    pub fn tiles_down(&self, rows: usize) -> usize {
        let tile = self.tile[0] as usize;
        match self.kernel {
            TensorKernel::ClassesOfA { .. } => {
                rows.min(CLASSES) * rows.div_ceil(CLASSES).div_ceil(tile)
            }
            _ => rows.div_ceil(tile),
        }
    }
}

impl<T, O> TensorKernel<T, O> {
    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        match self {
            TensorKernel::Boxes { kernel, .. } => &kernel.declaration,
            TensorKernel::ShiftedA { kernel, .. } => &kernel.declaration,
            TensorKernel::Tf32 { kernel, .. } => &kernel.declaration,
            TensorKernel::Gathered { kernel, .. } => &kernel.declaration,
            TensorKernel::Sliced { kernel, .. } => &kernel.declaration,
            TensorKernel::SlicedF16 { kernel, .. } => &kernel.declaration,
            TensorKernel::ClassesOfA { kernel, .. } => &kernel.declaration,
        }
    }

    /// May rows of A and B begin anywhere?
    pub fn gathers(&self) -> bool {
        matches!(self, TensorKernel::Gathered { .. })
    }

    /// May A's rows begin anywhere?
    pub fn shifts_a(&self) -> bool {
        matches!(self, TensorKernel::ShiftedA { .. } | TensorKernel::ClassesOfA { .. })
    }

    /// Are operands rounded to tf32?
    pub fn is_tf32(&self) -> bool {
        matches!(self, TensorKernel::Tf32 { .. })
    }

    /// Are operands cut into slices?
    pub fn is_sliced(&self) -> bool {
        matches!(self, TensorKernel::Sliced { .. } | TensorKernel::SlicedF16 { .. })
    }

    /// Are these scaled slices of f16?
    pub fn is_f16x3(&self) -> bool {
        matches!(self, TensorKernel::SlicedF16 { .. })
    }
}

/// Problem, A, B, C, bias.
pub type TensorParams<T, O = T> = (Problem, TensorMap<T>, TensorMap<T>, Out<O>, In<O>);
/// Problem, A, B, C, bias as views that report every access.
pub type CheckedTensorParams<T, O = T> =
    (Problem, CheckedTensorMap<T>, CheckedTensorMap<T>, CheckedOut<O>, CheckedIn<O>);
/// Problem, A four times, B, C, bias.
pub type ShiftedParams<T, O = T> =
    (Problem, TensorMap<T>, TensorMap<T>, TensorMap<T>, TensorMap<T>, TensorMap<T>, Out<O>, In<O>);
/// Problem, A four times, B, C, bias as views that report every access.
pub type CheckedShiftedParams<T, O = T> = (
    Problem,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedOut<O>,
    CheckedIn<O>,
);
/// Problem, A eight times, B, what is copied beside, from where and to where, C, bias.
pub type ClassesParams<T, O = T> = (
    Problem,
    TensorMap<T>,
    TensorMap<T>,
    TensorMap<T>,
    TensorMap<T>,
    TensorMap<T>,
    TensorMap<T>,
    TensorMap<T>,
    TensorMap<T>,
    TensorMap<T>,
    Matrices,
    In<T>,
    Out<T>,
    Out<O>,
    In<O>,
);
/// Problem, A eight times, B, what is copied beside, from where and to where, C, bias as views that report every access.
pub type CheckedClassesParams<T, O = T> = (
    Problem,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    CheckedTensorMap<T>,
    Matrices,
    CheckedIn<T>,
    CheckedOut<T>,
    CheckedOut<O>,
    CheckedIn<O>,
);
/// What is cut: of A and of B; A, B; and made of it: planes of A and of B, ranges of A and of B.
pub type CutParams<T, S = Bf16> =
    (Matrices, Matrices, In<T>, In<T>, Out<S>, Out<S>, Out<S>, Out<S>);
/// Problem, planes of A and of B, A, B, the ranges of A and of B, C, bias, the stream's
/// [board](crate::kernels::gemm_sliced::board).
pub type SlicedParams<T, O = T, S = Bf16> =
    (Problem, TensorMap<S>, TensorMap<S>, In<T>, In<T>, In<S>, In<S>, Out<O>, In<O>, Out<u32>);
/// Problem, planes of A and of B, A, B, the ranges of A and of B, C, bias, the stream's board as views that report every access.
pub type CheckedSlicedParams<T, O = T, S = Bf16> = (
    Problem,
    CheckedTensorMap<S>,
    CheckedTensorMap<S>,
    CheckedIn<T>,
    CheckedIn<T>,
    CheckedIn<S>,
    CheckedIn<S>,
    CheckedOut<O>,
    CheckedIn<O>,
    CheckedOut<u32>,
);

/// m, n, k, A, B, C with the matrices as views.
pub type ViewParams = (u32, u32, u32, In<f32>, In<f32>, Out<f32>);
/// m, n, k, A, B, C with the matrices as views that report every access.
pub type CheckedParams = (u32, u32, u32, CheckedIn<f32>, CheckedIn<f32>, CheckedOut<f32>);
/// m, n, k, A, B, C with the matrices as raw pointers.
pub type PointerParams = (u32, u32, u32, *const f32, *const f32, *mut f32);

impl Product {
    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        match self.kernel {
            ProductKernel::Views { kernel, .. } => &kernel.declaration,
            ProductKernel::Pointers(kernel) => &kernel.declaration,
            ProductKernel::Gemm(gemm) => &gemm.kernel.declaration,
        }
    }
}
