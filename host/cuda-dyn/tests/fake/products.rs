//! The products that kernels compute.

use crate::settings::Handle;

/// Whether a kernel of that name takes tensor maps, which the stand-in does not support.
pub(crate) fn takes_boxes(name: &str) -> bool {
    let words = name.split('_').collect::<Vec<_>>();
    ["tma", "wgmma"].contains(&words[0]) && !words.contains(&"ldg")
}

/// The types of A, B and C of a product's kernel, from the words after the family in its name. (The
/// stand-in is compiled separately and has no registry.)
pub(crate) fn types(name: &str) -> Option<[Numbers; 3]> {
    let of = |word| match word {
        "f32" | "tf32" => Some(Numbers::F32),
        "bf16" => Some(Numbers::Bf16),
        "f16" => Some(Numbers::F16),
        _ => None,
    };
    let mut words = name.split('_');
    words.next().filter(|family| ["gemm", "mma", "wgmma"].contains(family))?;
    let operands = of(words.next()?)?;
    Some([operands, operands, words.next().and_then(of).unwrap_or(operands)])
}

/// `C = A B`, row-major. `params`: the addresses of m, n, k, and of the addresses of A, B and C.
pub(crate) unsafe fn multiply(params: &[Handle]) {
    unsafe {
        let [m, n, k] = [0, 1, 2].map(|i| *params[i].cast::<u32>() as usize);
        let [a, b, c] = [3, 4, 5].map(|i| *params[i].cast::<*mut f32>());
        for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
            let products = (0..k).map(|i| *a.add(row * k + i) * *b.add(i * n + col));
            *c.add(row * n + col) = products.sum();
        }
    }
}

/// The parameters of `Gemm`'s kernels, as far as they are used here.
#[repr(C)]
pub(crate) struct Problem {
    pub(crate) sizes: [u32; 3],
    pub(crate) bias: u32,
    pub(crate) activation: u32,
    pub(crate) products: u32,
    pub(crate) wide: u64,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) strides: [[u64; 2]; 3],
    pub(crate) steps: [u64; 3],
}

/// A type of elements.
#[derive(Clone, Copy)]
pub(crate) enum Numbers {
    F32,
    Bf16,
    F16,
}

/// A finite f16 as f32: its exponent is 112 less than that of the f32 with the same fields.
pub(crate) fn of_half(bits: u16) -> f32 {
    let size = f32::from_bits(u32::from(bits & 0x7fff) << 13) * 2f32.powi(112);
    if bits >> 15 == 1 { -size } else { size }
}

/// The nearest f16. Ties go to the even one.
pub(crate) fn to_half(value: f32) -> u16 {
    let bits = (value.abs() * 2f32.powi(-112)).to_bits();
    let nearest = (bits + 0xfff + (bits >> 13 & 1)) >> 13;
    nearest as u16 | (u16::from(value.is_sign_negative()) << 15)
}

/// The element at that index.
pub(crate) unsafe fn read(start: *const u8, index: usize, of: Numbers) -> f32 {
    unsafe {
        match of {
            Numbers::Bf16 => f32::from_bits(u32::from(*start.cast::<u16>().add(index)) << 16),
            Numbers::F16 => of_half(*start.cast::<u16>().add(index)),
            Numbers::F32 => *start.cast::<f32>().add(index),
        }
    }
}

/// Writes an element, rounded to the nearest for 16 bits. Ties go to the even one.
pub(crate) unsafe fn write(start: *mut u8, index: usize, of: Numbers, value: f32) {
    let bits = value.to_bits();
    let nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    unsafe {
        match of {
            Numbers::Bf16 => *start.cast::<u16>().add(index) = nearest as u16,
            Numbers::F16 => *start.cast::<u16>().add(index) = to_half(value),
            Numbers::F32 => *start.cast::<f32>().add(index) = value,
        }
    }
}

/// The function with that number, as `Gemm`'s kernels name it.
fn activated(activation: u32, x: f32) -> f32 {
    let x = f64::from(x);
    let value = match activation {
        0 => x,
        1 if x < 0.0 => 0.0,
        1 => x,
        2 => 0.5 * x * erfc(-x / 2f64.sqrt()),
        3 => {
            let inner = 0.797_884_560_802_865_4 * (x + 0.044715 * x.powi(3));
            x / (1.0 + (-2.0 * inner).exp())
        }
        4 => x / (1.0 + (-x).exp()),
        other => panic!("activation {other}"),
    };
    value as f32
}

/// `1 - erf(z)`: by the series of erf, or by the continued fraction of erfc where that is small.
fn erfc(z: f64) -> f64 {
    let root = std::f64::consts::PI.sqrt();
    if z < -2.0 {
        return 2.0 - erfc(-z);
    }
    if z < 2.0 {
        let (mut term, mut sum) = (z, z);
        for n in 1..200 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - 2.0 / root * sum;
    }
    let fraction = (1..200).rev().fold(z, |rest, n| z + f64::from(n) / 2.0 / rest);
    (-z * z).exp() / root / fraction
}

/// `C = activation(alpha A B + beta C + bias)`, `count` times. `params`: the addresses of the
/// parameters, and of the addresses of A, B, C and the bias. The types of A, B and C are `of`.
pub(crate) unsafe fn multiply_batch(params: &[Handle], count: usize, of: [Numbers; 3]) {
    unsafe {
        let problem = &*params[0].cast::<Problem>();
        let (alpha, beta) = (problem.alpha as f32, problem.beta as f32);
        let [m, n, k] = problem.sizes.map(|size| size as usize);
        for index in 0..count {
            let place = |operand: usize, row: usize, col: usize| {
                let [between_rows, between_cols] = problem.strides[operand].map(|it| it as usize);
                let step = problem.steps[operand] as usize;
                index * step + row * between_rows + col * between_cols
            };
            let start = |operand: usize| *params[1 + operand].cast::<*mut u8>();
            let element = |operand: usize, row: usize, col: usize| {
                read(start(operand), place(operand, row, col), of[operand])
            };
            for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
                let sum: f32 = (0..k).map(|i| element(0, row, i) * element(1, i, col)).sum();
                let mut value = alpha * sum;
                if beta != 0.0 {
                    value = beta.mul_add(element(2, row, col), value);
                }
                value += match problem.bias {
                    0 => 0.0,
                    1 => read(start(3), row, of[2]),
                    _ => read(start(3), col, of[2]),
                };
                let value = activated(problem.activation, value);
                write(start(2), place(2, row, col), of[2], value);
            }
        }
    }
}
