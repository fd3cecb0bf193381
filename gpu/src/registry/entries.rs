//! Entries in few words: what kernels of a kind have in common.

use simt::{Declaration, device::BoxShape};

use super::{Contract, Design, Program};

use crate::kernels::{gemm_tma::SLAB, gemm_wgmma::DEPTH};

/// How fast a kernel was measured to be: 10^9 FLOP a second of a multiprocessor or of a core, the share of that which one block alone
/// comes to, microseconds before the first and after the last operation; and of which products, where not of all.
macro_rules! speed {
    ($gflops:expr, $alone:expr, $fixed_us:expr) => {
        speed!($gflops, $alone, $fixed_us, All)
    };
    ($gflops:expr, $alone:expr, $fixed_us:expr, $of:ident $(($of_number:expr))?) => {
        Some(Speed { gflops: $gflops, alone: $alone, fixed_us: $fixed_us, of: Products::$of $(($of_number))? })
    };
}

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
            constants: Constants::NONE,
            kernel: TensorKernel::Boxes {
                kernel: &crate::kernels::gemm_tma::$name,
                checked: &crate::checked::kernels::gemm_tma::$name,
            },
        })
    };
}

/// What most kernels do not have.
pub(super) const PLAIN: Design = Design {
    summary: "",
    rung: None,
    of_f16: None,
    on_gpu: None,
    on_cpu: None,
    contract: Contract::Program(Program { declaration: &Declaration::new("", &[], ("", 0)) }),
};

/// Steps of k of a slab.
pub(super) const SLAB_STEPS: u32 = SLAB as u32;

/// A general product on tensor cores, as a design of its own: its names where A and B are bf16 and where they are f16; C of that or of
/// f32; such a tile, of so many blocks, or whose k so many may split; the letters of a kernel whose A's rows begin anywhere.
macro_rules! wgmma {
    ($name:ident $f16:ident: $c:ident, $rows:tt x $cols:tt of $blocks:tt; $($speed:tt)*) => {
        wgmma! { @ $name $f16: $c, $rows x $cols of $blocks in 1, n n, ""; $($speed)* }
    };
    ($name:ident $f16:ident: $c:ident, $rows:tt x $cols:tt in $parts:tt; $($speed:tt)*) => {
        wgmma! { @ $name $f16: $c, $rows x $cols of 1 in $parts, n n, ""; $($speed)* }
    };
    ($name:ident $f16:ident: $c:ident, $rows:tt x $cols:tt of $blocks:tt, $a:ident $b:ident; $($speed:tt)*) => {
        wgmma! { @ $name $f16: $c, $rows x $cols of $blocks in 1, $a $b, concat!("; ", lie!($a $b)); $($speed)* }
    };
    (
        @ $name:ident $f16:ident: $c:ident, $rows:tt x $cols:tt of $blocks:tt in $parts:tt, $a:ident $b:ident, $lie:expr;
        $($speed:tt)*
    ) => {
        Design {
            summary: concat!("on tensor cores, ", $rows, " x ", $cols, " tiles", of_blocks!($blocks $parts), $lie),
            of_f16: Some(stringify!($f16)),
            on_gpu: speed!($($speed)*),
            contract: wgmma_contract!($c)(TensorProduct {
                tile: [$rows, $cols],
                steps: DEPTH as u32,
                most_splits: $parts,
                a: wgmma_boxes(true, $rows / $blocks),
                b: wgmma_boxes(false, $cols / $blocks),
                along_k: [true, false],
                is_one_of_four: true,
                walkers: Some($blocks),
                narrow: None,
                constants: Constants::NONE,
                kernel: wgmma_kernel!($a $name),
            }),
            ..PLAIN
        }
    };
}

