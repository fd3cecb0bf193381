//! Which kernel is taken, of an H200 and others.

mod permissions;

use gpu::registry::{self, Family, Scheme, Variant};
use simt::Bf16;

use super::*;
use crate::{
    Compute, Shape,
    gemm::{DEFAULT_WORKSPACE_LIMIT, Ineligible, Times, select::layout::OperandPlan},
};

fn variant(name: &str) -> Variant {
    registry::find(name).and_then(|entry| entry.product.as_ref()).unwrap().variant
}

fn request(shape: [u64; 3], workspace_limit: u64) -> Request {
    let [m, n, k] = shape;
    Request { workspace_limit, ..Request::dense(Shape::new(m, n, k).unwrap()) }
}

fn of(name: &str, request: &Request) -> Candidate {
    let kernel = scalar::find::<f32, f32>(name).unwrap();
    candidate(kernel, &request.as_launched(), &Target::H200)
}

#[test]
fn a_workspace_beyond_the_limit_is_refused_with_both_figures() {
    let nn = |limit| of("tma_f32_128x128x32_nn", &request([4096, 4096, 4095], limit));
    // A's rows have 4095 elements, B's 4096.
    let needed = 4 * 4096 * 4096;
    assert_eq!((nn(needed).workspace_bytes, nn(needed).ineligible), (needed, None));
    let refused = nn(needed - 1).ineligible.unwrap();
    assert_eq!(refused, Ineligible::Workspace { needed, limit: needed - 1 });
    assert_eq!(refused.to_string(), "needs 67108864 bytes of workspace, and the limit is 67108863");
    let named = |limit| {
        let request = request([4096, 4096, 4095], limit);
        choose::<f32>(&request, &Target::H200, Some("tma_f32_128x128x32_nn"))
    };
    assert_eq!(named(needed).unwrap().workspace_bytes, needed);
    let error = named(0).unwrap_err().to_string();
    let expected =
        "kernel = tma_f32_128x128x32_nn: needs 67108864 bytes of workspace, and the limit is 0";
    assert_eq!(error, expected);
    assert_eq!(of("gemm_f32_128x128x8", &request([4096, 4096, 4095], 0)).workspace_bytes, 0);
    // Both, in a batch; and one, where the other's rows are as they should be though its matrices
    // are not: whole lines, of 32 elements.
    let lines = |elements: u64| 4 * elements.next_multiple_of(32);
    let both = Request { batch: 3, ..request([10, 7, 5], 1 << 20) };
    assert_eq!(
        of("tma_f32_64x64x64_nn", &both).workspace_bytes,
        lines(3 * 10 * 8) + lines(3 * 5 * 8)
    );
    let beside = Request { aligned: [false, true, true], ..request([10, 8, 12], 1 << 20) };
    assert_eq!(of("tma_f32_64x64x64_nn", &beside).workspace_bytes, lines(10 * 12));
    // Columns side by side: it is launched as B^T A^T, and what was B is A.
    let turned = Request { strides: [[1, 10], [1, 5], [1, 10]], ..request([10, 7, 5], 1 << 20) };
    assert_eq!(of("tma_f32_64x64x64_nn", &turned).workspace_bytes, lines(7 * 8) + lines(5 * 12));
}

