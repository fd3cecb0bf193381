//! Split-K: several warps, or blocks, have parts of the same sums. The parts are added in shared
//! memory. Tiles that need the full epilogue go the same way.
//!
//! ```text
//!   a warp       stores its sums where the stages were, row by row of the tile
//!   a block      adds the parts of its warps, four columns a thread
//!   a cluster    sends each part to the block that owns that share of the tile, which adds what it has received
//! ```
//!
//! The order of additions is fixed, so the result is the same in every run.

use super::{
    collective::{
        epilogue::Epilogue,
        fragment::{Sums, ThreadRows},
        vector::FOUR,
    },
    device::*,
    operand::Operand,
};

/// Groups of four columns in a tile.
const fn groups(rows: usize, cols: usize) -> usize {
    rows * cols / FOUR
}

/// Elements from one row of a part to the next. Eight lanes store 128 bits at a time. Those of the
/// next row should reach the other half of the banks if a row has four of them, and the next banks
/// if it has one.
const fn pitch(cols: usize) -> usize {
    if cols <= 16 { cols + FOUR } else { (cols + 15) / 32 * 32 + 16 }
}

/// Elements of a warp's part of a tile.
pub const fn part_len(rows: usize, cols: usize) -> usize {
    rows * pitch(cols)
}

/// Blocks of a cluster that split k, at most.
pub const MAX_SPLITS: usize = 8;

/// The start of the parts that a block receives: after those of its own warps.
const fn received(rows: usize, cols: usize, slices: usize) -> usize {
    (slices - 1) * part_len(rows, cols) + (rows - 1) * pitch(cols) + cols
}

/// Bytes of shared memory for the parts of a tile, of `slices` warps a block, for any number of
/// splits. A block's share of the tile is rounded up, and each block has one: 7 shares of 147
/// groups are five more groups than a 64 x 64 tile has.
pub const fn bytes(rows: usize, cols: usize, slices: usize) -> usize {
    let (mut most, mut blocks) = (0, 2);
    while blocks <= MAX_SPLITS {
        let shares = blocks * groups(rows, cols).div_ceil(blocks);
        most = if shares > most { shares } else { most };
        blocks += 1;
    }
    (received(rows, cols, slices) + most * FOUR) * size_of::<f32>()
}

/// Four neighbours in the order in which they are stored: second, first, fourth, third. The
/// elements of a vector are in consecutive registers, and a sum must not be in the bank of the
/// column that it is multiplied by. Columns are vectors, too, with the first element in an even
/// register. So the even register of the sums has the second element.
#[inline(always)]
fn pairs_swapped([a, b, c, d]: [f32; FOUR]) -> [f32; FOUR] {
    [b, a, d, c]
}

/// Whether sums are stored as vectors. That binds the registers of the sums, which is worth it if
/// this way is the usual one, or if A's registers are vectors of rows (not of steps): measured by
/// the SASS of the main loop.
#[inline(always)]
fn stores_vectors<A: Operand>(slices: usize) -> bool {
    slices > 1 || !A::K_MAJOR
}

/// Stores a thread's sums to the part that starts with element `start`.
#[inline(always)]
#[track_caller]
pub fn store<
    A: Operand,
    B: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const ROW_LANES: usize,
    const COL_LANES: usize,
    const ROWS: usize,
    const COLS: usize,
    const SLICES: usize,
