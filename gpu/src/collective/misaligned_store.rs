//! The packed epilogue for a C with misaligned rows.
//!
//! A row of C may start some elements after a multiple of sixteen bytes: its *misalignment*. Its
//! elements are staged that many elements further on. So a chunk that is read from shared memory is
//! aligned in C.
//!
//! * **16-bit elements** are staged in pairs. A row with an odd misalignment is staged one element
//!   too early. When its chunks are read, each is shifted by half a word. The missing half is from
//!   the word before the chunk.
//! * **A row's words past the end of a part** are carried to the start of the next part.
//! * **The elements before the first multiple of sixteen bytes** of a row, and after the last, are
//!   stored one by one, once a tile.
//!
//! ```text
//!   C, bf16          . . . . . 0 1 2 | 3 4 5 6 7 8 9 10 | ..      a row with misalignment 5
//!   words, part 0    . .  . .  0 1  2 3  |  4 5  6 7 ..  122 123  |  124 125  126 127
//!   read             . .  . .  . 0  1 2  |  3 4  5 6 ..  121 122  |
//!   words, part 1    124 125  126 127  128 129 ..                     122 123 is carried, too
//! ```
//!
//! From one staged row to the next there is a multiple of 32 banks, and four more. Words of two
//! elements have no bank conflicts. Words of f32 are staged one at a time, with two-way conflicts.

use super::{
    accumulators::ROWS,
    device::{warpgroup::Fragment, *},
    epilogue::Epilogue,
    packed_element::{PackedStore, rows_at_once_of, staged_words},
    real::Real,
    vector::FOUR,
};

/// [`store`](super::packed_store::store) for a C with misaligned rows. The accumulators are the
/// elements of C, before they are rounded.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store_misaligned<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &Fragment<N, C::Real>,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    first @ (first_row, col): (usize, usize),
) {
    const {
        // Narrower tiles are not stored so.
        let fits = PITCH >= WORDS + FOUR || N < WORDS;
        assert!(fits, "words shift by less than a chunk, and one is carried")
    };
    let cols = const { (WORDS * C::PER_WORD) as u32 };
    // 32-bit numbers: with 64 bits each step would be two instructions.
    let (rows, width) = epilogue.left(first);
    let left = (rows.min(ROWS) as u32, width.min(N) as u32);
    for part in 0..left.1.div_ceil(cols) {
        // Through a shuffle, so that the compiler does not compute what follows before the loop,
        // and keep it in registers.
        let anew = |lane: usize| warp::shuffle(warp::ALL, lane as u32, lane as u32) as usize;
        let lane = anew(lane);
        let row = lane / 4;
        // Rows that are eight apart have the same misalignment.
        let misalignment = misalignment(epilogue, epilogue.place((first_row + row, col))) as usize;
        let to = base + row * PITCH + lane % 4 * 2 / C::PER_WORD + misalignment / C::PER_WORD;
        C::each_pair_of::<WORDS, _>(sums, part as usize, |row, col, two| {
            // In this form the compiler knows all but the lane's part.
            let at = to + row as usize % ROWS / 8 * 8 * PITCH + col as usize / 8 * 8 / C::PER_WORD;
            C::stage_misaligned(staged, at, two);
        });
        warp::sync_warp(warp::ALL);
        let lane = anew(lane);
        let place = (part * cols, base, lane);
        store_vectors::<_, WORDS, N, _, _>(staged, place, epilogue, first, left);
        let is_last = left.1 <= (part + 1) * cols;
        for end in u32::from(part > 0)..1 + u32::from(is_last) {
            store_edge::<_, WORDS, _, _>(staged, place, epilogue, first, left, end == 1);
        }
        warp::sync_warp(warp::ALL);
        if !is_last {
            carry::<_, WORDS, _, _>(staged, (base, lane), epilogue, first);
        }
    }
}

/// Elements from the last multiple of sixteen bytes to an index of C.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn misalignment<C: PackedStore>(epilogue: &Epilogue<C>, place: usize) -> u32 {
    let piece = const { (FOUR * C::PER_WORD) as u32 };
    (piece - epilogue.to_16_bytes(place) as u32) % piece
}

/// The word of a row that holds the carried last word of the part before.
const fn carried_word(words: usize) -> usize {
    words + FOUR - 1
}

/// Carries the words past the end of a part to the start of the next part, and the part's last word
/// to where [`before`] finds it.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn carry<C: PackedStore, const WORDS: usize, const STAGED: usize, const PITCH: usize>(
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &Epilogue<C>,
    (first_row, col): (usize, usize),
) {
    // Two lanes a row, two words each.
    let row = lane / 2;
    let moved =
        misalignment(epilogue, epilogue.place((first_row + row, col))) as usize / C::PER_WORD;
    let row = base + row * PITCH;
    for i in 0..2 {
        let number = lane % 2 * 2 + i;
        if number <= moved {
            let to = if number == 0 { carried_word(WORDS) } else { number - 1 };
            staged[row + to] = staged[row + WORDS - 1 + number];
        }
    }
    warp::sync_warp(warp::ALL);
}

