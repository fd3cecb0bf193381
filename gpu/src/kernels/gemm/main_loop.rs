//! The main loop: a block's tile, phase by phase.

use super::{
    collective::{
        cp_async::wait_for_all_but,
        epilogue::Epilogue,
        real::{OfSum, Real},
        stored::Stored,
        vector::FOUR,
    },
    device::*,
    operand::{Operand, Which},
};
use crate::params::GemmParams;

/// Tiles of an operand in shared memory, in the type that they are computed in.
pub type Tiles<S, const STEPS: usize, const PITCH: usize> =
    Shared<<S as Stored>::Real, STEPS, PITCH>;

/// Computes `EACH x EACH` elements of C for each thread of a block, and stores them. The tiles of
/// all stages follow each other in `STEPS = STAGES * BLOCK_K` rows, `PITCH` elements apart.
#[inline(always)]
#[track_caller]
pub fn multiply<
    S: Stored,
    O: Stored<Real: OfSum<S::Real>>,
    const TILE: usize,
    const EACH: usize,
    const BLOCK_K: usize,
    const STEPS: usize,
    const PITCH: usize,
>(
    problem: &GemmParams,
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
        assert!(BLOCK_K * TILE == FOUR * threads, "each thread copies four elements of a tile");
        assert!(STEPS.is_multiple_of(BLOCK_K), "whole stages");
        assert!(STEPS > BLOCK_K && STEPS <= 4 * BLOCK_K, "two to four stages");
    }
    let across = TILE / EACH;
    let t = thread::thread_idx_x() as usize;
    let (x, y) = (t % across, t / across);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let mut a = Operand::new::<TILE, BLOCK_K, PITCH>(Which::A, a, problem, first_row);
    let mut b = Operand::new::<TILE, BLOCK_K, PITCH>(Which::B, b, problem, first_col);

    // A stage is identified by its first element.
    let (stage, end) = (BLOCK_K * PITCH, STEPS * PITCH);
    for ahead in 0..STEPS / BLOCK_K - 1 {
        a.begin_copies::<STEPS, PITCH, BLOCK_K>(&mut tiles_a, ahead * stage);
        b.begin_copies::<STEPS, PITCH, BLOCK_K>(&mut tiles_b, ahead * stage);
        copies::commit_group();
    }
    let mut sums = [[S::Real::ZERO; EACH]; EACH];
    let (mut now, mut free) = (0, end - stage);
    for _ in 0..problem.k.div_ceil(BLOCK_K as u32) {
        // This thread's copies of the phase have arrived; after the barrier, everybody's have. And
        // everybody has read the stage of the phase before.
        wait_for_all_but(STEPS / BLOCK_K - 2);
        thread::sync_threads();
        // Past the last phase they copy zeros, which nobody reads.
        a.begin_copies::<STEPS, PITCH, BLOCK_K>(&mut tiles_a, free);
        b.begin_copies::<STEPS, PITCH, BLOCK_K>(&mut tiles_b, free);
        copies::commit_group();
        for p in 0..BLOCK_K {
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
    // Computed again: the main loop has no registers for these.
    let t = thread::opaque(t);
    let (x, y) = (t % across, t / across);
    let first = (first_row + y * FOUR, first_col + x * FOUR);
    if epilogue.is_wide() && epilogue.is_scaled_tile((first_row, first_col), (TILE, TILE)) {
        finish::<_, O, EACH, true>(&mut epilogue, first, across * FOUR, &sums);
    } else {
        finish::<_, O, EACH, false>(&mut epilogue, first, across * FOUR, &sums);
    }
}

/// Stores a thread's elements. Its groups are `apart` rows and columns apart. `PLAIN` promises that
/// the tile [is `alpha A B`](Epilogue::is_scaled_tile), and [aligned](Epilogue::is_wide).
#[inline(always)]
#[track_caller]
fn finish<S: Real, T: Stored<Real: OfSum<S>>, const EACH: usize, const PLAIN: bool>(
    epilogue: &mut Epilogue<T>,
    (mut first_row, mut first_col): (usize, usize),
    apart: usize,
    sums: &[[S; EACH]; EACH],
) {
    for i in 0..EACH {
        for group in 0..EACH / FOUR {
            let mut four = [S::ZERO; FOUR];
            four.copy_from_slice(&sums[i][group * FOUR..group * FOUR + FOUR]);
            let four = T::Real::of_sums(four);
            if !PLAIN {
                // Other numbers each time for all that the compiler knows. Otherwise what follows
                // from a row or from columns, such as their bias, would stay in registers for the
                // next ones.
                (first_row, first_col) = (thread::opaque(first_row), thread::opaque(first_col));
            }
            let row = first_row + i / FOUR * apart + i % FOUR;
            let col = first_col + group * apart;
            if PLAIN {
                epilogue.store::<true>((row, col), four);
            } else {
                let columns = epilogue.columns(core::array::from_fn(|j| (col + j) as u32));
                epilogue.finish_any_fours(&[&columns], [row as u32], [four]);
            }
        }
    }
}
