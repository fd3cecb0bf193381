//! The list of all kernels: the tables of the families, and here the lessons and the programs
//! (docs/design/architecture.md, "Adding a kernel").
//!
//! The command's `kernels`, the tests, the benchmarks and the documentation's tables all read this
//! list. The row of a table says what a product's kernel is (`registry/row.rs`); its variants
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
mod sum_order;
mod variant;

use std::sync::LazyLock;

pub(crate) use self::row::Row;
#[cfg(feature = "cpu")]
pub use self::sources::{source, text};
pub use self::{
    design::Design,
    product::*,
    representatives::REPRESENTATIVES,
    speed::{Costs, H200_BYTE_US, Products, Speed},
    sum_order::SumOrder,
    variant::*,
};
use self::{
    design::Of,
    entries::{bf16_ratio, tile_ratio},
    lesson::Lesson,
};
use crate::kernels::{emulated, gemm, mma, tma, wgmma, wgmma_tf32};

/// Every kernel's source, in the order in which the course teaches them: the lessons, the families,
/// and programs beside them.
static DESIGNS: [&[Design]; 8] = [
    LESSONS,
    gemm::table::DESIGNS,
    tma::table::DESIGNS,
    mma::table::DESIGNS,
    wgmma::table::DESIGNS,
    wgmma_tf32::table::DESIGNS,
    emulated::table::DESIGNS,
    PROGRAMS,
];

