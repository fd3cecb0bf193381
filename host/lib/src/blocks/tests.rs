//! Plans, schedules, and that blocks give the bits of one piece.

mod several;

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    plan::Why,
    schedule::{Operand, chunks, schedule},
    *,
};
use crate::{
    Device, Devices, Error, Gemm, Layout, Matrix, Result, Shape,
    matrix::{MatrixView, MatrixViewMut},
};

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColMajor];

fn job([m, n, k]: [usize; 3], limit: u64) -> Job {
    let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
    Job {
        shape,
        element_bytes: 4,
        tile: [64, 64],
        layouts: [Layout::RowMajor; 3],
        reads_c: false,
        device_limit: limit,
        depth: None,
        devices: 1,
    }
}

fn plan(sizes: [usize; 3], limit: u64) -> BlockPlan {
    BlockPlan::new(&job(sizes, limit)).unwrap()
}

/// Holds a plan to what every plan must be, by going through its steps.
#[track_caller]
fn is_sound(job: &Job) -> BlockPlan {
    let plan = BlockPlan::new(job).unwrap();
    let (m, n, k) = (job.shape.m(), job.shape.n(), job.shape.k());
    assert!(plan.device_bytes() <= job.device_limit, "{job:?}: {plan:?}");
    let mut reads = [0; 3];
    let mut held = [vec![None; plan.places()[0]], vec![None; plan.places()[1]]];
    let mut multiplied = 0;
    let mut last_tile = None;
    for scheduled in (0..job.devices).flat_map(|d| schedule(&plan, d, job.reads_c)) {
        let step = scheduled.step;
        let (rows, cols, depth) = (plan.rows(step), plan.cols(step), plan.depth(step));
        for load in &scheduled.loads {
            reads[load.operand as usize] += load.rows.len() as u64 * load.cols.len() as u64;
            let block = Some((load.rows.clone(), load.cols.clone()));
            match load.operand {
                Operand::C => assert_eq!(block, Some((rows.clone(), cols.clone()))),
                of => {
                    // A block that this step needs is not overwritten, and one place is left to
                    // copy ahead.
                    held[of as usize][load.place] = block;
                }
            }
        }
        if k > 0 {
            let a = held[0][scheduled.a].as_ref();
            assert_eq!(a, Some(&(rows.clone(), depth.clone())), "{plan:?}");
            let b = held[1][scheduled.b].as_ref();
            assert_eq!(b, Some(&(depth.clone(), cols.clone())), "{plan:?}");
        }
        // Along k in order, and a tile of C is never left before it is finished.
        let tile = (step.row, step.col);
        assert_eq!(scheduled.first, step.depth == 0);
        assert!(scheduled.first || last_tile == Some(tile));
        last_tile = (!scheduled.last).then_some(tile);
        multiplied += rows.len() as u128 * cols.len() as u128 * depth.len() as u128;
        assert!(rows.len() * cols.len() > 0);
    }
    assert_eq!(last_tile, None);
    assert_eq!(multiplied, m as u128 * n as u128 * k as u128, "{plan:?}");
    assert_eq!(reads, plan.reads(), "{job:?}: {plan:?}");
    plan
}

#[test]
fn what_fits_is_one_piece() {
    let plan = is_sound(&job([1000, 700, 513], 4 * (513 * 1700 + 700_000)));
    assert!(plan.is_one_piece() && plan.why() == Why::Fits);
    assert_eq!((plan.block(), plan.places()), ([1000, 700, 513], [1, 1, 1]));
    let plan = is_sound(&job([1000, 700, 513], 4 * (513 * 1700 + 700_000) - 1));
    assert!(!plan.is_one_piece() && plan.why() == Why::ReadsLess);
}

