//! Matrices of bytes, transposed, with 16-byte aligned rows: for tensor cores, which read bytes
//! along k alone.
//!
//! * **A block** of eight warps transposes 128 x 128 bytes in shared memory, and goes on with those
//!   a grid further down.
//! * **A thread** loads sixteen neighbours of each of four rows. The four bytes of a column are a
//!   word of the result. It stores sixteen such words, and loads them again as four pieces of
//!   sixteen bytes, of what were four columns.
//! * **A column** of the tile is 32 words in shared memory, in groups of four. Groups are swizzled
//!   by the column, [`place`]: then the words that a warp stores, and the pieces that it loads, are
//!   in all banks.
//!
//! Where rows of the source are not 16-byte aligned, and at its edge, a lane loads four bytes of a
//! column by themselves, and a warp 32 neighbours of each of four rows.
//!
//! Every byte is read once and written once, by accesses of sixteen bytes.

use super::device::*;

/// Warps of a block.
const WARPS: usize = 8;
/// Rows and columns that a block transposes at once.
pub const TILE: usize = 128;
/// Bytes of a piece.
const PIECE: usize = 16;
/// Rows of a word.
const ROWS: usize = 4;
/// Words of a column.
const WORDS: usize = TILE / ROWS;
/// Pieces of a row, and of a column.
const PIECES: usize = TILE / PIECE;

/// The place of a word of a column.
#[inline(always)]
fn place(col: usize, word: usize) -> usize {
    col * WORDS + (word ^ (((col / PIECE) ^ col) % PIECES * ROWS))
}

/// Transposes `rows x cols` matrices; blocks along z take one each. Rows of the source are
/// `from_pitch` elements apart, matrices `from_step`. The result has `cols` rows of `rows`
/// elements, with `to_pitch` and `to_step`, 16-byte aligned. What follows a row of the result, up
/// to the next multiple of sixteen bytes, is overwritten.
#[kernel(block = (32, WARPS), shared = TILE * TILE, barriers = 2, min_blocks = 4, dependent)]
pub fn transpose_rows_u8(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<u8>,
    mut to: Out<u8>,
) {
    let mut tile = shared![u32; TILE, WORDS];
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();
    let (rows, cols) = (rows as usize, cols as usize);
    let (from_pitch, to_pitch) = (from_pitch as usize, to_pitch as usize);
    let (lane, warp) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let matrix = thread::block_idx_z() as usize;
    let (from_start, to_start) = (matrix * from_step as usize, matrix * to_step as usize);
    let first_col = thread::block_idx_x() as usize * TILE;
    let places = from.misalignment::<16>() | from_start | from_pitch;
    let is_in_pieces = places.is_multiple_of(PIECE) && first_col + TILE <= cols;
    let mut first_row = thread::block_idx_y() as usize * TILE;
    while first_row < rows {
        // Of a row below the last one the last is read.
        let row = |word: usize, i: usize| {
            from_start + (first_row + word * ROWS + i).min(rows - 1) * from_pitch
        };
        if is_in_pieces {
            let (piece, word) = (lane % PIECES, warp * ROWS + lane / PIECES);
            let read: [[u8; PIECE]; ROWS] =
                core::array::from_fn(|i| from.load128(row(word, i) + first_col + piece * PIECE));
            for i in 0..PIECE {
                let column = read.map(|row| row[i]);
                tile[place(piece * PIECE + i, word)] = u32::from_le_bytes(column);
            }
        } else {
            let (mut group, mut word) = (first_col, warp * ROWS);
            while group < cols.min(first_col + TILE) {
                let col = (group + lane).min(cols - 1);
                let read: [u32; 2] = core::array::from_fn(|next| {
                    u32::from_le_bytes(core::array::from_fn(|i| from[row(word + next, i) + col]))
                });
                for next in 0..2 {
                    tile[place(group - first_col + lane, word + next)] = read[next];
                }
                // The compiler would unroll the loop, for more registers than there are.
                word = thread::opaque(word + 2);
                if word == (warp + 1) * ROWS {
                    (group, word) = (group + 32, warp * ROWS);
                }
            }
        }
        thread::sync_threads();
        for i in 0..TILE / (WARPS * ROWS) {
            let (col, piece) = ((i * WARPS + warp) * ROWS + lane / PIECES, lane % PIECES);
            let (to_col, to_row) = (first_col + col, first_row + piece * PIECE);
            if to_col < cols && to_row < rows {
                let words: [u32; 4] = tile.load128(place(col, piece * ROWS));
                let bytes = from_words::<u8, PIECE>(words);
                to.store128(to_start + to_col * to_pitch + to_row, bytes);
            }
        }
        // The tile has been read. The next one may take its place.
        thread::sync_threads();
        first_row += thread::grid_dim_y() as usize * TILE;
    }
}
