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

use super::{
    collective::{epilogue::Epilogue, vector::FOUR},
    device::*,
    fragment::ThreadRows,
    operand::Operand,
    tile::Sums,
};

/// Groups of four columns of a tile.
const fn groups(rows: usize, cols: usize) -> usize {
    rows * cols / FOUR
}

/// Elements from one row of a part to the next. Of the lanes whose stores of 128 bits go together, eight at a time, those of
/// the next row are to reach the other half of the banks where a row has four, and the next banks where it has one.
const fn pitch(cols: usize) -> usize {
    if cols <= 16 { cols + FOUR } else { (cols + 15) / 32 * 32 + 16 }
}

/// Elements of a warp's part of a tile.
pub const fn part_len(rows: usize, cols: usize) -> usize {
    rows * pitch(cols)
}

/// Blocks of a cluster that split k, at most.
const MAX_SPLITS: usize = 8;

/// Where a block's parts of other blocks' sums begin: behind its own warps' parts.
const fn received(rows: usize, cols: usize, slices: usize) -> usize {
    (slices - 1) * part_len(rows, cols) + (rows - 1) * pitch(cols) + cols
}

/// Bytes of shared memory for the parts of a tile, of so many warps of a block each, whatever number of blocks splits k. A block's share
/// of the tile is rounded up, and there is one for each block: 7 shares of 147 groups are five groups more than a tile of 64 x 64 has.
pub const fn bytes(rows: usize, cols: usize, slices: usize) -> usize {
    let (mut most, mut blocks) = (0, 2);
    while blocks <= MAX_SPLITS {
        let shares = blocks * groups(rows, cols).div_ceil(blocks);
        most = if shares > most { shares } else { most };
        blocks += 1;
    }
    (received(rows, cols, slices) + most * FOUR) * size_of::<f32>()
}

/// Four neighbours the way they are stored: the second, the first, the fourth, the third. For a vector's elements lie in
/// registers side by side, and a sum's must not be in the bank of the column that it is multiplied with: columns come as
/// vectors, too, of which the first element is in the even bank. So of the sums the second is.
#[inline(always)]
fn pairs_swapped([a, b, c, d]: [f32; FOUR]) -> [f32; FOUR] {
    [b, a, d, c]
}

/// Are sums stored as vectors? Where they usually come this way. Else it is not worth binding the sums' registers, unless
/// A's registers are vectors of rows (not of steps): measured by what ptxas makes of the main loop.
#[inline(always)]
fn stores_vectors<A: Operand>(slices: usize) -> bool {
    slices > 1 || !A::K_MAJOR
}

/// Stores a thread's sums, of the part that begins with that element.
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
                // The compiler would make a vector of them, too, if it saw that they are neighbours.
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
        false => [0, 1, 2, 3].map(|e| swapped_by(sums, row % FOUR, e)),
    };
    pairs_swapped(sums)
}

/// The element at `e ^ by`, of registers, which have no number that is computed.
#[inline(always)]
fn swapped_by([a, b, c, d]: [f32; FOUR], by: usize, e: usize) -> f32 {
    match e ^ by {
        0 => a,
        1 => b,
        2 => c,
        _ => d,
    }
}

/// The row and the first column of a group.
#[inline(always)]
fn place<const TILE_COLS: usize>(group: usize) -> (usize, usize) {
    (group / (TILE_COLS / FOUR), group % (TILE_COLS / FOUR) * FOUR)
}

/// Groups from one of the thread's on, of so many threads: `COUNT` of them are worked on at a time, so that it need not wait
/// for each read by itself. And which of them are the thread's: past the end it is the
/// last one again, which is not.
#[inline(always)]
fn of_thread<const COUNT: usize>(
    group: usize,
    threads: usize,
    end: usize,
) -> [(usize, bool); COUNT] {
    let mut groups = [(0, false); COUNT];
    for i in 0..COUNT {
        let group = group + i * threads;
        groups[i] = (group.min(end - 1), group < end);
    }
    groups
}

/// Where a tile begins, and what it takes to finish it.
struct Tile<'a, 'b, const ROWS: usize, const COLS: usize> {
    first: (usize, usize),
    epilogue: &'a mut Epilogue<'b, f32>,
    /// Is C `alpha A B`? And is all of the tile inside?
    is_scaled: bool,
    is_whole: bool,
}

impl<const ROWS: usize, const COLS: usize> Tile<'_, '_, ROWS, COLS> {
    /// Makes elements of C of a group's sums.
    #[inline(always)]
    #[track_caller]
    fn finish(&mut self, (group, is_mine): (usize, bool), sums: [f32; FOUR]) {
        let (row, col) = place::<COLS>(group);
        let at = (self.first.0 + row, self.first.1 + col);
        // C's last tiles are to take no longer than the others.
        match self.is_whole || self.is_scaled && self.epilogue.are_four_inside(at) {
            _ if !is_mine => {}
            true if self.epilogue.is_wide() => self.epilogue.store::<true>(at, sums),
            true => self.epilogue.store::<false>(at, sums),
            false => self.epilogue.finish::<false>(at, sums),
        }
    }
}

/// Adds up the parts that all warps have stored, `part` elements from one to the next, a thread `AT_ONCE` groups at a time, and
/// finishes the tile. All threads of the cluster come here.
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
    let is_scaled = epilogue.is_scaled();
    let is_whole = epilogue.is_scaled_tile(first, (TILE_ROWS, TILE_COLS));
    let mut tile = Tile::<TILE_ROWS, TILE_COLS> { first, epilogue, is_scaled, is_whole };
    let thread = thread::thread_idx_x() as usize;
    if blocks == 1 {
        thread::sync_threads();
        let mut group = thread;
        while group < all {
            let groups = of_thread::<AT_ONCE>(group, THREADS, all);
            let sums =
                groups.map(|(group, _)| add_slices::<A, TILE_COLS, SLICES>(tiles, part, group));
            for i in 0..AT_ONCE {
                tile.finish(groups[i], sums[i]);
            }
            group += AT_ONCE * THREADS;
        }
        return;
    }
    // What comes from the others is put behind this block's parts, where stages were: now all have read theirs.
    cluster::sync();
    let received = const { received(TILE_ROWS, TILE_COLS, SLICES) };
    let share = all.div_ceil(blocks as usize);
    let mut group = thread;
    while group < all {
        let groups = of_thread::<AT_ONCE>(group, THREADS, all);
        let sums = groups.map(|(group, _)| add_slices::<A, TILE_COLS, SLICES>(tiles, part, group));
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
    let first = rank as usize * share;
    let end = (first + share).min(all);
    let mut group = first + thread;
    while group < end {
        let groups = of_thread::<AT_ONCE>(group, THREADS, end);
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
            tile.finish(groups[i], sums[i]);
        }
        group += AT_ONCE * THREADS;
    }
}
