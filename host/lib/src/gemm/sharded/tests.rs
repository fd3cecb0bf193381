//! Plans that forget something, and what finds it.

use super::{
    plan::{Algorithm, COMPUTE, Memory, OPERANDS, ShardedPlan, What},
    predict::simulate,
    prepared::PreparedSharded,
    run,
};
use crate::{
    Bf16, E4m3,
    buffer::Buffer,
    devices::{Devices, ShardLayout, Sharded},
    error::{Error, Result},
    gemm::{Batch, Gemm, Scales, ShardedScalar},
    matrix::{Matrix, MatrixView},
    shape::Shape,
};

/// Matrices over some devices.
struct Case {
    devices: Devices,
    gemm: Gemm<'static, f32>,
    a: Sharded<f32>,
    b: Sharded<f32>,
    c: Sharded<f32>,
}

const SIZE: [usize; 3] = [130, 700, 70];

fn values(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7 + seed) % 23) as f32 / 7.0 - 1.5).collect()
}

impl Case {
    /// A and C by rows, B by columns.
    fn new(devices: Devices) -> Case {
        let ([m, n, _], places) = (SIZE, devices.len());
        let rows = || ShardLayout::rows(m, places);
        Case::of(devices, SIZE, [rows(), ShardLayout::cols(n, places), rows()])
    }

    fn of(devices: Devices, [m, n, k]: [usize; 3], layouts: [ShardLayout; 3]) -> Case {
        let of = |rows, cols, layout: &ShardLayout, seed| {
            let values = values(rows * cols, seed);
            Sharded::from_row_major(&devices, rows, cols, layout.clone(), &values).unwrap()
        };
        let [a, b, c] = &layouts;
        let (a, b, c) = (of(m, k, a, 1), of(k, n, b, 2), of(m, n, c, 3));
        Case { devices, gemm: Gemm::new(), a, b, c }
    }

    fn plan(&self, algorithm: Algorithm) -> ShardedPlan {
        let [m, n, k] = [self.c.rows(), self.c.cols(), self.a.cols()].map(|size| size as u64);
        let layouts = [self.a.layout(), self.b.layout(), self.c.layout()];
        let plans = self.gemm.plan_sharded(&self.devices, Shape::new(m, n, k).unwrap(), layouts);
        plans.unwrap().into_iter().find(|plan| plan.algorithm == algorithm).unwrap()
    }

    fn run(&mut self, plan: &ShardedPlan) -> Result<Vec<f32>> {
        let mut reserved = run::reserve(&self.gemm, plan, &self.devices)?;
        let matrices = (&self.a, &self.b, &mut self.c);
        run::run(&self.gemm, (plan, &mut reserved), &self.devices, matrices)?;
        self.c.gather()
    }

    /// What one device computes.
    fn wanted(&self) -> Vec<f32> {
        let device = crate::Device::cpu();
        let of = |of: &Sharded<f32>| {
            Matrix::from_row_major(&device, of.rows(), of.cols(), &of.gather().unwrap()).unwrap()
        };
        let (a, b, mut c) = (of(&self.a), of(&self.b), of(&self.c));
        let stream = device.stream().unwrap();
        self.gemm.run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        c.to_row_major().unwrap()
    }
}

/// A product for each algorithm, and one in which A and B travel.
fn cases() -> Vec<(Case, Algorithm)> {
    let grid = |size| ShardLayout::grid(size, [2, 2]);
    let by_k = |k| [ShardLayout::cols(k, 2), ShardLayout::rows(k, 2)];
    let two = || Devices::cpu(2).unwrap();
    let four = || Devices::cpu(4).unwrap();
    let mut one_place = Case::new(two());
    one_place.gemm = Gemm::new().beta(0.5);
    let grids = [grid([260, 70]), grid([70, 400]), grid([260, 400])];
    let [a, b] = by_k(512);
    let mut scatter = Case::of(two(), [130, 60, 512], [a, b, ShardLayout::rows(130, 2)]);
    scatter.gemm = Gemm::new().partials(4).unwrap();
    let replicated =
        [ShardLayout::rows(130, 2), ShardLayout::cols(700, 2), ShardLayout::Replicated];
    vec![
        (Case::new(two()), Algorithm::AllGather),
        (Case::of(four(), [260, 400, 70], grids), Algorithm::AllGather),
        (Case::new(two()), Algorithm::GatherFirst),
        (one_place, Algorithm::OnePlace),
        (scatter, Algorithm::ReduceScatter),
        (Case::of(two(), SIZE, replicated), Algorithm::SplitRows),
    ]
}