>(
    tiles: &mut DynamicShared<f32>,
    start: usize,
    rows: &ThreadRows<A, TILE_ROWS, ROW_LANES>,
    cols: &ThreadRows<B, TILE_COLS, COL_LANES>,
    sums: &Sums<ROWS, COLS>,
) {
    for i in 0..ROWS {
        let row = rows.outer::<ROWS>(i);
        let (at, sums) = (start + row * pitch(TILE_COLS), &sums[i]);
        for j in (0..COLS / FOUR * FOUR).step_by(FOUR) {
            let four = pairs_swapped([sums[j], sums[j + 1], sums[j + 2], sums[j + 3]]);
            let at = at + cols.outer::<COLS>(j);
            if stores_vectors::<A>(SLICES) {
                tiles.store128(at, four);
            } else {
                // The compiler would make a vector of these, too, if it knew that they are
                // neighbours.
                for e in 0..FOUR {
                    tiles[at + (e ^ (row % FOUR))] = four[e];
                }
            }
        }
        if !COLS.is_multiple_of(FOUR) {
            let two = [sums[COLS - 1], sums[COLS - 2]];
            tiles.store64(at + cols.outer::<COLS>(COLS - 2), two);
        }
    }
}

/// The sum of the block's parts of a group of columns.
#[inline(always)]
#[track_caller]
fn add_slices<A: Operand, const TILE_COLS: usize, const SLICES: usize>(
    tiles: &DynamicShared<f32>,
    part: usize,
    group: usize,
) -> [f32; FOUR] {
    let (row, col) = place::<TILE_COLS>(group);
    let mut sums = [0.0; FOUR];
    for slice in 0..SLICES {
        let four: [f32; FOUR] = tiles.load128(slice * part + row * pitch(TILE_COLS) + col);
        for i in 0..FOUR {
            sums[i] += four[i];
        }
    }
    let sums = match stores_vectors::<A>(SLICES) {
        true => sums,
        false => moved(sums, row % FOUR),
    };
    pairs_swapped(sums)
}

/// The elements at 0 to 3, each `^ by`. Selections, since registers cannot be indexed by a computed
/// number.
#[inline(always)]
fn moved([a, b, c, d]: [f32; FOUR], by: usize) -> [f32; FOUR] {
    let of = |condition, one: [f32; FOUR], other: [f32; FOUR]| {
        core::array::from_fn(|e| if condition { one[e] } else { other[e] })
    };
    let [a, b, c, d] = of(!by.is_multiple_of(2), [b, a, d, c], [a, b, c, d]);
    of(by / 2 != 0, [c, d, a, b], [a, b, c, d])
}

/// The row and the first column of a group.
#[inline(always)]
fn place<const TILE_COLS: usize>(group: usize) -> (usize, usize) {
    (group / (TILE_COLS / FOUR), group % (TILE_COLS / FOUR) * FOUR)
}

/// The thread's next `COUNT` groups, handled at once so that loads overlap, and which of them
/// exist. Past the end it is the first one again, which does not count.
#[inline(always)]
fn of_thread<const COUNT: usize>(
    group: usize,
    threads: usize,
    end: usize,
) -> [(usize, bool); COUNT] {
    core::array::from_fn(|i| match group + i * threads {
        next if next < end => (next, true),
        _ => (group, false),
    })
}

/// Fours of elements that a thread stores at once to a C without fours.
const ELEMENTS: usize = 2;

/// Adds the parts that all warps have stored, `part` elements apart, `AT_ONCE` groups a thread at a
/// time, and finishes the tile. All threads of the cluster call this.
///
/// A thread's groups have the same columns, whose bias it loads once. If C has no
/// [fours](Epilogue::is_in_fours), sums go back to shared memory, and neighbouring lanes store
/// neighbouring elements.
#[inline(always)]
#[track_caller]
pub fn reduce<
    A: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const SLICES: usize,
    const THREADS: usize,
    const AT_ONCE: usize,
