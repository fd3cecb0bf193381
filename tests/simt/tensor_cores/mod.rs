//! Products of warpgroups on tensor cores: right for each layout of the operands, rounded as the
//! hardware does, and the findings of a checked launch.

use simt::{
    Element, Kernel, LaunchConfig,
    check::{self, Kind, Order},
    checked, cpu,
    device::{self, BoxShape},
};

mod float8;
mod integers;
mod kernels;
mod mistakes;
mod on_gpu;

#[path = "."]
mod watched {
    use super::mistakes;
    use simt::checked as device;

    #[path = "kernels.rs"]
    pub mod kernels;
}

/// Sixteen bytes, aligned.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Eight(#[allow(dead_code, reason = "only its address is used")] [u16; 8]);

/// A row-major matrix.
struct Matrix {
    values: Vec<Eight>,
    rows: usize,
    cols: usize,
}

impl Matrix {
    fn new(rows: usize, cols: usize, value: impl Fn(usize, usize) -> u16) -> Self {
        let places = (0..rows * cols / 8).map(|i| (i * 8 / cols, i * 8 % cols));
        let eight = |(row, col)| Eight(std::array::from_fn(|i| value(row, col + i)));
        Matrix { values: places.map(eight).collect(), rows, cols }
    }

    fn map<T: Element>(&self, shape: BoxShape) -> device::TensorMap<T> {
        let (extents, strides) = ([1, self.rows, self.cols], [0, self.cols]);
        // SAFETY: this many elements exist, and nobody writes them.
        unsafe { device::TensorMap::new(self.values.as_ptr().cast(), extents, strides, shape) }
            .unwrap()
    }

    fn checked_map<T: Element>(&self, shape: BoxShape) -> checked::TensorMap<T> {
        let (extents, strides) = ([1, self.rows, self.cols], [0, self.cols]);
        // SAFETY: as in `map`.
        unsafe { checked::TensorMap::new(self.values.as_ptr().cast(), extents, strides, shape) }
            .unwrap()
    }
}

type Product<T> = Kernel<(u32, device::TensorMap<T>, device::TensorMap<T>, device::Out<f32>)>;
type Watched<T> = Kernel<(u32, checked::TensorMap<T>, checked::TensorMap<T>, checked::Out<f32>)>;

/// A kernel, and the layout of its operands: the shape of the boxes, and whether they are K-major.
struct Case<T: 'static> {
    kernel: &'static Product<T>,
    watched: &'static Watched<T>,
    n: usize,
    a: (BoxShape, bool),
    b: (BoxShape, bool),
    /// Converts a number to its bits.
    encode: fn(f32) -> u16,
    decode: fn(u16) -> f32,
}

const fn shape(rows: usize, cols: usize, swizzle: usize) -> BoxShape {
    BoxShape { rows, cols, swizzle }
}

macro_rules! cases {
    ($type:ty: $($kernel:ident($n:literal): $a:expr, $b:expr;)*) => {
        [$(Case::<$type> {
            kernel: &kernels::$kernel,
            watched: &watched::kernels::$kernel,
            n: $n,
            a: $a,
            b: $b,
            encode: |value| <$type>::from_f32(value).to_bits(),
            decode: |bits| <$type>::from_bits(bits).to_f32(),
        }),*]
    };
}

fn bf16_cases() -> [Case<device::Bf16>; 2] {
    cases! { device::Bf16:
        k_major_by_k_major(128): (shape(64, 64, 128), true), (shape(128, 64, 128), true);
        k_major_by_mn_major(256): (shape(64, 64, 128), true), (shape(64, 64, 128), false);
    }
}

fn f16_cases() -> [Case<device::F16>; 2] {
    cases! { device::F16:
        mn_major_by_mn_major(64): (shape(64, 64, 128), false), (shape(64, 64, 128), false);
        mn_major_by_k_major(192): (shape(32, 64, 128), false), (shape(192, 32, 64), true);
    }
}

impl<T: Element> Case<T> {
    fn config(&self) -> LaunchConfig {
        let declaration = &self.kernel.declaration;
        let dynamic_shared = declaration.dynamic_shared.unwrap();
        LaunchConfig { dynamic_shared, ..LaunchConfig::new([1; 3], declaration.block.unwrap()) }
    }

    /// A and B with these elements, in the kernel's layouts.
    fn operands(
        &self,
        k: usize,
        a: impl Fn(usize, usize) -> f32,
        b: impl Fn(usize, usize) -> f32,
    ) -> [Matrix; 2] {
        let encode = self.encode;
        let a = match self.a.1 {
            true => Matrix::new(64, k, |row, p| encode(a(row, p))),
            false => Matrix::new(k, 64, |p, row| encode(a(row, p))),
        };
        let b = match self.b.1 {
            true => Matrix::new(self.n, k, |col, p| encode(b(p, col))),
            false => Matrix::new(k, self.n, |p, col| encode(b(p, col))),
        };
        [a, b]
    }

