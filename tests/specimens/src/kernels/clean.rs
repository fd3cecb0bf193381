//! Correct kernels that a careless checker might report.

use super::{device::*, here};

/// Exchanges within a warp, with `sync_warp` before and after.
#[kernel(block = (64), shared = 64 * 4, len(x = n, y = n))]
pub fn warp_exchange(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 64];
    let (t, i) = here(64);
    let mut value = x[i % n as usize];
    for _ in 0..3 {
        line[t] = value;
        warp::sync_warp(warp::ALL);
        value = line[t ^ 31];
        warp::sync_warp(warp::ALL);
    }
    if i < n as usize {
        y[i] = value;
    }
}

/// The same in each half of a warp separately.
#[kernel(block = (32), shared = 32 * 4, len(x = n, y = n))]
pub fn half_warp_exchange(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 32];
    let (t, i) = here(32);
    line[t] = x[i % n as usize];
    warp::sync_warp(if t < 16 { 0xffff } else { 0xffff_0000 });
    if i < n as usize {
        y[i] = line[t ^ 15];
    }
}

/// A transposition through a tile with padded rows, whose columns are in different banks. The
/// padding is never written.
#[kernel(block = (32, 8), shared = 32 * 33 * 4, len(x = n, y = n))]
pub fn padded_transpose(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 32, 33];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let base = thread::block_idx_x() as usize * 1024;
    for row in (ty..32).step_by(8) {
        tile[(row, tx)] = x[(base + row * 32 + tx) % n as usize];
    }
    thread::sync_threads();
    for row in (ty..32).step_by(8) {
        let i = base + row * 32 + tx;
        if i < n as usize {
            y[i] = tile[(tx, row)];
        }
    }
}

/// Every thread of every block adds to a few elements. (`y` holds zeros at the launch.)
#[kernel(block = (64), shared = 4 * 4, len(x = n, y = n))]
pub fn atomics(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut bins = shared![f32; 4];
    let (t, i) = here(64);
    if t < 4 {
        bins[t] = 0.0;
    }
    thread::sync_threads();
    if i < n as usize {
        bins.atomic_add(t % 4, x[i]);
    }
    thread::sync_threads();
    if t < 4 {
        y.atomic_add(t, bins[t]);
    }
}

/// Atomic additions to elements of every type that has them.
#[kernel(block = (64), shared = 2 * 4 + 2 * 8, len(x = n, y = n))]
pub fn atomic_types(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut unsigned, mut signed) = (shared![u32; 1], shared![i32; 1]);
    let (mut long, mut double) = (shared![u64; 1], shared![f64; 1]);
    let (t, i) = here(64);
    if t == 0 {
        (unsigned[0], signed[0], long[0], double[0]) = (0, 0, 0, 0.0);
    }
    thread::sync_threads();
    if i < n as usize {
        let value = x[i];
        unsigned.atomic_add(0, value as u32);
        signed.atomic_add(0, -(value as i32));
        long.atomic_add(0, (value as u64) << 32);
        double.atomic_add(0, value as f64 / 1024.0);
    }
    thread::sync_threads();
    if t == 0 {
        y.atomic_add(0, unsigned[0] as f32);
        y.atomic_add(1, signed[0] as f32);
        y.atomic_add(2, (long[0] >> 32) as f32);
        y.atomic_add(3, double[0] as f32);
    }
}

/// Blocks read each other's inputs, which nobody writes.
#[kernel(block = (64), len(x = n, y = n))]
pub fn overlapping_reads(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    let n = n as usize;
    if i < n {
        y[i] = x[(i + n - 1) % n] + x[i] + x[(i + 1) % n];
    }
}

/// Two alternating buffers, so that one barrier for each round is enough.
#[kernel(block = (64), shared = 2 * 64 * 4, len(x = n, y = n))]
pub fn double_buffer(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut lines = shared![f32; 2, 64];
    let (t, i) = here(64);
    let mut sum = 0.0;
    for round in 0..n as usize / 25 {
        lines[(round % 2, t)] = x[(i + round) % n as usize];
        thread::sync_threads();
        sum += lines[(round % 2, 63 - t)];
    }
    if i < n as usize {
        y[i] = sum;
    }
}

/// Threads without an element end after the last barrier.
#[kernel(block = (64), shared = 64 * 4, len(x = n, y = n))]
pub fn early_exit(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 64];
    let (t, i) = here(64);
    line[t] = x[i % n as usize];
    thread::sync_threads();
    if i >= n as usize {
        return;
    }
    y[i] = line[63 - t];
}

