//! Which lane has which sums: the same for all atoms.

/// Row and column of element `i` of what a lane has of 16 x 16 sums: of each eight columns two
/// neighbours, and those eight rows below.
pub const fn accumulator(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2)
}

/// The elements in a lane's first row: one of each of its columns. The second row's follow by two.
pub(super) const COLUMNS: [usize; 4] = [0, 1, 4, 5];
