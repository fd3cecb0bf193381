//! A process whose stacks are all in use. A checked launch waits for some, and does not report a
//! polling block as endless. The test is alone in its process, because it takes all stacks.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread::{scope, sleep, yield_now},
    time::{Duration, Instant},
};

use simt::{
    LaunchConfig,
    check::{self, Options},
    checked, cpu, device,
};
use tests::beside::watched;

/// Blocks of 1024 threads for which a process has stacks.
const BLOCKS: u32 = 28;

/// Whether the polling block has started, how many others hold their stacks, how often it has asked
/// since, and whether the others may end.
static BEGUN: AtomicBool = AtomicBool::new(false);
static HELD: AtomicU32 = AtomicU32::new(0);
static ASKED: AtomicU32 = AtomicU32::new(0);
static RELEASED: AtomicBool = AtomicBool::new(false);

/// Keeps its stacks until they are asked for.
mod holder {
    use super::{device::*, *};

    #[kernel(block = (1024))]
    pub fn holds(mut y: Out<u32>) {
        if thread::thread_idx_x() == 0 {
            HELD.fetch_add(1, Ordering::Release);
            while !RELEASED.load(Ordering::Acquire) {
                sleep(Duration::from_millis(1));
            }
            y[0] = 1;
        }
    }
}

/// The first block asks by votes whether the second has signalled. There are no stacks for the
/// second.
mod poller {
    use super::{checked::*, *};

    #[kernel(block = (1024))]
    pub fn polls(mut words: Out<u32>) {
        let first = thread::thread_idx_x() == 0;
        if thread::block_idx_x() == 1 {
            if first {
                words.release_add(0, 1);
            }
        } else if thread::warp_id() == 0 {
            while first && HELD.load(Ordering::Acquire) < BLOCKS - 1 {
                BEGUN.store(true, Ordering::Release);
                sleep(Duration::from_millis(1));
            }
            loop {
                if first && ASKED.fetch_add(1, Ordering::Relaxed) >= 50 {
                    RELEASED.store(true, Ordering::Release);
                }
                let come = first && words.atomic_add(0, 0) > 0;
                if warp::any(warp::ALL, come) {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_block_without_stacks_may_be_asked_for() {
    let start = Instant::now();
    let look = || {
        if start.elapsed() > Duration::from_secs(60) {
            eprintln!("it hangs");
            std::process::abort();
        }
    };
    watched(Duration::from_millis(20), look, || {
        scope(|scope| {
            let polls = scope.spawn(|| {
                let mut words = [0; 1];
                let mut options = Options::default();
                (options.workers, options.most_waits) = (Some(1), Some(10));
                let config = LaunchConfig::new([2, 1, 1], [1024, 1, 1]);
                // SAFETY: the words outlive the launch, and nobody else uses them.
                let report = unsafe {
                    let words = checked::Out::new(words.as_mut_ptr(), 1);
                    check::launch(&poller::polls, &config, (words,), &options)
                };
                RELEASED.store(true, Ordering::Release);
                let report = report.expect("a report");
                assert!(report.is_clean(), "{report}");
            });
            while !BEGUN.load(Ordering::Acquire) && !polls.is_finished() {
                yield_now();
            }
            for _ in 1..BLOCKS {
                scope.spawn(|| {
                    let mut y = [0; 1];
                    let mut options = cpu::Options::default();
                    options.workers = Some(1);
                    let config = LaunchConfig::new([1, 1, 1], [1024, 1, 1]);
                    // SAFETY: as above.
                    unsafe {
                        let y = device::Out::new(y.as_mut_ptr(), 1);
                        cpu::launch(&holder::holds, &config, (y,), &options)
                    }
                    .expect("no fault");
                    assert_eq!(y, [1]);
                });
            }
        });
    });
    assert!(ASKED.load(Ordering::Relaxed) > 50, "it has asked while there were no stacks");
}
