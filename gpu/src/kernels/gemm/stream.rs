//! The main loop of large tiles of f32: each fragment is loaded one k-step ahead, and a stage is
//! filled a few copies at a time.
//!
//! * **A block** of four warps computes a tile of 128 x 128 elements of C. Shared memory has three
//!   stages of 16 k-steps, so that two blocks share an SM also where that has 100 KiB of it.
//! * **A warp** computes 64 x 64 elements, a lane 8 x 16 of them, by the [fragments](Fragment) of
//!   the `tma` family: six loads of 128 bits for 128 multiply-adds.
//! * **A thread** copies sixteen elements of each operand a stage, or four times four.
//!
//! ```text
//!   in global memory                     a warp copies           in shared memory
//!   contiguous along m or n, aligned     4 x 32 of a k-step      as it is, by sixteen bytes
//!   contiguous along m or n              32 of a k-step          as it is, by four bytes
//!   contiguous along k, or not at all    8 k-steps of 4 rows     transposed, by four bytes
//! ```
//!
//! A k-step is a row of shared memory: A's elements, B's, and four more that nobody reads. With
//! them the 8 x 4 elements of a transposed copy are in different banks.

use super::{
    collective::{
        cp_async::wait_for_all_but,
        epilogue::Epilogue,
        fragment::{Fragment, ROWS, STEPS, Staged, Steps, Sums, ThreadRows, place_of},
        vector::FOUR,
    },
    device::*,
    operand::{Place, Which},
};
use crate::params::GemmParams;

/// Threads and warps of a block. It copies so many rows of a K-major A at once.
pub const THREADS: usize = 128;
const WARPS: usize = THREADS / 32;
const ROWS_AT_ONCE: usize = THREADS / STEPS;

/// Rows and columns of a tile and of a warp's part, and columns of a thread.
const TILE: usize = 128;
const PART: usize = TILE / 2;
const COLS: usize = 16;

/// Elements from a k-step to the next in shared memory, of a stage, and of all.
const BLOCK_K: usize = 2 * STEPS;
const PITCH: usize = 2 * TILE + FOUR;
const STAGE: usize = BLOCK_K * PITCH;
/// Elements of all stages.
pub const STAGES: usize = 3 * STAGE;

/// Elements from a row of staged sums to the next. Eight lanes stage sixteen columns of two rows
/// four apart, which are in different banks.
const SUMS_PITCH: usize = TILE + FOUR;

/// Fours of elements that a thread finishes at once.
const TOGETHER: usize = 4;

/// An operand whose k-steps are rows of shared memory.
struct ByStep;

impl Staged for ByStep {
    const K_MAJOR: bool = false;
}

/// A thread's copies of A or B, half a stage at a time: eight k-steps.
struct Copies<'a> {
    matrix: &'a In<f32>,
    /// Whether the elements of a k-step are copied by neighbouring lanes, and four at once.
    mn_major: bool,
    wide: bool,
    /// Which copies of a half are inside on the outer side, a bit each.
    inside: u32,
    /// The k-step of the first copy, and the steps to the next copy's.
    p: u32,
    apart: u32,
    /// Its first element of the next half. Steps to the next copy, the second and the fourth, and
    /// to the next half.
    next: usize,
    steps: [usize; 3],
    to_half: usize,
    /// The first one's place in a half.
    to: usize,
}