#[test]
fn what_is_large_goes_by_in_parts_and_is_read_once() {
    let plan = is_sound(&job([4000, 3000, 5000], 1 << 40));
    assert_eq!((plan.why(), plan.stays(), plan.blocks()), (Why::Overlaps, Stays::B, [8, 1, 1]));
    assert_eq!(plan.reads(), [4000 * 5000, 5000 * 3000, 0]);
    assert!(plan.device_bytes() < 4 * (5000 * 7000 + 4000 * 3000));
    // Too small to be cut.
    let plan = is_sound(&job([200, 100, 200_000], 1 << 40));
    assert!(plan.is_one_piece(), "{plan:?}");
    // Two of its blocks of columns would need more than the limit, which is that of one piece.
    is_sound(&Job { layouts: [LAYOUTS[1]; 3], ..job([100_000, 300, 100], 160_120_000) });
    // Asked for, k is cut and nothing else.
    let plan = is_sound(&Job { depth: Some(1000), ..job([4000, 3000, 5000], 1 << 40) });
    assert_eq!((plan.why(), plan.blocks()), (Why::DepthAsked, [1, 1, 5]));
}

#[test]
fn the_operand_stays_that_makes_for_less_reading() {
    // A tall A goes by a small B, which is read once; and the other way round.
    let tall = is_sound(&job([100_000, 300, 500], 4 << 20));
    assert_eq!((tall.stays(), tall.blocks()[1]), (Stays::B, 1));
    assert_eq!(tall.reads(), [100_000 * 500, 300 * 500, 0]);
    let wide = is_sound(&job([300, 100_000, 500], 4 << 20));
    // All of A is there, wherever it goes.
    assert!(wide.blocks()[0] <= 2, "{wide:?}");
    assert_eq!(wide.reads(), [300 * 500, 100_000 * 500, 0]);
    // All of k, wherever that can be; and tiles that a kernel's blocks fill.
    let square = is_sound(&job([4096, 4096, 4096], 64 << 20));
    assert_eq!((square.blocks()[2], square.why()), (1, Why::ReadsLess));
    assert!(square.block()[0].is_multiple_of(64) && square.block()[1].is_multiple_of(64));
}

#[test]
fn of_equals_the_operand_goes_by_whose_panels_are_long_runs() {
    let stays = |a, b| {
        let layouts = [a, b, Layout::RowMajor];
        is_sound(&Job { layouts, ..job([4096, 4096, 4096], 40 << 20) }).stays()
    };
    // Rows of a row-major A, columns of a column-major B.
    let [rows, cols] = LAYOUTS;
    assert_eq!((stays(rows, rows), stays(cols, cols)), (Stays::B, Stays::A));
}

#[test]
fn k_is_cut_only_where_it_must_be() {
    // One tile of 64 x 64 with all of k takes four panels.
    let (k, tile) = (10_000, 64);
    let least = 4 * (3 * tile * k + 2 * tile * tile) as u64;
    let whole = is_sound(&job([1000, 1000, k], least));
    assert_eq!((whole.block(), whole.blocks()[2]), ([64, 64, k], 1));
    let cut = is_sound(&job([1000, 1000, k], least - 1));
    assert_eq!((cut.stays(), cut.why()), (Stays::Neither, Why::DepthCut));
    assert!(
        cut.block()[2] >= 256 && cut.reads()[0] < whole.reads()[0] + whole.reads()[1],
        "{cut:?}"
    );
    let asked = is_sound(&Job { depth: Some(300), ..job([1000, 1000, k], least) });
    assert_eq!((asked.block()[2], asked.blocks()[2], asked.why()), (300, 34, Why::DepthAsked));
    // Asked for in one piece, it is cut in the same way.
    let asked = is_sound(&Job { depth: Some(300), ..job([1000, 1000, k], 1 << 40) });
    assert_eq!((asked.block(), asked.blocks()), ([1000, 1000, 300], [1, 1, 34]));
    let all = is_sound(&Job { depth: Some(k), ..job([1000, 1000, k], 1 << 40) });
    assert!(all.blocks()[2] == 1 && all.why() == Why::Overlaps);
}

