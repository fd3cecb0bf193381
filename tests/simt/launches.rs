//! Launches that are cancelled, that run concurrently, or that run a part of their grid.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::{scope, sleep},
    time::Duration,
};

use super::{
    barriers::{exchange, exchange_by_hand},
    *,
};

/// `rows` and `each` are used for the length of `c` alone. That is a use, so nothing here warns.
#[deny(unused_variables)]
#[kernel(block = (32), len(c = (rows + 1) * each))]
fn has_sizes_for_a_length(rows: u32, each: u32, mut c: Out<u32>) {
    c[thread::thread_idx_x() as usize] = 1;
}

#[test]
fn a_size_may_be_used_for_a_length_alone() {
    let mut c = vec![0; 32];
    let (grid, block) = ([1, 1, 1], [32, 1, 1]);
    launch(&has_sizes_for_a_length, grid, block, (1, 16, write(&mut c))).unwrap();
    assert_eq!(c, [1; 32]);
    assert!(launch(&has_sizes_for_a_length, grid, block, (2, 16, write(&mut c))).is_err());
}

/// Waits at barriers for seconds.
#[kernel(block = (64))]
fn waits_long(mut started: Out<u32>) {
    started[thread::thread_idx_x() as usize] = 1;
    for _ in 0..2_000_000 {
        thread::sync_threads();
    }
}

#[test]
fn a_cancelled_launch_ends_at_a_barrier() {
    for workers in [None, Some(1)] {
        let cancel = AtomicBool::new(false);
        let mut started = vec![0; 64];
        let mut options = Options::default();
        (options.workers, options.cancel) = (workers, Some(&cancel));
        let outcome = scope(|scope| {
            scope.spawn(|| {
                sleep(Duration::from_millis(50));
                cancel.store(true, Ordering::Relaxed);
            });
            let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]);
            launch_with(&waits_long, config, (write(&mut started),), &options)
        });
        assert!(matches!(outcome, Err(Stop::Interrupted)), "{outcome:?}");
        assert_eq!(started, [1; 64]);

        // The flag is still set: no block starts.
        let mut c = vec![7; 96];
        let config = LaunchConfig::new([1, 1, 1], [96, 1, 1]);
        let outcome = launch_with(&exchange, config, (1, 1, write(&mut c)), &options);
        assert!(matches!(outcome, Err(Stop::Interrupted)), "{outcome:?}");
        assert_eq!(c, [7; 96]);

        // The waiting fibers can be used again.
        cancel.store(false, Ordering::Relaxed);
        launch_with(&exchange, config, (1, 9, write(&mut c)), &options).unwrap();
        assert!(c == exchange_by_hand(1, 9));
    }
}

/// Adds one to the previous launch's result.
#[kernel(block = (64), arch = 90, opt_level = 3, dependent)]
fn counts_on(mut counts: Out<u32>) {
    let t = thread::thread_idx_x() as usize;
    grid::let_next_begin();
    grid::wait_for_earlier();
    counts[t] += 1;
}

#[test]
fn a_kernel_that_may_begin_early_runs_after_the_one_before() {
    let declaration = &counts_on.declaration;
    assert!(declaration.dependent && !exchange.declaration.dependent);
    let comment = declaration.to_ptx_comment();
    assert!(comment.ends_with(" arch=90 opt_level=3 dependent=true params=out.u32"), "{comment}");
    assert!(!exchange.declaration.to_ptx_comment().contains("dependent"));
    let mut counts = vec![0; 64];
    let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]);
    for _ in 0..200 {
        launch_with(&counts_on, config, (write(&mut counts),), &Options::default()).unwrap();
    }
    assert_eq!(counts, [200; 64]);
}

/// Each block writes the rounds that it has started: as many as other blocks, or one fewer. The
/// thread that keeps step reports the largest number of arrivals.
#[kernel(block = (32))]
fn keeps_step(rows: u32, mut done: Out<u32>, mut word: Out<u32>, mut most: Out<u32>) {
    let (block, blocks) = (thread::block_idx_x(), thread::grid_dim_x());
    let mut pace = grid::Pace::new(blocks, rows.div_ceil(blocks));
    let mut seen = 0;
    let mut arrive = |count: u32| {
        let before = word.atomic_add(3, count);
        seen = if before > seen { before } else { seen };
        before
    };
    for row in (block..rows).step_by(blocks as usize) {
        if thread::thread_idx_x() == 0 {
            pace.wait(&mut arrive);
        }
        done[(row * 32 + thread::thread_idx_x()) as usize] = 1;
    }
    if thread::thread_idx_x() == 0 {
        pace.finish(&mut arrive);
        most[block as usize] = seen;
    }
}

#[test]
fn the_last_arrival_leaves_a_zero() {
    let mut word = vec![7, 7, 7, 0, 7];
    for workers in [None, Some(1)] {
        // Whole and partial rounds, one round, fewer blocks than rows and more.
        for (rows, blocks) in [(12, 4), (13, 4), (15, 4), (3, 4), (4, 4), (9, 1), (1, 3)] {
            let mut done = vec![0; rows as usize * 32];
            let mut most = vec![u32::MAX; blocks as usize];
            let mut options = Options::default();
            options.workers = workers;
            let params = (rows, write(&mut done), write(&mut word), write(&mut most));
            let config = LaunchConfig::new([blocks, 1, 1], [32, 1, 1]);
            launch_with(&keeps_step, config, params, &options).unwrap();
            assert!(done.iter().all(|&done| done == 1), "{rows} {blocks}");
            // Nobody arrives before the first round. The last thread finds all arrivals except its
            // own.
            assert_eq!(word, [7, 7, 7, 0, 7], "{rows} {blocks}");
            let rounds = rows.div_ceil(blocks);
            let most = most.into_iter().max().unwrap_or_default();
            assert_eq!(most, (rounds - 1) * blocks, "{rows} {blocks}");
        }
    }
}

