//! Matrices rounded to 8 bits with their scales: every bit, and their products.

use host::{
    Bf16, Device, E4m3, E5m2, F16, Gemm, Granularity, Matrix, MatrixView, MatrixViewMut, Stream,
    gemm::{Scalar, Scales},
    quantise,
};
use tests::{
    devices,
    gemm::{Random, counted},
    streams,
};

use super::case::{Element, of_short_sums, runs_wgmma};

const ALL: [Granularity; 3] =
    [Granularity::Row, Granularity::Block1x128, Granularity::Block128x128];

/// Rows and columns: fewer and more than 128; one more than a thread holds of a row; a row of each
/// number of threads.
const SIZES: [[usize; 2]; 9] = [
    [1, 1],
    [3, 128],
    [5, 129],
    [130, 257],
    [257, 144],
    [2, 8208],
    [3, 1040],
    [2, 4095],
    [300, 16],
];

/// Numbers of all sizes. Some groups are zeros, tiny or huge alone; some numbers are not finite.
fn draw(random: &mut Random, [rows, cols]: [usize; 2]) -> Vec<f32> {
    let of_row = (0..rows).map(|_| random.choose(&[0, 1, 1, 1, 2, 3, 4])).collect::<Vec<_>>();
    let mut number = |at: usize| {
        let (bits, power) = (random.next(), random.below(12) as i32);
        let value = (1.0 + (bits >> 41) as f32 / 8_388_608.0) * 2f32.powi(-power);
        let value = match of_row[at / cols] {
            0 => 0.0,
            1 => value,
            2 => f32::from_bits((bits >> 50) as u32),
            3 => value * 1e38,
            _ => match bits % 50 {
                0 => f32::NAN,
                1 => f32::INFINITY,
                _ => value * 1e-30,
            },
        };
        if bits & 64 == 0 { value } else { -value }
    };
    (0..rows * cols).map(&mut number).collect()
}

fn largest<Q: Element>() -> f32 {
    if Q::FORMAT.is_float() { Q::FORMAT.largest() as f32 } else { 127.0 }
}

/// The scale of a group, as the documentation says it.
fn scale_of<Q: Element>(group: impl Iterator<Item = f32>) -> f32 {
    let greatest = group.filter(|x| x.is_finite()).fold(0f32, |most, x| most.max(x.abs()));
    if greatest == 0.0 { 1.0 } else { (greatest / largest::<Q>()).max(2f32.powi(-63)) }
}

fn rounded<Q: Element>(x: f32, scale: f32) -> f64 {
    let x = x * (1.0 / scale);
    match Q::FORMAT.is_float() {
        true if x.is_finite() => Q::of(x).into(),
        true => f64::NAN,
        false if x.is_nan() => 0.0,
        false => f64::from(x.clamp(-127.0, 127.0).round_ties_even()) + 0.0,
    }
}

/// Where matrices begin, and what is between rows: of x, of q, and of the scales.
type Places = ([usize; 2], [usize; 2], usize);