#[test]
fn the_bits_of_one_device_over_1_to_8() {
    for places in 1..=8 {
        let mut case = Case::new(Devices::cpu(places).unwrap());
        let wanted = case.wanted();
        let plan = case.plan(Algorithm::AllGather);
        assert_eq!(case.run(&plan).unwrap(), wanted, "{places} places\n{plan}");
    }
}

#[test]
fn every_event_that_is_left_out_is_found() {
    for (number, (mut case, algorithm)) in cases().into_iter().enumerate() {
        let wanted = case.wanted();
        let mut plan = case.plan(algorithm);
        let mut left_out = 0;
        for index in 0..plan.steps.len() {
            for position in 0..plan.steps[index].after.len() {
                let event = plan.steps[index].after.remove(position);
                let error = case.run(&plan).unwrap_err();
                assert!(matches!(error, Error::Unordered { .. }), "{algorithm} {index}: {error}");
                assert!(error.to_string().ends_with("and no event orders the two"), "{error}");
                plan.steps[index].after.insert(position, event);
                left_out += 1;
            }
        }
        assert!(left_out >= 2, "{algorithm}: {left_out} events");
        // Those runs have changed C. A case again, with all events.
        let (mut case, _) = cases().swap_remove(number);
        assert_eq!(case.run(&plan).unwrap(), wanted, "{plan}");
    }
}

#[test]
fn every_transfer_that_is_left_out_is_found() {
    for (mut case, algorithm) in cases() {
        let mut plan = case.plan(algorithm);
        let before = case.c.gather().unwrap();
        let mut left_out = 0;
        for index in 0..plan.steps.len() {
            // Its step stays, and does nothing: so all events stay.
            let What::Transfer { from, to } = &mut plan.steps[index].what else { continue };
            let sizes = [from, to].map(|rect| std::mem::take(&mut rect.size));
            let error = case.run(&plan).unwrap_err().to_string();
            assert!(error.contains("no transfer has brought"), "{algorithm} {index}: {error}");
            let What::Transfer { from, to } = &mut plan.steps[index].what else { continue };
            [from.size, to.size] = sizes;
            left_out += 1;
        }
        assert!(left_out >= 2, "{algorithm}: {left_out} transfers");
        // It is found before anything runs.
        assert_eq!(case.c.gather().unwrap(), before);
    }
}

#[test]
fn a_permission_that_is_left_out_is_found() {
    for (place, of) in [(0, 1), (1, 0)] {
        let mut case = Case::new(Devices::cpu(2).unwrap().denying(place, of));
        let plan = case.plan(Algorithm::AllGather);
        let error = case.run(&plan).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cpu:{place} reads")), "{error}");
        assert!(error.ends_with(&format!("of cpu:{of}, without permission")), "{error}");
    }
}

