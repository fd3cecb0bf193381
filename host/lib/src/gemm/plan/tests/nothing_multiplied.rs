//! Products of which A and B are not read: alpha = 0, also by rounding, or k = 0. Plans for several
//! targets are launched on the CPU: of selected kernels, of named ones, and of partial products.

use gpu::registry::Type;
use simt::{Bf16, F16};

use crate::{
    Activation, Batch, BatchMut, Bias, Compute, Device, E4m3, Gemm, Layout, Matrix, Shape,
    gemm::{Output, Request, Scalar, Scales, Target, execute},
};

/// An element as an f32.
trait Value: Copy {
    fn of(value: f32) -> Self;
    fn number(self) -> f32;
}

macro_rules! values {
    ($($ty:ty: $of:expr;)*) => {$(
        impl Value for $ty {
            fn of(value: f32) -> Self {
                $of(value)
            }

            fn number(self) -> f32 {
                f64::from(self) as f32
            }
        }
    )*};
}

values! {
    f32: f32::from;
    f64: f64::from;
    Bf16: Bf16::from_f32;
    F16: F16::from_f32;
}

/// Small integers.
fn values<T: Value>(len: usize) -> Vec<T> {
    (0..len).map(|i| T::of((i % 7) as f32 - 3.0)).collect()
}

/// The products of one shape. A and B are NaN.
struct Products<T, O> {
    a: Matrix<T>,
    b: Matrix<T>,
    request: Request,
    bias: Vec<O>,
}

impl<T: Scalar<O> + Value, O: Output + Value> Products<T, O> {
    fn new(sizes: [u64; 3], by_columns: bool) -> Self {
        let shape = Shape::new(sizes[0], sizes[1], sizes[2]).unwrap();
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let nan = |rows, cols| {
            let values = vec![T::of(f32::NAN); rows * cols];
            Matrix::from_row_major(&Device::cpu(), rows, cols, &values).unwrap()
        };
        let of_c = if by_columns { [1, m] } else { [n, 1] };
        let request = Request::new(shape, [[k, 1], [n, 1], of_c]);
        Products { a: nan(m, k), b: nan(k, n), request, bias: values(n) }
    }

    /// Launches the plan for a target, and compares C with `relu(beta C + bias)`. Gives whether
    /// there is a plan.
    fn launch(&self, gemm: &Gemm<T, O>, target: &Target, beta: f32) -> bool {
        let (device, Products { a, b, request, bias }) = (Device::cpu(), self);
        let (m, n) = (request.shape.m(), request.shape.n());
        let on_device = device.upload(bias).unwrap();
        let gemm = gemm.bias(Bias::PerCol(on_device.all())).activation(Activation::Relu);
        let gemm = gemm.beta(beta);
        let planned = gemm.plan(request, target, &simt::cpu::LIMITS);
        let Ok((choice, plan)) = planned else { return false };
        let (layout, leading) = match request.strides[2] {
            [_, 1] => (Layout::RowMajor, n),
            _ => (Layout::ColMajor, m),
        };
        let mut c = Matrix::with_layout(&device, m, n, layout, leading).unwrap();
        let before = if beta == 0.0 { vec![O::of(f32::NAN); m * n] } else { values(m * n) };
        c.write_row_major(&before).unwrap();
        let (a, b, to) = (Batch::one(a.view()), Batch::one(b.view()), BatchMut::one(c.view_mut()));
        let stream = device.stream().unwrap();
        let done =
            execute::planned(&gemm, &stream, (&choice, &plan, request.is_swapped()), a, b, to);
        let what =
            format!("{} x {} for {target:?}, {request:?}", choice.entry.name(), choice.partials);
        done.unwrap_or_else(|error| panic!("{error}: {what}"));
        let numbers = c.to_row_major().unwrap().into_iter().map(Value::number);
        for (index, (c, before)) in numbers.zip(before).enumerate() {
            let of_c = if beta == 0.0 { 0.0 } else { beta * before.number() };
            assert_eq!(c, (of_c + bias[index % n].number()).max(0.0), "element {index}, {what}");
        }
        true
    }
}

/// Products of these types by selected kernels, and by each that can be named. Gives the number of
/// plans.
fn launched<T: Scalar<O> + Value, O: Output + Value>() -> usize {
    let targets =
        [Target::H200, Target::gpu((8, 0), 108), Target::gpu((12, 0), 170), Target::cpu(4)];
    let computes = [Compute::Native, Compute::Tf32, Compute::Fp32Bf16x6, Compute::Fp32F16x3];
    // The last alpha is 0 in f32.
    let tiny = if T::TYPE == Type::F64 { 0.0 } else { 1e-300 };
    let gemm = Gemm::<T, O>::of_types();
    let mut count = 0;
    for (sizes, by_columns) in [
        ([1, 8, 65536], false),
        ([3, 5, 4096], true),
        ([70, 9, 700], false),
        ([9, 70, 700], true),
        ([4, 5, 0], false),
    ] {
        let products = Products::<T, O>::new(sizes, by_columns);
        for (target, (alpha, beta)) in targets
            .iter()
            .flat_map(|target| [(0.0, 0.0), (-0.0, 2.0), (tiny, 1.0)].map(|of| (target, of)))
        {
            for compute in computes {
                let gemm = gemm.alpha(alpha).compute(compute);
                let asked = [1, 2, 64].map(|count| gemm.partials(count).unwrap());
                for gemm in asked.into_iter().chain([gemm, gemm.split_k(2).unwrap()]) {
                    count += usize::from(products.launch(&gemm, target, beta));
                }
            }
        }
        for kernel in T::kernels() {
            for compute in computes {
                let whole = gemm.alpha(0.0).compute(compute).entry(kernel.entry).unwrap();
                for gemm in [whole, whole.split_k(2).unwrap(), whole.partials(2).unwrap()] {
                    count += usize::from(products.launch(&gemm, &Target::H200, 2.0));
                }
            }
        }
    }
    count
}

#[test]
fn every_type_of_c_has_a_kernel_that_scales_it() {
    assert!(launched::<f32, f32>() > 1000);
    assert!(launched::<f64, f64>() > 100);
    assert!(launched::<Bf16, Bf16>() > 1000);
    assert!(launched::<Bf16, f32>() > 1000);
    assert!(launched::<F16, F16>() > 1000);
    assert!(launched::<F16, f32>() > 1000);
}

#[test]
fn scales_without_elements_may_have_any_strides() {
    let device = Device::cpu();
    let (none, no_scale) = (device.zeros::<E4m3>(0).unwrap(), device.zeros::<f32>(0).unwrap());
    let max = usize::MAX;
    let of = |size| Batch::new(no_scale.all(), size, [max; 2], 2, max).unwrap();
    let scales = Scales::Blocks { a: of((300, 0)), b: of((0, 2)) };
    let part = scales.part(&[7..200, 128..256]).unwrap().both();
    assert_eq!(part.map(|of| of.size), [(193, 0), (0, 1)]);
    let [a, b] = [(300, 0), (0, 256)].map(|size| Batch::new(none.all(), size, [1; 2], 2, 0));
    let mut c = device.upload(&[f32::NAN; 2 * 300 * 256]).unwrap();
    let to = BatchMut::new(c.all_mut(), (300, 256), [256, 1], 2, 300 * 256).unwrap();
    let gemm = Gemm::<E4m3, f32>::of_types().scales(scales);
    gemm.launch_batch(&device.stream().unwrap(), a.unwrap(), b.unwrap(), to).unwrap();
    assert!(c.to_vec().unwrap().iter().all(|&value| value == 0.0));
}
