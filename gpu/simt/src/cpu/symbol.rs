//! Variables of kernels as the host sees them: CUDA's *symbols*.
//!
//! A copy of a variable waits until no launch of the process runs, so that neither sees a half-done
//! state of the other. Launches that come later wait for the copy.

#[cfg(feature = "cpu")]
use super::{block::in_kernel, process::Process};
use super::{
    device::variables::{Constant, Global, GlobalPointer},
    mode::Mode,
};
use crate::Element;

/// A variable that the host reads and writes: what [`constant!`](crate::constant) and
/// [`global!`](crate::global) make.
///
/// # Safety
/// 1. [`Symbol::place`] is valid as long as the program, and nobody but kernels and this module
///    accesses it.
pub unsafe trait Symbol: Sync + 'static {
    /// The type of its elements.
    type Element: Element;

    /// Its name, in Rust and in the PTX.
    fn name(&self) -> &'static str;

    /// The number of its elements.
    fn len(&self) -> usize;

    /// Whether it has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its address on the CPU device.
    fn place(&self) -> *mut Self::Element;
}

// SAFETY: a static's own storage, whose address nobody else gets.
unsafe impl<T: Element, const N: usize, M: Mode> Symbol for Global<T, N, M> {
    type Element = T;

    fn name(&self) -> &'static str {
        self.name
    }

    fn len(&self) -> usize {
        N
    }

    fn place(&self) -> *mut T {
        self.first()
    }
}

// SAFETY: as above; and kernels only read it.
unsafe impl<T: Element, const N: usize, M: Mode> Symbol for Constant<T, N, M> {
    type Element = T;

    fn name(&self) -> &'static str {
        self.0.name
    }

    fn len(&self) -> usize {
        N
    }

    fn place(&self) -> *mut T {
        self.0.first()
    }
}

/// Copies `values` to the CPU device's variable, between launches: it waits for those that run.
///
/// # Panics
/// If the variable has another number of elements, and in a kernel.
#[cfg(feature = "cpu")]
pub fn write<S: Symbol + ?Sized>(symbol: &S, values: &[S::Element]) {
    assert_eq!(values.len(), symbol.len(), "elements for {}", symbol.name());
    between_launches(|| {
        // SAFETY: as many elements, and no kernel runs.
        unsafe { symbol.place().copy_from_nonoverlapping(values.as_ptr(), values.len()) }
    });
}

/// Copies the CPU device's variable to `values`, between launches: it waits for those that run.
///
/// # Panics
/// If the variable has another number of elements, and in a kernel.
#[cfg(feature = "cpu")]
pub fn read<S: Symbol + ?Sized>(symbol: &S, values: &mut [S::Element]) {
    assert_eq!(values.len(), symbol.len(), "elements of {}", symbol.name());
    between_launches(|| {
        // SAFETY: as in `write`.
        unsafe { symbol.place().copy_to_nonoverlapping(values.as_mut_ptr(), values.len()) }
    });
}

impl<T: Element, M: Mode> GlobalPointer<T, M> {
    /// Its name, in Rust and in the PTX.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its address on the CPU device. It holds the address of a buffer, and the number of elements
    /// there.
    pub fn place(&self) -> *mut (*mut T, usize) {
        self.target.get()
    }

    /// Lets the CPU device's variable point to `len` elements at `base`, between launches: it waits
    /// for those that run.
    ///
    /// # Panics
    /// In a kernel.
    ///
    /// # Safety
    /// 1. The elements are there, and nobody else uses them, as long as kernels use the variable.
    /// 2. No other part of the program launches kernels that use the variable and relies on what it
    ///    pointed to.
    #[cfg(feature = "cpu")]
    pub unsafe fn point_to(&self, base: *mut T, len: usize) {
        between_launches(|| {
            // SAFETY: a static's own storage, and no kernel runs.
            unsafe { *self.place() = (base, len) }
        });
    }
}

/// Calls `copy` while no launch runs.
#[cfg(feature = "cpu")]
fn between_launches<R>(copy: impl FnOnce() -> R) -> R {
    assert!(!in_kernel(), "a kernel accesses its variables itself, not as the host does");
    Process::get().launches.between(copy)
}