#[test]
fn a_limit_that_is_too_small_says_what_is_needed() {
    let message = |sizes, limit| BlockPlan::new(&job(sizes, limit)).unwrap_err().to_string();
    let needed = 4 * 2 * (64 * 16 + 16 * 64 + 64 * 64);
    let expected =
        format!("device_limit = 1000: must be at least {needed} bytes, for blocks of 64 x 64 x 16");
    assert_eq!(message([1000, 1000, 1000], 1000), expected);
    is_sound(&job([1000, 1000, 1000], needed));
    assert!(message([1000, 1000, 1000], needed - 1).contains("must be at least"));
    let asked = Job { depth: Some(512), ..job([1000, 1000, 1000], needed) };
    let message = BlockPlan::new(&asked).unwrap_err().to_string();
    assert!(message.contains("blocks of 64 x 64 x 512"), "{message}");
    for job in [asked, job([1000, 1000, 1000], 0), job([3, 1000, 17], 0), job([5, 7, 1 << 22], 0)] {
        is_sound(&Job { device_limit: job.least_limit(), ..job });
    }
}

#[test]
fn any_plan_is_sound() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..3000 {
        let mut size = || match rng.random_range(0..8) {
            0 => 0,
            1 => 1,
            _ => rng.random_range(1..700),
        };
        let sizes = [size(), size(), size()];
        let limit = rng.random_range(100_000..600_000);
        let depth = rng.random::<bool>().then(|| rng.random_range(1..60));
        let tile = [[32, 32], [64, 64], [64, 32]][rng.random_range(0..3)];
        let layouts = [0; 3].map(|_| LAYOUTS[rng.random_range(0..2)]);
        let devices = rng.random_range(1..5);
        let reads_c = rng.random();
        is_sound(&Job { tile, layouts, reads_c, depth, devices, ..job(sizes, limit) });
    }
}

#[test]
fn huge_sizes_are_planned_at_once() {
    let n = u32::MAX as usize / 16;
    for limit in [200 << 20, 80 << 30] {
        let plan = plan([n, n, 1000], limit);
        assert!(plan.device_bytes() <= limit && plan.host_bytes() <= 80 << 20, "{plan:?}");
    }
    plan([u32::MAX as usize, 1, 1 << 26], 1 << 30);
}

#[test]
fn chunks_are_whole_runs_or_parts_of_one() {
    let all = |outer: Range<usize>, inner: Range<usize>, chunk| {
        let mut next = 0;
        let mut largest = 0;
        for (outer, inner, before) in chunks(outer.clone(), inner.clone(), chunk) {
            assert_eq!(before, next, "dense, one after another");
            next += outer.len() * inner.len();
            largest = largest.max(outer.len() * inner.len());
        }
        assert_eq!(next, outer.len() * inner.len());
        largest
    };
    assert_eq!(all(3..10, 5..25, 50), 40);
    assert_eq!(all(3..10, 5..25, 20), 20);
    assert_eq!(all(3..10, 5..25, 7), 7);
    assert_eq!(all(3..10, 5..25, 1000), 140);
    assert_eq!(all(3..3, 5..25, 7), 0);
    assert_eq!(all(3..10, 5..5, 7), 0);
}

fn values<T>(seed: u64, len: usize, value: impl Fn(f64) -> T) -> Vec<T> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| value(rng.random_range(-1.0..1.0))).collect()
}

