//! Products with scales of rows and columns, and of blocks.

use host::{
    Batch, BatchMut, Bf16, Device, E4m3, E5m2, F16, Gemm, Matrix, MatrixView,
    gemm::{Request, Scalar, Scales, Target, checked},
};
use simt::check::{Options, Report};
use tests::{
    Turns, devices,
    gemm::{Random, counted},
    once,
};

use super::{
    super::integers::{gemm, kernels, size},
    case::{Case, Element, Scaling, runs_wgmma},
};

/// Scales of rows and columns, and of blocks; k is split by a cluster in some.
#[test]
fn random_scaled_products_keep_to_the_bound() {
    fn check<T: Element + Scalar<O>, O: Element>(cases: usize, seed: u64) {
        let mut kernels = kernels::<T, O>();
        let has_scales = |name: &str| name.starts_with("wgmma") || name.starts_with("mma");
        kernels.retain(|name| name.is_none_or(has_scales));
        for device in devices().into_iter().filter(runs_wgmma) {
            let stream = device.stream().unwrap();
            let mut turns = Turns::on(&device, kernels.len());
            let mut random = Random::new(seed);
            for _ in 0..cases {
                let sizes = [140, 300, 700].map(|most| size(&mut random, most));
                let case = Case::<T, O>::draw_scaled(&mut random, sizes);
                for kernel in turns.next_case().into_iter().map(|number| kernels[number]) {
                    let mut gemm = gemm(kernel);
                    let splits = |name: &str| name.starts_with("wgmma") && !name.contains("_c2");
                    if kernel.is_some_and(splits) && random.below(4) == 0 {
                        gemm = gemm.split_k(3).unwrap();
                    }
                    case.check(&stream, &gemm, kernel.unwrap_or("auto"));
                }
            }
        }
    }
    check::<E4m3, Bf16>(16, 811);
    check::<E4m3, f32>(8, 812);
    check::<E5m2, F16>(8, 813);
    check::<i8, Bf16>(12, 816);
    check::<i8, f32>(6, 817);
    counted("float8::scales::random_scaled_products_keep_to_the_bound", 50);
}