/// The word before another. Before the first word of a part, it is the last word of the part
/// before.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn before<const WORDS: usize>(word: usize, part: u32) -> usize {
    match (word, part) {
        // There is none.
        (0, 0) => 0,
        (0, _) => carried_word(WORDS),
        _ => word - 1,
    }
}

/// Stores the aligned sixteen bytes of `width` columns.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn store_vectors<
    C: PackedStore,
    const WORDS: usize,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    staged: &Shared<C::Real, STAGED, PITCH>,
    (part, base, lane): (u32, usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
    (rows, width): (u32, u32),
) {
    let piece = const { FOUR * C::PER_WORD };
    // A lane's four words, of every second row or of every fourth.
    let each = const { rows_at_once_of(WORDS) };
    let (row_of_lane, chunk) = (lane / (WORDS / FOUR), lane % (WORDS / FOUR));
    let col = part + (chunk * piece) as u32;
    let rows = if width < piece as u32 { 0 } else { rows };
    let rows = rows.saturating_sub(row_of_lane as u32);
    let most = width.saturating_sub(piece as u32);
    let between = epilogue.between_rows();
    let start = epilogue.place(first) + row_of_lane * between;
    // A lane beyond the staged words reads the second chunk, which is staged in full whatever the
    // misalignment.
    let is_put = chunk < const { staged_words::<C, WORDS, N>() / FOUR };
    let word = if is_put { chunk * FOUR } else { FOUR };
    let before_word = before::<WORDS>(word, part);
    let from = base + row_of_lane * PITCH;
    for two in (0..8 / each).step_by(2) {
        let mut words = const { [[[C::Real::ZERO; FOUR]; 2]; 2] };
        let (mut cols, mut places) = ([0; 2], [0; 2]);
        for i in 0..2 {
            let row = (two + i) * each;
            let place = start + row * between;
            let misalignment = misalignment(epilogue, place);
            // A column before the first one wraps to a large number.
            cols[i] = col.wrapping_sub(misalignment);
            places[i] = (place + col as usize).wrapping_sub(misalignment as usize);
            let (word, before) = match cols[i] > col {
                true => (FOUR, FOUR - 1),
                false => (word, before_word),
            };
            // Rows that are eight apart have the same misalignment.
            for below in 0..2 {
                let from = from + (row + 8 * below) * PITCH;
                let is_half = !(misalignment as usize).is_multiple_of(C::PER_WORD);
                words[i][below] =
                    C::shifted(|| staged[from + before], staged.load128(from + word), is_half);
            }
        }
        for i in 0..2 {
            for below in 0..2 {
                let row = ((two + i) * each + 8 * below) as u32;
                let valid = row < rows && cols[i] <= most;
                let place = places[i].wrapping_add(8 * below * between);
                C::store_words(epilogue.c(), place, words[i][below], valid);
            }
        }
    }
}

/// Stores the elements before a row's first multiple of sixteen bytes, or those after its last.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn store_edge<C: PackedStore, const WORDS: usize, const STAGED: usize, const PITCH: usize>(
    staged: &Shared<C::Real, STAGED, PITCH>,
    (part, base, lane): (u32, usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
    (rows, width): (u32, u32),
    is_last: bool,
) {
    // Either end is shorter than sixteen bytes.
    let piece = const { FOUR * C::PER_WORD };
    let (row_of_lane, number) = (lane / piece, lane % piece);
    let each = const { 32 / (FOUR * C::PER_WORD) };
    let rows = rows.saturating_sub(row_of_lane as u32);
    let between = epilogue.between_rows();
    let start = epilogue.place(first) + row_of_lane * between;
    let width = width - part;
    for row in (0..8).step_by(each) {
        let to = start + row * between;
        let misalignment = misalignment(epilogue, to);
        let end = width + misalignment;
        let (least, most) = match is_last {
            true => (end / piece as u32 * piece as u32, end),
            false => (misalignment, end.min(piece as u32)),
        };
        let at = if is_last { least } else { 0 } + number as u32;
        // A row without whole sixteen bytes is stored with the elements before them.
        let is_head = part == 0 && misalignment > 0;
        let is_this = if is_last { !is_head || least > 0 } else { is_head };
        let valid = is_this && at >= least && at < most;
        // If nothing is stored, any word is read.
        let from = if valid { at } else { misalignment };
        let half = misalignment % C::PER_WORD as u32;
        let (word, half) = match from < half {
            true => (before::<WORDS>(0, part), C::PER_WORD - 1),
            false => ((from - half) as usize / C::PER_WORD, (from - half) as usize % C::PER_WORD),
        };
        let from = base + row_of_lane * PITCH + word;
        let to = (to + (part + at) as usize).wrapping_sub(misalignment as usize);
        for below in 0..2 {
            let word = staged[from + (row + 8 * below) * PITCH];
            let valid = valid && ((row + 8 * below) as u32) < rows;
            let element = C::element(word, half);
            epilogue.c().store_if(to.wrapping_add(8 * below * between), [element], valid);
        }
    }
}
