//! The kernels that stand for a module where running all would take too long.

/// Modules or files, and the kernels that their mutants run with. Together these kernels reach all
/// code of the module. The others differ in sizes and types alone.
pub const REPRESENTATIVES: &[(&str, &[&str])] = &[
    ("basic", &["basic"]),
    ("tiled_uncoalesced", &["tiled_uncoalesced"]),
    ("tiled_conflicts", &["tiled_conflicts"]),
    ("tiled", &["tiled16", "tiled32"]),
    ("outer_product", &["outer_product"]),
    ("tile", &["outer_product", "prefetched", "register_blocked", "vectorised"]),
    ("unrolled", &["unrolled"]),
    ("prefetched", &["prefetched"]),
    ("register_blocked", &["register_blocked"]),
    ("vectorised", &["vectorised"]),
    ("warp_tiled", &["warp_tiled"]),
    ("async_copy", &["async_copy"]),
    ("lessons/tensor/mma.rs", &["tensor_mma"]),
    ("lessons/tensor/ldmatrix.rs", &["tensor_ldmatrix"]),
    ("lessons/tensor/cp_async.rs", &["tensor_cp_async"]),
    ("lessons/tensor/wgmma.rs", &["tensor_wgmma"]),
    ("lessons/tensor/tma.rs", &["tensor_tma"]),
    ("lessons/tensor/producer.rs", &["tensor_producer"]),
    ("lessons/tensor/wide.rs", &["tensor_wide"]),
    ("lessons/tensor/persistent.rs", &["tensor_persistent"]),
    ("lessons/tensor/cluster.rs", &["tensor_cluster"]),
    ("lessons/tensor/tma_store.rs", &["tensor_tma_store"]),
    ("rust_cuda", &["rust_cuda_tiled16"]),
    ("tiled_submatrix", &["tiled_submatrix"]),
    // A small tile; two stages where the first has four; and a type of storage other than the type
    // of computation.
    (
        "gemm",
        &[
            "gemm_f32_32x32x8",
            "gemm_f64_64x64x16",
            "gemm_half_64x64x16",
            "gemm_i8_i32_64x64x16",
            "gemm_i8_f32_64x64x16",
            "gemm_fp8_f32_64x64x16",
        ],
    ),
    (
        "kernels/gemm/through_registers.rs",
        &["gemm_f32_64x64x16", "gemm_f32_64x32x16", "gemm_f32_64x16x16"],
    ),
    ("kernels/gemm/stream.rs", &["gemm_f32_128x128x16"]),
    ("kernels/gemm/direct.rs", &["gemm_f32_4x64x1", "gemm_half_f32_4x64x1", "gemm_i8_i32_4x64x1"]),
    ("kernels/gemm/dot.rs", &["gemm_f32_dot", "gemm_f64_dot", "gemm_half_f32_dot"]),
    ("collective/cp_async.rs", &["gemm_f32_32x32x8", "gemm_f64_64x64x16", "gemm_half_64x64x16"]),
    (
        "collective/fragment.rs",
        &[
            "gemm_f32_128x128x16",
            "tma_f32_64x64x64_tn",
            "tma_f32_72x80x8_ua4_nn",
            "tma_f32_128x128x32_nn",
        ],
    ),
    ("collective/activation/exact.rs", &["gemm_f32_32x32x8", "gemm_f64_64x64x16"]),
    ("collective/activation/half.rs", &["gemm_half_64x64x16"]),
    // Staged sums, of f64 too; activations where the sums are, of which other types have their own.
    (
        "collective/real.rs",
        &[
            "gemm_f32_32x32x8",
            "gemm_f64_64x64x16",
            "gemm_half_64x64x16",
            "gemm_i8_i32_64x64x16",
            "gemm_i8_f32_64x64x16",
            "mma_f64_64x64x32",
            "reduce_f64",
            "reduce_i32",
        ],
    ),
    (
        "collective/scales.rs",
        &["wgmma_i8_f32_64x128x128_nt", "wgmma_fp8_f32_64x64x128_nt", "mma_i8_f32_64x64x64_nt"],
    ),
    (
        "collective/stored.rs",
        &[
            "gemm_f32_32x32x8",
            "gemm_f64_64x64x16",
            "gemm_half_64x64x16",
            "gemm_i8_i32_64x64x16",
            "gemm_fp8_f32_64x64x16",
            "wgmma_half_f32_128x256x64",
        ],
    ),
    // What the other families use of it: whole tiles, 16-byte aligned rows of C, single elements.
    (
        "collective/epilogue.rs",
        &[
            "gemm_f32_32x32x8",
            "gemm_f64_64x64x16",
            "gemm_half_64x64x16",
            "tma_f32_128x128x32_nn",
            "mma_half_64x64x64",
            "wgmma_half_f32_64x16x64",
            "wgmma_half_128x256x64",
            "wgmma_tf32_128x64x32_ua8_nn",
        ],
    ),
    (
        "collective/epilogue/finish.rs",
        &[
            "gemm_f32_32x32x8",
            "gemm_f32_64x64x16",
            "gemm_f64_64x64x16",
            "gemm_half_64x64x16",
            "tma_f32_128x128x32_nn",
            "mma_half_64x64x64",
            "wgmma_half_f32_64x16x64",
            "wgmma_half_128x256x64",
            "wgmma_tf32_128x64x32_ua8_nn",
        ],
    ),
    ("pack", &["pack_rows", "pack_rows_u16", "pack_rows_u8"]),
    ("transpose", &["transpose_rows", "transpose_rows_u16"]),
    ("transpose_bytes", &["transpose_rows_u8"]),
    // The last columns and rows of a tile, in all layouts, and a stage that has two slabs.
    ("kernels/mma/boxes.rs", &["mma_f64_128x64x16", "mma_f64_64x32x32"]),
    ("kernels/mma/by_tma.rs", &["mma_f64_128x64x16", "mma_f64_64x32x32"]),
    ("quantise", &["quantise_f32", "quantise_half"]),
    ("reduce", &["reduce_f32", "reduce_half", "reduce_f64", "reduce_i32"]),
    // Copies of unaligned rows: before a product, and in the background of one.
    (
        "collective/copy_rows.rs",
        &["pack_rows", "pack_rows_u16", "wgmma_half_f32_256x256x64_c2_ua8_nn"],
    ),
    (
        "collective/unaligned_vector.rs",
        &["pack_rows", "pack_rows_u16", "pack_rows_u8", "wgmma_half_f32_256x256x64_c2_ua8_nn"],
    ),
    // An M-major A; producer warps, with an aligned and an unaligned A; split-K over warps and
    // CTAs; whole tiles by warps.
    (
        "tma",
        &[
            "tma_f32_64x64x64_tn",
            "tma_f32_72x80x8_ua4_nn",
            "tma_f32_72x80x8_nn",
            "tma_f32_64x64x64_nn",
            "tma_f32_128x128x32_nn",
        ],
    ),
    // Unaligned rows with a C of the operands' type; 16-byte copies, with a block that copies two
    // panels at once, too; f32, whose elements are as
    // long as the narrowest copy; and with k-steps in a loop; f64, whose elements are longer; f64
    // by TMA; and i8, with and without scales.
    (
        "mma",
        &[
            "mma_half_64x64x64",
            "mma_half_128x128x32",
            "mma_half_128x256x32",
            "mma_tf32_64x64x32",
            "mma_tf32_128x128x32",
            "mma_f64_64x64x32",
            "mma_f64_64x32x32",
            "mma_i8_f32_64x64x64_nt",
            "mma_i8_i32_128x128x64_nt",
        ],
    ),
    // A narrow tile; split-K, of two tiles; one CTA a tile, C of either type; two CTAs of a
    // cluster, which multicast halves of boxes or whole ones; B MN-major and K-major; alignment
    // classes of A, eight and sixteen; operands loaded by threads; sums of i32; short sums.
    (
        "wgmma",
        &[
            "wgmma_half_f32_64x16x64",
            "wgmma_half_f32_128x128x64",
            "wgmma_half_f32_64x128x64",
            "wgmma_half_128x256x64",
            "wgmma_half_f32_128x256x64",
            "wgmma_half_256x192x64_c2",
            "wgmma_half_f32_256x256x64_c2",
            "wgmma_half_f32_256x256x64_c2_ua8_nn",
            "wgmma_half_f32_256x256x64_c2_ua16_nn",
            "wgmma_half_f32_64x64x64_ldg",
            "wgmma_i8_i32_64x16x128_nt",
            "wgmma_i8_f32_64x128x128_nt",
            "wgmma_fp8_f32_64x64x128_nt",
            "wgmma_fp8_f32_256x128x128_c2_nt",
            "wgmma_i8_i32_256x256x128_c2_nt",
        ],
    ),
    // The collectives that these kernels are made of.
    (
        "collective",
        &[
            "wgmma_half_f32_64x16x64",
            "wgmma_half_f32_128x128x64",
            "wgmma_half_f32_64x128x64",
            "wgmma_half_128x256x64",
            "wgmma_half_f32_128x256x64",
            "wgmma_half_256x192x64_c2",
            "wgmma_half_f32_256x256x64_c2",
            "wgmma_half_f32_256x256x64_c2_ua8_nn",
            "wgmma_half_f32_256x256x64_c2_ua16_nn",
            "wgmma_half_f32_64x64x64_ldg",
            "wgmma_i8_i32_64x16x128_nt",
            "wgmma_i8_f32_64x128x128_nt",
            "wgmma_fp8_f32_64x64x128_nt",
            "wgmma_fp8_f32_256x128x128_c2_nt",
            "wgmma_i8_i32_256x256x128_c2_nt",
        ],
    ),
    // The smallest tile of either main loop; and alignment classes of A, by one CTA and by two of a
    // cluster.
    (
        "wgmma_tf32",
        &[
            "wgmma_tf32_32x32x32_nn",
            "wgmma_tf32_128x64x32_nn",
            "wgmma_tf32_128x64x32_ua8_nn",
            "wgmma_tf32_256x256x32_c2_ua8_nn",
        ],
    ),
    // For both split schemes: the kernel that splits, a CTA without a cluster, and two CTAs of a
    // cluster with ping-pong and two tile widths. Each is K-major and MN-major in turn.
    (
        "emulated",
        &[
            "split_bf16x3",
            "split_f16x2",
            "wgmma_bf16x6_64x128x64",
            "wgmma_bf16x6_256x192x64_c2",
            "wgmma_f16x3_64x128x64",
            "wgmma_f16x3_256x192x64_c2",
        ],
    ),
];
