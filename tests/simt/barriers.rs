//! A barrier waits for all threads of its block.

use super::*;

/// In every round each thread of a ring takes the sum of its two neighbours. A thread that is early
/// or late gives other sums.
#[kernel(block = (96), shared = 96 * 4, len(c = blocks * 96))]
pub fn exchange(blocks: u32, rounds: u32, mut c: Out<u32>) {
    let mut ring = shared![u32; 96];
    let t = thread::thread_idx_x() as usize;
    let at = thread::block_idx_x() as usize * 96 + t;
    ring[t] = at as u32;
    for _ in 0..rounds {
        thread::sync_threads();
        let sum = ring[(t + 1) % 96].wrapping_add(ring[(t + 95) % 96]);
        thread::sync_threads();
        ring[t] = sum;
    }
    c[at] = ring[t];
}

/// The result of `exchange`.
pub fn exchange_by_hand(blocks: u32, rounds: u32) -> Vec<u32> {
    let block = |block: u32| {
        let mut ring = (block * 96..(block + 1) * 96).collect::<Vec<_>>();
        for _ in 0..rounds {
            let sum = |t: usize| ring[(t + 1) % 96].wrapping_add(ring[(t + 95) % 96]);
            ring = (0..96).map(sum).collect();
        }
        ring
    };
    (0..blocks).flat_map(block).collect()
}

#[test]
fn neighbours_exchange_through_shared_memory() {
    for (blocks, rounds) in [(1, 1), (2, 7), (40, 20), (3, 1000)] {
        let mut c = vec![0; blocks as usize * 96];
        launch(&exchange, [blocks, 1, 1], [96, 1, 1], (blocks, rounds, write(&mut c))).unwrap();
        assert!(c == exchange_by_hand(blocks, rounds), "{blocks} blocks, {rounds} rounds");
    }
}

/// The largest possible block, with global memory: what is written before a barrier is read after
/// it.
#[kernel]
fn reversed(mut c: Out<u32>) {
    let (t, size) = (thread::thread_idx_x(), thread::block_dim_x());
    let start = thread::block_idx_x() * size;
    c[(start + t) as usize] = start + t;
    thread::sync_threads();
    let other = c[(start + size - 1 - t) as usize];
    thread::sync_threads();
    c[(start + t) as usize] = other;
}

#[test]
fn neighbours_exchange_through_global_memory() {
    for (blocks, size) in [(3, 1024), (5, 1), (20, 2), (4, 333)] {
        let mut c = vec![0; (blocks * size) as usize];
        launch(&reversed, [blocks, 1, 1], [size, 1, 1], (write(&mut c),)).unwrap();
        let by_hand = (0..blocks).flat_map(|block| (block * size..(block + 1) * size).rev());
        assert!(c == by_hand.collect::<Vec<_>>(), "{blocks} blocks of {size}");
    }
}

/// Each thread passes the same number of barriers, but at different places.
#[kernel]
fn barrier_in_a_helper(mut c: Out<u32>) {
    #[inline(never)]
    fn wait(times: u32) {
        for _ in 0..times {
            thread::sync_threads();
        }
    }
    let mut turn = shared![u32; 1];
    let t = thread::thread_idx_x();
    for round in 0..thread::block_dim_x() {
        if round == t {
            turn[0] = t;
        }
        wait(1);
        c[t as usize] += turn[0];
        wait(2);
    }
}

#[test]
fn a_barrier_in_a_helper() {
    let mut c = vec![0; 50];
    launch(&barrier_in_a_helper, [1, 1, 1], [50, 1, 1], (write(&mut c),)).unwrap();
    assert_eq!(c, [49 * 50 / 2; 50]);
}

/// A thread may end if no other thread will wait again, at another time than the others.
#[kernel]
fn leaves_early(mut c: Out<u32>) {
    let t = thread::thread_idx_x() as usize;
    thread::sync_threads();
    if t.is_multiple_of(3) {
        return;
    }
    c[t] = 1;
}

