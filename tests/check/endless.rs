//! Kernels that never end, that go outside and then on and on, and right ones that poll: the same verdict in every order and with every
//! number of workers, and no launch that hangs.

use std::{hint::black_box, time::Duration};

use simt::{
    Kernel, LaunchConfig,
    check::{self, Kind, Options, Order, Report},
    checked::{In, Out},
};

#[allow(clippy::while_immutable_condition, reason = "they are to have no end")]
#[allow(unused_mut, reason = "some write to one, some to the other")]
mod kernels {
    use std::hint::black_box;

    use simt::checked::*;

    /// Does what never ends.
    macro_rules! endless {
        ($($name:ident: |$lane:ident, $block:ident, $y:ident, $words:ident| $body:block)*) => {$(
            #[kernel(block = (32), barriers = 1)]
            pub fn $name(_x: In<f32>, mut $y: Out<f32>, mut $words: Out<u32>) {
                let ($lane, $block) = (thread::lane_id() as usize, thread::block_idx_x() as usize);
                $y[$block * 32 + $lane] = 1.0;
                thread::sync_threads();
                $body
            }
        )*};
    }

    endless! {
        // Without an access.
        computes: |lane, block, _y, _words| {
            let mut number = lane as u32 + 1;
            while lane == 3 && block == 1 && black_box(number) != 0 {
                number = number.wrapping_mul(5) | 1;
            }
        }
        all_compute: |lane, _block, _y, _words| {
            let mut number = lane as u32;
            while black_box(number) != u32::MAX {
                number = (number + 1) % 1000;
            }
        }
        jumps: |lane, _block, _y, _words| {
            loop {
                if black_box(lane) > 100 {
                    break;
                }
            }
        }
        // With accesses to global memory.
        writes: |lane, block, y, _words| {
            let mut i = 0u32;
            while lane == 0 || i < 4 {
                y[block * 32 + lane] = i as f32;
                i = i.wrapping_add(1) | 1;
            }
        }
        reads: |lane, block, y, _words| {
            while lane == 7 && y[block * 32 + lane] == 1.0 {}
        }
        reads_a_word: |lane, block, _y, words| {
            while lane == 0 && words[block] == 0 {}
        }
        // To shared memory.
        shared_writes: |lane, _block, _y, _words| {
            let mut tile = shared![f32; 32];
            let mut x = 0.0;
            while lane == 31 || x < 2.0 {
                tile[lane] = x;
                x = (x + 1.0) % 8.0 + f32::from(lane < 31) * 8.0;
            }
        }
        shared_reads: |lane, _block, _y, _words| {
            let mut tile = shared![f32; 32];
            tile[lane] = 1.0;
            while lane == 1 && tile[lane] == 1.0 {}
        }
        // By atomics: for a word that nobody changes.
        polls: |lane, _block, _y, words| {
            while lane == 0 && words.atomic_add(0, 0) == 0 {}
        }
        polls_in_shared: |lane, _block, _y, _words| {
            let mut word = shared![u32; 1];
            if lane == 0 {
                word[0] = 0;
            }
            warp::sync_warp(warp::ALL);
            while word.atomic_add(0, 0) == 0 {}
        }
        counts: |lane, _block, _y, words| {
            while lane == 2 && words.atomic_add(1, 2) != 1 {}
        }
        waits_for_itself: |lane, block, _y, words| {
            if lane == 0 {
                while words.atomic_add(block, 0) == 0 {}
                words.atomic_add(block, 1);
            }
        }
        // Others wait for the one that does not come.
        others_wait: |lane, _block, _y, words| {
            while lane == 0 && words.atomic_add(0, 0) == 0 {}
            warp::sync_warp(warp::ALL);
        }
        others_wait_at_a_barrier: |lane, _block, _y, _words| {
            let mut tile = shared![f32; 32];
            while lane == 0 && black_box(lane) == 0 {}
            tile[lane] = 1.0;
        }
        a_spin_lock_that_is_kept: |lane, _block, _y, words| {
            // A warp's lanes one after the other, and none gives it back.
            while words.atomic_add(2, 1) != 0 && lane < 32 {}
        }
        a_bound_that_is_passed: |lane, block, y, _words| {
            let mut i = 1usize;
            while lane == 0 && i != 100 {
                y[block * 32] = i as f32;
                i = (i + 2) % 64;
            }
        }
    }

