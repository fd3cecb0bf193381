//! How fast kernels are, what their operands cost them, and which products that holds for.

use super::variant::{Access, Family, Scheme, Variant};

/// How fast a kernel is, and how much work it needs for that (docs/log/selection.md, "The model's
/// numbers").
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// GFLOP/s of one SM of an H200, or of one CPU core. Of tf32 by `mma.sync` on other GPUs than
    /// Hopper they are those of an A100.
    pub gflops: f64,
    /// The fraction of this that a single block reaches.
    pub alone: f64,
    /// Microseconds before the first operation and after the last.
    pub fixed_us: f64,
    /// Microseconds of an SM for each further tile, beside its operations: one that C fills, and
    /// one that extends beyond the columns of C.
    pub tile_us: [f64; 2],
    /// The products that the speed holds for.
    pub of: Products,
}

impl Speed {
    /// What a row need not say.
    pub(crate) const OF_ALL: Speed =
        Speed { gflops: 0.0, alone: 1.0, fixed_us: 0.0, tile_us: [0.0; 2], of: Products::All };
}

/// The products that a kernel's speed holds for. Sizes are those of the launch, after A and B have
/// been swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// All products.
    All,
    /// Products of at most this many columns.
    Columns(usize),
    /// Single products whose shorter side, m or n, is at least this long and at most 64.
    ShorterSide(usize),
    /// Products on GPUs other than Hopper, which has faster units.
    OtherGpus,
    /// The same, with rows or columns that begin and end at multiples of sixteen bytes. Other
    /// operands are copied element by element, which is slow.
    OtherGpusInPieces,
}

/// What a kernel's loads, stores and sums cost beside its operations. Measured for a family's
/// kernels together (docs/log/selection.md).
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Microseconds for a byte of A and B, and of C: the most that the kernels reached on a GPU.
    pub memory_us: [f64; 2],
    /// How many times its share of the memory's bandwidth an SM can load while others are idle.
    pub more_than_share: f64,
    /// The part of the shorter time, of memory or of operations, that does not overlap the longer.
    pub apart: f64,
    /// Gigabytes a second that an SM loads from L2 while all do, by where rows start: at multiples
    /// of 16, 32, 64 and 128 bytes. Infinite where the speed contains it.
    pub l2: [f64; 4],
    /// Microseconds of an SM for a sum that is staged in shared memory.
    pub staged_us: f64,
    /// Microseconds of an SM for an element of a tile where rows of C are not 16-byte aligned:
    /// without and with alpha, beta, bias or activation.
    pub unaligned_c_us: [f64; 2],
    /// Microseconds in which a cluster adds the parts of its tiles' sums: up to 64 columns of C,
    /// and more.
    pub cluster_sum_us: [f64; 2],
    /// Picoseconds for an element of a C whose rows are not contiguous: stored in whole sectors of
    /// a column, in parts of sectors, and one by one.
    pub strided_ps: [u64; 3],
    /// Picoseconds for a byte of an operand's copy, as far as a plan weighs it against
    /// `strided_ps`.
    pub copied_ps: f64,
    /// How much longer operations take with rows or columns that are not 16-byte aligned.
    pub unaligned: f64,
    /// How much longer they take where alignment classes start at odd multiples of sixteen bytes:
    /// in halves of sectors. Measured for 4095 x 4093 x 4097 in bf16.
    pub half_sectors: f64,
    /// Tiles an SM from which the last ones do not begin together: then few are left over. For
    /// kernels of which several blocks share an SM, and for others.
    pub many_tiles: [f64; 2],
}

/// Microseconds for a byte at the rate of an H200's memory.
pub const H200_BYTE_US: f64 = 1e-6 / 4.2;

impl Costs {
    /// CUDA cores of any GPU. 1.75 TB/s of A and B, and 2.4 of C, were the most on an H100.
    const GEMM: Costs = Costs {
        memory_us: [0.57e-6, 0.42e-6],
        more_than_share: f64::INFINITY,
        apart: 0.0,
        l2: [f64::INFINITY; 4],
        staged_us: 0.0,
        unaligned_c_us: [2e-5, 4e-5],
        cluster_sum_us: [0.0; 2],
        strided_ps: [0; 3],
        copied_ps: 0.7,
        unaligned: 1.0,
        half_sectors: 1.0,
        many_tiles: [f64::INFINITY; 2],
    };