/// The product in one piece, by [`Gemm`] on matrices; k in blocks of that depth.
fn one_piece(
    [m, n, k]: [usize; 3],
    depth: usize,
    (alpha, beta): (f64, f64),
    [a, b, c]: [(&[f32], Layout); 3],
    out: Layout,
) -> Vec<f32> {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let strides = |layout, rows, cols| match layout {
        Layout::RowMajor => [cols, 1],
        Layout::ColMajor => [1, rows],
    };
    let upload = |values: &[f32]| device.upload(values).unwrap();
    let (a_buffer, b_buffer) = (upload(a.0), upload(b.0));
    let a = MatrixView::new(a_buffer.view(..).unwrap(), m, k, strides(a.1, m, k)).unwrap();
    let b = MatrixView::new(b_buffer.view(..).unwrap(), k, n, strides(b.1, k, n)).unwrap();
    // C in the result's layout.
    let mut before = vec![0.0; m * n];
    Dense::new(m, n, c.1, c.0).unwrap().read(0..m, 0..n, out, &mut before).unwrap();
    let mut c_buffer = upload(&before);
    for start in (0..k.max(1)).step_by(depth) {
        let part = start.min(k)..(start + depth).min(k);
        let gemm = Gemm::new().alpha(alpha).beta(if start == 0 { beta } else { 1.0 });
        let gemm = gemm.kernel("gemm_f32_64x64x16").unwrap();
        let c_view = c_buffer.view_mut(..).unwrap();
        let c = MatrixViewMut::new(c_view, m, n, strides(out, m, n)).unwrap();
        let (a, b) = (a.sub(0..m, part.clone()).unwrap(), b.sub(part, 0..n).unwrap());
        gemm.run(&stream, a, b, c).unwrap();
    }
    c_buffer.to_vec().unwrap()
}

#[test]
fn blocks_give_the_bits_of_one_piece() {
    let devices = [1, 2, 3].map(|count| Devices::cpu(count).unwrap());
    let (mut shapes, mut used) = (0, [0; 3]);
    for (sizes, limits) in [
        ([200, 170, 150], [300_000, 150_000, 100_000]),
        ([70, 500, 33], [150_000, 100_000, 60_000]),
        ([500, 70, 33], [150_000, 100_000, 60_000]),
        ([130, 130, 0], [100_000, 70_000, 40_000]),
    ] {
        let [m, n, k] = sizes;
        let operands = [(1, m * k), (2, k * n), (3, m * n)];
        let [a, b, c] = operands.map(|(seed, len)| values(seed, len, |x| x as f32));
        for (number, (alpha, beta)) in [(1.0, 0.0), (0.7, -0.3), (1.0, 1.0)].into_iter().enumerate()
        {
            for depth in [k.max(1), 40] {
                // Every layout of each, over the numbers.
                let pick = |shift: usize| LAYOUTS[(number + shapes) >> shift & 1];
                let (a, b) = ((&a[..], pick(0)), (&b[..], pick(1)));
                let (c, out) = ((&c[..], pick(0)), pick(2));
                shapes += 1;
                for limit in limits.into_iter().chain([1 << 30]) {
                    let devices = &devices[used.iter().sum::<usize>() % 3];
                    let job = Job {
                        reads_c: beta != 0.0,
                        depth: (depth < k).then_some(depth),
                        devices: devices.len(),
                        ..job(sizes, limit)
                    };
                    let plan = is_sound(&job);
                    used[devices.len() - 1] += 1;
                    let busy = (0..devices.len()).filter(|&it| plan.steps_of(it).next().is_some());
                    assert!(busy.count() == devices.len() || sizes[0].max(sizes[1]) < 150);
                    assert!(
                        limit == 1 << 30 || plan.blocks().iter().product::<usize>() > 1 || k == 0
                    );
                    let want =
                        one_piece(sizes, plan.block()[2].max(1), (alpha, beta), [a, b, c], out);
                    // Several chunks a block, which do not end where runs do.
                    let plan = plan.with_chunk(1009);
                    let dense = |(values, layout), rows, cols| {
                        Dense::new(rows, cols, layout, values).unwrap()
                    };
                    let (a, b, c) = (dense(a, m, k), dense(b, k, n), dense(c, m, n));
                    let product = Product {
                        alpha,
                        beta,
                        c: Some(&c),
                        ..Product::new("gemm_f32_64x64x16", &a, &b)
                    };
                    let mut got = vec![f32::NAN; m * n];
                    let mut sink = Dense::new(m, n, out, &mut got[..]).unwrap();
                    let choice = product.run_on(devices, &plan, &mut sink).unwrap().unwrap();
                    assert_eq!(choice.entry.name(), "gemm_f32_64x64x16");
                    let same =
                        want.iter().zip(&got).all(|(want, got)| want.to_bits() == got.to_bits());
                    assert!(same, "{sizes:?} {alpha} {beta} {depth} {plan:?}");
                }
            }
        }
    }
}

