//! Which kernels stand for a module of kernel files where not all can be run.

/// Modules or files, and the kernels that mutants of them are run with: together they reach all of its code. What the
/// other kernels differ in is sizes and types.
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
    ("rust_cuda", &["rust_cuda_tiled16"]),
    ("tiled_submatrix", &["tiled_submatrix"]),
    // A small tile; two stages where the first has four; and elements that are stored as another type.
    ("gemm", &["gemm_32", "gemm_f64_64", "gemm_bf16_64"]),
    // What the other families use of it: whole tiles, rows of C at multiples of sixteen bytes, elements by themselves.
    (
        "gemm/epilogue.rs",
        &[
            "gemm_32",
            "gemm_f64_64",
            "gemm_bf16_64",
            "gemm_tma_128_nn",
            "gemm_mma_64x64",
            "gemm_wgmma_f32_64x16",
            "gemm_wgmma_128x256",
            "gemm_wgmma_tf32_128x64_on",
        ],
    ),
    ("gemm/pad.rs", &["pad_rows", "turn_rows", "pad_rows_u16", "turn_rows_u16"]),
    // Copies of rows that begin anywhere: before a product, and in the background of one.
    ("gemm/rows.rs", &["pad_rows", "pad_rows_u16", "gemm_wgmma_f32_256x256_on"]),
    ("gemm/pieces.rs", &["pad_rows", "pad_rows_u16", "gemm_wgmma_f32_256x256_on"]),
    // A along m; producer warps, with an aligned and an unaligned A; split-K over warps and blocks; whole tiles by warps.
    (
        "gemm_tma",
        &[
            "gemm_tma_64_tn",
            "gemm_tma_72x80_on",
            "gemm_tma_72x80_nn",
            "gemm_tma_64_nn",
            "gemm_tma_128_nn",
        ],
    ),
    // Unaligned rows with a C of the operands' type; 16-byte copies; and f32, whose elements are as long as the narrowest copy.
    ("gemm_mma", &["gemm_mma_64x64", "gemm_mma_128x128", "gemm_mma_tf32_64x64"]),
    // A narrow tile; split-K, of two tiles; one CTA a tile, C of either type; two CTAs of a cluster, which multicast halves of
    // boxes or whole ones; B MN-major and K-major; alignment classes of A, eight and sixteen; operands loaded by threads.
    (
        "gemm_wgmma",
        &[
            "gemm_wgmma_f32_64x16",
            "gemm_wgmma_f32_128x128",
            "gemm_wgmma_f32_64x128",
            "gemm_wgmma_128x256",
            "gemm_wgmma_f32_128x256",
            "gemm_wgmma_256x192",
            "gemm_wgmma_f32_256x256",
            "gemm_wgmma_f32_256x256_on",
            "gemm_wgmma_f32_256x256_sn",
            "gemm_wgmma_any_f32_64x64",
        ],
    ),
    // The smallest tile of either main loop; and alignment classes of A, by one CTA and by two of a cluster.
    (
        "gemm_wgmma_tf32",
        &[
            "gemm_wgmma_tf32_32x32_nn",
            "gemm_wgmma_tf32_128x64_nn",
            "gemm_wgmma_tf32_128x64_on",
            "gemm_wgmma_tf32_256x256_on",
        ],
    ),
    // Of either kind of slices the kernel that makes them, a CTA alone, and two of a cluster with ping-pong and two widths of
    // tiles. Each is K-major and MN-major in turn.
    (
        "gemm_sliced",
        &[
            "cut_bf16x3",
            "cut_f16x2",
            "gemm_sliced_bf16x6_64x128",
            "gemm_sliced_bf16x6_256x192",
            "gemm_sliced_f16x3_64x128",
            "gemm_sliced_f16x3_256x192",
        ],
    ),
];
