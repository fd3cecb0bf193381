//! The general product: `C = activation(alpha A B + beta C + bias)`, any strides, a batch of them at once.
//!
//! What the lessons of the ladder found, as a family: a kernel's text is [`multiply`], and each kernel is that
//! with another tile.
//!
//! * **A block** computes a `TILE x TILE` tile of one product's C, in phases of `DEPTH` steps of k. It holds the
//!   tiles of `STAGES` phases: one in use, the others on their way, as in [`async_copy`](super::async_copy).
//! * **A thread** copies four elements of each operand in a phase ([`operand`]) and computes `EACH x EACH`
//!   elements of C, in groups of 4 x 4.
//! * Before it writes them, it does with them what the [`epilogue`] says, while they are in registers.
//!
//! An element is one sum in the order of k, by fused multiply-adds, whatever the tile: all kernels give the same
//! bits. (Steps past k add zeros, which can turn a -0 of underflow into 0.) Operands of bf16 and f16 are widened to f32 on
//! their way to shared memory ([`stored`]), and an element of such a C is rounded once, at the end.
//!
//! Where C has few rows or columns, most of a tile would be zeros: kernels of [`direct`] have none.
//!
//! A large tile reads less: its ratio is `TILE / 4` FLOP a byte of f32. A small one leaves fewer multiprocessors idle
//! where C is small. Which to take is the host's choice.

pub mod direct;
pub mod epilogue;
pub mod gelu;
pub mod operand;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod pad;
pub mod pieces;
pub mod real;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod rows;
pub mod stored;

use self::{
    epilogue::Epilogue,
    operand::{Operand, Which},
    real::Real,
    stored::Stored,
};
use super::device::*;
use crate::problem::Problem;

/// Elements of an operand that a thread copies in a phase, and rows and columns of a group of its elements of C.
pub const FOUR: usize = 4;

/// Tiles of an operand in shared memory, in the type that they are computed in.
type Tiles<S, const STEPS: usize, const PITCH: usize> = Shared<<S as Stored>::Real, STEPS, PITCH>;

/// `EACH x EACH` elements of C for each thread of a block, and their way to memory. The tiles of all stages lie
/// one after another in `STEPS = STAGES * DEPTH` rows, `PITCH` elements apart.
#[inline(always)]
#[track_caller]
fn multiply<
    S: Stored,
    O: Stored<Real = S::Real>,
    const TILE: usize,
    const EACH: usize,
    const DEPTH: usize,
    const STEPS: usize,
    const PITCH: usize,
>(
    problem: &Problem,
    (a, b): (&In<S>, &In<S>),
    (c, bias): (&mut Out<O>, &In<O>),
    (mut tiles_a, mut tiles_b): (Tiles<S, STEPS, PITCH>, Tiles<S, STEPS, PITCH>),
) {
    const {
        assert!(EACH.is_multiple_of(FOUR), "a thread's elements are groups of four by four");
        assert!(
            PITCH.is_multiple_of(FOUR),
            "each step's elements begin at a multiple of sixteen bytes"
        );
        let threads = (TILE / EACH) * (TILE / EACH);
        assert!(DEPTH * TILE == FOUR * threads, "each thread copies four elements of a tile");
        assert!(STEPS.is_multiple_of(DEPTH), "whole stages");
        assert!(STEPS > DEPTH && STEPS <= 4 * DEPTH, "two to four stages");
    }
    let across = TILE / EACH;
    let t = thread::thread_idx_x() as usize;
    let (x, y) = (t % across, t / across);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let mut a = Operand::new::<TILE, DEPTH, PITCH>(Which::A, a, problem, first_row);
    let mut b = Operand::new::<TILE, DEPTH, PITCH>(Which::B, b, problem, first_col);

    // Stages are counted by the element that they begin with.
    let (stage, end) = (DEPTH * PITCH, STEPS * PITCH);
    for ahead in 0..STEPS / DEPTH - 1 {
        a.begin_copies::<STEPS, PITCH, DEPTH>(&mut tiles_a, ahead * stage);
        b.begin_copies::<STEPS, PITCH, DEPTH>(&mut tiles_b, ahead * stage);
        copies::commit_group();
    }
    let mut sums = [[S::Real::ZERO; EACH]; EACH];
    let (mut now, mut free) = (0, end - stage);
    for _ in 0..problem.k.div_ceil(DEPTH as u32) {
        // Of this thread's copies those of this phase have come, and after the barrier everybody's have; and the
        // stage of the phase before has been read.
        wait_for_all_but(STEPS / DEPTH - 2);
        thread::sync_threads();
        // Past the last phase they copy zeros, which nobody reads.
        a.begin_copies::<STEPS, PITCH, DEPTH>(&mut tiles_a, free);
        b.begin_copies::<STEPS, PITCH, DEPTH>(&mut tiles_b, free);
        copies::commit_group();
        for p in 0..DEPTH {
            let (mut rows, mut cols) = ([S::Real::ZERO; EACH], [S::Real::ZERO; EACH]);
            for group in 0..EACH / FOUR {
                let (at, start) = (now + p * PITCH + group * across * FOUR, group * FOUR);
                let four = S::Real::load_shared(&tiles_a, at + y * FOUR);
                rows[start..start + FOUR].copy_from_slice(&four);
                let four = S::Real::load_shared(&tiles_b, at + x * FOUR);
                cols[start..start + FOUR].copy_from_slice(&four);
            }
            for i in 0..EACH {
                for j in 0..EACH {
                    sums[i][j] = fma(rows[i], cols[j], sums[i][j]);
                }
            }
        }
        free = now;
        now = if now + stage < end { now + stage } else { 0 };
    }

    let mut epilogue = Epilogue::new(problem, c, bias);
    let first = (first_row + y * FOUR, first_col + x * FOUR);
    if epilogue.is_scaled_sum() {
        finish::<O, EACH, true>(&mut epilogue, first, across * FOUR, &sums);
    } else {
        finish::<O, EACH, false>(&mut epilogue, first, across * FOUR, &sums);
    }
}