/// Neighbouring bytes and half words of a word belong to different threads.
#[kernel(block = (64), shared = 64 + 64 * 2, len(x = n, y = n))]
pub fn neighbouring_bytes(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut bytes = shared![u8; 64];
    let mut halves = shared![u16; 64];
    let (t, i) = here(64);
    let value = x[i % n as usize];
    bytes[t] = value as u8;
    halves[t] = value as u16;
    let own = bytes[t] as f32 + halves[t] as f32;
    thread::sync_threads();
    if i < n as usize {
        y[i] = own + bytes[63 - t] as f32 + halves[63 - t] as f32;
    }
}

/// A sum over the warp by shuffles, and a vote.
#[kernel(block = (64), len(x = n, y = n))]
pub fn warp_sum(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    let inside = i < n as usize;
    let mut sum = if inside { x[i] } else { 0.0 };
    for lanes in [16, 8, 4, 2, 1] {
        sum += warp::shuffle_xor(warp::ALL, sum, lanes);
    }
    let first = warp::shuffle(warp::ALL, sum, 0);
    let above = warp::shuffle_up(warp::ALL, first, 1) + warp::shuffle_down(warp::ALL, first, 1);
    let lanes = warp::ballot(warp::ALL, inside);
    let some = warp::any(warp::ALL, inside) && !warp::all(warp::ALL, !inside);
    if inside {
        y[i] = first + (above - 2.0 * first) + lanes.count_ones() as f32 + some as u32 as f32;
    }
}

/// The softmax of each row of 32 numbers, a warp each.
#[kernel(block = (64), len(x = n, y = n))]
pub fn softmax(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    // n is a multiple of 32: all lanes of a warp have an element, or none.
    if i >= n as usize {
        return;
    }
    // Without the maximum, `exp` of a large number would be infinite.
    let mut most = x[i];
    for lanes in [16, 8, 4, 2, 1] {
        most = at_least(most, warp::shuffle_xor(warp::ALL, most, lanes));
    }
    let power = exp(x[i] - most);
    let mut sum = power;
    for lanes in [16, 8, 4, 2, 1] {
        sum += warp::shuffle_xor(warp::ALL, sum, lanes);
    }
    y[i] = power / sum;
}

/// Sixteen bytes at a time.
#[kernel(block = (8), shared = 8 * 4 * 4, len(x = n, y = n))]
pub fn vectors(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 32];
    let t = thread::thread_idx_x() as usize;
    let i = (thread::block_idx_x() as usize * 8 + t) * 4;
    if i + 4 <= n as usize {
        let values: [f32; 4] = x.load128(i);
        line.store128(4 * t, values);
        let own: [f32; 4] = line.load128(4 * t);
        y.store128(i, own);
    }
}

/// A sum over half a warp. Its upper lanes get values of lanes that take no part, and do not use
/// them.
#[kernel(block = (32), len(x = n, y = n))]
pub fn half_warp_sum(n: u32, x: In<f32>, mut y: Out<f32>) {
    let t = thread::thread_idx_x();
    let i = (thread::block_idx_x() * 32 + t) as usize;
    let mut sum = x[i % n as usize];
    if t < 16 {
        for delta in [8, 4, 2, 1] {
            sum += warp::shuffle_down(0xffff, sum, delta);
        }
    }
    if i < n as usize {
        y[i] = if t == 0 { sum } else { 0.0 };
    }
}

/// Asynchronous copies of both widths in two buffers. Each group is waited for one round later, and
/// there are zeros where there is nothing to copy.
#[kernel(block = (64), shared = 2 * 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn copies_in_two_stages(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 2, 64];
    let t = thread::thread_idx_x() as usize;
    let first = thread::block_idx_x() as usize * 64;
    let i = first + t;
    let n = n as usize;
    let mut sum = 0.0;
    for round in 0..=4 {
        if round < 4 {
            let buffer = round % 2 * 64;
            if round % 2 == 0 {
                tile.copy_async::<1>(buffer + t, &x, i, i < n);
            } else if t < 16 {
                let from = first + t * 4;
                tile.copy_async::<4>(buffer + t * 4, &x, from, from + 4 <= n);
            }
            copies::commit_group();
        }
        if round > 0 {
            if round < 4 {
                copies::wait_group::<1>();
            } else {
                copies::wait_group::<0>();
            }
            thread::sync_threads();
            sum += tile[((round - 1) % 2, 63 - t)];
            thread::sync_threads();
        }
    }
    if i < n {
        y[i] = sum;
    }
}
