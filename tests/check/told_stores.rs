//! Partial results that TMA stores, and that another block reads: split-K.

use simt::{
    LaunchConfig,
    check::{self, Kind},
    checked, cpu,
    device::{self, BoxShape},
};

use crate::findings::orders;

const SHAPE: BoxShape = BoxShape { rows: 4, cols: 16, swizzle: 0 };
const BOX: usize = 64;
const BLOCKS: usize = 3;

macro_rules! kernels {
    ($module:ident: $device:ident) => {
        #[allow(dead_code, reason = "what is wrong is run checked alone")]
        mod $module {
            use simt::$device::*;

            use super::{BLOCKS, BOX};

            /// Each block stores a box of parts and tells it; the first block adds all parts.
            #[inline(always)]
            fn parts(
                parts: TensorMapMut<f32>,
                read: Out<f32>,
                mut sums: Out<f32>,
                mut words: Out<u32>,
                is_right: bool,
            ) {
                let (mut tile, boxes) = (dynamic_shared![f32], parts.boxes::<4, 16, 0>());
                let (t, block) = (thread::thread_idx_x() as usize, thread::block_idx_x());
                tile[t] = (t + block as usize) as f32;
                fence_proxy_async();
                thread::sync_threads();
                if t == 0 {
                    tile.store_box(0, &boxes, (0, block * 4, 0));
                    bulk::commit_group();
                    match is_right {
                        true => bulk::wait_group::<0>(),
                        // The box has been read, and may not have been written.
                        false => bulk::wait_group_read::<0>(),
                    }
                    words.release_add(0, 1);
                    bulk::wait_group::<0>();
                }
                if block > 0 {
                    return;
                }
                if t == 0 {
                    words.wait_for_at_least(0, BLOCKS as u32);
                }
                thread::sync_threads();
                sums[t] = (0..BLOCKS).map(|block| read[block * BOX + t]).sum();
            }

            #[kernel(block = (64), dynamic_shared = 256, arch = 90)]
            pub fn written(
                all: TensorMapMut<f32>,
                read: Out<f32>,
                sums: Out<f32>,
                words: Out<u32>,
            ) {
                parts(all, read, sums, words, true);
            }

            #[kernel(block = (64), dynamic_shared = 256, arch = 90)]
            pub fn not_written(
                all: TensorMapMut<f32>,
                read: Out<f32>,
                sums: Out<f32>,
                words: Out<u32>,
            ) {
                parts(all, read, sums, words, false);
            }
        }
    };
}

kernels! { device_kernels: device }
kernels! { checked_kernels: checked }

macro_rules! run {
    ($device:ident, $launch:path, $kernel:expr, $options:expr) => {{
        let (mut parts, mut sums, mut words) = (vec![0.0; BLOCKS * BOX], vec![0.0; BOX], [0]);
        let mut config = LaunchConfig::new([BLOCKS as u32, 1, 1], [BOX as u32, 1, 1]);
        config.dynamic_shared = 256;
        // SAFETY: the memory outlives the launch, and nobody else uses it.
        let result = unsafe {
            let extents = [1, parts.len() / 16, 16];
            let map = $device::TensorMapMut::new(parts.as_mut_ptr(), extents, [0, 16], SHAPE);
            let params = (
                map.expect("aligned"),
                $device::Out::new(parts.as_mut_ptr(), parts.len()),
                $device::Out::new(sums.as_mut_ptr(), sums.len()),
                $device::Out::new(words.as_mut_ptr(), 1),
            );
            $launch($kernel, &config, params, $options)
        };
        for (t, sum) in sums.iter().enumerate() {
            assert_eq!(*sum, (3 * t + 3) as f32, "element {t}");
        }
        result.expect("it runs")
    }};
}

#[test]
fn what_is_written_before_it_is_told_may_be_read() {
    run!(device, cpu::launch, &device_kernels::written, &cpu::Options::default());
    for order in orders() {
        let mut options = check::Options::default();
        (options.order, options.workers) = (order, Some(1));
        let report = run!(checked, check::launch, &checked_kernels::written, &options);
        assert!(report.is_clean(), "{order}: {report}");
        let report = run!(checked, check::launch, &checked_kernels::not_written, &options);
        let kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
        assert_eq!(kinds, [Kind::ReadAfterWrite], "{order}: {report}");
    }
}