/// While a panel is multiplied the next one travels, and the first product waits for nothing.
#[test]
fn panels_travel_while_the_ones_before_are_multiplied() {
    for places in [2, 4] {
        let case = Case::new(Devices::cpu(places).unwrap());
        let mut plan = case.plan(Algorithm::AllGather);
        // All take as long as each other.
        plan.steps.iter_mut().for_each(|step| step.us = 1.0);
        let times = simulate(&plan.steps);
        for place in 0..places {
            let on = |lane: usize| {
                let steps = plan.steps.iter().zip(&times);
                let of_it = steps.filter(move |(step, _)| (step.place, step.lane) == (place, lane));
                of_it.map(|(_, &times)| times).collect::<Vec<_>>()
            };
            let (products, panels) = (on(COMPUTE), on(OPERANDS));
            if products.is_empty() {
                continue;
            }
            assert!(panels.len() >= 4 && products.len() == panels.len() + 1, "{plan}");
            assert_eq!(products[0], [0.0, 1.0]);
            for (index, panel) in panels.iter().enumerate() {
                // Panel i is for product i + 1: its own comes first.
                assert!(panel[1] <= products[index + 1][0]);
                assert!(
                    panel[0] < products[index][1],
                    "panel {index} waits: {panels:?} {products:?}"
                );
            }
        }
    }
}

#[test]
fn partial_products_are_reduced_where_c_is() {
    let (m, n, k) = (70, 40, 512);
    for places in [1, 2, 4] {
        let devices = Devices::cpu(places).unwrap();
        let of = |rows, cols, layout, seed| {
            let of_f32 = values(rows * cols, seed).into_iter().map(Bf16::from_f32);
            Sharded::from_row_major(&devices, rows, cols, layout, &of_f32.collect::<Vec<_>>())
                .unwrap()
        };
        let a = of(m, k, ShardLayout::cols(k, places), 1);
        let b = of(k, n, ShardLayout::rows(k, places), 2);
        let mut c = of(m, n, ShardLayout::rows(m, places), 3);
        let gemm = Gemm::<Bf16>::new().alpha(0.5).beta(2.0).partials(8).unwrap();
        let device = crate::Device::cpu();
        let whole = |of: &Sharded<Bf16>| {
            Matrix::from_row_major(&device, of.rows(), of.cols(), &of.gather().unwrap()).unwrap()
        };
        let (a1, b1, mut c1) = (whole(&a), whole(&b), whole(&c));
        gemm.run(&device.stream().unwrap(), a1.view(), b1.view(), c1.view_mut()).unwrap();
        let plan = gemm.run_sharded_by(Algorithm::ReduceScatter, &devices, &a, &b, &mut c).unwrap();
        let sent = plan.steps.iter().filter(|step| {
            matches!(&step.what, What::Transfer { to, .. } if matches!(to.memory, Memory::Sums(0)))
        });
        assert_eq!(sent.count() > 0, places > 1);
        assert_eq!(c.gather().unwrap(), c1.to_row_major().unwrap(), "{plan}");
    }
}

/// Scales, with padding, of rows and columns or of blocks.
fn scales<'a>([a, b]: &'a [Buffer<f32>; 2], [m, n, k]: [usize; 3], are_blocks: bool) -> Scales<'a> {
    let of = |buffer: &'a Buffer<f32>, rows, cols, strides| {
        Batch::from(MatrixView::new(buffer.all(), rows, cols, strides).unwrap())
    };
    let [of_n, of_k] = [n, k].map(|size| size.div_ceil(128));
    match are_blocks {
        true => {
            Scales::Blocks { a: of(a, m, of_k, [1, m + 1]), b: of(b, of_k, of_n, [1, of_k + 2]) }
        }
        false => Scales::RowsCols { a: of(a, m, 1, [2, 0]), b: of(b, 1, n, [0, 1]) },
    }
}