    fn run(&self, k: usize, [a, b]: &[Matrix; 2], options: &cpu::Options) -> Vec<f32> {
        let mut c = vec![0.0; 64 * self.n];
        let params = (k as u32, a.map(self.a.0), b.map(self.b.0), super::write(&mut c));
        super::launch_with(self.kernel, self.config(), params, options).unwrap();
        c
    }

    fn run_watched(&self, k: usize, [a, b]: &[Matrix; 2], order: Order) -> Vec<f32> {
        let mut c = vec![0.0; 64 * self.n];
        let mut options = check::Options::default();
        options.order = order;
        options.complete = true;
        // SAFETY: the operands and `c` outlive the launch, and nobody else uses them.
        let report = unsafe {
            let out = checked::Out::uninit(c.as_mut_ptr(), c.len());
            let params = (k as u32, a.checked_map(self.a.0), b.checked_map(self.b.0), out);
            check::launch(self.watched, &self.config(), params, &options)
        };
        let report = report.unwrap();
        assert!(report.is_clean(), "{report}");
        c
    }

    fn is_exact_on_integers(&self) {
        let a = |row: usize, p: usize| ((row * 7 + p * 3) % 17) as f32 - 8.0;
        let b = |p: usize, col: usize| ((p * 5 + col * 11) % 13) as f32 - 6.0;
        for k in [64, 192] {
            let operands = self.operands(k, a, b);
            let c = self.run(k, &operands, &cpu::Options::default());
            for (at, sum) in c.into_iter().enumerate() {
                let (row, col) = (at / self.n, at % self.n);
                let expected: f32 = (0..k).map(|p| a(row, p) * b(p, col)).sum();
                assert_eq!(
                    sum, expected,
                    "{}, k = {k}: ({row}, {col})",
                    self.kernel.declaration.name
                );
            }
        }
    }

    fn is_rounded_as_on_hopper(&self) {
        let (k, decode) = (128, self.decode);
        let number = |a: usize, b: usize, salt: usize| {
            let bits = (a * 2_654_435_761 + b * 40_503 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let fraction = (bits >> 40) as f32 / (1 << 23) as f32 - 1.0;
            decode((self.encode)(fraction * 2f32.powi((bits >> 20) as i32 % 6)))
        };
        let a = |row: usize, p: usize| number(row, p, 1);
        let b = |p: usize, col: usize| number(p, col, 999);
        let operands = self.operands(k, a, b);
        let c = self.run(k, &operands, &cpu::Options::default());
        for (at, sum) in c.iter().enumerate() {
            let (row, col) = (at / self.n, at % self.n);
            let expected = (0..k).step_by(16).fold(0.0, |sum, first| {
                let products: [(f32, f32); 16] =
                    std::array::from_fn(|p| (a(row, first + p), b(first + p, col)));
                truncated(sum, products)
            });
            let name = self.kernel.declaration.name;
            assert_eq!(
                sum.to_bits(),
                expected.to_bits(),
                "{name}: ({row}, {col}): {sum}, {expected}"
            );
        }
        for order in [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)] {
            let watched = self.run_watched(k, &operands, order);
            assert!(c.iter().zip(&watched).all(|(x, y)| x.to_bits() == y.to_bits()), "{order}");
        }
    }
}

/// The sum of an `f32` and an instruction's products, sixteen or for tf32 eight, as in MMA-Sim.
/// Each is shifted to the largest exponent among them, and 25 bits after the point are kept. Then
/// all are added, and truncated to `f32`. For normal numbers.
pub(crate) fn truncated<const STEPS: usize>(sum: f32, products: [(f32, f32); STEPS]) -> f32 {
    truncated_to(25, -126, sum, products)
}

/// The same with so many bits after the point, where the least exponent of a factor is `least`.
fn truncated_to<const STEPS: usize>(
    bits: i32,
    least: i32,
    sum: f32,
    products: [(f32, f32); STEPS],
) -> f32 {
    let exponent = |value: f32| match value {
        0.0 => -500,
        _ => (value.to_bits() >> 23 & 0xff) as i32 - 127,
    };
    let of_factor = |value| if value == 0.0 { -500 } else { exponent(value).max(least) };
    let of_product = |(a, b)| of_factor(a) + of_factor(b);
    let greatest = products.into_iter().map(of_product).fold(exponent(sum).max(-126), i32::max);
    let unit = 2f64.powi(greatest - bits);
    let kept = |value: f64| (value / unit).trunc();
    let products = products.into_iter().map(|(a, b)| kept(f64::from(a) * f64::from(b)));
    let total = (products.sum::<f64>() + kept(f64::from(sum))) * unit;
    let nearest = total as f32;
    match f64::from(nearest).abs() > total.abs() {
        true => f32::from_bits(nearest.to_bits() - 1),
        false => nearest,
    }
}

