//! Split-K over the grid: partial products, and the launch that adds them.

use host::{
    Activation, Bf16, Compute, F16, Gemm, Shape,
    gemm::{Request, Scalar, Target},
};
use tests::{
    devices,
    gemm::{Bench, Case, Data, Number, Operand, Order, Place, Side, Want, counted, each_device},
    once,
};

/// Sizes, and the numbers of partial products. The last range of k is whole, or shorter, or one
/// k-step. One element of C; more columns than a block adds.
const CASES: [([usize; 3], &[u32]); 5] = [
    ([7, 5, 512], &[2, 4, 8]),
    ([1, 1, 1000], &[2, 3, 16]),
    ([33, 130, 321], &[3, 5, 6]),
    ([3, 257, 129], &[2, 3]),
    ([70, 9, 2048], &[32, 256]),
];

/// Every size, layout and epilogue, by the kernel that `auto` selects. C has the type `T`.
fn every_layout<T: Number + Scalar>() -> usize {
    let mut count = 0;
    for device in devices() {
        let mut bench = Bench::<T>::new(&device);
        for ([m, n, k], partials) in CASES {
            for layout in 0..8 {
                let order =
                    |bit: usize| if layout >> bit & 1 == 0 { Order::Rows } else { Order::Columns };
                let data = Data::exact(k);
                // Odd paddings: rows are also unaligned.
                let place = |size, bit| Place::padded(size, order(bit), layout % 3);
                let a = Operand::draw((m, k), place((m, k), 0), data, 91);
                let b = Operand::draw((k, n), place((k, n), 1), data, 92);
                let case = Case::plain(a, b, place((m, n), 2));
                let plain = layout % 2 == 0;
                let case = match plain {
                    true => case,
                    false => case
                        .scaled(2.0, -1.0, data, 93)
                        .biased(if layout % 4 == 1 { Side::Row } else { Side::Col }, data, 94)
                        .activated(Activation::Relu),
                };
                let want = Want::exact(&case);
                for &partials in partials {
                    let c = bench.run_as(&case, |gemm| gemm.partials(partials)).unwrap();
                    want.check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{partials}: {case}"));
                    count += 1;
                }
            }
        }
    }
    count
}

#[test]
fn every_layout_and_epilogue() {
    once!(crate::SOURCES);
    let count = every_layout::<f32>() + every_layout::<Bf16>() + every_layout::<F16>();
    every_layout::<f64>();
    counted("partials::every_layout_and_epilogue", count / devices().len());
}

/// Kernels on tensor cores and TMA kernels, by name, on a batch with a range of k each.
#[test]
fn kernels_by_name() {
    once!(crate::SOURCES);
    each_device("partials::kernels_by_name", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        for (name, compute) in [
            ("gemm_f32_64x64x16", Compute::Native),
            ("gemm_f32_4x4x256_dot", Compute::Native),
            ("gemm_f32_8x16x64_dot", Compute::Native),
            ("gemm_f32_8x128x8_dot", Compute::Native),
            ("tma_f32_64x64x64_nn", Compute::Native),
            ("wgmma_tf32_128x64x32_nn", Compute::Tf32),
            ("wgmma_bf16x6_64x128x64_nn", Compute::Fp32Bf16x6),
            ("wgmma_f16x3_64x128x64_nn", Compute::Fp32F16x3),
        ] {
            for ([m, n, k], partials) in CASES {
                let case = Case::<f32>::dense([m, n, k], Data::exact(k), 95);
                let want = Want::exact(&case);
                for &partials in partials {
                    let c = bench
                        .run_as(&case, |gemm| {
                            gemm.compute(compute).kernel(name)?.partials(partials)
                        })
                        .unwrap();
                    want.check(&c)
                        .unwrap_or_else(|wrong| panic!("{wrong}\n{name}, {partials}: {case}"));
                    *count += 1;
                }
            }
        }
    });
    // Of f64, by a factor that has more digits than an f32.
    for device in devices() {
        let mut bench = Bench::<f64>::new(&device);
        for name in [
            "gemm_f64_64x64x16",
            "gemm_f64_4x4x256_dot",
            "gemm_f64_8x16x64_dot",
            "gemm_f64_8x64x16_dot",
            "mma_f64_64x64x32",
            "mma_f64_128x128x32",
            "mma_f64_64x32x32_nn",
        ] {
            for ([m, n, k], partials) in CASES {
                let case = Case::<f64>::dense([m, n, k], Data::exact(k), 97);
                let case = case.scaled(2f64.powi(30) + 1.0, 0.0, Data::exact(k), 98);
                let want = Want::exact(&case);
                for &partials in partials {
                    let c = bench.run_as(&case, |gemm| gemm.kernel(name)?.partials(partials));
                    want.check(&c.unwrap())
                        .unwrap_or_else(|wrong| panic!("{wrong}\n{name}, {partials}: {case}"));
                }
            }
        }
    }
}

