//! The general product: `C = activation(alpha A B + beta C + bias)`, any strides, a batch of them at once.
//!
//! What the lessons of the ladder found, as a family: a kernel's text is [`multiply`], and each kernel is that
//! with another tile.
//!
//! * **A block** computes a `TILE x TILE` tile of one product's C, in phases of `DEPTH` steps of k, with two
//!   buffers as in [`vectorised`](super::vectorised).
//! * **A thread** brings four elements of each operand to shared memory in a phase ([`operand`]) and computes
//!   `EACH x EACH` elements of C, in groups of 4 x 4.
//! * Before it writes them, it does with them what the [`epilogue`] says, while they are in registers.
//!
//! An element is one sum in the order of k, by fused multiply-adds, whatever the tile: all kernels give the same
//! bits.
//!
//! A large tile reads less: its ratio is `TILE / 4` FLOP a byte of f32. A small one leaves fewer multiprocessors idle
//! where C is small. Which to take is the host's choice.

pub mod epilogue;
pub mod operand;
pub mod real;

use self::{epilogue::Epilogue, operand::Operand, real::Real};
use super::device::*;
use crate::problem::Problem;

/// Elements that a thread brings of each operand in a phase.
const FOUR: usize = 4;

/// `EACH x EACH` elements of C for each thread of a block, and their way to memory. `STEPS` is twice the
/// phases' `DEPTH`, `PITCH` the words from one step of k to the next in shared memory.
#[inline(always)]
#[track_caller]
fn multiply<
    T: Real,
    const TILE: usize,
    const EACH: usize,
    const STEPS: usize,
    const PITCH: usize,
>(
    problem: &Problem,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<T>, &In<T>),
    (mut tiles_a, mut tiles_b): (Shared<T, STEPS, PITCH>, Shared<T, STEPS, PITCH>),
) {
    const {
        assert!(EACH.is_multiple_of(FOUR), "a thread's elements are groups of four by four");
        assert!(
            PITCH.is_multiple_of(FOUR),
            "each step's elements begin at a multiple of sixteen bytes"
        );
        let threads = (TILE / EACH) * (TILE / EACH);
        assert!(STEPS / 2 * TILE == FOUR * threads, "each thread brings four elements of a tile");
    }
    let depth = STEPS / 2;
    let across = TILE / EACH;
    let t = thread::thread_idx_x() as usize;
    let (x, y) = (t % across, t / across);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let mut a = Operand::of_a::<TILE>(a, problem, first_row, (t, depth));
    let mut b = Operand::of_b::<TILE>(b, problem, first_col, (t, depth));

    let mut sums = [[T::ZERO; EACH]; EACH];
    for next in 0..=(problem.k as usize).div_ceil(depth) {
        let (next_a, next_b) = (a.bring(), b.bring());

        if next > 0 {
            let buffer = (next - 1) % 2 * depth;
            for p in buffer..buffer + depth {
                let (mut rows, mut cols) = ([T::ZERO; EACH], [T::ZERO; EACH]);
                for group in 0..EACH / FOUR {
                    let (at, start) = (group * across * FOUR, group * FOUR);
                    let four = T::load_shared(&tiles_a, p * PITCH + at + y * FOUR);
                    rows[start..start + FOUR].copy_from_slice(&four);
                    let four = T::load_shared(&tiles_b, p * PITCH + at + x * FOUR);
                    cols[start..start + FOUR].copy_from_slice(&four);
                }
                for i in 0..EACH {
                    for j in 0..EACH {
                        sums[i][j] = fma(rows[i], cols[j], sums[i][j]);
                    }
                }
            }
        }
        let buffer = next % 2 * depth;
        a.put(&mut tiles_a, buffer, next_a);
        b.put(&mut tiles_b, buffer, next_b);
        thread::sync_threads();
    }

    let mut epilogue = Epilogue::new(problem, c, bias);
    for i in 0..EACH {
        for group in 0..EACH / FOUR {
            let row = first_row + i / FOUR * across * FOUR + y * FOUR + i % FOUR;
            let col = first_col + group * across * FOUR + x * FOUR;
            let mut four = [T::ZERO; FOUR];
            four.copy_from_slice(&sums[i][group * FOUR..group * FOUR + FOUR]);
            epilogue.finish((row, col), four);
        }
    }
}

/// 32 x 32 elements a block of 64 threads: for the smallest C.
#[kernel(block = (64), shared = 2 * 16 * 36 * size_of::<f32>(), barriers = 1)]
pub fn gemm_32(problem: Problem, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
    let tiles = (shared![f32; 16, 36], shared![f32; 16, 36]);
    multiply::<_, 32, 4, 16, 36>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 64 x 64 elements a block of 256 threads.
#[kernel(block = (256), shared = 2 * 32 * 68 * size_of::<f32>(), barriers = 1)]
pub fn gemm_64(problem: Problem, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
    let tiles = (shared![f32; 32, 68], shared![f32; 32, 68]);
    multiply::<_, 64, 4, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 128 x 128 elements a block of 256 threads.
#[kernel(block = (256), shared = 2 * 16 * 132 * size_of::<f32>(), barriers = 1, min_blocks = 2)]
pub fn gemm_128(problem: Problem, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
    let tiles = (shared![f32; 16, 132], shared![f32; 16, 132]);
    multiply::<_, 128, 8, 16, 132>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 64 x 64 elements of f64 a block of 256 threads.
#[kernel(block = (256), shared = 2 * 32 * 68 * size_of::<f64>(), barriers = 1)]
pub fn gemm_f64_64(problem: Problem, a: In<f64>, b: In<f64>, mut c: Out<f64>, bias: In<f64>) {
    let tiles = (shared![f64; 32, 68], shared![f64; 32, 68]);
    multiply::<_, 64, 4, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}
