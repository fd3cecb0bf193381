//! A thread's indices, and the barrier of its block.

use core::arch::{asm, nvptx};

macro_rules! index {
    ($($name:ident = $intrinsic:ident;)*) => {$(
        #[inline(always)]
        pub fn $name() -> u32 {
            // SAFETY: reads a special register, which every thread has.
            unsafe { nvptx::$intrinsic() as u32 }
        }
    )*};
}

index! {
    thread_idx_x = _thread_idx_x;
    thread_idx_y = _thread_idx_y;
    thread_idx_z = _thread_idx_z;
    block_idx_x = _block_idx_x;
    block_idx_y = _block_idx_y;
    block_idx_z = _block_idx_z;
    block_dim_x = _block_dim_x;
    block_dim_y = _block_dim_y;
    block_dim_z = _block_dim_z;
    grid_dim_x = _grid_dim_x;
    grid_dim_y = _grid_dim_y;
    grid_dim_z = _grid_dim_z;
}

#[inline(always)]
pub fn opaque(number: usize) -> usize {
    let same: usize;
    // SAFETY: copies a register.
    unsafe {
        asm!("mov.b64 {}, {};", out(reg64) same, in(reg64) number, options(pure, nomem, nostack))
    };
    same
}

#[inline(always)]
pub fn sync_threads() {
    // SAFETY: the intrinsic, unlike `asm!`, is marked convergent, so that LLVM does not copy it
    // into branches that only some threads take. That all threads come here is the kernel's duty.
    unsafe { nvptx::_syncthreads() }
}

#[inline(always)]
pub fn lane_id() -> u32 {
    let lane: u32;
    // SAFETY: reads a special register.
    unsafe { asm!("mov.u32 {}, %laneid;", out(reg32) lane, options(pure, nomem, nostack)) };
    lane
}

// Not `%warpid`, which names a slot of the SM and may change.
#[inline(always)]
pub fn warp_id() -> u32 {
    let linear = thread_idx_x() + block_dim_x() * (thread_idx_y() + block_dim_y() * thread_idx_z());
    linear / 32
}

unsafe extern "C" {
    // device.ll
    safe fn simt_sync_threads_count(predicate: u32) -> u32;
    safe fn simt_sync_threads_and(predicate: u32) -> u32;
    safe fn simt_sync_threads_or(predicate: u32) -> u32;
    safe fn simt_fence_block();
    safe fn simt_fence_device();
    safe fn simt_fence_system();
}

#[inline(always)]
pub fn sync_threads_count(predicate: bool) -> u32 {
    simt_sync_threads_count(predicate.into())
}

#[inline(always)]
pub fn sync_threads_and(predicate: bool) -> bool {
    simt_sync_threads_and(predicate.into()) != 0
}

#[inline(always)]
pub fn sync_threads_or(predicate: bool) -> bool {
    simt_sync_threads_or(predicate.into()) != 0
}

#[inline(always)]
pub fn fence_block() {
    simt_fence_block();
}

#[inline(always)]
pub fn fence_device() {
    simt_fence_device();
}

#[inline(always)]
pub fn fence_system() {
    simt_fence_system();
}
