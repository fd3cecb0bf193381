//! Products by TMA: operands in all layouts, of any size, with k split over clusters; and refused
//! ones. (The other tests also run TMA kernels, on every case that these take.)

mod on_tensor_cores;

use std::collections::HashMap;

use gpu::registry::Family;
use host::{
    Activation, Bf16, Device, F16, Gemm, Shape,
    gemm::{Request, Scalar, Target},
};
use on_tensor_cores::*;
use tests::{
    Turns, devices,
    gemm::{Bench, Case, Data, Operand, Order, Place, Side, Want, bytes, counted, each_device},
    kernels::variant,
    once,
};

/// The kernels that neither round operands nor split them. For each, whether A is K-major, and B
/// MN-major.
fn kernels() -> impl Iterator<Item = (&'static str, bool, bool)> {
    let of_tma = f32::kernels().filter(|kernel| kernel.product.variant.family == Family::Tma);
    of_tma.map(|kernel| {
        let [a, b] = kernel.product.variant.k_major();
        (kernel.entry.name(), a, !b)
    })
}

/// Whether its sums are not added from parts. Then they have the bits of every other kernel.
fn is_whole(name: &str) -> bool {
    let [rows, cols, _] = variant(name).tile;
    [rows, cols] == [128, 128]
}

/// A row-major or column-major matrix with 16-byte aligned rows or columns.
fn place((rows, cols): (usize, usize), by_rows: bool) -> Place {
    let (order, run) = if by_rows { (Order::Rows, cols) } else { (Order::Columns, rows) };
    Place::padded((rows, cols), order, run.next_multiple_of(4) - run)
}

fn case([m, n, k]: [usize; 3], by_rows: (bool, bool), data: Data) -> Case<f32> {
    let a = Operand::draw((m, k), place((m, k), by_rows.0), data, 51);
    let b = Operand::draw((k, n), place((k, n), by_rows.1), data, 52);
    Case::plain(a, b, Place::dense((m, n), Order::Rows))
}

/// Runs on each device each case that `cases` makes for a kernel, with all kernels or in turns.
/// Returns the number of cases.
fn each<C>(
    in_turns: bool,
    cases: impl Fn((bool, bool)) -> Vec<C>,
    mut run: impl FnMut(&mut Bench<f32>, &str, &C),
) -> usize {
    let kernels = kernels().collect::<Vec<_>>();
    let mut count = 0;
    for device in devices() {
        let (mut bench, mut turns) = (Bench::new(&device), Turns::on(&device, kernels.len()));
        let of_kernels = kernels.iter().map(|&(_, a, b)| cases((a, b))).collect::<Vec<_>>();
        for (number, _) in of_kernels[0].iter().enumerate() {
            let of_case = match in_turns {
                true => turns.next_case(),
                false => (0..kernels.len()).collect(),
            };
            for kernel in of_case {
                run(&mut bench, kernels[kernel].0, &of_kernels[kernel][number]);
            }
            count += 1;
        }
    }
    count / devices().len()
}

/// Aligned and unaligned rows, with copies of operands: of one, of both, and of matrices of a batch
/// with an odd distance.
#[test]
fn every_pitch() {
    once!(crate::SOURCES);
    let cases = |by_rows: (bool, bool)| {
        let (data, [m, n, k]) = (Data::exact(50), [67, 131, 50]);
        let mut cases = Vec::new();
        for (pad_a, pad_b) in [(0, 0), (1, 0), (0, 1), (2, 3)] {
            let padded = |size: (usize, usize), by_rows: bool, extra: usize| {
                let run = if by_rows { size.1 } else { size.0 };
                let order = if by_rows { Order::Rows } else { Order::Columns };
                Place::padded(size, order, run.next_multiple_of(4) - run + extra)
            };
            let [a, b] = [padded((m, k), by_rows.0, pad_a), padded((k, n), by_rows.1, pad_b)];
            for start in [0, 3] {
                let a = Operand::draw((m, k), a.at(start), data, 61);
                let b = Operand::draw((k, n), b, data, 62);
                cases.push(Case::plain(a, b, Place::dense((m, n), Order::Rows)));
            }
            let a = Operand::draw((m, k), a.batch(3, 80 * 80 + 1), data, 63);
            let b = Operand::draw((k, n), b.batch(3, 0), data, 64);
            let c = Place::dense((m, n), Order::Rows).batch(3, m * n);
            cases.push(Case::plain(a, b, c).scaled(2.0, -1.0, data, 65));
        }
        cases
    };
    let count = each(true, cases, |bench, name, case| {
        for split in [1, 3] {
            let c = bench.run_as(case, |gemm| gemm.kernel(name)?.split_k(split)).unwrap();
            let right = Want::exact(case).check(&c);
            right.unwrap_or_else(|wrong| panic!("{wrong}\n{name} by {split}: {case}"));
        }
    });
    counted("tensor::every_pitch", count);
}

