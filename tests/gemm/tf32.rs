//! Factors of f32 that may be rounded to tf32: operands in any layout, and when such a kernel is
//! selected.

use gpu::registry::Family;
use host::{
    Activation, Compute, Gemm, Shape,
    gemm::{Request, Scalar, Target},
};
use tests::{
    Turns,
    gemm::{Bench, Case, Data, Operand, Order, Place, Side, Want, counted, each_device},
    kernels::variant,
    once,
};

/// The kernels, Hopper's and those of every GPU, with k whole, and in three parts if they can split
/// it.
fn kernels() -> impl Iterator<Item = (&'static str, u32)> {
    let of_tf32 = f32::kernels()
        .filter(|kernel| kernel.entry.is_tf32())
        .map(|kernel| (kernel.entry.name(), kernel.product.most_splits));
    of_tf32.flat_map(|(name, most)| {
        [1, 3].into_iter().filter(move |&split| split <= most).map(move |split| (name, split))
    })
}

/// Four layouts, both orders of C, both biases, a batch; aligned and unaligned rows and first
/// elements; whole and partial tiles.
#[test]
fn every_way_to_lie() {
    once!(crate::SOURCES);
    each_device("tf32::every_way_to_lie", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        let mut turns = Turns::on(&device, kernels().count());
        for ([m, n, k], padding) in [([37, 70, 45], 0), ([130, 300, 200], 1), ([300, 132, 8], 4)] {
            let data = Data::exact(k);
            for way in 0..8 {
                let order = |bit: usize| match way >> bit & 1 {
                    0 => Order::Rows,
                    _ => Order::Columns,
                };
                let lies = |size: (usize, usize), bit| {
                    let one = Place::padded(size, order(bit), padding);
                    if padding == 1 { one.at(3) } else { one }
                };
                for (side, beta, count_of) in [(Side::Row, 0.0, None), (Side::Col, -1.0, Some(2))] {
                    let many = |size, place: Place| match count_of {
                        Some(of) => place.batch(of, place.extent(size).next_multiple_of(4)),
                        None => place,
                    };
                    let operand = |size, bit, salt| {
                        Operand::draw(size, many(size, lies(size, bit)), data, salt)
                    };
                    let (a, b) = (operand((m, k), 0, 81), operand((k, n), 1, 82));
                    let c = many((m, n), Place::padded((m, n), order(2), 2));
                    let case = Case::plain(a, b, c).scaled(2.0, beta, data, 83);
                    let case = case.biased(side, data, 84).activated(Activation::Relu);
                    check(&mut bench, &mut turns, &case);
                    *count += 1;
                }
            }
        }
        turns.each_had_one();
    });
}

/// Runs the kernels whose turn it is.
fn check(bench: &mut Bench<f32>, turns: &mut Turns, case: &Case<f32>) {
    let want = Want::exact(case);
    let kernels = kernels().collect::<Vec<_>>();
    for (name, split) in turns.next_case().into_iter().map(|kernel| kernels[kernel]) {
        let c = bench
            .run_as(case, |gemm| gemm.compute(Compute::Tf32).kernel(name)?.split_k(split))
            .unwrap();
        want.check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{name} by {split}: {case}"));
    }
}

/// `C = 2 A B` with aligned, unaligned and contiguous rows; whole and partial tiles.
#[test]
fn rows_of_c_anywhere() {
    once!(crate::SOURCES);
    each_device("tf32::rows_of_c_anywhere", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        let mut turns = Turns::on(&device, kernels().count());
        for [m, n, k] in [[256, 256, 40], [300, 133, 36], [17, 65, 8]] {
            let data = Data::exact(k);
            for (padding, first) in [(0, 0), (1, 0), (4, 3), (7, 5)] {
                let dense = |size| Place::padded(size, Order::Rows, 0);
                let a = Operand::draw((m, k), dense((m, k)), data, 85);
                let b = Operand::draw((k, n), dense((k, n)), data, 86);
                let c = Place::padded((m, n), Order::Rows, padding).at(first);
                check(&mut bench, &mut turns, &Case::plain(a, b, c).scaled(2.0, 0.0, data, 87));
                *count += 1;
            }
        }
    });
}

