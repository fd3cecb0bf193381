//! The main loop of f64, and of the large tiles of the other types: a fragment is loaded while the
//! one before it is multiplied, and a stage is filled a few copies at a time. So a warp always has
//! an instruction for its tensor core.

use super::{
    collective::{cp_async::wait_for_all_but, real::OfSum, scales::Scaled, stored::Stored},
    device::{
        mma::{Accumulators, Fragment},
        *,
    },
    element::{MmaElement, place},
    epilogue::staged_len,
    main_loop::{Stages, store},
    operand::{Operand, one, tile_len},
    parts::{Given, Parts},
    tile::{SIDE, Which, threads},
};
use crate::params::GemmParams;

/// Rows of tiles of a raster group.
const GROUP: u32 = 12;

/// The first row and column of the block's tile. Blocks that run at the same time compute
/// neighbouring tiles, so that they find more of A and B in L2.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn tile_of_block<const ROWS: usize, const COLS: usize>(problem: &GemmParams) -> (usize, usize) {
    // Through shuffles: what is computed of them twice need not be kept between.
    let [x, y] = [thread::block_idx_x(), thread::block_idx_y()]
        .map(|index| warp::shuffle(warp::ALL, index, 0));
    let first = y / GROUP * GROUP;
    let of_group = (problem.m.div_ceil(ROWS as u32) - first).min(GROUP);
    let number = (y - first) * thread::grid_dim_x() + x;
    let (row, col) = (first + number % of_group, number / of_group);
    (row as usize * ROWS, col as usize * COLS)
}

/// The number of the warp, and the row and the column of its part of the tile.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn warp_of_block<const ROWS: usize, const M: usize, const N: usize>() -> (usize, (usize, usize))
{
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let across = const { ROWS / (SIDE * M) };
    (warp, (warp % across * SIDE * M, warp / across * SIDE * N))
}

/// Computes a tile of `ROWS x COLS` elements of C. A warp computes `16 M x 16 N` of them. Elements,
/// of `SIZE` bytes, are copied sixteen bytes at a time if all rows start and end at multiples of
/// that, otherwise alone. What has no such copies is left to the other types' loop, with `ANY_COPY`
/// of those that are possible there, or elements through registers.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<
    T: MmaElement,
    C: Stored<Real = T::Real>,
    const ROWS: usize,
    const COLS: usize,
    const M: usize,
    const N: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const SIZE: usize,
    const ANY_COPY: bool,
    const THREADS: usize,
>(
    problem: &GemmParams,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<C>, &In<C>),
    k_major: [bool; 2],
) {
    const {
        assert!(ROWS.is_multiple_of(SIDE * M) && COLS.is_multiple_of(SIDE * N), "whole warps");
        assert!(THREADS == threads([ROWS, COLS], [M, N]));
        // The part of a warp starts with a panel.
        assert!(M.is_multiple_of(2) && N.is_multiple_of(2) && T::PANEL == 2 * SIDE);
        assert!(STAGES >= 2 && STAGES <= 4);
        assert!(SIZE == size_of::<T>() && SIZE >= 4, "a copy has four bytes or more");
        let staged = staged_len(THREADS, N) * size_of::<T::Real>();
        let stages = STAGES * tile_len::<T>(ROWS + COLS, BLOCK_K) * size_of::<T>();
        assert!(staged <= stages, "in place of the stages");
    }
    let first = tile_of_block::<ROWS, COLS>(problem);
    let (_, of_warp) = warp_of_block::<ROWS, M, N>();
    let mut sums = Accumulators::<M, N, T::Real>::zeroed();
    let k = problem.k;
    let given = || {
        let of = |which, matrix, first, k_major| Given { which, matrix, first, k_major };
        let a = of(Which::A, a, first.0, k_major[0]);
        (a, of(Which::B, b, first.1, k_major[1]))
    };
    let has_copies_of = |bytes: usize| {
        let (a, b) = given();
        // The same for all lanes. No constant of the kernel decides which barriers it reaches.
        warp::all(warp::ALL, a.has_copies_of(problem, bytes) && b.has_copies_of(problem, bytes))
    };
    if has_copies_of(16) {
        Stream::<T, ROWS, COLS, STAGES, BLOCK_K, THREADS, 16>::new(problem, given())
            .accumulate::<M, N>(k, of_warp, &mut sums);
    } else if has_copies_of(size_of::<T>()) {
        Stream::<T, ROWS, COLS, STAGES, BLOCK_K, THREADS, SIZE>::new(problem, given())
            .accumulate::<M, N>(k, of_warp, &mut sums);
    } else {
        let a = Operand::new(Which::A, a, problem, first.0, k_major[0], true);
        let b = Operand::new(Which::B, b, problem, first.1, k_major[1], true);
        Stages::<T, ROWS, COLS, STAGES, BLOCK_K, ANY_COPY, THREADS>::start((a, b))
            .accumulate::<M, N>(k, of_warp, &mut sums);
    }
    // Again: there are no registers for this in the main loop.
    let first = tile_of_block::<ROWS, COLS>(problem);
    let (warp, of_warp) = warp_of_block::<ROWS, M, N>();
    store(problem, (c, bias), &sums, warp, (first, of_warp), None);
}

