//! Memory that was not written, or does not exist.

use super::{device::*, here};

/// Reads a shared element that no thread has written.
#[kernel(block = (64), shared = 65 * 4, len(x = n, y = n))]
pub fn unwritten_shared(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 65];
    let (t, i) = here(64);
    line[t] = x[i % n as usize];
    thread::sync_threads();
    if i < n as usize {
        y[i] = line[t + 1];
    }
}

/// Reads an output before it is written.
#[kernel(block = (64), len(x = n, y = n))]
pub fn unwritten_global(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if i < n as usize {
        y[i] = fma(2.0, y[i], x[i]);
    }
}

/// The boundary check is off by one, so that the last block reads one element past the end.
#[kernel(block = (64), len(x = n, y = n))]
pub fn outside_buffer(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if i < n as usize {
        y[i] = x[i] + x[i + 1];
    }
}

/// A far store: no check at all.
#[kernel(block = (64), len(x = n, y = n))]
pub fn far_outside_buffer(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if i < n as usize {
        y[i] = x[i];
    }
    if i == 7 {
        y[1 << 28] = 0.0;
    }
}

/// An index past the end of a shared array.
#[kernel(block = (64), shared = 64 * 4, len(x = n, y = n))]
pub fn outside_shared(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 64];
    let (t, i) = here(64);
    line[t] = x[i % n as usize];
    thread::sync_threads();
    if i < n as usize {
        y[i] = line[t + (n / 32) as usize];
    }
}

/// Sixteen bytes at an address that is no multiple of sixteen.
#[kernel(block = (8), len(x = n, y = n))]
pub fn misaligned(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 8 + thread::thread_idx_x()) as usize;
    if 4 * i + 4 < n as usize {
        let values: [f32; 4] = x.load128(4 * i + 1);
        y.store128(4 * i, values);
    }
}

/// Uses less shared memory than it declares. (On the CPU only: the PTX builder refuses it.)
#[cfg(not(target_arch = "nvptx64"))]
#[kernel(block = (64), shared = 128 * 4, len(x = n, y = n))]
pub fn shared_not_as_declared(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 64];
    let (t, i) = here(64);
    line[t] = x[i % n as usize];
    if i < n as usize {
        y[i] = line[t];
    }
}

/// Half of the output is never written, half of the input never read.
#[kernel(block = (64), len(x = n, y = n))]
pub fn incomplete(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if i < n as usize / 2 {
        y[i] = x[i];
    }
}

/// Half of the threads declare another array than the other half, at the same place.
#[kernel(block = (64), len(x = n, y = n))]
pub fn array_in_a_branch(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (t, i) = here(64);
    let value = x[i % n as usize];
    let own = if t < 32 {
        let mut line = shared![f32; 64];
        line[t] = value;
        line[t]
    } else {
        let mut line = shared![f32; 128];
        line[t] = value;
        line[t]
    };
    if i < n as usize {
        y[i] = own;
    }
}
