//! The address of every element of an operand in shared memory.
//!
//! An operand consists of core matrices: eight rows of 16 bytes. A row runs along K where the
//! operand is K-major, else along M or N. Without a swizzle a core matrix is 128 bytes in one
//! piece. With one, as many stand side by side as its width holds, and their rows with them; these
//! form an atom, eight rows of the width.
//!
//! The two offsets of a [`Descriptor`] lead from one such piece to the next:
//!
//! | | swizzle | leading | stride |
//! |---|---|---|---|
//! | K-major | none | along K | along M or N |
//! | K-major | one | nowhere: a step's 32 bytes of K are within the atom | along M or N |
//! | MN-major | none | along K | along M or N |
//! | MN-major | one | along M or N | along K |

use thiserror::Error;

use super::{descriptor::Descriptor, format::Format, swizzle::Swizzle};

/// The dimension along which consecutive elements of an operand are contiguous. (Both B stored
/// column by column and A stored row by row are K-major.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// Along K.
    K,
    /// Along M of A, along N of B: the transpose bit of the instruction is set.
    Mn,
}

/// An operand in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    descriptor: Descriptor,
    major: Major,
    /// Of an element.
    bytes: u32,
}

/// The instructions for tf32 and for 8 bits have no transpose bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an operand of {0:?} must be K-major: only one of 16 bits may be MN-major")]
pub struct Transposed(Format);

impl Layout {
    /// The operand that an instruction for `format` reads through `descriptor`.
    pub fn new(descriptor: Descriptor, major: Major, format: Format) -> Result<Self, Transposed> {
        match (major, format) {
            (Major::Mn, Format::Tf32 | Format::S8 | Format::E4m3 | Format::E5m2) => {
                Err(Transposed(format))
            }
            _ => Ok(Layout { descriptor, major, bytes: format.bytes() }),
        }
    }

    /// The address of the element that is in row `i` of A, or in column `i` of B, and `k`th along K
    /// in this step.
    ///
    /// 16-byte groups of elements along the major dimension are contiguous and aligned.
    pub fn address(&self, i: u32, k: u32) -> u32 {
        let Descriptor { start, leading, stride, base_offset, swizzle } = self.descriptor;
        // The other dimension counts the rows of core matrices.
        let (byte, row) = match self.major {
            Major::K => (k * self.bytes, i),
            Major::Mn => (i * self.bytes, k),
        };
        let width = swizzle.width();
        let (along, across) = match (self.major, swizzle) {
            (Major::K, Swizzle::None) => (leading, stride),
            // Never taken by a step: its bytes along K are no more than the least width.
            (Major::K, _) => (width, stride),
            (Major::Mn, Swizzle::None) => (stride, leading),
            (Major::Mn, _) => (leading, stride),
        };
        let address =
            start + byte % width + byte / width * along + row % 8 * width + row / 8 * across;
        // The pattern starts that many times 128 bytes later than the addresses say.
        let later = 128 * base_offset;
        swizzle.apply(address.wrapping_sub(later)).wrapping_add(later)
    }
}

#[cfg(test)]
mod tests;