/// Whole and partial tiles, fewer stages than blocks and more, with and without an epilogue.
#[test]
fn every_size_and_split() {
    once!(crate::SOURCES);
    let shapes = [[1, 1, 1], [64, 64, 64], [128, 256, 96], [63, 130, 65], [200, 5, 513]];
    let cases = |by_rows| {
        let cases = shapes.into_iter().flat_map(|shape @ [.., k]| {
            let plain = case(shape, by_rows, Data::exact(k));
            let scaled = plain.clone().scaled(2.0, -1.0, Data::exact(k), 53);
            let full = scaled.clone().biased(Side::Row, Data::exact(k), 54);
            let cases = [plain, scaled, full.activated(Activation::Relu)];
            cases.into_iter().flat_map(|case| [1, 2, 3, 8].map(|split| (case.clone(), split)))
        });
        cases.collect()
    };
    let count = each(true, cases, |bench, name, (case, split)| {
        let c = bench.run_as(case, |gemm| gemm.kernel(name)?.split_k(*split)).unwrap();
        let right = Want::exact(case).check(&c);
        right.unwrap_or_else(|wrong| panic!("{wrong}\n{name}, split {split}: {case}"));
    });
    counted("tensor::every_size_and_split", count);
}

/// C in any layout; and A and B in a batch, or one for all.
#[test]
fn every_place_of_c_and_batches() {
    once!(crate::SOURCES);
    let cases = |by_rows: (bool, bool)| {
        let (m, n, k) = (70, 40, 36);
        let data = Data::exact(k);
        let plain = case([m, n, k], by_rows, data);
        let mut cases = [[40, 1], [43, 1], [1, 70], [2, 150], [90, 2]]
            .map(|strides| {
                let (a, b) = (plain.a.clone(), plain.b.clone());
                Case::plain(a, b, Place::strided(strides)).scaled(1.0, 3.0, data, 55)
            })
            .to_vec();
        for step in [0, 4 * 70 * 40] {
            let batch = |size, by_rows, step| place(size, by_rows).batch(3, step);
            let a = Operand::draw((m, k), batch((m, k), by_rows.0, step), data, 56);
            let b = Operand::draw((k, n), batch((k, n), by_rows.1, 4 * 40 * 40), data, 57);
            let c = Place::dense((m, n), Order::Rows).batch(3, m * n + 3);
            cases.push(Case::plain(a, b, c).biased(Side::Col, data, 58));
        }
        cases
    };
    let count = each(true, cases, |bench, name, case| {
        let c = bench.run(case, Some(name)).unwrap();
        let right = Want::exact(case).check(&c);
        right.unwrap_or_else(|wrong| panic!("{wrong}\n{name}: {case}"));
    });
    counted("tensor::every_place_of_c_and_batches", count);
}

/// The kernels for operands in that layout: those for a column-major A and a row-major B, and those
/// for all others.
fn takers(way: (bool, bool)) -> Vec<(usize, &'static str)> {
    let taken =
        |&(_, (_, along_k, _)): &(usize, (&str, bool, bool))| along_k != (way == (false, true));
    let takers = kernels().enumerate().filter(taken);
    let takers = takers.map(|(number, (name, ..))| (number, name)).collect::<Vec<_>>();
    assert!(!takers.is_empty(), "{way:?}");
    takers
}

