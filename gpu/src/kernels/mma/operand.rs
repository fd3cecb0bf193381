//! An operand's way from global to shared memory, and from there to registers.
//!
//! A *row* is what lies side by side: of an operand that lies along k the steps of k of one outer element (a row of A, a
//! column of B), of one that lies across k the outer elements of one step. A stage's tile is of *panels*, of 32 rows of 32
//! elements: 32 outer elements by 32 steps of k, whichever lie side by side, so that both ways to lie are copied by the same
//! instructions. In shared memory a row of a panel is groups of sixteen bytes, four of 16-bit numbers and eight of f32, which
//! change places so that what a fragment is read by at a time is in different banks ([`number`](super::number)).
//!
//! ```text
//!   a tile of 64 x 64        outer 0    outer 32               its lines, if rows lie along k: the panels of
//!                   k 0        0           2                   32 outer elements, 0 and 1, then 2 and 3;
//!                   k 32       1           3                   across k: those of 32 steps, 0 and 2, then 1 and 3
//! ```
//!
//! How a row is copied follows from where it begins. A copy's two addresses are multiples of its bytes, so the widest that
//! all rows of a block allow is taken:
//!
//! ```text
//!   rows begin at multiples of   copies of
//!   16, 8 or 4 bytes             16, 8 or 4 bytes (of f32, all)
//!   2 bytes                      4 bytes: every other row, or all, from the element before on, so that they come one
//!                                element late, and are straightened in shared memory
//!   (elements not side by side,  single elements, by way of registers: any strides, and slow
//!   or all rows are one)
//! ```
//!
//! A kernel for *pieces* has the first and the last way alone.
//!
//! A copy is of as many bytes as its address is a multiple of, all of which belong to the row, or of none: then the hardware
//! writes zeros. What a row's end leaves of a piece is copied element by element, by way of registers. (`cp.async` can be told
//! to read less than it writes. But compute-sanitizer then still takes all of its bytes for read, and found fault with the last
//! element of a matrix of an odd number of them.)

use super::{
    device::{mma::Fragment, *},
    element::{MmaElement, place},
    tile::{PANEL, SIDE, THREADS},
};
use crate::params::GemmParams;

/// Elements of a panel.
const PANEL_LEN: usize = PANEL * PANEL;
/// Rows that a warp copies at once where each of its lanes copies two elements, and all warps.
const ROWS_OF_WARP: usize = 2;
const ROWS_OF_BLOCK: usize = THREADS / 32 * ROWS_OF_WARP;

/// Elements for what rows have left over that come one element late, two for each, of a tile that lies either way.
pub const fn ends_len(outer: usize, depth: usize) -> usize {
    2 * if outer > depth { outer } else { depth }
}

/// A 1 that is none to the compiler: a loop that goes on by it is not unrolled.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn one() -> usize {
    thread::block_dim_x() as usize / THREADS
}

/// Which operand it is.
pub enum Which {
    /// `m x k`.
    A,
    /// `k x n`, with its sides exchanged.
    B,
}

/// How rows are copied.
#[derive(Clone, Copy, PartialEq)]
enum Copies {
    /// Sixteen bytes at a time.
    Sixteen,
    /// Eight bytes.
    Eight,
    /// Four bytes.
    Four,
    /// Four bytes, and rows come one element late whose first element begins between two such copies.
    FourMisaligned,
    /// Element by element.
    Elements,
}

/// A block's tiles of an operand, `OUTER` rows of A (columns of B) by `BLOCK_K` steps of k, and a thread's part in copying
/// them: of some rows of each panel, an even number of rows apart, some elements. Of a kernel that is not for `UNALIGNED` rows, these
/// are in pieces or copied by element.
pub struct Operand<'a, T, const OUTER: usize, const BLOCK_K: usize, const UNALIGNED: bool> {
    matrix: &'a In<T>,
    copies: Copies,
    /// Elements of a copy; two where it is element by element.
    width: usize,
    k_major: bool,
    /// Is all of the outer side there that a tile has, and copied sixteen bytes at a time?
    whole: bool,
    /// The thread's first row of a panel, and its first element of that row.
    row: usize,
    at: usize,
    /// By how many elements the thread's rows come late: 0 or 1.
    misalignment: usize,
    /// Where its first copy of the next tile begins, and from there to that of the next panel on the outer side and along k.
    from: usize,
    to_outer: usize,
    to_k: usize,
    /// From one row to the next, and from one element of a row to the next.
    pitch: usize,
    between: usize,
    /// Outer elements and steps of k that there are from the next tile's first on.
    outer: i32,
    steps: u32,
}