#[test]
fn a_thread_may_end_after_the_last_barrier() {
    let mut c = vec![0; 64];
    launch(&leaves_early, [1, 1, 1], [64, 1, 1], (write(&mut c),)).unwrap();
    assert!(c.iter().enumerate().all(|(t, &x)| x == u32::from(t % 3 != 0)), "{c:?}");
}

#[kernel]
fn no_barrier(mut c: Out<u32>) {
    let at = thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x();
    c[at as usize] += at;
}

#[test]
fn a_kernel_without_barriers() {
    let mut c = vec![1; 100 * 128];
    launch(&no_barrier, [100, 1, 1], [128, 1, 1], (write(&mut c),)).unwrap();
    assert!(c.iter().zip(1..).all(|(&x, wanted)| x == wanted));
}

/// Two pairs of warps pass numbers to each other, `rounds` times: the first pair writes what the
/// second has doubled.
#[kernel(block = (128), shared = 2 * 64 * 4, len(c = blocks * 64))]
pub fn handed_round(blocks: u32, rounds: u32, mut c: Out<u32>) {
    let (mut there, mut back) = (shared![u32; 64], shared![u32; 64]);
    let turns = named_barriers![3, 2; 128];
    let (full, empty) = (turns.at(0), turns.at(1));
    let t = thread::thread_idx_x() as usize;
    if t < 64 {
        let mut value = t as u32;
        for _ in 0..rounds {
            there[t] = value;
            full.arrive();
            empty.sync();
            value = back[63 - t] + 1;
        }
        c[thread::block_idx_x() as usize * 64 + t] = value;
    } else {
        for _ in 0..rounds {
            full.sync();
            back[t - 64] = 2 * there[t - 64];
            empty.arrive();
        }
    }
}

#[test]
fn some_warps_wait_for_others() {
    for (blocks, rounds) in [(1, 0), (2, 1), (5, 20)] {
        let mut c = vec![0; blocks as usize * 64];
        launch(&handed_round, [blocks, 1, 1], [128, 1, 1], (blocks, rounds, write(&mut c)))
            .unwrap();
        let mut expected = (0..64).collect::<Vec<u32>>();
        for _ in 0..rounds {
            expected = (0..64).map(|t| 2 * expected[63 - t] + 1).collect();
        }
        assert!(c.chunks(64).all(|part| part == expected), "{blocks} blocks, {rounds} rounds");
    }
}

/// A block of a warp and a half: the second warp counts as a whole one.
#[kernel(block = (48), shared = 48 * 4, len(c = 48))]
pub fn half_a_warp_more(mut c: Out<u32>) {
    let (mut line, all) = (shared![u32; 48], named_barriers![15, 1; 64]);
    let t = thread::thread_idx_x() as usize;
    line[t] = t as u32;
    all.at(0).sync();
    c[t] = line[47 - t];
}

/// Only half of the barrier's threads arrive.
#[kernel(block = (64))]
pub fn waits_for_nobody(mut c: Out<u32>) {
    let alone = named_barriers![7, 1; 128];
    alone.at(0).sync();
    c[0] = 1;
}

#[test]
fn a_named_barrier_counts_warps() {
    let mut c = vec![0; 48];
    launch(&half_a_warp_more, [1; 3], [48, 1, 1], (write(&mut c),)).unwrap();
    assert!((0..48).all(|t| c[t] == 47 - t as u32), "{c:?}");
    let outcome = launch(&waits_for_nobody, [1; 3], [64, 1, 1], (write(&mut c),));
    let fault = fault(outcome).to_string();
    let expected = "of id 7: its round 0 waits for 64 of 128 threads; threads of the block: 64 at the named barrier 7 at ";
    assert!(fault.contains(expected) && fault.contains("simt/barriers.rs"), "{fault}");
}
