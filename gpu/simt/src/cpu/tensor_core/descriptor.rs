//! The matrix descriptor: 64 bits that describe an operand of `wgmma` in shared memory.

use thiserror::Error;

use super::swizzle::Swizzle;

/// A matrix descriptor. The meaning of its offsets depends on the major dimension:
/// [`layout`](super::layout).
///
/// | bits | |
/// |---|---|
/// | 0-13 | start address / 16 |
/// | 16-29 | leading dimension byte offset / 16 |
/// | 32-45 | stride dimension byte offset / 16 |
/// | 49-51 | base offset |
/// | 62-63 | swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32 |
///
/// A field counts 16 bytes, so a kernel that adds 2 to a descriptor moves its start by 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The operand's start, in bytes of shared memory.
    pub start: u32,
    /// The leading dimension byte offset, LBO.
    pub leading: u32,
    /// The stride dimension byte offset, SBO.
    pub stride: u32,
    /// The number, modulo 8, of the 128 bytes in which the swizzle's pattern starts to repeat; 0
    /// where that is at a multiple of what it repeats after, as all that TMA writes is.
    pub base_offset: u32,
    /// The swizzle of the addresses.
    pub swizzle: Swizzle,
}

/// What a descriptor cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DescriptorError {
    /// The lowest four bits have no place.
    #[error("a matrix descriptor's {0} must be a multiple of 16, not {1}")]
    Misaligned(&'static str, u32),
    /// Fourteen bits that count 16 bytes reach to 256 KiB.
    #[error("a matrix descriptor's {0} must be less than 2^18, not {1}")]
    TooLarge(&'static str, u32),
    /// It has three bits.
    #[error("a matrix descriptor's base offset must be less than 8, not {0}")]
    BaseOffset(u32),
    /// It is valid for all swizzles, but not for none.
    #[error("a matrix descriptor without a swizzle must have the base offset 0, not {0}")]
    BaseOffsetWithoutSwizzle(u32),
    /// Nothing says what these bits do. An addition sets them that goes over the end of a field.
    #[error("the matrix descriptor {0:#018x} has bits outside its fields")]
    OutsideFields(u64),
}

const START: u32 = 0;
const LEADING: u32 = 16;
const STRIDE: u32 = 32;
const BASE_OFFSET: u32 = 49;
const SWIZZLE: u32 = 62;

/// The bits of a field that counts 16 bytes.
const COUNT: u64 = (1 << 14) - 1;

impl Descriptor {
    /// Its 64 bits.
    pub fn encode(&self) -> Result<u64, DescriptorError> {
        let swizzle: u64 = match self.swizzle {
            Swizzle::None => 0,
            Swizzle::Bytes128 => 1,
            Swizzle::Bytes64 => 2,
            Swizzle::Bytes32 => 3,
        };
        match self.base_offset {
            0 => {}
            8.. => return Err(DescriptorError::BaseOffset(self.base_offset)),
            1..8 if self.swizzle == Swizzle::None => {
                return Err(DescriptorError::BaseOffsetWithoutSwizzle(self.base_offset));
            }
            1..8 => {}
        }
        Ok(count("start address", self.start)? << START
            | count("leading dimension byte offset", self.leading)? << LEADING
            | count("stride dimension byte offset", self.stride)? << STRIDE
            | u64::from(self.base_offset) << BASE_OFFSET
            | swizzle << SWIZZLE)
    }

    /// What these bits say.
    pub fn decode(bits: u64) -> Result<Self, DescriptorError> {
        let bytes = |field: u32| ((bits >> field & COUNT) * 16) as u32;
        let swizzle = match bits >> SWIZZLE {
            0 => Swizzle::None,
            1 => Swizzle::Bytes128,
            2 => Swizzle::Bytes64,
            _ => Swizzle::Bytes32,
        };
        let descriptor = Descriptor {
            start: bytes(START),
            leading: bytes(LEADING),
            stride: bytes(STRIDE),
            base_offset: (bits >> BASE_OFFSET & 7) as u32,
            swizzle,
        };
        if descriptor.encode()? == bits {
            Ok(descriptor)
        } else {
            Err(DescriptorError::OutsideFields(bits))
        }
    }
}

/// A number of bytes as a field has it.
fn count(field: &'static str, bytes: u32) -> Result<u64, DescriptorError> {
    if !bytes.is_multiple_of(16) {
        Err(DescriptorError::Misaligned(field, bytes))
    } else if bytes >= 1 << 18 {
        Err(DescriptorError::TooLarge(field, bytes))
    } else {
        Ok(u64::from(bytes / 16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Descriptor =
        Descriptor { start: 0, leading: 0, stride: 0, base_offset: 0, swizzle: Swizzle::None };

    /// Both ran right on an H200: rows of 128 bytes with their swizzle, and of 64 with theirs. A
    /// K-major descriptor with a swizzle has no leading offset; it is "assumed to be 1".
    #[test]
    fn the_descriptors_that_ran_on_a_gpu() {
        for (stride, swizzle, bits) in [
            (1024, Swizzle::Bytes128, 1 << 16 | 64 << 32 | 1 << 62),
            (512, Swizzle::Bytes64, 1 << 16 | 32 << 32 | 2 << 62),
        ] {
            for start in [0, 1024, 49_152, 196_608 + 1024] {
                let bits = u64::from((start & 0x3ffff) >> 4) | bits;
                let descriptor = Descriptor { start, leading: 16, stride, base_offset: 0, swizzle };
                assert_eq!(descriptor.encode(), Ok(bits));
                assert_eq!(Descriptor::decode(bits), Ok(descriptor));
                // The step to the next 16 of K, as a kernel takes it.
                let next = Descriptor { start: start + 32, ..descriptor };
                assert_eq!(Descriptor::decode(bits + 2), Ok(next));
            }
        }
        let first = Descriptor { start: 1024, leading: 16, stride: 1024, ..PLAIN };
        let first = Descriptor { swizzle: Swizzle::Bytes128, ..first };
        assert_eq!(first.encode(), Ok(0x4000_0040_0001_0040));
    }

    #[test]
    fn every_field_comes_back() {
        let counts = [0, 16, 32, 1024, 65_536, (1 << 18) - 16];
        for swizzle in [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128] {
            let offsets = if swizzle == Swizzle::None { 0..1 } else { 0..8 };
            for base_offset in offsets {
                for start in counts {
                    for leading in counts {
                        for stride in counts {
                            let descriptor =
                                Descriptor { start, leading, stride, base_offset, swizzle };
                            let bits = descriptor.encode().unwrap();
                            assert_eq!(Descriptor::decode(bits), Ok(descriptor));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_descriptor_cannot_say() {
        let start = Descriptor { start: 8, ..PLAIN };
        assert_eq!(start.encode(), Err(DescriptorError::Misaligned("start address", 8)));
        let leading = Descriptor { leading: 1, ..PLAIN };
        let field = "leading dimension byte offset";
        assert_eq!(leading.encode(), Err(DescriptorError::Misaligned(field, 1)));
        let stride = Descriptor { stride: 1 << 18, ..PLAIN };
        let field = "stride dimension byte offset";
        assert_eq!(stride.encode(), Err(DescriptorError::TooLarge(field, 1 << 18)));
        let base = Descriptor { base_offset: 8, swizzle: Swizzle::Bytes128, ..PLAIN };
        assert_eq!(base.encode(), Err(DescriptorError::BaseOffset(8)));
        let base = Descriptor { base_offset: 3, ..PLAIN };
        assert_eq!(base.encode(), Err(DescriptorError::BaseOffsetWithoutSwizzle(3)));
        assert_eq!(Descriptor::decode(3 << 49), Err(DescriptorError::BaseOffsetWithoutSwizzle(3)));
    }

    #[test]
    fn bits_outside_the_fields_are_an_error() {
        let fields = COUNT << START | COUNT << LEADING | COUNT << STRIDE | 7 << 49 | 3 << 62;
        for bit in 0..64 {
            let bits = 1 << bit | 1 << SWIZZLE;
            let known = fields >> bit & 1 == 1;
            assert_eq!(Descriptor::decode(bits).is_ok(), known, "bit {bit}");
        }
        // One more step than the start can take.
        let last = Descriptor { start: (1 << 18) - 32, swizzle: Swizzle::Bytes128, ..PLAIN };
        let over = last.encode().unwrap() + 2;
        assert_eq!(Descriptor::decode(over), Err(DescriptorError::OutsideFields(over)));
    }
}
