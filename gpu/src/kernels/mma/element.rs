//! The differences between the types of elements: the instruction, the copies, the swizzle, and how
//! a fragment is read.
//!
//! A fragment is read eight groups of sixteen bytes at a time, one of each of eight rows. These
//! should be in different banks: there are 32 banks of four bytes, 128 bytes in all. So groups are
//! swizzled by the number of their row, [`MmaElement::swizzle`].
//!
//! ```text
//!              a row of a panel            read K-major, and MN-major                   group g of row r is at
//!   16 bits     64 bytes, four groups      one group of eight rows, in both             g ^ (r / 2 % 4): every other row starts
//!                                                                                       in the middle of the banks
//!   i8          64 bytes, four groups      one group of eight rows; never MN-major      the same
//!   f32        128 bytes, eight groups     one group of eight rows; MN-major, two       g ^ (r % 4 * 2 + r / 4 % 2)
//!                                          neighbours of four rows, word by word
//!   f64        288 bytes, of which 256   two neighbours of four rows by each half      g: rows are 32 bytes apart
//!              are sixteen groups        of a warp, element by element, in both        in the banks
//! ```
//!
//! **An MN-major f32** is read word by word: `ldmatrix.trans` would tear its elements apart. A warp
//! loads four k-steps (rows r to r + 3, r a multiple of four) by eight outer elements (groups g
//! and g + 1, g even). With g ^ (r % 8), the pairs of groups of four rows would be at four places,
//! twice each. So the four rows differ in the upper two bits of the swizzle, and 32 lanes read all
//! 32 banks. Eight rows still have eight numbers, so that K-major reads have no conflicts either.
//!
//! **An f64** is read element by element, K-major too: `ldmatrix` would give a lane two neighbours
//! of four bytes. Half a warp reads 128 bytes at once: four neighbours along the row (groups g and
//! g + 1, g even) of four rows (r to r + 3, r a multiple of four), whichever side rows are along.
//! Rows are padded, not swizzled: so the places of all fragments differ by numbers in the
//! instructions, and take no registers.

use super::{
    collective::stored::Stored,
    device::{
        mma::{self, Atom, Fragment, M16n8k8, M16n8k16, M16n8k32},
        *,
    },
    tile::Which,
};

/// An element that these tensor cores multiply: 16 bits, an i8, an f32, which is rounded to tf32
/// first, or an f64.
pub trait MmaElement: Stored<Real: mma::Sum> {
    /// The instruction that multiplies it. Its sums have the type that the epilogue computes in.
    type Atom: Atom<Sum = Self::Real>;

    /// Zero. (An `f32` that an instruction converts is no constant to the compiler, and would stay
    /// in a register.)
    const ZERO: Self;

    /// Elements of sixteen bytes: a group, and the widest copy.
    const PIECE: usize = 16 / size_of::<Self>();

    /// K-steps of a fragment.
    const STEP: usize = Self::Atom::STEP;

    /// Rows of a panel, and elements of a row.
    const PANEL: usize = 32;

    /// From one row of a panel to the next, in elements.
    const PITCH: usize = Self::PANEL;

    /// Whether a row may start between two multiples of the narrowest copy, four bytes.
    const MAY_BE_MISALIGNED: bool = size_of::<Self>() < 4;

    /// The number that a row's groups are swizzled by.
    fn swizzle(row: usize) -> usize;

    /// Issues a copy of 16, 8 or 4 bytes, at least an element.
    fn copy<const BYTES: usize>(
        tiles: &mut DynamicShared<Self>,
        to: usize,
        matrix: &In<Self>,
        from: usize,
        valid: bool,
    );

    /// Loads the fragment that starts at a `place`, so many outer elements and steps after the
    /// first of a panel. The panel is `panel` elements after the first one. `which` decides on
    /// nothing but the order in which matrices are loaded.
    fn fragment(
        tiles: &DynamicShared<Self>,
        panel: (usize, usize),
        place: (usize, usize),
        which: Which,
        k_major: bool,
    ) -> Fragment<Self::Atom>;

    /// Moves a group by one element to the front if `is_misaligned`. The group at `next` follows.
    /// All lanes call this with theirs. (Rows of f32 are never misaligned.)
    fn shift_left(_: &mut DynamicShared<Self>, _own: usize, _next: usize, _is_late: bool) {}
}

