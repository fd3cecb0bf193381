//! What is predicted for the cards of the table.

use gpu::params::ROWS_COLS;

use super::*;
use crate::{
    Bf16, Compute, F16, Shape,
    gemm::{
        CARDS, Card, Choice, Invariant, Output, Request, Scalar,
        select::{choose, choose_kernel},
    },
};

/// A type, its choice on a GPU, and what multiplies it on Hopper and elsewhere, where tensor cores
/// of Hopper do half as many products of tf32 as of 16 bits, and twice as many of 8.
type Case = (&'static str, Compute, fn(&Request, &Target) -> Choice, [(Unit, f64); 2]);

fn types() -> [Case; 6] {
    fn of<T: Scalar<O>, O: Output>(request: &Request, target: &Target) -> Choice {
        choose_kernel::<T, O>(request, target, None).unwrap().1
    }
    let halves = [(Unit::TensorHalf, 1.0), (Unit::MmaHalf, 1.0)];
    [
        ("f16", Compute::Native, of::<F16, F16>, halves),
        ("bf16", Compute::Native, of::<Bf16, Bf16>, halves),
        ("tf32", Compute::Tf32, of::<f32, f32>, [(Unit::TensorHalf, 0.5), (Unit::MmaTf32, 1.0)]),
        ("f32", Compute::Native, of::<f32, f32>, [(Unit::F32, 1.0); 2]),
        ("f64", Compute::Native, of::<f64, f64>, [(Unit::TensorF64, 1.0); 2]),
        ("i8", Compute::Native, of::<i8, i32>, [(Unit::TensorHalf, 2.0), (Unit::MmaInt8, 1.0)]),
    ]
}

fn request([m, n, k]: [u64; 3], compute: Compute) -> Request {
    Request { compute, ..Request::dense(Shape::new(m, n, k).unwrap()) }
}

/// The predicted speed beside the roof: of what multiplies, and of the memory.
fn shares(choice: &Choice, request: &Request, target: &Target, peak: (Unit, f64)) -> [f64; 2] {
    let us = choice.times.unwrap().device_us;
    let gflops = f64::from(target.sms) * target.gflops_of_sm(peak.0) * peak.1;
    let variant = &choice.entry.product.as_ref().unwrap().variant;
    let [a, b, c] = request.dense_steps();
    let bytes = (a + b) * variant.operands.bytes() + c * variant.c.bytes();
    let bandwidth = f64::from(target.gb_per_s);
    [request.shape.flop() * 1e-3 / us / gflops, bytes as f64 * 1e-3 / us / bandwidth]
}

#[test]
fn cubes_reach_half_of_the_roof_and_nothing_exceeds_it() {
    let shapes = [
        [4096; 3],
        [8192; 3],
        [1024; 3],
        [256; 3],
        [1000, 700, 513],
        [1, 16384, 16384],
        [16384, 16, 16384],
        [16, 4096, 4096],
        [64, 64, 100_000],
        [32768, 32768, 8],
        [16384, 16384, 64],
    ];
    for card in &CARDS {
        let target = Target::from(card);
        let is_hopper = card.capability == (9, 0);
        for (name, compute, choose, peaks) in types() {
            let peak = peaks[usize::from(!is_hopper)];
            for shape in shapes {
                let request = request(shape, compute);
                let choice = choose(&request, &target);
                let [of_units, of_memory] = shares(&choice, &request, &target, peak);
                let what = format!(
                    "{} {name} {shape:?}: {} has {of_units:.3} and {of_memory:.3}",
                    card.name,
                    choice.entry.name()
                );
                assert!(of_units <= 1.0 && of_memory <= 1.0 + 1e-9, "{what}");
                assert!(shape != [4096; 3] || of_units >= 0.5, "{what}");
                // PTX for 9.0a runs on no other GPU.
                let declaration = choice.entry.declaration();
                assert!(is_hopper || declaration.arch.is_none(), "{what}");
                // An RTX 4090 has 99 KiB for a block, an A100 163.
                let most = if matches!(card.capability, (8 | 10, 0)) { 163 } else { 99 };
                let shared = declaration.dynamic_shared.unwrap_or(0);
                assert!(is_hopper || shared <= most << 10, "{what}");
            }
        }
    }
}

#[test]
fn a_small_product_has_smaller_tiles() {
    for target in CARDS.iter().map(Target::from) {
        for (name, compute, choose, _) in types() {
            let tile = |size: u64| {
                let choice = choose(&request([size; 3], compute), &target);
                let [rows, cols] = choice.entry.product.as_ref().unwrap().tile();
                rows * cols
            };
            let [small, large] = [256, 8192].map(tile);
            // Of f64 other GPUs than Hopper have one tile that is fast.
            let is_one = name == "f64" && target.capability != (9, 0) && small == large;
            assert!(small < large || is_one, "{name} on {target:?}: {small} and {large}");
        }
    }
}

/// Scaled ones on tensor cores, whatever the order of the operands, which are transposed before.
#[test]
fn integers_have_a_kernel_on_every_card() {
    for target in CARDS.iter().map(Target::from) {
        for [a, b] in [[[700, 1], [512, 1]], [[1, 1000], [512, 1]], [[700, 1], [1, 700]]] {
            let shape = Shape::new(1000, 512, 700).unwrap();
            for invariant in [None, Some(Invariant::Rows)] {
                let request = Request::new(shape, [a, b, [512, 1]]);
                let request = Request { scales: ROWS_COLS, invariant, ..request };
                let choice = choose_kernel::<i8, Bf16>(&request, &target, None).unwrap().1;
                let expected =
                    if target.capability == (9, 0) { Family::Wgmma } else { Family::Mma };
                let family = choice.entry.product.as_ref().unwrap().variant.family;
                assert_eq!(family, expected, "{target:?}: {}", choice.entry.name());
            }
        }
        // Sums are exact, so any kernel will do: here one for any strides.
        let request =
            Request::new(Shape::new(1000, 512, 700).unwrap(), [[1400, 2], [512, 1], [512, 1]]);
        let request = Request { invariant: Some(Invariant::Rows), ..request };
        let choice = choose_kernel::<i8, i32>(&request, &target, None).unwrap().1;
        assert_eq!(choice.entry.product.as_ref().unwrap().variant.family, Family::Gemm);
    }
}

/// A card without a row has the published rates of its compute capability.
#[test]
fn more_sms_a_higher_clock_and_a_faster_memory_are_faster() {
    let us = |target: &Target, shape| {
        let request = request(shape, Compute::Native);
        choose_kernel::<F16, F16>(&request, target, None).unwrap().1.times.unwrap().device_us
    };
    for capability in [(8, 0), (8, 6), (8, 7), (8, 9), (10, 0), (10, 3), (12, 0), (12, 1), (13, 0)]
    {
        let one = Target::gpu(capability, 40);
        let cube = us(&one, [8192; 3]);
        assert!(cube.is_finite() && cube > us(&Target { sms: 80, ..one }, [8192; 3]));
        assert!(cube > us(&Target { clock_mhz: 2 * one.clock_mhz, ..one }, [8192; 3]));
        let row = [1, 16384, 16384];
        let slow = Target { gb_per_s: one.gb_per_s / 16, ..one };
        assert!(us(&slow, row) > us(&one, row), "{one:?}");
    }
    assert_eq!(Target::gpu((9, 0), 132), Target::H200);
    let l40s = Target::gpu((8, 9), 142);
    assert_eq!((l40s.half_products, l40s.products(Unit::MmaTf32)), (512, 256));
}

/// NVIDIA's peaks in TFLOPS, dense, of f16 with sums in f32: the data sheets and the architecture
/// papers. (Of an L40S half of what is published for sparse operands.)
#[test]
fn the_rates_are_those_of_the_data_sheets() {
    for (name, unit, tflops) in [
        ("rtx3090", Unit::TensorHalf, 71.0),
        ("rtx4090", Unit::TensorHalf, 165.2),
        ("rtx5090", Unit::TensorHalf, 209.5),
        ("l40s", Unit::F32, 91.6),
        ("l40s", Unit::TensorHalf, 733.0 / 2.0),
        ("a30", Unit::TensorHalf, 165.0),
        ("a30", Unit::TensorF64, 10.3),
        ("a100", Unit::TensorHalf, 312.0),
        ("a100", Unit::F64, 9.7),
        ("h100-pcie", Unit::F32, 51.2),
        ("h100", Unit::F32, 66.9),
        ("h200", Unit::F64, 33.5),
        // 989.4 at 1830 MHz.
        ("h200", Unit::TensorHalf, 989.4 * 1980.0 / 1830.0),
    ] {
        let target = Target::from(Card::named(name).unwrap());
        let published = 1e-3 * f64::from(target.sms) * target.gflops_of_sm(unit);
        assert!((published / tflops - 1.0).abs() < 5e-3, "{name} {unit:?}: {published}");
    }
}

/// Hopper's figures are as they were measured.
#[test]
fn what_was_measured_stays() {
    let pcie = Target::from(Card::named("h100-pcie").unwrap());
    let request = request([4096, 16, 4096], Compute::Native);
    let (kernel, _) = choose_kernel::<F16, F16>(&request, &pcie, None).unwrap();
    let speed = kernel.entry.on_gpu.unwrap();
    let Scale { gflops, alone, loads, memory } = Scale::new(kernel.product, &speed, &pcie);
    assert_eq!((gflops, alone, loads, memory), (speed.gflops, speed.alone, 1.0, 1.0));
}

#[test]
fn a_block_that_needs_more_shared_memory_is_refused() {
    let request = request([4096; 3], Compute::Tf32);
    let on = |target: &Target| choose::<f32>(&request, target, Some("mma_tf32_128x128x32"));
    let target = Target::from(Card::named("rtx4090").unwrap());
    assert_eq!(on(&target).unwrap().entry.name(), "mma_tf32_128x128x32");
    let refused = on(&Target { shared: 48 << 10, ..target }).unwrap_err().to_string();
    let limit = "needs 65536 bytes of shared memory, and the GPU has 49152 for a block";
    assert!(refused.contains(limit), "{refused}");
}