impl<'a> Copies<'a> {
    /// The copies of a block whose tile of C starts at `first` on the outer side. In a stage they
    /// start with element `at` of each k-step.
    #[inline(always)]
    fn new(
        which: Which,
        matrix: &'a In<f32>,
        problem: &GemmParams,
        (first, at): (usize, usize),
        k_major: bool,
    ) -> Self {
        let Place { size, strides, start } = which.place(problem);
        let t = thread::thread_idx_x() as usize;
        let even = (start | strides.1 | size).is_multiple_of(FOUR) && matrix.is_aligned128();
        let wide = !k_major && strides.0 == 1 && even;
        // The place of the first copy, and the steps to the next one, in outer elements and in k.
        let (outer, p, (outer_step, apart)) = match (k_major, wide) {
            (true, _) => (t / STEPS, t % STEPS, (ROWS_AT_ONCE, 0)),
            (_, true) => (t % 32 * FOUR, t / 32, (0, WARPS)),
            (_, false) => (t, 0, (0, 1)),
        };
        let mut inside = 0;
        for copy in 0..STEPS {
            inside |= u32::from(first + outer + copy * outer_step < size) << copy;
        }
        let step = outer_step * strides.0 + apart * strides.1;
        // So that the compiler does not compute these again in the main loop.
        let [inside, to] = [inside as usize, at + outer + p * PITCH].map(thread::opaque);
        Copies {
            matrix,
            mn_major: !k_major,
            wide,
            inside: inside as u32,
            p: p as u32,
            apart: apart as u32,
            next: start + (first + outer) * strides.0 + p * strides.1,
            steps: [step, 2 * step, 4 * step].map(thread::opaque),
            to_half: STEPS * strides.1,
            to,
        }
    }

    /// Issues the next half's copies to the half that starts with element `half`. `steps` k-steps
    /// are left. What lies outside becomes zeros, which add nothing to a sum. `whole` promises that
    /// nothing does, and is the same for all lanes.
    #[inline(always)]
    #[track_caller]
    fn copy(&mut self, tiles: &mut DynamicShared<f32>, half: usize, steps: u32, whole: bool) {
        if whole {
            self.copy_valid(tiles, half + self.to, |_| true);
        } else {
            self.copy_valid(tiles, half + self.to, |copy| {
                self.inside >> copy & 1 == 1 && self.p + copy * self.apart < steps
            });
        }
        self.next += self.to_half;
    }

    #[inline(always)]
    #[track_caller]
    fn copy_valid(
        &self,
        tiles: &mut DynamicShared<f32>,
        to: usize,
        is_valid: impl Fn(u32) -> bool,
    ) {
        if self.wide {
            for copy in 0..STEPS / WARPS {
                let (to, from) = (to + copy * WARPS * PITCH, self.next + copy * self.steps[0]);
                tiles.copy_async::<FOUR>(to, self.matrix, from, is_valid(copy as u32));
            }
            return;
        }
        let apart = if self.mn_major { PITCH } else { ROWS_AT_ONCE };
        for copy in 0..STEPS {
            let bits = [copy & 1, copy >> 1 & 1, copy >> 2];
            let from = self.next + (0..3).map(|i| bits[i] * self.steps[i]).sum::<usize>();
            tiles.copy_async::<1>(to + copy * apart, self.matrix, from, is_valid(copy as u32));
        }
    }
}