    /// Goes outside, and then on and on.
    macro_rules! outside {
        ($($name:ident: |$lane:ident, $x:ident, $y:ident, $words:ident| $body:block)*) => {$(
            #[kernel(block = (32))]
            pub fn $name($x: In<f32>, mut $y: Out<f32>, mut $words: Out<u32>) {
                let $lane = thread::lane_id() as usize;
                $body
            }
        )*};
    }

    outside! {
        // What is read outside is all ones: the loop's bound.
        a_bound_from_outside: |lane, _x, y, words| {
            let bound = words[1000 + lane];
            let mut i = 0u32;
            while i < bound {
                y[lane] = i as f32;
                i = (i + 1) % (1 << 20);
            }
        }
        a_bound_and_no_access: |lane, _x, _y, words| {
            let bound = words[1000 + lane];
            let mut i = 0u32;
            while black_box(i) < bound {
                i = (i + 1) % (1 << 20);
            }
        }
        further_and_further: |lane, x, y, _words| {
            let mut i = lane;
            while x[i] != 12345.0 {
                y[lane] = 0.0;
                i = (i + 32) | 1 << 20;
            }
        }
        outside_again_and_again: |lane, x, _y, _words| {
            while x[1 << 20 | lane].is_nan() {}
        }
        writes_outside: |lane, _x, y, _words| {
            let mut i = lane;
            while lane < 32 {
                y[1 << 20 | i] = 0.0;
                i = (i + 1) % 4096;
            }
        }
        outside_of_shared: |lane, _x, _y, _words| {
            let tile = shared![f32; 32];
            while tile[32 + lane].is_nan() {}
        }
    }

    /// Right ones, which poll and count in loops.
    #[kernel(block = (32))]
    pub fn one_after_another(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
        // Lanes take turns by an atomic that all of them poll.
        let lane = thread::lane_id();
        let mut turn = shared![u32; 1];
        if lane == 0 {
            turn[0] = 0;
        }
        warp::sync_warp(warp::ALL);
        while turn.atomic_add(0, 0) != lane {}
        y[(thread::block_idx_x() * 32 + lane) as usize] = 2.0;
        words.atomic_add(0, 1);
        turn.atomic_add(0, 1);
    }

    #[kernel(block = (32))]
    pub fn blocks_take_turns(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
        // Blocks wait for the one before by polling, from the last to the first.
        let (lane, block) = (thread::lane_id(), thread::block_idx_x());
        if lane == 0 {
            while words.atomic_add(1, 0) != thread::grid_dim_x() - 1 - block {}
        }
        warp::sync_warp(warp::ALL);
        y[(block * 32 + lane) as usize] = 2.0;
        warp::sync_warp(warp::ALL);
        if lane == 0 {
            words.atomic_add(1, 1);
        }
    }

    /// The first block polls until the second one, which makes many more accesses than one may between two waits, has ended.
    #[kernel(block = (32))]
    pub fn polls_for_long(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
        let (lane, block) = (thread::lane_id(), thread::block_idx_x());
        if block > 0 {
            for _ in 0..30 {
                for _ in 0..500 {
                    y[(block * 32 + lane) as usize] = 1.0;
                }
                warp::sync_warp(warp::ALL);
            }
            if lane == 0 {
                words.atomic_add(1, 1);
            }
        } else if lane == 0 {
            while words.atomic_add(1, 0) < thread::grid_dim_x() - 1 {}
        }
        y[(block * 32 + lane) as usize] = 2.0;
    }

