//! Products of 8-bit floating-point numbers: their sums as the literature says that Hopper has
//! them, and on a GPU what the model computes.
//!
//! The PTX of the kernel is committed here, as `cargo xtask build-ptx` wrote it in a crate with it.
//! Without a Hopper the comparison is skipped, and says so.

use host::Device;
use simt::{E4m3, E5m2, LaunchConfig, types::Type};
use tests::hoppers;

use super::{device::*, integers::product, truncated_to};

const N: usize = 64;
const K: usize = 128;

/// C (64 x 64, row-major) = `times` times A B, 128 k-steps.
#[kernel(
    block = (128), dynamic_shared = (64 + N) * K, barriers = 1, arch = 90,
    constants(fp8 = e4m3 | e5m2)
)]
pub fn float8_64(times: u32, a: In<Fp8>, b: In<Fp8>, c: Out<f32>) {
    product::<_, N>(times, a, b, c);
}

/// A finite number of either operand. By the row some have all exponents, some similar ones.
fn bits(of: Type, row: usize, p: usize, salt: u64) -> u8 {
    let mixed =
        (row as u64 * 2_654_435_761 + p as u64 * 40_503 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (any, finite) = ((mixed >> 40) as u8, if of == Type::E4M3 { 0x7e } else { 0x7b });
    let magnitude = match row % 3 {
        0 => any & 0x7f,
        // The exponents of 1 and its neighbours.
        1 => 0x30 + any % 24,
        _ => any % 24,
    };
    magnitude.min(finite) | any & 0x80
}

fn number(of: Type, bits: u8) -> f32 {
    match of == Type::E4M3 {
        true => E4m3::from_bits(bits).to_f32(),
        false => E5m2::from_bits(bits).to_f32(),
    }
}

fn run(device: &Device, times: u32, of: Type) -> Vec<f32> {
    let stream = device.stream().unwrap();
    let numbers = |rows: usize, salt| {
        (0..rows * K).map(move |at| bits(of, at / K, at % K, salt)).collect::<Vec<_>>()
    };
    let [a, b] = [numbers(64, 1), numbers(N, 999)];
    let mut c = device.zeros::<f32>(64 * N).unwrap();
    let dynamic_shared = float8_64.declaration.dynamic_shared.unwrap();
    let config = LaunchConfig { dynamic_shared, ..LaunchConfig::new([1; 3], [128, 1, 1]) };
    macro_rules! launch {
        ($ty:ident) => {
            let [a, b] = [a, b].map(|bits| {
                let all = bits.into_iter().map($ty::from_bits).collect::<Vec<_>>();
                device.upload(&all).unwrap()
            });
            // SAFETY: the operands and C have as many elements as the kernel reads and writes.
            unsafe { stream.launch(&float8_64, &config, (times, &a, &b, &mut c)).unwrap() };
        };
    }
    match of == Type::E4M3 {
        true => {
            launch! { E4m3 }
        }
        false => {
            launch! { E5m2 }
        }
    }
    c.to_vec().unwrap()
}

fn is_rounded_as_on_hopper(of: Type) {
    let number = |row, p, salt| number(of, bits(of, row, p, salt));
    let least = of.format().least_exponent();
    let c = run(&Device::cpu(), 3, of);
    let mut inexact = 0;
    for (at, sum) in c.into_iter().enumerate() {
        let (row, col) = (at / N, at % N);
        let (mut expected, mut exact) = (0.0, 0.0);
        for first in [0, 32, 64, 96].repeat(3) {
            let products: [(f32, f32); 32] =
                std::array::from_fn(|p| (number(row, first + p, 1), number(col, first + p, 999)));
            let next = truncated_to(13, least, expected, products);
            expected = f32::from_bits(next.to_bits() & !0x3ff) + 0.0;
            exact += products.iter().map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        }
        assert_eq!(sum.to_bits(), expected.to_bits(), "{of} ({row}, {col})");
        inexact += usize::from(f64::from(sum) != exact);
    }
    assert!(inexact > 64 * N / 2, "{inexact} sums lose bits");
}

#[test]
fn sums_of_8_bit_floats_are_those_of_the_literature() {
    is_rounded_as_on_hopper(Type::E4M3);
    is_rounded_as_on_hopper(Type::E5M2);
}

fn is_that_of_the_model(device: &Device, of: Type) {
    for times in [1, 3] {
        let [got, want] = [device, &Device::cpu()].map(|device| run(device, times, of));
        let differing = got.iter().zip(&want).filter(|(got, want)| got.to_bits() != want.to_bits());
        let first = got.iter().zip(&want).position(|(got, want)| got.to_bits() != want.to_bits());
        assert_eq!(
            differing.count(),
            0,
            "{of} on {device}, {times} times: first {:?}",
            first.map(|at| (at / N, at % N, got[at], want[at]))
        );
    }
}

#[test]
fn sums_of_8_bit_floats_on_a_gpu_are_those_of_the_model() {
    for device in hoppers() {
        // SAFETY: it is what the kernel of this name was compiled to.
        unsafe { device.load_ptx("float8_64", include_str!("ptx/float8_64.ptx")).unwrap() };
        is_that_of_the_model(&device, Type::E4M3);
        is_that_of_the_model(&device, Type::E5M2);
    }
}
