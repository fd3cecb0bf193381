//! Which elements the threads of a warpgroup hold in registers.

use super::format::Format;

/// Threads of a warpgroup.
pub const THREADS: usize = 128;

/// Rows of A and of D.
pub const ROWS: usize = 64;

/// The row and the column of element `i` of thread `thread`'s part of D.
///
/// A warp has sixteen rows. Its lanes cover 8 x 8 elements, four lanes a row and two elements a
/// lane; a thread has two of them, eight rows apart, in every eight columns.
pub const fn accumulator(thread: usize, i: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    (16 * warp + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2)
}

/// The row and the column of element `i` of what thread `thread` holds of A, where A is in
/// registers.
///
/// Four registers hold it: in each four elements of 8 bits or two of 16, the first in the lowest
/// bits, or one of tf32.
pub const fn operand_a(format: Format, thread: usize, i: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    match format {
        // As D's, sixteen columns wide.
        Format::F16 | Format::Bf16 => accumulator(thread, i),
        Format::Tf32 => (16 * warp + lane / 4 + 8 * (i % 2), lane % 4 + 4 * (i / 2)),
        Format::S8 | Format::E4m3 | Format::E5m2 => {
            (16 * warp + lane / 4 + 8 * (i / 4 % 2), lane % 4 * 4 + i % 4 + 16 * (i / 8))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CuTe layout of threads (4, 8, 4) and of the values that a thread holds: the place in a
    /// matrix of 64 rows that is stored column by column.
    fn cute(thread: usize, strides: [usize; 3], mut i: usize, values: &[(usize, usize)]) -> usize {
        let coordinates = [thread % 4, thread / 4 % 8, thread / 32];
        let mut place = coordinates.iter().zip(strides).map(|(c, stride)| c * stride).sum();
        for &(extent, stride) in values {
            place += i % extent * stride;
            i /= extent;
        }
        place
    }

    /// `CLayout_64xN`, `ALayout_64x16` and `ALayout_64x8`.
    #[test]
    fn the_fragments_are_cutlass_layouts() {
        let place = |(row, column)| column * ROWS + row;
        for thread in 0..THREADS {
            for i in 0..128 {
                let values = [(2, 64), (2, 8), (32, 512)];
                let expected = cute(thread, [128, 1, 16], i, &values);
                assert_eq!(place(accumulator(thread, i)), expected);
            }
            for i in 0..8 {
                let expected = cute(thread, [128, 1, 16], i, &[(2, 64), (2, 8), (2, 512)]);
                assert_eq!(place(operand_a(Format::F16, thread, i)), expected);
                assert_eq!(place(operand_a(Format::Bf16, thread, i)), expected);
            }
            for i in 0..4 {
                let expected = cute(thread, [64, 1, 16], i, &[(2, 8), (2, 256)]);
                assert_eq!(place(operand_a(Format::Tf32, thread, i)), expected);
            }
        }
    }

    /// The epilogue of the kernel that ran on an H200 wrote D so.
    #[test]
    fn the_accumulator_is_the_one_that_a_gpu_had() {
        for thread in 0..THREADS {
            let (warp, lane) = (thread / 32, thread % 32);
            let (row, column) = (warp * 16 + lane / 4, lane % 4 * 2);
            for j in 0..32 {
                assert_eq!(accumulator(thread, 4 * j), (row, column + 8 * j));
                assert_eq!(accumulator(thread, 4 * j + 1), (row, column + 8 * j + 1));
                assert_eq!(accumulator(thread, 4 * j + 2), (row + 8, column + 8 * j));
                assert_eq!(accumulator(thread, 4 * j + 3), (row + 8, column + 8 * j + 1));
            }
        }
    }

    /// Every element is held once.
    #[test]
    fn fragments_cover_their_matrix() {
        let covers = |columns: usize, place: &dyn Fn(usize, usize) -> (usize, usize)| {
            let mut held = vec![0; ROWS * columns];
            for thread in 0..THREADS {
                for i in 0..ROWS * columns / THREADS {
                    let (row, column) = place(thread, i);
                    assert!(column < columns);
                    held[row * columns + column] += 1;
                }
            }
            assert!(held.iter().all(|&times| times == 1));
        };
        for columns in (8..=256).step_by(8) {
            covers(columns, &accumulator);
        }
        for format in [Format::F16, Format::Bf16, Format::Tf32, Format::S8, Format::E4m3] {
            covers(format.step(), &|thread, i| operand_a(format, thread, i));
        }
    }
}
