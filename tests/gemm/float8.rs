//! Products of e4m3 and e5m2 with a C of f32, bf16 or f16, by every kernel, in every layout.

mod scales;

use host::{
    Activation, Batch, BatchMut, Bf16, Bias, Device, E4m3, E5m2, F16, Gemm, Matrix, Stream,
    gemm::{Candidate, Output, Request, Scalar, Scales, Target},
};
use simt::types::NumberFormat;
use tests::{
    Turns, devices,
    gemm::{Random, counted},
    once,
};

use self::scales::Scaling;
use super::{
    integers::{Place, size},
    sliced::step_to,
};

/// A type of elements, from the nearest f32.
trait Element: Output + Into<f64> {
    fn of(value: f32) -> Self;
}

macro_rules! elements {
    ($($ty:ident)*) => {$(
        impl Element for $ty {
            fn of(value: f32) -> $ty {
                $ty::from_f32(value)
            }
        }
    )*};
}

elements! { E4m3 E5m2 Bf16 F16 }

impl Element for f32 {
    fn of(value: f32) -> f32 {
        value
    }
}

/// The kernels, and the automatic choice.
fn kernels<T: Scalar<O>, O: Output>() -> Vec<Option<&'static str>> {
    let request = Request::dense(host::Shape::new(1, 1, 1).unwrap());
    let all = Gemm::<T, O>::of_types().candidates(&request, &Target::H200);
    let name = |candidate: Candidate| Some(candidate.entry.name());
    let names = all.into_iter().map(name).chain([None]).collect::<Vec<_>>();
    assert!(names.len() > 3, "of CUDA cores and of tensor cores");
    names
}

fn gemm<T: Scalar<O>, O: Output>(kernel: Option<&str>) -> Gemm<'static, T, O> {
    let gemm = Gemm::of_types();
    kernel.map_or(gemm, |name| gemm.kernel(name).unwrap())
}

/// Whether kernels with scales run there.
fn runs_wgmma(device: &Device) -> bool {
    !device.is_cuda() || Target::of(device).capability == (9, 0)
}

/// From -2 to 2, or an integer from -8 to 8.
fn number(bits: u64, is_integer: bool) -> f32 {
    match is_integer {
        true => (bits % 17) as f32 - 8.0,
        false => (bits >> 40) as f32 / (1 << 22) as f32 - 2.0,
    }
}

/// A product, and what it must give.
struct Case<T, O> {
    places: [Place; 3],
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<O>,
    bias: Option<Vec<O>>,
    is_relu: bool,
    factors: [f32; 2],
    /// Elements are integers, and sums exact.
    is_integer: bool,
    scales: Option<Scaling>,
}