#[test]
fn operands_are_put_before_a_kernel_as_it_reads_them() {
    let (m, n, k) = (20, 12, 32);
    let by_rows = [[k, 1], [n, 1], [n, 1]];
    let by_cols = [[1, m], [1, k], [1, m]];
    let request = |a: bool, b: bool, c: bool| {
        let lies = |matrix: usize, by_rows_is: bool| {
            if by_rows_is { by_rows[matrix] } else { by_cols[matrix] }
        };
        let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
        Request::new(shape, [lies(0, a), lies(1, b), lies(2, c)])
    };
    let operands = |name: &str, request: Request| {
        let choice = choose::<f32>(&request, &Target::H200, Some(name)).ok()?;
        let OperandPlan { swap_ab, transpose: [_, transpose], .. } = choice.operands;
        Some((swap_ab, transpose, choice.workspace_bytes))
    };
    let [nn, tn] = ["tma_f32_64x64x64_nn", "tma_f32_64x64x64_tn"]
        .map(|name| move |a, b, c| operands(name, request(a, b, c)));
    // A C of columns side by side is swapped before, which the swap here may undo.
    assert_eq!(nn(true, true, true), Some((false, false, 0)));
    assert_eq!(nn(true, true, false), Some((true, false, 0)));
    assert_eq!(nn(false, false, true), Some((true, false, 0)));
    assert_eq!(nn(false, false, false), Some((false, false, 0)));
    // B, 12 x 32, is smaller than A, 20 x 32.
    assert_eq!(nn(true, false, true), Some((false, true, 4 * 12 * 32)));
    // With a C of columns a copy of A, which is larger, leaves C contiguous.
    assert_eq!(nn(true, false, false), Some((false, true, 4 * 20 * 32)));
    assert_eq!((nn(false, true, true), nn(false, true, false)), (None, None));
    assert_eq!(tn(false, true, true), Some((false, false, 0)));
    assert_eq!(tn(false, true, false), Some((false, false, 0)));
    for (a, b) in [(true, true), (true, false), (false, false)] {
        assert_eq!((tn(a, b, true), tn(a, b, false)), (None, None));
    }
    // A is as it should be, but for its rows, which are copied: a transpose costs no more.
    let mut odd = request(true, false, true);
    odd.strides[0][0] = 33;
    assert_eq!(operands("tma_f32_64x64x64_nn", odd), Some((true, true, 4 * 20 * 32)));
    odd.strides[1][1] = 33;
    let both = 4 * (20 * 32 + 12 * 32);
    assert_eq!(operands("tma_f32_64x64x64_nn", odd), Some((false, true, both)));
    odd.workspace_limit = both - 1;
    assert_eq!(operands("tma_f32_64x64x64_nn", odd), None);
    // A row alone is contiguous along both sides; swapped, it is copied to rows of one element.
    let row = Shape::new(1, n as u64, k as u64).unwrap();
    let one = Request::new(row, [[1, 1], [1, k], [n, 1]]);
    assert_eq!(operands("tma_f32_64x64x64_nn", one), Some((false, false, 4 * 32 * 4)));
}

#[test]
fn on_an_h200_auto_takes_tensor_copies_where_there_is_enough_to_do() {
    let auto = |shape, target: &Target| {
        let request = request(shape, DEFAULT_WORKSPACE_LIMIT);
        let choice = choose::<f32>(&request, target, None).unwrap();
        (choice.entry.name(), choice.split_k)
    };
    let ampere = Target::gpu((8, 0), 108);
    for (shape, kernel, split_k) in [
        ([4096, 4096, 4096], "tma_f32_128x128x32_nn", 1),
        ([2048, 2048, 2048], "tma_f32_128x128x32_nn", 1),
        ([1024, 1024, 1024], "tma_f32_64x64x64_nn", 1),
        ([512, 512, 512], "tma_f32_64x64x64_nn", 2),
        ([64, 64, 64], "tiled16", 1),
    ] {
        assert_eq!(auto(shape, &Target::H200), (kernel, split_k), "{shape:?}");
        let (elsewhere, _) = auto(shape, &ampere);
        assert_ne!(variant(elsewhere).family, Family::Tma, "{shape:?}: {elsewhere}");
    }
    // Few rows or columns: a thin tile, and k split between blocks.
    for (shape, kernel) in
        [([16, 4096, 4096], "tma_f32_16x256x32_nn"), ([4096, 16, 4096], "tma_f32_256x16x32_nn")]
    {
        let (taken, split_k) = auto(shape, &Target::H200);
        assert!(taken == kernel && split_k > 1, "{taken} by {split_k}");
    }
    assert_eq!(auto([1000, 700, 513], &Target::H200), ("tma_f32_72x80x8_ua4_nn", 1));
    let cpu = Target::cpu(2);
    assert_eq!(auto([32, 32, 32], &cpu).0, "gemm_f32_32x32x8");
    assert_eq!(auto([1000, 700, 513], &cpu).0, "gemm_f32_128x128x8");
}

