//! The parameters of `cuTensorMapEncodeTiled`, and its result.
//!
//! The numbers are those of `cuda.h`, the same from CUDA 12.0 to 13. Additions of 12.8 for devices
//! after Hopper are left out.

/// `CUtensorMap`: the description of a tensor for TMA, as a kernel's parameter.
///
/// CUDA 12 aligns it to 64 bytes, CUDA 13 to 128. This alignment suits both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct CUtensorMap {
    /// Words that only the driver interprets.
    pub opaque: [u64; 16],
}

const _: () = assert!(size_of::<CUtensorMap>() == 128 && align_of::<CUtensorMap>() == 128);

/// `CUtensorMapDataType`: the type of an element, by its number.
///
/// Whoever describes a tensor knows the numbers of its types, 0 (8 bits) to 9 (bfloat16). The
/// others are of an f32 that TMA changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CUtensorMapDataType(pub u32);

impl CUtensorMapDataType {
    /// A float of 32 bits.
    pub const FLOAT32: Self = CUtensorMapDataType(7);
    /// The same, rounded to tf32.
    pub const TFLOAT32: Self = CUtensorMapDataType(11);
}

/// `CUtensorMapInterleave`: the layout of image channels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapInterleave {
    /// By the strides.
    None = 0,
    /// In slices of sixteen bytes.
    Bytes16 = 1,
    /// In slices of 32 bytes.
    Bytes32 = 2,
}

/// `CUtensorMapSwizzle`: the permutation of a box's 16-byte chunks in shared memory, within spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapSwizzle {
    /// None.
    None = 0,
    /// Spans of 32 bytes.
    Bytes32 = 1,
    /// Spans of 64 bytes.
    Bytes64 = 2,
    /// Spans of 128 bytes.
    Bytes128 = 3,
}

/// `CUtensorMapL2promotion`: the bytes that L2 loads for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapL2promotion {
    /// Only those that are asked for.
    None = 0,
    /// 64 bytes.
    Bytes64 = 1,
    /// 128 bytes.
    Bytes128 = 2,
    /// 256 bytes.
    Bytes256 = 3,
}

/// `CUtensorMapFloatOOBfill`: the value of elements outside the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapFloatOOBfill {
    /// Zeros.
    Zeros = 0,
    /// For floats, a NaN that a fused multiply-add takes for zero.
    NanRequestZeroFma = 1,
}
