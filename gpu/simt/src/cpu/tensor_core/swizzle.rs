//! The swizzle of shared memory, and where it puts a box that TMA copies.

use thiserror::Error;

/// The swizzle permutes 16-byte chunks, so that the chunks of eight rows in one column are in
/// different banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// No swizzle.
    None,
    /// Within 32 bytes; the pattern repeats after 256.
    Bytes32,
    /// Within 64 bytes; the pattern repeats after 512.
    Bytes64,
    /// Within 128 bytes; the pattern repeats after 1024.
    Bytes128,
}

impl Swizzle {
    /// The swizzle with that span in bytes: 32, 64, 128, or 0 for none.
    pub const fn of_span(bytes: u32) -> Self {
        match bytes {
            0 => Swizzle::None,
            32 => Swizzle::Bytes32,
            64 => Swizzle::Bytes64,
            128 => Swizzle::Bytes128,
            _ => panic!("a swizzle is of 0, 32, 64 or 128 bytes"),
        }
    }

    /// The span in bytes, within which chunks are permuted: one row of the pattern.
    pub const fn width(self) -> u32 {
        match self {
            Swizzle::None => 16,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }

    /// The swizzled address of the byte that would be at `address` without a swizzle. Applied
    /// twice, it changes nothing.
    ///
    /// It depends on the address only, not on where a matrix or a box begins: the bits that number
    /// the chunks of a span, from bit 4 on, are XORed with those from bit 7 on.
    pub const fn apply(self, address: u32) -> u32 {
        let chunks = self.width() / 16 - 1;
        address ^ (address >> 3 & chunks << 4)
    }
}

/// A box of a tensor map in shared memory.
///
/// A box of more than two dimensions is one of two: all but the innermost count its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorBox {
    start: u32,
    /// Bytes from a row to the next.
    pitch: u32,
    swizzle: Swizzle,
}

/// Errors of a box that TMA does not support in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BoxError {
    /// TMA writes from a multiple of 128 bytes on.
    #[error("a box must start at a multiple of 128 bytes of shared memory, not at {0}")]
    Start(u32),
    /// It moves whole chunks.
    #[error("a row of a box must have a positive multiple of 16 bytes, not {0}")]
    Chunks(u32),
    /// The swizzle would take chunks to the next row.
    #[error("a row of a box has {bytes} bytes, more than its swizzle's {width}")]
    Wide {
        /// The row's.
        bytes: u32,
        /// The swizzle's.
        width: u32,
    },
}

impl TensorBox {
    /// A box at `start` with rows of `row_bytes`, the extent of its innermost dimension.
    pub fn new(start: u32, row_bytes: u32, swizzle: Swizzle) -> Result<Self, BoxError> {
        if !start.is_multiple_of(128) {
            return Err(BoxError::Start(start));
        }
        if row_bytes == 0 || !row_bytes.is_multiple_of(16) {
            return Err(BoxError::Chunks(row_bytes));
        }
        let width = swizzle.width();
        let pitch = match swizzle {
            Swizzle::None => row_bytes,
            _ if row_bytes > width => return Err(BoxError::Wide { bytes: row_bytes, width }),
            // The guide: memory has to be there for the whole width, even if rows are narrower.
            _ => width,
        };
        Ok(TensorBox { start, pitch, swizzle })
    }

    /// The address of byte `byte` of row `row`.
    pub fn address(&self, row: u32, byte: u32) -> u32 {
        self.swizzle.apply(self.start + row * self.pitch + byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWIZZLED: [Swizzle; 3] = [Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];

    #[test]
    fn a_swizzle_moves_whole_chunks_within_its_width_and_is_its_own_inverse() {
        for swizzle in [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128] {
            let repeats = 8 * swizzle.width();
            let mut hit = vec![false; 4096];
            for address in 0..4096 {
                let to = swizzle.apply(address);
                assert_eq!(swizzle.apply(to), address);
                assert_eq!(to / swizzle.width(), address / swizzle.width());
                assert_eq!(to % 16, address % 16);
                assert_eq!(to % repeats, swizzle.apply(address % repeats));
                assert!(!std::mem::replace(&mut hit[to as usize], true));
            }
        }
    }

    /// Eight rows' chunks of one column are in eight different groups of four banks: what it is
    /// for.
    #[test]
    fn a_column_of_chunks_has_no_bank_conflict() {
        for swizzle in SWIZZLED {
            let banks = |row| swizzle.apply(row * swizzle.width()) % 128 / 16;
            let mut groups = (0..8).map(banks).collect::<Vec<_>>();
            groups.sort();
            assert_eq!(groups, (0..8).collect::<Vec<_>>(), "{swizzle:?}");
        }
    }

    /// The guide's table: chunk x of the 128-byte row y is at `((y + offset) % n) ^ x`.
    #[test]
    fn the_pattern_is_the_programming_guides() {
        for (swizzle, n) in [(Swizzle::Bytes128, 8), (Swizzle::Bytes64, 4), (Swizzle::Bytes32, 2)] {
            for start in [0, 128, 384, 1024, 2048 + 896] {
                let offset = start / 128 % n;
                for y in 0..16 {
                    for x in 0..8 {
                        let chunk = ((y + offset) % n) ^ x;
                        let expected = start + 128 * y + 16 * chunk;
                        assert_eq!(swizzle.apply(start + 128 * y + 16 * x), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn a_box_without_a_swizzle_is_dense() {
        let tensor_box = TensorBox::new(256, 48, Swizzle::None).unwrap();
        assert_eq!(tensor_box.address(3, 47), 256 + 3 * 48 + 47);
    }

    #[test]
    fn what_tma_does_not_allow() {
        let new = TensorBox::new;
        assert_eq!(new(64, 128, Swizzle::Bytes128), Err(BoxError::Start(64)));
        assert_eq!(new(0, 40, Swizzle::None), Err(BoxError::Chunks(40)));
        assert_eq!(new(0, 0, Swizzle::None), Err(BoxError::Chunks(0)));
        for swizzle in SWIZZLED {
            let width = swizzle.width();
            let bytes = width + 16;
            assert_eq!(new(0, bytes, swizzle), Err(BoxError::Wide { bytes, width }));
            // Narrower rows leave the rest of the width unused.
            let narrow = new(0, width - 16, swizzle).unwrap();
            assert_eq!(narrow.address(8, 0), swizzle.apply(8 * width));
        }
    }
}
