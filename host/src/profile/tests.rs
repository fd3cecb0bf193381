use gpu_gemm::{
    Bf16, Compute, F16, Gemm,
    gemm::{CARDS, Card, Output, Request, Scalar, Target},
};
use simt::{check::Operation, types::NumberFormat};

use super::*;

fn shape(m: u64, n: u64, k: u64) -> Shape {
    Shape::new(m, n, k).unwrap()
}

fn profile(kernel: &str, shape: Shape, every: u32) -> Profile {
    let entry = gpu_gemm::product::find(kernel).unwrap();
    let profiled = product(entry, shape, NonZeroU32::new(every).unwrap(), 1).unwrap();
    assert!(profiled.findings.is_empty(), "{:?}", profiled.findings);
    profiled.profile
}

fn values(profile: &Profile) -> Vec<u64> {
    totals(profile, NumberFormat::F32).iter().map(|total| total.value).collect()
}

#[test]
fn the_totals_of_a_small_aligned_product() {
    let shape = shape(64, 64, 32);
    let profile = profile("tiled16", shape, 1);
    // 16 blocks of 8 warps in 2 phases.
    let steps = 16 * 8 * 2;
    let stores = 16 * 8;
    // A warp loads and stores two rows of sixteen floats, two sectors each. In a phase it reads
    // both tiles sixteen times, stores to both once, and waits twice.
    let expected = [
        steps * 2,
        stores,
        steps * 2 * 4,
        stores * 4,
        steps * 32,
        steps * 2,
        steps * 32,
        steps * 2,
        64 * 64 * 32,
        steps * 2,
    ];
    assert_eq!(values(&profile), expected);
    // A's tile is read along its row: sixteen reads become four of 128 bits, two wavefronts each.
    let merged = totals(&profile, NumberFormat::F32)
        .iter()
        .filter_map(|total| total.merged)
        .collect::<Vec<_>>();
    assert_eq!(merged[0], steps * (16 + 4));
    let loaded = flop_per_byte(&profile, Operation::GlobalLoad, shape).unwrap();
    assert_eq!(loaded, 2.0 * 64.0 * 64.0 * 32.0 / (steps * 2 * 4 * 32) as f64);
    assert_eq!((divergent_share(&profile), profile.worst()), (0.0, None));
}

#[test]
fn a_sample_comes_within_a_few_percent_of_all() {
    let shape = shape(330, 500, 129);
    let (all, some) = (profile("tiled16", shape, 1), profile("tiled16", shape, 4));
    assert_eq!((all.blocks, all.sampled), (32 * 21, 32 * 21));
    assert!((120..220).contains(&some.sampled), "{}", some.sampled);
    for (all, some) in totals(&all, NumberFormat::F32).iter().zip(totals(&some, NumberFormat::F32))
    {
        let (name, all, some) = (all.name, all.value as f64, some.value as f64);
        assert!((all - some).abs() <= 0.04 * all, "{name}: {all} {some}");
    }
}

#[test]
fn what_is_far_from_ideal_is_found() {
    // A warp reads two elements of A in two sectors. They would fit into one. B's stride of 129 is
    // not a multiple of eight.
    let profile = profile("basic", shape(32, 129, 40), 1);
    let worst = profile.worst().expect("there is one");
    let most = profile.lines.iter().map(|line| line.units - line.ideal).max();
    assert_eq!((Some(worst.units - worst.ideal), worst.operation), (most, Operation::GlobalLoad));
    assert!(worst.over_ideal().is_some_and(|times| times >= 1.25));
}

#[test]
fn launches_of_a_tall_product_are_added_up() {
    let shape = shape(65535 * 16 + 5, 1, 1);
    let profile = profile("basic", shape, 4096);
    assert_eq!(profile.blocks, 65536);
    // The first block of each launch is always counted.
    assert!((2..60).contains(&profile.sampled), "{}", profile.sampled);
    let sites = profile.lines.iter().map(|line| (&line.place, line.operation));
    assert_eq!(sites.collect::<std::collections::BTreeSet<_>>().len(), profile.lines.len());
}

#[test]
fn all_of_a_small_grid_and_some_hundred_blocks_of_a_large_one() {
    let entry = gpu_gemm::product::find("tiled16").unwrap();
    let every = |m, n| default_every(entry, shape(m, n, 1)).unwrap().get();
    assert_eq!((every(0, 5), every(1, 1), every(256, 256)), (1, 1, 1));
    assert_eq!((every(1000, 700), every(4096, 4096)), (2772 / 256, 256));
    let large_blocks = gpu_gemm::product::find("tiled32").unwrap();
    assert_eq!(default_every(large_blocks, shape(1000, 700, 1)).unwrap().get(), 704 / 64);
}

#[test]
fn memory_is_not_overdrawn() {
    // Kept to the end of a block: an element of A and one of B, for each of 256 threads and each
    // k-step.
    let entry = gpu_gemm::product::find("basic").unwrap();
    let long = shape(1, 1, u32::MAX.into());
    let error = product(entry, long, NonZeroU32::MIN, 1).unwrap_err();
    assert!(matches!(error, gpu_gemm::Error::OutOfMemory { .. }), "{error}");
}

#[test]
fn occupancy_on_named_gpus_and_not_on_the_cpu() {
    let entry = gpu_gemm::product::find("tiled32").unwrap();
    let launches = launches(entry, shape(64, 64, 64), &simt::cpu::LIMITS).unwrap();
    let config = &launches[0].config;
    for name in ["sm_80", "A100", "sm_90", "sm_90a", "h100", "H200"] {
        let fit = on_gpu(entry, config, gpu(name).unwrap());
        let occupancy = fit.occupancy.expect(name);
        assert_eq!((occupancy.blocks, occupancy.warps), (2, 64), "{name}");
        assert!(fit.source.starts_with("ptxas "), "{name}");
    }
    let error = gpu("v100").unwrap_err().to_string();
    assert!(error.contains("v100") && error.contains("sm_86, sm_89"), "{error}");
    assert!(on_device(entry, config, &Device::cpu()).is_err());
}

/// What is chosen for a card fits into its SMs: threads, registers and shared memory.
#[test]
fn what_is_planned_for_a_card_fits_into_an_sm() {
    fn check<T: Scalar<O>, O: Output>(card: &Card, request: &Request, compute: Compute) {
        let gemm = Gemm::<T, O>::of_types().compute(compute);
        let (choice, plan) = gemm.plan(request, &Target::from(card), &simt::cpu::LIMITS).unwrap();
        for launch in plan.launches() {
            let entry = ::gpu::registry::find(launch.kernel).unwrap();
            let fit = on_gpu(entry, &launch.config, gpu(card.name).unwrap());
            let what = format!("{} on {}: {fit:?}", choice.entry.name(), card.name);
            assert!(fit.occupancy.expect(&what).blocks > 0, "{what}");
        }
    }
    for card in &CARDS {
        for [m, n, k] in [[4096, 4096, 4096], [512, 512, 512], [1000, 700, 513], [4, 4096, 4096]] {
            let request = Request::dense(shape(m, n, k));
            for compute in [Compute::Native, Compute::Tf32] {
                check::<f32, f32>(card, &request, compute);
            }
            check::<f64, f64>(card, &request, Compute::Native);
            check::<Bf16, Bf16>(card, &request, Compute::Native);
            check::<F16, f32>(card, &request, Compute::Native);
            check::<i8, i32>(card, &request, Compute::Native);
        }
    }
}
