//! The kernels.

use super::device::*;

/// y (n x n) = x transposed.
///
/// A block transposes a tile of 32 x 32 elements in shared memory: it reads rows of x and writes
/// rows of y, so a warp accesses neighbouring elements of global memory both times. A row of the
/// tile has 33 elements, so a column of it is in 32 different banks.
#[kernel(block = (32, 32), shared = 32 * 33 * 4, len(x = n * n, y = n * n))]
pub fn transpose(n: u32, x: In<f32>, mut y: Out<f32>) {
    let n = n as usize;
    let mut tile = shared![f32; 32, 33];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let (bx, by) = (thread::block_idx_x() as usize * 32, thread::block_idx_y() as usize * 32);

    if by + ty < n && bx + tx < n {
        tile[(ty, tx)] = x[(by + ty) * n + bx + tx];
    }
    thread::sync_threads();
    if bx + ty < n && by + tx < n {
        y[(bx + ty) * n + by + tx] = tile[(tx, ty)];
    }
}