/// Every layout of A, B and C: swapped, copied, transposed.
#[test]
fn every_way_to_lie() {
    once!(crate::SOURCES);
    each_device("tensor::every_way_to_lie", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        let mut turns = Turns::on(&device, kernels().count());
        // Aligned rows; unaligned rows; and an unaligned first element.
        for ([m, n, k], padded, start) in
            [([37, 70, 45], true, 0), ([130, 67, 33], false, 0), ([5, 9, 130], false, 3)]
        {
            let data = Data::exact(k);
            for (way, order) in WAYS.into_iter().flat_map(|way| Order::BOTH.map(|c| (way, c))) {
                for (side, beta, count_of) in
                    [(Side::Row, 0.0, None), (Side::Col, 3.0, None), (Side::Row, -1.0, Some(3))]
                {
                    let lies = |size: (usize, usize), by_rows: bool| {
                        let order = if by_rows { Order::Rows } else { Order::Columns };
                        let dense = Place::dense(size, order);
                        let one = if padded { place(size, by_rows) } else { dense }.at(start);
                        let step = one.extent(size) + 1;
                        count_of.map_or(one, |of| one.batch(of, step))
                    };
                    let places = [lies((m, k), way.0), lies((k, n), way.1)];
                    let case = full_case([m, n, k], places, (order, count_of), (side, beta), data);
                    let want = Want::exact(&case);
                    let takers = takers(way).into_iter().map(|(number, _)| number);
                    for number in turns.among(&takers.collect::<Vec<_>>()) {
                        let (name, ..) = kernels().nth(number).unwrap();
                        let c = bench.run(&case, Some(name)).unwrap();
                        want.check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{name}: {case}"));
                    }
                    *count += 1;
                }
            }
        }
        turns.each_had_one();
    });
}

#[test]
fn every_way_to_lie_on_tensor_cores() {
    once!(crate::SOURCES);
    let count = every_way_on_tensor_cores::<Bf16>(true);
    counted("tensor::every_way_to_lie_on_tensor_cores", count);
    assert_eq!(every_way_on_tensor_cores::<F16>(false), count);
}

#[test]
fn rows_anywhere_on_tensor_cores() {
    once!(crate::SOURCES);
    let count =
        anywhere_on_tensor_cores::<Bf16>("wgmma_bf16_128x256x64", "wgmma_bf16_64x64x64_ldg");
    counted("tensor::rows_anywhere_on_tensor_cores", count);
    let of_f16 = ("wgmma_f16_128x256x64", "wgmma_f16_64x64x64_ldg");
    assert_eq!(anywhere_on_tensor_cores::<F16>(of_f16.0, of_f16.1), count);
}

/// Unaligned rows of a K-major A, with all eight or sixteen misalignments, are taken without a
/// copy. C has unaligned rows, too, and every epilogue.
#[test]
fn shifted_rows_on_tensor_cores() {
    once!(crate::SOURCES);
    let large = Request::dense(Shape::new(4096, 4096, 4095).unwrap());
    let auto = Gemm::<Bf16>::new().choose(&large, &Target::H200).unwrap();
    assert_eq!((auto.entry.name(), auto.workspace_bytes), ("wgmma_bf16_256x256x64_c2_ua16_nn", 0));
    let names = ["wgmma_bf16_256x256x64_c2_ua8_nn", "wgmma_bf16_256x256x64_c2_ua16_nn"];
    let odd = Request::dense(Shape::new(256, 512, 129).unwrap());
    for name in names {
        let named = Gemm::<Bf16>::new().kernel(name).unwrap();
        assert_eq!(named.choose(&odd, &Target::H200).unwrap().workspace_bytes, 0);
    }

    each_device("tensor::shifted_rows_on_tensor_cores", |device, count| {
        let mut bench = Bench::<Bf16>::new(&device);
        let mut turns = Turns::on(&device, names.len());
        // The last one has several tiles of a class.
        for ([m, n, k], pitch) in
            [([1, 8, 1], 1), ([37, 72, 45], 47), ([150, 264, 130], 133), ([4200, 8, 33], 35)]
        {
            let data = Data::exact(k);
            for (padding, products) in [(0, 1), (3, 1), (1, 2)] {
                if m > 4000 && products > 1 {
                    continue;
                }
                // The first element, and products, are 16-byte aligned, also where rows would be
                // 32-byte aligned.
                let start = if padding > 0 { 8 } else { 0 };
                let a = Place::padded((m, k), Order::Rows, pitch - k).at(start);
                let b = Place::dense((k, n), Order::Rows);
                let c = Place::padded((m, n), Order::Rows, padding);
                let batch = |one: Place, size| match products {
                    1 => one,
                    _ => one.batch(products, one.extent(size).next_multiple_of(16) + 8),
                };
                let a = Operand::draw((m, k), batch(a, (m, k)), data, 81);
                let b = Operand::draw((k, n), batch(b, (k, n)), data, 82);
                let plain = Case::plain(a, b, batch(c, (m, n)));
                let full = plain.clone().scaled(2.0, -1.0, data, 83).biased(Side::Row, data, 84);
                for case in [plain, full] {
                    for name in turns.next_case().into_iter().map(|name| names[name]) {
                        let c = bench.run(&case, Some(name)).unwrap();
                        let right = Want::exact(&case).check(&c);
                        right.unwrap_or_else(|wrong| panic!("{wrong}\n{name}: {case}"));
                    }
                    *count += 1;
                }
            }
        }
    });
}

