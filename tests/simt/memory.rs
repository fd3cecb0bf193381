//! Accesses of several elements, the fused multiply-add, the exponential function and the square
//! root.

use super::*;

/// Copies sixteen bytes at a time: global to shared, reversed by lane, and back; and once through
/// dynamic shared memory.
#[kernel(block = (16), shared = 64 * 4)]
fn copies(from: In<f32>, mut to: Out<f32>) {
    let mut tile = shared![f32; 64];
    let mut dynamic = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let four: [f32; 4] = from.load128(4 * t);
    tile.store128(4 * (15 - t), four);
    thread::sync_threads();
    let other: [f32; 4] = tile.load128(4 * t);
    dynamic.store128(4 * t, other);
    thread::sync_threads();
    let same: [f32; 4] = dynamic.load128(4 * t);
    to.store128(4 * t, same);
    let read_back: [f32; 4] = to.load128(4 * t);
    to[4 * t] = -read_back[0];
}

#[test]
fn sixteen_bytes_at_a_time() {
    let from = Aligned([0; 64].map({
        let mut next = 0.0;
        move |_: i32| {
            next += 1.0;
            next
        }
    }));
    let mut to = Aligned([0.0f32; 64]);
    let config = LaunchConfig { dynamic_shared: 256, ..LaunchConfig::new([1, 1, 1], [16, 1, 1]) };
    let params = (read(&from.0), write(&mut to.0));
    launch_with(&copies, config, params, &Options::default()).unwrap();
    for (at, &value) in to.0.iter().enumerate() {
        let expected = from.0[(15 - at / 4) * 4 + at % 4];
        assert_eq!(value, if at % 4 == 0 { -expected } else { expected }, "element {at}");
    }
}

/// Each thread writes two neighbours with the view's own misalignment, except the thread that is
/// left out.
#[kernel(block = (8))]
fn pairs(left_out: u32, mut to: Out<f32>) {
    let t = thread::thread_idx_x();
    let at = to.misalignment::<16>() % 2 + 2 * t as usize;
    to.store_if(at, [t as f32, -(t as f32)], t != left_out);
}

#[test]
fn two_elements_where_that_is_valid() {
    let mut to = Aligned([9.0f32; 64]);
    launch(&pairs, [1, 1, 1], [8, 1, 1], (3, write(&mut to.0[1..18]))).unwrap();
    for (at, &value) in to.0.iter().enumerate() {
        let t = at.wrapping_sub(2) / 2;
        let sign = if at % 2 == 0 { 1.0 } else { -1.0 };
        let expected = if t < 8 && t != 3 { sign * t as f32 } else { 9.0 };
        assert_eq!(value, expected, "element {at}");
    }
}

/// Each thread writes one 16-bit element, except the thread that is left out.
#[kernel(block = (8))]
fn halves(left_out: u32, mut to: Out<F16>) {
    let t = thread::thread_idx_x();
    to.store_if(t as usize, [F16::from_f32(t as f32)], t != left_out);
}

#[test]
fn two_bytes_where_that_is_valid() {
    let mut to = [F16::from_f32(9.0); 16];
    launch(&halves, [1, 1, 1], [8, 1, 1], (5, write(&mut to[1..9]))).unwrap();
    for (at, value) in to.iter().enumerate() {
        let expected = if (1..9).contains(&at) && at != 6 { at as f32 - 1.0 } else { 9.0 };
        assert_eq!(value.to_f32(), expected, "element {at}");
    }
}

#[kernel]
fn multiply_add(x: f32, y: f64, mut single: Out<f32>, mut double: Out<f64>) {
    // Rounded twice, the difference from the rounded square would be zero.
    single[0] = fma(x, x, -(x * x));
    double[0] = fma(y, y, -(y * y));
}

#[test]
fn a_fused_multiply_add_is_rounded_once() {
    let (x, y) = (1.0f32 + f32::EPSILON, 1.0f64 + f64::EPSILON);
    let (mut single, mut double) = (vec![0.0], vec![0.0]);
    let params = (x, y, write(&mut single), write(&mut double));
    launch(&multiply_add, [1, 1, 1], [1, 1, 1], params).unwrap();
    // (1 + e)^2 = 1 + 2 e + e^2, and e^2 is lost by rounding.
    assert_eq!(single[0], f32::EPSILON * f32::EPSILON);
    assert_eq!(double[0], f64::EPSILON * f64::EPSILON);
}

#[kernel(block = (32))]
fn root(x: In<f32>, mut to: Out<f32>) {
    let t = thread::thread_idx_x() as usize;
    to[t] = sqrt(x[t]);
}

#[test]
fn a_softmax_and_a_root() {
    let x = (0..64).map(|i| (i * 37 % 64) as f32 + 60.0).collect::<Vec<_>>();
    let mut to = vec![f32::NAN; 64];
    let softmax = &specimens::kernels::clean::softmax;
    launch(softmax, [1, 1, 1], [64, 1, 1], (64, read(&x), write(&mut to))).unwrap();
    for (x, to) in x.chunks(32).zip(to.chunks(32)) {
        let powers = x.iter().map(|x| f64::from(x - 123.0).exp()).collect::<Vec<_>>();
        let sum = powers.iter().sum::<f64>();
        for (power, to) in powers.into_iter().zip(to) {
            assert!((f64::from(*to) - power / sum).abs() <= 6e-7 * power / sum, "{to}");
        }
    }
    let x = (0..32).map(|i| i as f32 - 1.0).collect::<Vec<_>>();
    launch(&root, [1, 1, 1], [32, 1, 1], (read(&x), write(&mut to))).unwrap();
    assert!(to[0].is_nan() && (1..32).all(|i| to[i] == x[i].sqrt()), "{to:?}");
}

/// Every kind of parameter arrives unchanged.
#[kernel]
fn parameters(a: u32, b: i32, c: u64, d: i64, e: f32, f: f64, mut out: Out<f64>) {
    out[0] = a.into();
    out[1] = b.into();
    out[2] = c as f64;
    out[3] = d as f64;
    out[4] = e.into();
    out[5] = f;
}

#[test]
fn numbers_arrive_as_they_were_given() {
    let mut out = vec![0.0; 6];
    let params = (u32::MAX, -1, 1 << 40, -(1 << 40), 0.5, -0.25, write(&mut out));
    launch(&parameters, [1, 1, 1], [1, 1, 1], params).unwrap();
    let wide = 1_099_511_627_776.0;
    assert_eq!(out, [4_294_967_295.0, -1.0, wide, -wide, 0.5, -0.25]);
}

/// Each thread writes four elements, except the thread that is left out.
#[kernel(block = (8))]
fn fours(left_out: u32, mut to: Out<f32>) {
    let t = thread::thread_idx_x();
    to.store_if(4 * t as usize, [t as f32, 1.0, 2.0, 3.0], t != left_out);
}

#[test]
fn four_elements_where_that_is_valid() {
    let mut to = Aligned([9.0f32; 64]);
    launch(&fours, [1, 1, 1], [8, 1, 1], (5, write(&mut to.0[..32]))).unwrap();
    for (at, &value) in to.0.iter().enumerate() {
        let expected = [(at / 4) as f32, 1.0, 2.0, 3.0][at % 4];
        assert_eq!(value, if at < 32 && at / 4 != 5 { expected } else { 9.0 }, "element {at}");
    }
}