fn check<T: Element, Q: Element>(
    stream: &Stream,
    random: &mut Random,
    (first, gap, apart): Places,
) {
    let device = stream.device();
    for ([rows, cols], granularity) in SIZES.into_iter().flat_map(|size| ALL.map(|of| (size, of))) {
        let x = draw(random, [rows, cols]).into_iter().map(T::of).collect::<Vec<_>>();
        let wide = |at: usize| -> f64 { x[at].into() };
        let turns = granularity == Granularity::Block128x128 && random.below(2) == 0;
        let (down, across) = if turns { (cols, rows) } else { (rows, cols) };
        let [pitch, to_pitch] = gap.map(|gap| across + gap);
        let place = |at: usize, pitch: usize| match turns {
            true => at % cols * pitch + at / cols,
            false => at / cols * pitch + at % cols,
        };
        let mut from = vec![T::of(f32::NAN); first[0] + down * pitch];
        (0..x.len()).for_each(|at| from[first[0] + place(at, pitch)] = x[at]);
        let from = device.upload(&from).unwrap();
        let guard = Q::of(-1.0);
        let mut to = device.upload(&vec![guard; first[1] + down * to_pitch]).unwrap();
        let (m, n) = granularity.scales(rows, cols);
        let mut scales = device.upload(&vec![-1f32; m * n * apart]).unwrap();
        let strides = |pitch| if turns { [1, pitch] } else { [pitch, 1] };
        let view = from.view(first[0]..).unwrap();
        let view = MatrixView::new(view, rows, cols, strides(pitch)).unwrap();
        let q = to.view_mut(first[1]..).unwrap();
        let q = MatrixViewMut::new(q, rows, cols, strides(to_pitch)).unwrap();
        // By columns.
        let s = MatrixViewMut::new(scales.all_mut(), m, n, [apart, apart * m]).unwrap();
        quantise(stream, granularity, view, q, s).unwrap();

        let context = format!("{rows} x {cols}, {granularity:?}, turned {turns}, {device}");
        let (to, scales) = (to.to_vec().unwrap(), scales.to_vec().unwrap());
        let [height, width] = match granularity {
            Granularity::Row => [1, cols],
            Granularity::Block1x128 => [1, 128],
            _ => [128, 128],
        };
        let mut is_of_q = vec![false; to.len()];
        for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
            let members = (row * height..rows.min((row + 1) * height)).flat_map(|row| {
                (col * width..cols.min((col + 1) * width)).map(move |col| row * cols + col)
            });
            let scale = scale_of::<Q>(members.clone().map(|at| wide(at) as f32));
            let got = scales[(col * m + row) * apart];
            assert_eq!(got.to_bits(), scale.to_bits(), "scale ({row}, {col}) of {context}");
            for at in members {
                let place = first[1] + place(at, to_pitch);
                is_of_q[place] = true;
                let (got, want): (f64, _) =
                    (to[place].into(), rounded::<Q>(wide(at) as f32, scale));
                let is_same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(is_same, "{got}, {want}: {} over {scale}, {at} of {context}", wide(at));
            }
        }
        let beside = to.iter().zip(&is_of_q).filter(|(_, is_of_q)| !**is_of_q);
        assert!(beside.into_iter().all(|(q, _)| (*q).into() == -1.0), "beside {context}");
        let gaps = scales.iter().enumerate().filter(|(at, _)| at % apart != 0);
        assert!(gaps.into_iter().all(|(_, scale)| *scale == -1.0), "beside the scales: {context}");
    }
}

#[test]
fn every_bit_is_as_documented() {
    // Aligned rows; rows that are not; and one of both alone.
    let aligned = ([0, 0], [0, 16], 1);
    let places: [Places; 4] =
        [aligned, ([16, 8], [8, 8], 2), ([0, 3], [0, 0], 1), ([1, 0], [3, 1], 3)];
    for (_, stream) in streams() {
        let mut random = Random::new(821);
        for places in places {
            check::<f32, E4m3>(&stream, &mut random, places);
            check::<Bf16, E4m3>(&stream, &mut random, places);
        }
        for places in [aligned, ([5, 2], [1, 7], 1)] {
            check::<f32, E5m2>(&stream, &mut random, places);
            check::<f32, i8>(&stream, &mut random, places);
            check::<F16, E5m2>(&stream, &mut random, places);
            check::<Bf16, i8>(&stream, &mut random, places);
            check::<F16, E4m3>(&stream, &mut random, places);
        }
    }
    counted("float8::quantise::every_bit_is_as_documented", 18);
}