/// Writes a thread's elements, whose groups are `apart` rows and columns apart.
#[inline(always)]
#[track_caller]
fn finish<T: Stored, const EACH: usize, const SCALED: bool>(
    epilogue: &mut Epilogue<T>,
    (first_row, first_col): (usize, usize),
    apart: usize,
    sums: &[[T::Real; EACH]; EACH],
) {
    for i in 0..EACH {
        for group in 0..EACH / FOUR {
            let at = (first_row + i / FOUR * apart + i % FOUR, first_col + group * apart);
            let mut four = [T::Real::ZERO; FOUR];
            four.copy_from_slice(&sums[i][group * FOUR..group * FOUR + FOUR]);
            epilogue.finish::<SCALED>(at, four);
        }
    }
}

/// Waits until of this thread's groups of copies at most the last `pending` are on their way.
#[inline(always)]
pub fn wait_for_all_but(pending: usize) {
    match pending {
        0 => copies::wait_group::<0>(),
        1 => copies::wait_group::<1>(),
        _ => copies::wait_group::<2>(),
    }
}

/// 32 x 32 elements a block of 64 threads: for the smallest C.
#[kernel(block = (64), shared = 2 * 32 * 36 * size_of::<f32>(), barriers = 1)]
pub fn gemm_f32_32x32x8(problem: Problem, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
    let tiles = (shared![f32; 32, 36], shared![f32; 32, 36]);
    multiply::<_, _, 32, 4, 8, 32, 36>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 64 x 64 elements a block of 256 threads.
#[kernel(block = (256), shared = 2 * 64 * 68 * size_of::<f32>(), barriers = 1)]
pub fn gemm_f32_64x64x16(problem: Problem, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
    let tiles = (shared![f32; 64, 68], shared![f32; 64, 68]);
    multiply::<_, _, 64, 4, 16, 64, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 128 x 128 elements a block of 256 threads.
#[kernel(block = (256), shared = 2 * 32 * 132 * size_of::<f32>(), barriers = 1, min_blocks = 2)]
pub fn gemm_f32_128x128x8(
    problem: Problem,
    a: In<f32>,
    b: In<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let tiles = (shared![f32; 32, 132], shared![f32; 32, 132]);
    multiply::<_, _, 128, 8, 8, 32, 132>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 64 x 64 elements of f64 a block of 256 threads. More than two stages do not fit.
#[kernel(block = (256), shared = 2 * 32 * 68 * size_of::<f64>(), barriers = 1)]
pub fn gemm_f64_64x64x16(problem: Problem, a: In<f64>, b: In<f64>, mut c: Out<f64>, bias: In<f64>) {
    let tiles = (shared![f64; 32, 68], shared![f64; 32, 68]);
    multiply::<_, _, 64, 4, 16, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 64 x 64 elements of bf16 or f16 a block of 256 threads, by sums of f32: for any GPU and any operands, on CUDA cores. As fast as
/// f32 at most.
#[kernel(
    block = (256),
    shared = 2 * 32 * 68 * size_of::<f32>(),
    barriers = 1,
    constants(half = bf16 | f16)
)]
pub fn gemm_half_64x64x16(
    problem: Problem,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<Half>,
    bias: In<Half>,
) {
    let tiles = (shared![f32; 32, 68], shared![f32; 32, 68]);
    multiply::<_, _, 64, 4, 16, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// The same with C and the bias of f32.
#[kernel(
    block = (256),
    shared = 2 * 32 * 68 * size_of::<f32>(),
    barriers = 1,
    constants(half = bf16 | f16)
)]
pub fn gemm_half_f32_64x64x16(
    problem: Problem,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let tiles = (shared![f32; 32, 68], shared![f32; 32, 68]);
    multiply::<_, _, 64, 4, 16, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 4 x 64 elements a block of 64 threads, for thin products.
#[kernel(block = (64), shared = 0)]
pub fn gemm_f32_4x64x1(problem: Problem, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
    direct::multiply(&problem, (&a, &b), (&mut c, &bias));
}

/// The same in f64.
#[kernel(block = (64), shared = 0)]
pub fn gemm_f64_4x64x1(problem: Problem, a: In<f64>, b: In<f64>, mut c: Out<f64>, bias: In<f64>) {
    direct::multiply(&problem, (&a, &b), (&mut c, &bias));
}

/// The same of bf16 or f16, by sums of f32.
#[kernel(block = (64), shared = 0, constants(half = bf16 | f16))]
pub fn gemm_half_4x64x1(
    problem: Problem,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<Half>,
    bias: In<Half>,
) {
    direct::multiply(&problem, (&a, &b), (&mut c, &bias));
}

/// The same with C and the bias of f32.
#[kernel(block = (64), shared = 0, constants(half = bf16 | f16))]
pub fn gemm_half_f32_4x64x1(
    problem: Problem,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    direct::multiply(&problem, (&a, &b), (&mut c, &bias));
}
