//! What numbers of 16 bits and f32 differ in: what copies move, where a row's groups lie in shared memory, and how a fragment
//! is read from there.
//!
//! A fragment is read by eight rows' groups of sixteen bytes at a time, which should be in different banks: of 32 banks of four
//! bytes each has 128 bytes its place. So groups change places by their row's number, [`MmaElement::exchange`].
//!
//! ```text
//!              a row of a panel             read along k, and across it                        group g of row r lies at
//!   16 bits     64 bytes, four groups       one group of eight rows, either way                g ^ (r / 2 % 4): every other
//!                                                                                              row begins in the middle of
//!                                                                                              the banks
//!   f32        128 bytes, eight groups      one group of eight rows; across, two neighbours    g ^ (r % 4 * 2 + r / 4 % 2)
//!                                           of four rows, word by word
//! ```
//!
//! **f32 across k** is read word by word, since `ldmatrix.trans` would tear its elements apart. A warp's load is of four steps of k
//! (rows r to r + 3, r a multiple of four) by eight outer elements (groups g and g + 1, g even): were it g ^ (r % 8), four rows'
//! pairs of groups would lie at four places, twice each; so the four rows differ in the upper two bits of what they exchange
//! with, and 32 lanes read all 32 banks. Eight rows still have eight numbers, so that along k no two meet either.

use super::{
    collective::stored::Stored,
    device::{
        mma::{Fragment, Loaded},
        *,
    },
    tile::PANEL,
};

/// A number that these tensor cores multiply: of 16 bits, or an f32, which is rounded to tf32 first.
pub trait MmaElement: Stored<Real = f32> + Loaded {
    /// 0. (To the compiler an `f32` that an instruction converts is no constant: it would stay in a register.)
    const ZERO: Self;

    /// Elements of sixteen bytes: a group, and the widest copy.
    const PIECE: usize = 16 / size_of::<Self>();

    /// Steps of k of a fragment.
    const STEP: usize = 32 / size_of::<Self>();

    /// May a row begin between two places where the narrowest copy, of four bytes, may?
    const MAY_BE_MISALIGNED: bool = size_of::<Self>() < 4;

    /// What a row's groups change places by.
    fn swizzle(row: usize) -> usize;

    /// Begins a copy of so many bytes: 16, 8 or 4.
    fn copy<const BYTES: usize>(
        tiles: &mut DynamicShared<Self>,
        to: usize,
        matrix: &In<Self>,
        from: usize,
        valid: bool,
    );

    /// The fragment that begins so many outer elements and steps behind a panel's first, whose rows are K-major or MN-major. The
    /// panel is so many elements behind the first one.
    fn fragment(
        tiles: &DynamicShared<Self>,
        panel: (usize, usize),
        outer: usize,
        step: usize,
        k_major: bool,
    ) -> Fragment<Self::Factor>;

    /// Moves a group by one element to the front, where `is_misaligned`; the one at `next` follows. All lanes do it with theirs. (Of
    /// f32 no row is late.)
    fn shift_left(_: &mut DynamicShared<Self>, _own: usize, _next: usize, _is_late: bool) {}
}

/// Copies of as many elements as so many bytes are.
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
            const { assert!(BYTES == 16 || BYTES == 8 || BYTES == 4, "what copies there are") };
            match BYTES {
                16 => tiles.copy_async::<{ 16 / size_of::<$t>() }>(to, matrix, from, valid),
                8 => tiles.copy_async::<{ 8 / size_of::<$t>() }>(to, matrix, from, valid),
                _ => tiles.copy_async::<{ 4 / size_of::<$t>() }>(to, matrix, from, valid),
            }
        }
    };
}

impl MmaElement for Half {
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
        outer: usize,
        step: usize,
        k_major: bool,
    ) -> Fragment<Half> {
        let place = first + panel + of_matrices::<Half>(outer, step, k_major);
        tiles.load_fragment_either(place, !k_major)
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn shift_left(tiles: &mut DynamicShared<Half>, own: usize, next: usize, is_misaligned: bool) {
        shift_group_left(tiles, own, next, is_misaligned);
    }
}

impl MmaElement for f32 {
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
        outer: usize,
        step: usize,
        k_major: bool,
    ) -> Fragment<Tf32> {
        if k_major {
            tiles.load_fragment(first + panel + of_matrices::<f32>(outer, step, true))
        } else {
            Fragment::rounded(by_word(tiles, (first, panel), outer, step))
        }
    }
}

/// The place in a panel of the lane's row of a fragment's four matrices. The second and the fourth have the upper half of the outer
/// side, the last two of k. A row has steps of k; of an MN-major operand, outer elements of a step.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn of_matrices<T: MmaElement>(outer: usize, step: usize, k_major: bool) -> usize {
    let lane = thread::lane_id() as usize;
    let (outer_half, k_half) = (lane / 8 % 2, lane / 16);
    match k_major {
        true => place::<T>(outer + outer_half * 8 + lane % 8, step / T::PIECE + k_half),
        false => place::<T>(step + k_half * 8 + lane % 8, outer / T::PIECE + outer_half),
    }
}

/// What a lane has of an MN-major fragment of f32: two outer elements, eight apart, of two steps, four apart.
///
/// Of the first fragment's four the place is computed once a stage. Outer elements that are 8 or 16 further are in groups whose number
/// has another bit, and steps that are four further exchange with an odd number: of the place one bit changes, which is one instruction
/// and no register. (As sums of what a lane knows before the loop they would be eight places, and 255 registers are not enough.)
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
        tiles[place + panel + (step + 4 * step_half) * PANEL]
    };
    [load(0, 0), load(8, 0), load(0, 1), load(8, 1)]
}

/// [`MmaElement::shift_left`] of numbers of 16 bits.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn shift_group_left<T: MmaElement>(
    tiles: &mut DynamicShared<T>,
    own: usize,
    next: usize,
    is_misaligned: bool,
) {
    const { assert!(T::MAY_BE_MISALIGNED && PANEL == 4 * T::PIECE) };
    let mut moved = [T::ZERO; 8];
    if is_misaligned {
        // (The compilers would read a group element by element, of which one is not used, if they might.)
        let [_, b, c, d, e, f, g, h] = tiles.load128_in_order(own);
        moved = [b, c, d, e, f, g, h, tiles[next]];
    }
    // All have read before anyone writes; of the next panel, the first elements before that is their turn.
    warp::sync_warp(warp::ALL);
    if is_misaligned {
        tiles.store128(own, moved);
    }
}

/// Where a row's group lies, from the panel's first element on.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn place<T: MmaElement>(row: usize, group: usize) -> usize {
    row * PANEL + (group ^ T::swizzle(row)) * T::PIECE
}