/// Each place has the scales of its rows and columns, wherever panels begin.
#[test]
fn scaled_products_have_the_bits_of_one_device() {
    fn check<T: ShardedScalar<Bf16>>(of: fn(f32) -> T, kinds: &[bool]) -> usize {
        let [m, n, k] = [40, 640, 140];
        let (cols, half) = (vec![0, 256, n], |size| vec![0, size / 2, size]);
        let by = |rows: &[usize], cols: &[usize]| ShardLayout::Grid {
            rows: rows.to_vec(),
            cols: cols.to_vec(),
        };
        let (of_m, of_k) = (half(m), half(k));
        let rows = || ShardLayout::Rows(half(m));
        let in_cols = || ShardLayout::Cols(vec![0, 256, n]);
        let all = [
            [rows(), in_cols(), rows()],
            [rows(), in_cols(), in_cols()],
            [ShardLayout::Cols(half(k)), ShardLayout::Rows(half(k)), rows()],
            [rows(), in_cols(), ShardLayout::Replicated],
            [by(&of_m, &of_k), by(&of_k, &cols), by(&of_m, &cols)],
        ];
        let mut ran = 0;
        for (layouts, &are_blocks) in
            all.iter().flat_map(|of| kinds.iter().map(move |kind| (of, kind)))
        {
            let places = if matches!(layouts[2], ShardLayout::Grid { .. }) { 4 } else { 2 };
            let devices = Devices::cpu(places).unwrap();
            let first = devices.at(0);
            let [of_a, of_b] = [(m, k, 1), (k, n, 2)].map(|(rows, cols, seed)| {
                values(rows * cols, seed).into_iter().map(of).collect::<Vec<T>>()
            });
            let positive = |seed| values(5000, seed).into_iter().map(|value| value.abs() + 0.5);
            let buffers =
                [3, 4].map(|seed| first.upload(&positive(seed).collect::<Vec<_>>()).unwrap());
            let gemm = Gemm::<T, Bf16>::of_types().scales(scales(&buffers, [m, n, k], are_blocks));
            let a = Matrix::from_row_major(first, m, k, &of_a).unwrap();
            let b = Matrix::from_row_major(first, k, n, &of_b).unwrap();
            let mut wanted = Matrix::<Bf16>::zeros(first, m, n).unwrap();
            gemm.run(&first.stream().unwrap(), a.view(), b.view(), wanted.view_mut()).unwrap();
            let wanted = wanted.to_row_major().unwrap();
            let shard = |rows, cols, at: usize, values: &[T]| {
                Sharded::from_row_major(&devices, rows, cols, layouts[at].clone(), values).unwrap()
            };
            let (a, b) = (shard(m, k, 0, &of_a), shard(k, n, 1, &of_b));
            let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
            for plan in gemm.plan_sharded(&devices, shape, layouts.each_ref()).unwrap() {
                let mut c = Sharded::zeros(&devices, m, n, layouts[2].clone()).unwrap();
                let mut product = PreparedSharded::of(&gemm, &devices, [plan]).unwrap();
                product.run(&a, &b, &mut c).unwrap();
                assert_eq!(c.gather().unwrap(), wanted, "{}", product.plan());
                ran += 1;
            }
        }
        ran
    }
    let of_floats = check::<E4m3>(E4m3::from_f32, &[false, true]);
    let of_integers = check::<i8>(|value| (value * 60.0) as i8, &[false]);
    assert!(of_floats > 40 && of_integers > 20, "{of_floats} {of_integers}");
}

#[test]
fn scales_that_places_cannot_have_are_refused() {
    let (devices, sizes @ [m, n, k]) = (Devices::cpu(2).unwrap(), [20, 200, 300]);
    let ones = |device: &crate::Device| device.upload(&[1.0f32; 1000]).unwrap();
    let (here, elsewhere) =
        ([(); 2].map(|()| ones(devices.at(0))), [(); 2].map(|()| ones(devices.at(1))));
    let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
    let [rows, cols] = [ShardLayout::Rows(vec![0, 7, m]), ShardLayout::Cols(vec![0, 64, n])];
    let refuse = |scales: Scales| {
        let gemm = Gemm::<E4m3, f32>::of_types().scales(scales);
        let product = gemm.prepare_sharded(&devices, shape, [&rows, &cols, &rows]);
        product.map(|_| ()).map_err(|error| error.to_string())
    };
    refuse(scales(&here, sizes, false)).unwrap();
    let error = refuse(scales(&elsewhere, sizes, false)).unwrap_err();
    assert_eq!(error, "scales of A = cpu:1: must be on the first of the devices, cpu:0");
    let error = refuse(scales(&here, sizes, true)).unwrap_err();
    assert!(
        error.starts_with("B.layout = ")
            && error.ends_with("multiples of 128 with scales of blocks"),
        "{error}"
    );
    let error = refuse(scales(&here, [m, n, k + 300], true)).unwrap_err();
    assert_eq!(error, "scales of A = 20 x 5: must be 20 x 3");
}

