//! The kernels' files.

/// The kernels' files, each with its place below the crate's `src`: whoever points at a line of a kernel can
/// show it where the sources are not at hand.
const SOURCES: &[(&str, &str)] = &[
    ("kernels/async_copy.rs", include_str!("../kernels/async_copy.rs")),
    ("kernels/basic.rs", include_str!("../kernels/basic.rs")),
    ("kernels/blur.rs", include_str!("../kernels/blur.rs")),
    ("kernels/gemm/direct.rs", include_str!("../kernels/gemm/direct.rs")),
    ("kernels/gemm/epilogue.rs", include_str!("../kernels/gemm/epilogue.rs")),
    ("kernels/gemm/gelu.rs", include_str!("../kernels/gemm/gelu.rs")),
    ("kernels/gemm/mod.rs", include_str!("../kernels/gemm/mod.rs")),
    ("kernels/gemm/operand.rs", include_str!("../kernels/gemm/operand.rs")),
    ("kernels/gemm/pad.rs", include_str!("../kernels/gemm/pad.rs")),
    ("kernels/gemm/pieces.rs", include_str!("../kernels/gemm/pieces.rs")),
    ("kernels/gemm/real.rs", include_str!("../kernels/gemm/real.rs")),
    ("kernels/gemm/rows.rs", include_str!("../kernels/gemm/rows.rs")),
    ("kernels/gemm/stored.rs", include_str!("../kernels/gemm/stored.rs")),
    ("kernels/gemm_mma/entries.rs", include_str!("../kernels/gemm_mma/entries.rs")),
    ("kernels/gemm_mma/mod.rs", include_str!("../kernels/gemm_mma/mod.rs")),
    ("kernels/gemm_mma/number.rs", include_str!("../kernels/gemm_mma/number.rs")),
    ("kernels/gemm_mma/operand.rs", include_str!("../kernels/gemm_mma/operand.rs")),
    ("kernels/gemm_mma/output.rs", include_str!("../kernels/gemm_mma/output.rs")),
    ("kernels/gemm_sliced/board.rs", include_str!("../kernels/gemm_sliced/board.rs")),
    ("kernels/gemm_sliced/entries.rs", include_str!("../kernels/gemm_sliced/entries.rs")),
    ("kernels/gemm_sliced/exceptions.rs", include_str!("../kernels/gemm_sliced/exceptions.rs")),
    ("kernels/gemm_sliced/f16x3.rs", include_str!("../kernels/gemm_sliced/f16x3.rs")),
    ("kernels/gemm_sliced/halves.rs", include_str!("../kernels/gemm_sliced/halves.rs")),
    ("kernels/gemm_sliced/mod.rs", include_str!("../kernels/gemm_sliced/mod.rs")),
    ("kernels/gemm_sliced/output.rs", include_str!("../kernels/gemm_sliced/output.rs")),
    ("kernels/gemm_sliced/range.rs", include_str!("../kernels/gemm_sliced/range.rs")),
    ("kernels/gemm_sliced/roles.rs", include_str!("../kernels/gemm_sliced/roles.rs")),
    ("kernels/gemm_sliced/slices.rs", include_str!("../kernels/gemm_sliced/slices.rs")),
    ("kernels/gemm_sliced/widths.rs", include_str!("../kernels/gemm_sliced/widths.rs")),
    ("kernels/gemm_tma/fragment.rs", include_str!("../kernels/gemm_tma/fragment.rs")),
    ("kernels/gemm_tma/mod.rs", include_str!("../kernels/gemm_tma/mod.rs")),
    ("kernels/gemm_tma/parts.rs", include_str!("../kernels/gemm_tma/parts.rs")),
    ("kernels/gemm_tma/rings.rs", include_str!("../kernels/gemm_tma/rings.rs")),
    ("kernels/gemm_wgmma/beside.rs", include_str!("../kernels/gemm_wgmma/beside.rs")),
    ("kernels/gemm_wgmma/entries.rs", include_str!("../kernels/gemm_wgmma/entries.rs")),
    ("kernels/gemm_wgmma/gather.rs", include_str!("../kernels/gemm_wgmma/gather.rs")),
    ("kernels/gemm_wgmma/gathered.rs", include_str!("../kernels/gemm_wgmma/gathered.rs")),
    ("kernels/gemm_wgmma/mod.rs", include_str!("../kernels/gemm_wgmma/mod.rs")),
    ("kernels/gemm_wgmma/operand.rs", include_str!("../kernels/gemm_wgmma/operand.rs")),
    ("kernels/gemm_wgmma/output.rs", include_str!("../kernels/gemm_wgmma/output.rs")),
    ("kernels/gemm_wgmma/parts.rs", include_str!("../kernels/gemm_wgmma/parts.rs")),
    ("kernels/gemm_wgmma/shifted.rs", include_str!("../kernels/gemm_wgmma/shifted.rs")),
    ("kernels/gemm_wgmma/turns.rs", include_str!("../kernels/gemm_wgmma/turns.rs")),
    ("kernels/gemm_wgmma/walk.rs", include_str!("../kernels/gemm_wgmma/walk.rs")),
    ("kernels/gemm_wgmma/words.rs", include_str!("../kernels/gemm_wgmma/words.rs")),
    ("kernels/gemm_wgmma_tf32/columns.rs", include_str!("../kernels/gemm_wgmma_tf32/columns.rs")),
    ("kernels/gemm_wgmma_tf32/mod.rs", include_str!("../kernels/gemm_wgmma_tf32/mod.rs")),
    ("kernels/gemm_wgmma_tf32/narrow.rs", include_str!("../kernels/gemm_wgmma_tf32/narrow.rs")),
    ("kernels/gemm_wgmma_tf32/output.rs", include_str!("../kernels/gemm_wgmma_tf32/output.rs")),
    ("kernels/gemm_wgmma_tf32/rows.rs", include_str!("../kernels/gemm_wgmma_tf32/rows.rs")),
    ("kernels/memories.rs", include_str!("../kernels/memories.rs")),
    ("kernels/outer_product.rs", include_str!("../kernels/outer_product.rs")),
    ("kernels/padded.rs", include_str!("../kernels/padded.rs")),
    ("kernels/pitched.rs", include_str!("../kernels/pitched.rs")),
    ("kernels/prefetched.rs", include_str!("../kernels/prefetched.rs")),
    ("kernels/register_blocked.rs", include_str!("../kernels/register_blocked.rs")),
    ("kernels/rust_cuda.rs", include_str!("../kernels/rust_cuda.rs")),
    ("kernels/tile.rs", include_str!("../kernels/tile.rs")),
    ("kernels/tiled.rs", include_str!("../kernels/tiled.rs")),
    ("kernels/tiled_conflicts.rs", include_str!("../kernels/tiled_conflicts.rs")),
    ("kernels/tiled_submatrix.rs", include_str!("../kernels/tiled_submatrix.rs")),
    ("kernels/tiled_transposed.rs", include_str!("../kernels/tiled_transposed.rs")),
    ("kernels/tiled_uncoalesced.rs", include_str!("../kernels/tiled_uncoalesced.rs")),
    ("kernels/toy.rs", include_str!("../kernels/toy.rs")),
    ("kernels/unrolled.rs", include_str!("../kernels/unrolled.rs")),
    ("kernels/vec_add.rs", include_str!("../kernels/vec_add.rs")),
    ("kernels/vectorised.rs", include_str!("../kernels/vectorised.rs")),
    ("kernels/warp_tiled.rs", include_str!("../kernels/warp_tiled.rs")),
];

/// A line of a kernel's file, counted from 1. `file` is its path as the compiler was given it.
pub fn source(file: &str, line: u32) -> Option<&'static str> {
    text(file)?.lines().nth((line as usize).checked_sub(1)?)
}

/// The text of a kernel's file. `file` is its path as the compiler was given it.
pub fn text(file: &str) -> Option<&'static str> {
    // Another crate may have files of the same names: its folder is another.
    let folder = file!().strip_suffix("registry/sources.rs")?;
    let name = file.strip_prefix(folder)?;
    let (_, text) = SOURCES.iter().find(|(known, _)| *known == name)?;
    Some(text)
}
