//! The tiled kernel in Rust-CUDA's idiom: raw pointers, and a vocabulary imported from `cuda_std`.
//!
//! This file compiles against two crates. Here `cuda_std` is this project's `simt` under another
//! name, and the kernel runs on the GPU and on the CPU. A test also compiles the file, unchanged,
//! against Rust-CUDA's own `cuda_std` 0.2.2.
//!
//! The CPU device does not check the bounds of accesses through raw pointers.
//! [`tiled`](super::tiled) is the same kernel with bounds checks.

use cuda_std::{kernel, shared_array, thread};

/// C (m x n) = A (m x k) B (k x n) with 16 x 16 tiles in shared memory. A block has 16 x 16
/// threads.
///
/// # Safety
/// 1. `a`, `b` and `c` point to `m * k`, `k * n` and `m * n` elements.
#[kernel]
pub unsafe fn rust_cuda_tiled16(m: u32, n: u32, k: u32, a: *const f32, b: *const f32, c: *mut f32) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let tile_a = shared_array![f32; 256];
    let tile_b = shared_array![f32; 256];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * 16 + ty;
    let col = thread::block_idx_x() as usize * 16 + tx;
    let mut sum = 0.0;
    for phase in 0..k.div_ceil(16) {
        let (a_col, b_row) = (phase * 16 + tx, phase * 16 + ty);
        // SAFETY: inside A and B by the comparisons; inside the tiles because tx, ty and i are
        // below 16.
        unsafe {
            *tile_a.add(ty * 16 + tx) =
                if row < m && a_col < k { *a.add(row * k + a_col) } else { 0.0 };
            *tile_b.add(ty * 16 + tx) =
                if b_row < k && col < n { *b.add(b_row * n + col) } else { 0.0 };
            thread::sync_threads();
            for i in 0..16 {
                sum += *tile_a.add(ty * 16 + i) * *tile_b.add(i * 16 + tx);
            }
        }
        thread::sync_threads();
    }
    if row < m && col < n {
        // SAFETY: inside C by the comparison.
        unsafe { *c.add(row * n + col) = sum };
    }
}
