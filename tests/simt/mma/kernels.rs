//! The kernels, which are compiled for fast and for checked launches.

use super::device::{mma::*, *};

/// C (32 x 32, row-major) = A B, 16 k-steps, by one warp. A has rows of 16 steps or, transposed, 16
/// rows of 32. B likewise.
#[inline(always)]
#[track_caller]
fn product<T: Half16, const A: bool, const B: bool>(a: In<T>, b: In<T>, c: &mut Out<f32>) {
    let mut tiles = shared![T; 2, 512];
    let lane = thread::lane_id() as usize;
    for (number, matrix) in [a, b].iter().enumerate() {
        for i in (lane * 8..512).step_by(32 * 8) {
            tiles.copy_async::<8>(number * 512 + i, matrix, i, true);
        }
    }
    copies::commit_group();
    copies::wait_group::<0>();
    thread::sync_threads();
    let (outer, k) = (lane % 16, lane / 16 * 8);
    let (outer_half, k_row) = (lane / 8 % 2 * 8, lane % 8 + lane / 16 * 8);
    let row = |transposed: bool, number: usize, first: usize| {
        let at = match transposed {
            false => (first + outer) * 16 + k,
            true => k_row * 32 + first + outer_half,
        };
        number * 512 + at
    };
    let a = [0, 16].map(|first| tiles.load_fragment_either(row(A, 0, first), A));
    let b = [0, 16].map(|first| tiles.load_fragment_either(row(B, 1, first), B));
    let mut sums = Accumulators::<2, 2>::zeroed();
    sums.multiply_add(&a, &b);
    sums.multiply_add(&a, &b);
    let mut put = |first: usize, row: u32, col: u32, pair: [f32; 2]| {
        let at = (first + row as usize) * 32 + col as usize;
        (c[at], c[at + 1]) = (pair[0], pair[1]);
    };
    sums.for_each_pair_of::<0>(|row, col, pair| put(0, row, col, pair));
    sums.for_each_pair_of::<1>(|row, col, pair| put(16, row, col, pair));
}

/// Kernels of a product whose A and B are MN-major or not.
macro_rules! kernels {
    ($bytes:expr; $($name:ident: $type:ident, $product:path;)*) => {$(
        #[kernel(block = (32), shared = $bytes, barriers = 1)]
        pub fn $name(a: In<$type>, b: In<$type>, mut c: Out<f32>) {
            $product(a, b, &mut c);
        }
    )*};
}

kernels! {
    2 * 512 * 2;
    plain_by_plain: Bf16, product::<_, false, false>;
    plain_by_transposed: Bf16, product::<_, false, true>;
    transposed_by_plain: Bf16, product::<_, true, false>;
    transposed_by_transposed: Bf16, product::<_, true, true>;
    of_f16: F16, product::<_, false, true>;
}

/// C (32 x 32, row-major) = A B of f32, rounded to tf32, 8 k-steps, by one warp. A has rows of 8
/// steps or, MN-major, 8 rows of 32, of which each lane loads its elements. B likewise.
#[inline(always)]
#[track_caller]
fn product_of_f32<const A: bool, const B: bool>(a: In<f32>, b: In<f32>, c: &mut Out<f32>) {
    let mut tiles = shared![f32; 2, 256];
    let lane = thread::lane_id() as usize;
    for (number, matrix) in [a, b].iter().enumerate() {
        for i in (lane * 4..256).step_by(32 * 4) {
            tiles.copy_async::<4>(number * 256 + i, matrix, i, true);
        }
    }
    copies::commit_group();
    copies::wait_group::<0>();
    thread::sync_threads();
    let fragment = |across: bool, number: usize, first: usize| match across {
        false => {
            let row = (first + lane % 16) * 8 + lane / 16 * 4;
            tiles.load_fragment(number * 256 + row)
        }
        true => {
            let place = |outer: usize, k: usize| number * 256 + k * 32 + first + outer;
            let (outer, k) = (lane / 4, lane % 4);
            Fragment::rounded([
                tiles[place(outer, k)],
                tiles[place(outer + 8, k)],
                tiles[place(outer, k + 4)],
                tiles[place(outer + 8, k + 4)],
            ])
        }
    };
    let a = [0, 16].map(|first| fragment(A, 0, first));
    let b = [0, 16].map(|first| fragment(B, 1, first));
    let mut sums = Accumulators::<2, 2>::zeroed();
    sums.multiply_add(&a, &b);
    sums.multiply_add(&a, &b);
    let mut put = |first: usize, row: u32, col: u32, pair: [f32; 2]| {
        let at = (first + row as usize) * 32 + col as usize;
        (c[at], c[at + 1]) = (pair[0], pair[1]);
    };
    sums.for_each_pair_of::<0>(|row, col, pair| put(0, row, col, pair));
    sums.for_each_pair_of::<1>(|row, col, pair| put(16, row, col, pair));
}

kernels! {
    2 * 256 * 4;
    along_by_along: f32, product_of_f32::<false, false>;
    along_by_across: f32, product_of_f32::<false, true>;
    across_by_along: f32, product_of_f32::<true, false>;
    across_by_across: f32, product_of_f32::<true, true>;
}

