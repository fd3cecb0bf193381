//! A product of 8-bit numbers with a C of floating-point numbers, perhaps with scales, and what it
//! must give.

use host::{
    Activation, Batch, BatchMut, Bf16, Bias, Device, E4m3, E5m2, F16, Gemm, Stream,
    gemm::{Output, Scalar, Scales, Target},
};
use simt::types::NumberFormat;
use tests::gemm::Random;

use super::super::integers::Place;

/// A type of elements, from the nearest f32.
pub(super) trait Element: Output + Into<f64> {
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

/// Fractions are taken times 63.
impl Element for i8 {
    fn of(value: f32) -> i8 {
        if value.fract() == 0.0 { value as i8 } else { (value * 63.0) as i8 }
    }
}

impl Element for f32 {
    fn of(value: f32) -> f32 {
        value
    }
}

/// Whether all kernels with scales run there.
pub(super) fn runs_wgmma(device: &Device) -> bool {
    !device.is_cuda() || Target::of(device).capability == (9, 0)
}

/// From -2 to 2, or an integer from -8 to 8.
pub(super) fn number(bits: u64, is_integer: bool) -> f32 {
    match is_integer {
        true => (bits % 17) as f32 - 8.0,
        false => (bits >> 40) as f32 / (1 << 22) as f32 - 2.0,
    }
}

/// A product, and what it must give.
pub(super) struct Case<T, O> {
    pub(super) places: [Place; 3],
    pub(super) a: Vec<T>,
    pub(super) b: Vec<T>,
    pub(super) c: Vec<O>,
    pub(super) bias: Option<Vec<O>>,
    pub(super) is_relu: bool,
    pub(super) factors: [f32; 2],
    /// Elements are integers, and sums exact.
    pub(super) is_integer: bool,
    pub(super) scales: Option<Scaling>,
}

impl<T: Element + Scalar<O>, O: Element> Case<T, O> {
    pub(super) fn draw(random: &mut Random, [m, n, k]: [usize; 3], count: usize) -> Self {
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

    /// Products with scales. Those of blocks are for a C of rows.
    pub(super) fn draw_scaled(random: &mut Random, sizes: [usize; 3]) -> Self {
        let products = random.choose(&[1, 1, 2, 3]);
        let mut case = Case::draw(random, sizes, products);
        let are_blocks = T::FORMAT.is_float() && random.below(2) == 0;
        if are_blocks && case.places[2].strides[1] != 1 {
            (case.places[2].strides, case.places[2].step) = ([sizes[1], 1], sizes[0] * sizes[1]);
        }
        let scales = Scaling::draw(random, are_blocks, sizes, (case.is_integer, products));
        Case { scales: Some(scales), ..case }
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

    pub(super) fn run(&self, stream: &Stream, gemm: &Gemm<T, O>) -> Vec<O> {
        self.by(stream.device(), gemm, |gemm, a, b, c| {
            gemm.launch_batch(stream, a, b, c).unwrap();
        })
        .1
    }

    /// What that makes of the product, and C.
    pub(super) fn by<R>(
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
    pub(super) fn check(&self, stream: &Stream, gemm: &Gemm<T, O>, context: &str) {
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
/// Those of integers are exact.
pub(super) fn of_short_sums(format: NumberFormat) -> f64 {
    if !format.is_float() {
        return 0.0;
    }
    (2f64.powi(format.digits() as i32 - 1) + 3.0) * 34.0 / 8192.0
}

/// Scales of A and B.
#[derive(Clone)]
pub(super) struct Scaling {
    /// Of 1 x 128 and 128 x 128. Otherwise of rows and columns.
    pub(super) are_blocks: bool,
    pub(super) places: [Place; 2],
    pub(super) values: [Vec<f32>; 2],
}

impl Scaling {
    /// From 1/64 to 2; of products of integers powers of two. Of each product, or of all.
    pub(super) fn draw(
        random: &mut Random,
        are_blocks: bool,
        [m, n, k]: [usize; 3],
        (is_integer, products): (bool, usize),
    ) -> Self {
        let sizes = match are_blocks {
            true => [(m, k.div_ceil(128)), (k.div_ceil(128), n.div_ceil(128))],
            false => [(m, 1), (1, n)],
        };
        let count = random.choose(&[1, products]);
        let places = sizes.map(|size| Place::draw(random, size, count));
        let value = |bits: u64| {
            let power = 2f32.powi((bits % 7) as i32 - 6);
            if is_integer { power } else { power * (1.0 + (bits >> 40) as f32 / (1 << 25) as f32) }
        };
        let values = [0, 1].map(|i| places[i].draw_all(random, value));
        Scaling { are_blocks, places, values }
    }

    /// What a product of two elements is multiplied by.
    pub(super) fn of(&self, i: usize, row: usize, p: usize, col: usize) -> f64 {
        let [a, b] = &self.places;
        let i = i % a.count;
        let [p, col] = if self.are_blocks { [p / 128, col / 128] } else { [0, col] };
        f64::from(self.values[0][a.at(i, row, p)]) * f64::from(self.values[1][b.at(i, p, col)])
    }
}