/// As [`multiply`], for 16-bit types: copies that are not of sixteen bytes are left to the other
/// types' loop.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply_in_pieces<
    T: MmaElement,
    C: Stored<Real = T::Real>,
    const ROWS: usize,
    const COLS: usize,
    const M: usize,
    const N: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const THREADS: usize,
>(
    problem: &GemmParams,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<C>, &In<C>),
    k_major: [bool; 2],
) {
    const {
        assert!(ROWS.is_multiple_of(SIDE * M) && COLS.is_multiple_of(SIDE * N), "whole warps");
        assert!(THREADS == threads([ROWS, COLS], [M, N]));
        // The part of a warp starts with a panel.
        assert!(M.is_multiple_of(2) && N.is_multiple_of(2) && T::PANEL == 2 * SIDE);
        assert!(STAGES >= 2 && STAGES <= 4);
        let staged = staged_len(THREADS, N) * size_of::<T::Real>();
        let stages = STAGES * tile_len::<T>(ROWS + COLS, BLOCK_K) * size_of::<T>();
        assert!(staged <= stages, "in place of the stages");
    }
    let first = tile_of_block::<ROWS, COLS>(problem);
    let (_, of_warp) = warp_of_block::<ROWS, M, N>();
    let mut sums = Accumulators::<M, N, T::Real>::zeroed();
    let k = problem.k;
    let given = || {
        let of = |which, matrix, first, k_major| Given { which, matrix, first, k_major };
        let a = of(Which::A, a, first.0, k_major[0]);
        (a, of(Which::B, b, first.1, k_major[1]))
    };
    let (of_a, of_b) = given();
    // The same for all lanes. No constant of the kernel decides which barriers it reaches.
    let in_pieces = of_a.has_copies_of(problem, 16) && of_b.has_copies_of(problem, 16);
    if warp::all(warp::ALL, in_pieces) {
        Stream::<T, ROWS, COLS, STAGES, BLOCK_K, THREADS, 16>::new(problem, given())
            .accumulate::<M, N>(k, of_warp, &mut sums);
    } else {
        let a = Operand::new(Which::A, a, problem, first.0, k_major[0], true);
        let b = Operand::new(Which::B, b, problem, first.1, k_major[1], true);
        Stages::<T, ROWS, COLS, STAGES, BLOCK_K, false, THREADS>::start((a, b))
            .accumulate::<M, N>(k, of_warp, &mut sums);
    }
    // Again: there are no registers for this in the main loop.
    let first = tile_of_block::<ROWS, COLS>(problem);
    let (warp, of_warp) = warp_of_block::<ROWS, M, N>();
    store(problem, (c, bias), &sums, warp, (first, of_warp), None);
}

/// As [`multiply`], for K-major operands with 16-byte aligned rows, and with `scales`. The ends of
/// rows, less than sixteen bytes, are multiplied after the rest.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply_rows<
    T: MmaElement,
    C: Stored<Real: OfSum<T::Real>>,
    const ROWS: usize,
    const COLS: usize,
    const M: usize,
    const N: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const THREADS: usize,