/// A B with unaligned rows: half of its columns are packed before, the others in the background of
/// the product. There is more than one wave of tiles. Products follow each other, because a product
/// must leave the counters as it found them. If rows overlap, or are all one, everything is packed
/// before.
#[test]
fn columns_are_copied_beside_others() {
    once!(crate::SOURCES);
    each_device("tensor::columns_are_copied_beside_others", |device, count| {
        let n = if device.is_cuda() { 20001 } else { 1029 };
        let turns = &mut Turns::on(&device, 3);
        *count +=
            copied_beside::<Bf16>(&device, "wgmma_bf16_256x256x64_c2_ua8_nn", [60, n, 75], turns);
        *count +=
            copied_beside::<F16>(&device, "wgmma_f16_256x256x64_c2_ua8_nn", [60, n, 75], turns);
        *count +=
            copied_beside::<Bf16>(&device, "wgmma_bf16_256x256x64_c2_ua16_nn", [60, n, 75], turns);
    });
}

/// Layouts change no bits, for kernels with the same tiles, and for sums that are not split.
#[test]
fn the_same_bits_in_every_way() {
    once!(crate::SOURCES);
    let [m, n, k] = [100, 90, 300];
    let ways = || WAYS.into_iter().flat_map(|way| Order::BOTH.map(|order| (way, order)));
    let cases = ways().map(|(way, order)| {
        let mut case = case([m, n, k], way, Data::Uniform);
        case.c = Operand::noise((m, n), Place::dense((m, n), order));
        let case = case.scaled(0.7, 1.3, Data::Uniform, 75);
        (way, case.biased(Side::Col, Data::Uniform, 76))
    });
    let cases = cases.collect::<Vec<_>>();
    let tiles = |name: &str| variant(name).tile;
    for device in devices() {
        let mut bench = Bench::<f32>::new(&device);
        let in_order = bench.run(&cases[0].1, Some("gemm_f32_64x64x16")).unwrap();
        // The bits of the first kernel for each kind of tiles and number of parts.
        let mut first = HashMap::new();
        for (way, case) in &cases {
            for (name, split) in
                takers(*way).into_iter().flat_map(|(_, name)| [(name, 1), (name, 3)])
            {
                let c = bench.run_as(case, |gemm| gemm.kernel(name)?.split_k(split)).unwrap();
                let first = first.entry((tiles(name), split)).or_insert_with(|| c.clone());
                assert!(bytes(first) == bytes(&c), "{name} by {split}: {case}");
                let whole = is_whole(name);
                assert_eq!(bytes(&in_order) == bytes(&c), whole, "{name} by {split}: {case}");
            }
        }
    }
    counted("tensor::the_same_bits_in_every_way", cases.len());
}

/// Parts are added in one order: the same bits in every run and for any number of cores. Tiles
/// whose sums are not split have the bits of every other kernel.
#[test]
fn the_same_bits() {
    once!(crate::SOURCES);
    let cases = |by_rows| [1, 4].map(|split| (case([100, 90, 300], by_rows, Data::Uniform), split));
    let count = each(
        false,
        |by_rows| cases(by_rows).to_vec(),
        |bench, name, (case, split)| {
            let run = |bench: &mut Bench<f32>| {
                bench.run_as(case, |gemm| gemm.kernel(name)?.split_k(*split)).unwrap()
            };
            let first = run(bench);
            let bounded = Want::bounded(case).check(&first);
            bounded.unwrap_or_else(|wrong| panic!("{wrong}\n{name}: {case}"));
            let mut others = vec![run(bench), run(bench)];
            if !bench.device().is_cuda() {
                others.push(run(&mut Bench::new(&Device::cpu_with_workers(1))));
            }
            assert!(others.iter().all(|other| bytes(other) == bytes(&first)), "{name} by {split}");
            let in_order = bench.run(case, Some("gemm_f32_64x64x16")).unwrap();
            let whole = is_whole(name);
            assert_eq!(bytes(&in_order) == bytes(&first), whole, "{name} by {split}");
        },
    );
    counted("tensor::the_same_bits", count);
}

