//! The read of `x[i] += v`: what `#[kernel]` makes of a compound assignment in the body of a
//! kernel.
//!
//! A checked launch sees `IndexMut` as a write. So `#[kernel]` puts a read before it, of the same
//! element at the same place. Compound assignments in functions that the kernel calls stay a write
//! alone.

use std::ops::Index;

use super::watched::Watched;
use crate::{
    cpu::device::{arrays, views},
    element::Element,
};

/// A borrowed variable, of which a compound assignment changes an element. Of watched memory the
/// element is read; other types are let through.
///
/// (Rust prefers the inherent method, which exists only for watched memory, to that of
/// [`Unwatched`].)
#[derive(Debug)]
pub struct Place<'a, P: ?Sized>(pub &'a P);

/// Memory whose accesses a checked launch watches, or a reference to it.
pub trait IsWatched {
    /// The memory.
    type Memory;

    /// The memory itself.
    fn memory(&self) -> &Self::Memory;
}

macro_rules! watched {
    ($([$($generics:tt)*] $ty:ty;)*) => {$(
        impl<T: Element $($generics)*> IsWatched for $ty {
            type Memory = Self;

            fn memory(&self) -> &Self {
                self
            }
        }
    )*};
}

watched! {
    [] views::Out<T, Watched>;
    [, const ROWS: usize, const COLS: usize] arrays::Shared<T, ROWS, COLS, Watched>;
    [] arrays::DynamicShared<T, Watched>;
}

impl<P: IsWatched> IsWatched for &mut P {
    type Memory = P::Memory;

    fn memory(&self) -> &P::Memory {
        P::memory(self)
    }
}

impl<P: IsWatched> Place<'_, P> {
    /// Reads the element.
    #[track_caller]
    pub fn read<I: Copy>(&self, index: &I)
    where
        P::Memory: Index<I>,
    {
        let _ = &self.0.memory()[*index];
    }
}

/// All other types: an array of a thread, or memory of a launch without checks.
pub trait Unwatched {
    /// Does nothing.
    #[inline(always)]
    fn read<I: ?Sized>(&self, _: &I) {}
}

impl<P: ?Sized> Unwatched for Place<'_, P> {}
