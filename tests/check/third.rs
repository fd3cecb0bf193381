//! Where threads are ordered one by one, a thread may know of two readers of a word, or of two that
//! have added to it, and not of the third. The third one is found, whatever the order.

use simt::{
    LaunchConfig,
    check::{self, Kind, Limit, Order, Report},
    checked::Out,
};

mod kernels {
    use simt::checked::*;

    /// The last block waits for a flag, and reads a word to which three blocks have added. As many
    /// as `tells` have told it.
    #[inline(always)]
    #[track_caller]
    fn adders(mut y: Out<u32>, mut flag: Out<u32>, tells: u32) {
        let block = thread::block_idx_x();
        if block < 3 {
            y.atomic_add(0, 1);
            if block < tells {
                flag.release_add(0, 1);
            }
        } else {
            flag.wait_for_at_least(0, tells);
            y[1] = y[0];
        }
    }

    /// The same of three blocks that read, and one that writes.
    #[inline(always)]
    #[track_caller]
    fn readers(mut y: Out<u32>, mut flag: Out<u32>, tells: u32) {
        let block = thread::block_idx_x();
        if block < 3 {
            y[block as usize + 1] = y[0];
            if block < tells {
                flag.release_add(0, 1);
            }
        } else {
            flag.wait_for_at_least(0, tells);
            y[0] = 7;
        }
    }

    macro_rules! blocks {
        ($($name:ident: $function:ident($tells:literal);)*) => {$(
            #[kernel(block = (1))]
            pub fn $name(y: Out<u32>, flag: Out<u32>) {
                $function(y, flag, $tells);
            }
        )*};
    }

    blocks! {
        two_of_three_adders_tell: adders(2);
        three_adders_tell: adders(3);
        two_of_three_readers_tell: readers(2);
        three_readers_tell: readers(3);
    }

    /// Three warps add to a word. As many as `come` do so before the barrier behind which the last
    /// warp reads it.
    macro_rules! warps {
        ($($name:ident($come:literal);)*) => {$(
            #[kernel(block = (128))]
            pub fn $name(mut y: Out<u32>, flag: Out<u32>) {
                let _ = flag;
                let barriers = named_barriers![1, 1; $come * 32 + 32];
                let (t, warp) = (thread::thread_idx_x(), thread::thread_idx_x() / 32);
                if warp < 3 && t.is_multiple_of(32) {
                    y.atomic_add(0, 1);
                }
                if warp < $come || warp == 3 {
                    barriers.at(0).sync();
                }
                if t == 96 {
                    y[1] = y[0];
                }
            }
        )*};
    }

    warps! {
        two_of_three_warps_come(2);
        three_warps_come(3);
    }

    /// Three lanes read a word, and the fourth overwrites it. It has waited for those of the mask.
    macro_rules! lanes {
        ($($name:ident($mask:literal);)*) => {$(
            #[kernel(block = (32), shared = 4)]
            pub fn $name(mut y: Out<u32>, flag: Out<u32>) {
                let _ = flag;
                let mut word = shared![u32; 1];
                let t = thread::thread_idx_x() as usize;
                if t == 0 {
                    word[0] = 5;
                }
                warp::sync_warp(warp::ALL);
                if t < 3 {
                    y[thread::block_idx_x() as usize * 3 + t] = word[0];
                }
                if $mask >> t & 1 == 1 {
                    warp::sync_warp($mask);
                }
                if t == 3 {
                    word[0] = 6;
                }
            }
        )*};
    }

    lanes! {
        two_of_three_lanes_come(0b1011u32);
        another_two_of_three_lanes_come(0b1101u32);
        three_lanes_come(0b1111u32);
    }

    /// More threads add to a word than are remembered, and barriers order them all.
    #[kernel(block = (256), shared = 4)]
    pub fn counted_behind_barriers(mut y: Out<u32>, flag: Out<u32>) {
        let _ = flag;
        let mut count = shared![u32; 1];
        let t = thread::thread_idx_x();
        if t == 0 {
            count[0] = 0;
        }
        thread::sync_threads();
        count.atomic_add(0, 1);
        thread::sync_threads();
        if t == 0 {
            y[thread::block_idx_x() as usize] = count[0];
            count[0] = 0;
        }
        thread::sync_threads();
        count.atomic_add(0, 1);
    }

    /// Each thread reads the word, and one that knows of itself alone writes it.
    #[kernel(block = (128))]
    pub fn all_read_and_tell(mut y: Out<u32>, mut flag: Out<u32>) {
        if thread::block_idx_x() < 3 {
            y[1 + thread::block_idx_x() as usize * 128 + thread::thread_idx_x() as usize] = y[0];
            flag.release_add(0, 1);
        } else if thread::thread_idx_x() == 0 {
            flag.wait_for_at_least(0, 3 * 128);
            y[0] = 7;
        }
    }
}

fn orders() -> impl Iterator<Item = Order> {
    [Order::Forward, Order::Reverse].into_iter().chain((1..=10).map(Order::Random))
}

macro_rules! check {
    ($name:ident, $blocks:expr, $order:expr, $workers:expr) => {{
        let (mut y, mut flag) = (vec![0u32; 512], [0u32]);
        let mut options = check::Options::default();
        (options.order, options.workers) = ($order, $workers);
        let kernel = &kernels::$name;
        let block = kernel.declaration.block.expect("declared");
        // SAFETY: the memory outlives the launch, and nobody else uses it.
        let report: Report = unsafe {
            let params = (Out::new(y.as_mut_ptr(), y.len()), Out::new(flag.as_mut_ptr(), 1));
            check::launch(kernel, &LaunchConfig::new([$blocks, 1, 1], block), params, &options)
        }
        .expect("a report");
        report
    }};
}

macro_rules! finds {
    ($($name:ident($blocks:literal): $($kind:ident)|*;)*) => {$(
        for order in orders() {
            for workers in [Some(1), Some(2)] {
                let report = check!($name, $blocks, order, workers);
                let expected: &[Kind] = &[$(Kind::$kind),*];
                assert_eq!(report.is_clean(), expected.is_empty(), "{order}: {report}");
                let is_expected = |kind: Kind| expected.contains(&kind);
                assert!(report.findings.iter().all(|f| is_expected(f.kind)), "{order}: {report}");
                assert!(report.limits.is_empty(), "{report}");
            }
        }
    )*};
}

#[test]
fn a_third_block_is_not_forgotten() {
    finds! {
        two_of_three_adders_tell(4): ReadAfterWrite | WriteAfterRead;
        three_adders_tell(4):;
        two_of_three_readers_tell(4): ReadAfterWrite | WriteAfterRead;
        three_readers_tell(4):;
    }
}

#[test]
fn a_third_warp_is_not_forgotten() {
    finds! {
        two_of_three_warps_come(1): ReadAfterWrite | WriteAfterRead;
        three_warps_come(1):;
    }
}

#[test]
fn a_third_lane_is_not_forgotten() {
    finds! {
        two_of_three_lanes_come(1): ReadAfterWrite | WriteAfterRead;
        another_two_of_three_lanes_come(1): ReadAfterWrite | WriteAfterRead;
        three_lanes_come(1):;
    }
}

#[test]
fn a_barrier_is_behind_more_additions_than_are_remembered() {
    finds! { counted_behind_barriers(3):; }
}

/// Where more have read than are remembered, the report says so.
#[test]
fn a_report_names_the_limit_that_it_has_reached() {
    for order in orders() {
        let report = check!(all_read_and_tell, 4, order, Some(1));
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.limits, [Limit::Accesses], "{report}");
        assert!(report.to_string().contains("limit reached: a word was written after more reads"));
    }
}
