//! An operand's way from global to shared memory, and from there to registers.
//!
//! A *row* is what is contiguous: in a K-major operand the k-steps of one row of A (column of
//! B); in an MN-major operand the rows of A (columns of B) of one step. A tile consists of *panels*
//! of 32 rows of 32 elements (of i8 64 of 64): 32 outer elements by 32 k-steps, whichever are
//! contiguous. So the
//! same instructions copy both layouts. In shared memory a row of a panel is groups of sixteen
//! bytes, four of 16-bit elements, eight of f32 or sixteen of f64. Groups are swizzled, so that the
//! reads of a fragment are free of bank conflicts ([`element`](super::element)).
//!
//! ```text
//!   a tile of 64 x 64        outer 0    outer 32               its lines: if K-major, the panels of 32 outer elements,
//!                   k 0        0           2                   0 and 1, then 2 and 3;
//!                   k 32       1           3                   if MN-major, those of 32 steps, 0 and 2, then 1 and 3
//! ```
//!
//! The start of a row decides how it is copied. Both addresses of a copy are multiples of its size.
//! So the widest copy is taken that all rows of a block allow:
//!
//! ```text
//!   rows start at multiples of    copies of
//!   16, 8 or 4 bytes              16, 8 or 4 bytes (with f32: all rows; with f64 of 16 or 8: all rows)
//!   2 bytes                       4 bytes. Every other row, or all, are copied from the element before on. So they arrive one
//!                                 element misaligned, and are realigned in shared memory.
//!   (elements not contiguous,     single elements, through registers: any strides, and slow
//!   or a pitch of 0)
//! ```
//!
//! A kernel for aligned rows has the first way and the last.
//!
//! All bytes of a copy belong to the row, or none: then the hardware writes zeros. The rest of a
//! row, less than a copy, is copied element by element through registers. So is the first element
//! of a misaligned row, if nothing of the operand is before it: the first row, or all if there are
//! gaps between rows. (`cp.async` can read less than it writes. But compute-sanitizer counts all
//! its bytes as read, and reported the last element of a matrix with an odd number of them.)

use super::{
    device::{mma::Fragment, *},
    element::{MmaElement, place},
    tile::Which,
};
use crate::params::GemmParams;

/// Elements of a tile of `outer` rows of A (columns of B) by `depth` k-steps.
pub const fn tile_len<T: MmaElement>(outer: usize, depth: usize) -> usize {
    outer * (depth / T::PANEL) * T::PITCH
}

/// Rows that a warp copies at once if each lane copies two elements.
const ROWS_OF_WARP: usize = 2;

/// Elements for what misaligned rows leave over: two a row, for a tile in either layout.
pub const fn ends_len(outer: usize, depth: usize) -> usize {
    2 * if outer > depth { outer } else { depth }
}

/// A 1 that the compiler does not know. It does not unroll a loop with this step.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn one<const THREADS: usize>() -> usize {
    thread::block_dim_x() as usize / THREADS
}

/// How rows are copied.
#[derive(Clone, Copy, PartialEq)]
enum Copies {
    /// Sixteen bytes at a time.
    Sixteen,
    /// Eight bytes at a time.
    Eight,
    /// Four bytes at a time.
    Four,
    /// Four bytes at a time. Rows that start between two such copies arrive one element misaligned.
    FourMisaligned,
    /// Element by element.
    Elements,
}

/// A block's tiles of an operand, `OUTER` rows of A (columns of B) by `BLOCK_K` k-steps, and
/// what one thread copies: of some rows of each panel, an even number of rows apart, some elements.
/// If the kernel is not for `UNALIGNED` rows, it copies pieces or elements.
pub struct Operand<
    'a,
    T,
    const OUTER: usize,
    const BLOCK_K: usize,
    const UNALIGNED: bool,
    const THREADS: usize,
> {
    which: Which,
    matrix: &'a In<T>,
    copies: Copies,
    /// Elements of a copy. Two if single elements are copied.
    width: usize,
    k_major: bool,
    /// Whether the tile is inside on the outer side, and copied sixteen bytes at a time.
    whole: bool,
    /// The thread's first row of a panel, and its first element of that row.
    row: usize,
    at: usize,
    /// Misalignment of the thread's rows: 0 or 1 elements.
    misalignment: usize,
    /// Whether the thread's first copy of a panel at the start of the next tile's rows begins
    /// before the rows.
    begins_before: bool,
    /// Whether there are gaps between rows.
    gaps: bool,
    /// The index before the first element of the matrix.
    before_first: usize,
    /// The start of the thread's first copy of the next tile, and the steps from there to the next
    /// panel on the outer side and along k.
    from: usize,
    to_outer: usize,
    to_k: usize,
    /// From one row to the next, and from one element of a row to the next.
    pitch: usize,
    between: usize,
    /// Outer elements and k-steps from the next tile's first on.
    outer: i32,
    steps: u32,
}

