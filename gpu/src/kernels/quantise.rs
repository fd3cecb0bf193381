//! Matrices rounded to 8 bits, and the scales that they were divided by.
//!
//! A *group* is what has one scale: a row, 1 x 128 of a row, or 128 x 128. Its scale is its
//! greatest finite magnitude over the largest number of the type, at least 2^-63, and 1 where all
//! are zero. An element is multiplied by the scale's reciprocal and rounded to the nearest, of two
//! to the even one. Both quotients are rounded correctly, so a GPU gives the bits of the CPU.
//!
//! ```text
//!   group        threads      held by a thread
//!   1 x 128      8            4 (f32) or 2 (16 bits) pieces of sixteen bytes: all it has
//!   a row        8 to 512     the same, all of a row of up to 8,192 columns
//!   128 x 128    512          the same, one half
//! ```
//!
//! * **A block** of sixteen warps has as many groups as it has threads for.
//! * **A thread** finds the greatest magnitude of its pieces, and then rounds them. Those that it
//!   read last are still in registers; the others it reads again, from L1 or L2.
//!
//! So memory is read once and written once. Where rows do not begin and end at multiples of a
//! piece, neighbouring threads read neighbouring elements, and all of them twice.

use super::{collective::stored::Stored, device::*};
use crate::params::QuantiseParams;

/// Threads of a block.
pub const THREADS: usize = 512;
/// Elements that a thread holds.
pub const EACH: usize = 16;
/// Columns, or rows and columns, of a group that is no row.
pub const SIDE: usize = 128;
/// Threads of the smallest group.
pub const LEAST_THREADS: usize = SIDE / EACH;
/// The value of the constant `fraction` for i8.
pub const INTEGERS: u32 = 0;

const WARP: usize = 32;
const WARPS: usize = THREADS / WARP;
/// Elements of an unaligned group that a thread loads before it waits for one.
const AHEAD: u32 = 4;

/// No element's number.
const NOWHERE: usize = usize::MAX;

/// The least scale: the product of two is a normal f32.
pub const LEAST_SCALE: f32 = 1.0 / 9_223_372_036_854_775_808.0;

/// An f32's exponent, and the bits of its fraction.
const EXPONENT: u32 = 0x7f80_0000;
const F32: u32 = 23;

/// A type of 8 bits.
#[derive(Clone, Copy)]
struct Rounding {
    /// Bits of fraction, or [`INTEGERS`].
    fraction: u32,
}

impl Rounding {
    /// The largest number.
    #[inline(always)]
    fn largest(self) -> f32 {
        match self.fraction {
            INTEGERS => 127.0,
            2 => 57_344.0,
            _ => 448.0,
        }
    }

    /// The number nearest to one that is at most the largest, of two to the even one. NaN is 0,
    /// and infinities are the largest.
    #[allow(clippy::manual_clamp, reason = "two instructions; `clamp` keeps NaN by four")]
    #[inline(always)]
    fn integer(value: f32) -> u32 {
        // The last bit of the sum is 1.
        const ROUND: f32 = 1.5 * (1 << F32) as f32;
        let value = if value.is_nan() { 0.0 } else { value.max(-127.0).min(127.0) };
        (value + ROUND).to_bits() & 0xff
    }

    /// The same of a floating-point number. What is not finite is NaN.
    #[inline(always)]
    fn float(self, value: f32) -> u32 {
        // The least number that is not subnormal; and a number whose bits are all ones, as if no
        // NaN were. `min` gives it for NaN.
        let (normal, nan) = match self.fraction {
            2 => (113 << F32, 114_688.0),
            _ => (121 << F32, 480.0),
        };
        let below = F32 - self.fraction;
        let sign = value.to_bits() >> 24 & 0x80;
        let magnitude = value.abs().min(nan);
        let exponent = (magnitude.to_bits() & EXPONENT).max(normal);
        // The last bit of the sum is that of a number with this exponent. The eight last bits of
        // the power itself are zeros.
        let sum = magnitude + f32::from_bits(exponent + (below << F32));
        let bits = sum.to_bits() + (exponent >> below) - (normal >> below);
        sign | bits & 0x7f
    }

    /// Both.
    #[inline(always)]
    fn bytes<const N: usize>(self, values: [f32; N]) -> [u8; N] {
        let rounded = match self.fraction {
            INTEGERS => values.map(Rounding::integer),
            _ => values.map(|value| self.float(value)),
        };
        rounded.map(|byte| byte as u8)
    }
}

/// A number for each f32, in the order of their magnitudes. That of what is not finite is less than
/// that of zero.
#[inline(always)]
fn order(value: f32) -> u32 {
    (value.to_bits() << 1).wrapping_add(1 << 24)
}

