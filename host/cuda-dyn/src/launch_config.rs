//! The configuration of a launch for `cuLaunchKernelEx`.

use crate::types::CUstream;
use std::ffi::c_uint;
use std::mem::offset_of;

/// `CUlaunchConfig`: the shape of a launch, its stream, and its attributes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CUlaunchConfig {
    /// Blocks of the grid along x, y, z.
    pub grid: [c_uint; 3],
    /// Threads of a block along x, y, z.
    pub block: [c_uint; 3],
    /// Bytes of dynamic shared memory of a block.
    pub dynamic_shared: c_uint,
    /// The stream.
    pub stream: CUstream,
    /// The attributes. The driver only reads them, although its pointer is mutable.
    pub attributes: *mut CUlaunchAttribute,
    /// The number of attributes.
    pub attribute_count: c_uint,
}

/// `CUlaunchAttribute`: an attribute of a launch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CUlaunchAttribute {
    id: CUlaunchAttributeID,
    value: CUlaunchAttributeValue,
}

impl CUlaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`: blocks of a cluster along x, y, z. They divide
    /// those of the grid.
    pub const fn cluster([x, y, z]: [c_uint; 3]) -> Self {
        let mut words = [0; 16];
        (words[0], words[1], words[2]) = (x, y, z);
        let (id, value) = (CUlaunchAttributeID::ClusterDimension, CUlaunchAttributeValue(words));
        CUlaunchAttribute { id, value }
    }

    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`, allowed: the kernel may start
    /// before the previous kernel of the stream has ended, and waits for it itself.
    pub const fn programmatic_stream_serialization() -> Self {
        let mut words = [0; 16];
        words[0] = 1; // programmaticStreamSerializationAllowed
        let id = CUlaunchAttributeID::ProgrammaticStreamSerialization;
        CUlaunchAttribute { id, value: CUlaunchAttributeValue(words) }
    }
}

/// `CUlaunchAttributeID`, of the attributes above.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum CUlaunchAttributeID {
    ClusterDimension = 4,
    ProgrammaticStreamSerialization = 6,
}

/// `CUlaunchAttributeValue`: in C a union of 64 bytes with pointers.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct CUlaunchAttributeValue([c_uint; 16]);

// The layouts in `cuda.h`, the same from CUDA 11.8 to 13.
const _: () = {
    assert!(size_of::<CUlaunchConfig>() == 56 && align_of::<CUlaunchConfig>() == 8);
    assert!(offset_of!(CUlaunchConfig, grid) == 0 && offset_of!(CUlaunchConfig, block) == 12);
    assert!(offset_of!(CUlaunchConfig, dynamic_shared) == 24);
    assert!(offset_of!(CUlaunchConfig, stream) == 32);
    assert!(offset_of!(CUlaunchConfig, attributes) == 40);
    assert!(offset_of!(CUlaunchConfig, attribute_count) == 48);
    assert!(size_of::<CUlaunchAttribute>() == 72 && align_of::<CUlaunchAttribute>() == 8);
    assert!(size_of::<CUlaunchAttributeID>() == 4 && offset_of!(CUlaunchAttribute, id) == 0);
    assert!(size_of::<CUlaunchAttributeValue>() == 64);
    assert!(offset_of!(CUlaunchAttribute, value) == 8);
};