/// Lessons with a rung of the ladder, and those that are their twins.
static LESSONS: &[Design] = &[
    lesson!(basic::basic, 16 x 16, "one thread an element, everything from global memory")
        .rung("the triple loop with its two outer loops spread over threads", 0.25),
    lesson!(tiled_uncoalesced::tiled_uncoalesced, 16 x 16, "16 x 16 tiles, B read down its columns")
        .rung("what a block reads from global memory, all its threads use; but a warp reads B down its columns", tile_ratio(16, 16)),
    lesson!(tiled_conflicts::tiled_conflicts, 16 x 16, "16 x 16 tiles, B's transposed in shared memory")
        .rung("neighbouring threads read neighbouring elements of B; but its tile lies transposed, in two banks", tile_ratio(16, 16)),
    lesson!(tiled::tiled16, 16 x 16, "16 x 16 tiles in shared memory, two barriers a phase")
        .rung("both tiles lie as they are read: no bank conflicts", tile_ratio(16, 16))
        .on_gpu(speed!({ gflops: 61.0, alone: 0.2, fixed_us: 1.5, tile_us: [0.3, 0.3] })),
    lesson!(tiled::tiled32, 32 x 32, "32 x 32 tiles in shared memory, two barriers a phase")
        .rung("a tile of twice the width: each loaded element is used twice as often", tile_ratio(32, 32))
        .on_gpu(speed!({ gflops: 67.0, alone: 0.65, fixed_us: 2.0, tile_us: [1.0, 1.0] })),
    lesson!(outer_product::outer_product, 16 x 64, "outer products: an element of B in a register, A's tile shared, 16 elements of C a thread")
        .rung("one element of B in a register serves 16 multiply-adds, and 128 bits of A's tile four", tile_ratio(16, 64)),
    lesson!(unrolled::unrolled, 16 x 64, "outer products, 16 k-steps unrolled")
        .rung("no loop around a k-step, and 16 reads of B that do not wait for each other", tile_ratio(16, 64)),
    lesson!(prefetched::prefetched, 16 x 64, "outer products, the next tile of A read ahead")
        .rung("the next tile is on its way while this one is multiplied, and one barrier a phase is enough", tile_ratio(16, 64)),
    lesson!(register_blocked::register_blocked, 128 x 128, "128 x 128 tiles, 8 x 8 elements a thread")
        .rung("8 x 8 elements of C a thread: 16 elements read for 64 multiply-adds", tile_ratio(128, 128)),
    lesson!(vectorised::vectorised, 128 x 128, "128 x 128 tiles, 8 x 8 elements a thread, 128-bit accesses")
        .rung("four elements an instruction, from shared and from global memory", tile_ratio(128, 128)),
    lesson!(warp_tiled::warp_tiled, 128 x 256, "128 x 256 tiles, 64 x 64 a warp, 8 x 16 elements a thread")
        .rung("8 x 16 elements a thread: 24 read for 128 multiply-adds", tile_ratio(128, 256)),
    lesson!(async_copy::async_copy, 128 x 256, "128 x 256 tiles by asynchronous copies, three stages")
        .rung("copies that go on by themselves, two phases ahead, past the registers", tile_ratio(128, 256))
        // On Hopper it is used by name only: a C whose rows are not 16-byte aligned takes it 30 us
        // a tile.
        .on_gpu(speed!({ gflops: 322.0, alone: 1.0, fixed_us: 6.0, tile_us: [1.0, 1.5], of: Products::OtherGpus })),
    lesson!(tensor::mma::tensor_mma, 32 x 32; "tensor cores fed from global memory")
        .rung("a warp multiplies 16 x 16 elements by 16 x 16 together, in two instructions", bf16_ratio(16, 16)),
    lesson!(tensor::ldmatrix::tensor_ldmatrix, 128 x 128; "128 x 128 tiles in shared memory, fragments by `ldmatrix`")
        .rung("tiles in shared memory, read by `ldmatrix`; swizzled, so that there are no bank conflicts", bf16_ratio(128, 128)),
    lesson!(tensor::cp_async::tensor_cp_async, 128 x 128; "128 x 128 tiles, three stages by `cp.async`")
        .rung("the next tiles are on their way while one is multiplied", bf16_ratio(128, 128)),
    lesson!(tensor::wgmma::tensor_wgmma, 64 x 256; "64 x 256 tiles, `wgmma` of one warpgroup, four stages by `cp.async`")
        .rung("one instruction of four warps multiplies 64 x 256 x 16 elements of shared memory", bf16_ratio(64, 256)),
    lesson!(tensor::tma::tensor_tma, 64 x 256, tma(); "64 x 256 tiles, four stages by TMA")
        .rung("one thread copies whole boxes, swizzled and with zeros outside; an mbarrier counts their bytes", bf16_ratio(64, 256)),
    lesson!(tensor::producer::tensor_producer, 64 x 256, tma(); "64 x 256 tiles, a producer warp and a ring of four stages")
        .rung("a warp that only loads; no barrier in the loop, and MMAs of two stages are queued", bf16_ratio(64, 256)),
    lesson!(tensor::wide::tensor_wide, 128 x 256, tma(); "128 x 256 tiles, two warpgroups of consumers")
        .rung("two warpgroups share the columns of B, and take the producer's registers", bf16_ratio(128, 256)),
    lesson!(tensor::persistent::tensor_persistent, 128 x 256, tma(), persistent(1); "128 x 256 tiles, persistent CTAs in raster groups")
        .rung("a block goes on to its next tile with a full ring; tiles of one time share operands in L2", bf16_ratio(128, 256)),
    lesson!(tensor::cluster::tensor_cluster, 256 x 256, tma(), persistent(2); "256 x 256 tiles of two blocks, B by multicast")
        .rung("two blocks load B for each other", bf16_ratio(256, 256)),
    lesson!(tensor::tma_store::tensor_tma_store, 256 x 256, tma(), persistent(2), tma_store(); "256 x 256 tiles of two blocks, C stored by TMA")
        .rung("C is stored from shared memory by TMA, while the next tile is multiplied", bf16_ratio(256, 256)),
    lesson!(rust_cuda::rust_cuda_tiled16, 16 x 16, "tiled16 in Rust-CUDA's idiom: raw pointers, `cuda_std`'s vocabulary")
        .on_gpu(speed!({ gflops: 61.0, alone: 0.2, fixed_us: 1.5, tile_us: [0.3, 0.3] })),
    lesson!(tiled_submatrix::tiled_submatrix, 16 x 16, "tiled16 by a matrix type with a stride, whose sub-matrices are matrices")
        .on_gpu(speed!({ gflops: 61.0, alone: 0.2, fixed_us: 1.5, tile_us: [0.3, 0.3] })),
];

