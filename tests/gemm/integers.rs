//! Products of i8 with sums of i32: every bit is right, by every kernel, in every layout.

use gpu::registry::Type;
use host::{
    Activation, Batch, BatchMut, Bias, Device, Gemm, Matrix, Result, Stream,
    gemm::{Candidate, Output, Request, Scalar, Target},
};
use tests::{
    Turns,
    gemm::{Random, counted, each_device},
    once,
};

/// The kernels, and the automatic choice.
pub(super) fn kernels<T: Scalar<O>, O: Output>() -> Vec<Option<&'static str>> {
    let request = Request::dense(host::Shape::new(1, 1, 1).unwrap());
    let all = Gemm::<T, O>::of_types().candidates(&request, &Target::H200);
    let name = |candidate: Candidate| Some(candidate.entry.name());
    let names = all.into_iter().map(name).chain([None]).collect::<Vec<_>>();
    assert!(names.len() > 3, "of CUDA cores and of tensor cores");
    names
}

pub(super) fn gemm<T: Scalar<O>, O: Output>(kernel: Option<&str>) -> Gemm<'static, T, O> {
    let gemm = Gemm::of_types();
    kernel.map_or(gemm, |name| gemm.kernel(name).unwrap())
}

/// Where the elements of a batch of matrices are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub size: (usize, usize),
    pub strides: [usize; 2],
    pub count: usize,
    pub step: usize,
}

impl Place {
    /// Rows or columns that are contiguous, with padding.
    pub fn draw(random: &mut Random, size: (usize, usize), count: usize) -> Self {
        let padding = random.choose(&[0, 0, 1, 3, 7, 16]);
        let strides = match random.below(5) {
            0 | 1 => [(size.1 + padding).next_multiple_of(16), 1],
            2 => [size.1 + padding, 1],
            3 => [1, size.0 + padding],
            _ => [1, (size.0 + padding).next_multiple_of(16)],
        };
        let step = size.0 * strides[0].max(1) + size.1 * strides[1] + padding;
        Place { size, strides, count, step }
    }

    pub fn at(&self, i: usize, row: usize, col: usize) -> usize {
        i * self.step + row * self.strides[0] + col * self.strides[1]
    }

    pub fn draw_all<T>(&self, random: &mut Random, element: impl Fn(u64) -> T) -> Vec<T> {
        (0..self.count * self.step + 1).map(|_| element(random.next())).collect()
    }
}

/// A product, and what it must give.
struct Case {
    places: [Place; 3],
    a: Vec<i8>,
    b: Vec<i8>,
    c: Vec<i32>,
    factors: [i32; 2],
}

impl Case {
    /// All values of i8, and C of all values of i32.
    fn draw(random: &mut Random, [m, n, k]: [usize; 3], count: usize) -> Self {
        let places = [(m, k), (k, n), (m, n)].map(|size| Place::draw(random, size, count));
        let [a, b] = [0, 1].map(|i| places[i].draw_all(random, |bits| bits as i8));
        let c = places[2].draw_all(random, |bits| bits as i32);
        let factors = random.choose(&[[1, 0], [1, 0], [1, 1], [-3, 2], [0, 1], [1 << 20, -1]]);
        Case { places, a, b, c, factors }
    }

    /// C, with the padding as it was.
    fn want(&self) -> Vec<i32> {
        let [a, b, c] = &self.places;
        let ([alpha, beta], mut want) = (self.factors, self.c.clone());
        for i in 0..c.count {
            for at in 0..c.size.0 * c.size.1 {
                let (row, col) = (at / c.size.1, at % c.size.1);
                let terms = (0..a.size.1).map(|p| {
                    i32::from(self.a[a.at(i, row, p)]) * i32::from(self.b[b.at(i, p, col)])
                });
                let sum = terms.fold(0, i32::wrapping_add);
                let of_c = &mut want[c.at(i, row, col)];
                *of_c = alpha.wrapping_mul(sum).wrapping_add(beta.wrapping_mul(*of_c));
            }
        }
        want
    }

