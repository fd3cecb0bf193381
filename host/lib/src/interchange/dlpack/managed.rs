//! A tensor with its owner, of either structure.

use std::ptr::NonNull;

use super::{DLManagedTensor, DLManagedTensorVersioned, DLTensor};

/// A tensor that was taken from its owner. Dropping it does nothing: [`delete`](Self::delete) gives
/// it back. For [`Tensor`](super::Tensor) and for the Python package.
#[derive(Debug)]
pub struct Managed(Structure);

#[derive(Debug)]
enum Structure {
    Plain(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

// SAFETY: the structure is this value's alone. DLPack says of no thread that it must call the
// deleter.
unsafe impl Send for Managed {}
// SAFETY: shared, it is only read.
unsafe impl Sync for Managed {}

impl Managed {
    /// A tensor as of before version 1.
    ///
    /// # Safety
    /// 1. It is a valid tensor until its deleter is called, and nobody else takes it.
    pub unsafe fn plain(tensor: NonNull<DLManagedTensor>) -> Self {
        Managed(Structure::Plain(tensor))
    }

    /// A tensor as of version 1.
    ///
    /// # Safety
    /// 1. As for [`plain`](Self::plain).
    /// 2. Its major version is 1; with another it is only deleted.
    pub unsafe fn versioned(tensor: NonNull<DLManagedTensorVersioned>) -> Self {
        Managed(Structure::Versioned(tensor))
    }

    /// The tensor.
    pub fn tensor(&self) -> &DLTensor {
        match &self.0 {
            // SAFETY: valid until it is deleted, which takes this value.
            Structure::Plain(managed) => unsafe { &managed.as_ref().dl_tensor },
            // SAFETY: as above.
            Structure::Versioned(managed) => unsafe { &managed.as_ref().dl_tensor },
        }
    }

    /// Its flags. Before version 1 there were none.
    pub fn flags(&self) -> u64 {
        match &self.0 {
            Structure::Plain(_) => 0,
            // SAFETY: as above.
            Structure::Versioned(managed) => unsafe { managed.as_ref() }.flags,
        }
    }

    /// Calls the deleter.
    ///
    /// # Safety
    /// 1. Nobody uses the elements after this.
    pub unsafe fn delete(self) {
        match self.0 {
            Structure::Plain(managed) => {
                // SAFETY: valid until now.
                if let Some(deleter) = unsafe { managed.as_ref() }.deleter {
                    // SAFETY: the structure is this value's, which is no more after this.
                    unsafe { deleter(managed.as_ptr()) }
                }
            }
            Structure::Versioned(managed) => {
                // SAFETY: as above.
                if let Some(deleter) = unsafe { managed.as_ref() }.deleter {
                    // SAFETY: as above.
                    unsafe { deleter(managed.as_ptr()) }
                }
            }
        }
    }
}