/// What was the fastest of all on an H200 (docs/log/selection.md), or within a tenth of it.
#[test]
fn on_an_h200_auto_takes_the_tiles_of_tensor_cores_that_were_the_fastest() {
    for (shape, tile, split_k) in [
        ([1024, 1024, 1024], "64x128x64", 1),
        ([2048, 2048, 2048], "256x256x64_c2", 1),
        ([4096, 4096, 4096], "256x256x64_c2", 1),
        ([16, 4096, 4096], "64x16x64", 2),
        ([64, 4096, 4096], "64x64x64_s12", 1),
        ([128, 4096, 4096], "64x128x64", 1),
        ([8192, 8192, 64], "256x256x64_c2", 1),
        ([4096, 16, 4096], "64x16x64", 2),
    ] {
        let request = request(shape, DEFAULT_WORKSPACE_LIMIT);
        let choice = choose_kernel::<Bf16, Bf16>(&request, &Target::H200, None).unwrap().1;
        // Swapped, `nn` is `tt`.
        let way = if (tile, shape[0]) == ("64x16x64", 16) { "tt" } else { "nn" };
        let wanted = (format!("wgmma_bf16_{tile}_{way}"), split_k);
        assert_eq!((choice.entry.name().to_owned(), choice.split_k), wanted, "{shape:?}");
    }
}

/// As long as copies would take the longer part. Of a large product an A along k takes none, and B
/// is copied.
#[test]
fn on_an_h200_small_operands_whose_rows_begin_anywhere_are_gathered() {
    for (shape, kernel, copies) in [
        ([1000, 700, 513], "wgmma_bf16_64x128x64_ldg_nn", false),
        ([511, 509, 513], "wgmma_bf16_64x64x64_ldg_nn", false),
        ([1000, 704, 512], "wgmma_bf16_64x128x64_nn", false),
        ([4096, 4096, 4095], "wgmma_bf16_256x256x64_c2_ua16_nn", false),
        ([4095, 4093, 4097], "wgmma_bf16_256x256x64_c2_ua16_nn", true),
        // Of sixteen classes there would be 32 tiles one below the other, and of eight there
        // are 24.
        ([6143, 6141, 4097], "wgmma_bf16_256x256x64_c2_ua8_nn", true),
        ([4096, 4093, 4096], "wgmma_bf16_256x256x64_c2_nn", true),
    ] {
        let request = request(shape, DEFAULT_WORKSPACE_LIMIT);
        let choice = choose_kernel::<Bf16, Bf16>(&request, &Target::H200, None).unwrap().1;
        assert_eq!(choice.entry.name(), kernel, "{shape:?}");
        assert_eq!(choice.workspace_bytes > 0, copies, "{shape:?}");
    }
}

/// What one SM draws from the L2 limits small tiles, the more where rows begin within a line; and
/// large ones may leave most of the last round idle.
#[test]
fn on_an_h200_tiles_are_as_large_as_what_is_drawn_wants() {
    for (size, tile) in [
        (1000, "128x128x64"),
        (1200, "128x128x64"),
        (1280, "128x128x64"),
        (1400, "256x192x64_c2"),
        (1536, "256x192x64_c2"),
        (1800, "256x256x64_c2"),
        (2000, "256x256x64_c2"),
        (2304, "256x192x64_c2"),
        (2400, "256x192x64_c2"),
        (2560, "256x256x64_c2"),
        (3000, "256x192x64_c2"),
        (3072, "256x192x64_c2"),
        (3328, "256x256x64_c2"),
        (4000, "256x256x64_c2"),
        (5000, "256x256x64_c2"),
    ] {
        let request = request([size; 3], DEFAULT_WORKSPACE_LIMIT);
        let choice = choose_kernel::<Bf16, Bf16>(&request, &Target::H200, None).unwrap().1;
        assert_eq!(choice.entry.name(), format!("wgmma_bf16_{tile}_nn"), "{size}");
    }
}

