//! Tensors that come in.

use std::{fmt, mem::ManuallyDrop, ptr::NonNull, slice};

use super::{DLDevice, DLManagedTensor, DLManagedTensorVersioned, DlElement, Managed};
use crate::{
    buffer::Buffer,
    device::Device,
    error::{Error, Result},
    matrix::{MatrixView, MatrixViewMut, extent},
};
#[cfg(feature = "cuda")]
use crate::{cuda, device::Kind};

/// A tensor of another library, of one or two dimensions. It owns it: dropping it waits for the
/// work that uses it, and then calls the deleter, once.
pub struct Tensor<T: DlElement> {
    buffer: ManuallyDrop<Buffer<T>>,
    shape: Vec<usize>,
    strides: Vec<usize>,
    /// Taken by `drop`.
    managed: ManuallyDrop<Managed>,
}

impl<T: DlElement> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Tensor { shape, strides, .. } = self;
        let (is_read_only, is_copied) = (self.is_read_only(), self.is_copied());
        write!(f, "Tensor {{ {shape:?}, strides {strides:?}, ")?;
        write!(f, "read-only: {is_read_only}, copied: {is_copied} }}")
    }
}

impl<T: DlElement> Tensor<T> {
    /// Takes a tensor as of before version 1.
    ///
    /// After an error the tensor is the caller's as before.
    ///
    /// # Errors
    /// [`Error::Argument`] for a tensor of another type, device or CUDA context, of more than two
    /// dimensions, with negative strides, and for elements that are not aligned.
    ///
    /// # Safety
    /// 1. It is a valid tensor, which nobody else takes. Its elements are initialised.
    /// 2. Until the result is dropped nobody else writes the elements, and nobody else reads them
    ///    while they are written through the result. On a GPU, work that was queued before and
    ///    writes them has ended, or the streams that use the result wait for it.
    pub unsafe fn import(device: &Device, tensor: NonNull<DLManagedTensor>) -> Result<Self> {
        // SAFETY: the caller's.
        unsafe { Self::of(device, Managed::plain(tensor)) }
    }

    /// As [`import`](Self::import), for a tensor as of version 1. A tensor that is flagged as
    /// read-only, or as a copy, is only read.
    ///
    /// # Errors
    /// As [`import`](Self::import); [`Error::Argument`] for another major version.
    ///
    /// # Safety
    /// As for [`import`](Self::import). One that is only read may be read by others.
    pub unsafe fn import_versioned(
        device: &Device,
        tensor: NonNull<DLManagedTensorVersioned>,
    ) -> Result<Self> {
        // SAFETY: condition 1. The version comes first in every version.
        let version = unsafe { (*tensor.as_ptr()).version };
        if version.major != 1 {
            let value = format!("{}.{}", version.major, version.minor);
            return Err(Error::argument("DLPack version", value, "must be 1"));
        }
        // SAFETY: the caller's; and the version is 1.
        unsafe { Self::of(device, Managed::versioned(tensor)) }
    }

    /// # Safety
    /// As for [`import`](Self::import).
    unsafe fn of(device: &Device, managed: Managed) -> Result<Self> {
        let tensor = managed.tensor();
        check_device(device, tensor.device)?;
        if tensor.dtype != T::DL_TYPE {
            let limit = format!("must be {:?}", T::DL_TYPE);
            return Err(Error::argument("dtype", format!("{:?}", tensor.dtype), limit));
        }
        let dimensions = match usize::try_from(tensor.ndim) {
            Ok(dimensions) if dimensions <= 2 => dimensions,
            _ => return Err(Error::argument("ndim", tensor.ndim, "must be 0, 1 or 2")),
        };
        if dimensions > 0 && tensor.shape.is_null() {
            let limit = format!("must point to {dimensions} sizes");
            return Err(Error::argument("shape", "null", limit));
        }
        let numbers = |of: *mut i64| match dimensions {
            0 => &[],
            // SAFETY: condition 1: as many numbers as dimensions.
            _ => unsafe { slice::from_raw_parts(of.cast_const(), dimensions) },
        };
        let size = |&size| {
            usize::try_from(size)
                .map_err(|_| Error::argument("shape", size, "must not be negative"))
        };
        let shape = numbers(tensor.shape).iter().map(size).collect::<Result<Vec<_>>>()?;
        // A stride that nobody uses may be negative: of one element, or of none.
        let stride = |(&stride, &size): (&i64, &usize)| match stride < 0
            && size > 1
            && !shape.contains(&0)
        {
            true => Err(Error::argument("strides", stride, "must not be negative")),
            false => Ok(stride.unsigned_abs() as usize),
        };
        let strides = match tensor.strides.is_null() {
            false => {
                numbers(tensor.strides).iter().zip(&shape).map(stride).collect::<Result<_>>()?
            }
            true => match shape[..] {
                [_, cols] => vec![cols, 1],
                _ => vec![1; dimensions],
            },
        };
        let ([rows, cols], between) = as_matrix(&shape, &strides);
        let len = extent(rows, cols, between)?;
        // Of an empty tensor the address may be anything.
        let address = match len {
            0 => 0,
            _ => (tensor.data.addr() as u64).wrapping_add(tensor.byte_offset),
        };
        #[cfg(feature = "cuda")]
        if let (Kind::Cuda(gpu), DLDevice::CUDA) = (&*device.0, tensor.device.device_type) {
            cuda::check_address(&gpu.context, address)?;
        }
        // SAFETY: conditions 1 and 2. `drop` waits for the work that was launched with the buffer.
        let buffer = unsafe { device.foreign(address, len) }?;
        let (buffer, managed) = (ManuallyDrop::new(buffer), ManuallyDrop::new(managed));
        Ok(Tensor { buffer, shape, strides, managed })
    }