impl<T: Element + Scalar<O>, O: Element> Case<T, O> {
    fn draw(random: &mut Random, [m, n, k]: [usize; 3], count: usize) -> Self {
        let is_integer = random.below(3) == 0;
        let places = [(m, k), (k, n), (m, n)].map(|size| Place::draw(random, size, count));
        let [a, b] =
            [0, 1].map(|i| places[i].draw_all(random, |bits| T::of(number(bits, is_integer))));
        let c = places[2].draw_all(random, |bits| O::of(number(bits, is_integer)));
        let bias = (0..n).map(|_| O::of(number(random.next(), is_integer))).collect();
        let bias = (random.below(2) == 0).then_some(bias);
        let factors = random.choose(&[[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [-3.0, 2.0], [0.5, 0.0]]);
        let is_relu = random.below(4) == 0;
        Case { places, a, b, c, bias, is_relu, factors, is_integer, scales: None }
    }

    /// An element, with the sum of its terms' absolute values.
    fn want(&self, i: usize, row: usize, col: usize) -> (f64, f64) {
        let [a, b, c] = &self.places;
        let [alpha, beta] = self.factors.map(f64::from);
        let (mut sum, mut size) = (0.0, 0.0);
        for p in 0..a.size.1 {
            let (a, b): (f64, f64) =
                (self.a[a.at(i, row, p)].into(), self.b[b.at(i, p, col)].into());
            let scale = self.scales.as_ref().map_or(1.0, |scales| scales.of(i, row, p, col));
            sum += scale * a * b;
            size += (scale * a * b).abs();
        }
        let before = beta * self.c[c.at(i, row, col)].into();
        let bias = self.bias.as_ref().map_or(0.0, |bias| bias[col].into());
        let want = alpha * sum + before + bias;
        let want = if self.is_relu { want.max(0.0) } else { want };
        (want, alpha.abs() * size + before.abs() + bias.abs())
    }

    fn run(&self, stream: &Stream, gemm: &Gemm<T, O>) -> Vec<O> {
        self.by(stream.device(), gemm, |gemm, a, b, c| {
            gemm.launch_batch(stream, a, b, c).unwrap();
        })
        .1
    }

    /// What that makes of the product, and C.
    fn by<R>(
        &self,
        device: &Device,
        gemm: &Gemm<T, O>,
        work: impl FnOnce(&Gemm<T, O>, Batch<T>, Batch<T>, BatchMut<O>) -> R,
    ) -> (R, Vec<O>) {
        let (a, b) = (device.upload(&self.a).unwrap(), device.upload(&self.b).unwrap());
        let mut c = device.upload(&self.c).unwrap();
        let bias = self.bias.as_ref().map(|bias| device.upload(bias).unwrap());
        let [of_a, of_b, of_c] = self.places;
        let view = a.view(..).unwrap();
        let a = Batch::new(view, of_a.size, of_a.strides, of_a.count, of_a.step).unwrap();
        let view = b.view(..).unwrap();
        let b = Batch::new(view, of_b.size, of_b.strides, of_b.count, of_b.step).unwrap();
        let view = c.view_mut(..).unwrap();
        let to = BatchMut::new(view, of_c.size, of_c.strides, of_c.count, of_c.step).unwrap();
        let [alpha, beta] = self.factors;
        let mut gemm = gemm.alpha(alpha).beta(beta);
        if let Some(bias) = &bias {
            gemm = gemm.bias(Bias::PerCol(bias.all()));
        }
        if self.is_relu {
            gemm = gemm.activation(Activation::Relu);
        }
        let scales = self.scales.as_ref();
        let of_scales = scales.map(|of| of.values.each_ref().map(|of| device.upload(of).unwrap()));
        if let Some((of, values)) = scales.zip(of_scales.as_ref()) {
            let [a, b] = [0, 1].map(|i| {
                let Place { size, strides, count, step } = of.places[i];
                Batch::new(values[i].all(), size, strides, count, step).unwrap()
            });
            gemm = gemm.scales(match of.are_blocks {
                true => Scales::Blocks { a, b },
                false => Scales::RowsCols { a, b },
            });
        }
        let made = work(&gemm, a, b, to);
        (made, c.to_vec().unwrap())
    }

    /// Integers must be exact, but for C's own rounding. Other elements keep to the bound of
    /// docs/design/numerics.md. What is between the elements of C stays.
    fn check(&self, stream: &Stream, gemm: &Gemm<T, O>, context: &str) {
        let of = || {
            let Case { places, factors, is_integer, is_relu, .. } = self;
            let bias = self.bias.is_some();
            let blocks = self.scales.as_ref().map(|scales| scales.are_blocks);
            format!(
                "{context} on {}: {places:?}, {factors:?}, integers {is_integer}, bias {bias}, relu {is_relu}, scales of blocks {blocks:?}",
                stream.device()
            )
        };
        let (got, [a, _, c]) = (self.run(stream, gemm), &self.places);
        let mut is_of_c = vec![false; got.len()];
        let gamma =
            of_short_sums(T::FORMAT) + (a.size.1 as f64 + 8.0) * NumberFormat::F32.roundoff();
        for (i, at) in (0..c.count).flat_map(|i| (0..c.size.0 * c.size.1).map(move |at| (i, at))) {
            let (row, col) = (at / c.size.1, at % c.size.1);
            let at = c.at(i, row, col);
            is_of_c[at] = true;
            let ((want, size), got): (_, f64) = (self.want(i, row, col), got[at].into());
            let bound = if self.is_integer { 0.0 } else { gamma * size };
            let rounding = match O::FORMAT {
                NumberFormat::F32 => 0.0,
                format => format.roundoff() * (want.abs() + bound) + format.tiny(),
            };
            let off = (got - want).abs();
            assert!(off <= bound + rounding, "{got}, {want}: ({row}, {col}) of {}", of());
        }
        for (at, before) in self.c.iter().enumerate().filter(|(at, _)| !is_of_c[*at]) {
            assert_eq!(got[at].into().to_bits(), (*before).into().to_bits(), "beside C: {}", of());
        }
    }
}

/// What the tensor cores' short sums of 128 products may be off, of the terms' absolute values.
fn of_short_sums(format: NumberFormat) -> f64 {
    (2f64.powi(format.digits() as i32 - 1) + 3.0) * 34.0 / 8192.0
}

/// A row whose greatest addend has a subnormal factor: it is aligned as if it were larger, so more
/// of the others is cut off than without such a factor.
#[test]
fn subnormal_factors_keep_to_the_bound() {
    once!(crate::SOURCES);
    fn check<T: Element + Scalar<f32>>(parts: &[(usize, [f32; 2])]) {
        let row = |of: usize| -> Vec<T> {
            let of_part = |&(count, factors): &(usize, [f32; 2])| {
                std::iter::repeat_n(T::of(factors[of]), count)
            };
            parts.iter().flat_map(of_part).collect()
        };
        let (a, b) = (row(0), row(1));
        let wide = |x: T| -> f64 { x.into() };
        let terms = || a.iter().zip(&b).map(|(&a, &b)| wide(a) * wide(b));
        let (want, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
        let mut most = 0f64;
        for device in devices() {
            let stream = device.stream().unwrap();
            let of_a = Matrix::from_row_major(&device, 1, a.len(), &a).unwrap();
            let of_b = Matrix::from_row_major(&device, 1, b.len(), &b).unwrap();
            for kernel in kernels::<T, f32>() {
                let mut c = Matrix::<f32>::zeros(&device, 1, 1).unwrap();
                let gemm = gemm::<T, f32>(kernel);
                gemm.run(&stream, of_a.view(), of_b.view().t(), c.view_mut()).unwrap();
                let off = (f64::from(c.to_row_major().unwrap()[0]) - want).abs();
                assert!(
                    off <= (of_short_sums(T::FORMAT) + 1e-4) * size,
                    "{kernel:?} on {device}: {off}"
                );
                most = most.max(off / size);
            }
        }
        // Without the subnormal factor it would be less.
        assert!(most > 4.0 * 34.0 / 8192.0, "{most}");
    }
    let two = |exponent: i32| 2f32.powi(exponent);
    check::<E4m3>(&[(1, [256.0, two(-9)]), (31, [1.75 * two(-6), 1.125 * two(-6)])]);
    let small = (96, [1.5 * two(-7), 1.25 * two(-8)]);
    check::<E5m2>(&[(1, [two(15), two(-16)]), (31, [1.5 * two(-6), 1.25 * two(-7)]), small]);
}

/// Products of some types, each by one of the kernels in turn, or by all.
fn check_types<T: Element + Scalar<O>, O: Element>(cases: usize, seed: u64) {
    let kernels = kernels::<T, O>();
    for device in devices() {
        let stream = device.stream().unwrap();
        let mut turns = Turns::on(&device, kernels.len());
        let mut random = Random::new(seed);
        for _ in 0..cases {
            let sizes = [140, 140, 400].map(|most| size(&mut random, most));
            let products = random.choose(&[1, 1, 1, 2]);
            let case = Case::<T, O>::draw(&mut random, sizes, products);
            for kernel in turns.next_case().into_iter().map(|number| kernels[number]) {
                case.check(&stream, &gemm(kernel), kernel.unwrap_or("auto"));
            }
        }
    }
}

#[test]
fn random_products_keep_to_the_bound() {
    check_types::<E4m3, f32>(24, 801);
    check_types::<E5m2, f32>(12, 802);
    check_types::<E4m3, Bf16>(12, 803);
    check_types::<E5m2, Bf16>(6, 804);
    check_types::<E4m3, F16>(6, 805);
    check_types::<E5m2, F16>(6, 806);
    counted("float8::random_products_keep_to_the_bound", 66);
}

/// K is split by the blocks of a cluster, and by partial products.
#[test]
fn split_sums_keep_to_the_bound() {
    once!(crate::SOURCES);
    let mut count = 0;
    for device in devices() {
        let stream = device.stream().unwrap();
        let mut random = Random::new(807);
        for sizes in [[3, 100, 700], [65, 40, 513]] {
            let case = Case::<E4m3, f32>::draw(&mut random, sizes, 1);
            for kernel in kernels::<E4m3, f32>().into_iter().flatten() {
                let gemm = gemm(Some(kernel));
                case.check(&stream, &gemm.partials(3).unwrap(), kernel);
                if kernel.starts_with("wgmma") && !kernel.contains("_c2") {
                    case.check(&stream, &gemm.split_k(3).unwrap(), kernel);
                }
            }
            count += 1;
        }
    }
    counted("float8::split_sums_keep_to_the_bound", count / devices().len());
}

/// A B of normal numbers, as the tensor cores and the additions outside of them give it: 128
/// products in four steps, whose sum has 13 bits after the point, then an f32.
fn of_tensor_cores(a: &[f32], b: &[f32]) -> f32 {
    let of_stage = |(a, b): (&[f32], &[f32])| {
        a.chunks(32).zip(b.chunks(32)).fold(0.0, |sum, (a, b)| {
            f32::from_bits(step_to(13, sum, a, b).to_bits() & !0x3ff) + 0.0
        })
    };
    a.chunks(128).zip(b.chunks(128)).map(of_stage).fold(0.0, |sum, stage| sum + stage)
}

fn has_the_bits<T: Element + Scalar<f32> + Into<f32>>(device: &Device) -> usize {
    let mut count = 0;
    let [m, n, k] = [70, 40, 413];
    let mut random = Random::new(808);
    // From 1/32 to 2, of either sign.
    let mut numbers = |count: usize| {
        let draw = |_| {
            let bits = random.next();
            let value = (1.0 + (bits % 8) as f32 / 8.0) / (1 << (bits >> 8 & 3)) as f32;
            T::of(if bits >> 20 & 1 == 0 { value } else { -value })
        };
        (0..count).map(draw).collect::<Vec<_>>()
    };
    let (a, b) = (numbers(m * k), numbers(n * k));
    let stream = device.stream().unwrap();
    let of_a = Matrix::from_row_major(device, m, k, &a).unwrap();
    let of_b = Matrix::from_row_major(device, n, k, &b).unwrap();
    for kernel in kernels::<T, f32>().into_iter().flatten() {
        if !kernel.starts_with("wgmma") {
            continue;
        }
        let mut c = Matrix::<f32>::zeros(device, m, n).unwrap();
        let gemm = gemm::<T, f32>(Some(kernel)).split_k(1).unwrap();
        gemm.run(&stream, of_a.view(), of_b.view().t(), c.view_mut()).unwrap();
        let wide = |of: &[T]| of.iter().map(|x| (*x).into()).collect::<Vec<f32>>();
        for (at, got) in c.to_row_major().unwrap().into_iter().enumerate() {
            let (row, col) = (at / n, at % n);
            let want = of_tensor_cores(&wide(&a[row * k..][..k]), &wide(&b[col * k..][..k]));
            assert_eq!(got.to_bits(), want.to_bits(), "{kernel} on {device}: ({row}, {col})");
        }
        count += 1;
    }
    count
}

#[test]
fn sums_of_tensor_cores_have_the_bits_of_the_model() {
    for device in devices() {
        // Two tiles.
        assert_eq!([has_the_bits::<E4m3>(&device), has_the_bits::<E5m2>(&device)], [2, 2]);
    }
    counted("float8::sums_of_tensor_cores_have_the_bits_of_the_model", 2);
}

/// A NaN of A makes its row of C NaN, an infinity of B its column infinite, and no other element.
#[test]
fn nan_and_infinities_are_where_they_belong() {
    once!(crate::SOURCES);
    let mut count = 0;
    for device in devices() {
        let stream = device.stream().unwrap();
        for kernel in kernels::<E5m2, f32>() {
            let [m, n, k] = [5, 6, 130];
            let [mut a, mut b] = [m * k, n * k].map(|len| vec![E5m2::from_f32(1.0); len]);
            (a[2 * k + 129], b[3 * k + 7]) =
                (E5m2::from_f32(f32::NAN), E5m2::from_f32(f32::INFINITY));
            let a = Matrix::from_row_major(&device, m, k, &a).unwrap();
            let b = Matrix::from_row_major(&device, n, k, &b).unwrap();
            let mut c = Matrix::<f32>::zeros(&device, m, n).unwrap();
            gemm(kernel).run(&stream, a.view(), b.view().t(), c.view_mut()).unwrap();
            for (at, got) in c.to_row_major().unwrap().into_iter().enumerate() {
                let is_right = match (at / n, at % n) {
                    (2, _) => got.is_nan(),
                    (_, 3) => got == f32::INFINITY,
                    _ => got == 130.0,
                };
                assert!(is_right, "{kernel:?} on {device}: {at}: {got}");
            }
        }
        count += 1;
    }
    counted("float8::nan_and_infinities_are_where_they_belong", count / devices().len());
}