>(
    tiles: &mut DynamicShared<f32>,
    part: usize,
    (rank, blocks): (u32, u32),
    first: (usize, usize),
    epilogue: &mut Epilogue<f32>,
) {
    let all = const { groups(TILE_ROWS, TILE_COLS) };
    let received = const { received(TILE_ROWS, TILE_COLS, SLICES) };
    // Groups in a row, rows that the threads finish at once, and the threads that do so.
    let across = const { TILE_COLS / FOUR };
    let down = const { THREADS / (TILE_COLS / FOUR) };
    let threads = down * across;
    let thread = thread::thread_idx_x() as usize;
    // The groups that the block finishes.
    let (share, begin) = match blocks {
        1 => (all, 0),
        _ => (all.div_ceil(blocks as usize), rank as usize * all.div_ceil(blocks as usize)),
    };
    let end = (begin + share).min(all);
    let own = begin + thread;
    let (row, col) = place::<TILE_COLS>(own);
    // Before the barriers, so that nobody waits for it.
    let columns = epilogue.columns(core::array::from_fn(|i| (first.1 + col + i) as u32));
    let in_fours =
        epilogue.is_in_fours() || epilogue.is_wide() && epilogue.left(first).1 >= TILE_COLS;
    if blocks == 1 {
        thread::sync_threads();
    } else {
        // What a block receives follows its own parts, where stages were. After this barrier
        // everybody has read theirs.
        cluster::sync();
        let mut group = thread;
        while group < all {
            let groups = of_thread::<AT_ONCE>(group, THREADS, all);
            let sums =
                groups.map(|(group, _)| add_slices::<A, TILE_COLS, SLICES>(tiles, part, group));
            for i in 0..AT_ONCE {
                let (group, is_mine) = groups[i];
                let (owner, place) = (group / share, rank as usize * share + group % share);
                if is_mine {
                    tiles.remote(owner as u32).store128(received + place * FOUR, sums[i]);
                }
            }
            group += AT_ONCE * THREADS;
        }
        cluster::sync();
    }
    // Where the sums of a group go if they go back. No other thread reads a part of this group.
    let place_of = |group: usize| match blocks {
        1 => group / across * pitch(TILE_COLS) + group % across * FOUR,
        _ => received + (group - begin) * FOUR,
    };
    let end_row = (first.0 + (end + across - 1 - col / FOUR) / across) as u32;
    let mut row = (first.0 + row) as u32;
    let mut group = if thread < threads { own } else { end };
    while group < end {
        let groups = of_thread::<AT_ONCE>(group, threads, end);
        let mut sums = [[0.0; FOUR]; AT_ONCE];
        if blocks == 1 {
            sums = groups.map(|(group, _)| add_slices::<A, TILE_COLS, SLICES>(tiles, part, group));
        } else {
            for rank in 0..blocks as usize {
                let parts: [[f32; FOUR]; AT_ONCE] =
                    groups.map(|(group, _)| tiles.load128(place_of(group) + rank * share * FOUR));
                for i in 0..AT_ONCE {
                    for e in 0..FOUR {
                        sums[i][e] += parts[i][e];
                    }
                }
            }
        }
        if in_fours {
            epilogue.finish_fours_until(&columns, (row, down as u32), end_row, sums);
        } else {
            for i in 0..AT_ONCE {
                let (group, is_mine) = groups[i];
                if is_mine {
                    tiles.store128(place_of(group), sums[i]);
                }
            }
        }
        group += AT_ONCE * threads;
        row += (AT_ONCE * down) as u32;
    }
    if in_fours {
        return;
    }
    thread::sync_threads();
    let outside = epilogue.left((0, 0)).0 as u32;
    let (mut element, end) = (begin * FOUR + thread, end * FOUR);
    while element < end {
        let elements: [[usize; FOUR]; ELEMENTS] =
            core::array::from_fn(|i| core::array::from_fn(|j| element + (i * FOUR + j) * THREADS));
        let sums = elements.map(|four| {
            four.map(|element| match element < end {
                true => tiles[place_of(element / FOUR) + element % FOUR],
                false => 0.0,
            })
        });
        let rows = elements.map(|four| {
            four.map(|element| match element < end {
                true => (first.0 + element / TILE_COLS) as u32,
                false => outside,
            })
        });
        let columns = elements.map(|four| {
            epilogue.columns(four.map(|element| (first.1 + element % TILE_COLS) as u32))
        });
        epilogue.finish_anywhere(&core::array::from_fn(|i| &columns[i]), rows, sums);
        element += ELEMENTS * FOUR * THREADS;
    }
}
