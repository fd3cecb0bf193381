//! Shared by the rungs of the ladder: access to elements of matrices that end within a tile.

use super::device::*;

/// Element (row, col) of a row-major `rows x cols` matrix. Outside the matrix it is zero, which
/// adds nothing to a sum.
#[inline(always)]
#[track_caller]
pub fn element_or_zero(
    matrix: &In<f32>,
    (rows, cols): (usize, usize),
    (row, col): (usize, usize),
) -> f32 {
    if row < rows && col < cols { matrix[row * cols + col] } else { 0.0 }
}

/// The elements (row, col) to (row, col + 3). Outside the matrix they are zero. `col` is a multiple
/// of four. `wide` promises that every row begins at a multiple of sixteen bytes. Then the four are
/// one access.
#[inline(always)]
#[track_caller]
pub fn four_or_zero(
    matrix: &In<f32>,
    (rows, cols): (usize, usize),
    (row, col): (usize, usize),
    wide: bool,
) -> [f32; 4] {
    if wide {
        // The length of a row is a multiple of four, so either all four elements are inside or
        // none.
        if row < rows && col < cols { matrix.load128(row * cols + col) } else { [0.0; 4] }
    } else {
        [0, 1, 2, 3].map(|i| element_or_zero(matrix, (rows, cols), (row, col + i)))
    }
}

/// Writes those of the elements (row, col) to (row, col + 3) that are inside the matrix.
#[inline(always)]
#[track_caller]
pub fn store_four(
    matrix: &mut Out<f32>,
    (rows, cols): (usize, usize),
    (row, col): (usize, usize),
    values: [f32; 4],
    wide: bool,
) {
    if wide {
        if row < rows && col < cols {
            matrix.store128(row * cols + col, values);
        }
    } else {
        for i in 0..4 {
            if row < rows && col + i < cols {
                matrix[row * cols + col + i] = values[i];
            }
        }
    }
}