impl<
    'a,
    T: MmaElement,
    const OUTER: usize,
    const BLOCK_K: usize,
    const UNALIGNED: bool,
    const THREADS: usize,
> Operand<'a, T, OUTER, BLOCK_K, UNALIGNED, THREADS>
{
    /// Rows that a block copies at once if each thread copies two elements.
    const ROWS_OF_BLOCK: usize = THREADS / 32 * ROWS_OF_WARP;
    /// Elements of a panel.
    const PANEL_LEN: usize = T::PANEL * T::PITCH;
    /// Panels on the outer side, and along k.
    const OUTERS: usize = OUTER / T::PANEL;
    const DEPTHS: usize = BLOCK_K / T::PANEL;
    /// Whether each thread has a piece of a panel. A larger block copies elements.
    const IN_PIECES: bool = THREADS * T::PIECE <= T::PANEL * T::PANEL;

    /// The operand of a block whose tile of C starts at `first` on the outer side. If the operand
    /// is not as `k_major` says, or if `only_elements`, it is copied element by element.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(
        which: Which,
        matrix: &'a In<T>,
        problem: &GemmParams,
        first: usize,
        k_major: bool,
        only_elements: bool,
    ) -> Self {
        const { assert!(OUTER.is_multiple_of(T::PANEL) && BLOCK_K.is_multiple_of(T::PANEL)) };
        let (size, [of_outer, of_k], batch) = which.of(problem);
        let (of_outer, of_k) = (of_outer as usize, of_k as usize);
        let start = thread::block_idx_z() as usize * batch as usize;
        let from = start + first * of_outer;
        let (pitch, between) = if k_major { (of_outer, of_k) } else { (of_k, of_outer) };
        // Every row and every tile starts at a multiple of what divides both.
        let first_place = matrix.misalignment::<16>() + from;
        let places = first_place | pitch;
        // With a pitch of 0 all rows start where nothing may precede them. A single row is like
        // others.
        let repeated = pitch == 0 && if k_major { size > 1 } else { problem.k > 1 };
        let (copies, width) = match () {
            _ if between != 1 || repeated || only_elements || !Self::IN_PIECES => {
                (Copies::Elements, 2)
            }
            _ if places.is_multiple_of(T::PIECE) => (Copies::Sixteen, T::PIECE),
            _ if !UNALIGNED => (Copies::Elements, 2),
            _ if places.is_multiple_of(T::PIECE / 2) => (Copies::Eight, T::PIECE / 2),
            _ if places.is_multiple_of(T::PIECE / 4) => (Copies::Four, T::PIECE / 4),
            _ => (Copies::FourMisaligned, 2),
        };
        let t = thread::thread_idx_x() as usize;
        let (row, at) = (t * width / T::PANEL, t * width % T::PANEL);
        let misalignment = match copies {
            Copies::FourMisaligned => (first_place + row * pitch) % 2,
            _ => 0,
        };
        let len = if k_major { problem.k } else { size };
        Operand {
            which,
            matrix,
            copies,
            width,
            k_major,
            whole: copies == Copies::Sixteen && first + OUTER <= size as usize,
            row,
            at,
            misalignment,
            begins_before: misalignment == 1 && at == 0 && (k_major || first == 0),
            gaps: pitch > len as usize,
            before_first: start.wrapping_sub(1),
            from: (from + row * pitch + at * between).wrapping_sub(misalignment),
            to_outer: T::PANEL * of_outer,
            to_k: T::PANEL * of_k,
            pitch,
            between,
            outer: size.saturating_sub(first as u32).min(2 * OUTER as u32) as i32,
            steps: problem.k,
        }
    }

    /// Lines of panels, and panels of a line: those that the same rows go through.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn lines(&self) -> (usize, usize) {
        if self.k_major { (Self::OUTERS, Self::DEPTHS) } else { (Self::DEPTHS, Self::OUTERS) }
    }

    /// The first element of a line's panel, in the tile.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn panel(&self, line: usize, number: usize) -> usize {
        let (outer, k) = if self.k_major { (line, number) } else { (number, line) };
        (outer * Self::DEPTHS + k) * Self::PANEL_LEN
    }

    /// For the next tile: rows from the thread's first one on, and elements of each from its first
    /// one on.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn inside(&self) -> (i32, i32) {
        // It is enough to know whether there are more steps than a tile has.
        let steps = self.steps.min(2 * BLOCK_K as u32) as i32;
        let (rows, len) = if self.k_major { (self.outer, steps) } else { (steps, self.outer) };
        // Past the last step nothing is misaligned.
        let misalignment = if len > 0 { self.misalignment as i32 } else { 0 };
        (rows - self.row as i32, len + misalignment - self.at as i32)
    }

    /// Issues the copies of the next tile to element `tile`, and of what misaligned rows leave over
    /// to `ends`. What lies outside becomes zeros.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn begin_copies(&mut self, tiles: &mut DynamicShared<T>, tile: usize, ends: usize) {
        // Most tiles are whole: then no condition is needed.
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
        self.begins_before &= !self.k_major;
        self.from = self.from.wrapping_add(Self::DEPTHS * self.to_k);
        self.steps = self.steps.saturating_sub(BLOCK_K as u32);
    }

    /// Copies a whole tile by sixteen bytes. Each address is the one before it plus a step: all of
    /// them would exceed the registers.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy_whole(&self, tiles: &mut DynamicShared<T>, tile: usize) {
        let rows_at_once = const { THREADS * T::PIECE / T::PANEL };
        let to = tile + place::<T>(self.row, self.at / T::PIECE);
        let mut of_outer = self.from;
        for outer in 0..Self::OUTERS {
            let mut of_panel = of_outer;
            for k in 0..Self::DEPTHS {
                let mut from = of_panel;
                for row in (0..T::PANEL).step_by(rows_at_once) {
                    let to = to ^ (T::swizzle(row) * T::PIECE);
                    let panel = (outer * Self::DEPTHS + k) * Self::PANEL_LEN;
                    T::copy::<16>(tiles, to + panel + row * T::PITCH, self.matrix, from, true);
                    if row + rows_at_once < T::PANEL {
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

    /// Copies what there is of a tile, `BYTES` at a time.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy<const BYTES: usize>(&self, tiles: &mut DynamicShared<T>, tile: usize) {
        let width = BYTES / size_of::<T>();
        let rows_at_once = THREADS * width / T::PANEL;
        const {
            let rows_at_once = THREADS * (BYTES / size_of::<T>()) / T::PANEL;
            assert!(
                BYTES < size_of::<T>() || !Self::IN_PIECES || T::PANEL.is_multiple_of(rows_at_once)
            );
            assert!(rows_at_once.is_multiple_of(8) || size_of::<T>() >= 4 && rows_at_once == 4);
        }
        if BYTES < size_of::<T>() || !Self::IN_PIECES {
            return;
        }
        let (rows, len) = self.inside();
        let to = tile + place::<T>(self.row, self.at / T::PIECE) + self.at % T::PIECE;
        let mut panel = 0;
        while panel < Self::OUTERS * Self::DEPTHS {
            let (outer, k) = (panel / Self::DEPTHS, panel % Self::DEPTHS);
            let (line, number) = if self.k_major { (outer, k) } else { (k, outer) };
            let (rows, len) = (rows - (line * T::PANEL) as i32, len - (number * T::PANEL) as i32);
            // Otherwise the end of the rows cuts this copy.
            if len <= 0 || len >= width as i32 {
                let from = self.from.wrapping_add(outer * self.to_outer + k * self.to_k);
                for row in (0..T::PANEL).step_by(rows_at_once) {
                    // Groups of every eighth row are in the same places. In every fourth row of
                    // f32, neighbours are swapped. Tiles start at multiples of both.
                    let to = to ^ (T::swizzle(row) * T::PIECE);
                    let to = to + panel * Self::PANEL_LEN + row * T::PITCH;
                    let from = from.wrapping_add(row * self.pitch);
                    let is_inside = (row as i32) < rows && len > 0;
                    if T::MAY_BE_MISALIGNED
                        && BYTES == 4
                        && self.begins_before
                        && number == 0
                        && (self.gaps || row == 0 && from == self.before_first)
                        && is_inside
                    {
                        // Nothing may be read before the first element of a row, or of the matrix.
                        tiles[to] = T::ZERO;
                        tiles[to + 1] = self.matrix[from.wrapping_add(1)];
                    } else {
                        T::copy::<BYTES>(tiles, to, self.matrix, from, is_inside);
                    }
                }
            }
            // Unrolled, narrow copies would need more addresses than there are registers. So would
            // those of f32, which are twice as many.
            panel += if BYTES == 16 && size_of::<T>() == 2 { 1 } else { one::<THREADS>() };
        }
    }

    /// Copies through registers what the other copies leave: everything, or the copy that the end
    /// of a row cuts. What lies outside becomes zeros. In loops, since this is rare.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy_elements(&self, tiles: &mut DynamicShared<T>, tile: usize) {
        let (rows, len) = self.inside();
        let (lines, of_line) = self.lines();
        let mut panel = len.max(0) as usize / T::PANEL;
        let left = len.max(0) as usize % T::PANEL;
        let mut end = if left > 0 && left < self.width { panel + 1 } else { 0 };
        if self.copies == Copies::Elements {
            (panel, end) = (0, of_line);
        }
        let to = tile + place::<T>(self.row, self.at / T::PIECE) + self.at % T::PIECE;
        while panel < end.min(of_line) {
            let mut row = 0;
            while row < lines * T::PANEL {
                let to = to + self.panel(row / T::PANEL, panel) + row % T::PANEL * T::PITCH;
                let mut i = 0;
                while i < self.width {
                    let at = panel * T::PANEL + i;
                    let from = self.from.wrapping_add(row * self.pitch + at * self.between);
                    let is_inside = (row as i32) < rows && (at as i32) < len;
                    tiles[to + i] = if is_inside { self.matrix[from] } else { T::ZERO };
                    i += 1;
                }
                // Unrolled, the elements of 16-bit types would exceed the registers.
                let rows = if size_of::<T>() == 8 { 1 } else { one::<THREADS>() };
                row += THREADS * self.width / T::PANEL * rows;
            }
            panel += 1;
        }
    }

    /// Copies the last elements of misaligned rows. Each lane of a row copies one.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy_ends(&self, tiles: &mut DynamicShared<T>, ends: usize) {
        const {
            assert!(
                ends_len(OUTER, BLOCK_K) / 2 / Self::ROWS_OF_BLOCK <= T::PANEL / 2,
                "a lane for each row"
            )
        };
        let (lines, of_line) = self.lines();
        let number = self.at / 2;
        if T::MAY_BE_MISALIGNED
            && number < lines * (T::PANEL / Self::ROWS_OF_BLOCK)
            && self.misalignment == 1
        {
            let (rows, len) = self.inside();
            let (last, row) = (of_line * T::PANEL - self.at, number * Self::ROWS_OF_BLOCK);
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

    /// Realigns the misaligned rows of a tile that has arrived: each element moves by one to the
    /// front. A warp does this for the rows that it has copied. A barrier of the block follows.
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
                    || !UNALIGNED
                    || T::PANEL / Self::ROWS_OF_BLOCK * ROWS_OF_WARP * T::PANEL / T::PIECE == 32
            )
        };
        let t = thread::thread_idx_x() as usize;
        let (warp, lane) = (t / 32, t % 32);
        let groups = T::PANEL / T::PIECE;
        let (number, group) = (lane / groups, lane % groups);
        let row = number / ROWS_OF_WARP * Self::ROWS_OF_BLOCK
            + warp * ROWS_OF_WARP
            + number % ROWS_OF_WARP;
        // Rows have the misalignment of those that the lane has copied, or that of the other rows
        // of its warp.
        let is_like = (self.row + row).is_multiple_of(2) || self.pitch.is_multiple_of(2);
        let is_misaligned = is_like == (self.misalignment == 1);
        // The place of the lane's group, and of the group after it, in the same panel or in the
        // next.
        let (own, following) = (place::<T>(row, group), place::<T>(row, (group + 1) % groups));
        let (lines, of_line) = self.lines();
        // Other lanes have waited for these copies.
        warp::sync_warp(warp::ALL);
        let mut line = 0;
        while line < lines {
            let mut panel = 0;
            while panel < of_line {
                let own = tile + self.panel(line, panel) + own;
                let next = panel + (group + 1) / groups;
                let next = match next < of_line {
                    true => tile + self.panel(line, next) + following,
                    false => ends + 2 * (line * T::PANEL + row),
                };
                T::shift_left(tiles, own, next, is_misaligned);
                panel += one::<THREADS>();
            }
            line += one::<THREADS>();
        }
    }

    /// Loads the fragment that starts `outer` outer elements and `step` k-steps after the first
    /// of a tile, or of a panel.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn fragment(
        &self,
        tiles: &DynamicShared<T>,
        first: usize,
        outer: usize,
        step: usize,
    ) -> Fragment<T::Atom> {
        let panel = (outer / T::PANEL * Self::DEPTHS + step / T::PANEL) * Self::PANEL_LEN;
        let place = (outer % T::PANEL, step % T::PANEL);
        T::fragment(tiles, (first, panel), place, self.which, self.k_major)
    }
}
