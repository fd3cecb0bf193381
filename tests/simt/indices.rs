//! Every thread of every block runs once, with its own indices.

use std::collections::HashSet;

use super::*;

/// The values that a thread knows about itself.
const WORDS: usize = 14;

#[kernel(len(known = threads * 14))]
fn who_am_i(threads: u64, mut known: Out<u32>) {
    use thread::*;
    let block = (block_idx_z() * grid_dim_y() + block_idx_y()) * grid_dim_x() + block_idx_x();
    let thread = (thread_idx_z() * block_dim_y() + thread_idx_y()) * block_dim_x() + thread_idx_x();
    let size = block_dim_x() * block_dim_y() * block_dim_z();
    let at = (block * size + thread) as usize * WORDS;
    let words = [
        [thread_idx_x(), thread_idx_y(), thread_idx_z()],
        [block_idx_x(), block_idx_y(), block_idx_z()],
        [block_dim_x(), block_dim_y(), block_dim_z()],
        [grid_dim_x(), grid_dim_y(), grid_dim_z()],
    ];
    for axis in 0..12 {
        known[at + axis] = words[axis / 3][axis % 3];
    }
    // Added, so that a thread that runs twice shows.
    known[at + 12] += lane_id() + 1;
    known[at + 13] += warp_id() + 1;
    let _ = threads;
}

#[test]
fn every_thread_runs_once_and_knows_its_place() {
    for (grid, block) in [
        ([1, 1, 1], [1, 1, 1]),
        ([3, 2, 4], [5, 4, 3]),
        ([7, 1, 1], [100, 1, 1]),
        ([1, 5, 1], [1, 33, 2]),
        ([2, 1, 3], [2, 2, 64]),
        ([2, 1, 1], [1024, 1, 1]),
    ] {
        let config = LaunchConfig::new(grid, block);
        let threads = config.blocks() * config.threads();
        let mut known = vec![0u32; threads as usize * WORDS];
        launch(&who_am_i, grid, block, (threads, write(&mut known))).unwrap();

        let mut seen = HashSet::new();
        for (number, words) in known.as_chunks::<WORDS>().0.iter().enumerate() {
            let triple = |at: usize| [words[at], words[at + 1], words[at + 2]];
            let (thread, of_block) = (triple(0), triple(3));
            assert_eq!((triple(6), triple(9)), (block, grid), "{grid:?} {block:?}");
            assert!((0..3).all(|axis| thread[axis] < block[axis] && of_block[axis] < grid[axis]));
            let linear = (number as u64 % config.threads()) as u32;
            let own = [words[12], words[13]];
            assert_eq!(own, [linear % 32 + 1, linear / 32 + 1], "{grid:?} {block:?}");
            seen.insert((of_block, thread));
        }
        assert_eq!(seen.len() as u64, threads, "{grid:?} {block:?}");
    }
}

#[test]
fn outside_a_kernel_there_is_no_thread() {
    for question in [thread::thread_idx_x, thread::block_dim_z, thread::lane_id] {
        let panic = std::panic::catch_unwind(question).unwrap_err();
        let text = panic.downcast_ref::<&str>().unwrap();
        assert!(text.starts_with("only a kernel has a thread index"), "{text}");
    }
}
