//! Bulk copies without a tensor map, and mbarriers whose bytes are announced without an arrival.
//! Each block copies 64 elements of x to shared memory, and adds one to each.

use super::device::*;

const BYTES: u32 = 256;

/// What happens between the two copies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    NotWaited,
    NotFenced,
    AnnouncedByHalf,
    NotStoredYet,
}

#[inline(always)]
fn one_more(n: u32, x: In<f32>, mut y: Out<f32>, way: Way) {
    let (mut line, full) = (dynamic_shared![f32], mbarriers!(1).at(0));
    let t = thread::thread_idx_x() as usize;
    let first = thread::block_idx_x() as usize * 64 % n as usize;
    if t == 0 {
        full.init(64);
        mbarrier::fence_init();
    }
    thread::sync_threads();
    if t == 0 {
        full.expect(if way == Way::AnnouncedByHalf { BYTES / 2 } else { BYTES });
        line.load_bulk(0, &x, first, 64, full);
        // For a half of the threads; the others arrive by themselves.
        full.arrive_many(32);
    }
    if t >= 32 {
        full.arrive();
    }
    if way != Way::NotWaited {
        while !full.test(0) {}
    }
    line[t] += 1.0;
    if way != Way::NotFenced {
        fence_proxy_async();
    }
    thread::sync_threads();
    if t == 0 {
        line.store_bulk(0, &mut y, first, 64);
        bulk::commit_group();
        bulk::wait_group_read::<0>();
    }
    if way == Way::NotStoredYet {
        thread::sync_threads();
        y[first + t] = 7.0;
    }
    full.wait(0);
}

/// Two bulk copies, which are waited for.
#[kernel(block = (64), dynamic_shared = BYTES, barriers = 2, arch = 90, len(x = n, y = n))]
pub fn copied_in_bulk(n: u32, x: In<f32>, y: Out<f32>) {
    one_more(n, x, y, Way::Right);
}

/// Reads without a wait for the copy.
#[kernel(block = (64), dynamic_shared = BYTES, barriers = 2, arch = 90, len(x = n, y = n))]
pub fn bulk_not_waited_for(n: u32, x: In<f32>, y: Out<f32>) {
    one_more(n, x, y, Way::NotWaited);
}

/// The copy to global memory may not see what threads have written.
#[kernel(block = (64), dynamic_shared = BYTES, barriers = 2, arch = 90, len(x = n, y = n))]
pub fn bulk_not_fenced(n: u32, x: In<f32>, y: Out<f32>) {
    one_more(n, x, y, Way::NotFenced);
}

/// Half of the bytes are announced.
#[kernel(block = (64), dynamic_shared = BYTES, barriers = 2, arch = 90, len(x = n, y = n))]
pub fn bulk_announced_by_half(n: u32, x: In<f32>, y: Out<f32>) {
    one_more(n, x, y, Way::AnnouncedByHalf);
}

/// Writes where the copy may still write.
#[kernel(block = (64), dynamic_shared = BYTES, barriers = 3, arch = 90, len(x = n, y = n))]
pub fn bulk_under_a_store(n: u32, x: In<f32>, y: Out<f32>) {
    one_more(n, x, y, Way::NotStoredYet);
}

/// A warp writes, and tells another one by a flag that its copy may begin.
#[kernel(block = (64), dynamic_shared = BYTES, barriers = 1, arch = 90, len(x = n, y = n))]
pub fn told_by_a_flag(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, ready) = (dynamic_shared![f32], shared!(u32; 1));
    let t = thread::thread_idx_x() as usize;
    let first = thread::block_idx_x() as usize * 64 % n as usize;
    if t == 0 {
        ready.atomic(0).store(0);
    }
    thread::sync_threads();
    if t < 32 {
        for i in [t, t + 32] {
            line[i] = x[first + i] + 1.0;
        }
        fence_proxy_async();
        warp::sync_warp(warp::ALL);
        if t == 0 {
            ready.atomic(0).store_release(1);
        }
    } else if t == 32 {
        while ready.atomic(0).load_acquire() == 0 {}
        line.store_bulk(0, &mut y, first, 64);
        bulk::commit_group();
        bulk::wait_group_read::<0>();
    }
}