/// A product of what was rounded: off by the rounding of 8 bits, and by the bound of the product.
#[test]
fn products_are_off_by_half_a_step() {
    fn check<Q: Element + Scalar<f32>>(device: &Device, granularity: [Granularity; 2]) {
        let stream = device.stream().unwrap();
        let (mut random, [m, n, k]) = (Random::new(822), [33, 150, 300]);
        let [(a, of_a, x), (b, of_b, y)] =
            [(m, granularity[0]), (n, granularity[1])].map(|(rows, of)| {
                let unit = |bits: u64| (bits >> 40) as f32 / 8_388_608.0 - 1.0;
                let x =
                    (0..rows * k).map(|at| unit(random.next()) * 2f32.powi((at / k % 9) as i32));
                let x = x.collect::<Vec<_>>();
                let (down, across) = of.scales(rows, k);
                let from = Matrix::from_row_major(device, rows, k, &x).unwrap();
                let mut q = Matrix::<Q>::zeros(device, rows, k).unwrap();
                let mut scales = Matrix::zeros(device, down, across).unwrap();
                quantise(&stream, of, from.view(), q.view_mut(), scales.view_mut()).unwrap();
                (q, scales, x)
            });
        let (of_a, of_b) = (of_a.view(), of_b.view().t());
        let scales = match granularity[0] {
            Granularity::Row => Scales::RowsCols { a: of_a.into(), b: of_b.into() },
            _ => Scales::Blocks { a: of_a.into(), b: of_b.into() },
        };
        let mut c = Matrix::<f32>::zeros(device, m, n).unwrap();
        let gemm = Gemm::<Q, f32>::of_types().scales(scales);
        gemm.run(&stream, a.view(), b.view().t(), c.view_mut()).unwrap();

        // Half a step: of a number, and of the least ones of a group. The greatest of a row is at
        // most 2^(row % 9), that of 128 rows 256.
        let (relative, least) = match Q::FORMAT.is_float() {
            true => (Q::FORMAT.roundoff(), Q::FORMAT.tiny()),
            false => (0.0, 0.5),
        };
        let step = |of: Granularity, row: usize| {
            let greatest = match of {
                Granularity::Block128x128 => 256.0,
                _ => 2f64.powi((row % 9) as i32),
            };
            1.001 * greatest / f64::from(largest::<Q>()) * least
        };
        let gamma = of_short_sums(Q::FORMAT) + (k + 8) as f64 * 2f64.powi(-24);
        let mut most = 0f64;
        for (at, got) in c.to_row_major().unwrap().into_iter().enumerate() {
            let (mut sum, mut rounding, mut size) = (0.0, 0.0, 0.0);
            let steps = [step(granularity[0], at / n), step(granularity[1], at % n)];
            for p in 0..k {
                let x = [x[at / n * k + p], y[at % n * k + p]].map(f64::from);
                let [wide, other] = [0, 1].map(|i| x[i].abs() * (1.0 + relative) + steps[i]);
                sum += x[0] * x[1];
                size += wide * other;
                rounding += wide * other - (x[0] * x[1]).abs();
            }
            let off = (f64::from(got) - sum).abs();
            assert!(off <= rounding + gamma * size, "{off}, {rounding}, {size}: {at} on {device}");
            most = most.max(off / size);
        }
        // With a wrong scale somewhere the sum would be off by more than all rounding.
        assert!(0.0 < most && most < 0.02, "{most}");
    }
    let mut count = 0;
    for device in devices().into_iter().filter(runs_wgmma) {
        let blocks = [Granularity::Block1x128, Granularity::Block128x128];
        check::<E4m3>(&device, [Granularity::Row; 2]);
        check::<E4m3>(&device, blocks);
        check::<E5m2>(&device, blocks);
        check::<i8>(&device, [Granularity::Row; 2]);
        count += 1;
    }
    counted("float8::quantise::products_are_off_by_half_a_step", 4 * count.min(1));
}

/// Messages name the argument and the limit, and nothing is written.
#[test]
fn wrong_arguments_are_refused() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let x = Matrix::from_row_major(&device, 4, 6, &[1f32; 24]).unwrap();
    let mut q = Matrix::from_row_major(&device, 4, 6, &[E4m3::of(3.0); 24]).unwrap();
    let mut of = Matrix::<f32>::zeros(&device, 4, 1).unwrap();
    let row = Granularity::Row;
    let mut run = |granularity, x: MatrixView<f32>, rows: usize| {
        let q = q.view_mut().sub(0..rows, 0..6).unwrap();
        quantise(&stream, granularity, x, q, of.view_mut()).unwrap_err().to_string()
    };
    assert_eq!(run(row, x.view(), 3), "q = 3 x 6: must be 4 x 6");
    let tall = Granularity::Block128x128;
    assert_eq!(run(tall, x.view(), 4), "scales = 4 x 1: must be 1 x 1");
    let columns = Matrix::<f32>::with_layout(&device, 4, 6, host::Layout::ColMajor, 4).unwrap();
    let said = "x.strides = [1, 4]: must be 1 along a row: transpose or copy it before";
    assert_eq!(run(row, columns.view(), 4), said);
    let mut of = Matrix::<f32>::zeros(&device, 1, 1).unwrap();
    let said = quantise(&stream, tall, columns.view(), q.view_mut(), of.view_mut()).unwrap_err();
    assert!(said.to_string().starts_with("q.strides = [6, 1]: must be 1 along"), "{said}");
    assert!(q.to_row_major().unwrap().iter().all(|q| *q == E4m3::of(3.0)));
    let mut of = Matrix::<f32>::zeros(&device, 4, 1).unwrap();
    let mut more = Matrix::zeros(&device, 4, 1).unwrap();
    let said = quantise(&stream, row, q.view(), of.view_mut(), more.view_mut());
    assert_eq!(said.unwrap_err().to_string(), "x = e4m3: must be of f32, bf16 or f16");
    // Without elements there is nothing to do, but scales of rows.
    let none = Matrix::<f32>::zeros(&device, 4, 0).unwrap();
    let mut empty = Matrix::<i8>::zeros(&device, 4, 0).unwrap();
    quantise(&stream, row, none.view(), empty.view_mut(), of.view_mut()).unwrap();
    assert_eq!(of.to_row_major().unwrap(), [1.0; 4]);
    counted("float8::quantise::wrong_arguments_are_refused", 1);
}