/// The number depends on the request, not on the SMs of a GPU, and keeps to the workspace limit.
#[test]
fn the_number_is_the_same_on_every_gpu() {
    let mut split = 0;
    for [m, n, k] in [[64, 64, 200_000], [10, 10, 1_000_000], [2, 115, 606_265], [512, 512, 65_536]]
    {
        let request = Request::dense(Shape::new(m, n, k).unwrap());
        let of = |sms: u32, limit: u64| {
            let gemm = Gemm::<f32>::new().workspace_limit(limit);
            let choice = gemm.choose(&request, &Target::gpu((9, 0), sms)).unwrap();
            assert!(choice.workspace_bytes <= limit, "{choice:?}");
            (choice.entry.name(), choice.partials)
        };
        let large = 1 << 28;
        let (name, partials) = of(132, large);
        for sms in [78, 114, 132] {
            let (other, count) = of(sms, large);
            assert!(other != name || count == partials, "{name} {partials}, {other} {count}");
        }
        assert_eq!(of(132, 0).1, 1);
        split += usize::from(partials > 1);
        let of_cpu = Gemm::<f32>::new().choose(&request, &Target::cpu(2)).unwrap();
        assert_eq!(of_cpu.partials, 1);
    }
    assert!(split >= 3, "{split}");
    for wrong in [0, 4097] {
        let error = Gemm::<f32>::new().partials(wrong).unwrap_err().to_string();
        assert_eq!(error, format!("partials = {wrong}: must be 1 to 4096"));
    }
}

/// A request for partial products that no kernel can compute, or add, is refused before anything is
/// launched. The error names it.
#[test]
fn what_cannot_be_added_is_refused() {
    let request = Request::dense(Shape::new(64, 64, 200_000).unwrap());
    let gemm = || Gemm::<f32>::new().partials(4).unwrap();
    let refusal =
        |gemm: Gemm<f32>, target: Target| gemm.choose(&request, &target).unwrap_err().to_string();
    let limit = "one product at a time, with k above 64, with m n sums of workspace each, and a kernel whose C has \
                 their type";
    let no_kernel = format!("partials = 4: no kernel computes them for this request: {limit}");
    assert_eq!(refusal(gemm().workspace_limit(0), Target::H200), no_kernel);
    let lesson = gemm().kernel("tiled16").unwrap();
    let expected = format!("partials = 4: tiled16 does not compute them for this request: {limit}");
    assert_eq!(refusal(lesson, Target::H200), expected);
    let both = gemm().split_k(2).unwrap();
    let expected = "split_k = 2: must be 1 with partial products, which split k already";
    assert_eq!(refusal(both, Target::H200), expected);
    // Every GPU has the kernel that adds them.
    let a100 = Target::gpu((8, 0), 108);
    assert_eq!(gemm().choose(&request, &a100).unwrap().partials, 4);
    assert!(Gemm::<f32>::new().choose(&request, &a100).unwrap().partials > 1);
    assert_eq!(gemm().choose(&request, &Target::cpu(2)).unwrap().partials, 4);
}