/// Cases that such a kernel cannot compute. The message says what it takes.
#[test]
fn what_is_refused() {
    once!(crate::SOURCES);
    let shape = Shape::new(100, 60, 40).unwrap();
    let request = Request::dense(shape);
    let refusal = |gemm: host::Result<Gemm<f32>>, request: &Request, target: &Target| {
        let choice = gemm.and_then(|gemm| gemm.choose(request, target));
        choice.map_or_else(|error| error.to_string(), |choice| choice.entry.name().to_owned())
    };
    let of = |name: &str, request: &Request, target: &Target| {
        refusal(Gemm::new().kernel(name), request, target)
    };
    let h200 = &Target::H200;
    let nn = "tma_f32_128x128x32_nn";
    let mut count = 0;
    let mut check = |said: String, expected: &str| {
        assert_eq!(said, expected);
        count += 1;
    };
    check(of(nn, &request, h200), nn);
    check(of(nn, &request, &Target::cpu(2)), nn);
    let ampere = Target::gpu((8, 6), 82);
    check(
        of(nn, &request, &ampere),
        "kernel = tma_f32_128x128x32_nn: needs a GPU of compute capability 9.0",
    );
    check(
        of("tma_f32_64x64x64_tn", &request, h200),
        "kernel = tma_f32_64x64x64_tn: needs A contiguous along m",
    );
    let [by_rows, by_cols] = [[[40, 1], [60, 1], [60, 1]], [[1, 100], [1, 40], [1, 100]]];
    let across = |a: [usize; 2], b: [usize; 2]| Request::new(shape, [a, b, by_rows[2]]);
    check(
        of(nn, &across(by_cols[0], by_rows[1]), h200),
        "kernel = tma_f32_128x128x32_nn: needs A contiguous along k",
    );
    // A matrix that is contiguous along neither side.
    check(
        of(nn, &across([80, 2], by_rows[1]), h200),
        "kernel = tma_f32_128x128x32_nn: needs A contiguous along k",
    );
    check(
        of(nn, &across(by_rows[0], [120, 2]), h200),
        "kernel = tma_f32_128x128x32_nn: needs B contiguous along n",
    );
    check(
        of(nn, &across(by_cols[0], [120, 2]), h200),
        "kernel = tma_f32_128x128x32_nn: needs B contiguous along k",
    );
    check(
        of("tma_f32_64x64x64_tn", &across(by_cols[0], by_cols[1]), h200),
        "kernel = tma_f32_64x64x64_tn: needs B contiguous along n",
    );
    // One operand is transposed: B, the smaller one.
    let both_along_k = across(by_rows[0], by_cols[1]);
    check(of(nn, &both_along_k, h200), nn);
    let room = Gemm::new().workspace_limit(4 * 40 * 60 - 1);
    check(
        refusal(room.kernel(nn), &both_along_k, h200),
        "kernel = tma_f32_128x128x32_nn: needs 9600 bytes of workspace, and the limit is 9599",
    );
    // Operands with unaligned rows are copied before, if there is room.
    let odd = Request::dense(Shape::new(100, 61, 41).unwrap());
    check(of(nn, &odd, h200), nn);
    let room = Gemm::new().workspace_limit(4 * 100 * 44 + 4 * 41 * 64 - 1);
    check(
        refusal(room.kernel(nn), &odd, h200),
        "kernel = tma_f32_128x128x32_nn: needs 28160 bytes of workspace, and the limit is 28095",
    );
    let split = |blocks| Gemm::<f32>::new().split_k(blocks);
    check(refusal(split(0), &request, h200), "split_k = 0: must be 1 to 8");
    check(refusal(split(9), &request, h200), "split_k = 9: must be 1 to 8");
    let general = split(2).and_then(|gemm| gemm.kernel("gemm_f32_64x64x16"));
    check(refusal(general, &request, h200), "kernel = gemm_f32_64x64x16: does not split k");
    counted("tensor::what_is_refused", count);
}
