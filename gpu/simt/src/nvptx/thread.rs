//! A thread's indices, and the barrier of its block.

use core::arch::{asm, nvptx};

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident = $intrinsic:ident;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() -> u32 {
            // SAFETY: reads a special register, which every thread has.
            unsafe { nvptx::$intrinsic() as u32 }
        }
    )*};
}

index! {
    /// The thread's x index in its block.
    thread_idx_x = _thread_idx_x;
    /// The thread's y index in its block.
    thread_idx_y = _thread_idx_y;
    /// The thread's z index in its block.
    thread_idx_z = _thread_idx_z;
    /// The block's x index in the grid.
    block_idx_x = _block_idx_x;
    /// The block's y index in the grid.
    block_idx_y = _block_idx_y;
    /// The block's z index in the grid.
    block_idx_z = _block_idx_z;
    /// Threads of a block along x.
    block_dim_x = _block_dim_x;
    /// Threads of a block along y.
    block_dim_y = _block_dim_y;
    /// Threads of a block along z.
    block_dim_z = _block_dim_z;
    /// Blocks of the grid along x.
    grid_dim_x = _grid_dim_x;
    /// Blocks of the grid along y.
    grid_dim_y = _grid_dim_y;
    /// Blocks of the grid along z.
    grid_dim_z = _grid_dim_z;
}

/// The same number, of which the compiler knows nothing. Addresses that follow from it are computed
/// where they are used. Without this, the compiler computes what is constant in a loop before it,
/// and keeps it in registers.
#[inline(always)]
pub fn opaque(number: usize) -> usize {
    let same: usize;
    // SAFETY: copies a register.
    unsafe {
        asm!("mov.b64 {}, {};", out(reg64) same, in(reg64) number, options(pure, nomem, nostack))
    };
    same
}

/// The barrier of the block: waits until every thread of the block has arrived. What each wrote to
/// shared or global memory before is then visible to all of them.
#[inline(always)]
pub fn sync_threads() {
    // SAFETY: the intrinsic, unlike `asm!`, is marked convergent, so that LLVM does not copy it
    // into branches that only some threads take. That all threads come here is the kernel's duty.
    unsafe { nvptx::_syncthreads() }
}

/// The thread's lane in its warp, 0 to 31.
#[inline(always)]
pub fn lane_id() -> u32 {
    let lane: u32;
    // SAFETY: reads a special register.
    unsafe { asm!("mov.u32 {}, %laneid;", out(reg32) lane, options(pure, nomem, nostack)) };
    lane
}

/// The warp's number in its block: threads are counted x first, then y, then z, 32 to a warp.
///
/// (Not `%warpid`, which names a slot of the SM and may change.)
#[inline(always)]
pub fn warp_id() -> u32 {
    let linear = thread_idx_x() + block_dim_x() * (thread_idx_y() + block_dim_y() * thread_idx_z());
    linear / 32
}