#[test]
fn products_of_integers_are_exact_whatever_way_operands_lie() {
    bf16_cases().iter().for_each(Case::is_exact_on_integers);
    f16_cases().iter().for_each(Case::is_exact_on_integers);
}

#[test]
fn sums_are_rounded_as_on_hopper_and_checked_launches_are_clean() {
    bf16_cases().iter().for_each(Case::is_rounded_as_on_hopper);
    f16_cases().iter().for_each(Case::is_rounded_as_on_hopper);
}

/// x of [`kernels::written`].
fn input() -> Vec<f32> {
    (0..64 * 64).map(|i| (i * 7 % 19) as f32 - 9.0).collect()
}

fn run_mistake(mistake: u32, order: Order) -> (check::Report, Vec<f32>) {
    let (x, mut c) = (input(), vec![0.0; 64 * 64]);
    let mut options = check::Options::default();
    options.order = order;
    let config =
        LaunchConfig { dynamic_shared: 64 * 64 * 4, ..LaunchConfig::new([1; 3], [128, 1, 1]) };
    // SAFETY: the vectors outlive the launch, and nobody else uses them.
    let report = unsafe {
        let params = (
            mistake,
            checked::In::new(x.as_ptr(), x.len()),
            checked::Out::new(c.as_mut_ptr(), c.len()),
        );
        check::launch(&watched::kernels::written, &config, params, &options)
    };
    (report.unwrap(), c)
}

#[test]
fn each_mistake_is_found_for_what_it_is() {
    let orders = [Order::Forward, Order::Reverse, Order::Random(3), Order::Random(4)];
    for (mistake, finds) in [
        (mistakes::NONE, None),
        (mistakes::NO_FENCE, Some(Kind::ProxyFence)),
        (mistakes::FENCE_BEHIND_BARRIER, Some(Kind::ProxyFence)),
        (mistakes::OVERWRITTEN, Some(Kind::WriteAfterRead)),
        // No commit: nothing is waited for, and NaN is written.
        (mistakes::NO_COMMIT, None),
        (mistakes::PENDING, None),
        (mistakes::OTHER_OPERANDS, Some(Kind::Panic)),
        (mistakes::ONE_WARP_LESS, Some(Kind::Deadlock)),
        (mistakes::NOT_WRITTEN, Some(Kind::Uninitialised)),
    ] {
        for order in orders {
            let (report, c) = run_mistake(mistake, order);
            // The tensor cores read twice, at two places.
            let mut kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
            kinds.dedup();
            assert_eq!(kinds, Vec::from_iter(finds), "mistake {mistake}: {report}");
            if let Some(Kind::ProxyFence | Kind::WriteAfterRead) = finds {
                let finding = &report.findings[0];
                assert!(finding.place.is_some() && finding.other_place.is_some(), "{report}");
            }
            match mistake {
                mistakes::NO_COMMIT | mistakes::PENDING => assert!(c.iter().all(|c| c.is_nan())),
                mistakes::NONE => {
                    let x = input();
                    for (at, &sum) in c.iter().enumerate() {
                        let products = (0..64).map(|p| x[at / 64 * 64 + p] * x[at % 64 * 64 + p]);
                        assert_eq!(sum, 2.0 * products.sum::<f32>(), "element {at}");
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_stage_released_before_the_wait_is_found() {
    let k = 64 * 4;
    let x = Matrix::new(64, k, |row, p| device::F16::from_f32((row + p) as f32 % 3.0).to_bits());
    let config =
        LaunchConfig { dynamic_shared: 64 * 64 * 2, ..LaunchConfig::new([1; 3], [160, 1, 1]) };
    for order in [Order::Forward, Order::Reverse, Order::Random(5), Order::Random(6)] {
        let mut c = vec![0.0; 64 * 64];
        let mut options = check::Options::default();
        options.order = order;
        // SAFETY: the operands and `c` outlive the launch, and nobody else uses them.
        let report = unsafe {
            let out = checked::Out::new(c.as_mut_ptr(), c.len());
            let params = (k as u32, x.checked_map(shape(64, 64, 128)), out);
            check::launch(&watched::kernels::released_too_early, &config, params, &options)
        };
        let report = report.unwrap();
        let kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
        assert_eq!(kinds, [Kind::WriteAfterRead], "{report}");
        let finding = &report.findings[0];
        let line = |place: &Option<check::Place>| {
            let line = place.as_ref().unwrap().line as usize - 1;
            include_str!("kernels.rs").lines().nth(line).unwrap().trim().to_owned()
        };
        assert!(line(&finding.place).starts_with("tiles.load_box("), "{report}");
        assert_eq!(line(&finding.other_place), "sums.multiply_add(x, x);", "{report}");
    }
}
