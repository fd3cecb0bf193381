//! Variables of kernels as the host sees them: CUDA's *symbols*.
//!
//! What copies a variable waits until no launch of the process runs, so neither sees half of what the other does.
//! It must not be called from a task of rayon's: that may run inside a launch, and would wait for itself.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{
    block::in_kernel,
    device::variables::{Constant, Global, GlobalPointer},
    mode::Mode,
};
use crate::Element;

/// A variable that the host reads and writes: what [`constant!`](crate::constant) and
/// [`global!`](crate::global) make.
///
/// # Safety
/// [`Symbol::place`] is valid as long as the program, and nobody but kernels and this module accesses it.
pub unsafe trait Symbol: Sync + 'static {
    /// What it is an array of.
    type Element: Element;

    /// Its name, in Rust and in the PTX.
    fn name(&self) -> &'static str;

    /// How many elements it has.
    fn len(&self) -> usize;

    /// Has it no elements?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the CPU device keeps it.
    fn place(&self) -> *mut Self::Element;
}

// SAFETY: a static's own storage, which it shows to nobody else.
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
/// Where the variable has another number of elements, and in a kernel.
pub fn write<S: Symbol + ?Sized>(symbol: &S, values: &[S::Element]) {
    assert_eq!(values.len(), symbol.len(), "elements for {}", symbol.name());
    let _no_launch = between_launches();
    // SAFETY: as many elements, and no kernel runs.
    unsafe { symbol.place().copy_from_nonoverlapping(values.as_ptr(), values.len()) }
}

/// Copies the CPU device's variable to `values`, between launches: it waits for those that run.
///
/// # Panics
/// Where the variable has another number of elements, and in a kernel.
pub fn read<S: Symbol + ?Sized>(symbol: &S, values: &mut [S::Element]) {
    assert_eq!(values.len(), symbol.len(), "elements of {}", symbol.name());
    let _no_launch = between_launches();
    // SAFETY: as in `write`.
    unsafe { symbol.place().copy_to_nonoverlapping(values.as_mut_ptr(), values.len()) }
}

impl<T: Element, M: Mode> GlobalPointer<T, M> {
    /// Its name, in Rust and in the PTX.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Where the CPU device keeps it: an address, and the number of elements there.
    pub fn place(&self) -> *mut (*mut T, usize) {
        self.target.get()
    }

    /// Makes the CPU device's variable point to `len` elements at `base`, between launches: it waits for
    /// those that run. Nobody looks at them but a kernel, whose launch answers for them.
    ///
    /// # Panics
    /// In a kernel.
    pub fn point_to(&self, base: *mut T, len: usize) {
        let _no_launch = between_launches();
        // SAFETY: a static's own storage, and no kernel runs.
        unsafe { *self.place() = (base, len) }
    }
}

/// How many launches run.
static RUNNING: Mutex<usize> = Mutex::new(0);
/// A launch has ended.
static ENDED: Condvar = Condvar::new();

/// A launch that runs. Launches do not wait for each other, nor for a host that waits for them: only while a
/// variable is being copied.
pub(super) struct Running(());

impl Running {
    pub(super) fn begin() -> Self {
        *running() += 1;
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *running() -= 1;
        ENDED.notify_all();
    }
}

fn running() -> MutexGuard<'static, usize> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it is held no launch begins.
fn between_launches() -> MutexGuard<'static, usize> {
    assert!(!in_kernel(), "a kernel accesses its variables itself, not as the host does");
    let running = running();
    ENDED.wait_while(running, |running| *running > 0).unwrap_or_else(PoisonError::into_inner)
}
