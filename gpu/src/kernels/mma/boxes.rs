//! The tiles of f64 that TMA copies, and where a lane finds its elements of a fragment.
//!
//! A row of shared memory is 128 bytes, the widest span of the swizzle: sixteen elements. A slab
//! has sixteen k-steps. So sixteen outer elements of either layout are 2 KiB:
//!
//! ```text
//!   K-major     a box of all outer elements; a row has the k-steps of one of them
//!   MN-major    a box for each sixteen outer elements; a row has these, of one k-step
//! ```
//!
//! The swizzle moves the pieces of sixteen bytes: piece p of row r is at p ^ (r % 8). Half a warp
//! loads at once, 8 bytes a lane, and should find all banks. The instruction says which of its rows
//! (columns of B) and which k-step a lane has; it does not say which rows of the tile these are. So
//! they are chosen by the layout, for A and for B alike:
//!
//! ```text
//!   bits of lane / 4       g0 g1 g2, and h: the upper eight of a fragment's sixteen
//!   K-major, outer =       h + 2 g0 + 4 g1 + 8 g2       four rows of half a warp are in other pieces, two k-steps each
//!   MN-major, outer =      g0 + 2 h + 4 g2 + 8 g1       two pieces of half a warp, in the rows of four k-steps
//! ```
//!
//! The k-steps are in their own order, so the bits are those of a serial sum. And of B a lane has
//! columns that are neighbours: its four sums of a row of C are neighbours, too ([`SumsOfLane`]).

use super::{
    device::{mma::M16n8k8, *},
    epilogue::Pair,
};

/// K-steps of a slab, and outer elements of a fragment: 128 bytes.
pub const DEPTH: usize = 16;

/// Bytes of a row: the span of the swizzle.
const SPAN: usize = 128;

/// Elements of sixteen outer elements in a slab.
const PART: usize = DEPTH * DEPTH;

/// K-steps of an instruction.
const STEP: usize = 8;

/// Issues the copies of `TILE` outer elements, from element `at` on.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn load<const TILE: usize>(
    (tiles, at): (&mut DynamicShared<f64>, usize),
    (map, k_major): (&TensorMap<f64>, bool),
    (product, outer, p): (u32, u32, u32),
    done: Mbarrier,
) {
    if k_major {
        tiles.load_box(at, &map.boxes::<TILE, DEPTH, SPAN>(), (product, outer, p), done);
        return;
    }
    let boxes = map.boxes::<DEPTH, DEPTH, SPAN>();
    for part in 0..TILE / DEPTH {
        let place = (product, p, outer + (part * DEPTH) as u32);
        tiles.load_box(at + part * PART, &boxes, place, done);
    }
}

/// The outer element, of a fragment's sixteen, that the instruction has as number `of_eight` of the
/// lower or the upper eight.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn outer(k_major: bool, of_eight: usize, upper: usize) -> usize {
    let [g0, g1, g2] = [of_eight % 2, of_eight / 2 % 2, of_eight / 4];
    match k_major {
        true => upper + 2 * g0 + 4 * g1 + 8 * g2,
        false => g0 + 2 * upper + 4 * g2 + 8 * g1,
    }
}

/// Where a lane has its elements of a fragment: from the fragment's first element on, those of both
/// halves of a slab.
pub struct Places([usize; 8]);

impl Places {
    /// Of an operand in that layout, whose part of the warp starts with the `first` outer element.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(k_major: bool, first: usize) -> Self {
        let lane = thread::lane_id() as usize;
        Places(core::array::from_fn(|i| {
            let k = lane % 4 + i / 2 * 4;
            let outer = outer(k_major, lane / 4, i % 2);
            let (row, at) = if k_major { (outer, k) } else { (k, outer) };
            first / DEPTH * PART + row * DEPTH + ((at / 2) ^ (row % 8)) * 2 + at % 2
        }))
    }

    /// Loads element `i` of the `number`th fragment of the warp, of a half of the stage that starts
    /// with element `stage`.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn element(
        &self,
        tiles: &DynamicShared<f64>,
        (stage, half): (usize, usize),
        number: usize,
        i: usize,
    ) -> f64 {
        let [element] = tiles.load64_in_order(stage + self.0[i + 4 * half] + number * PART);
        element
    }

    /// Loads the lane's elements of a fragment.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn elements(
        &self,
        tiles: &DynamicShared<f64>,
        half: (usize, usize),
        number: usize,
    ) -> Elements {
        core::array::from_fn(|i| self.element(tiles, half, number, i))
    }
}

/// A lane's elements of a fragment.
pub type Elements = [f64; 4];

/// The fragment that they are.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn fragment(elements: Elements) -> mma::Fragment<M16n8k8<f64>> {
    mma::Fragment::from_elements(elements)
}

/// Halves of a slab: each has the k-steps of an instruction.
pub const HALVES: usize = DEPTH / STEP;

/// Where a lane's sums of sixteen rows and columns are in C.
pub struct SumsOfLane {
    /// Its rows: of the lower and of the upper eight.
    rows: [u32; 2],
    /// The first of its four columns, which are neighbours.
    col: u32,
    b_k_major: bool,
}

impl SumsOfLane {
    /// For operands of these layouts.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(a_k_major: bool, b_k_major: bool) -> Self {
        let lane = thread::lane_id() as usize;
        SumsOfLane {
            rows: [0, 1].map(|upper| outer(a_k_major, lane / 4, upper) as u32),
            col: outer(b_k_major, lane % 4 * 2, 0) as u32,
            b_k_major,
        }
    }

    /// Row, first column, and four neighbours of a row.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn fours(&self, sums: &[f64; 8]) -> [(u32, u32, [f64; 4]); 2] {
        core::array::from_fn(|upper| {
            // The instruction's columns 2 t and 2 t + 1, and these of the upper eight.
            let [a, b] = [sums[2 * upper], sums[2 * upper + 1]];
            let [c, d] = [sums[2 * upper + 4], sums[2 * upper + 5]];
            let four = if self.b_k_major { [a, c, b, d] } else { [a, b, c, d] };
            (self.rows[upper], self.col, four)
        })
    }

    /// Four neighbours of a row of C as lanes store them by sixteen bytes, two at a time: so that
    /// two lanes write the 32 bytes of a sector together. First the row's of the even lane, then of
    /// the odd one: their first column, and this lane's two of them.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn by_sectors(&self, col: u32, [a, b, c, d]: [f64; 4]) -> [(u32, [f64; 2]); 2] {
        let is_odd = thread::lane_id() % 2 == 1;
        let (kept, sent) = if is_odd { ([c, d], [a, b]) } else { ([a, b], [c, d]) };
        let received = sent.map(|element| warp::shuffle_xor(warp::ALL, element, 1));
        let other = warp::shuffle_xor(warp::ALL, col, 1);
        match is_odd {
            true => [(other + 2, received), (col + 2, kept)],
            false => [(col, kept), (other, received)],
        }
    }

    /// The same as pairs.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn pairs(&self, sums: &[f64; 8]) -> [Pair<f64>; 4] {
        let [(above, col, [a, b, c, d]), (below, _, [e, f, g, h])] = self.fours(sums);
        [
            (above, col, [a, b]),
            (above, col + 2, [c, d]),
            (below, col, [e, f]),
            (below, col + 2, [g, h]),
        ]
    }
}