/// The finite magnitude with that number.
#[inline(always)]
fn magnitude(order: u32) -> f32 {
    f32::from_bits(order.saturating_sub(1 << 24) >> 1)
}

/// A thread's pieces, or elements, of a group: equally far from each other.
#[derive(Clone, Copy)]
struct Pieces {
    count: u32,
    /// Where the first one is read and written.
    first: [usize; 2],
    /// From one to the next.
    step: [u32; 2],
}

impl Pieces {
    /// Those of `N` elements of a thread. `first`: the group's first row and column.
    #[inline(always)]
    fn of<const N: usize>(shape: &QuantiseParams, first: (usize, usize), thread: usize) -> Self {
        let QuantiseParams { rows, cols, down, width, threads, .. } = *shape;
        let [rows, cols, down, width, threads] =
            [rows, cols, down, width, threads].map(|number| number as usize);
        let (place, together) = (thread * N, threads * N);
        // Threads of 128 x 128 take several rows at once, others a part of their row.
        let is_square = down > 1;
        let (row, col) = if is_square { (place / SIDE, place % SIDE) } else { (0, place) };
        let (row, col) = (first.0 + row, first.1 + col);
        let [row_end, col_end] = [rows.min(first.0 + down), cols.min(first.1 + width)];
        if row >= row_end || col >= col_end {
            return Pieces { count: 0, first: [0; 2], step: [0; 2] };
        }
        let (left, step) = match is_square {
            true => (row_end - row, together / SIDE),
            false => (col_end - col, together),
        };
        let pitches = [shape.from_pitch, shape.to_pitch];
        Pieces {
            // Steps are powers of two.
            count: ((left + step - 1) >> step.trailing_zeros()) as u32,
            first: pitches.map(|pitch| row * pitch as usize + col),
            step: pitches
                .map(|pitch| if is_square { step as u32 * pitch as u32 } else { step as u32 }),
        }
    }

    /// Where a piece is read and written, and whether there is one.
    #[inline(always)]
    fn at(&self, number: u32) -> (usize, usize, bool) {
        let at = |side: usize| self.first[side] + number as usize * self.step[side] as usize;
        (at(0), at(1), number < self.count)
    }

    /// Some pieces, from one on.
    #[inline(always)]
    #[track_caller]
    fn read<T: Stored<Real = f32>, const PIECES: usize>(
        &self,
        from: &In<T>,
        first: u32,
    ) -> [[u32; 4]; PIECES] {
        let mut pieces = [[0; 4]; PIECES];
        for i in 0..PIECES {
            let (at, _, is_there) = self.at(first + i as u32);
            pieces[i] = from.load_words_if(at, is_there);
        }
        pieces
    }

    /// An element, if there is one. Otherwise the matrix's first is read, so that no load waits for
    /// a branch.
    #[inline(always)]
    #[track_caller]
    fn element<T: Stored<Real = f32>>(&self, from: &In<T>, number: u32) -> Option<f32> {
        let (at, _, is_there) = self.at(number);
        let value = from[if is_there { at } else { 0 }].widened();
        is_there.then_some(value)
    }
}

/// The greatest of the numbers of a group's threads.
#[inline(always)]
#[track_caller]
fn greatest_of_group(most: u32, threads: usize, mut of_warps: Shared<u32, WARPS>) -> u32 {
    if threads < WARP {
        let most = warp::shuffle_xor(warp::ALL, most, 1).max(most);
        let most = warp::shuffle_xor(warp::ALL, most, 2).max(most);
        return warp::shuffle_xor(warp::ALL, most, 4).max(most);
    }
    let most = warp::reduce_max(warp::ALL, most);
    if threads == WARP {
        return most;
    }
    let (thread, warps) = (thread::thread_idx_x() as usize, threads / WARP);
    if thread % WARP == 0 {
        of_warps[thread / WARP] = most;
    }
    thread::sync_threads();
    // The warps of a group are neighbours, and their number is a power of two.
    let first = (thread / WARP) & !(warps - 1);
    warp::reduce_max(warp::ALL, of_warps[first + (thread & (warps - 1))])
}

