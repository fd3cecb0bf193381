//! What is launched.

use super::*;
use crate::Device;
use simt::Bf16;

/// Rows of 40 bytes, of which A has five f32 from `a` on and C two f64 from `c` on.
fn shares(a: u64, c: u64) -> bool {
    let device = Device::cpu();
    let memory = device.zeros::<u64>(20).unwrap();
    // SAFETY: both end before the memory does, and nobody reads or writes it.
    let (a, mut c) = unsafe {
        let a = device.foreign::<f32>(memory.address() + a, 25).unwrap();
        (a, device.foreign::<f64>(memory.address() + c, 12).unwrap())
    };
    let a = Batch::one(MatrixView::new(a.view(..).unwrap(), 3, 5, [10, 1]).unwrap());
    let c = MatrixViewMut::new(c.view_mut(..).unwrap(), 3, 2, [5, 1]).unwrap();
    check_apart(&a, &a, &BatchMut::one(c), None).is_err()
}

/// What would be launched of f32, dense and row-major: kernels, grids, clusters, dynamic shared memory.
fn planned(name: &str, shape: [u64; 3]) -> Vec<(&'static str, [u32; 3], [u32; 3], u32)> {
    let [m, n, k] = shape;
    let request = Request::dense(Shape::new(m, n, k).unwrap());
    let gemm = Gemm::<f32>::new().kernel(name).unwrap();
    let (_, launches) = gemm.plan(&request, &Target::H200, &simt::cpu::LIMITS).unwrap();
    let words = |Launch { kernel, config }: Launch| {
        (kernel, config.grid, config.cluster, config.dynamic_shared)
    };
    launches.into_iter().map(words).collect()
}

#[test]
fn what_would_be_launched_is_known_before() {
    let one = [1; 3];
    assert_eq!(
        planned("gemm_f32_64x64x16", [100, 70, 5]),
        [("gemm_f32_64x64x16", [2, 2, 1], one, 0)]
    );
    assert_eq!(planned("basic", [100, 70, 5]), [("basic", [5, 7, 1], one, 0)]);
    // More shared memory than half of what a multiprocessor has, where there is one for each block.
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
    let (_, launches) = stays.plan(&request, &Target::H200, &simt::cpu::LIMITS).unwrap();
    assert!(launches.is_empty());
}

#[test]
fn blocks_go_on_from_product_to_product_unless_they_split_k() {
    let planned = |name, batch, shape: [u64; 3], split_k| {
        let [m, n, k] = shape;
        let request = Request { batch, ..Request::dense(Shape::new(m, n, k).unwrap()) };
        let gemm = Gemm::<Bf16>::new().kernel(name).unwrap().split_k(split_k).unwrap();
        let (_, launches) = gemm.plan(&request, &Target::H200, &simt::cpu::LIMITS).unwrap();
        let words = |one: Launch| (one.config.grid, one.config.cluster);
        launches.into_iter().map(words).collect::<Vec<_>>()
    };
    let one = [1; 3];
    // Three blocks a multiprocessor: 396 would need three rounds, and so do 342.
    let small = "wgmma_bf16_64x64x64_nn";
    assert_eq!(planned(small, 1024, [64, 64, 64], 1), [([342, 1, 1], one)]);
    assert_eq!(planned(small, 10, [64, 104, 256], 3), [([20, 1, 3], [1, 1, 3])]);
    // Two blocks have a tile, and do not split k.
    let large = "wgmma_bf16_256x256x64_c2_nn";
    assert_eq!(planned(large, 5, [512, 512, 64], 3), [([40, 1, 1], [2, 1, 1])]);
    assert_eq!(planned(large, 40, [512, 512, 64], 1), [([108, 1, 1], [2, 1, 1])]);
}

/// A and C may be of types of different sizes: they are compared by bytes.
#[test]
fn blocks_of_columns_of_two_types() {
    // A's bytes are 0 to 20 of each row; C's are 16.
    assert_eq!([0, 8, 16, 24].map(|c| shares(0, c)), [true, true, true, false]);
    assert_eq!([4, 8, 20, 24].map(|a| shares(a, 24)), [false, true, true, true]);
}
