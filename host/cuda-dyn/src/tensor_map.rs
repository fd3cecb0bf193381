//! What `cuTensorMapEncodeTiled` is told of a tensor, and what it makes of that.
//!
//! The numbers are those of `cuda.h`, the same from CUDA 12.0 to 13. What 12.8 added for later devices than Hopper is
//! left out.

/// `CUtensorMap`: the description of a tensor as TMA reads it, a kernel's parameter.
///
/// CUDA 12 aligns it to 64 bytes and CUDA 13 to 128; here it suits both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct CUtensorMap {
    /// Words whose meaning is the driver's alone.
    pub opaque: [u64; 16],
}

const _: () = assert!(size_of::<CUtensorMap>() == 128 && align_of::<CUtensorMap>() == 128);

/// `CUtensorMapDataType`: an element.
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
    /// A float of 16 bits with the exponent of one of 32.
    BFloat16 = 9,
    /// A float of 32 bits; denormals become zero.
    Float32Ftz = 10,
    /// A float of 32 bits, rounded to TF32.
    TFloat32 = 11,
    /// The same; denormals become zero.
    TFloat32Ftz = 12,
}

/// `CUtensorMapInterleave`: how channels of images lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapInterleave {
    /// As the strides say.
    None = 0,
    /// In slices of sixteen bytes.
    Bytes16 = 1,
    /// In slices of 32 bytes.
    Bytes32 = 2,
}

/// `CUtensorMapSwizzle`: how a box's groups of sixteen bytes are exchanged in shared memory, within spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapSwizzle {
    /// Not at all.
    None = 0,
    /// Spans of 32 bytes.
    Bytes32 = 1,
    /// Spans of 64 bytes.
    Bytes64 = 2,
    /// Spans of 128 bytes.
    Bytes128 = 3,
}

/// `CUtensorMapL2promotion`: how much the L2 cache reads of what lies around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapL2promotion {
    /// No more than is asked for.
    None = 0,
    /// 64 bytes.
    Bytes64 = 1,
    /// 128 bytes.
    Bytes128 = 2,
    /// 256 bytes.
    Bytes256 = 3,
}

/// `CUtensorMapFloatOOBfill`: what takes the place of elements outside the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUtensorMapFloatOOBfill {
    /// Zeros.
    Zeros = 0,
    /// Of floats a NaN that a fused multiply-add takes for zero.
    NanRequestZeroFma = 1,
}