/// What scales cannot be of.
#[test]
fn wrong_scales_are_refused() {
    once!(crate::SOURCES);
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let (m, n, k) = (5, 200, 300);
    let (a, b) = (vec![E4m3::of(1.0); m * k], vec![E4m3::of(1.0); k * n]);
    let a = Matrix::from_row_major(&device, m, k, &a).unwrap();
    let b = Matrix::from_row_major(&device, k, n, &b).unwrap();
    let ones = device.upload(&vec![1f32; 1000]).unwrap();
    let view =
        |rows, cols| Batch::from(MatrixView::new(ones.all(), rows, cols, [cols, 1]).unwrap());
    let mut c = Matrix::<f32>::zeros(&device, m, n).unwrap();
    let mut run = |scales, partials: u32| {
        let gemm = Gemm::<E4m3, f32>::of_types().scales(scales).partials(partials).unwrap();
        gemm.run(&stream, a.view(), b.view(), c.view_mut()).map(|_| ()).map_err(|e| e.to_string())
    };
    let lines = Scales::RowsCols { a: view(m, 1), b: view(1, n) };
    let refused = |result: Result<(), String>, what: &str| {
        let said = result.unwrap_err();
        assert!(said.contains(what), "{said}");
    };
    run(lines, 1).unwrap();
    refused(run(lines, 2), "scales");
    // A plan has the same limits.
    let mut request = Request::dense(host::Shape::new(5, 200, 300).unwrap());
    let plan = |scales, request: &Request| {
        let gemm = Gemm::<E4m3, f32>::of_types().scales(scales);
        let said = [
            gemm.choose(request, &Target::H200).map(|_| ()),
            gemm.plan(request, &Target::H200, &simt::cpu::LIMITS).map(|_| ()),
            gemm.plan_on(&device, request).map(|_| ()),
        ];
        let [one, two, three] = said.map(|said| said.map_err(|error| error.to_string()));
        assert!(one == two && two == three, "{one:?}, {two:?}, {three:?}");
        one
    };
    request.batch = 2;
    plan(lines, &request).unwrap();
    let three = Batch::repeat(MatrixView::new(ones.all(), m, 1, [1, 1]).unwrap(), 3);
    let uneven = Scales::RowsCols { a: three, b: view(1, n) };
    refused(plan(uneven, &request), "scales of A: count = 3: must be 2, as the products, or 1");
    refused(plan(Scales::Blocks { a: view(m, 3), b: view(3, 1) }, &request), "must be 3 x 2");
    request.strides[0] = [2 * k, 2];
    refused(plan(lines, &request), "with scales: wgmma_e4m3_f32_256x128x128_c2_nt needs A");
    request.strides = [[k, 1], [n, 1], [1, m]];
    let blocks = Scales::Blocks { a: view(m, 3), b: view(3, 2) };
    refused(plan(blocks, &request), "rows are contiguous");
    refused(run(Scales::RowsCols { a: view(m, 1), b: view(n, 1) }, 1), "must be 1 x 200");
    refused(run(Scales::RowsCols { a: view(m - 1, 1), b: view(1, n) }, 1), "must be 5 x 1");
    refused(run(Scales::Blocks { a: view(m, 2), b: view(3, 2) }, 1), "must be 5 x 3");
    refused(run(Scales::Blocks { a: view(m, 3), b: view(3, 1) }, 1), "must be 3 x 2");
    let mut of_columns = Matrix::<f32>::zeros(&device, n, m).unwrap();
    let gemm = Gemm::<E4m3, f32>::of_types().scales(blocks);
    let said = gemm.run(&stream, a.view(), b.view(), of_columns.view_mut().t()).unwrap_err();
    assert!(said.to_string().contains("rows are contiguous"), "{said}");
    let named = gemm.kernel("gemm_e4m3_f32_64x64x16").unwrap();
    let said = named.run(&stream, a.view(), b.view(), c.view_mut()).unwrap_err();
    assert!(said.to_string().contains("no such scales"), "{said}");
    // Beyond, parts of a sum may wrap around, and others not.
    for (k, is_right) in [(131_071, true), (131_072, false)] {
        let request = Request::dense(host::Shape::new(2, 2, k).unwrap());
        let said = Gemm::<i8, f32>::of_types().choose(&request, &Target::H200).map(|_| ());
        let said = said.map_err(|error| error.to_string());
        assert!(is_right == said.is_ok(), "{said:?}");
        assert!(is_right || said.unwrap_err().contains("must be at most 131071"));
    }
    let f32s = Matrix::<f32>::zeros(&device, 2, 2).unwrap();
    let mut to = Matrix::<f32>::zeros(&device, 2, 2).unwrap();
    let gemm = Gemm::new().scales(Scales::RowsCols { a: view(2, 1), b: view(1, 2) });
    let said = gemm.run(&stream, f32s.view(), f32s.view(), to.view_mut()).unwrap_err();
    assert!(said.to_string().contains("8-bit"), "{said}");
}

/// The bits of a row are those of the row alone, with scales of both kinds and k of any length.
#[test]
fn invariant_scaled_products_have_the_bits_of_a_row() {
    for device in devices().into_iter().filter(runs_wgmma) {
        let stream = device.stream().unwrap();
        let mut random = Random::new(815);
        for (k, are_blocks) in [200, 4096, 65536].into_iter().flat_map(|k| [(k, false), (k, true)])
        {
            let sizes = [70, 20, k];
            let mut case = Case::<E4m3, f32>::draw(&mut random, sizes, 1);
            case.places[2].strides = [sizes[1], 1];
            let mut scales = Scaling::draw(&mut random, are_blocks, sizes, (false, 1));
            let mut first_row = |rows: usize| {
                (case.places[0].size.0, case.places[2].size.0) = (rows, rows);
                scales.places[0].size.0 = rows;
                case.scales = Some(scales.clone());
                let c = case.run(&stream, &gemm(None).invariant());
                c[..sizes[1]].iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(first_row(1), first_row(sizes[0]), "k = {k}, blocks {are_blocks}, {device}");
        }
    }
    counted("float8::scales::invariant_scaled_products_have_the_bits_of_a_row", 6);
}

/// Every access of products with scales is checked, and what is between the scales is not read.
#[test]
fn scaled_products_are_clean() {
    once!(crate::SOURCES);
    let mut random = Random::new(816);
    for sizes in [[70, 130, 200], [3, 5, 300]] {
        let case = Case::<E4m3, f32>::draw_scaled(&mut random, sizes);
        let check = |gemm: &Gemm<E4m3, f32>, a: Batch<E4m3>, b: Batch<E4m3>, c: BatchMut<f32>| {
            checked::product(gemm, a, b, c, |_| Options::default()).unwrap()
        };
        let (reports, _) = case.by(&Device::cpu(), &gemm(None), check);
        assert!(!reports.is_empty() && reports.iter().all(Report::is_clean), "{reports:?}");
    }
}
