//! Blocks of a cluster that read each other's shared memory: two of 64 threads each.

use super::{device::*, here};

/// What orders the blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    NoBarrier,
    BarrierOfTheBlock,
    HalfABarrier,
    RelaxedBarrier,
    NoBarrierAtTheEnd,
}

/// A block reads what the other has written.
#[inline(always)]
fn reads(n: u32, x: In<f32>, mut y: Out<f32>, way: Way) {
    let mut line = dynamic_shared![f32];
    let (t, i) = here(64);
    line[t] = x[i % n as usize];
    match way {
        Way::NoBarrier => {}
        Way::BarrierOfTheBlock => thread::sync_threads(),
        Way::RelaxedBarrier => {
            cluster::arrive_relaxed();
            cluster::wait();
        }
        _ => cluster::sync(),
    }
    let other = line.remote(1 - cluster::block_rank());
    let four: [f32; 4] = other.load128(t / 4 * 4);
    y[i % n as usize] = four[0] + four[1] + four[2] + four[3];
    if way != Way::NoBarrierAtTheEnd {
        cluster::sync();
    }
}

/// A block writes to the other.
#[inline(always)]
fn writes(n: u32, x: In<f32>, mut y: Out<f32>, way: Way) {
    let line = dynamic_shared![f32];
    let (t, i) = here(64);
    if way != Way::NoBarrier {
        cluster::arrive_relaxed();
    }
    let value = x[i % n as usize];
    if way == Way::Right {
        cluster::wait();
    }
    let mut other = line.remote(1 - cluster::block_rank());
    if t.is_multiple_of(4) {
        other.store128(t, [value; 4]);
    }
    if way == Way::HalfABarrier {
        cluster::wait();
    }
    cluster::sync();
    y[i % n as usize] = line[t];
}

/// A block arrives at the other's mbarrier.
#[inline(always)]
fn arrives(n: u32, x: In<f32>, mut y: Out<f32>, way: Way) {
    let told = mbarriers![1];
    let (t, i) = here(64);
    if t == 0 {
        told.at(0).init(64);
        mbarrier::fence_init();
    }
    match way {
        Way::BarrierOfTheBlock => thread::sync_threads(),
        Way::RelaxedBarrier => {
            cluster::arrive_relaxed();
            cluster::wait();
        }
        _ => cluster::sync(),
    }
    told.at(0).arrive_remote(1 - cluster::block_rank());
    if way != Way::NoBarrierAtTheEnd {
        told.at(0).wait(0);
    }
    y[i % n as usize] = x[i % n as usize];
    if way == Way::RelaxedBarrier {
        cluster::sync();
    }
}

/// Kernels with that number of barriers of the block, and that shared memory.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident: $does:ident($way:ident), $barriers:tt, $shared:ident = $bytes:tt;)*) => {$(
        $(#[$doc])*
        #[kernel(block = (64), cluster = (2), $shared = $bytes, barriers = $barriers, arch = 90, len(x = n, y = n))]
        pub fn $name(n: u32, x: In<f32>, y: Out<f32>) {
            $does(n, x, y, Way::$way);
        }
    )*};
}

kernels! {
    /// The other block's memory is read before it is written.
    remote_read_too_early: reads(NoBarrier), 0, dynamic_shared = 256;
    /// A barrier of the block waits for no other block.
    barrier_of_the_block_alone: reads(BarrierOfTheBlock), 1, dynamic_shared = 256;
    /// A relaxed arrival tells that the block has begun, and none of its writes.
    a_relaxed_arrival_tells_no_writes: reads(RelaxedBarrier), 0, dynamic_shared = 256;
    /// A block may end before the other has read its memory.
    ends_before_the_last_read: reads(NoBarrierAtTheEnd), 0, dynamic_shared = 256;
    /// The blocks wait for each other before they read, and before they end.
    remote_reads: reads(Right), 0, dynamic_shared = 256;
    /// A block writes to the other before it knows that the other has started.
    writes_before_the_other_begins: writes(NoBarrier), 0, dynamic_shared = 256;
    /// The same after half of a barrier: the block has signalled only that it has started itself.
    writes_before_it_has_waited: writes(HalfABarrier), 0, dynamic_shared = 256;
    /// The blocks write to each other after both have started, which each has waited for in halves.
    a_barrier_in_halves: writes(Right), 0, dynamic_shared = 256;
    /// The other block may not have initialised its mbarrier yet.
    arrives_before_the_init: arrives(BarrierOfTheBlock), 1, shared = 8;
    /// A block may end before the other arrives at its mbarrier.
    ends_before_the_last_arrival: arrives(NoBarrierAtTheEnd), 0, shared = 8;
    /// With a fence before it, a relaxed arrival tells that mbarriers are initialised.
    a_relaxed_arrival_tells_of_mbarriers: arrives(RelaxedBarrier), 0, shared = 8;
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

/// Half of a cluster's threads wait for it at one place, half at another.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, arch = 90, len(x = n, y = n))]
pub fn two_cluster_barriers(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = dynamic_shared![f32];
    let (t, i) = here(64);
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

/// Arrivals signal that the other block has written, and that it has read.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256, shared = 16, arch = 90, len(x = n, y = n))]
pub fn remote_arrivals(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, told) = (dynamic_shared![f32], mbarriers![2]);
    let (t, i) = here(64);
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
