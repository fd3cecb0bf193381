//! Splits f32 into two scaled slices of f16, for both operands in one launch.
//!
//! ```text
//!   x0 = f16(2^-e x)      x1 = f16(2^-e x - x0)      each rounded to the nearest
//!   x  = 2^e (x0 + x1)
//! ```
//!
//! * **A block** splits a patch of 64 rows by 128 columns. The exponent `e` brings the largest
//!   absolute value of the patch to [2^14, 2^15). The block holds the patch in registers, so an
//!   element is read once, and four bytes of it are written. An SM has room for three blocks, so
//!   that some read while others write.
//! * **A half-warp** splits four rows.
//! * **A thread** splits eight neighbours of each.
//!
//! If 2^-e |x| >= 2^-2, which is 2^-17 of the largest, at most 2^-23 of the number is lost, and x1
//! is at most 2^-11 of it. Below that,
//!
//! * f16's last digit loses up to 2^-25;
//! * x1 may be all that there is of x. But x1 y1 is left out of the product, which loses up to
//!   2^-11 |2^-e x - x0| |y|, at most 2^-36 |y|.
//!
//! The sum of all that a patch loses so is written next to its exponent, and
//! [`tile_bound`](super::scales::tile_bound) makes an error bound of it. It is also written which
//! rows and columns of a patch are not zero, so that sums of zeros are certain.

use super::{
    device::*,
    planes::{EIGHT, is_even, plane_pitch, rows_of_eight},
    scales::{
        HALF, HALVES, NON_ZERO_WORDS, PATCH_COLS, PATCH_ROWS, ROWS_OF_HALF, SLICES, Scale, WARPS,
        patches, power,
    },
};
use crate::params::MatrixBatch;

/// Added to an integer below 2^22, it gives an f32 whose last bits are those of the integer.
const INTEGERS: f32 = 12582912.0;