    /// The size of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements from one index of each dimension to the next.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Whether the owner allows no writes.
    pub fn is_read_only(&self) -> bool {
        self.managed.flags() & DLManagedTensorVersioned::READ_ONLY != 0
    }

    /// Whether the owner has made a copy for this tensor: it has what the owner's array held then.
    pub fn is_copied(&self) -> bool {
        self.managed.flags() & DLManagedTensorVersioned::IS_COPIED != 0
    }

    /// The matrix. A tensor of one dimension is a row, one of none has one element.
    ///
    /// # Errors
    /// As [`MatrixView::new`].
    pub fn matrix(&self) -> Result<MatrixView<'_, T>> {
        let ([rows, cols], strides) = as_matrix(&self.shape, &self.strides);
        MatrixView::new(self.buffer.all(), rows, cols, strides)
    }

    /// The matrix, for writing.
    ///
    /// # Errors
    /// [`Error::Argument`] for a tensor that is only read, and for a copy, as the owner would not
    /// see what is written; as [`MatrixViewMut::new`].
    pub fn matrix_mut(&mut self) -> Result<MatrixViewMut<'_, T>> {
        if self.is_read_only() {
            return Err(Error::argument("tensor", "read-only", "must not be, to be written"));
        }
        if self.is_copied() {
            let limit = "must be the owner's own memory, to be written: what is written is lost";
            return Err(Error::argument("tensor", "a copy", limit));
        }
        let ([rows, cols], strides) = as_matrix(&self.shape, &self.strides);
        MatrixViewMut::new(self.buffer.all_mut(), rows, cols, strides)
    }
}

/// The sizes and the strides of at most two dimensions as those of a matrix.
fn as_matrix(shape: &[usize], strides: &[usize]) -> ([usize; 2], [usize; 2]) {
    match (shape, strides) {
        (&[rows, cols], &[between_rows, between_cols]) => {
            ([rows, cols], [between_rows, between_cols])
        }
        (&[cols], &[between]) => ([1, cols], [0, between]),
        _ => ([1, 1], [0, 0]),
    }
}

/// Refuses a tensor of another device.
fn check_device(device: &Device, its: DLDevice) -> Result<()> {
    let is_there = match its.device_type {
        DLDevice::CPU | DLDevice::CUDA_HOST => !device.is_cuda(),
        DLDevice::CUDA | DLDevice::CUDA_MANAGED => {
            device.name() == format!("cuda:{}", its.device_id)
        }
        _ => false,
    };
    if is_there {
        return Ok(());
    }
    let value = format!("type {}, index {}", its.device_type, its.device_id);
    Err(Error::argument("tensor's device", value, format!("must be {}", device.name())))
}

impl<T: DlElement> Drop for Tensor<T> {
    fn drop(&mut self) {
        // SAFETY: they are not used after this.
        let (buffer, managed) = unsafe {
            (ManuallyDrop::take(&mut self.buffer), ManuallyDrop::take(&mut self.managed))
        };
        let end = move || {
            // Work may still use the elements. If it cannot be waited for, they are leaked.
            if buffer.wait_for_uses().is_ok() {
                drop(buffer);
                // SAFETY: the buffer is no more, and its uses have ended.
                unsafe { managed.delete() };
            }
        };
        #[cfg(feature = "cuda")]
        cuda::release(end);
        #[cfg(not(feature = "cuda"))]
        end();
    }
}
