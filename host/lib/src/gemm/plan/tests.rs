//! What is launched.

mod nothing_multiplied;
mod unaligned;

use gpu::registry::{KERNELS, Product};
use simt::{Bf16, with_types};

use super::*;
use crate::{
    gemm::{Compute, Gemm, Target},
    shape::Shape,
};

/// What would be launched of f32, dense and row-major: kernels, grids, clusters, dynamic shared
/// memory.
fn planned(name: &str, shape: [u64; 3]) -> Vec<(&'static str, [u32; 3], [u32; 3], u32)> {
    let [m, n, k] = shape;
    let request = Request::dense(Shape::new(m, n, k).unwrap());
    let gemm = Gemm::<f32>::new().kernel(name).unwrap();
    let (_, plan) = gemm.plan(&request, &Target::H200, &simt::cpu::LIMITS).unwrap();
    let words = |Launch { kernel, config, .. }: Launch| {
        (kernel, config.grid, config.cluster, config.dynamic_shared)
    };
    plan.launches().map(words).collect()
}

#[test]
fn what_would_be_launched_is_known_before() {
    let one = [1; 3];
    assert_eq!(
        planned("gemm_f32_64x64x16", [100, 70, 5]),
        [("gemm_f32_64x64x16", [2, 2, 1], one, 0)]
    );
    assert_eq!(planned("basic", [100, 70, 5]), [("basic", [5, 7, 1], one, 0)]);
    // More shared memory than half of what an SM has, where there is one for each block.
    let cluster = ("tma_f32_64x64x64_nn", [8, 8, 2], [1, 1, 2], 116 << 10);
    assert_eq!(planned("tma_f32_64x64x64_nn", [512, 512, 512]), [cluster]);
    // A's rows of 51 elements, and B's of 70, are copied before.
    let copies = [("pack_rows", [1, 13, 1], one, 0), ("pack_rows", [1, 7, 1], one, 0)];
    let [a, b] = copies;
    let product = ("tma_f32_128x128x32_nn", [1, 1, 1], one, 116 << 10);
    assert_eq!(planned("tma_f32_128x128x32_nn", [100, 70, 51]), [a, b, product]);
    // Rows of blocks are 65535 at most.
    let rows = |m: u64| {
        planned("gemm_f32_32x32x8", [m, 8, 8]).iter().map(|one| one.1[1]).collect::<Vec<_>>()
    };
    assert_eq!(rows(65535 * 32 + 1), [65535, 1]);
    // Where nothing is multiplied there is nothing to copy, and where C is empty nothing to do.
    assert_eq!(planned("tma_f32_64x64x64_nn", [30, 30, 0]), [("gemm_f32_32x32x8", one, one, 0)]);
    assert_eq!(planned("tma_f32_64x64x64_nn", [0, 30, 30]), []);
    let stays = Gemm::<f32>::new().alpha(0.0).beta(1.0);
    let request = Request::dense(Shape::new(30, 30, 30).unwrap());
    let (_, plan) = stays.plan(&request, &Target::H200, &simt::cpu::LIMITS).unwrap();
    assert_eq!(plan.launches().count(), 0);
}

#[test]
fn blocks_go_on_from_product_to_product_unless_they_split_k() {
    let planned = |name, batch, shape: [u64; 3], split_k| {
        let [m, n, k] = shape;
        let request = Request { batch, ..Request::dense(Shape::new(m, n, k).unwrap()) };
        let gemm = Gemm::<Bf16>::new().kernel(name).unwrap().split_k(split_k).unwrap();
        let (_, plan) = gemm.plan(&request, &Target::H200, &simt::cpu::LIMITS).unwrap();
        let words = |one: Launch| (one.config.grid, one.config.cluster);
        plan.launches().map(words).collect::<Vec<_>>()
    };
    let one = [1; 3];
    // Three blocks an SM: 396 would need three rounds, and so do 342.
    let small = "wgmma_bf16_64x64x64_nn";
    assert_eq!(planned(small, 1024, [64, 64, 64], 1), [([342, 1, 1], one)]);
    assert_eq!(planned(small, 10, [64, 104, 256], 3), [([20, 1, 3], [1, 1, 3])]);
    // Two blocks have a tile, and do not split k.
    let large = "wgmma_bf16_256x256x64_c2_nn";
    assert_eq!(planned(large, 5, [512, 512, 64], 3), [([40, 1, 1], [2, 1, 1])]);
    assert_eq!(planned(large, 40, [512, 512, 64], 1), [([108, 1, 1], [2, 1, 1])]);
}