    fn run(&self, stream: &Stream, gemm: &Gemm<i8, i32>) -> Result<Vec<i32>> {
        let device = stream.device();
        let (a, b) = (device.upload(&self.a)?, device.upload(&self.b)?);
        let mut c = device.upload(&self.c)?;
        let [of_a, of_b, of_c] = self.places;
        let a = Batch::new(a.view(..)?, of_a.size, of_a.strides, of_a.count, of_a.step)?;
        let b = Batch::new(b.view(..)?, of_b.size, of_b.strides, of_b.count, of_b.step)?;
        let to = BatchMut::new(c.view_mut(..)?, of_c.size, of_c.strides, of_c.count, of_c.step)?;
        let [alpha, beta] = self.factors;
        gemm.alpha(alpha).beta(beta).launch_batch(stream, a, b, to)?;
        c.to_vec()
    }

    fn check(&self, stream: &Stream, gemm: &Gemm<i8, i32>, context: &str) {
        let of =
            || format!("{context} on {}: {:?}, {:?}", stream.device(), self.places, self.factors);
        let c = self.run(stream, gemm).unwrap_or_else(|error| panic!("{error}\n{}", of()));
        let want = self.want();
        let wrong = c.iter().zip(&want).position(|(c, want)| c != want);
        assert_eq!(wrong, None, "{:?}: {}", wrong.map(|at| (c[at], want[at])), of());
    }
}

/// Sizes at edges of tiles and of stages, and any.
pub(super) fn size(random: &mut Random, most: usize) -> usize {
    match random.below(3) {
        0 => random.choose(&[1, 16, 63, 64, 65, 128, 129]).min(most),
        _ => 1 + random.below(most),
    }
}

#[test]
fn random_products_are_exact() {
    let kernels = kernels::<i8, i32>();
    assert!(kernels.len() > 5, "of CUDA cores and of tensor cores");
    each_device("integers::random_products_are_exact", |device, count| {
        let stream = device.stream().unwrap();
        let mut turns = Turns::on(&device, kernels.len());
        let mut random = Random::new(601);
        for _ in 0..200 {
            let sizes = [140, 140, 300].map(|most| size(&mut random, most));
            let products = random.choose(&[1, 1, 1, 3]);
            let case = Case::draw(&mut random, sizes, products);
            for kernel in turns.next_case().into_iter().map(|number| kernels[number]) {
                case.check(&stream, &gemm(kernel), kernel.unwrap_or("auto"));
            }
            *count += 1;
        }
    });
}

/// K is split by the blocks of a cluster, and by partial products.
/// By `mma.sync`: a single row has any stride, and the end of k is less than sixteen bytes.
#[test]
fn single_lines_and_ends_of_k_are_exact() {
    once!(crate::SOURCES);
    each_device("integers::single_lines_and_ends_of_k_are_exact", |device, count| {
        let stream = device.stream().unwrap();
        for name in ["mma_i8_i32_64x64x64_nt", "mma_i8_i32_128x128x64_nt"] {
            for (m, n) in [(1, 1), (1, 70), (130, 1), (3, 2)] {
                for k in [1, 15, 16, 17, 100] {
                    let a: Vec<i8> = (0..m * k).map(|i| (i * 7 % 251) as u8 as i8).collect();
                    let b: Vec<i8> = (0..k * n).map(|i| (i * 5 % 241) as u8 as i8).collect();
                    let sum = |i: usize| {
                        let of =
                            |p: usize| i32::from(a[i / n * k + p]) * i32::from(b[p * n + i % n]);
                        (0..k).map(of).sum::<i32>()
                    };
                    let expected: Vec<i32> = (0..m * n).map(sum).collect();
                    let a = Matrix::from_row_major(&device, m, k, &a).unwrap();
                    let b = Matrix::from_row_major(&device, k, n, &b).unwrap();
                    let mut c = Matrix::zeros(&device, m, n).unwrap();
                    let gemm = gemm::<i8, i32>(Some(name));
                    gemm.run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
                    assert_eq!(c.to_row_major().unwrap(), expected, "{name}: {m}x{n}x{k}");
                    *count += 1;
                }
            }
        }
    });
}