/// A copy of the elements in `BYTES` bytes.
macro_rules! copy {
    ($t:ident) => {
        #[cfg_attr(target_arch = "nvptx64", inline(always))]
        #[track_caller]
        fn copy<const BYTES: usize>(
            tiles: &mut DynamicShared<$t>,
            to: usize,
            matrix: &In<$t>,
            from: usize,
            valid: bool,
        ) {
            const { assert!(BYTES == 16 || BYTES == 8 || BYTES == 4, "16, 8 or 4 bytes") };
            match BYTES {
                16 => tiles.copy_async::<{ 16 / size_of::<$t>() }>(to, matrix, from, valid),
                8 => tiles.copy_async::<{ 8 / size_of::<$t>() }>(to, matrix, from, valid),
                _ => tiles.copy_async::<{ 4 / size_of::<$t>() }>(to, matrix, from, valid),
            }
        }
    };
}

impl MmaElement for Half {
    type Atom = M16n8k16<Half>;

    const ZERO: Half = Half::from_bits(0);

    copy! { Half }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn swizzle(row: usize) -> usize {
        row / 2 % 4
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn fragment(
        tiles: &DynamicShared<Half>,
        (first, panel): (usize, usize),
        (outer, step): (usize, usize),
        which: Which,
        k_major: bool,
    ) -> Fragment<M16n8k16<Half>> {
        let place = first + panel + of_matrices::<Half>((outer, step), halves(which), k_major);
        let fragment = tiles.load_fragment_either(place, !k_major);
        if which == Which::A { fragment } else { fragment.exchanged() }
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn shift_left(tiles: &mut DynamicShared<Half>, own: usize, next: usize, is_misaligned: bool) {
        shift_group_left(tiles, own, next, is_misaligned);
    }
}

impl MmaElement for i8 {
    type Atom = M16n8k32<i8>;

    const ZERO: i8 = 0;

    // 64 bytes a row, as of 16-bit types.
    const PANEL: usize = 64;

    // Every copy has whole pieces.
    const MAY_BE_MISALIGNED: bool = false;

    copy! { i8 }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn swizzle(row: usize) -> usize {
        row / 2 % 4
    }

    /// K-major alone: `ldmatrix.trans` would tear pairs of elements apart.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn fragment(
        tiles: &DynamicShared<i8>,
        (first, panel): (usize, usize),
        (outer, step): (usize, usize),
        which: Which,
        _: bool,
    ) -> Fragment<M16n8k32<i8>> {
        let place = first + panel + of_matrices::<i8>((outer, step), halves(which), true);
        let fragment = tiles.load_fragment(place);
        if which == Which::A { fragment } else { fragment.exchanged() }
    }
}

impl MmaElement for f32 {
    type Atom = M16n8k8<Tf32>;

    const ZERO: f32 = 0.0;

    copy! { f32 }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn swizzle(row: usize) -> usize {
        row % 4 * 2 + row / 4 % 2
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn fragment(
        tiles: &DynamicShared<f32>,
        (first, panel): (usize, usize),
        (outer, step): (usize, usize),
        which: Which,
        k_major: bool,
    ) -> Fragment<M16n8k8<Tf32>> {
        if k_major {
            let place = first + panel + of_matrices::<f32>((outer, step), halves(which), true);
            let fragment = tiles.load_fragment(place);
            if which == Which::A { fragment } else { fragment.exchanged() }
        } else {
            Fragment::rounded(by_word(tiles, (first, panel), outer, step))
        }
    }
}

/// On Hopper's tensor cores an instruction multiplies 8 k-steps of f64, on those before 4. The bits
/// are the same.
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
type OfF64 = M16n8k8<f64>;
#[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_90a")))]
type OfF64 = mma::M8n8k4<f64>;

impl MmaElement for f64 {
    type Atom = OfF64;

    const ZERO: f64 = 0.0;

