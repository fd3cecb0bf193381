//! Products by several devices.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::AtomicBool,
    thread::sleep,
    time::Duration,
};

use super::{super::pipeline::Stage, *};
use crate::{
    Compute,
    gemm::{Request, Target, choose},
};

#[test]
fn devices_share_the_panels_of_the_operand_that_stays() {
    // It fits: each device has some rows of A, or columns of B, and a part of C.
    let plan = is_sound(&Job { devices: 3, ..job([1000, 700, 513], 1 << 40) });
    assert_eq!((plan.why(), plan.stays(), plan.blocks()), (Why::Devices, Stays::A, [3, 1, 1]));
    assert_eq!(plan.reads(), [1000 * 513, 3 * 513 * 700, 0]);
    let wide = is_sound(&Job { devices: 4, ..job([1, 100_000, 500], 1 << 40) });
    assert_eq!((wide.stays(), wide.blocks()), (Stays::B, [1, 4, 1]));
    // A large one overlaps on each.
    let large = is_sound(&Job { devices: 2, ..job([8000, 6000, 5000], 1 << 40) });
    assert_eq!((large.why(), large.blocks()), (Why::Overlaps, [8, 2, 1]));
    // As many panels for each, in the memory of each.
    let panels = is_sound(&Job { devices: 3, ..job([4096, 4096, 4096], 64 << 20) });
    assert!(panels.blocks()[usize::from(panels.stays() == Stays::B)].is_multiple_of(3));
    // More devices than tiles: the others have nothing to do.
    let small = is_sound(&Job { devices: 5, ..job([100, 30, 20], 1 << 20) });
    assert_eq!((0..6).map(|it| small.steps_of(it).count()).collect::<Vec<_>>(), [0, 0, 1, 0, 1, 0]);
    for devices in [0, 257, usize::MAX] {
        let error = BlockPlan::new(&Job { devices, ..job([9; 3], 1 << 20) }).unwrap_err();
        let expected = format!("devices = {devices}: must be at least one, and at most 256");
        assert_eq!(error.to_string(), expected);
    }
}

/// C is rounded after each block of k.
#[test]
fn the_depth_of_blocks_is_that_of_one_device() {
    for (sizes, limit, depth) in [
        // Three devices would read least with a depth of 256.
        ([1200, 4762, 13271], 9_607_272, 512),
        // All of k fits only if two devices or more have a part of C each.
        ([128, 64, 10_000], 5_200_000, 2048),
        ([128, 64, 10_000], 7_720_000, 10_000),
    ] {
        for devices in 1..=4 {
            let plan = is_sound(&Job { devices, ..job(sizes, limit) });
            assert_eq!(plan.block()[2], depth, "{devices} {sizes:?}");
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..300 {
        let sizes = [3000, 3000, 20_000].map(|most| rng.random_range(1..most));
        let layouts = [0; 3].map(|_| LAYOUTS[rng.random_range(0..2)]);
        let job = Job { layouts, ..job(sizes, rng.random_range(1 << 20..30 << 20)) };
        let depths = (1..=4).map(|devices| Job { devices, ..job }).map(|job| {
            BlockPlan::new(&job).unwrap_or_else(|error| panic!("{job:?}: {error}")).block()[2]
        });
        let depths = depths.collect::<Vec<_>>();
        assert_eq!(depths, [depths[0]; 4], "{job:?}");
    }
}

/// Ones. The first block's read panics. After that, those of the second half are slow.
struct Panics(AtomicBool);

impl Source<f32> for Panics {
    fn rows(&self) -> usize {
        64 * 200
    }
    fn cols(&self) -> usize {
        64
    }
    fn layout(&self) -> Layout {
        Layout::RowMajor
    }
    fn read(&self, rows: Range<usize>, _: Range<usize>, _: Layout, to: &mut [f32]) -> Result<()> {
        if rows.start == 0 {
            self.0.store(true, Ordering::Relaxed);
            // Without the hook, which would print a backtrace.
            resume_unwind(Box::new("a source's own fault"));
        }
        if rows.start >= self.rows() / 2 {
            while !self.0.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(1));
            }
            sleep(Duration::from_millis(100));
        }
        to.fill(1.0);
        Ok(())
    }
}

#[test]
fn a_source_that_panics_stops_the_other_devices() {
    let (devices, values) = (Devices::cpu(2).unwrap(), vec![1f32; 64 * 64]);
    let b = Dense::new(64, 64, Layout::RowMajor, &values[..]).unwrap();
    let full = || Error::argument("disk", "full", "must not be");
    let plan = is_sound(&Job { devices: 2, ..job([64 * 200, 64, 64], 120_000) });
    assert_eq!(plan.blocks(), [200, 1, 1]);
    let mut out = Fails { inner: b, at: usize::MAX, count: AtomicUsize::new(0), with: full };
    let a = Panics(AtomicBool::new(false));
    let product = Product::new("gemm_f32_64x64x16", &a, &b);
    assert!(catch_unwind(AssertUnwindSafe(|| product.run_on(&devices, &plan, &mut out))).is_err());
    // The second device would take 2.5 seconds for all of its 100 blocks.
    let written = out.count.into_inner();
    assert!(written < 100, "{written}");
}