/// For many small products three blocks with few stages are faster than one with many: on an H100
/// by 15 and 9 % for 64 x 64 x 64.
#[test]
fn on_hopper_batches_have_the_tiles_that_were_the_fastest() {
    for batch in [1024, 4096] {
        let request = Request { batch, ..request([64; 3], DEFAULT_WORKSPACE_LIMIT) };
        let choice = choose_kernel::<Bf16, Bf16>(&request, &Target::H200, None).unwrap().1;
        assert_eq!(choice.entry.name(), "wgmma_bf16_64x64x64_nn", "{batch}");
    }
}

/// The fastest of all kernels and splits measured, on an H100 (docs/log/selection.md, "Random
/// shapes"), with its time and that of the kernel that was taken before, in microseconds.
#[test]
fn on_hopper_random_shapes_have_the_kernels_that_were_the_fastest() {
    let of = |ty: &str, batch, shape| {
        let compute = if ty == "tf32" { Compute::Tf32 } else { Compute::Native };
        let request = Request { batch, compute, ..request(shape, DEFAULT_WORKSPACE_LIMIT) };
        let choice = match ty {
            "bf16" => choose::<Bf16>(&request, &Target::H200, None),
            "f64" => choose::<f64>(&request, &Target::H200, None),
            _ => choose::<f32>(&request, &Target::H200, None),
        };
        let Choice { entry, split_k, partials, .. } = choice.unwrap();
        (entry.name(), split_k, partials)
    };
    for (ty, batch, shape, wanted) in [
        // Tall: 25.4, 48.1 (64 x 64 through registers: 54.7), 690 with unaligned rows (887 with 32
        // x 32).
        ("f32", 1, [237688, 8, 24], ("tma_f32_256x16x32_nn", 1, 1)),
        ("f32", 1, [188298, 40, 24], ("tma_f32_256x16x32_nn", 1, 1)),
        ("f32", 1, [11875, 26, 21805], ("gemm_f32_64x32x16", 1, 16)),
        // 33.9: C streams at 2.4 TB/s.
        ("f32", 1, [4096, 4096, 16], ("gemm_f32_128x128x8", 1, 1)),
        // 16.9 (28.5 in 13 partial products), 25.0 (31.8 in 4).
        ("f32", 1, [10, 1264, 3232], ("tma_f32_16x256x32_nn", 8, 1)),
        ("f32", 1, [30, 3073, 1025], ("tma_f32_16x256x32_nn", 4, 1)),
        // 79.9; a launch takes 856.
        ("f32", 1, [90, 8, 297048], ("tma_f32_256x16x32_nn", 1, 245)),
        // 8.8, and 12.9 with tensor maps.
        ("f32", 348, [32, 80, 32], ("gemm_f32_32x32x8", 1, 1)),
        // 22.0 (32.6), 72.9 (107.7 in two partial products).
        ("tf32", 1, [23, 3223, 1091], ("wgmma_tf32_32x32x32_nn", 1, 1)),
        ("tf32", 1, [286, 3073, 3073], ("wgmma_tf32_128x128x32_nn", 1, 1)),
        // 50.9 (84.6): B's rows are unaligned.
        ("tf32", 1, [38, 45, 140579], ("mma_tf32_64x64x32", 1, 245)),
        // 34.5 (142.7), 20.0 (53.4), 27.4 (35.4), 7.5 (9.3).
        ("bf16", 1, [237688, 8, 24], ("wgmma_bf16_64x64x64_ldg_nn", 1, 1)),
        ("bf16", 1, [107691, 5, 17], ("wgmma_bf16_64x64x64_ldg_nn", 1, 1)),
        ("bf16", 1, [188298, 40, 24], ("wgmma_bf16_64x64x64_ldg_nn", 1, 1)),
        ("bf16", 1, [8398, 8, 440], ("wgmma_bf16_64x64x64_ldg_nn", 1, 1)),
        // 12.9 (26.2 in 4 partial products), 10.3 (18.6 in 4), 12.3 (19.3 in 2).
        ("bf16", 1, [23, 3223, 1091], ("wgmma_bf16_64x64x64_ldg_nn", 1, 1)),
        ("bf16", 1, [810, 42, 793], ("wgmma_bf16_64x64x64_ldg_nn", 1, 1)),
        ("bf16", 1, [30, 3073, 1025], ("wgmma_bf16_64x64x64_ldg_nn", 1, 1)),
        // 10.0 (11.5): the host is done sooner without tensor maps.
        ("bf16", 1, [280, 280, 280], ("wgmma_bf16_64x64x64_ldg_nn", 1, 1)),
        // Threads that split k: 6.8 (17.9), 19.7 (39.3).
        ("f32", 1, [2, 378, 1657], ("gemm_f32_4x4x256_dot", 1, 1)),
        ("f32", 1, [24, 8, 134312], ("gemm_f32_8x16x64_dot", 1, 124)),
        // On an H200 (docs/log/mma.md, "By TMA"): 45.1 (64 x 64: 54.4), 2590 (2613 with 128 x 64).
        ("f64", 1, [1024; 3], ("mma_f64_64x32x32_nn", 1, 1)),
        ("f64", 1, [4096; 3], ("mma_f64_64x64x16_nn", 1, 1)),
        // Predicted: tiles of tensor cores took four times as long as cuBLAS.
        ("f64", 1, [8, 8, 134312], ("gemm_f64_8x16x64_dot", 1, 234)),
        ("f64", 1, [14, 1, 1027386], ("gemm_f64_4x4x256_dot", 1, 32)),
    ] {
        assert_eq!(of(ty, batch, shape), wanted, "{ty} {batch} of {shape:?}");
    }
}