    // 32 bytes more: the four groups that half a warp reads at once are in different banks.
    const PITCH: usize = Self::PANEL + 4;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn copy<const BYTES: usize>(
        tiles: &mut DynamicShared<f64>,
        to: usize,
        matrix: &In<f64>,
        from: usize,
        valid: bool,
    ) {
        match BYTES {
            16 => tiles.copy_async::<2>(to, matrix, from, valid),
            _ => tiles.copy_async::<1>(to, matrix, from, valid),
        }
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn swizzle(_: usize) -> usize {
        0
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn fragment(
        tiles: &DynamicShared<f64>,
        (first, panel): (usize, usize),
        (outer, step): (usize, usize),
        _: Which,
        k_major: bool,
    ) -> Fragment<OfF64> {
        let lane = thread::lane_id() as usize;
        let (row, at) = if k_major { (lane / 4, lane % 4) } else { (lane % 4, lane / 4) };
        let own = first + place::<f64>(row, at / f64::PIECE) + at % f64::PIECE;
        Fragment::from_elements(core::array::from_fn(|i| {
            let (outer, k) = (outer + i % 2 * 8, step + i / 2 * 4);
            let (further, rows) = if k_major { (k, outer) } else { (outer, k) };
            let [element] = tiles.load64_in_order(own + panel + rows * f64::PITCH + further);
            element
        }))
    }
}

/// Which halves of a fragment's outer side and of k the lane's row is of. Of B the second and the
/// third matrix are [exchanged](Fragment::exchanged).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn halves(which: Which) -> (usize, usize) {
    let (low, high) = (thread::lane_id() as usize / 8 % 2, thread::lane_id() as usize / 16);
    if which == Which::A { (low, high) } else { (high, low) }
}

/// In a panel, the lane's row of a fragment's four matrices: which half of the outer side it has,
/// and of k. In order, the second and the fourth matrix have the upper half of the outer side, the
/// last two that of k. A row has k-steps; in an MN-major operand, the outer elements of a step.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn of_matrices<T: MmaElement>(
    (outer, step): (usize, usize),
    (outer_half, k_half): (usize, usize),
    k_major: bool,
) -> usize {
    const { assert!(T::STEP == 2 * T::PIECE, "two by two matrices of eight rows") };
    let row = thread::lane_id() as usize % 8;
    match k_major {
        true => place::<T>(outer + outer_half * 8 + row, step / T::PIECE + k_half),
        false => place::<T>(step + k_half * 8 + row, outer / T::PIECE + outer_half),
    }
}

/// What a lane has of an MN-major fragment of f32: two outer elements, eight apart, of two steps,
/// four apart.
///
/// The place of the first one is computed once a stage. Outer elements that are 8 or 16 further are
/// in groups that differ in one bit, and steps that are four further have an odd swizzle. So one
/// bit of the place changes, which takes one instruction and no register. (As eight places known
/// before the loop they would exceed 255 registers.)
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn by_word(
    tiles: &DynamicShared<f32>,
    (first, panel): (usize, usize),
    outer: usize,
    step: usize,
) -> [f32; 4] {
    let lane = thread::lane_id() as usize;
    let (outer_of_lane, row) = (lane / 4, lane % 4);
    let own = first + place::<f32>(row, outer_of_lane / f32::PIECE) + outer_of_lane % f32::PIECE;
    let load = |further: usize, step_half: usize| {
        let place = own ^ (outer + further) ^ (step_half * f32::PIECE);
        tiles[place + panel + (step + 4 * step_half) * f32::PANEL]
    };
    [load(0, 0), load(8, 0), load(0, 1), load(8, 1)]
}

/// [`MmaElement::shift_left`] for elements of 16 bits.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn shift_group_left<T: MmaElement>(
    tiles: &mut DynamicShared<T>,
    own: usize,
    next: usize,
    is_misaligned: bool,
) {
    const { assert!(T::MAY_BE_MISALIGNED && T::PANEL == 4 * T::PIECE) };
    let mut moved = [T::ZERO; 8];
    if is_misaligned {
        // The compilers would otherwise read a group element by element, since one is not used.
        let [_, b, c, d, e, f, g, h] = tiles.load128_in_order(own);
        moved = [b, c, d, e, f, g, h, tiles[next]];
    }
    // Everybody has read before anyone writes. The first elements of the next panel are read before
    // that is moved.
    warp::sync_warp(warp::ALL);
    if is_misaligned {
        tiles.store128(own, moved);
    }
}

/// The place of a row's group, from the panel's first element on.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn place<T: MmaElement>(row: usize, group: usize) -> usize {
    row * T::PITCH + (group ^ T::swizzle(row)) * T::PIECE
}
