//! An element type that the library does not have. What is written for it is a row, in the words of
//! the table, and what its bits mean. All else follows: matrices, products in every layout, their
//! scalars and epilogues, checked launches, boxes for TMA, and memory for other libraries.

mod sixteenths;

use gpu::registry::{Access, Entry, Family, Scheme, Type, Variant};
use gpu_gemm::{
    Activation, Bias, BoxShape, Boxes, Device, Gemm, Matrix,
    gemm::{Scalar, checked},
    interchange::dlpack,
};
use simt::{
    check::Options,
    types::{NumberFormat, Typed},
};

use self::sixteenths::Sixteenths;

/// Its kernels, as they run and as they are checked.
#[path = "."]
mod fast {
    use gpu::{collective, kernels::gemm, params};
    use simt::device;

    #[path = "kernels.rs"]
    pub(super) mod kernels;
}

#[path = "."]
mod observed {
    use gpu::{
        checked::{collective, kernels::gemm},
        params,
    };
    use simt::checked as device;

    #[path = "kernels.rs"]
    pub(super) mod kernels;
}

fn entry(c: Type) -> &'static Entry {
    let variant = Variant {
        family: Family::Gemm,
        operands: Sixteenths::TYPE,
        c,
        scheme: Scheme::Native,
        tile: [64, 64, 16],
        cluster: 1,
        stages: None,
        access: Access::Strided,
        layout: None,
    };
    // SAFETY: `kernels.rs` has the parameters of the family, and its main loop for these types.
    unsafe {
        match c == Type::F32 {
            true => Entry::unlisted(&fast::kernels::wide, &observed::kernels::wide, variant),
            false => Entry::unlisted(&fast::kernels::narrow, &observed::kernels::narrow, variant),
        }
    }
}

const SIZE: (usize, usize, usize) = (70, 67, 33);

/// Multiples of 1/16 up to 1/2, so that sums of products are multiples of 1/256 and exact in f32.
fn number(salt: usize, index: usize) -> Sixteenths {
    Sixteenths((index * 7 + index / 13 * salt) as i16 % 17 - 8)
}

fn operands() -> [Vec<Sixteenths>; 2] {
    let (m, n, k) = SIZE;
    [(3, m * k), (5, k * n)].map(|(salt, len)| (0..len).map(|i| number(salt, i)).collect())
}

/// The sums, exactly, in units of 1/256.
fn sums([a, b]: &[Vec<Sixteenths>; 2]) -> Vec<i32> {
    let (m, n, k) = SIZE;
    let term = |i: usize, j: usize, p: usize| i32::from(a[i * k + p].0) * i32::from(b[p * n + j].0);
    (0..m * n).map(|at| (0..k).map(|p| term(at / n, at % n, p)).sum()).collect()
}

/// The transpose of a row-major matrix.
fn turned(values: &[Sixteenths], rows: usize, cols: usize) -> Vec<Sixteenths> {
    (0..rows * cols).map(|at| values[at % rows * cols + at / rows]).collect()
}