/// Every launch of a plan, of copies too, is one that a device takes: of many products, of
/// unaligned rows, of few and of many rows and columns, on GPUs of each kind.
#[test]
fn every_launch_is_within_the_limits_of_a_grid() {
    let limits = simt::cpu::LIMITS;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |most: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        1 + (random >> 11) % most
    };
    let (mut launched, mut copied) = (0, 0);
    for capability in [(8, 0), (8, 9), (9, 0), (10, 0), (12, 0)] {
        let target = Target { capability, ..Target::H200 };
        for number in 0..400 {
            let [most_m, most_n] = [[40, 40], [40, 9000], [9000, 40], [5000, 5000]][number % 4];
            let shape = Shape::new(draw(most_m), draw(most_n), draw(300)).unwrap();
            let batch = [1, 3, 65_535, 65_536, 200_001][draw(5) as usize - 1];
            let aligned = [(); 3].map(|()| draw(2) == 1);
            let request = Request { batch, aligned, ..Request::dense(shape) };
            let limit = Gemm::<Bf16>::new().workspace_limit(u64::MAX);
            let (choice, plan) = limit.plan(&request, &target, &limits).unwrap();
            assert!(plan.launches().count() > 0);
            // Of all products; a plan's launches that multiply share what each of them needs.
            let is_one = plan.launches().filter(|one| one.role == Role::Multiply).count() == 1;
            let (needed, most) = (2 * plan.workspace as u64, choice.workspace_bytes);
            assert!(
                if is_one { needed == most } else { needed <= most },
                "{needed} {most} {request:?}"
            );
            plan.launched().for_each(check_bound);
            for Launch { kernel, config, .. } in plan.launches() {
                let what = format!("{kernel} {config:?}, {shape}, {batch} products, {target:?}");
                for axis in 0..3 {
                    let (blocks, threads) = (config.grid[axis], config.block[axis]);
                    assert!((1..=limits.grid[axis]).contains(&blocks), "{what}");
                    assert!((1..=limits.block[axis]).contains(&threads), "{what}");
                    assert!(blocks.is_multiple_of(config.cluster[axis]), "{what}");
                }
                assert!(config.threads() <= limits.block_threads.into(), "{what}");
                launched += 1;
                copied += usize::from(kernel == "pack_rows_u16");
            }
        }
    }
    assert!(launched > 2000 && copied > 50, "{launched} {copied}");
    // As many matrices as are copied at once, and one more.
    let request = Request { batch: 65_536, ..Request::dense(Shape::new(7, 16, 31).unwrap()) };
    let gemm = Gemm::<Bf16>::new().kernel("wgmma_bf16_64x64x64_nn").unwrap();
    let (_, plan) = gemm.plan(&request, &Target::H200, &limits).unwrap();
    let layers = plan.launches().filter(|one| one.kernel == "pack_rows_u16");
    assert_eq!(layers.map(|one| one.config.grid[2]).collect::<Vec<_>>(), [65_535, 1]);
}

/// The memory of a binding, where it is in it, and whether the kernel writes it. A map reaches to
/// the end.
fn places(binding: &Binding) -> Vec<(String, Range<usize>, bool)> {
    let range = |part: Part| part.start..part.len.map_or(usize::MAX, |len| part.start + len);
    match binding {
        Binding::Read(input, part) => vec![(format!("{input:?}"), range(*part), false)],
        Binding::Write(target, part) | Binding::Stores(target, part, _) => {
            vec![(format!("{target:?}"), range(*part), true)]
        }
        Binding::Maps(maps) => {
            let place = |map: &binding::Map| {
                let [matrices, rows, cols] = map.extents;
                let last = (matrices - 1) * map.strides[0] + (rows - 1) * map.strides[1] + cols;
                (format!("{:?}", map.from), map.start..map.start + last, false)
            };
            maps.iter().map(place).collect()
        }
        _ => Vec::new(),
    }
}

/// Each parameter of the kernel is bound once, and no element that the kernel writes is in two
/// bindings: the executor makes both without asking. (The kernel orders its accesses to the columns
/// of B that it packs itself.)
fn check_bound(launched: &Launched) {
    let declaration = launched.kernel.declaration();
    let named = launched.arguments.iter().map(|argument| (argument.parameter, ()));
    declaration.in_order(named).unwrap();
    let of = |argument: &Argument| places(&argument.binding);
    for (number, one) in launched.arguments.iter().enumerate() {
        for other in &launched.arguments[number + 1..] {
            if ["to", "b"] == [one.parameter, other.parameter] {
                continue;
            }
            for (memory, range, is_written) in of(one) {
                for (other_memory, other_range, other_is_written) in of(other) {
                    let is_apart =
                        range.start.max(other_range.start) >= range.end.min(other_range.end);
                    let is_shared = memory == other_memory && !is_apart;
                    assert!(
                        !is_shared || !is_written && !other_is_written,
                        "{}: {one:?} and {other:?}",
                        declaration.name
                    );
                }
            }
        }
    }
}

/// As above, of every kernel by its name: whole, split, of partial products, with slices,
/// unaligned.
#[test]
fn every_parameter_of_every_kernel_is_bound_once() {
    fn check<T: Scalar<O>, O: Output>(name: &str, compute: Compute) -> usize {
        let mut checked = 0;
        for (number, [m, n, k]) in
            [[1, 1, 1], [33, 70, 129], [700, 300, 515]].into_iter().enumerate()
        {
            for (partials, batch, aligned) in [(1, 1, true), (3, 1, false), (1, 3, false)] {
                let request = Request {
                    batch,
                    aligned: [aligned; 3],
                    ..Request::dense(Shape::new(m, n, k).unwrap())
                };
                let gemm = Gemm::<T, O>::of_types().compute(compute).kernel(name).unwrap();
                let gemm = gemm.partials(if number == 0 { 1 } else { partials }).unwrap();
                let gemm = gemm.workspace_limit(u64::MAX);
                let Ok((_, plan)) = gemm.plan(&request, &Target::H200, &simt::cpu::LIMITS) else {
                    continue;
                };
                plan.launched().for_each(check_bound);
                checked += 1;
            }
        }
        checked
    }
    for entry in KERNELS.iter() {
        let Some(Product { variant, .. }) = entry.product else { continue };
        let types = (variant.operands, variant.c);
        let compute = match variant.scheme {
            Scheme::Bf16x6 => Compute::Fp32Bf16x6,
            Scheme::F16x3 => Compute::Fp32F16x3,
            Scheme::Native | Scheme::Tf32 => Compute::Tf32,
        };
        let checked = with_types!(types, |T, C| check::<T, C>(entry.name(), compute)).unwrap();
        assert!(checked >= 3, "{}: {checked}", entry.name());
    }
}
