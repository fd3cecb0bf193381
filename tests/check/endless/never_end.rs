//! Kernels that never end. In each, some lanes or blocks end or wait, and others do not end.

#![allow(clippy::while_immutable_condition, reason = "they are to have no end")]
#![allow(unused_mut, reason = "some write to y, some to the words")]

use std::hint::black_box;

use simt::{check::Kind, checked::*};

use super::launches::{BLOCKS, Wrong, init};

const ENDLESS: &[Kind] = &[Kind::Endless];
const DEADLOCK: &[Kind] = &[Kind::Deadlock];
const BOTH: &[Kind] = &[Kind::Deadlock, Kind::Endless];

/// Loops that never end, and their list.
macro_rules! kernels {
    ($(#[$about:meta])* $list:ident: $(
        $(#[$doc:meta])*
        $name:ident($($key:ident = $value:tt),*) -> $kinds:ident:
            |$lane:ident, $block:ident, $x:ident: $ty:ident<f32>, $y:ident, $words:ident| $body:block
    )*) => {
        $(#[$about])*
        pub(super) static $list: &[Wrong] = &[$(Wrong { kernel: &$name, kinds: $kinds }),*];

        $($(#[$doc])*
        #[kernel($($key = $value),*)]
        fn $name($x: $ty<f32>, mut $y: Out<f32>, mut $words: Out<u32>) {
            let ($lane, $block) = (thread::lane_id() as usize, thread::block_idx_x() as usize);
            if thread::warp_id() == 0 {
                $y[$block * 32 + $lane] = 1.0;
            }
            thread::sync_threads();
            $body
        })*
    };
}

kernels! {
    /// Without accesses, or with accesses that add nothing new: the watchdog ends them.
    UNSEEN:
    computes(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut number = lane as u32 + 1;
        while lane == 3 && block == 1 && black_box(number) != 0 {
            number = number.wrapping_mul(5) | 1;
        }
    }
    all_compute(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut number = lane as u32;
        while black_box(number) != u32::MAX {
            number = (number + 1) % 1000;
        }
    }
    jumps(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        loop {
            if black_box(lane) > 100 {
                break;
            }
        }
    }
    others_wait_at_a_barrier(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut tile = shared![f32; 32];
        while lane == 0 && black_box(lane) == 0 {}
        thread::sync_threads();
        tile[lane] = 1.0;
    }
    /// After two blocks have read an element, another read of it adds nothing new and is not
    /// counted.
    reads_what_all_have_read(block = (32)) -> ENDLESS: |lane, block, x: In<f32>, y, _words| {
        while x[0] == 0.0 {}
    }
    computes_after_a_read(block = (32)) -> ENDLESS: |lane, block, x: In<f32>, y, _words| {
        let mut number = x[block * 32 + lane] as u32;
        while black_box(number) != u32::MAX {
            number = (number + 1) % 1000;
        }
    }
}

kernels! {
    /// With counted accesses or other counted operations.
    WITH_ACCESSES:
    reads(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        while lane == 7 && y[block * 32 + lane] == 1.0 {}
    }
    shared_reads(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut tile = shared![f32; 32];
        tile[lane] = 1.0;
        while lane == 1 && tile[lane] == 1.0 {}
    }
    reads_a_word(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        while lane == 0 && words[block] == 0 {}
    }
    writes(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut i = 0u32;
        while lane == 0 || i < 4 {
            y[block * 32 + lane] = i as f32;
            i = i.wrapping_add(1) | 1;
        }
    }
    shared_writes(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut tile = shared![f32; 32];
        let mut x = 0.0;
        while lane == 31 || x < 2.0 {
            tile[lane] = x;
            x = (x + 1.0) % 8.0 + f32::from(lane < 31) * 8.0;
        }
    }
    /// Polls a word that nobody changes.
    polls(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        while lane == 0 && words.atomic_add(0, 0) == 0 {}
    }
    polls_in_shared(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut word = shared![u32; 1];
        if lane == 0 {
            word[0] = 0;
        }
        warp::sync_warp(warp::ALL);
        while word.atomic_add(0, 0) == 0 {}
    }
    counts(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        while lane == 2 && words.atomic_add(1, 2) != 1 {}
    }
    waits_for_itself(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        if lane == 0 {
            while words.atomic_add(block, 0) == 0 {}
            words.atomic_add(block, 1);
        }
    }
    others_wait(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        while lane == 0 && words.atomic_add(0, 0) == 0 {}
        warp::sync_warp(warp::ALL);
    }
    others_wait_at_an_mbarrier(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        let told = mbarriers![1];
        init(&told, [32]);
        while lane == 5 && words.atomic_add(0, 0) == 0 {}
        told.at(0).arrive();
        told.at(0).wait(0);
    }
    /// A lock that a warp's lanes take one after another, and that no lane releases.
    a_spin_lock_that_is_kept(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        while words.atomic_add(2, 1) != 0 && lane < 32 {}
    }
    a_bound_that_is_passed(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut i = 1usize;
        while lane == 0 && i != 100 {
            y[block * 32] = i as f32;
            i = (i + 2) % 64;
        }
    }
    /// Half of the blocks wait for a flag, half poll another word. No block raises either.
    some_poll_and_some_wait(block = (32)) -> BOTH: |lane, block, _x: In<f32>, y, words| {
        if block % 2 == 0 {
            words.wait_for_at_least(1, 1);
        } else if lane == 0 {
            while words.atomic_add(2, 0) == 0 {}
        }
    }
    polls_for_one_block_too_many(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        if lane == 0 {
            words.release_add(0, 1);
            while words.atomic_add(0, 0) != BLOCKS + 1 {}
        }
    }
    /// A wait for the wrong parity: the phase before the first counts as ended, and the wait
    /// returns at once.
    a_phase_that_has_ended(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let told = mbarriers![1];
        init(&told, [1]);
        while lane == 9 {
            told.at(0).wait(1);
        }
    }
    fences_and_empty_groups(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        while lane < 32 {
            fence_proxy_async();
            copies::commit_group();
            copies::wait_group::<0>();
            bulk::commit_group();
            bulk::wait_group_read::<0>();
        }
    }
    tells_for_ever(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        while lane == 0 {
            words.release_add(block, 1);
        }
    }
    a_word_that_has_come(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        while lane == 4 {
            words.wait_for_at_least(block, 0);
        }
    }
}

kernels! {
    /// With waits, each of which ends, or one that does not.
    WITH_WAITS:
    /// One lane polls each time, and all wait for the value that it broadcasts.
    polls_by_shuffles(block = (64)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        loop {
            let come = if lane == 0 { words.atomic_add(0, 0) } else { 0 };
            if warp::shuffle(warp::ALL, come, 0) != 0 {
                break;
            }
        }
    }
    polls_at_barriers(block = (64)) -> ENDLESS: |lane, block, _x: In<f32>, y, words| {
        let mut come = shared![u32; 1];
        loop {
            if thread::thread_idx_x() == 0 {
                come[0] = words.atomic_add(block, 0);
            }
            thread::sync_threads();
            let has_come = come[0] > 0;
            thread::sync_threads();
            if has_come {
                break;
            }
        }
    }
    sums_that_do_not_converge(block = (32)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let mut value = lane as f32;
        while warp::any(warp::ALL, value != 100.0) {
            value = 0.5 * (value + warp::shuffle_xor(warp::ALL, value, 1));
        }
    }
    a_cluster_that_meets_for_ever(block = (32), cluster = (2)) -> ENDLESS:
        |lane, block, _x: In<f32>, y, _words| {
        while lane < 32 {
            cluster::sync();
        }
    }
    /// Two warps signal each other in turn.
    warps_to_and_fro(block = (64)) -> ENDLESS: |lane, block, _x: In<f32>, y, _words| {
        let told = mbarriers![2];
        init(&told, [32, 32]);
        let mut parity = 0;
        while lane < 32 {
            if thread::warp_id() == 0 {
                told.at(0).wait(parity);
                told.at(1).arrive();
            } else {
                told.at(0).arrive();
                told.at(1).wait(parity);
            }
            parity ^= 1;
        }
    }
    /// Copies that complete one after another, in a loop without a bound.
    boxes_for_ever(block = (32), dynamic_shared = 256) -> ENDLESS:
        |lane, block, x: TensorMap<f32>, y, _words| {
        let (mut tile, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
        let full = mbarriers![1];
        if lane == 0 {
            full.at(0).init(1);
            mbarrier::fence_init();
            let mut parity = 0;
            loop {
                full.at(0).arrive_expect(256);
                tile.load_box(0, &boxes, (0, 0, 0), full.at(0));
                full.at(0).wait(parity);
                parity ^= 1;
            }
        }
    }
    an_arrival_short(block = (32)) -> DEADLOCK: |lane, block, _x: In<f32>, y, _words| {
        let told = mbarriers![1];
        init(&told, [33]);
        told.at(0).arrive();
        told.at(0).wait(0);
    }
    bytes_that_never_come(block = (32), dynamic_shared = 256) -> DEADLOCK:
        |lane, block, x: TensorMap<f32>, y, _words| {
        let (mut tile, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
        let full = mbarriers![1];
        if lane == 0 {
            full.at(0).init(1);
            mbarrier::fence_init();
            full.at(0).arrive_expect(512);
            tile.load_box(0, &boxes, (0, 0, 0), full.at(0));
        }
        thread::sync_threads();
        full.at(0).wait(0);
    }
    /// No thread arrives a second time.
    the_phase_behind_the_last(block = (32)) -> DEADLOCK: |lane, block, _x: In<f32>, y, _words| {
        let told = mbarriers![1];
        init(&told, [32]);
        told.at(0).arrive();
        told.at(0).wait(0);
        told.at(0).wait(1);
    }
    /// The warp that reads does not release what it has read.
    a_ring_that_nobody_empties(block = (64)) -> DEADLOCK: |lane, block, _x: In<f32>, y, _words| {
        let (mut stages, pipeline) = (shared![f32; 2, 32], pipeline![2]);
        if thread::thread_idx_x() == 0 {
            pipeline.init_for_writers(1, 1);
        }
        thread::sync_threads();
        let (mut producer, mut consumer) = (pipeline.producer(), pipeline.consumer());
        for _ in 0..3 {
            if thread::warp_id() == 0 {
                stages[(producer.acquire_warp(), lane)] = 1.0;
                producer.filled_warp();
                producer.advance();
            } else {
                y[block * 32 + lane] = stages[(consumer.wait_warp(), lane)];
                consumer.advance();
            }
        }
    }
    told_by_no_other_block(block = (32), cluster = (2)) -> DEADLOCK:
        |lane, block, _x: In<f32>, y, _words| {
        let told = mbarriers![1];
        if lane == 0 {
            told.at(0).init(64);
            mbarrier::fence_init();
        }
        cluster::sync();
        told.at(0).arrive();
        told.at(0).wait(0);
        cluster::sync();
    }
    a_named_barrier_for_more(block = (64)) -> DEADLOCK: |lane, block, _x: In<f32>, y, _words| {
        let halves = named_barriers![1, 1; 64];
        if thread::warp_id() == 1 {
            halves.at(0).sync();
        }
    }
    meet_one_block_too_many(block = (32)) -> DEADLOCK: |lane, block, _x: In<f32>, y, words| {
        if lane == 0 {
            words.release_add(0, 1);
        }
        words.wait_for_at_least(0, BLOCKS + 1);
    }
    /// Each block waits for the next one before it raises its own flag.
    blocks_wait_in_a_circle(block = (32)) -> DEADLOCK: |lane, block, _x: In<f32>, y, words| {
        words.wait_for_at_least((block + 1) % 4, 1);
        if lane == 0 {
            words.release_add(block, 1);
        }
    }
    /// The first block that takes the lock does not release it.
    a_lock_that_is_kept(block = (32)) -> DEADLOCK: |lane, block, _x: In<f32>, y, words| {
        if lane == 0 {
            let given = words.atomic_add(0, 1);
            words.wait_for_at_least(1, given);
        }
    }
    a_lane_of_its_own_way(block = (32)) -> DEADLOCK: |lane, block, _x: In<f32>, y, words| {
        if lane == 6 {
            words.wait_for_at_least(3, 1);
        }
        warp::sync_warp(warp::ALL);
    }
}