/// A prepared product keeps its lanes, marks and buffers from one run to the next.
#[test]
fn a_prepared_product_runs_again() {
    for (case, algorithm) in cases() {
        let (wanted, before, plan) =
            (case.wanted(), case.c.gather().unwrap(), case.plan(algorithm));
        let Case { devices, gemm, a, b, c } = &case;
        let fresh = |layout: &ShardLayout| {
            Sharded::from_row_major(devices, c.rows(), c.cols(), layout.clone(), &before).unwrap()
        };
        let mut product = PreparedSharded::of(gemm, devices, [plan]).unwrap();
        for run in 0..3 {
            let mut c = fresh(c.layout());
            product.run(a, b, &mut c).unwrap();
            assert_eq!(c.gather().unwrap(), wanted, "{algorithm}, run {run}");
        }
        let (rows, cols) = (vec![0, c.rows(), c.rows()], vec![0, c.cols()]);
        let layout = if devices.len() == 2 {
            ShardLayout::Grid { rows, cols }
        } else {
            ShardLayout::Replicated
        };
        let mut other = fresh(&layout);
        let error = product.run(a, b, &mut other).unwrap_err().to_string();
        assert!(error.starts_with("C = ") && error.contains("must be laid out"), "{error}");
    }
}

/// An event that a later run forgets is found, although an earlier one had it.
#[test]
fn a_later_run_is_ordered_by_its_own_events() {
    let mut case = Case::new(Devices::cpu(2).unwrap());
    let mut plan = case.plan(Algorithm::AllGather);
    let mut reserved = run::reserve(&case.gemm, &plan, &case.devices).unwrap();
    let mut run = |plan: &ShardedPlan| {
        let Case { devices, gemm, a, b, c } = &mut case;
        run::run(gemm, (plan, &mut reserved), devices, (a, b, c))
    };
    run(&plan).unwrap();
    let needed = plan.steps.iter().position(|step| !step.after.is_empty()).unwrap();
    let after = std::mem::take(&mut plan.steps[needed].after);
    assert!(matches!(run(&plan), Err(Error::Unordered { .. })));
    plan.steps[needed].after = after;
    run(&plan).unwrap();
}

#[test]
fn what_is_for_one_device_is_refused() {
    let case = Case::new(Devices::cpu(2).unwrap());
    let shape = Shape::new(SIZE[0] as u64, SIZE[1] as u64, SIZE[2] as u64).unwrap();
    let layouts = [case.a.layout(), case.b.layout(), case.c.layout()];
    let refuse =
        |gemm: Gemm<f32>| gemm.plan_sharded(&case.devices, shape, layouts).unwrap_err().to_string();
    let bias = crate::Device::cpu().upload(&[0.0f32; 130]).unwrap();
    let error = refuse(Gemm::new().bias(crate::Bias::PerRow(bias.all())));
    assert!(error.starts_with("bias = a vector"), "{error}");
    let cache = crate::TuningCache::new();
    let error = refuse(Gemm::new().tuned(&cache));
    assert_eq!(error, "tuned = a cache: must be none over several devices");
    let error = refuse(Gemm::new().compute(crate::Compute::Fp32Bf16x6));
    assert!(error.starts_with("compute = Fp32Bf16x6: must be native or tf32"), "{error}");
    let (long, whole) = (Shape::new(2, 2, 131_072).unwrap(), [&ShardLayout::Replicated; 3]);
    let of_integers = Gemm::<i8, Bf16>::of_types().plan_sharded(&case.devices, long, whole);
    let error = of_integers.unwrap_err().to_string();
    assert!(error.starts_with("k = 131072: must be at most 131071 with A and B of i8"), "{error}");
    // C is by rows that begin within a class.
    let odd = ShardLayout::Rows(vec![0, 65, 130]);
    let unaligned = Gemm::<f32>::new().kernel("tma_f32_72x80x8_ua4_nn").unwrap();
    let layouts = [&odd, case.b.layout(), &odd];
    let error = unaligned.plan_sharded(&case.devices, shape, layouts).unwrap_err().to_string();
    assert!(error.contains("parts must begin at multiples of 16"), "{error}");
    // An algorithm that the layouts do not allow.
    let mut case = Case::new(Devices::cpu(2).unwrap());
    let by = Algorithm::ReduceScatter;
    let outcome = Gemm::new().run_sharded_by(by, &case.devices, &case.a, &case.b, &mut case.c);
    let error = outcome.unwrap_err().to_string();
    assert!(error.starts_with("algorithm = product + reduce-scatter"), "{error}");
}

