//! Asynchronous copies that are not waited for, or not long enough.

use super::{device::*, here};

/// A thread reads what it has copied itself, without a wait.
#[kernel(block = (64), shared = 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn copy_not_waited_for(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here(64);
    tile.copy_async::<1>(t, &x, i, i < n as usize);
    copies::commit_group();
    if i < n as usize {
        y[i] = tile[t];
    }
}

/// A wait waits for groups, and this copy is in none.
#[kernel(block = (64), shared = 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn copy_in_no_group(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here(64);
    tile.copy_async::<1>(t, &x, i, i < n as usize);
    copies::wait_group::<0>();
    if i < n as usize {
        y[i] = tile[t];
    }
}

/// Each thread has waited for its own copy, but not for its neighbour's: there is no barrier.
#[kernel(block = (64), shared = 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn copy_without_a_barrier(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here(64);
    tile.copy_async::<1>(t, &x, i, i < n as usize);
    copies::commit_group();
    copies::wait_group::<0>();
    if i < n as usize {
        y[i] = tile[63 - t];
    }
}

/// A barrier alone does not wait for a copy: the last group may still be in flight.
#[kernel(block = (64), shared = 2 * 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn one_group_too_few(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 2, 64];
    let (t, i) = here(64);
    for half in 0..2 {
        tile.copy_async::<1>(half * 64 + t, &x, i, i < n as usize);
        copies::commit_group();
    }
    copies::wait_group::<1>();
    thread::sync_threads();
    if i < n as usize {
        y[i] = tile[(0, 63 - t)] + tile[(1, 63 - t)];
    }
}

/// The next copy starts while others may still read the last one.
#[kernel(block = (64), shared = 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn copied_too_early(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here(64);
    let mut sum = 0.0;
    for _ in 0..n as usize / 50 {
        tile.copy_async::<1>(t, &x, i, i < n as usize);
        copies::commit_group();
        copies::wait_group::<0>();
        thread::sync_threads();
        sum += tile[63 - t];
    }
    if i < n as usize {
        y[i] = sum;
    }
}

/// A second copy to the same place starts before the first is waited for. Their order is undefined.
#[kernel(block = (64), shared = 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn one_buffer_for_two_copies(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here(64);
    let mut sum = 0.0;
    tile.copy_async::<1>(t, &x, i, i < n as usize);
    copies::commit_group();
    for _ in 0..n as usize / 50 {
        tile.copy_async::<1>(t, &x, i, i < n as usize);
        copies::commit_group();
        copies::wait_group::<1>();
        thread::sync_threads();
        sum += tile[63 - t];
        thread::sync_threads();
    }
    if i < n as usize {
        y[i] = sum;
    }
}

/// A thread writes to a place to which its own copy is still in flight.
#[kernel(block = (64), shared = 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn written_under_a_copy(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here(64);
    tile.copy_async::<1>(t, &x, i, i < n as usize);
    copies::commit_group();
    tile[t] = 5.0;
    thread::sync_threads();
    if i < n as usize {
        y[i] = tile[63 - t];
    }
}

/// `sync_warp` waits for lanes, not for their copies.
#[kernel(block = (64), shared = 64 * size_of::<f32>(), len(x = n, y = n))]
pub fn copy_and_sync_warp(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here(64);
    tile.copy_async::<1>(t, &x, i, i < n as usize);
    copies::commit_group();
    warp::sync_warp(warp::ALL);
    tile[t ^ 1] = 5.0;
    thread::sync_threads();
    copies::wait_group::<0>();
    if i < n as usize {
        y[i] = tile[t];
    }
}