#[test]
fn a_device_ends_without_a_reason_only_if_another_has_one() {
    let values = vec![1f32; 64 * 64];
    let ones = Dense::new(64, 64, Layout::RowMajor, &values[..]).unwrap();
    let (plan, stop) = (plan([64; 3], 1 << 20), AtomicBool::new(false));
    let product = Product::new("gemm_f32_64x64x16", &ones, &ones);
    let stage = Stage::new(&product, &Device::cpu(), (&plan, 0, &stop), Layout::RowMajor).unwrap();
    let error = stage.ended(Err(None)).unwrap_err().to_string();
    assert!(error.starts_with("plan = [1, 1, 1] blocks: not all blocks were computed"), "{error}");
    assert!(matches!(stage.ended(Err(Some(Error::Interrupted))), Err(Error::Interrupted)));
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(stage.ended(Err(None)), Ok(None)));
}

#[test]
fn of_several_devices_one_that_fails_ends_all() {
    let values = vec![1f32; 300 * 200];
    let dense = |rows, cols| Dense::new(rows, cols, Layout::RowMajor, &values[..rows * cols]);
    let (a, b, devices) = (dense(300, 200).unwrap(), dense(200, 100), Devices::cpu(3).unwrap());
    let (b, plan) = (b.unwrap(), is_sound(&Job { devices: 3, ..job([300, 100, 200], 1 << 20) }));
    let run = |compute, devices: &Devices, out: &mut dyn Sink<f32>| {
        let product = Product { compute, ..Product::new("gemm_f32_64x64x16", &a, &b) };
        product.run_on(devices, &plan, out).map(drop).map_err(|error| error.to_string())
    };
    // A sink that fails is no device's fault.
    let full = || Error::argument("disk", "full", "must not be");
    for at in 0..3 {
        let mut out = Fails { inner: a, at, count: AtomicUsize::new(0), with: full };
        let error = run(Compute::Native, &devices, &mut out).unwrap_err();
        assert_eq!(error, "disk = full: must not be");
    }
    let mut out = Fails { inner: a, at: usize::MAX, count: AtomicUsize::new(0), with: full };
    run(Compute::Native, &devices, &mut out).unwrap();
    let two = Devices::cpu(2).unwrap();
    let error = run(Compute::Native, &two, &mut out).unwrap_err();
    assert_eq!(error, "devices.len() = 2: must be 3, as planned");
    let error = run(Compute::Fp32Bf16x6, &devices, &mut out).unwrap_err();
    assert!(error.starts_with("compute = Fp32Bf16x6: must be native or tf32"), "{error}");
}

/// A block by itself would split k among more blocks of a cluster. One of a single row would be
/// launched as its transpose, too.
#[test]
fn the_whole_product_decides_on_the_split_of_k() {
    let (kernel, n, k) = ("tma_f32_16x256x32_nn", 256, 512);
    for (m, out, runs) in [
        (256, Layout::RowMajor, &[(2, 1 << 30), (3, 1 << 30), (1, 1 << 20)][..]),
        (257, Layout::ColMajor, &[(1, 730_000), (2, 730_000)]),
    ] {
        let (a, b) = (values(1, m * k, |x| x as f32), values(2, k * n, |x| x as f32));
        let layouts = [Layout::RowMajor, Layout::RowMajor, out];
        let split = |m: usize, n: usize| {
            let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
            let of_c = if out == Layout::RowMajor { [n, 1] } else { [1, m] };
            let request = Request::new(shape, [[k, 1], [n, 1], of_c]);
            let target = Target::of(&Device::cpu());
            choose::<f32>(&request, &target, Some(kernel)).unwrap().split_k
        };
        let dense = |values, rows, cols| Dense::new(rows, cols, Layout::RowMajor, values).unwrap();
        let (from_a, from_b) = (dense(&a[..], m, k), dense(&b[..], k, n));
        let run = |devices: usize, limit: u64| {
            let job = Job { tile: [16, 256], layouts, devices, ..job([m, n, k], limit) };
            let plan = is_sound(&job);
            let (mut c, devices) = (vec![f32::NAN; m * n], Devices::cpu(devices).unwrap());
            let mut sink = Dense::new(m, n, out, &mut c[..]).unwrap();
            Product::new(kernel, &from_a, &from_b).run_on(&devices, &plan, &mut sink).unwrap();
            (plan.block(), c.into_iter().map(f32::to_bits).collect::<Vec<_>>())
        };
        let (block, whole) = run(1, 1 << 30);
        assert_eq!(block, [m, n, k]);
        for &(devices, limit) in runs {
            let (block, bits) = run(devices, limit);
            // The last block.
            let rows = m - (m - 1) / block[0] * block[0];
            assert!(rows == 1 || m == 256, "{block:?}");
            assert_ne!(split(rows, n), split(m, n), "{block:?}");
            assert!(bits == whole, "{devices} {limit}");
        }
    }
}