/// A block of one row is dense whichever way it lies, so a lesson's kernel takes it like the
/// others.
#[test]
fn a_lesson_takes_a_last_block_of_one_row() {
    let (device, [m, n, k]) = (Device::cpu(), [65, 40, 30]);
    let a = values(1, m * k, |x| (8.0 * x).round() as f32);
    let b = values(2, k * n, |x| (8.0 * x).round() as f32);
    for layout in LAYOUTS {
        let job = Job { tile: [16, 16], layouts: [layout; 3], ..job([m, n, k], 8000) };
        let plan = is_sound(&job);
        assert_eq!(m % plan.block()[0], 1, "{plan:?}");
        let dense = |values, rows, cols| Dense::new(rows, cols, layout, values).unwrap();
        let (from_a, from_b) = (dense(&a[..], m, k), dense(&b[..], k, n));
        let product = Product::new("tiled16", &from_a, &from_b);
        let mut got = vec![f32::NAN; m * n];
        let mut sink = Dense::new(m, n, layout, &mut got[..]).unwrap();
        product.run(&device, &plan, &mut sink).unwrap();
        let at = |row: usize, rows: usize, col: usize, cols: usize| match layout {
            Layout::RowMajor => row * cols + col,
            Layout::ColMajor => col * rows + row,
        };
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let sum: f32 = (0..k).map(|p| a[at(i, m, p, k)] * b[at(p, k, j, n)]).sum();
            assert_eq!(got[at(i, m, j, n)], sum, "{layout:?} {i} {j}");
        }
    }
}

#[test]
fn doubles_and_transposes_go_through() {
    let (m, n, k) = (100, 90, 80);
    let (a, b) = (values(1, m * k, |x| x), values(2, k * n, |x| x));
    // Both as their transposes lie in memory.
    let a_t = Dense::new(k, m, Layout::RowMajor, &a[..]).unwrap();
    let b_t = Dense::new(n, k, Layout::ColMajor, &b[..]).unwrap();
    let (a, b) = (Transposed(&a_t), Transposed(&b_t));
    assert_eq!((a.rows(), a.cols(), a.layout()), (m, k, Layout::ColMajor));
    let run = |limit| {
        let job = Job { element_bytes: 8, ..job([m, n, k], limit) };
        let plan = is_sound(&job);
        let product = Product::new("gemm_f64_64x64x16", &a, &b);
        let mut c = vec![0.0; m * n];
        let mut sink = Dense::new(m, n, Layout::RowMajor, &mut c[..]).unwrap();
        product.run(&Device::cpu(), &plan, &mut sink).unwrap();
        c
    };
    let c = run(1 << 30);
    let mut whole = [vec![0.0; m * k], vec![0.0; k * n]];
    a.read(0..m, 0..k, Layout::RowMajor, &mut whole[0]).unwrap();
    b.read(0..k, 0..n, Layout::RowMajor, &mut whole[1]).unwrap();
    let device = Device::cpu();
    let [a, b] = [(m, k), (k, n)]
        .into_iter()
        .zip(&whole)
        .map(|((rows, cols), values)| Matrix::from_row_major(&device, rows, cols, values).unwrap())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let mut want = Matrix::zeros(&device, m, n).unwrap();
    Gemm::new().run(&device.stream().unwrap(), a.view(), b.view(), want.view_mut()).unwrap();
    assert_eq!(want.to_row_major().unwrap(), c);
    assert_eq!(run(200_000), c);
}