impl<'a, T: MmaElement, const OUTER: usize, const BLOCK_K: usize, const UNALIGNED: bool>
    Operand<'a, T, OUTER, BLOCK_K, UNALIGNED>
{
    /// Panels on the outer side, and along k.
    const OUTERS: usize = OUTER / PANEL;
    const DEPTHS: usize = BLOCK_K / PANEL;

    /// For a block whose tile of C begins at `first` on the operand's outer side. Where the operand is not as `k_major` says, it is
    /// copied element by element.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(
        which: Which,
        matrix: &'a In<T>,
        problem: &GemmParams,
        first: usize,
        k_major: bool,
    ) -> Self {
        const { assert!(OUTER.is_multiple_of(PANEL) && BLOCK_K.is_multiple_of(PANEL)) };
        // The outer side's size, the strides along it and along k, and from one product to the next.
        let (size, [of_outer, of_k], batch) = match which {
            Which::A => (problem.m, problem.a, problem.batch[0]),
            Which::B => (problem.n, [problem.b[1], problem.b[0]], problem.batch[1]),
        };
        let (of_outer, of_k) = (of_outer as usize, of_k as usize);
        let from = thread::block_idx_z() as usize * batch as usize + first * of_outer;
        let (pitch, between) = if k_major { (of_outer, of_k) } else { (of_k, of_outer) };
        // Every row, and every tile, begins at a multiple of what divides both.
        let first_place = matrix.misalignment::<16>() + from;
        let places = first_place | pitch;
        // Rows that are all one begin where nothing may be before; one alone is like others.
        let repeated = pitch == 0 && if k_major { size > 1 } else { problem.k > 1 };
        let (copies, width) = match () {
            _ if between != 1 || repeated => (Copies::Elements, 2),
            _ if places.is_multiple_of(T::PIECE) => (Copies::Sixteen, T::PIECE),
            _ if !UNALIGNED => (Copies::Elements, 2),
            _ if places.is_multiple_of(T::PIECE / 2) => (Copies::Eight, T::PIECE / 2),
            _ if places.is_multiple_of(T::PIECE / 4) => (Copies::Four, T::PIECE / 4),
            _ => (Copies::FourMisaligned, 2),
        };
        let t = thread::thread_idx_x() as usize;
        let (row, at) = (t * width / PANEL, t * width % PANEL);
        let misalignment = match copies {
            Copies::FourMisaligned => (first_place + row * pitch) % 2,
            _ => 0,
        };
        Operand {
            matrix,
            copies,
            width,
            k_major,
            whole: copies == Copies::Sixteen && first + OUTER <= size as usize,
            row,
            at,
            misalignment,
            from: (from + row * pitch + at * between).wrapping_sub(misalignment),
            to_outer: PANEL * of_outer,
            to_k: PANEL * of_k,
            pitch,
            between,
            outer: size.saturating_sub(first as u32).min(2 * OUTER as u32) as i32,
            steps: problem.k,
        }
    }

    /// Lines of panels, and panels in each: those side by side that the same rows go through.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn lines(&self) -> (usize, usize) {
        if self.k_major { (Self::OUTERS, Self::DEPTHS) } else { (Self::DEPTHS, Self::OUTERS) }
    }

    /// Where a line's panel lies, from the tile's first element on.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn panel(&self, line: usize, number: usize) -> usize {
        let (outer, k) = if self.k_major { (line, number) } else { (number, line) };
        (outer * Self::DEPTHS + k) * PANEL_LEN
    }

    /// Of the next tile, from the thread's first row and first element on: rows that there are, and elements of each.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn inside(&self) -> (i32, i32) {
        // All that is asked is whether there are as many as a tile has, and one more.
        let steps = self.steps.min(2 * BLOCK_K as u32) as i32;
        let (rows, len) = if self.k_major { (self.outer, steps) } else { (steps, self.outer) };
        // Past the last step nothing is late: there is nothing.
        let misalignment = if len > 0 { self.misalignment as i32 } else { 0 };
        (rows - self.row as i32, len + misalignment - self.at as i32)
    }

    /// Begins to copy the next tile to element `tile` on, and what late rows have left over to `ends` on; zeros for what
    /// lies outside.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn begin_copies(&mut self, tiles: &mut DynamicShared<T>, tile: usize, ends: usize) {
        // Most tiles are whole: then there is nothing to ask.
        if self.whole && self.steps >= BLOCK_K as u32 {
            self.copy_whole(tiles, tile);
        } else {
            match self.copies {
                Copies::Sixteen => self.copy::<16>(tiles, tile),
                Copies::Eight if UNALIGNED => self.copy::<8>(tiles, tile),
                Copies::Four | Copies::FourMisaligned if UNALIGNED => {
                    self.copy::<4>(tiles, tile);
                    self.copy_ends(tiles, ends);
                }
                _ => {}
            }
            self.copy_elements(tiles, tile);
        }
        self.from = self.from.wrapping_add(Self::DEPTHS * self.to_k);
        self.steps = self.steps.saturating_sub(BLOCK_K as u32);
    }

    /// Copies of sixteen bytes, of a tile that is there. Each address is the one before it and a step: all of them in registers would be
    /// too many.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy_whole(&self, tiles: &mut DynamicShared<T>, tile: usize) {
        let rows_at_once = const { THREADS * T::PIECE / PANEL };
        let to = tile + place::<T>(self.row, self.at / T::PIECE);
        let mut of_outer = self.from;
        for outer in 0..Self::OUTERS {
            let mut of_panel = of_outer;
            for k in 0..Self::DEPTHS {
                let mut from = of_panel;
                for row in (0..PANEL).step_by(rows_at_once) {
                    let to = to ^ (T::swizzle(row) * T::PIECE);
                    let panel = (outer * Self::DEPTHS + k) * PANEL_LEN;
                    T::copy::<16>(tiles, to + panel + row * PANEL, self.matrix, from, true);
                    if row + rows_at_once < PANEL {
                        from = add_in_order(from, rows_at_once * self.pitch);
                    }
                }
                if k + 1 < Self::DEPTHS {
                    of_panel = add_in_order(of_panel, self.to_k);
                }
            }
            if outer + 1 < Self::OUTERS {
                of_outer = add_in_order(of_outer, self.to_outer);
            }
        }
    }

    /// Copies of so many bytes, of what there is of a tile.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy<const BYTES: usize>(&self, tiles: &mut DynamicShared<T>, tile: usize) {
        let width = BYTES / size_of::<T>();
        let rows_at_once = THREADS * width / PANEL;
        const {
            let rows_at_once = THREADS * (BYTES / size_of::<T>()) / PANEL;
            assert!(PANEL.is_multiple_of(rows_at_once));
            assert!(rows_at_once.is_multiple_of(8) || size_of::<T>() == 4 && rows_at_once == 4);
        }
        let (rows, len) = self.inside();
        let to = tile + place::<T>(self.row, self.at / T::PIECE) + self.at % T::PIECE;
        let mut panel = 0;
        while panel < Self::OUTERS * Self::DEPTHS {
            let (outer, k) = (panel / Self::DEPTHS, panel % Self::DEPTHS);
            let (line, number) = if self.k_major { (outer, k) } else { (k, outer) };
            let (rows, len) = (rows - (line * PANEL) as i32, len - (number * PANEL) as i32);
            // Else the rows' ends cut this piece.
            if len <= 0 || len >= width as i32 {
                let from = self.from.wrapping_add(outer * self.to_outer + k * self.to_k);
                for row in (0..PANEL).step_by(rows_at_once) {
                    // Of every eighth row the groups are in the same places; of the fourth one, of f32, neighbours have changed
                    // theirs, and tiles begin at multiples of both.
                    let to = to ^ (T::swizzle(row) * T::PIECE);
                    let to = to + panel * PANEL_LEN + row * PANEL;
                    let from = from.wrapping_add(row * self.pitch);
                    let is_inside = (row as i32) < rows && len > 0;
                    if T::MAY_BE_MISALIGNED
                        && BYTES == 4
                        && row == 0
                        && from == usize::MAX
                        && is_inside
                    {
                        // Nothing may be read from before a matrix's first element.
                        tiles[to] = T::ZERO;
                        tiles[to + 1] = self.matrix[0];
                    } else {
                        T::copy::<BYTES>(tiles, to, self.matrix, from, is_inside);
                    }
                }
            }
            // Unrolled, narrow copies would have more addresses in registers than there are, and so would those of f32, which
            // are twice as many.
            panel += if BYTES == 16 && size_of::<T>() == 2 { 1 } else { one() };
        }
    }

    /// Copies through registers, at once, what is not copied otherwise: all, or of each of the thread's rows the piece that the
    /// row's end cuts; zeros for what lies outside. In loops: this is for what is rare.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy_elements(&self, tiles: &mut DynamicShared<T>, tile: usize) {
        let (rows, len) = self.inside();
        let (lines, of_line) = self.lines();
        let mut panel = len.max(0) as usize / PANEL;
        let left = len.max(0) as usize % PANEL;
        let mut end = if left > 0 && left < self.width { panel + 1 } else { 0 };
        if self.copies == Copies::Elements {
            (panel, end) = (0, of_line);
        }
        let to = tile + place::<T>(self.row, self.at / T::PIECE) + self.at % T::PIECE;
        while panel < end.min(of_line) {
            let mut row = 0;
            while row < lines * PANEL {
                let to = to + self.panel(row / PANEL, panel) + row % PANEL * PANEL;
                let mut i = 0;
                while i < self.width {
                    let at = panel * PANEL + i;
                    let from = self.from.wrapping_add(row * self.pitch + at * self.between);
                    let is_inside = (row as i32) < rows && (at as i32) < len;
                    tiles[to + i] = if is_inside { self.matrix[from] } else { T::ZERO };
                    i += 1;
                }
                row += THREADS * self.width / PANEL;
            }
            panel += 1;
        }
    }

    /// The last elements of late rows: the lanes of a row copy one each of the rows of their number.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy_ends(&self, tiles: &mut DynamicShared<T>, ends: usize) {
        const {
            assert!(
                ends_len(OUTER, BLOCK_K) / 2 / ROWS_OF_BLOCK <= PANEL / 2,
                "a lane for each row"
            )
        };
        let (lines, of_line) = self.lines();
        let number = self.at / 2;
        if T::MAY_BE_MISALIGNED
            && number < lines * (PANEL / ROWS_OF_BLOCK)
            && self.misalignment == 1
        {
            let (rows, len) = self.inside();
            let (last, row) = (of_line * PANEL - self.at, number * ROWS_OF_BLOCK);
            let left = if row as i32 >= rows { 0 } else { len - last as i32 };
            let from = self.from.wrapping_add(row * self.pitch + last);
            let to = ends + 2 * (self.row + row);
            if left == 1 {
                tiles[to] = self.matrix[from];
                tiles[to + 1] = T::ZERO;
            } else {
                T::copy::<4>(tiles, to, self.matrix, from, left > 1);
            }
        }
    }

    /// Moves late rows of a tile that has come, each element by one to the front. A warp does it with the rows that it has
    /// copied; a barrier of the block follows.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn realign(&self, tiles: &mut DynamicShared<T>, tile: usize, ends: usize) {
        if !T::MAY_BE_MISALIGNED || !UNALIGNED || self.copies != Copies::FourMisaligned {
            return;
        }
        // All of a warp's rows of a panel at once, a lane a group.
        const {
            assert!(
                !T::MAY_BE_MISALIGNED
                    || PANEL / ROWS_OF_BLOCK * ROWS_OF_WARP * PANEL / T::PIECE == 32
            )
        };
        let t = thread::thread_idx_x() as usize;
        let (warp, lane) = (t / 32, t % 32);
        let groups = PANEL / T::PIECE;
        let (number, group) = (lane / groups, lane % groups);
        let row =
            number / ROWS_OF_WARP * ROWS_OF_BLOCK + warp * ROWS_OF_WARP + number % ROWS_OF_WARP;
        // As late as the rows that the lane has copied, or as the others of its warp.
        let is_like = (self.row + row).is_multiple_of(2) || self.pitch.is_multiple_of(2);
        let is_misaligned = is_like == (self.misalignment == 1);
        // Where the lane's group lies, and the one behind it, in the same panel or in the next.
        let (own, behind) = (place::<T>(row, group), place::<T>(row, (group + 1) % groups));
        let (lines, of_line) = self.lines();
        // What other lanes have waited for.
        warp::sync_warp(warp::ALL);
        let mut line = 0;
        while line < lines {
            let mut panel = 0;
            while panel < of_line {
                let own = tile + self.panel(line, panel) + own;
                let next = panel + (group + 1) / groups;
                let next = match next < of_line {
                    true => tile + self.panel(line, next) + behind,
                    false => ends + 2 * (line * PANEL + row),
                };
                T::shift_left(tiles, own, next, is_misaligned);
                panel += one();
            }
            line += one();
        }
    }

    /// The fragment that begins so many outer elements and steps of k behind the first of a tile, or of its panel that begins
    /// at that element.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn fragment(
        &self,
        tiles: &DynamicShared<T>,
        first: usize,
        outer: usize,
        step: usize,
    ) -> Fragment<T::Factor> {
        const { assert!(SIDE == 16 && T::STEP == 2 * T::PIECE, "two by two matrices of eight rows") };
        let panel = (outer / PANEL * Self::DEPTHS + step / PANEL) * PANEL_LEN;
        T::fragment(tiles, (first, panel), outer % PANEL, step % PANEL, self.k_major)
    }
}
