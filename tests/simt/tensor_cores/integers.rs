//! Products of 8-bit integers, whose sums are i32.

use simt::{Kernel, LaunchConfig, cpu};

use super::device::{warpgroup::*, *};

/// C (64 x `N`, row-major) = `times` times A B of 8-bit numbers, 128 k-steps. Rows of A and columns
/// of B are along k.
pub fn product<T: Factor, const N: usize>(times: u32, a: In<T>, b: In<T>, mut c: Out<T::Sum>) {
    let mut tiles = dynamic_shared![T];
    let k = thread::thread_idx_x() as usize;
    for row in 0..64 + N {
        // Groups of sixteen elements are at their swizzled places.
        let at = row * 128 + (k ^ (row % 8 * 16));
        tiles[at] = if row < 64 { a[row * 128 + k] } else { b[(row - 64) * 128 + k] };
    }
    fence_proxy_async();
    thread::sync_threads();
    let a = tiles.operand::<KMajor<128, 1>>(0);
    let b = tiles.operand::<KMajor<128, 1>>(64 * 128);
    let mut sums = Accumulators::<N, T::Sum>::zeroed();
    for _ in 0..times {
        sums.multiply_add(a, b);
        commit();
    }
    sums.wait::<0>().for_each(|row, col, sum| c[row as usize * N + col as usize] = sum);
}

macro_rules! integers {
    ($($name:ident $n:literal)*) => {
        $(
            #[kernel(block = (128), dynamic_shared = (64 + $n) * 128, barriers = 1, arch = 90)]
            pub fn $name(times: u32, a: In<i8>, b: In<i8>, c: Out<i32>) {
                product::<_, $n>(times, a, b, c);
            }
        )*

        /// Columns, and the kernel.
        pub const KERNELS: [(usize, &Integers); 18] = [$(($n, &$name)),*];
    };
}

integers! {
    integers_8 8 integers_16 16 integers_24 24 integers_32 32 integers_48 48 integers_64 64
    integers_80 80 integers_96 96 integers_112 112 integers_128 128 integers_144 144
    integers_160 160 integers_176 176 integers_192 192 integers_208 208 integers_224 224
    integers_240 240 integers_256 256
}

pub type Integers = Kernel<(u32, In<i8>, In<i8>, Out<i32>)>;

/// The greatest sums have row 5 and column 3.
pub fn a(row: usize, p: usize) -> i8 {
    if row == 5 { i8::MIN } else { (row * 37 + p * 101) as u8 as i8 }
}

pub fn b(col: usize, p: usize) -> i8 {
    if col == 3 { i8::MIN } else { (col * 59 + p * 83) as u8 as i8 }
}

fn is_exact((columns, kernel): (usize, &Integers), times: u32) {
    let rows = (0..64 * 128).map(|at| a(at / 128, at % 128)).collect::<Vec<_>>();
    let cols = (0..columns * 128).map(|at| b(at / 128, at % 128)).collect::<Vec<_>>();
    let mut c = vec![0; 64 * columns];
    let dynamic_shared = kernel.declaration.dynamic_shared.unwrap();
    let config = LaunchConfig { dynamic_shared, ..LaunchConfig::new([1; 3], [128, 1, 1]) };
    let params = (times, crate::read(&rows), crate::read(&cols), crate::write(&mut c));
    crate::launch_with(kernel, config, params, &cpu::Options::default()).unwrap();
    for (at, sum) in c.into_iter().enumerate() {
        let (row, col) = (at / columns, at % columns);
        let products = (0..128).map(|p| i64::from(a(row, p)) * i64::from(b(col, p)));
        let expected = i64::from(times) * products.sum::<i64>();
        assert_eq!(sum, expected as i32, "({row}, {col}) of {columns} columns, {times} times");
    }
}

#[test]
fn products_of_8_bits_are_exact_whatever_the_columns() {
    for kernel in KERNELS {
        is_exact(kernel, 2);
    }
}

#[test]
fn sums_of_8_bits_wrap_around() {
    // 1024 times 128 times 2^14 is 2^31, one more than an i32 has.
    is_exact(KERNELS[0], 1024);
}