>(
    problem: &GemmParams,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<C>, &In<C>),
    scales: Option<&Scaled>,
) {
    const {
        assert!(ROWS.is_multiple_of(SIDE * M) && COLS.is_multiple_of(SIDE * N), "whole warps");
        assert!(THREADS == threads([ROWS, COLS], [M, N]));
        assert!(STAGES >= 2 && STAGES <= 4);
        assert!(T::PIECE == 16 && T::STEP == 32, "an end is a piece, and a step two");
        let staged = staged_len(THREADS, N) * size_of::<C::Real>();
        let stages = STAGES * tile_len::<T>(ROWS + COLS, BLOCK_K) * size_of::<T>();
        assert!(staged <= stages, "in place of the stages");
    }
    let given = || {
        let first = tile_of_block::<ROWS, COLS>(problem);
        let of = |which, matrix, first| Given { which, matrix, first, k_major: true };
        (of(Which::A, a, first.0), of(Which::B, b, first.1))
    };
    let (_, of_warp) = warp_of_block::<ROWS, M, N>();
    let mut sums = Accumulators::<M, N, T::Real>::zeroed();
    let left = problem.k % T::PIECE as u32;
    let whole = GemmParams { k: problem.k - left, ..*problem };
    Stream::<T, ROWS, COLS, STAGES, BLOCK_K, THREADS, 16>::new(&whole, given())
        .accumulate::<M, N>(whole.k, of_warp, &mut sums);
    if left > 0 {
        let mut end = Stream::<T, ROWS, COLS, STAGES, BLOCK_K, THREADS, 16>::new(&whole, given());
        end.accumulate_ends::<M, N>(problem, given(), of_warp, &mut sums);
    }
    let first = tile_of_block::<ROWS, COLS>(problem);
    let (warp, of_warp) = warp_of_block::<ROWS, M, N>();
    store(problem, (c, bias), &sums, warp, (first, of_warp), scales);
}

/// The stages in shared memory, and the copies that fill them.
struct Stream<
    'a,
    T,
    const ROWS: usize,
    const COLS: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const THREADS: usize,
    const BYTES: usize,
> {
    tiles: DynamicShared<T>,
    a: Parts<'a, T, ROWS, THREADS, BYTES>,
    b: Parts<'a, T, COLS, THREADS, BYTES>,
    /// Whether operands are K-major.
    k_major: [bool; 2],
    /// K-steps from the next stage to be filled on.
    left: u32,
}

impl<
    'a,
    T: MmaElement,
    const ROWS: usize,
    const COLS: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const THREADS: usize,
    const BYTES: usize,
