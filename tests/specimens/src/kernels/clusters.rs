//! Blocks of a cluster that read each other's shared memory: two of 64 threads each.

use super::device::*;

/// The other block's memory is read before it is written.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn remote_read_too_early(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    line[t] = x[i % n as usize];
    let other = line.remote(1 - cluster::block_rank());
    let four: [f32; 4] = other.load128(t / 4 * 4);
    y[i % n as usize] = four[0] + four[1] + four[2] + four[3];
    cluster::sync();
}

/// A barrier of the block waits for no other block.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn barrier_of_the_block_alone(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    line[t] = x[i % n as usize];
    thread::sync_threads();
    let other = line.remote(1 - cluster::block_rank());
    let four: [f32; 4] = other.load128(t / 4 * 4);
    y[i % n as usize] = four[0] + four[1] + four[2] + four[3];
    cluster::sync();
}

/// A block writes to the other before it knows that the other has started.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn writes_before_the_other_begins(n: u32, x: In<f32>, mut y: Out<f32>) {
    let line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    let mut other = line.remote(1 - cluster::block_rank());
    let value = x[i % n as usize];
    if t.is_multiple_of(4) {
        other.store128(t, [value; 4]);
    }
    cluster::sync();
    y[i % n as usize] = line[t];
}

/// The same after half of a barrier: the block has signalled only that it has started itself.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn writes_before_it_has_waited(n: u32, x: In<f32>, mut y: Out<f32>) {
    let line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    cluster::arrive_relaxed();
    let mut other = line.remote(1 - cluster::block_rank());
    let value = x[i % n as usize];
    if t.is_multiple_of(4) {
        other.store128(t, [value; 4]);
    }
    cluster::wait();
    cluster::sync();
    y[i % n as usize] = line[t];
}

/// A wait for the other half of a barrier at which no thread has arrived.
#[kernel(block = (64), cluster = (2), arch = 90, len(x = n, y = n))]
pub fn waits_for_no_arrival(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = thread::block_idx_x() as usize * 64 + thread::thread_idx_x() as usize;
    cluster::wait();
    y[i % n as usize] = x[i % n as usize];
}

/// A barrier starts between the two halves of another.
#[kernel(block = (64), cluster = (2), arch = 90, len(x = n, y = n))]
pub fn a_barrier_within_another(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = thread::block_idx_x() as usize * 64 + thread::thread_idx_x() as usize;
    cluster::arrive_relaxed();
    cluster::sync();
    y[i % n as usize] = x[i % n as usize];
}

/// A block may end before the other has read its memory.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn ends_before_the_last_read(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    line[t] = x[i % n as usize];
    cluster::sync();
    let other = line.remote(1 - cluster::block_rank());
    let four: [f32; 4] = other.load128(t / 4 * 4);
    y[i % n as usize] = four[0] + four[1] + four[2] + four[3];
}

/// A block may end before the other arrives at its mbarrier.
#[kernel(block = (64), cluster = (2), shared = 8, arch = 90, len(x = n, y = n))]
pub fn ends_before_the_last_arrival(n: u32, x: In<f32>, mut y: Out<f32>) {
    let told = mbarriers![1];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    if t == 0 {
        told.at(0).init(64);
        mbarrier::fence_init();
    }
    cluster::sync();
    told.at(0).arrive_remote(1 - cluster::block_rank());
    y[i % n as usize] = x[i % n as usize];
}

/// The other block may not have initialised its mbarrier yet.
#[kernel(block = (64), cluster = (2), shared = 8, arch = 90, len(x = n, y = n))]
pub fn arrives_before_the_init(n: u32, x: In<f32>, mut y: Out<f32>) {
    let told = mbarriers![1];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    if t == 0 {
        told.at(0).init(64);
        mbarrier::fence_init();
    }
    thread::sync_threads();
    told.at(0).arrive_remote(1 - cluster::block_rank());
    told.at(0).wait(0);
    y[i % n as usize] = x[i % n as usize];
}

/// Half of a cluster's threads wait for it at one place, half at another.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn two_cluster_barriers(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    if t % 32 < 16 {
        line[t] = x[i % n as usize];
        cluster::sync();
    } else {
        line[t] = -x[i % n as usize];
        cluster::sync();
    }
    let other = line.remote(1 - cluster::block_rank());
    let four: [f32; 4] = other.load128(t / 4 * 4);
    y[i % n as usize] = four[0] + four[1] + four[2] + four[3];
    cluster::sync();
}

/// The blocks wait for each other before they read, and before they end.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn remote_reads(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    line[t] = x[i % n as usize];
    cluster::sync();
    let other = line.remote(1 - cluster::block_rank());
    let four: [f32; 4] = other.load128(t / 4 * 4);
    y[i % n as usize] = four[0] + four[1] + four[2] + four[3];
    cluster::sync();
}

/// The blocks write to each other after both have started, which each has waited for in halves.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn a_barrier_in_halves(n: u32, x: In<f32>, mut y: Out<f32>) {
    let line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    cluster::arrive_relaxed();
    let value = x[i % n as usize];
    cluster::wait();
    let mut other = line.remote(1 - cluster::block_rank());
    if t.is_multiple_of(4) {
        other.store128(t, [value; 4]);
    }
    cluster::sync();
    y[i % n as usize] = line[t];
}

/// A relaxed arrival tells that the block has begun, and none of its writes.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn a_relaxed_arrival_tells_no_writes(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    line[t] = x[i % n as usize];
    cluster::arrive_relaxed();
    cluster::wait();
    let other = line.remote(1 - cluster::block_rank());
    let four: [f32; 4] = other.load128(t / 4 * 4);
    y[i % n as usize] = four[0] + four[1] + four[2] + four[3];
    cluster::sync();
}

/// With a fence before it, a relaxed arrival tells that mbarriers are initialised.
#[kernel(block = (64), cluster = (2), shared = 8, arch = 90, len(x = n, y = n))]
pub fn a_relaxed_arrival_tells_of_mbarriers(n: u32, x: In<f32>, mut y: Out<f32>) {
    let told = mbarriers![1];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    if t == 0 {
        told.at(0).init(64);
        mbarrier::fence_init();
    }
    cluster::arrive_relaxed();
    cluster::wait();
    told.at(0).arrive_remote(1 - cluster::block_rank());
    told.at(0).wait(0);
    y[i % n as usize] = x[i % n as usize];
    cluster::sync();
}

/// Arrivals signal that the other block has written, and that it has read.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, shared = 16, arch = 90, len(x = n, y = n))]
pub fn remote_arrivals(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, told) = (dynamic_shared![f32], mbarriers![2]);
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    if t == 0 {
        told.at(0).init(64);
        told.at(1).init(64);
        mbarrier::fence_init();
    }
    cluster::sync();
    let rank = 1 - cluster::block_rank();
    line[t] = x[i % n as usize];
    told.at(0).arrive_remote(rank);
    told.at(0).wait(0);
    let four: [f32; 4] = line.remote(rank).load128(t / 4 * 4);
    y[i % n as usize] = four[0] + four[1] + four[2] + four[3];
    told.at(1).arrive_remote(rank);
    told.at(1).wait(0);
}
