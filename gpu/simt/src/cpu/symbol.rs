//! Variables of kernels as the host sees them: CUDA's *symbols*.
//!
//! What copies a variable waits until no launch of the process runs, so neither sees half of what the other does. Launches that
//! come later wait for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{
    block::in_kernel,
    device::variables::{Constant, Global, GlobalPointer},
    mode::Mode,
    pool::launches,
};
use crate::Element;

/// A variable that the host reads and writes: what [`constant!`](crate::constant) and
/// [`global!`](crate::global) make.
///
/// # Safety
/// 1. [`Symbol::place`] is valid as long as the program, and nobody but kernels and this module accesses it.
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
    launches().between(|| {
        // SAFETY: as many elements, and no kernel runs.
        unsafe { symbol.place().copy_from_nonoverlapping(values.as_ptr(), values.len()) }
    });
}

/// Copies the CPU device's variable to `values`, between launches: it waits for those that run.
///
/// # Panics
/// Where the variable has another number of elements, and in a kernel.
pub fn read<S: Symbol + ?Sized>(symbol: &S, values: &mut [S::Element]) {
    assert_eq!(values.len(), symbol.len(), "elements of {}", symbol.name());
    launches().between(|| {
        // SAFETY: as in `write`.
        unsafe { symbol.place().copy_to_nonoverlapping(values.as_mut_ptr(), values.len()) }
    });
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
    /// those that run.
    ///
    /// # Panics
    /// In a kernel.
    ///
    /// # Safety
    /// 1. The elements are there, and nobody else uses them, as long as kernels use the variable.
    /// 2. No other part of the program launches kernels that use the variable and counts on what it pointed to.
    pub unsafe fn point_to(&self, base: *mut T, len: usize) {
        launches().between(|| {
            // SAFETY: a static's own storage, and no kernel runs.
            unsafe { *self.place() = (base, len) }
        });
    }
}

/// Launches that run, and who copies a variable meanwhile.
#[derive(Default)]
pub(super) struct Launches {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Those who copy a variable, or wait for it. While there are any no launch begins, or they might wait for ever.
    copying: usize,
}

impl Launches {
    /// Begins a launch. Launches do not wait for each other: only while a variable is being copied.
    pub(super) fn begin(&self) -> Running<'_> {
        let copied = |state: &mut State| state.copying > 0;
        let state = self.changed.wait_while(self.lock(), copied);
        state.unwrap_or_else(PoisonError::into_inner).running += 1;
        Running(self)
    }

    /// Calls `copy` between launches. A kernel cannot.
    fn between<R>(&self, copy: impl FnOnce() -> R) -> R {
        assert!(!in_kernel(), "a kernel accesses its variables itself, not as the host does");
        let mut state = self.lock();
        state.copying += 1;
        let runs = |state: &mut State| state.running > 0;
        let state = self.changed.wait_while(state, runs);
        // One after the other, under the lock.
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let result = copy();
        state.copying -= 1;
        drop(state);
        self.changed.notify_all();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A launch that runs.
pub(super) struct Running<'a>(&'a Launches);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.changed.notify_all();
    }
}
