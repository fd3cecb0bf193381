//! DLPack: tensors of NumPy, PyTorch, CuPy, JAX and others, in and out, without copies.
//!
//! [`Tensor`] takes a tensor of another library, of one or two dimensions. Its matrix is an operand
//! as any other. [`export`], [`export_versioned`] and [`export_shared`] give a matrix to another
//! library.
//!
//! ```
//! use gpu_gemm::{Device, Gemm, Matrix, interchange::dlpack::{self, Tensor}};
//!
//! let device = Device::best().device;
//! let stream = device.stream()?;
//! let a = Matrix::from_row_major(&device, 2, 2, &[1.0f32, 2.0, 3.0, 4.0])?;
//! // What another library does with it ...
//! let given = dlpack::export(a, None)?;
//! // SAFETY: ... is nothing here: the tensor comes back as it is, and nobody else has it.
//! let a = unsafe { Tensor::<f32>::import(&device, given) }?;
//! let mut c = Matrix::zeros(&device, 2, 2)?;
//! Gemm::new().run(&stream, a.matrix()?, a.matrix()?, c.view_mut())?;
//! assert_eq!(c.to_row_major()?, [7.0, 10.0, 15.0, 22.0]);
//! # Ok::<(), gpu_gemm::Error>(())
//! ```

mod abi;
mod export;
mod managed;
mod tensor;
#[cfg(test)]
mod tests;

pub use abi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
pub use dtype::DlElement;
pub use export::{export, export_shared, export_versioned};
#[doc(hidden)]
pub use managed::Managed;
pub use tensor::Tensor;

mod dtype {
    //! The types of elements.

    use simt::types::Typed;

    use super::DLDataType;
    use crate::buffer::Pod;

    /// An element that DLPack has a type for.
    ///
    /// It is a type of the table: memory of other libraries is read by what it says of itself.
    ///
    /// ```compile_fail,E0277
    /// # use gpu_gemm::{interchange::dlpack::DlElement, simt::Element};
    /// #[derive(Clone, Copy)]
    /// #[repr(transparent)]
    /// struct Wide([u8; 16]);
    /// # // SAFETY: bytes.
    /// # unsafe impl Element for Wide {}
    /// # // SAFETY: bytes.
    /// # unsafe impl bytemuck::Zeroable for Wide {}
    /// # // SAFETY: bytes.
    /// # unsafe impl bytemuck::Pod for Wide {}
    /// fn described<T: DlElement>() {}
    /// described::<Wide>();
    /// ```
    pub trait DlElement: Pod + Typed + Send + Sync {
        /// The type.
        #[doc(hidden)]
        const DL_TYPE: DLDataType =
            DLDataType { code: Self::TYPE.dlpack(), bits: 8 * size_of::<Self>() as u8, lanes: 1 };
    }

    impl<T: Pod + Typed + Send + Sync> DlElement for T {}
}