/// Splits A and B. Arguments are those of [`split_bf16x3`](super::split_bf16x3::split_bf16x3).
#[kernel(
    block = (32, WARPS),
    shared = (3 * WARPS + HALVES + HALVES * HALF) * size_of::<u32>(),
    barriers = 2,
    min_blocks = 3,
    arch = 90,
    dependent
)]
pub fn split_f16x2(
    of_a: MatrixBatch,
    of_b: MatrixBatch,
    a: In<f32>,
    b: In<f32>,
    mut planes_a: Out<F16>,
    mut planes_b: Out<F16>,
    mut patches_a: Out<F16>,
    mut patches_b: Out<F16>,
) {
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();
    let block = thread::block_idx_x();
    let is_b = block >= of_a.patches;
    let number = if is_b { block - of_a.patches } else { block };
    // Field by field: a pointer to one of two structs would be one to local memory.
    let source = MatrixBatch {
        rows: if is_b { of_b.rows } else { of_a.rows },
        cols: if is_b { of_b.cols } else { of_a.cols },
        count: if is_b { of_b.count } else { of_a.count },
        patches: 0,
        pitch: if is_b { of_b.pitch } else { of_a.pitch },
        step: if is_b { of_b.step } else { of_a.step },
    };
    let from = if is_b { &b } else { &a };

    let (down, across) = patches(source.rows, source.cols);
    // No divisor is zero if there are patches. The compiler cannot know that.
    let of_matrix = (down * across).max(1);
    let (matrix, patch) = ((number / of_matrix) as usize, number % of_matrix);
    let (down, across) = (patch / across.max(1), patch % across.max(1));
    let (rows, cols) = (source.rows as usize, source.cols as usize);
    let (pitch, step) = (source.pitch as usize, source.step as usize);
    let (lane, warp) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let (half, of_half) = (2 * warp + lane / HALF, lane % HALF);
    let col = across as usize * PATCH_COLS + of_half * EIGHT;
    let first_row = down as usize * PATCH_ROWS + half;
    let plane = rows * plane_pitch(cols);

    // All rows are loaded before one is awaited. Below the last row they are the last one.
    let row = |i: usize| matrix * step + (first_row + i * HALVES).min(rows - 1) * pitch;
    let is_even = is_even(from, &source, across as usize * PATCH_COLS, PATCH_COLS);
    let numbers: [[f32; EIGHT]; ROWS_OF_HALF] =
        rows_of_eight((from, &source), matrix * step, row, col, is_even);
    let mut largest = 0;
    for i in 0..ROWS_OF_HALF {
        for j in 0..EIGHT {
            let size = numbers[i][j].to_bits() & 0x7fff_ffff;
            // Infinity and NaN stay so, whatever the scale.
            if col + j < cols && size < 0x7f80_0000 {
                largest = size.max(largest);
            }
        }
    }
    let mut lanes = 16;
    while lanes > 0 {
        largest = warp::shuffle_xor(warp::ALL, largest, lanes).max(largest);
        lanes /= 2;
    }
    let mut of_warps = shared![u32; 3, WARPS];
    let mut of_rows = shared![u32; HALVES];
    let mut of_cols = shared![u32; HALVES, HALF];
    if lane == 0 {
        of_warps[(0, warp)] = largest;
    }
    thread::sync_threads();
    for other in 0..WARPS {
        largest = of_warps[(0, other)].max(largest);
    }
    // 2^e and 2^-e are normal numbers. What is smaller is lost, and counted.
    let exponent = ((largest >> 23) as i32 - (127 + 14)).max(-110);
    let scale = power(-exponent);

    let (planes, scales) = match is_b {
        true => (&mut planes_b, &mut patches_b),
        false => (&mut planes_a, &mut patches_a),
    };
    // Bits of the fractions of all numbers, and of the integers.
    let (mut fractions, mut integers) = (0, 0);
    // Non-zero rows of the lane, and non-zero columns: a bit for each.
    let (mut filled_rows, mut filled_cols) = (0, 0);
    let mut lost = 0.0;
    let mut put = |i: usize, numbers: [f32; EIGHT]| {
        let row = first_row + i * HALVES;
        if row >= rows || col >= cols {
            return;
        }
        let [a, b, c, d, e, f, g, h] = numbers;
        let (mut number, mut non_zeros) = (col, 0);
        let slices = [[a, b], [c, d], [e, f], [g, h]].map(|pair| {
            let scaled = pair.map(|x| x * scale);
            let first = F16::from_two_f32(scaled);
            let left = [scaled[0] - first[0].to_f32(), scaled[1] - first[1].to_f32()];
            let second = F16::from_two_f32(left);
            for i in 0..2 {
                let size_of = |x: f32| f32::from_bits(x.to_bits() & 0x7fff_ffff);
                let size = size_of(scaled[i]);
                // Infinity says nothing about its neighbours.
                if number < cols && pair[i] != 0.0 {
                    non_zeros |= 1 << (number - col);
                }
                let inside = if number < cols && size <= f32::MAX { scaled[i] } else { 0.0 };
                let integer = inside + INTEGERS;
                fractions |= (inside - (integer - INTEGERS)).to_bits();
                integers |= integer.to_bits();
                if number < cols && size < const { power(-2) } && pair[i] != 0.0 {
                    let of_last = size_of(left[i] - second[i].to_f32());
                    let off = of_last + size_of(left[i]) * const { power(-11) };
                    // The bound must not underflow to zero.
                    if off > 0.0 || size < const { power(-60) } {
                        lost += off.max(const { power(-60) });
                    }
                }
                number += 1;
            }
            [first, second]
        });
        filled_cols |= non_zeros;
        filled_rows |= u32::from(non_zeros != 0) << i;
        let to = matrix * SLICES * plane + row * plane_pitch(cols) + col;
        for slice in 0..SLICES {
            let [[a, b], [c, d], [e, f], [g, h]] = slices.map(|pair| pair[slice]);
            planes.store128(to + slice * plane, [a, b, c, d, e, f, g, h]);
        }
    };
    // One after the other, not in a loop: registers cannot be indexed by a computed number.
    put(0, numbers[0]);
    put(1, numbers[1]);
    put(2, numbers[2]);
    put(3, numbers[3]);

    // A number that is no integer has the lowest unit.
    let mut bits = if fractions == 0 { integers << 1 } else { 1 };
    let mut lanes = 16;
    while lanes > 0 {
        lost += warp::shuffle_xor(warp::ALL, lost, lanes);
        bits |= warp::shuffle_xor(warp::ALL, bits, lanes);
        if lanes < HALF as u32 {
            filled_rows |= warp::shuffle_xor(warp::ALL, filled_rows, lanes);
        }
        lanes /= 2;
    }
    of_cols[(half, of_half)] = filled_cols;
    if of_half == 0 {
        of_rows[half] = filled_rows;
    }
    if lane == 0 {
        of_warps[(1, warp)] = lost.to_bits();
        of_warps[(2, warp)] = bits;
    }
    thread::sync_threads();
    if warp > 0 {
        return;
    }
    if lane == 0 {
        let mut lost = 0.0;
        for other in 0..WARPS {
            lost += f32::from_bits(of_warps[(1, other)]);
            bits |= of_warps[(2, other)];
        }
        // Rounded up to the upper half of its bits.
        let lost = if lost > 0.0 { (lost.to_bits() >> 16) + 1 } else { 0 };
        let scale = Scale { exponent, unit: (bits.trailing_zeros() as i32 - 1).min(14) };
        let written = if largest == 0 { 0 } else { scale.to_bits() };
        scales[2 * number as usize] = F16::from_bits(written as u16);
        scales[2 * number as usize + 1] = F16::from_bits(lost as u16);
    }
    let patches = if is_b { of_b.patches } else { of_a.patches } as usize;
    let non_zeros = 2 * patches + number as usize * NON_ZERO_WORDS;
    if lane < ROWS_OF_HALF {
        let mut rows = 0;
        for other in 0..HALVES {
            rows |= (of_rows[other] >> lane & 1) << other;
        }
        scales[non_zeros + lane] = F16::from_bits(rows as u16);
    }
    let mut cols = 0;
    for other in 0..HALVES {
        cols |= of_cols[(other, of_half)];
    }
    let next = warp::shuffle_xor(warp::ALL, cols, 1);
    if lane < HALF && lane.is_multiple_of(2) {
        scales[non_zeros + ROWS_OF_HALF + lane / 2] = F16::from_bits((cols | next << EIGHT) as u16);
    }
}