> Stream<'a, T, ROWS, COLS, STAGES, BLOCK_K, THREADS, BYTES>
{
    /// The start of B's tile in a stage. A stage is identified by its first element.
    const OF_B: usize = tile_len::<T>(ROWS, BLOCK_K);
    const STAGE: usize = tile_len::<T>(ROWS + COLS, BLOCK_K);
    const END: usize = STAGES * Self::STAGE;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn new(problem: &GemmParams, (a, b): (Given<'a, T>, Given<'a, T>)) -> Self {
        const { assert!(BLOCK_K == T::PANEL, "a panel along k") };
        let k_major = [a.k_major, b.k_major];
        let (a, b) = (Parts::new(a, problem), Parts::new(b, problem));
        Stream { tiles: dynamic_shared![T], a, b, k_major, left: problem.k }
    }

    /// Adds all k-steps to the sums of the warp whose part of the tile starts at (row, col).
    ///
    /// After the last fragments of a stage all warps wait for the next stage. While the last steps
    /// of the one, and the first of the other, are multiplied, the stage is filled again.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn accumulate<const M: usize, const N: usize>(
        mut self,
        k: u32,
        (row, col): (usize, usize),
        sums: &mut Accumulators<M, N, T::Real>,
    ) {
        const { assert!(BLOCK_K > T::STEP && STAGES >= 2) };
        let of_warp = [tile_len::<T>(row, BLOCK_K), Self::OF_B + tile_len::<T>(col, BLOCK_K)];
        let (mut now, mut free) = (0, 0);
        while free < Self::END - Self::STAGE {
            let inside = self.inside();
            self.fill(free, inside, (0, 1));
            copies::commit_group();
            free += Self::STAGE * one::<THREADS>();
        }
        let mut inside = self.inside();
        for part in 0..M {
            self.fill(free, inside, (part, 2 * M));
        }
        wait_for_all_but(STAGES - 2);
        thread::sync_threads();
        let mut rows: [_; M] = core::array::from_fn(|i| self.row(of_warp, now, i, 0));
        let mut cols: [_; N] = self.cols(of_warp, now, 0);
        for _ in 0..k.div_ceil(BLOCK_K as u32) {
            for step in (T::STEP..BLOCK_K).step_by(T::STEP) {
                let next = self.cols(of_warp, now, step);
                for i in 0..M {
                    sums.multiply_add_row(i, &rows[i], &cols);
                    rows[i] = self.row(of_warp, now, i, step);
                    if step == T::STEP {
                        self.fill(free, inside, (M + i, 2 * M));
                    }
                }
                cols = next;
                if step == T::STEP {
                    copies::commit_group();
                }
            }
            // The last fragments of the stage are in registers.
            free = now;
            now = if free + Self::STAGE < Self::END { free + Self::STAGE } else { 0 };
            wait_for_all_but(STAGES - 2);
            thread::sync_threads();
            inside = self.inside();
            let next = self.cols(of_warp, now, 0);
            for i in 0..M {
                sums.multiply_add_row(i, &rows[i], &cols);
                rows[i] = self.row(of_warp, now, i, 0);
                self.fill(free, inside, (i, 2 * M));
            }
            cols = next;
        }
        // So that the last copies, of zeros, are waited for.
        copies::commit_group();
    }

    /// Adds the k-steps that are not in whole pieces. Their elements go through registers, to the
    /// first stage.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn accumulate_ends<const M: usize, const N: usize>(
        &mut self,
        problem: &GemmParams,
        (a, b): (Given<'a, T>, Given<'a, T>),
        (row, col): (usize, usize),
        sums: &mut Accumulators<M, N, T::Real>,
    ) {
        // Nothing is in flight to the stage any more, and everybody has read it.
        copies::wait_group::<0>();
        thread::sync_threads();
        let left = problem.k as usize % T::PIECE;
        let whole = problem.k as usize - left;
        let mut copy = |given: Given<'a, T>, tile: usize, rows: usize| {
            let (size, [pitch, _], batch) = given.which.of(problem);
            let start = thread::block_idx_z() as usize * batch as usize + whole;
            let mut row = thread::thread_idx_x() as usize;
            while row < rows {
                // No load depends on whether the element exists. So none waits for another.
                let outer = (given.first + row).min(size as usize - 1);
                let from = start + outer * pitch as usize;
                let read: [T; 16] =
                    core::array::from_fn(|at| given.matrix[from + at.min(left - 1)]);
                let end: [T; 16] =
                    core::array::from_fn(|at| if at < left { read[at] } else { T::ZERO });
                self.tiles.store128(tile + place::<T>(row, 0), end);
                self.tiles.store128(tile + place::<T>(row, 1), [T::ZERO; 16]);
                row += THREADS * one::<THREADS>();
            }
        };
        copy(a, 0, ROWS);
        copy(b, Self::OF_B, COLS);
        thread::sync_threads();
        let of_warp = [tile_len::<T>(row, BLOCK_K), Self::OF_B + tile_len::<T>(col, BLOCK_K)];
        let cols = self.cols::<N>(of_warp, 0, 0);
        for i in 0..M {
            let row = self.row(of_warp, 0, i, 0);
            sums.multiply_add_row(i, &row, &cols);
        }
    }

    /// Which copies of the next stage are inside. It becomes the one before.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn inside(&mut self) -> [u32; 2] {
        let inside = [self.a.inside(self.left), self.b.inside(self.left)];
        self.left = self.left.saturating_sub(BLOCK_K as u32);
        inside
    }

    /// Issues a part of the copies of a stage.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn fill(&mut self, stage: usize, inside: [u32; 2], part: (usize, usize)) {
        self.a.copy(&mut self.tiles, stage, inside[0], part);
        self.b.copy(&mut self.tiles, stage + Self::OF_B, inside[1], part);
    }

    /// Loads the `i`th fragment of the warp's rows.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn row(&self, of_warp: [usize; 2], stage: usize, i: usize, step: usize) -> Fragment<T::Atom> {
        fragment::<T>(&self.tiles, stage + of_warp[0], (i * SIDE, step), Which::A, self.k_major[0])
    }

    /// Loads the fragments of the warp's columns.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn cols<const N: usize>(
        &self,
        of_warp: [usize; 2],
        stage: usize,
        step: usize,
    ) -> [Fragment<T::Atom>; N] {
        core::array::from_fn(|j| {
            fragment::<T>(
                &self.tiles,
                stage + of_warp[1],
                (j * SIDE, step),
                Which::B,
                self.k_major[1],
            )
        })
    }
}

/// Loads the fragment that starts so many outer elements and k-steps after the first of a tile.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn fragment<T: MmaElement>(
    tiles: &DynamicShared<T>,
    first: usize,
    (outer, step): (usize, usize),
    which: Which,
    k_major: bool,
) -> Fragment<T::Atom> {
    let panel = outer / T::PANEL * T::PANEL * T::PITCH;
    T::fragment(tiles, (first, panel), (outer % T::PANEL, step), which, k_major)
}