/// C (32 x 32, row-major) = twice A B of f64, by an atom of so many k-steps. Each lane loads its
/// elements from global memory.
macro_rules! of_f64 {
    ($($kernel:ident: $atom:ident, $steps:literal;)*) => {$(
        #[kernel(block = (32))]
        pub fn $kernel(a: In<f64>, b: In<f64>, mut c: Out<f64>) {
            let lane = thread::lane_id() as usize;
            let fragment = |matrix: &In<f64>, first: usize| {
                Fragment::<$atom<f64>>::from_elements(core::array::from_fn(|i| {
                    let (outer, k) = (first + lane / 4 + i % 2 * 8, lane % 4 + i / 2 * 4);
                    matrix[outer * $steps + k]
                }))
            };
            let rows = [0, 16].map(|first| fragment(&a, first));
            let cols = [0, 16].map(|first| fragment(&b, first));
            let mut sums = Accumulators::<2, 2, f64>::zeroed();
            sums.multiply_add(&rows, &cols);
            sums.multiply_add(&rows, &cols);
            let mut put = |first: usize, row: u32, col: u32, pair: [f64; 2]| {
                let at = (first + row as usize) * 32 + col as usize;
                (c[at], c[at + 1]) = (pair[0], pair[1]);
            };
            sums.for_each_pair_of::<0>(|row, col, pair| put(0, row, col, pair));
            sums.for_each_pair_of::<1>(|row, col, pair| put(16, row, col, pair));
        }
    )*};
}

of_f64! {
    f64_m8n8k4: M8n8k4, 4;
    f64_m16n8k4: M16n8k4, 4;
    f64_m16n8k8: M16n8k8, 8;
    f64_m16n8k16: M16n8k16, 16;
}

/// C (32 x 32, row-major) = `times` times A B of i8, 32 k-steps. Rows of A and columns of B are
/// along k.
#[kernel(block = (32), shared = 2 * 1024, barriers = 1)]
pub fn of_i8(times: u32, a: In<i8>, b: In<i8>, mut c: Out<i32>) {
    let mut tiles = shared![i8; 2, 1024];
    let lane = thread::lane_id() as usize;
    for (number, matrix) in [a, b].iter().enumerate() {
        for i in (lane * 16..1024).step_by(32 * 16) {
            tiles.copy_async::<16>(number * 1024 + i, matrix, i, true);
        }
    }
    copies::commit_group();
    copies::wait_group::<0>();
    thread::sync_threads();
    let row = |number: usize, first: usize| {
        tiles.load_fragment(number * 1024 + (first + lane % 16) * 32 + lane / 16 * 16)
    };
    let (a, b) = ([0, 16].map(|first| row(0, first)), [0, 16].map(|first| row(1, first)));
    let mut sums = Accumulators::<2, 2, i32>::zeroed();
    for _ in 0..times {
        sums.multiply_add(&a, &b);
    }
    let mut put = |first: usize, row: u32, col: u32, pair: [i32; 2]| {
        let at = (first + row as usize) * 32 + col as usize;
        (c[at], c[at + 1]) = (pair[0], pair[1]);
    };
    sums.for_each_pair_of::<0>(|row, col, pair| put(0, row, col, pair));
    sums.for_each_pair_of::<1>(|row, col, pair| put(16, row, col, pair));
}

/// Lane 5 does not reach the load.
#[kernel(block = (32), shared = 512 * 2, barriers = 1)]
pub fn a_lane_less(mut c: Out<f32>) {
    let mut tile = shared![Bf16; 512];
    let lane = thread::lane_id() as usize;
    for i in (lane..512).step_by(32) {
        tile[i] = Bf16::from_f32(1.0);
    }
    thread::sync_threads();
    if lane != 5 {
        let a = [tile.load_fragment(lane * 8)];
        let mut sums = Accumulators::<1, 1>::zeroed();
        sums.multiply_add(&a, &a);
        sums.for_each_pair_of::<0>(|_, _, [first, _]| c[lane] = first);
    }
}

/// Copies `N` elements, if `valid`.
#[inline(always)]
#[track_caller]
fn copy<const N: usize>(valid: u32, from: u32, x: In<Bf16>, y: &mut Out<f32>) {
    let mut tile = shared![Bf16; 8];
    tile.copy_async::<N>(0, &x, from as usize, valid != 0);
    copies::commit_group();
    copies::wait_group::<0>();
    for i in 0..N {
        y[i] = tile[i].to_f32();
    }
}

#[kernel(block = (1), shared = 8 * 2)]
pub fn copy_two(valid: u32, from: u32, x: In<Bf16>, mut y: Out<f32>) {
    copy::<2>(valid, from, x, &mut y);
}

#[kernel(block = (1), shared = 8 * 2)]
pub fn copy_four(valid: u32, from: u32, x: In<Bf16>, mut y: Out<f32>) {
    copy::<4>(valid, from, x, &mut y);
}

#[kernel(block = (1), shared = 8 * 2)]
pub fn copy_eight(valid: u32, from: u32, x: In<Bf16>, mut y: Out<f32>) {
    copy::<8>(valid, from, x, &mut y);
}
