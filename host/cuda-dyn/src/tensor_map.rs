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

/// `CUtensorMapDataType`: the type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapDataType {
    /// Eight bits.
    UInt8 = 0,
    /// Sixteen bits.
    UInt16 = 1,
    /// An unsigned number of 32 bits.
    UInt32 = 2,
    /// A signed number of 32 bits.
    Int32 = 3,
    /// An unsigned number of 64 bits.
    UInt64 = 4,
    /// A signed number of 64 bits.
    Int64 = 5,
    /// IEEE's float of 16 bits.
    Float16 = 6,
    /// A float of 32 bits.
    Float32 = 7,
    /// A float of 64 bits.
    Float64 = 8,
    /// A 16-bit float with the exponent of an f32.
    BFloat16 = 9,
    /// An f32 whose subnormal numbers become zero.
    Float32Ftz = 10,
    /// An f32, rounded to tf32.
    TFloat32 = 11,
    /// An f32, rounded to tf32, whose subnormal numbers become zero.
    TFloat32Ftz = 12,
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