/// With A and B column-major a tf32 kernel computes C^T, or reads copies. On an H100 180328 x 408 x
/// 644 takes 583 us as C^T, and 2180^3 129; with copies that takes 113 (docs/log/selection.md, "By
/// columns").
#[test]
fn a_tf32_kernel_stores_columns_where_that_is_faster_than_copies() {
    let plan = |[m, n, k]: [u64; 3]| {
        let strides = [[1, m as usize], [1, k as usize], [n as usize, 1]];
        let compute = Compute::Tf32;
        let shape = Shape::new(m, n, k).unwrap();
        let request = Request { compute, ..Request::new(shape, strides) };
        let choice = choose::<f32>(&request, &Target::H200, Some("wgmma_tf32_256x256x32_c2_nn"));
        let choice = choice.unwrap();
        (choice.operands.swap_ab, choice.workspace_bytes)
    };
    assert_eq!(plan([180328, 408, 644]), (true, 0));
    // Rows of C are whole sectors, or one tile has all of them.
    assert_eq!(plan([28812, 200, 600]), (true, 0));
    assert_eq!(plan([57800, 92, 372]), (true, 0));
    assert_eq!(plan([2180; 3]), (false, 2 * 4 * 2180 * 2208));
}

/// A shorter last range of k has a launch of its own, which takes the host and the GPU more time.
#[test]
fn a_shorter_last_range_is_counted() {
    let us = |k| {
        let request = Request { partials: Some(8), ..request([64, 64, k], 1 << 20) };
        let kernel = scalar::find::<f32, f32>("gemm_f32_32x32x8").unwrap();
        partials::of_kernel(kernel, &request, &Target::H200).unwrap().us().unwrap()
    };
    assert!(us(8 * 1024 - 1) > us(8 * 1024) + 5.0, "{} {}", us(8 * 1024 - 1), us(8 * 1024));
}