/// Computes and stores a tile. `k_major` says of A and B whether elements along k are neighbours;
/// the product is right whatever it says.
#[inline(always)]
#[track_caller]
pub fn multiply(
    problem: &GemmParams,
    (a, b): (&In<f32>, &In<f32>),
    (c, bias): (&mut Out<f32>, &In<f32>),
    k_major: [bool; 2],
) {
    const {
        assert!(TILE == THREADS && TILE == 32 * FOUR, "a block, or a warp, copies a k-step");
        assert!(ROWS_AT_ONCE * STEPS == TILE, "as many copies from a K-major operand");
        assert!(PART * SUMS_PITCH <= STAGES, "half of the sums in place of the stages");
    }
    let mut tiles = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let (warp_row, warp_col) = (warp / 2 * PART, warp % 2 * PART);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let mut a = Copies::new(Which::A, a, problem, (first_row, 0), k_major[0]);
    let mut b = Copies::new(Which::B, b, problem, (first_col, TILE), k_major[1]);

    // A stage is identified by its first element. The last one stays free.
    let (mut stage, mut free, mut to_copy) = (0, 0, problem.k);
    while free < STAGES - STAGE {
        a.copy(&mut tiles, free, to_copy, false);
        b.copy(&mut tiles, free, to_copy, false);
        copies::commit_group();
        to_copy = to_copy.saturating_sub(STEPS as u32);
        free = thread::opaque(free + STAGE / 2);
    }
    // This thread's copies of the first stage have arrived; after the barrier, everybody's have.
    wait_for_all_but(2);
    thread::sync_threads();

    let (lane_row, lane_col) = place_of::<8>(lane);
    let rows = ThreadRows::<ByStep, PITCH, 8>::new(0, warp_row, lane_row);
    let cols = ThreadRows::<ByStep, PITCH, 4>::new(TILE, warp_col, lane_col);
    let mut sums: Sums<ROWS, COLS> = [[0.0; COLS]; ROWS];
    // From how many k-steps on all copies of a half are inside.
    let is_whole = first_row + TILE <= problem.m as usize && first_col + TILE <= problem.n as usize;
    let least = if is_whole { STEPS as u32 } else { u32::MAX };
    let mut step = 0;
    let mut left = problem.k.div_ceil(BLOCK_K as u32);
    let mut now = Steps::new(&rows, &cols, stage, step as usize);
    let mut fragment = Fragment::load(&rows, &cols, &tiles, now);
    while left > 0 {
        let (steps, half) = (to_copy, free + step as usize * PITCH);
        let whole = warp::all(warp::ALL, steps >= least);
        let mut next = now;
        let copy = |tiles: &mut DynamicShared<f32>, step| match step {
            0 => a.copy(tiles, half, steps, whole),
            4 => b.copy(tiles, half, steps, whole),
            _ => {}
        };
        fragment.multiply_add(&mut tiles, now, &mut sums, (false, copy), |_| {
            copies::commit_group();
            to_copy = to_copy.saturating_sub(STEPS as u32);
            step += STEPS as u32;
            if step == BLOCK_K as u32 {
                step = 0;
                left -= 1;
                // The last fragment of the stage is in registers, so it can be filled.
                free = stage;
                stage = if stage + STAGE < STAGES { stage + STAGE } else { 0 };
                wait_for_all_but(2);
                thread::sync_threads();
            }
            next = Steps::new(&rows, &cols, stage, step as usize);
            next
        });
        now = next;
    }
    // Those past the last stage: zeros.
    copies::wait_group::<0>();

    let mut epilogue = Epilogue::new(problem, c, bias);
    let first = (first_row, first_col);
    if epilogue.is_wide() && epilogue.is_scaled_tile(first, (TILE, TILE)) {
        for i in 0..ROWS {
            for j in (0..COLS).step_by(FOUR) {
                let four = [sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]];
                let (row, col) = (rows.outer::<ROWS>(i), cols.outer::<COLS>(j));
                epilogue.store::<true>((first_row + row, first_col + col), four);
            }
        }
        return;
    }
    // The sums of two warps at a time take the place of the stages, and change threads.
    let mut half = 0;
    while half < TILE {
        thread::sync_threads();
        if warp_row == half {
            for i in 0..ROWS {
                for j in (0..COLS).step_by(FOUR) {
                    let row = rows.outer::<ROWS>(i) - half;
                    let at = row * SUMS_PITCH + cols.outer::<COLS>(j);
                    // Neighbours exchanged, so that no sum is in the register bank of its column.
                    let four = [sums[i][j + 1], sums[i][j], sums[i][j + 3], sums[i][j + 2]];
                    tiles.store128(at, four);
                }
            }
        }
        thread::sync_threads();
        // Neighbouring threads store neighbouring fours of a row.
        let (mut row, col) = (t * FOUR / TILE, t * FOUR % TILE);
        let columns = epilogue.columns(core::array::from_fn(|j| (first_col + col + j) as u32));
        for _ in 0..thread::opaque(PART / WARPS / TOGETHER) {
            let rows: [_; TOGETHER] = core::array::from_fn(|i| row + i * WARPS);
            let sums = rows.map(|row| {
                let [b, a, d, c]: [f32; FOUR] = tiles.load128(row * SUMS_PITCH + col);
                [a, b, c, d]
            });
            let rows = rows.map(|row| (first_row + half + row) as u32);
            epilogue.finish_any_fours(&[&columns; TOGETHER], rows, sums);
            row += TOGETHER * WARPS;
        }
        half = thread::opaque(half + PART);
    }
}
