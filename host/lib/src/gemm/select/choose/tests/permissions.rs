//! `compute` is a permission, no order: the predicted time decides among what is allowed.

use super::*;
use crate::gemm::SLICES_WORKSPACE_LIMIT;

/// Slices cost more than they gain at few rows: a permission is no order.
#[test]
fn few_rows_are_multiplied_in_fp32_though_slices_are_allowed() {
    let sizes = [64, 128, 1000, 1024, 4096, 11008, 16384];
    let products = sizes.iter().flat_map(|&n| sizes.map(|k| (n, k)));
    for (n, k) in products {
        for m in [1, 2, 7, 8, 16] {
            for b in [[n, 1], [1, k]] {
                let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
                let request = Request::new(shape, [[k, 1], b, [n, 1]]);
                let of = |compute| {
                    let request = Request { compute, ..request };
                    choose::<f32>(&request, &Target::H200, None).unwrap().entry.name()
                };
                let native = of(Compute::Native);
                for compute in [Compute::Fp32F16x3, Compute::Fp32Bf16x6] {
                    assert_eq!(of(compute), native, "{m}x{n}x{k} {b:?}");
                }
            }
        }
    }
    let large = Request { compute: Compute::Fp32F16x3, ..request([4096; 3], 4 << 30) };
    let large = choose::<f32>(&large, &Target::H200, None).unwrap();
    assert!(large.entry.is_emulated(), "{}", large.entry.name());
}

/// Which arithmetic the fastest kernel has at few rows and at many, where another one is allowed.
#[test]
fn the_predicted_time_decides_among_what_is_allowed() {
    use Scheme::{Bf16x6, F16x3, Native, Tf32};
    let rows = [1, 8, 16, 32, 64, 512, 4096];
    let few_native = |slices| [Native, Native, Native, Native, Native, slices, slices];
    for ([n, k], compute, schemes) in [
        ([4096, 4096], Compute::Fp32F16x3, few_native(F16x3)),
        ([4096, 4096], Compute::Fp32Bf16x6, few_native(Bf16x6)),
        ([14336, 4096], Compute::Fp32F16x3, few_native(F16x3)),
        ([4096, 14336], Compute::Fp32Bf16x6, few_native(Bf16x6)),
        ([4096, 4096], Compute::Tf32, [Tf32; 7]),
        ([14336, 4096], Compute::Tf32, [Native, Native, Native, Tf32, Tf32, Tf32, Tf32]),
        ([4096, 14336], Compute::Tf32, [Native, Native, Native, Tf32, Tf32, Tf32, Tf32]),
        ([4096, 4096], Compute::Native, [Native; 7]),
    ] {
        for (m, scheme) in rows.into_iter().zip(schemes) {
            let request = Request { compute, ..request([m, n, k], SLICES_WORKSPACE_LIMIT) };
            let choice = choose::<f32>(&request, &Target::H200, None).unwrap();
            assert_eq!(choice.entry.scheme(), scheme, "{m}x{n}x{k} {compute:?}");
        }
    }
}

/// A permission makes no product slower, on any device: all that is allowed without it is allowed
/// with it, and the shortest time wins.
#[test]
fn a_permission_makes_no_product_slower() {
    let us = |choice: &Choice| choice.times.unwrap().us();
    let targets = [
        Target::H200,
        Target::gpu((9, 0), 114),
        Target::gpu((8, 0), 108),
        Target::gpu((8, 9), 142),
        Target::cpu(4),
    ];
    for m in [1, 8, 16, 32, 64, 512, 4096] {
        for (n, k) in [(1, 4096), (64, 64), (1000, 513), (4096, 4096), (16384, 256), (100, 65536)] {
            for b in [[n as usize, 1], [1, k as usize]] {
                let request = request([m, n, k], SLICES_WORKSPACE_LIMIT);
                let request =
                    Request { strides: [request.strides[0], b, request.strides[2]], ..request };
                for target in &targets {
                    let of = |compute| {
                        let request = Request { compute, ..request };
                        let choice = choose::<f32>(&request, target, None).unwrap();
                        let whole = candidates::<f32>(&request, target);
                        let shortest = whole.iter().filter_map(|one| one.predicted_us);
                        assert!(shortest.fold(f64::INFINITY, f64::min) >= us(&choice));
                        us(&choice)
                    };
                    let native = of(Compute::Native);
                    for compute in [Compute::Tf32, Compute::Fp32F16x3, Compute::Fp32Bf16x6] {
                        let allowed = of(compute);
                        let what = format!("{m}x{n}x{k} {b:?} {compute:?} on {target:?}");
                        assert!(allowed <= native, "{what}: {allowed} us, native {native}");
                    }
                }
            }
        }
    }
}

/// What was split before is not split again: so slices are the fastest at fewer rows.
#[test]
fn prepared_slices_cost_nothing() {
    for (compute, [m, n, k]) in
        [(Compute::Fp32F16x3, [72, 4096, 4096]), (Compute::Fp32Bf16x6, [192, 4096, 4096])]
    {
        let plain = Request { compute, ..request([m, n, k], SLICES_WORKSPACE_LIMIT) };
        let of = |request: Request| choose::<f32>(&request, &Target::H200, None).unwrap();
        let [none, b, both] = [[false; 2], [false, true], [true; 2]]
            .map(|prepared| of(Request { prepared, ..plain }));
        assert_eq!(none.entry.scheme(), Scheme::Native, "{compute:?}");
        assert_eq!(b.entry.scheme(), compute.scheme(), "{compute:?}");
        let copies = |choice: Choice| choice.times.unwrap().copies_us;
        assert!(0.0 < copies(b) && copies(b) < 10.0 && copies(both) == 0.0, "{compute:?}");
        // A column-major C is computed with A and B swapped.
        let swapped = of(Request { prepared: [false, true], ..plain }.swapped());
        assert_eq!(swapped.entry.name(), b.entry.name());
    }
}