#[test]
fn bf16_is_multiplied_on_tensor_cores_wherever_they_are() {
    let auto = |shape, target: &Target| {
        let request = request(shape, DEFAULT_WORKSPACE_LIMIT);
        choose::<Bf16>(&request, target, None).unwrap().entry.name()
    };
    // Hopper has faster ones than those of every device, whatever rows begin at.
    for shape in [[4096; 3], [4096, 4096, 4095], [1000, 700, 513]] {
        assert_eq!(variant(auto(shape, &Target::H200)).family, Family::Wgmma, "{shape:?}");
    }
    for capability in [(8, 0), (8, 6), (8, 9), (10, 0), (12, 0)] {
        let target = Target::gpu(capability, 132);
        for (shape, kernel) in [
            ([4096; 3], "mma_bf16_128x256x32"),
            ([1024; 3], "mma_bf16_64x64x64"),
            ([256; 3], "mma_bf16_64x64x64"),
            // Unaligned rows are not copied in pieces.
            ([4095, 4093, 4097], "mma_bf16_64x64x64"),
        ] {
            assert_eq!(auto(shape, &target), kernel, "{capability:?} {shape:?}");
        }
    }
    assert_eq!(auto([64; 3], &Target::cpu(2)), "gemm_bf16_64x64x16");
}

#[test]
fn tf32_is_multiplied_on_tensor_cores_wherever_they_are() {
    let auto = |shape, compute, target: &Target| {
        let request = Request { compute, ..request(shape, DEFAULT_WORKSPACE_LIMIT) };
        choose::<f32>(&request, target, None).unwrap().entry.name()
    };
    for shape in [[4096; 3], [512; 3]] {
        let name = auto(shape, Compute::Tf32, &Target::H200);
        let Variant { family, scheme, .. } = variant(name);
        assert_eq!((family, scheme), (Family::Wgmma, Scheme::Tf32), "{shape:?}: {name}");
    }
    // An unaligned K-major A is not copied.
    for (shape, kernel) in [
        ([4096; 3], "wgmma_tf32_256x256x32_c2_nn"),
        ([4095, 4093, 4097], "wgmma_tf32_256x256x32_c2_ua8_nn"),
        ([4096, 4096, 4100], "wgmma_tf32_256x256x32_c2_nn"),
        ([4100, 4100, 4100], "wgmma_tf32_256x256x32_c2_nn"),
        ([3072, 3072, 3072], "wgmma_tf32_192x256x32_c2_nn"),
        ([1000, 700, 513], "wgmma_tf32_128x64x32_ua8_nn"),
    ] {
        assert_eq!(auto(shape, Compute::Tf32, &Target::H200), kernel, "{shape:?}");
    }
    for capability in [(8, 0), (8, 6), (8, 9), (10, 0), (12, 0)] {
        let target = Target::gpu(capability, 132);
        let is_geforce = target.half_products == 256;
        for (shape, kernel) in [
            ([4096; 3], "mma_tf32_128x128x32"),
            // A GeForce's tensor cores in tf32 are no faster than its CUDA cores in f32.
            ([512; 3], if is_geforce { "gemm_f32_32x32x8" } else { "mma_tf32_64x64x32" }),
            (
                [4095, 4093, 4097],
                if is_geforce { "gemm_f32_128x128x16" } else { "mma_tf32_128x128x32" },
            ),
        ] {
            let name = auto(shape, Compute::Tf32, &target);
            assert_eq!(name, kernel, "{capability:?} {shape:?}");
            let native = auto(shape, Compute::Native, &target);
            assert_ne!(variant(native).scheme, Scheme::Tf32, "{capability:?} {shape:?}: {native}");
            if shape[0] > 4000 {
                assert_eq!(native, "gemm_f32_128x128x16", "{capability:?} {shape:?}");
            }
        }
    }
    assert_eq!(auto([512; 3], Compute::Tf32, &Target::cpu(2)), "gemm_f32_128x128x8");
}

#[test]
fn k_is_split_among_as_many_blocks_as_find_room() {
    let split = |name, shape| of(name, &request(shape, 1 << 20)).split_k;
    // Where there is one tile, as far as a cluster goes.
    assert_eq!(split("tma_f32_64x64x64_nn", [64, 64, 4096]), 8);
    // Tiles of 128 x 128 elements split nothing.
    assert_eq!(split("tma_f32_128x128x32_nn", [128, 128, 4096]), 1);
    assert_eq!(split("gemm_f32_64x64x16", [64, 64, 4096]), 1);
    let asked = Request { split_k: Some(3), ..request([4096, 4096, 4096], 0) };
    assert_eq!(of("tma_f32_64x64x64_nn", &asked).split_k, 3);
    assert_eq!(of("tma_f32_128x128x32_nn", &asked).split_k, 1);
    assert_eq!(of("gemm_f32_128x128x8", &asked).ineligible, Some(Ineligible::Split));
}

