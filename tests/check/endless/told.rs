//! A block that got what it asked for and computes for long before it is seen to go on. Meanwhile another asks for what it will do.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread::yield_now,
    time::{Duration, Instant},
};

use simt::{LaunchConfig, check::Options, checked::*};

use super::launches::{Checked, Memory};

/// Accesses that a thread may make before it waits, and how often the last block asks meanwhile.
const MOST_ACCESSES: u64 = 4_000;
const ASKS: u64 = 20 * MOST_ACCESSES;

/// Blocks that have begun, and how often two of them have asked.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ASKED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Waits for what other workers do, behind the checker's back.
fn until(what: &str, has_come: impl Fn() -> bool) {
    let start = Instant::now();
    while !has_come() {
        assert!(start.elapsed() < Duration::from_secs(60), "not in a minute: {what}");
        yield_now();
    }
}

/// The first block tells the second one, which computes and then tells the third.
#[kernel(block = (1))]
fn computes_after_it_was_told(x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let block = thread::block_idx_x() as usize;
    // So each has a worker of its own.
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