#[test]
fn split_sums_are_exact() {
    once!(crate::SOURCES);
    each_device("integers::split_sums_are_exact", |device, count| {
        let stream = device.stream().unwrap();
        let mut random = Random::new(602);
        for sizes in [[3, 100, 700], [65, 40, 513], [16, 7, 1024], [130, 129, 300]] {
            let case = Case::draw(&mut random, sizes, 1);
            for kernel in kernels::<i8, i32>().into_iter().flatten() {
                let gemm = gemm(Some(kernel));
                case.check(&stream, &gemm.partials(3).unwrap(), kernel);
                if ["x128x128_nt", "x16x128_nt"].iter().any(|end| kernel.ends_with(end)) {
                    case.check(&stream, &gemm.split_k(3).unwrap(), kernel);
                }
            }
            *count += 1;
        }
    });
}

/// A B of these numbers alone.
fn product_of(device: &Device, kernel: &str, [m, n, k]: [usize; 3], value: i8) -> i32 {
    let stream = device.stream().unwrap();
    let a = Matrix::from_row_major(device, m, k, &vec![value; m * k]).unwrap();
    let b = Matrix::from_row_major(device, n, k, &vec![value; n * k]).unwrap();
    let mut c = Matrix::<i32>::zeros(device, m, n).unwrap();
    gemm(Some(kernel)).run(&stream, a.view(), b.view().t(), c.view_mut()).unwrap();
    let c = c.to_row_major().unwrap();
    assert!(c.iter().all(|element| *element == c[0]), "{kernel}: {c:?}");
    c[0]
}

/// The largest sum of 131,071 products is a number of i32. That of one more is 2^31, which wraps.
#[test]
fn sums_beyond_i32_wrap_around() {
    once!(crate::SOURCES);
    each_device("integers::sums_beyond_i32_wrap_around", |device, count| {
        for kernel in
            kernels::<i8, i32>().into_iter().flatten().filter(|name| !name.contains("x256x"))
        {
            let of = |k| product_of(&device, kernel, [2, 3, k], i8::MIN);
            assert_eq!(of(131_071), 131_071 << 14, "{kernel}");
            assert_eq!(of(131_072), i32::MIN, "{kernel}");
        }
        *count += 1;
    });
}

/// What sums of integers do not have is refused, and C stays.
#[test]
fn what_integers_do_not_have_is_refused() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let a = Matrix::from_row_major(&device, 2, 2, &[1i8, 2, 3, 4]).unwrap();
    let mut c = Matrix::from_row_major(&device, 2, 2, &[7; 4]).unwrap();
    let bias = device.upload(&[1, 2]).unwrap();
    let gemm = Gemm::<i8, i32>::of_types();
    let refused = [
        (gemm.alpha(0.5), "alpha = 0.5: must be an integer of i32, the type of the sums"),
        (gemm.beta(3e9), "beta = 3000000000: must be an integer of i32, the type of the sums"),
        (gemm.alpha(f64::NAN), "alpha = NaN: must be an integer of i32, the type of the sums"),
        (gemm.bias(Bias::PerRow(bias.all())), "bias = a vector: must be none with a C of i32"),
        (gemm.activation(Activation::Relu), "activation = relu: must be none with a C of i32"),
    ];
    for (gemm, want) in refused {
        let error = gemm.run(&stream, a.view(), a.view(), c.view_mut()).unwrap_err();
        assert_eq!(error.to_string(), want);
    }
    assert_eq!(c.to_row_major().unwrap(), [7; 4]);
    gemm.beta(-1).run(&stream, a.view(), a.view(), c.view_mut()).unwrap();
    assert_eq!(c.to_row_major().unwrap(), [0, 3, 8, 15]);
    counted("integers::what_integers_do_not_have_is_refused", 5);
    assert!(Type::I8.multiplies_to(Type::I32) && !Type::I8.multiplies_to(Type::I8));
}