/// A lesson beside the ladder, and kernels that compute no product.
static PROGRAMS: &[Design] = programs! {
    lessons::padded::padded16: Example("padding"),
        "tiled16 without boundary checks, for sizes that are multiples of 16", speed!({ gflops: 61.0, alone: 0.2, fixed_us: 1.5, tile_us: [0.3, 0.3] });
    lessons::tiled_transposed::tiled_transposed: Example("transposed_b"),
        "tiled_uncoalesced for a B that the CPU has transposed";
    lessons::vec_add::vec_add: Example("vec_add"), "c = a + b, one thread an element";
    lessons::blur::blur: Command("blur"), "image blur, every pixel of a box from global memory";
    lessons::blur::blur_shared: Command("blur"), "image blur, a tile and its halo in shared memory";
    lessons::memories::register_counter: Example("memories"),
        "a variable in a register: every thread counts for itself";
    lessons::memories::shared_counter: Example("memories"),
        "a variable in shared memory: every block counts from zero";
    lessons::memories::global_counter: Example("memories"),
        "a variable in global memory: every launch goes on counting";
    lessons::memories::pointed_negation: Example("symbols"),
        "a pointer in global memory: x = -x where the host lets it point";
    lessons::memories::constant_polynomial: Example("symbols"),
        "variables in constant memory: a polynomial's coefficients";
    kernels::pack::pack_rows: Product, "matrices packed for TMA, with 16-byte aligned rows";
    kernels::transpose::transpose_rows: Product, "matrices transposed for TMA";
    kernels::pack::pack_rows_u16: Product, "matrices of 16-bit elements packed for TMA";
    kernels::pack::pack_rows_u8: Product, "matrices of 8-bit elements packed, with 16-byte aligned rows";
    kernels::pack::pack_rows_f64: Product, "matrices of f64 packed for TMA";
    kernels::transpose::transpose_rows_u16: Product, "matrices of 16-bit elements transposed for TMA";
    kernels::transpose_bytes::transpose_rows_u8: Product, "matrices of 8-bit elements transposed";
    kernels::reduce::reduce_f32: Product, "the sum of partial products, with C of f32";
    kernels::reduce::reduce_f64: Product, "the sum of partial products, with C of f64";
    kernels::reduce::reduce_i32: Product, "the sum of partial products, with C of i32";
    kernels::reduce::reduce_half: Product, "the sum of partial products, with C of bf16 or f16";
    kernels::quantise::quantise_f32: Function("quantise"), "f32 matrices rounded to 8 bits, with their scales";
    kernels::quantise::quantise_half: Function("quantise"), "bf16 or f16 matrices rounded to 8 bits, with their scales";
    kernels::emulated::split_bf16x3::split_bf16x3: Product,
        "f32 matrices split into three slices of bf16";
    kernels::emulated::split_f16x2::split_f16x2: Product,
        "f32 matrices split into two scaled slices of f16";
    lessons::pitched::row_sums: Example("pitched"), "the sums of the rows of a pitched array";
    lessons::pitched::scale_box: Example("pitched"),
        "a pitched array of three dimensions times a number, in place";
};

/// All variants of all kernels, in the order in which the course teaches them.
pub static KERNELS: LazyLock<Vec<Entry>> =
    LazyLock::new(|| designs().flat_map(Design::entries).collect());

/// Every kernel's source, in the order of [`KERNELS`].
pub fn designs() -> impl Iterator<Item = &'static Design> {
    DESIGNS.into_iter().flatten()
}

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
