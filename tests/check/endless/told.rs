//! A block that got its answer, and computes for long before the checker sees it continue.
//! Meanwhile another block asks for its result.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread::yield_now,
    time::{Duration, Instant},
};

use simt::{LaunchConfig, check::Options, checked::*};

use super::launches::{Checked, Memory};

/// Accesses that a thread may make between waits, and how often the last block asks meanwhile.
const MOST_ACCESSES: u64 = 4_000;
const ASKS: u64 = 20 * MOST_ACCESSES;

/// Blocks that have started, and how often two of them have asked.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ASKED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Waits for other workers, unknown to the checker.
fn until(what: &str, has_come: impl Fn() -> bool) {
    let start = Instant::now();
    while !has_come() {
        assert!(start.elapsed() < Duration::from_secs(60), "not in a minute: {what}");
        yield_now();
    }
}

/// The first block signals to the second one, which computes and then signals to the third.
#[kernel(block = (1))]
fn computes_after_it_was_told(x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let block = thread::block_idx_x() as usize;
    // So each block has a worker of its own.
    BEGUN.fetch_add(1, Relaxed);
    until("three workers", || BEGUN.load(Relaxed) >= 3);
    match block {
        0 => {
            until("both ask", || ASKED.iter().all(|asked| asked.load(Relaxed) > 1_000));
            words.atomic_add(0, 1);
        }
        1 => {
            while words.atomic_add(0, 0) == 0 {
                ASKED[0].fetch_add(1, Relaxed);
            }
            let from = ASKED[1].load(Relaxed);
            until("the third asks", || ASKED[1].load(Relaxed) > from + ASKS);
            words.atomic_add(1, 1);
        }
        _ => {
            while words.atomic_add(1, 0) == 0 {
                ASKED[1].fetch_add(1, Relaxed);
            }
        }
    }
    y[block] = x[block] + 2.0;
}

#[test]
fn who_computes_is_waited_for() {
    let mut memory = Memory::new();
    let mut options = Options::default();
    (options.workers, options.most_accesses) = (Some(3), Some(MOST_ACCESSES));
    let config = LaunchConfig::new([3, 1, 1], [1, 1, 1]);
    let report = Checked::check(&computes_after_it_was_told, &config, &mut memory, &options);
    assert!(report.is_clean(), "{report}");
    assert_eq!(memory.y.0[..3], [2.0, 3.0, 4.0]);
}
