//! Splits f32 into three slices of bf16, for both operands in one launch.
//!
//! ```text
//!   x0 = bf16(x)      x1 = bf16(x - x0)      x2 = bf16(x - x0 - x1)      each rounded to the nearest
//! ```
//!
//! Both differences are exact: rounding to 8 bits leaves at most 16 bits, and then 8. So nothing is
//! lost except at the ends of bf16's range. bf16 has no digit below 2^-133, but an f32 has if |x| <
//! 2^-110: such an x loses up to 2^-134. Numbers that would round to infinity are truncated.
//! Infinity and NaN stay so in x0, and x1 is NaN.
//!
//! * **A block** splits a *patch* of 32 rows by 256 columns. Besides, it writes the smallest and
//!   the largest absolute value of the patch ([`value_range`](super::value_range)).
//! * **A warp** splits a row at a time.
//! * **A thread** reads eight neighbours of a row, in pieces of sixteen bytes wherever the row
//!   starts, and writes sixteen bytes of each slice.
//!
//! An element is read once, and six bytes of it are written. So the time is at least 10 bytes an
//! element over the memory bandwidth.

use super::{
    device::*,
    planes::{EIGHT, is_even, plane_pitch, rows_of_eight},
    value_range::{PATCH_COLS, PATCH_ROWS, Range, patches},
};
use crate::params::MatrixBatch;

/// Slices of a number.
pub const SLICES: usize = 3;

/// Warps of a block.
const WARPS: usize = 8;

/// Rounds two numbers to bf16, but finite ones not to infinity.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn nearest(pair: [f32; 2]) -> [Bf16; 2] {
    // From the middle between bf16's greatest number and infinity on, the upper half of the bits is
    // that greatest number.
    const FIRST: u32 = 0x7f7f_8000;
    const INFINITE: u32 = 0x7f80_0000;
    Bf16::from_two_f32(pair.map(|x| {
        let bits = x.to_bits();
        let size = bits & 0x7fff_ffff;
        let cut_off = size.wrapping_sub(FIRST) < INFINITE - FIRST;
        f32::from_bits(if cut_off { bits & 0xffff_0000 } else { bits })
    }))
}

/// The three slices of two numbers.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn split(pair: [f32; 2]) -> [[Bf16; 2]; SLICES] {
    let left = |[x, y]: [f32; 2], [of_x, of_y]: [Bf16; 2]| [x - of_x.to_f32(), y - of_y.to_f32()];
    let first = nearest(pair);
    let pair = left(pair, first);
    // What is left of a number is too small to round to infinity.
    let second = Bf16::from_two_f32(pair);
    [first, second, Bf16::from_two_f32(left(pair, second))]
}

/// Splits A and B. Each has `patches` patches; blocks take those of A first. `a` and `b` may be
/// unaligned, and have exactly the elements that their sizes need. What is between rows and between
/// matrices is not read. Planes are 16-byte aligned. All
/// of a row's last sixteen bytes are written.
#[kernel(block = (32, WARPS), shared = 2 * WARPS * size_of::<u32>(), barriers = 1, arch = 90, dependent)]
pub fn split_bf16x3(
    of_a: MatrixBatch,
    of_b: MatrixBatch,
    a: In<f32>,
    b: In<f32>,
    mut planes_a: Out<Bf16>,
    mut planes_b: Out<Bf16>,
    mut patches_a: Out<Bf16>,
    mut patches_b: Out<Bf16>,
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
    let (planes, ranges) = match is_b {
        true => (&mut planes_b, &mut patches_b),
        false => (&mut planes_a, &mut patches_a),
    };

    let (down, across) = patches(source.rows, source.cols);
    // No divisor is zero if there are patches. The compiler cannot know that.
    let of_matrix = (down * across).max(1);
    let (matrix, patch) = ((number / of_matrix) as usize, number % of_matrix);
    let (down, across) = (patch / across.max(1), patch % across.max(1));
    let (rows, cols) = (source.rows as usize, source.cols as usize);
    let (pitch, step) = (source.pitch as usize, source.step as usize);
    let (lane, warp) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let col = across as usize * PATCH_COLS + lane * EIGHT;
    let first_row = down as usize * PATCH_ROWS + warp;
    let plane = rows * plane_pitch(cols);

    let is_even = is_even(from, &source, across as usize * PATCH_COLS, PATCH_COLS);

    let mut range = Range::default();
    for first in (0..PATCH_ROWS).step_by(2 * WARPS) {
        // Both rows are loaded before one is awaited. Below the last row they are the last one.
        let rows_of_warp = [first_row + first, first_row + first + WARPS];
        let row = |i: usize| matrix * step + rows_of_warp[i].min(rows - 1) * pitch;
        let [one, other] = rows_of_eight((from, &source), matrix * step, row, col, is_even);
        let mut put = |row: usize, numbers: [f32; EIGHT]| {
            if row >= rows || col >= cols {
                return;
            }
            for i in 0..EIGHT {
                if col + i < cols {
                    range.include(numbers[i]);
                }
            }
            let [a, b, c, d, e, f, g, h] = numbers;
            let slices = [[a, b], [c, d], [e, f], [g, h]].map(split);
            let to = matrix * SLICES * plane + row * plane_pitch(cols) + col;
            for slice in 0..SLICES {
                let [[a, b], [c, d], [e, f], [g, h]] = slices.map(|pair| pair[slice]);
                planes.store128(to + slice * plane, [a, b, c, d, e, f, g, h]);
            }
        };
        // One after the other, not in a loop: registers cannot be indexed by a computed number.
        put(rows_of_warp[0], one);
        put(rows_of_warp[1], other);
    }

    let range = range.of_warp();
    let mut of_warps = shared![u32; 2, WARPS];
    if lane == 0 {
        of_warps[(0, warp)] = range.below;
        of_warps[(1, warp)] = range.largest;
    }
    thread::sync_threads();
    if lane == 0 && warp == 0 {
        let mut range = range;
        for other in 1..WARPS {
            range = range.and(Range { below: of_warps[(0, other)], largest: of_warps[(1, other)] });
        }
        let [smallest, largest] = range.rounded();
        ranges[2 * number as usize] = smallest;
        ranges[2 * number as usize + 1] = largest;
    }
}
