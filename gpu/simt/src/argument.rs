//! Arguments of a launch whose types are known only when the program runs.

use std::any::{Any, TypeId};

use crate::{Element, device::BoxShape};

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Bound<'a> {
    /// A number, or a [`Record`](crate::Record).
    Value(&'a dyn Any),
    /// Elements of global memory.
    Elements(Elements),
    /// Matrices that TMA copies: one map for each that the parameter has.
    Maps(Vec<Map>),
}

/// Elements of global memory, of any type.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    pub(crate) address: *mut u8,
    pub(crate) len: usize,
    pub(crate) of: TypeId,
    /// Whether a kernel may write them.
    pub(crate) writable: bool,
    /// Whether they hold values.
    pub(crate) written: bool,
}

impl Elements {
    /// Elements that a kernel reads.
    ///
    /// # Safety
    /// 1. As for [`In::new`](crate::device::In::new).
    pub unsafe fn read<T: Element>(address: *const T, len: usize) -> Self {
        let address = address.cast_mut().cast();
        Elements { address, len, of: TypeId::of::<T>(), writable: false, written: true }
    }

    /// Elements that a kernel writes and may read.
    ///
    /// # Safety
    /// 1. As for [`Out::new`](crate::device::Out::new).
    pub unsafe fn write<T: Element>(address: *mut T, len: usize) -> Self {
        let address = address.cast();
        Elements { address, len, of: TypeId::of::<T>(), writable: true, written: true }
    }

    /// The same elements, which hold no values yet.
    #[must_use]
    pub fn uninit(self) -> Self {
        Elements { written: false, ..self }
    }

    /// Whether a parameter with elements `T` takes them.
    pub(crate) fn are<T: Element>(&self) -> bool {
        T::takes(self.of)
    }
}

/// A [`TensorMap`](crate::device::TensorMap), or one to which kernels store, whose element type is
/// not known at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub(crate) base: *const u8,
    pub(crate) of: TypeId,
    pub(crate) extents: [usize; 3],
    pub(crate) strides: [usize; 2],
    pub(crate) shape: BoxShape,
    pub(crate) skipped: usize,
    pub(crate) encoded: [u64; 16],
    /// Whether a kernel may write the matrices.
    pub(crate) writable: bool,
    /// Whether they hold values.
    pub(crate) written: bool,
}

impl Map {
    /// The same matrices, which hold no values yet.
    #[must_use]
    pub fn uninit(self) -> Self {
        Map { written: false, ..self }
    }
}
