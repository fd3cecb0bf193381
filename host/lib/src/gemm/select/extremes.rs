//! Requests with extreme numbers: a selection and a plan are errors at worst.

use gpu::registry::Scheme;
use simt::{Bf16, F16, Limits};

use crate::{
    Compute, Device, Gemm, MatrixView, MatrixViewMut, Shape,
    gemm::{Output, Request, Scalar, Target, scalar::Kernel},
};

/// Numbers in any order, the same in every run.
struct Random(u64);

impl Random {
    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from[(self.0 >> 11) as usize % from.len()]
    }
}

/// Strides and counts, of which products overflow.
const NUMBERS: [usize; 14] = [
    0,
    1,
    2,
    3,
    8,
    64,
    65536,
    (1 << 31) + 1,
    1 << 32,
    1 << 60,
    (1 << 62) + 8,
    1 << 63,
    usize::MAX - 7,
    usize::MAX,
];

fn plans<T: Scalar<O>, O: Output>(random: &mut Random, rounds: usize) -> usize {
    let sizes = [0, 1, 1, 1, 2, 3, 64, 100, 5000, 65536];
    let inner_sizes = [0, 1, 2, 63, 5000, 65536, 1 << 31, u64::from(u32::MAX)];
    let kernels = T::kernels().collect::<Vec<Kernel>>();
    let mut count = 0;
    for _ in 0..rounds {
        let [m, n] = [(); 2].map(|()| random.of(&sizes));
        let shape = Shape::new(m, n, random.of(&inner_sizes)).unwrap();
        let dense = Request::dense(shape);
        let mut request =
            Request::new(shape, [(); 3].map(|()| [(); 2].map(|()| random.of(&NUMBERS))));
        if random.of(&[true, false]) {
            request.strides = dense.strides;
            // One row or column may have any stride.
            let [rows, cols] = [random.of(&[0, 1, 2]), random.of(&[0, 1])];
            request.strides[rows][cols] = random.of(&NUMBERS);
        }
        request.batch = random.of(&[0, 1, 1, 1, 2, 65537, 70000, usize::MAX]);
        request.aligned = [(); 3].map(|()| random.of(&[true, false]));
        let most = random.of(&[0, 1 << 20, 256 << 20, u64::MAX]);
        let compute =
            random.of(&[Compute::Native, Compute::Tf32, Compute::Fp32Bf16x6, Compute::Fp32F16x3]);
        let (alpha, beta) = (random.of(&[1.0, 0.0, f64::NAN]), random.of(&[0.0, 1.0, -3.0]));
        let mut gemm =
            Gemm::<T, O>::of_types().alpha(alpha).beta(beta).compute(compute).workspace_limit(most);
        if let Some(count) = random.of(&[None, None, Some(1), Some(2), Some(4096)]) {
            gemm = gemm.partials(count).unwrap();
        }
        if let Some(blocks) = random.of(&[None, None, Some(1), Some(8)]) {
            gemm = gemm.split_k(blocks).unwrap();
        }
        if random.of(&[false, false, true]) {
            gemm = gemm.invariant();
        }
        if random.of(&[true, false]) {
            gemm.kernel = Some(random.of(&kernels));
        }
        let mut target = random.of(&[
            Target::H200,
            Target::gpu((8, 0), 1),
            Target::gpu((9, 0), 0),
            Target::cpu(4),
        ]);
        if random.of(&[false, false, true]) {
            target.sms = random.of(&[0, 1, 3, u32::MAX]);
        }
        let mut limits = simt::cpu::LIMITS;
        if random.of(&[false, false, true]) {
            limits.grid = [u32::MAX; 3];
        }
        let _ = gemm.candidates(&request, &target);
        let _ = gemm.choose(&request, &target);
        let planned = gemm.plan(&request, &target, &limits);
        count += usize::from(planned.is_ok_and(|(_, plan)| plan.launches().count() > 0));
    }
    count
}