#[test]
fn a_row_makes_a_type_that_is_multiplied() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let ((m, n, k), drawn) = (SIZE, operands());
    let sums = sums(&drawn);
    let gemm = Gemm::<Sixteenths, f32>::of_types().entry(entry(Type::F32)).unwrap();
    let rounded = Gemm::<Sixteenths>::new().entry(entry(Sixteenths::TYPE)).unwrap();
    for transposed in [false, true] {
        let matrix = |values: &[Sixteenths], rows, cols| match transposed {
            false => Matrix::from_row_major(&device, rows, cols, values).unwrap(),
            true => {
                Matrix::from_row_major(&device, cols, rows, &turned(values, rows, cols)).unwrap()
            }
        };
        let (a, b) = (matrix(&drawn[0], m, k), matrix(&drawn[1], k, n));
        let [a, b] = [a.view(), b.view()].map(|view| if transposed { view.t() } else { view });
        let mut c = Matrix::<f32>::zeros(&device, m, n).unwrap();
        gemm.run(&stream, a, b, c.view_mut()).unwrap();
        let exact = sums.iter().map(|&sum| sum as f32 / 256.0).collect::<Vec<_>>();
        assert_eq!(c.to_row_major().unwrap(), exact);

        // relu(A B / 2 + C + bias), rounded once, to the nearest and ties to even.
        let old = (0..m * n).map(|i| number(11, i)).collect::<Vec<_>>();
        let mut c = Matrix::from_row_major(&device, m, n, &old).unwrap();
        let bias = (0..n).map(|i| number(2, i)).collect::<Vec<_>>();
        let added = device.upload(&bias).unwrap();
        let gemm = rounded.alpha(0.5).beta(1.0).bias(Bias::PerCol(added.all()));
        gemm.activation(Activation::Relu).run(&stream, a, b, c.view_mut()).unwrap();
        let wanted = sums.iter().zip(&old).enumerate().map(|(i, (&sum, old))| {
            let sum = sum as f32 / 512.0 + old.to_f32() + bias[i % n].to_f32();
            Sixteenths::from_f32(sum.max(0.0))
        });
        assert_eq!(c.to_row_major().unwrap(), wanted.collect::<Vec<_>>());
    }
}

#[test]
fn its_kernels_are_checked() {
    let (device, (m, n, k), drawn) = (Device::cpu(), SIZE, operands());
    let sums = sums(&drawn);
    let [a, b] = drawn.map(|values| device.upload(&values).unwrap());
    let mut c = device.zeros::<f32>(m * n).unwrap();
    let shape = gpu_gemm::Shape::new(m as u64, n as u64, k as u64).unwrap();
    let operands = [a.all(), b.all()];
    let options = |_: &_| Options::default();
    let (entry, c_mut) = (entry(Type::F32), c.all_mut());
    let reports = checked::multiply(entry, shape, [false; 2], operands, None, c_mut, options);
    for report in reports.unwrap() {
        assert!(report.is_clean(), "{:?}", report.findings);
    }
    let exact = sums.iter().map(|&sum| sum as f32 / 256.0).collect::<Vec<_>>();
    assert_eq!(c.to_vec().unwrap(), exact);
}

#[test]
fn what_is_said_of_it_is_its_row() {
    let of = Sixteenths::TYPE;
    assert_eq!((of.name(), of.bytes(), of.sums()), ("q16", 2, Some(NumberFormat::F32)));
    assert!(of.multiplies_to(Type::F32) && of.multiplies_to(of) && !of.multiplies_to(Type::F64));
    assert_eq!(<Sixteenths as Scalar<f32>>::name(), "q16 with C of f32");
    assert_eq!(entry(Type::F32).name(), "gemm_q16_f32_64x64x16");
    assert_eq!(entry(of).name(), "gemm_q16_64x64x16");
    // Kernels of other types are refused, and no other crate's type is in the lists of this one.
    let error = Gemm::<Sixteenths>::new().entry(entry(Type::F32)).unwrap_err().to_string();
    assert!(error.starts_with("kernel = gemm_q16_f32_64x64x16: "), "{error}");
    assert!(Gemm::<f32>::new().entry(entry(Type::F32)).is_err());
    assert_eq!(Type::of_name("q16"), None);

    let device = Device::cpu();
    let matrix = Matrix::from_row_major(&device, 2, 8, &[Sixteenths(16); 16]).unwrap();
    Boxes::of(matrix.view(), BoxShape { rows: 2, cols: 8, swizzle: 0 }).unwrap();
    let tensor = dlpack::export(matrix, None).unwrap();
    // SAFETY: it was just made, and nobody else has it.
    let back = unsafe { dlpack::Tensor::<Sixteenths>::import(&device, tensor) }.unwrap();
    let back = back.matrix().unwrap();
    let mut c = Matrix::<f32>::zeros(&device, 2, 2).unwrap();
    let gemm = Gemm::<Sixteenths, f32>::of_types().entry(entry(Type::F32)).unwrap();
    gemm.run(&device.stream().unwrap(), back, back.t(), c.view_mut()).unwrap();
    assert_eq!(c.to_row_major().unwrap(), [8.0; 4]);
}
