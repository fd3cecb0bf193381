//! Kernels that access memory out of bounds, and then do not end, or wait in vain. A read out of
//! bounds gives all ones.

#![allow(clippy::while_immutable_condition, reason = "they are to have no end")]
#![allow(unused_mut, reason = "some write to y, some to the words")]

use std::hint::black_box;

use simt::{check::Kind, checked::*};

use super::launches::{Wrong, init};

const OUTSIDE: &[Kind] = &[Kind::OutOfBounds];
const AND_ENDLESS: &[Kind] = &[Kind::OutOfBounds, Kind::Endless];
const AND_DEADLOCK: &[Kind] = &[Kind::OutOfBounds, Kind::Deadlock];

macro_rules! kernels {
    ($(#[$about:meta])* $list:ident: $(
        $(#[$doc:meta])*
        $name:ident($($key:ident = $value:tt),*) -> $kinds:ident:
            |$lane:ident, $x:ident: $ty:ident<f32>, $y:ident, $words:ident| $body:block
    )*) => {
        $(#[$about])*
        pub(super) static $list: &[Wrong] = &[$(Wrong { kernel: &$name, kinds: $kinds }),*];

        $($(#[$doc])*
        #[kernel(block = (32) $(, $key = $value)*)]
        fn $name($x: $ty<f32>, mut $y: Out<f32>, mut $words: Out<u32>) {
            // This many iterations take time. Two blocks are enough, and the others end.
            if thread::block_idx_x() < 2 {
                let $lane = thread::lane_id() as usize;
                $body
            }
        })*
    };
}

kernels! {
    /// The watchdog ends it.
    UNSEEN:
    a_bound_and_no_access() -> AND_ENDLESS: |lane, _x: In<f32>, _y, words| {
        let bound = words[1000 + lane];
        let mut i = 0u32;
        while black_box(i) < bound {
            i = (i + 1) % (1 << 20);
        }
    }
}

kernels! {
    ALL:
    /// The loop's bound is read out of bounds.
    a_bound_from_outside() -> AND_ENDLESS: |lane, _x: In<f32>, y, words| {
        let bound = words[1000 + lane];
        let mut i = 0u32;
        while i < bound {
            y[thread::block_idx_x() as usize * 32 + lane] = i as f32;
            i = (i + 1) % (1 << 20);
        }
    }
    further_and_further() -> AND_ENDLESS: |lane, x: In<f32>, y, _words| {
        let mut i = lane;
        while x[i] != 12345.0 {
            y[thread::block_idx_x() as usize * 32 + lane] = 0.0;
            i = (i + 32) | 1 << 20;
        }
    }
    outside_again_and_again() -> OUTSIDE: |lane, x: In<f32>, _y, _words| {
        while x[1 << 20 | lane].is_nan() {}
    }
    writes_outside() -> OUTSIDE: |lane, _x: In<f32>, y, _words| {
        let mut i = lane;
        while lane < 32 {
            y[1 << 20 | i] = 0.0;
            i = (i + 1) % 4096;
        }
    }
    outside_of_shared() -> OUTSIDE: |lane, _x: In<f32>, _y, _words| {
        let tile = shared![f32; 32];
        while tile[32 + lane].is_nan() {}
    }
    rows_outside() -> OUTSIDE: |lane, _x: In<f32>, _y, _words| {
        let tile = shared![f32; 4, 8];
        while tile[(lane % 4, 8 + lane)].is_nan() {}
    }
    vectors_outside() -> OUTSIDE: |lane, x: In<f32>, _y, _words| {
        loop {
            let four: [f32; 4] = x.load128((1 << 20) + lane * 4);
            if !four[lane % 4].is_nan() {
                break;
            }
        }
    }
    /// Polled until it is zero.
    a_word_outside() -> OUTSIDE: |lane, _x: In<f32>, _y, words| {
        while lane == 0 && words.atomic_add(1000, 1) != 0 {}
    }
    waits_for_a_word_outside() -> OUTSIDE: |lane, _x: In<f32>, _y, words| {
        while lane < 32 {
            words.wait_for_at_least(1000 + lane, 7);
        }
    }
    copies_from_outside() -> AND_ENDLESS: |lane, x: In<f32>, _y, _words| {
        let mut tile = shared![f32; 32];
        tile[lane] = f32::NAN;
        while tile[lane].is_nan() {
            tile.copy_async::<1>(lane, &x, 1 << 20 | lane, true);
            copies::commit_group();
            copies::wait_group::<0>();
        }
    }
    outside_of_the_other_block(cluster = (2)) -> OUTSIDE: |lane, _x: In<f32>, _y, _words| {
        let tile = shared![f32; 32];
        cluster::sync();
        let other = tile.remote(1 - cluster::block_rank());
        loop {
            let four: [f32; 4] = other.load128(32 + lane * 4);
            if !four[0].is_nan() {
                break;
            }
        }
    }
    /// Parts are taken without comparing with their number.
    parts_without_an_end() -> AND_ENDLESS: |lane, _x: In<f32>, y, words| {
        while lane < 32 {
            let given = if lane == 0 { words.atomic_add(0, 1) } else { 0 };
            let part = warp::shuffle(warp::ALL, given, 0) as usize;
            y[part * 32 + lane] = 1.0;
        }
    }
    /// All wait for each other each time.
    a_vote_on_what_is_outside() -> AND_ENDLESS: |lane, _x: In<f32>, _y, words| {
        while warp::all(warp::ALL, words[1000 + lane] == u32::MAX) {}
    }
    outside_and_polls() -> AND_ENDLESS: |lane, _x: In<f32>, y, words| {
        y[1 << 20 | lane] = 1.0;
        while lane == 0 && words.atomic_add(1, 0) == 0 {}
    }
    /// So the flag is never raised.
    tells_outside() -> AND_DEADLOCK: |lane, _x: In<f32>, _y, words| {
        if lane == 0 {
            words.release_add(1000, 1);
        }
        words.wait_for_at_least(0, 1);
    }
    outside_and_short_of_an_arrival() -> AND_DEADLOCK: |lane, x: In<f32>, y, _words| {
        let told = mbarriers![1];
        init(&told, [32]);
        // A comparison with NaN is false.
        if lane > 0 || x[1 << 20] > 0.0 {
            told.at(0).arrive();
        }
        told.at(0).wait(0);
        y[thread::block_idx_x() as usize * 32 + lane] = 1.0;
    }
    /// The copy is refused, and a thread waits for its bytes.
    a_box_outside(dynamic_shared = 256) -> AND_DEADLOCK: |lane, x: TensorMap<f32>, _y, _words| {
        let (mut tile, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
        let full = mbarriers![1];
        if lane == 0 {
            full.at(0).init(1);
            mbarrier::fence_init();
            full.at(0).arrive_expect(256);
            tile.load_box(1 << 20, &boxes, (0, 0, 0), full.at(0));
        }
        thread::sync_threads();
        full.at(0).wait(0);
    }
}