/// How k is split decides on the bits of C: the request says it, and the kernel, and not the
/// device.
#[test]
fn the_same_product_is_split_alike_on_every_device() {
    let h100_pcie = Target { sms: 114, ..Target::H200 };
    let mut splits = std::collections::BTreeSet::new();
    for shape in [[64, 64, 4096], [512, 512, 512], [16, 4096, 4096], [1000, 704, 512]] {
        let request = request(shape, DEFAULT_WORKSPACE_LIMIT);
        for kernel in f32::kernels().filter(|kernel| kernel.product.most_splits > 1) {
            let request = Request { compute: Compute::Tf32, ..request };
            let split = |target: &Target| {
                let name = Some(kernel.entry.name());
                choose::<f32>(&request, target, name).map(|choice| choice.split_k).ok()
            };
            let of_h200 = split(&Target::H200);
            for target in [Target::cpu(1), Target::cpu(28), h100_pcie] {
                assert_eq!(split(&target), of_h200, "{} {shape:?} {target:?}", kernel.entry.name());
            }
            splits.extend(of_h200);
        }
    }
    assert!(splits.len() > 2, "{splits:?}");
}

/// A prediction can be read by part.
#[test]
fn the_parts_of_a_time_are_all_of_it() {
    let layouts = [[[513, 1], [700, 1], [700, 1]], [[1, 1000], [1, 513], [700, 1]]];
    let (mut seen, mut count) = (Times::default(), 0);
    for (strides, compute) in layouts.into_iter().flat_map(|strides| {
        [Compute::Native, Compute::Tf32, Compute::Fp32F16x3].map(|compute| (strides, compute))
    }) {
        let shape = Shape::new(1000, 700, 513).unwrap();
        for partials in [1, 8] {
            let partials = Some(partials);
            let request = Request { compute, partials, ..Request::new(shape, strides) };
            let fits = f32::kernels().filter_map(|kernel| match partials {
                Some(1) => evaluate(kernel, &request, &Target::H200).ok(),
                _ => partials::of_kernel(kernel, &request, &Target::H200),
            });
            for times in fits.filter_map(|fit| fit.times) {
                let Times { device_us, copies_us, fixed_us, multiply_us, .. } = times;
                let Times { l2_us, epilogue_us, memory_us, sum_us, .. } = times;
                let parts =
                    [copies_us, fixed_us, multiply_us, l2_us, epilogue_us, memory_us, sum_us];
                assert!(
                    (parts.iter().sum::<f64>() - device_us).abs() <= 1e-9 * device_us,
                    "{times:?}"
                );
                assert!(
                    parts.iter().all(|part| *part >= 0.0) && times.us() >= device_us,
                    "{times:?}"
                );
                seen = seen.and(times);
                count += 1;
            }
        }
    }
    let Times { copies_us, l2_us, memory_us, sum_us, .. } = seen;
    assert!([copies_us, l2_us, memory_us, sum_us].iter().all(|us| *us > 0.0), "{seen:?}");
    assert!(count > 50, "{count}");
}

/// 16 clusters of seven blocks do not run at once: at 8 x 4096 x 4096 they took an H200 43 us, and
/// 16 of six at 16 x 4096 x 4096 take 26.5 (docs/log/selection.md, "All candidates").
#[test]
fn clusters_that_do_not_run_at_once_are_not_taken() {
    for m in [4, 8, 16] {
        let request = request([m, 4096, 4096], DEFAULT_WORKSPACE_LIMIT);
        let choice = choose::<f32>(&request, &Target::H200, None).unwrap();
        let taken = (choice.entry.name(), choice.split_k);
        assert_eq!(taken, ("tma_f32_16x256x32_nn", 6), "{m}");
    }
}
