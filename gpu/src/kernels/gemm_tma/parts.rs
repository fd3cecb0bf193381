//! A tile's sums by way of shared memory: where several warps, or blocks, each have a part of them, and where C asks for
//! more than a store of what a thread has.
//!
//! ```text
//!   each warp      stores its sums where the stages were, a row of the tile after the other
//!   the block      adds up its warps' parts, four columns a thread at a time
//!   the cluster    sends each part to the block whose share of the tile that is, which adds up what has come
//! ```
//!
//! All in a fixed order, so that the result is the same in every run.

use super::{super::device::*, Epilogue, FOUR, Operand, Places, ROWS, Sums};

/// Groups of four columns of a tile.
const fn groups(rows: usize, cols: usize) -> usize {
    rows * cols / FOUR
}

/// What a row's columns are exchanged by, each with the one that lies so far off: 8 x 4 lanes, which have eight rows and
/// every fourth column, store to 32 banks.
#[inline(always)]
fn exchange<A: Operand, const TILE_COLS: usize>(row: usize) -> (usize, usize) {
    let lane = if A::K_MAJOR { row } else { row / FOUR };
    (if TILE_COLS > 16 { lane / FOUR % 2 * 16 } else { 0 }, lane % FOUR)
}

/// Stores a thread's sums, one by one: as vectors they would have to lie in fours of registers, whose banks are those of
/// the columns that they are multiplied with.
#[inline(always)]
#[track_caller]
pub fn store<
    A: Operand,
    B: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const ROW_LANES: usize,
    const COL_LANES: usize,
    const COLS: usize,
>(
    tiles: &mut DynamicShared<f32>,
    slice: usize,
    rows: &Places<A, TILE_ROWS, ROW_LANES>,
    cols: &Places<B, TILE_COLS, COL_LANES>,
    sums: &Sums<COLS>,
) {
    for i in 0..ROWS {
        let row = rows.outer(i);
        let (far, near) = exchange::<A, TILE_COLS>(row);
        for j in 0..COLS {
            let col = cols.outer(j) ^ far ^ near;
            tiles[(slice * TILE_ROWS + row) * TILE_COLS + col] = sums[i][j];
        }
    }
}

/// The sum of the block's parts of a group of columns.
#[inline(always)]
#[track_caller]
fn add_slices<A: Operand, const TILE_ROWS: usize, const TILE_COLS: usize, const SLICES: usize>(
    tiles: &DynamicShared<f32>,
    group: usize,
) -> [f32; FOUR] {
    let (row, col) = place::<TILE_COLS>(group);
    let (far, near) = exchange::<A, TILE_COLS>(row);
    let mut sums = [0.0; FOUR];
    for slice in 0..SLICES {
        let part: [f32; FOUR] = tiles.load128((slice * TILE_ROWS + row) * TILE_COLS + (col ^ far));
        for i in 0..FOUR {
            sums[i] += part[i];
        }
    }
    let pairs = if near % 2 == 0 { sums } else { [sums[1], sums[0], sums[3], sums[2]] };
    if near < 2 { pairs } else { [pairs[2], pairs[3], pairs[0], pairs[1]] }
}

/// The row and the first column of a group.
#[inline(always)]
fn place<const TILE_COLS: usize>(group: usize) -> (usize, usize) {
    (group / (TILE_COLS / FOUR), group % (TILE_COLS / FOUR) * FOUR)
}

/// Groups that a thread works on at a time, so that it need not wait for each read by itself.
const AT_ONCE: usize = 4;

/// Does something with those of the groups from `first` to `end` that are the thread's, of so many threads. Past the end it
/// is the last one again, said not to be the thread's.
#[inline(always)]
#[track_caller]
fn for_each<const THREADS: usize>(
    first: usize,
    end: usize,
    mut act: impl FnMut([(usize, bool); AT_ONCE]),
) {
    let mut group = first + thread::thread_idx_x() as usize;
    while group < end {
        let groups = [group, group + THREADS, group + 2 * THREADS, group + 3 * THREADS];
        act(groups.map(|group| (group.min(end - 1), group < end)));
        group += AT_ONCE * THREADS;
    }
}

/// Adds up the parts that all warps have stored, and finishes the tile. All threads of the cluster come here.
#[inline(always)]
#[track_caller]
pub fn add<
    A: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const SLICES: usize,
    const THREADS: usize,
>(
    tiles: &mut DynamicShared<f32>,
    (rank, blocks): (u32, u32),
    (first_row, first_col): (usize, usize),
    epilogue: &mut Epilogue<f32>,
) {
    let all = const { groups(TILE_ROWS, TILE_COLS) };
    let is_scaled = epilogue.is_scaled_tile((first_row, first_col), (TILE_ROWS, TILE_COLS));
    let mut finish = |(group, is_mine): (usize, bool), sums| {
        let (row, col) = place::<TILE_COLS>(group);
        let at = (first_row + row, first_col + col);
        match is_scaled {
            _ if !is_mine => {}
            true if epilogue.is_wide() => epilogue.store::<true>(at, sums),
            true => epilogue.store::<false>(at, sums),
            false => epilogue.finish::<false>(at, sums),
        }
    };
    if blocks == 1 {
        thread::sync_threads();
        for_each::<THREADS>(0, all, |groups| {
            let sums = groups
                .map(|(group, _)| add_slices::<A, TILE_ROWS, TILE_COLS, SLICES>(tiles, group));
            for i in 0..AT_ONCE {
                finish(groups[i], sums[i]);
            }
        });
        return;
    }
    // What comes from the others is put behind this block's parts, where stages were: now all have read theirs.
    cluster::sync();
    let received = SLICES * TILE_ROWS * TILE_COLS;
    let share = all.div_ceil(blocks as usize);
    for_each::<THREADS>(0, all, |groups| {
        let sums =
            groups.map(|(group, _)| add_slices::<A, TILE_ROWS, TILE_COLS, SLICES>(tiles, group));
        for i in 0..AT_ONCE {
            let (group, is_mine) = groups[i];
            let (owner, place) = (group / share, rank as usize * share + group % share);
            if is_mine {
                tiles.remote(owner as u32).store128(received + place * FOUR, sums[i]);
            }
        }
    });
    cluster::sync();
    let first = rank as usize * share;
    for_each::<THREADS>(first, (first + share).min(all), |groups| {
        let mut sums = [[0.0; FOUR]; AT_ONCE];
        for rank in 0..blocks as usize {
            let parts: [[f32; FOUR]; AT_ONCE] = groups
                .map(|(group, _)| tiles.load128(received + (rank * share + group - first) * FOUR));
            for i in 0..AT_ONCE {
                for e in 0..FOUR {
                    sums[i][e] += parts[i][e];
                }
            }
        }
        for i in 0..AT_ONCE {
            finish(groups[i], sums[i]);
        }
    });
}