#[test]
fn empty_products_write_nothing_or_what_c_becomes() {
    let run = |m: usize, n: usize, k: usize, beta| {
        let none = vec![0f32; m * k.max(n * k)];
        let (a, b) = (&none[..m * k], vec![0f32; k * n]);
        let c = vec![3f32; m * n];
        let a = Dense::new(m, k, Layout::RowMajor, a).unwrap();
        let b = Dense::new(k, n, Layout::RowMajor, &b[..]).unwrap();
        let c = Dense::new(m, n, Layout::RowMajor, &c[..]).unwrap();
        let plan = is_sound(&Job { reads_c: beta != 0.0, ..job([m, n, k], 100_000) });
        let mut got = vec![f32::NAN; m * n];
        let mut sink = Dense::new(m, n, Layout::RowMajor, &mut got[..]).unwrap();
        let product = Product { beta, c: Some(&c), ..Product::new("gemm_f32_64x64x16", &a, &b) };
        product.run(&Device::cpu(), &plan, &mut sink).unwrap();
        got
    };
    assert!(run(0, 5, 3, 1.0).is_empty() && run(5, 0, 3, 0.0).is_empty());
    assert_eq!(run(3, 2, 0, 0.0), [0.0; 6]);
    assert_eq!(run(3, 2, 0, 1.0), [3.0; 6]);
    assert_eq!(run(3, 2, 0, 0.5), [1.5; 6]);
}

/// Reads and writes that fail at a certain one.
struct Fails<'a> {
    inner: Dense<&'a [f32]>,
    at: usize,
    count: AtomicUsize,
    with: fn() -> Error,
}

impl Fails<'_> {
    fn count(&self) -> Result<()> {
        match self.count.fetch_add(1, Ordering::Relaxed) == self.at {
            true => Err((self.with)()),
            false => Ok(()),
        }
    }
}

impl Source<f32> for Fails<'_> {
    fn rows(&self) -> usize {
        self.inner.rows()
    }
    fn cols(&self) -> usize {
        self.inner.cols()
    }
    fn layout(&self) -> Layout {
        Source::layout(&self.inner)
    }
    fn read(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [f32],
    ) -> Result<()> {
        self.count()?;
        self.inner.read(rows, cols, layout, values)
    }
}

impl Sink<f32> for Fails<'_> {
    fn layout(&self) -> Layout {
        Layout::RowMajor
    }
    fn write(&mut self, _: Range<usize>, _: Range<usize>, _: Layout, _: &[f32]) -> Result<()> {
        self.count()
    }
}

#[test]
fn whoever_fails_ends_all_and_is_heard() {
    let values = vec![1f32; 200 * 200];
    let dense = || Dense::new(200, 200, Layout::RowMajor, &values[..]).unwrap();
    let fails = |at, with| Fails { inner: dense(), at, count: AtomicUsize::new(0), with };
    let plan = is_sound(&job([200; 3], 250_000)).with_chunk(5000);
    let run = |a: &dyn Source<f32>, out: &mut dyn Sink<f32>, kernel| {
        Product::new(kernel, a, &dense())
            .run(&Device::cpu(), &plan, out)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let kernel = "gemm_f32_64x64x16";
    let broken = || Error::argument("disk", "full", "must not be");
    let sound = || fails(usize::MAX, broken);
    for at in [0, 1, 5] {
        let error = run(&fails(at, broken), &mut sound(), kernel).unwrap_err();
        assert_eq!(error, "disk = full: must not be");
        let error = run(&dense(), &mut fails(at, broken), kernel).unwrap_err();
        assert_eq!(error, "disk = full: must not be");
        // As everybody would be, but for the one who has more to say.
        let interrupted = fails(at, || Error::Interrupted);
        assert_eq!(run(&interrupted, &mut sound(), kernel).unwrap_err(), "interrupted");
    }
    run(&dense(), &mut sound(), kernel).unwrap();
    let error = run(&dense(), &mut sound(), "no_such").unwrap_err();
    assert!(error.starts_with("kernel = no_such: must be one of"), "{error}");
    let small = Dense::new(100, 200, Layout::RowMajor, &values[..100 * 200]).unwrap();
    let error = run(&small, &mut sound(), kernel).unwrap_err();
    assert_eq!(error, "a = 100 x 200: must be 200 x 200");
}