#[test]
fn a_device_without_memory_is_named_and_c_stays() {
    let mut case = Case::new(Devices::cpu(2).unwrap());
    let before = case.c.gather().unwrap();
    let plan = case.plan(Algorithm::AllGather);
    // The first panel of place 1: its buffers come after those of place 0.
    crate::testing::refuse_allocation(plan.scratch[0].operands.len() as u64 + 1);
    let error = case.run(&plan).unwrap_err();
    crate::testing::refuse_allocation(0);
    assert!(error.to_string().starts_with("on place 1, cpu:1: out of memory"), "{error}");
    assert_eq!((error.exit_code(), case.c.gather().unwrap()), (4, before));
    // Where the panels of the first plan are too much, another plan is taken.
    let wanted = case.wanted();
    crate::testing::refuse_allocation(1);
    let Case { devices, gemm, a, b, c } = &mut case;
    gemm.run_sharded(devices, a, b, c).unwrap();
    crate::testing::refuse_allocation(0);
    assert_eq!(c.gather().unwrap(), wanted);
}

/// Panels of a small product would fill no H200: all comes before it. A large one goes on beside.
#[test]
fn small_products_are_not_cut_into_panels() {
    let algorithm = |size: u64| {
        let shape = Shape::new(size, size, size).unwrap();
        let (rows, cols) =
            (ShardLayout::rows(size as usize, 4), ShardLayout::cols(size as usize, 4));
        let (target, limits) = (crate::gemm::Target::H200, simt::cpu::LIMITS);
        let layouts = [&rows, &cols, &rows];
        let plans = Gemm::<f32>::new().plan_sharded_for(&target, &limits, 4, shape, layouts);
        plans.unwrap()[0].algorithm()
    };
    assert_eq!(algorithm(1024), Algorithm::GatherFirst);
    assert_eq!(algorithm(8192), Algorithm::AllGather);
}

/// Numbers without sense are errors, and panic nowhere.
#[test]
fn extreme_numbers_are_refused() {
    const MOST: usize = usize::MAX;
    let limit = "must be at least one, and at most 256";
    let refused = |error: Error, words: &str| assert!(error.to_string().contains(words), "{error}");
    refused(Devices::cpu(MOST).unwrap_err(), limit);
    refused(Devices::of(&[0; 257]).unwrap_err(), limit);
    let devices = Devices::cpu(2).unwrap();
    let zeros = |rows, cols, layout| Sharded::<f32>::zeros(&devices, rows, cols, layout);
    refused(zeros(10, 10, ShardLayout::rows(10, MOST)).unwrap_err(), "layout = ");
    let thin = || ShardLayout::Cols(vec![0, MOST - 1, MOST]);
    assert_eq!(zeros(0, MOST, thin()).unwrap().shards().len(), 2);
    assert!(zeros(1, MOST, thin()).is_err());
    let shape = Shape::new(8, 8, 8).unwrap();
    let (target, limits) = (crate::gemm::Target::H200, simt::cpu::LIMITS);
    let layouts = [&ShardLayout::Replicated; 3];
    let plans = Gemm::<f32>::new().plan_sharded_for(&target, &limits, MOST, shape, layouts);
    refused(plans.unwrap_err(), limit);
}