    /// Half of the blocks wait for a word, half poll for another one, and nobody makes either.
    #[kernel(block = (32))]
    pub fn some_poll_and_some_wait(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
        let (lane, block) = (thread::lane_id(), thread::block_idx_x());
        y[(block * 32 + lane) as usize] = 2.0;
        if block % 2 == 0 {
            words.wait_for_at_least(1, 1);
        } else if lane == 0 {
            while words.atomic_add(2, 0) == 0 {}
        }
    }

    #[kernel(block = (32))]
    pub fn many_counts(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
        let (lane, block) = (thread::lane_id(), thread::block_idx_x());
        for i in 0..1000 {
            words.atomic_add((2 + (i + lane) % 6) as usize, 1);
        }
        y[(block * 32 + lane) as usize] = 2.0;
    }
}

const BLOCKS: u32 = 4;

fn run(
    kernel: &Kernel<(In<f32>, Out<f32>, Out<u32>)>,
    order: Order,
    workers: usize,
) -> (Report, Vec<f32>) {
    let (x, mut y, mut words) = (vec![1f32; 128], vec![0f32; 128], vec![0u32; 8]);
    let mut options = Options::default();
    (options.order, options.workers) = (order, Some(workers));
    (options.most_accesses, options.patience) = (Some(200_000), Some(Duration::from_millis(30)));
    let config = LaunchConfig::new([BLOCKS, 1, 1], [32, 1, 1]);
    // SAFETY: the vectors outlive the launch, and nobody else uses them.
    let report = unsafe {
        let params = (
            In::new(x.as_ptr(), x.len()),
            Out::new(y.as_mut_ptr(), y.len()),
            Out::new(words.as_mut_ptr(), words.len()),
        );
        check::launch(kernel, &config, params, &options).expect("a report")
    };
    black_box(&words);
    (report, y)
}

/// Is there a finding of that kind?
fn finds(report: &Report, kind: Kind) -> bool {
    report.findings.iter().any(|finding| finding.kind == kind)
}

fn orders() -> impl Iterator<Item = Order> {
    [Order::Forward, Order::Reverse].into_iter().chain((1..=8).map(Order::Random))
}

const WORKERS: [usize; 3] = [1, 2, 16];

macro_rules! each {
    ($orders:expr, |$name:ident, $order:ident, $run:ident| $check:block; $($kernel:ident)*) => {$(
        for workers in WORKERS {
            for $order in $orders {
                let $name = format!("{}, {}, {workers} workers", stringify!($kernel), $order);
                let $run = run(&kernels::$kernel, $order, workers);
                $check
            }
        }
    )*};
}

/// The order of those that are waited for: one.
fn some() -> impl Iterator<Item = Order> {
    [Order::Forward].into_iter()
}

#[test]
fn what_never_ends_is_ended() {
    each! { some(), |name, order, run| {
        assert!(finds(&run.0, Kind::Endless), "{name}: {}", run.0);
    }; computes all_compute jumps others_wait_at_a_barrier reads shared_reads reads_a_word }
    each! { orders(), |name, order, run| {
        assert!(finds(&run.0, Kind::Endless), "{name}: {}", run.0);
    }; writes shared_writes polls polls_in_shared counts waits_for_itself others_wait some_poll_and_some_wait a_spin_lock_that_is_kept a_bound_that_is_passed }
}

#[test]
fn what_was_found_before_is_told() {
    each! { orders().take(4), |name, order, run| {
        assert!(finds(&run.0, Kind::OutOfBounds), "{name}: {}", run.0);
    }; a_bound_from_outside further_and_further outside_again_and_again writes_outside outside_of_shared }
    each! { some(), |name, order, run| {
        assert!(finds(&run.0, Kind::OutOfBounds), "{name}: {}", run.0);
    }; a_bound_and_no_access }
}

#[test]
fn who_polls_lets_others_run() {
    each! { orders(), |name, order, run| {
        assert!(!finds(&run.0, Kind::Endless), "{name}: {}", run.0);
        assert!(run.1.iter().all(|y| *y == 2.0), "{name}: {:?}", run.1);
    }; one_after_another blocks_take_turns many_counts polls_for_long }
}