#[test]
fn no_number_is_too_large() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let planned = [
        plans::<f32, f32>(&mut random, 2000),
        plans::<f64, f64>(&mut random, 1000),
        plans::<Bf16, Bf16>(&mut random, 2000),
        plans::<F16, f32>(&mut random, 1000),
    ];
    assert!(planned.iter().all(|&count| count > 50), "{planned:?}");
}

/// One row may have any stride: it has none.
#[test]
fn one_row_has_any_stride() {
    for stride in NUMBERS {
        let shape = Shape::new(1, 8, 65536).unwrap();
        let request = Request::new(shape, [[stride, 1], [8, 1], [stride, 1]]);
        for target in [Target::H200, Target::gpu((8, 0), 108), Target::cpu(4)] {
            let planned = Gemm::<f32>::new().plan(&request, &target, &simt::cpu::LIMITS);
            assert!(planned.unwrap().1.launches().count() > 0);
        }
    }
}

/// The same as a product, by each kernel: of one row of A and C, and of one column of B and C.
#[test]
fn one_row_of_any_stride_is_multiplied() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let one = |len| device.upload(&vec![1.0f32; len]).unwrap();
    let (a, b, mut c) = (one(64), one(64 * 8), one(8));
    let mut count = 0;
    for kernel in <f32 as Scalar>::kernels().map(Some).chain([None]) {
        for stride in [1 << 60, usize::MAX] {
            let mut gemm = Gemm::<f32>::new().compute(Compute::Tf32);
            if let Some(kernel) = kernel {
                let compute = match kernel.entry.scheme() {
                    Scheme::Bf16x6 => Compute::Fp32Bf16x6,
                    Scheme::F16x3 => Compute::Fp32F16x3,
                    _ => Compute::Tf32,
                };
                gemm = gemm.compute(compute).entry(kernel.entry).unwrap();
            }
            for is_transposed in [false, true] {
                let row = MatrixView::new(a.all(), 1, 64, [stride, 1]).unwrap();
                let matrix = MatrixView::new(b.all(), 64, 8, [8, 1]).unwrap();
                c.fill_bytes(0xff).unwrap();
                let to = MatrixViewMut::new(c.all_mut(), 1, 8, [stride, 1]).unwrap();
                let done = match is_transposed {
                    false => gemm.launch(&stream, row, matrix, to),
                    true => gemm.launch(&stream, matrix.t(), row.t(), to.t()),
                };
                if done.is_ok() {
                    count += 1;
                    assert_eq!(c.to_vec().unwrap(), [64.0; 8], "{kernel:?} {is_transposed}");
                }
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn what_cannot_be_planned_is_named() {
    let plan = |request: &Request, grid: [u32; 3]| {
        let limits = Limits { grid, ..simt::cpu::LIMITS };
        let planned = Gemm::<f32>::new().plan(request, &Target::H200, &limits);
        planned.map(|(_, plan)| plan.launches().count()).map_err(|error| error.to_string())
    };
    let most = simt::cpu::LIMITS.grid;
    let dense = Request::dense(Shape::new(100, 100, 100).unwrap());
    let refused = plan(&Request { strides: [[1 << 62, 1], [100, 1], [100, 1]], ..dense }, most);
    assert!(refused.unwrap_err().starts_with("request: A.strides = [4611686018427387904, 1]"));
    let refused = plan(&Request { batch: usize::MAX, ..dense }, most);
    assert!(refused.unwrap_err().starts_with("request: batch = 18446744073709551615"));
    let refused = plan(&Request { batch: 1 << 40, ..dense }, most).unwrap_err();
    assert!(
        refused.starts_with("batch = 1099511627776: must need at most 65536 launches"),
        "{refused}"
    );
    // A device of no blocks at all has one anyway; its launch is refused.
    assert!(plan(&Request { batch: 3, ..dense }, [0; 3]).unwrap() > 0);
}
