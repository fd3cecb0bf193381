//! Matrices that go out.

use std::{
    ffi::c_void,
    ptr::{NonNull, null_mut},
    sync::Arc,
};

use super::{
    DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, DlElement,
};
use crate::{
    device::Device,
    error::Result,
    matrix::{Matrix, MatrixView},
    stream::Stream,
};

/// What a tensor's structure points to, with the structure itself.
struct Exported<M, S> {
    structure: S,
    shape: [i64; 2],
    strides: [i64; 2],
    /// The matrix, or a share of it.
    _owner: M,
}

/// Gives a matrix to another library, as of before version 1. Its deleter drops the matrix. Whoever
/// gets it calls that once; otherwise the memory is never freed.
///
/// The other library uses the elements on `consumer`, which waits on the device for the work on
/// them. `None`: this call waits.
///
/// # Errors
/// [`Error::Argument`](crate::Error::Argument) for a stream of another device than the matrix's;
/// [`Error::Capture`](crate::Error::Capture) for one that is captured; those of the driver and of
/// kernels that use the matrix.
pub fn export<T: DlElement>(
    mut matrix: Matrix<T>,
    consumer: Option<&Stream>,
) -> Result<NonNull<DLManagedTensor>> {
    ready(&mut matrix, consumer)?;
    let (shape, strides, tensor) = described(matrix.view());
    let structure = DLManagedTensor { dl_tensor: tensor, manager_ctx: null_mut(), deleter: None };
    let all = pinned(Exported { structure, shape, strides, _owner: matrix });
    // SAFETY: the value was allocated above, and nobody else has it.
    let exported = unsafe { &mut *all.as_ptr() };
    exported.structure.dl_tensor.shape = exported.shape.as_mut_ptr();
    exported.structure.dl_tensor.strides = exported.strides.as_mut_ptr();
    exported.structure.manager_ctx = all.as_ptr().cast();
    exported.structure.deleter = Some(delete::<T>);
    Ok(NonNull::from(&mut exported.structure))
}

/// As [`export`], as of version 1.
///
/// # Errors
/// As [`export`].
pub fn export_versioned<T: DlElement>(
    mut matrix: Matrix<T>,
    consumer: Option<&Stream>,
) -> Result<NonNull<DLManagedTensorVersioned>> {
    ready(&mut matrix, consumer)?;
    let (shape, strides, tensor) = described(matrix.view());
    Ok(versioned(matrix, shape, strides, tensor, 0))
}

/// As [`export_versioned`], for a matrix that stays in use here. The tensor is only to be read.
///
/// # Errors
/// As [`export`].
pub fn export_shared<T: DlElement>(
    matrix: Arc<Matrix<T>>,
    consumer: Option<&Stream>,
) -> Result<NonNull<DLManagedTensorVersioned>> {
    match consumer {
        Some(stream) => {
            stream.refuse_in_capture("an export")?;
            matrix.buffer().all().address_on(stream).map(drop)
        }
        None => matrix.buffer().wait_for_uses(),
    }?;
    let (shape, strides, tensor) = described(matrix.view());
    Ok(versioned(matrix, shape, strides, tensor, DLManagedTensorVersioned::READ_ONLY))
}

fn versioned<M: Send>(
    owner: M,
    shape: [i64; 2],
    strides: [i64; 2],
    tensor: DLTensor,
    flags: u64,
) -> NonNull<DLManagedTensorVersioned> {
    let structure = DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 0 },
        manager_ctx: null_mut(),
        deleter: None,
        flags,
        dl_tensor: tensor,
    };
    let all = pinned(Exported { structure, shape, strides, _owner: owner });
    // SAFETY: the value was allocated above, and nobody else has it.
    let exported = unsafe { &mut *all.as_ptr() };
    exported.structure.dl_tensor.shape = exported.shape.as_mut_ptr();
    exported.structure.dl_tensor.strides = exported.strides.as_mut_ptr();
    exported.structure.manager_ctx = all.as_ptr().cast();
    exported.structure.deleter = Some(delete_versioned::<M>);
    NonNull::from(&mut exported.structure)
}

/// At an address that does not change.
fn pinned<E>(exported: E) -> NonNull<E> {
    NonNull::from(Box::leak(Box::new(exported)))
}

/// Lets the consumer's stream wait for all work on the matrix, which it may write, or waits for it.
fn ready<T: DlElement>(matrix: &mut Matrix<T>, consumer: Option<&Stream>) -> Result<()> {
    match consumer {
        Some(stream) => {
            stream.refuse_in_capture("an export")?;
            matrix.buffer_mut().address_on(stream).map(drop)
        }
        None => matrix.buffer().wait_for_uses(),
    }
}

/// Shape, strides and the tensor, without pointers to these.
fn described<T: DlElement>(matrix: MatrixView<T>) -> ([i64; 2], [i64; 2], DLTensor) {
    // An element has at least a byte, so sizes and strides are below 2^63.
    let shape = [matrix.rows() as i64, matrix.cols() as i64];
    let strides = matrix.strides().map(|stride| stride as i64);
    let tensor = DLTensor {
        data: matrix.elements().address().cast_mut().cast::<c_void>(),
        device: device_of(matrix.device()),
        ndim: 2,
        dtype: T::DL_TYPE,
        shape: null_mut(),
        strides: null_mut(),
        byte_offset: 0,
    };
    (shape, strides, tensor)
}

fn device_of(device: &Device) -> DLDevice {
    match device.name().strip_prefix("cuda:").and_then(|index| index.parse().ok()) {
        Some(device_id) => DLDevice { device_type: DLDevice::CUDA, device_id },
        None => DLDevice { device_type: DLDevice::CPU, device_id: 0 },
    }
}

/// The deleter.
///
/// # Safety
/// 1. `tensor` is of [`export`] with this type, and is not used after this.
unsafe extern "C" fn delete<T: DlElement>(tensor: *mut DLManagedTensor) {
    // SAFETY: condition 1: the context is the allocation that `export` has leaked.
    unsafe {
        let all = (*tensor).manager_ctx.cast::<Exported<Matrix<T>, DLManagedTensor>>();
        drop(Box::from_raw(all));
    }
}

/// As [`delete`].
///
/// # Safety
/// 1. `tensor` is of [`versioned`] with this owner, and is not used after this.
unsafe extern "C" fn delete_versioned<M: Send>(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: as above.
    unsafe {
        let all = (*tensor).manager_ctx.cast::<Exported<M, DLManagedTensorVersioned>>();
        drop(Box::from_raw(all));
    }
}