/// The same of operands whose rows begin anywhere.
macro_rules! wgmma_any {
    ($name:ident $f16:ident: $c:ident, $rows:tt x $cols:tt; $($speed:tt)*) => {
        Design {
            summary: concat!("on tensor cores, rows anywhere, ", $rows, " x ", $cols, " tiles"),
            of_f16: Some(stringify!($f16)),
            on_gpu: speed!($($speed)*),
            contract: wgmma_contract!($c)(TensorProduct {
                tile: [$rows, $cols],
                steps: DEPTH as u32,
                most_splits: 1,
                a: wgmma_boxes(true, $rows),
                b: wgmma_boxes(false, $cols),
                along_k: [true, false],
                is_one_of_four: true,
                walkers: Some(1),
                narrow: None,
                constants: Constants::NONE,
                kernel: TensorKernel::Gathered {
                    kernel: &crate::kernels::gemm_wgmma::$name,
                    checked: &crate::checked::kernels::gemm_wgmma::$name,
                },
            }),
            ..PLAIN
        }
    };
}

/// Its kernel: with a map for A, or with one for each class of rows.
macro_rules! wgmma_kernel {
    (o $name:ident) => {
        TensorKernel::ClassesOfA {
            kernel: &crate::kernels::gemm_wgmma::$name,
            checked: &crate::checked::kernels::gemm_wgmma::$name,
        }
    };
    (s $name:ident) => {
        TensorKernel::SectorClassesOfA {
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

/// The contract with a C of that type, of bf16.
#[rustfmt::skip]
macro_rules! wgmma_contract {
    (half) => { Contract::TensorProductBf16 };
    (f32) => { Contract::TensorProductBf16F32 };
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
    (s n) => { "A along k, in rows that begin anywhere, by whole sectors, B along n" };
}

/// A general product of f32 with factors of tf32, on tensor cores, as a design of its own: such a tile, of so many blocks, or whose k
/// so many may split; A along k, in rows that may begin anywhere where it says so, B along n.
macro_rules! wgmma_tf32 {
    ($name:ident: $rows:tt x $cols:tt of $blocks:tt; $($speed:tt)*) => {
        wgmma_tf32! { @ $name: $rows x $cols of $blocks in 1, Tf32, ""; $($speed)* }
    };
    ($name:ident: $rows:tt x $cols:tt in $parts:tt; $($speed:tt)*) => {
        wgmma_tf32! { @ $name: $rows x $cols of 1 in $parts, Tf32, ""; $($speed)* }
    };
    ($name:ident: $rows:tt x $cols:tt of $blocks:tt, rows anywhere; $($speed:tt)*) => {
        wgmma_tf32! {
            @ $name: $rows x $cols of $blocks in 1, Tf32ClassesOfA, "; A's rows begin anywhere"; $($speed)*
        }
    };
    (@ $name:ident: $rows:tt x $cols:tt of $blocks:tt in $parts:tt, $kind:ident, $lie:expr; $($speed:tt)*) => {
        Design {
            summary: concat!(
                "general product of f32 with factors of tf32, on tensor cores, ", $rows, " x ", $cols, " tiles",
                of_blocks!($blocks $parts), $lie
            ),
            on_gpu: speed!($($speed)*),
            contract: Contract::TensorProduct(TensorProduct {
                tile: [$rows, $cols],
                steps: gemm_wgmma_tf32::DEPTH as u32,
                most_splits: $parts,
                a: BoxShape { rows: $rows / $blocks, cols: gemm_wgmma_tf32::DEPTH, swizzle: 128 },
                b: BoxShape { rows: gemm_wgmma_tf32::DEPTH, cols: 32, swizzle: 128 },
                along_k: [true, false],
                is_one_of_four: false,
                walkers: Some($blocks),
                narrow: None,
                constants: Constants::NONE,
                kernel: TensorKernel::$kind {
                    kernel: &crate::kernels::gemm_wgmma_tf32::$name,
                    checked: &crate::checked::kernels::gemm_wgmma_tf32::$name,
                },
            }),
            ..PLAIN
        }
    };
}

/// A general product of f32 whose factors are cut into slices, on tensor cores, as an entry of its own: such slices, such a tile;
/// `n` or `t` for A and for B.
macro_rules! sliced {
    ($name:ident: $kind:ident, $rows:tt x $cols:tt $(or $narrow:tt)? of $blocks:tt; $($speed:tt)*) => {
        Design {
            summary: concat!(
                "general product of f32 in ", slices!($kind), ", on tensor cores, ", $rows, " x ", $cols,
                $(" and ", $rows, " x ", $narrow,)? " tiles", of_blocks!($blocks 1)
            ),
            on_gpu: speed!($($speed)*),
            contract: Contract::TensorProduct(TensorProduct {
                tile: [$rows, $cols],
                steps: DEPTH as u32,
                most_splits: 1,
                a: wgmma_boxes(true, $rows / $blocks),
                b: wgmma_boxes(false, $cols / $blocks),
                along_k: [true, false],
                is_one_of_four: true,
                walkers: Some($blocks),
                narrow: narrow!($($narrow)?),
                constants: Constants::NONE,
                kernel: sliced_kernel!($kind $name),
            }),
            ..PLAIN
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

/// A general product of 16 bits on CUDA cores, as a design of its own: its names where A and B are bf16 and where they are f16; C of
/// that or of f32; its speed on a GPU, and on the CPU.
macro_rules! cuda_cores {
    ($name:ident $f16:ident: $c:ident; $($on_gpu:expr),*; $($on_cpu:expr),*) => {
        Design {
            summary: "on CUDA cores, 64 x 64 tiles, 4 x 4 elements a thread",
            of_f16: Some(stringify!($f16)),
            on_gpu: speed!($($on_gpu),*),
            on_cpu: speed!($($on_cpu),*),
            contract: general_contract!($c)(GeneralProduct {
                block: [256, 1, 1],
                tile: [64, 64],
                constants: Constants::NONE,
                kernel: gemm!($name),
            }),
            ..PLAIN
        }
    };
}

/// A general product on the tensor cores of every GPU, as a design of its own: its names where A and B are bf16 and where they are f16,
/// or its name where they are f32 that is rounded to tf32; C of that or of f32; such a tile, by so many threads.
macro_rules! mma {
    ($name:ident $f16:ident: $($rest:tt)*) => {
        mma! { @ $name, Some(stringify!($f16)), "": $($rest)* }
    };
    ($name:ident: $($rest:tt)*) => {
        mma! { @ $name, None, "general product of f32 with factors of tf32, ": $($rest)* }
    };
    (
        @ $name:ident, $f16:expr, $of:literal: $c:ident, $rows:tt x $cols:tt by $threads:tt;
        $($speed:tt)*
    ) => {
        Design {
            summary: concat!($of, "on every GPU's tensor cores, ", $rows, " x ", $cols, " tiles"),
            of_f16: $f16,
            on_gpu: speed!($($speed)*),
            contract: general_contract!($c)(GeneralProduct {
                block: [$threads, 1, 1],
                tile: [$rows, $cols],
                constants: Constants::NONE,
                kernel: GemmKernel {
                    kernel: &crate::kernels::gemm_mma::$name,
                    checked: &crate::checked::kernels::gemm_mma::$name,
                },
            }),
            ..PLAIN
        }
    };
}

/// The contract with a C of that type, of bf16, or of f32 as tf32.
#[rustfmt::skip]
macro_rules! general_contract {
    (half) => { Contract::ProductBf16 };
    (f32) => { Contract::ProductBf16F32 };
    (tf32) => { Contract::ProductTf32 };
}

/// Does an operand lie along k?
macro_rules! along_k {
    (a n) => {
        true
    };
    (a t) => {
        false
    };
    (b n) => {
        false
    };
}

/// The boxes of an operand of tensor cores.
pub(super) const fn wgmma_boxes(along_k: bool, tile: usize) -> BoxShape {
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
pub(super) const fn tile_ratio(rows: u32, cols: u32) -> f64 {
    (rows * cols) as f64 / (2 * (rows + cols)) as f64
}