    /// Threads that split k. An element of a strided C is a guess.
    const DOT: Costs = Costs { memory_us: [H200_BYTE_US; 2], strided_ps: [5; 3], ..Costs::GEMM };

    /// Tensor cores from Ampere on. 2.4 TB/s on an H100. They copy unaligned rows element by
    /// element: measured in tf32 ("tf32 by `mma` on Hopper"); in 16-bit types it is a guess.
    const MMA: Costs = Costs { memory_us: [0.42e-6; 2], unaligned: 1.8, ..Costs::GEMM };

    /// Hopper's CUDA cores, and kernels of 16-bit types whose threads load (`ldg`): one tile after
    /// the other without persistent CTAs.
    const TMA: Costs = Costs {
        memory_us: [H200_BYTE_US; 2],
        cluster_sum_us: [2.3; 2],
        many_tiles: [4.0, 8.0],
        ..Costs::GEMM
    };

    /// Hopper's tensor cores, persistent CTAs. L2: docs/log/selection.md, "L2 bandwidth". A staged
    /// sum is eight bytes there and back at 128 bytes a cycle (computed). A cluster's sum was
    /// measured for C of 16 and of 4096 columns.
    const WGMMA: Costs = Costs {
        more_than_share: 3.5,
        apart: 0.25,
        l2: [39.0, 57.0, 63.0, 70.0],
        staged_us: 3.5e-5,
        unaligned_c_us: [5e-5, 2e-4],
        cluster_sum_us: [2.0, 5.0],
        many_tiles: [4.0; 2],
        ..Costs::TMA
    };

    /// The costs of a variant.
    pub(super) const fn of(variant: &Variant) -> Costs {
        match (variant.family, variant.scheme) {
            (Family::Lesson(_), _) => Costs::GEMM,
            (Family::Gemm, _) if matches!(variant.access, Access::Dot) => Costs::DOT,
            (Family::Gemm, _) => Costs::GEMM,
            // By TMA: they read unaligned rows as aligned copies. A block has three stages in
            // flight, of 16 to 24 KiB.
            (Family::Mma, _) if matches!(variant.access, Access::Tma) => Costs {
                memory_us: [H200_BYTE_US; 2],
                more_than_share: 1.6,
                unaligned: 1.0,
                ..Costs::MMA
            },
            // Unaligned rows are packed before.
            (Family::Mma, _) if matches!(variant.access, Access::Pieces) => {
                Costs { unaligned: 1.0, ..Costs::MMA }
            }
            // An f64 is copied alone: on an H200 at 4095x4093x4097.
            (Family::Mma, _) if variant.operands.bytes() == 8 => {
                let unaligned = if variant.tile[0] == 128 { 1.12 } else { 1.27 };
                Costs { unaligned, ..Costs::MMA }
            }
            // An f32 is copied alone, by the main loop: on an H200 at 4096x4097x4096.
            (Family::Mma, Scheme::Tf32) if variant.tile[0] == 128 => {
                Costs { unaligned: 1.35, ..Costs::MMA }
            }
            (Family::Mma, _) => Costs::MMA,
            // A guess, which counts as so many bytes of a copy.
            (Family::Tma, _) => Costs { strided_ps: [5; 3], copied_ps: 1.0, ..Costs::TMA },
            // Figures: docs/log/selection.md, "A strided C" and "By columns".
            (Family::Wgmma, Scheme::Tf32) => Costs { strided_ps: [3, 7, 10], ..Costs::WGMMA },
            // Their speeds contain the L2's.
            (Family::Wgmma, Scheme::Bf16x6 | Scheme::F16x3) => {
                Costs { l2: [f64::INFINITY; 4], strided_ps: [5; 3], ..Costs::WGMMA }
            }
            (Family::Wgmma, Scheme::Native) => match variant.access {
                Access::Ldg => Costs { l2: [f64::INFINITY; 4], ..Costs::WGMMA },
                Access::UnalignedA(8) => Costs { half_sectors: 1.025, ..Costs::WGMMA },
                _ => Costs::WGMMA,
            },
        }
    }
}