/// Sides of 0 and 1 among others; elements that are not contiguous; rows that are all one; a batch
/// whose products start at different misalignments: by the kernels that take every product.
#[test]
fn any_strides_and_sizes() {
    once!(crate::SOURCES);
    let general = f32::kernels()
        .filter(|kernel| kernel.entry.is_tf32() && kernel.product.is_general())
        .map(|kernel| kernel.entry.name())
        .collect::<Vec<_>>();
    assert_eq!(general, ["mma_tf32_64x64x32", "mma_tf32_128x128x32"]);
    each_device("tf32::any_strides_and_sizes", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        let mut check = |case: &Case<f32>| {
            let want = Want::exact(case);
            for &name in &general {
                let c =
                    bench.run_as(case, |gemm| gemm.compute(Compute::Tf32).kernel(name)).unwrap();
                want.check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{name}: {case}"));
            }
            *count += 1;
        };
        for [m, n, k] in [[1, 1, 1], [65, 3, 0], [1, 130, 33], [129, 1, 7], [64, 64, 64]] {
            let data = Data::exact(k);
            for (a, b) in [
                // Two elements between neighbours; all rows of A one, and all columns of B;
                // products that overlap.
                (Place::strided([3 * k + 1, 3]), Place::strided([2 * n, 2])),
                (Place::strided([0, 1]), Place::strided([1, 0])),
                (
                    Place::strided([k, 1]).at(2).batch(3, m * k + 1),
                    Place::strided([1, k]).at(1).batch(3, 1),
                ),
            ] {
                let c = Place::padded((m, n), Order::Rows, 1);
                let c = match a.count {
                    Some(count) => c.batch(count, c.extent((m, n)) + 2),
                    None => c,
                };
                let a = Operand::draw((m, k), a, data, 91);
                let b = Operand::draw((k, n), b, data, 92);
                check(&Case::plain(a, b, c).scaled(2.0, -1.0, data, 93).biased(
                    Side::Row,
                    data,
                    94,
                ));
            }
        }
    });
}

/// If not allowed, no product is rounded. If allowed, products are rounded on tensor cores. Other
/// types are not affected.
#[test]
fn only_where_it_may() {
    once!(crate::SOURCES);
    let tf32 = Gemm::<f32>::new().compute(Compute::Tf32);
    let ampere = Target::gpu((8, 0), 108);
    let mut count = 0;
    for size in [1, 100, 512, 1024, 4096] {
        let request = Request::dense(Shape::new(size, size, size).unwrap());
        let taken = |gemm: &Gemm<f32>, target| {
            let entry = gemm.choose(&request, target).unwrap().entry;
            (entry.name(), entry.is_tf32())
        };
        assert!(!taken(&Gemm::new(), &Target::H200).1, "{size}");
        assert_eq!(taken(&tf32, &Target::H200).1, size >= 512, "{size}");
        assert!(!taken(&Gemm::new(), &ampere).1, "{size}");
        let (name, is_tf32) = taken(&tf32, &ampere);
        assert!(
            is_tf32 == (size >= 512) && (!is_tf32 || variant(name).family == Family::Mma),
            "{size}: {name}"
        );
        let cpu = Target::cpu(2);
        assert_eq!(taken(&tf32, &cpu), taken(&Gemm::new(), &cpu), "{size}");
        count += 5;
    }
    let request = Request::dense(Shape::new(100, 100, 100).unwrap());
    for name in ["wgmma_tf32_128x64x32_nn", "mma_tf32_64x64x32"] {
        let refused = Gemm::<f32>::new().kernel(name).unwrap().choose(&request, &Target::H200);
        let expected =
            format!("kernel = {name}: rounds A and B to tf32, which compute = tf32 allows");
        assert_eq!(refused.unwrap_err().to_string(), expected);
        count += 1;
    }
    let chosen = |gemm: Gemm<f64>| gemm.choose(&request, &Target::H200).unwrap().entry.name();
    assert_eq!(chosen(Gemm::new().compute(Compute::Tf32)), chosen(Gemm::new()));
    counted("tf32::only_where_it_may", count + 1);
}