#[test]
fn launches_from_several_threads_at_once() {
    scope(|scope| {
        for number in 1..=4 {
            scope.spawn(move || {
                for round in 0..10 {
                    let (blocks, rounds) = (3 * number, number + round);
                    let mut c = vec![0; blocks as usize * 96];
                    let params = (blocks, rounds, write(&mut c));
                    launch(&exchange, [blocks, 1, 1], [96, 1, 1], params).unwrap();
                    assert!(
                        c == exchange_by_hand(blocks, rounds),
                        "thread {number}, round {round}"
                    );
                }
            });
        }
    });
}

/// A fault, and a good launch, at the same time.
#[test]
fn a_fault_elsewhere_does_not_disturb() {
    #[kernel(block = (96))]
    fn fails(mut c: Out<u32>) {
        thread::sync_threads();
        c[96] = 1;
    }
    scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                let mut c = vec![0; 96];
                let found = fault(launch(&fails, [4, 1, 1], [96, 1, 1], (write(&mut c),)));
                assert_eq!((found.kernel, found.block), ("fails", [0; 3]));
            }
        });
        for _ in 0..50 {
            let mut c = vec![0; 4 * 96];
            launch(&exchange, [4, 1, 1], [96, 1, 1], (4, 5, write(&mut c))).unwrap();
            assert!(c == exchange_by_hand(4, 5));
        }
    });
}

#[kernel(block = (2))]
fn marks(mut c: Out<u32>) {
    let [x, y, z] = [thread::block_idx_x(), thread::block_idx_y(), thread::block_idx_z()];
    let block = (z * thread::grid_dim_y() + y) * thread::grid_dim_x() + x;
    c[(block * 2 + thread::thread_idx_x()) as usize] += 1;
}

/// Blocks are numbered x first, then y, then z.
#[test]
fn a_part_of_the_grid() {
    for range in [0..60, 0..1, 59..60, 7..23, 12..12, 50..1000, 60..70] {
        let mut c = vec![0; 120];
        let mut options = Options::default();
        options.blocks = Some(range.clone());
        let config = LaunchConfig::new([5, 4, 3], [2, 1, 1]);
        launch_with(&marks, config, (write(&mut c),), &options).unwrap();
        for (at, &times) in c.iter().enumerate() {
            let inside = range.contains(&(at as u64 / 2));
            assert_eq!(times, u32::from(inside), "{range:?}, block {}", at / 2);
        }
    }
}

/// Different block shapes one after another on the same cores: fibers and shared memory are reused.
#[test]
fn shapes_may_change_from_launch_to_launch() {
    #[kernel]
    fn sums(mut c: Out<u32>) {
        let mut all = dynamic_shared![u32];
        let size = thread::block_dim_x() as usize;
        let t = thread::thread_idx_x() as usize;
        all[t] = t as u32;
        thread::sync_threads();
        c[thread::block_idx_x() as usize * size + t] = (0..size).map(|other| all[other]).sum();
    }
    for size in [1, 64, 3, 256, 2, 64, 100, 1] {
        let mut c = vec![0; 5 * size as usize];
        let config =
            LaunchConfig { dynamic_shared: 4 * size, ..LaunchConfig::new([5, 1, 1], [size, 1, 1]) };
        launch_with(&sums, config, (write(&mut c),), &Options::default()).unwrap();
        assert!(c.iter().all(|&sum| sum == size * (size - 1) / 2), "{size}: {c:?}");
    }
}

#[test]
fn a_wrong_launch_is_refused() {
    let mut c = vec![7; 96];
    for (grid, block, what) in [
        ([1, 1, 1], [95, 1, 1], "block = [95, 1, 1]: the kernel declares [96, 1, 1]"),
        ([0, 1, 1], [96, 1, 1], "grid.x = 0: must be 1 to 2147483647"),
        ([2, 1, 1], [96, 1, 1], "c has 96 elements, blocks * 96 = 192 are needed"),
    ] {
        let blocks = grid[0].max(1);
        match launch(&exchange, grid, block, (blocks, 1, write(&mut c))) {
            Err(Stop::Config(found)) => assert_eq!(found, what),
            other => panic!("{other:?}"),
        }
        assert_eq!(c, [7; 96], "{what}");
    }
}

/// A rule may subtract. For an empty matrix the result would be negative, which is no panic.
#[test]
fn a_length_rule_with_a_leading_dimension() {
    #[kernel(block = (1), len(c = (m - 1) * ld + k))]
    fn padded(m: u32, ld: u32, k: u32, mut c: Out<u32>) {
        c[0] = m + ld + k;
    }
    let mut c = vec![0; 12];
    let mut launch = |m: u32| launch(&padded, [1; 3], [1; 3], (m, 5, 2, write(&mut c)));
    assert!(launch(0).is_ok() && launch(3).is_ok());
    let Err(Stop::Config(what)) = launch(4) else { panic!("12 elements are too few for 4 rows") };
    assert_eq!(what, "c has 12 elements, (m - 1) * ld + k = 17 are needed");
}
