//! Parts of a tile's sums, which warps and blocks have computed that split k: put into shared memory, and added up.
//!
//! Each slice of a block stores its part where the stages were, a row of the tile after the other. Then each block of the
//! cluster takes its share of the tile, four columns a thread at a time, and adds up what all blocks have of it: in a fixed
//! order, so that the result is the same in every run.

use super::{super::device::*, COLS, Cols, Epilogue, FOUR, Operand, ROWS, Rows, Sums, THREADS};

/// Where an element lies: groups of four columns are exchanged, so that lanes that store to different rows store to
/// different banks.
#[inline(always)]
fn place<const TILE: usize>(row: usize, col: usize) -> usize {
    row * TILE + (col ^ ((row ^ (row / 4)) % 8 * FOUR))
}

/// Stores a thread's sums.
#[inline(always)]
#[track_caller]
pub fn store<A: Operand, B: Operand, const TILE: usize>(
    tiles: &mut DynamicShared<f32>,
    slice: usize,
    (rows, cols): (&Rows<A, TILE>, &Cols<B, TILE>),
    sums: &Sums,
) {
    let first = slice * TILE * TILE;
    for i in 0..ROWS {
        let row = rows.outer(i);
        for j in (0..COLS).step_by(FOUR) {
            let four = [sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]];
            if B::K_MAJOR {
                for e in 0..FOUR {
                    tiles[first + place::<TILE>(row, cols.outer(j + e))] = four[e];
                }
            } else {
                tiles.store128(first + place::<TILE>(row, cols.outer(j)), four);
            }
        }
    }
}

/// Adds up this block's share of a tile, and finishes it.
#[inline(always)]
#[track_caller]
pub fn add<const TILE: usize, const SLICES: usize>(
    tiles: &DynamicShared<f32>,
    (rank, blocks): (u32, u32),
    (first_row, first_col): (usize, usize),
    epilogue: &mut Epilogue<f32>,
) {
    let t = thread::thread_idx_x() as usize;
    let mut group = rank as usize * THREADS + t;
    while group < TILE * TILE / FOUR {
        let (row, col) = (group / (TILE / FOUR), group % (TILE / FOUR) * FOUR);
        group += blocks as usize * THREADS;
        if !epilogue.is_inside((first_row + row, first_col + col)) {
            continue;
        }
        let mut sums = [0.0; FOUR];
        for rank in 0..blocks {
            let part = tiles.remote(rank);
            for slice in 0..SLICES {
                let four: [f32; FOUR] = part.load128(slice * TILE * TILE + place::<TILE>(row, col));
                for i in 0..FOUR {
                    sums[i] += four[i];
                }
            }
        }
        epilogue.finish::<false, 1>((first_row + row, first_col + col), sums);
    }
}
