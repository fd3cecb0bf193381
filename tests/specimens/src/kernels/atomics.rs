//! Atomic operations and fences that order threads and blocks: right kernels, and twins that are
//! wrong in one way each.
//!
//! The patterns are those of CUDA's programs: a lock (Sanders and Kandrot, CUDA by Example, 2010),
//! the sum by the last block (NVIDIA's sample threadFenceReduction), a prefix sum with look-back
//! (Merrill and Garland, 2016), a flag in shared memory.

use super::device::*;

/// Threads of a block.
const THREADS: usize = 64;

fn t() -> usize {
    thread::thread_idx_x() as usize
}

fn block() -> usize {
    thread::block_idx_x() as usize
}

fn blocks() -> usize {
    thread::grid_dim_x() as usize
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    ByComparison,
    ByExchange,
    NotTaken,
    NoFenceBehind,
    NoFenceBefore,
    BlockFences,
    GivenBackByStore,
}

/// One thread of each block adds to an element, under a lock.
#[inline(always)]
fn under_a_lock(mut y: Out<f32>, words: Out<u32>, way: Lock) {
    if t() != 0 {
        return;
    }
    let lock = words.atomic(0);
    match way {
        Lock::NotTaken => {}
        Lock::ByExchange => while lock.exchange(1) != 0 {},
        _ => while lock.compare_exchange(0, 1) != 0 {},
    }
    match way {
        Lock::NoFenceBehind => {}
        Lock::BlockFences => thread::fence_block(),
        _ => thread::fence_device(),
    }
    y[0] += 1.0 + block() as f32;
    match way {
        Lock::NoFenceBefore | Lock::GivenBackByStore => {}
        Lock::BlockFences => thread::fence_block(),
        _ => thread::fence_device(),
    }
    match way {
        Lock::GivenBackByStore => lock.store_release(0),
        _ => {
            lock.exchange(0);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    FenceOfOne,
    FenceOfEach,
    EachReads,
    ByCounter,
    NoFence,
    BlockFence,
    FenceOfAnother,
    NoBarrier,
    NotAsked,
}

/// Each block writes a part; the block that comes last adds them.
#[inline(always)]
fn last_block_adds(mut y: Out<f32>, words: Out<u32>, way: Last) {
    let (mut last, count) = (shared!(u32; 1), shared!(u32; 1));
    if way == Last::ByCounter {
        if t() == 0 {
            count.atomic(0).store(0);
        }
        thread::sync_threads();
    }
    let part = |block: usize| 1 + block * THREADS;
    y[part(block()) + t()] = (block() + t()) as f32;
    match way {
        Last::FenceOfEach | Last::EachReads | Last::NoBarrier | Last::NotAsked => {
            thread::fence_device();
        }
        // What the block's fences tell thread 0, its own fence tells all.
        Last::ByCounter => {
            thread::fence_block();
            count.atomic(0).add(1);
            if t() == 0 {
                while count.atomic(0).load() < THREADS as u32 {}
                thread::fence_device();
            }
        }
        // It orders what this thread wrote, and no other.
        Last::FenceOfAnother if t() == 1 => thread::fence_device(),
        _ => {}
    }
    if !matches!(way, Last::NoBarrier | Last::ByCounter) {
        thread::sync_threads();
    }
    if t() == 0 {
        match way {
            // It orders what the barrier has told this thread.
            Last::FenceOfOne => thread::fence_device(),
            Last::BlockFence => thread::fence_block(),
            _ => {}
        }
        let before = words.atomic(1).add(1) as usize;
        last[0] = u32::from(before + 1 == blocks() || way == Last::NotAsked);
    }
    thread::sync_threads();
    if last[0] == 0 {
        return;
    }
    thread::fence_device();
    if way == Last::EachReads || t() == 0 {
        let mut sum = 0.0;
        for i in 0..blocks() * THREADS {
            sum += y[1 + i];
        }
        if t() == 0 {
            y[0] = sum;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    ByOrders,
    ByFences,
    RelaxedStore,
    RelaxedLoad,
    PlainFlag,
    NoBarrier,
}

/// Each block adds to its own element the sum of the block before it.
#[inline(always)]
fn look_back(mut y: Out<f32>, mut words: Out<u32>, way: Look) {
    let flag = 2 + block();
    if t() == 0 {
        let mut sum = 1.0 + block() as f32;
        if block() > 0 {
            let before = words.atomic(flag - 1);
            match way {
                Look::RelaxedLoad => while before.load() == 0 {},
                Look::ByFences => {
                    while before.load() == 0 {}
                    thread::fence_device();
                }
                _ => while before.load_acquire() == 0 {},
            }
            sum += y[block() - 1];
        }
        y[block()] = sum;
        match way {
            Look::RelaxedStore => words.atomic(flag).store(1),
            Look::ByFences => {
                thread::fence_device();
                words.atomic(flag).store(1);
            }
            Look::PlainFlag => {
                thread::fence_device();
                words[flag] = 1;
            }
            _ => words.atomic(flag).store_release(1),
        }
    }
    // It tells the others what thread 0 has acquired.
    if way != Look::NoBarrier {
        thread::sync_threads();
    }
    if t() == 1 && block() > 0 {
        y[blocks() + block()] = y[block() - 1];
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    ByOrders,
    ByBlockFences,
    RelaxedStore,
    WaitedByOne,
}

/// The first warp hands numbers to the second through shared memory.
#[inline(always)]
fn flag_in_shared_memory(mut y: Out<f32>, _words: Out<u32>, way: Flag) {
    let (flag, mut data) = (shared!(u32; 1), shared!(f32; 32));
    if t() == 0 {
        flag.atomic(0).store(0);
    }
    thread::sync_threads();
    let lane = t() % 32;
    if t() < 32 {
        data[lane] = (block() + lane) as f32;
        warp::sync_warp(warp::ALL);
        if lane == 0 {
            match way {
                Flag::RelaxedStore => flag.atomic(0).store(1),
                Flag::ByBlockFences => {
                    thread::fence_block();
                    flag.atomic(0).store(1);
                }
                _ => flag.atomic(0).store_release(1),
            }
        }
    } else {
        match way {
            Flag::ByBlockFences => {
                while flag.atomic(0).load() == 0 {}
                thread::fence_block();
            }
            Flag::WaitedByOne if lane > 0 => {}
            _ => while flag.atomic(0).load_acquire() == 0 {},
        }
        y[block() * 32 + lane] = data[lane];
    }
}

/// The operations of integers, all threads on one word each.
#[kernel(block = (64), len(y = n, words = 32))]
pub fn operations_of_integers(n: u32, _x: In<f32>, mut y: Out<f32>, words: Out<u32>) {
    let (bit, number) = (1 << (t() % 31), (t() + block() * THREADS) as u32);
    words.atomic(20).max(number);
    words.atomic(21).min(number);
    words.atomic(22).or(bit);
    words.atomic(23).and(!bit);
    words.atomic(24).xor(bit + number);
    words.atomic(25).compare_exchange(0, 7);
    words.atomic(26).exchange(9);
    thread::fence_device();
    // The block that comes last gives the results.
    if words.atomic(27).add(1) + 1 == n {
        thread::fence_device();
        for i in 0..7 {
            y[i] = words.atomic(20 + i).load() as f32;
        }
    }
}

/// All threads write one value by atomic stores.
#[kernel(block = (64), len(y = n, words = 32))]
pub fn one_value_by_atomic_stores(n: u32, _x: In<f32>, y: Out<f32>, words: Out<u32>) {
    words.atomic(20).store(n);
    y.atomic(0).store(1.0);
}

/// Kernels of a pattern, by the way it is carried out, with the block's barriers.
macro_rules! kernels {
    ($pattern:ident($ways:ident): $($(#[$doc:meta])* $name:ident: $way:ident, $barriers:tt;)*) => {$(
        $(#[$doc])*
        #[kernel(block = (64), barriers = $barriers, len(y = n, words = 32))]
        pub fn $name(n: u32, _x: In<f32>, y: Out<f32>, words: Out<u32>) {
            $pattern(y, words, $ways::$way);
        }
    )*};
}

kernels! {
    under_a_lock(Lock):
    /// Adds under a lock, by comparison and exchange.
    locked: ByComparison, 0;
    /// Adds under a lock, by exchange.
    locked_by_exchange: ByExchange, 0;
    /// Adds under a lock, which a store with release semantics gives back.
    given_back_by_a_release: GivenBackByStore, 0;
    /// Does not take the lock.
    not_locked: NotTaken, 0;
    /// Takes the lock without a fence behind it.
    no_fence_behind_the_lock: NoFenceBehind, 0;
    /// Gives the lock back without a fence before it.
    no_fence_before_the_unlock: NoFenceBefore, 0;
    /// The fences order the threads of the block alone.
    locked_by_fences_of_the_block: BlockFences, 0;
}

kernels! {
    last_block_adds(Last):
    /// One thread calls the fence, behind the barrier.
    last_block_by_one_fence: FenceOfOne, 2;
    /// Each thread calls the fence, before the barrier.
    last_block_by_all_fences: FenceOfEach, 2;
    /// Each thread calls the fence behind the barrier, and reads.
    last_block_whose_threads_read: EachReads, 2;
    /// The threads tell the first one by a counter in shared memory, and it tells the other blocks.
    last_block_by_a_counter: ByCounter, 2;
    /// Adds to the counter without a fence.
    last_block_without_a_fence: NoFence, 2;
    /// The fence orders the threads of the block alone.
    last_block_by_a_fence_of_the_block: BlockFence, 2;
    /// One thread of the block calls the fence before the barrier, for itself.
    last_block_by_the_fence_of_another: FenceOfAnother, 2;
    /// Adds to the counter before the other warp has written.
    last_block_without_a_barrier: NoBarrier, 1;
    /// Does not look which block comes last.
    each_block_is_the_last: NotAsked, 2;
}

kernels! {
    look_back(Look):
    /// A prefix sum over the blocks, by release and acquire.
    look_back_by_orders: ByOrders, 1;
    /// A prefix sum over the blocks, by fences.
    look_back_by_fences: ByFences, 1;
    /// Tells that the sum is there by a relaxed store.
    look_back_relaxed_store: RelaxedStore, 1;
    /// Waits for the sum by a relaxed load.
    look_back_relaxed_load: RelaxedLoad, 1;
    /// Tells that the sum is there by a plain write.
    look_back_plain_flag: PlainFlag, 1;
    /// One thread waits, and another reads.
    look_back_without_a_barrier: NoBarrier, 0;
}

kernels! {
    flag_in_shared_memory(Flag):
    /// A warp waits for a flag in shared memory, by release and acquire.
    shared_flag_by_orders: ByOrders, 1;
    /// A warp waits for a flag in shared memory, by fences of the block.
    shared_flag_by_fences: ByBlockFences, 1;
    /// Tells the other warp by a relaxed store.
    shared_flag_relaxed: RelaxedStore, 1;
    /// One lane waits, and the others read.
    shared_flag_for_one_lane: WaitedByOne, 1;
}