/// [`quantise_f32`] for elements of any type, `N` of them a piece.
#[inline(always)]
#[track_caller]
fn quantise<T: Stored<Real = f32>, const N: usize, const PIECES: usize>(
    shape: &QuantiseParams,
    fraction: u32,
    (from, to, scales): (&In<T>, &mut Out<u8>, &mut Out<f32>),
    of_warps: Shared<u32, WARPS>,
) {
    const { assert!(N * PIECES == EACH && N * size_of::<T>() == 16, "pieces of sixteen bytes") };
    let rounding = Rounding { fraction };
    let QuantiseParams { rows, cols, down, width, across, threads, from_pitch, to_pitch, .. } =
        *shape;
    let of_block = thread::thread_idx_x();
    let group = thread::block_idx_x() * (THREADS as u32 >> threads.trailing_zeros())
        + (of_block >> threads.trailing_zeros());
    let (row, col) = ((group / across.max(1)) as usize, (group % across.max(1)) as usize);
    let first = (row * down as usize, col * width as usize);
    let (thread, threads) = ((of_block & (threads - 1)) as usize, threads as usize);
    // Whether all rows begin and end at multiples of a piece.
    let is_even = (u64::from(cols) | from_pitch | to_pitch) % N as u64 == 0
        && from.is_aligned128()
        && to.misalignment::<N>() == 0;
    // In one number, which is kept while the magnitude is found.
    let scale_at = match thread == 0 && first.0 < rows as usize {
        true => row * shape.scales[0] as usize + col * shape.scales[1] as usize,
        false => NOWHERE,
    };
    // Stores the scale of a group with that greatest magnitude, and gives its reciprocal.
    let scaled = |most: u32| {
        let greatest = magnitude(greatest_of_group(most, threads, of_warps));
        let scale = match greatest == 0.0 {
            true => 1.0,
            false => (greatest / rounding.largest()).max(LEAST_SCALE),
        };
        if scale_at != NOWHERE {
            scales[scale_at] = scale;
        }
        1.0 / scale
    };

    if is_even {
        let all = Pieces::of::<N>(shape, first, thread);
        let (mut begin, mut most) = (0, 0);
        let mut pieces: [_; PIECES];
        loop {
            pieces = all.read(from, begin);
            for i in 0..PIECES {
                let values = from_words::<T, N>(pieces[i]);
                for j in 0..N {
                    most = order(values[j].widened()).max(most);
                }
            }
            if begin + PIECES as u32 >= all.count {
                break;
            }
            begin += PIECES as u32;
        }
        let reciprocal = scaled(most);
        loop {
            unrolled!(for i in [0 1 2 3] {
                if i < PIECES {
                    let (_, at, is_there) = all.at(begin + i as u32);
                    let values = from_words::<T, N>(pieces[i]);
                    let values = values.map(|value| value.widened() * reciprocal);
                    to.store_if(at, rounding.bytes(values), is_there);
                }
            });
            if begin == 0 {
                return;
            }
            begin -= PIECES as u32;
            pieces = all.read(from, begin);
        }
    }
    let all = Pieces::of::<1>(shape, first, thread);
    let (mut number, mut most) = (0, 0);
    while number < all.count {
        for i in 0..AHEAD {
            most = all.element(from, number + i).map_or(0, order).max(most);
        }
        // Unrolled, the loop would spill registers.
        number = thread::opaque((number + AHEAD) as usize) as u32;
    }
    let reciprocal = scaled(most);
    number = 0;
    while number < all.count {
        let mut values = [0.0; AHEAD as usize];
        for i in 0..AHEAD {
            values[i as usize] = all.element(from, number + i).unwrap_or(0.0) * reciprocal;
        }
        let bytes = rounding.bytes(values);
        for i in 0..AHEAD {
            let (_, at, is_there) = all.at(number + i);
            if is_there {
                to[at] = bytes[i as usize];
            }
        }
        number += AHEAD;
    }
}

/// Rounds a matrix of `from` to one of 8 bits, and stores a scale for each group.
///
/// `fraction` are the bits of fraction of e4m3 or e5m2, or 0 for i8.
#[kernel(
    block = (THREADS),
    shared = WARPS * size_of::<u32>(),
    barriers = 2,
    min_blocks = 3,
    constants(fraction = 3 | 2 | 0)
)]
pub fn quantise_f32(shape: QuantiseParams, from: In<f32>, mut to: Out<u8>, mut scales: Out<f32>) {
    let of_warps = shared![u32; WARPS];
    quantise::<_, 4, 4>(&shape, fraction, (&from, &mut to, &mut scales), of_warps);
}

/// [`quantise_f32`] of bf16 or f16.
#[kernel(
    block = (THREADS),
    shared = WARPS * size_of::<u32>(),
    barriers = 2,
    min_blocks = 3,
    constants(fraction = 3 | 2 | 0, half = bf16 | f16)
)]
pub fn quantise_half(shape: QuantiseParams, from: In<Half>, mut to: Out<u8>, mut scales: Out<f32>) {
    let of_warps = shared![u32; WARPS];
    quantise::<_, 8, 2>(&shape, fraction, (&from, &mut to, &mut scales), of_warps);
}
