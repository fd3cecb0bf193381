//! Atomic operations on an element of a view, of a shared array or of a variable.
//!
//! They are relaxed: an operation orders no other access. A fence
//! ([`fence_device`](super::thread::fence_device)) before an operation, and one behind another
//! operation that sees its value, order what stands before the first fence and what stands behind
//! the second. [`store_release`](AtomicRef::store_release) and
//! [`load_acquire`](AtomicRef::load_acquire) have the fence with them.

use std::{marker::PhantomData, panic::Location};

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use crate::cpu::{
    access::Access,
    block::{self, wait_for},
    check::{AtomicOrder, Effect},
    cluster::Wait,
    flag::FlagWait,
    poll,
};
use crate::{
    Atomic,
    atomic::{AtomicChange, AtomicInteger},
    cpu::mode::Mode,
};

/// An element that threads access by atomic operations.
///
/// Among atomic operations on one element there is no race. Each gives the element's old value.
#[derive(Clone, Copy, Debug)]
pub struct AtomicRef<'a, T, M: Mode> {
    place: *mut T,
    of: Of<M>,
    view: PhantomData<&'a ()>,
}

/// Where the element is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of<M: Mode> {
    Global(M::Global),
    /// An element of a shared array, with its index.
    Shared(M::Shared, usize),
    /// It is outside, which has been reported: the place is some other memory.
    Outside,
}

impl<T, M: Mode> AtomicRef<'_, T, M> {
    /// # Safety
    /// 1. `place` is an element that lives as long as the kernel runs, `of` what it says.
    #[inline(always)]
    pub(super) unsafe fn new(place: *mut T, of: Of<M>) -> Self {
        AtomicRef { place, of, view: PhantomData }
    }
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<T: Atomic, M: Mode> AtomicRef<'_, T, M> {
    /// Its value. The compiler neither leaves the access out nor repeats it.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self) -> T {
        // SAFETY: `new`, and so for all below: others access it atomically, or a checked launch
        // reports a race.
        self.apply(Access::Atomic, AtomicOrder::Relaxed, |place| unsafe {
            (T::atomic_load::<false>(place), Effect::Read)
        })
    }

    /// Its value. This thread then sees what stands before the release of that value (PTX
    /// `ld.acquire.gpu`).
    #[inline(always)]
    #[track_caller]
    pub fn load_acquire(&self) -> T {
        // SAFETY: as above.
        self.apply(Access::Atomic, AtomicOrder::Acquire, |place| unsafe {
            (T::atomic_load::<true>(place), Effect::Read)
        })
    }

    /// Writes it.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, value: T) {
        // SAFETY: as above.
        self.apply(Access::AtomicStore, AtomicOrder::Relaxed, |place| unsafe {
            T::atomic_store::<false>(place, value);
            ((), Effect::Store)
        });
    }

    /// Writes it. Who acquires this value sees what this thread has written and has seen (PTX
    /// `st.release.gpu`).
    #[inline(always)]
    #[track_caller]
    pub fn store_release(&self, value: T) {
        // SAFETY: as above.
        self.apply(Access::AtomicStore, AtomicOrder::Release, |place| unsafe {
            T::atomic_store::<true>(place, value);
            ((), Effect::Store)
        });
    }

    /// Adds `value`. The order in which threads add is not fixed, so a sum of floats may differ
    /// from run to run.
    #[inline(always)]
    #[track_caller]
    pub fn add(&self, value: T) -> T {
        // SAFETY: as above.
        self.apply(Access::Atomic, AtomicOrder::Relaxed, |place| unsafe {
            (T::atomic_add(place, value), Effect::Update)
        })
    }

    /// Writes `value`.
    #[inline(always)]
    #[track_caller]
    pub fn exchange(&self, value: T) -> T {
        // SAFETY: as above.
        self.apply(Access::Atomic, AtomicOrder::Relaxed, |place| unsafe {
            (T::atomic_exchange(place, value), Effect::Update)
        })
    }

    /// Writes `value` if its bits are those of `expected`.
    #[inline(always)]
    #[track_caller]
    pub fn compare_exchange(&self, expected: T, value: T) -> T {
        self.apply(Access::Atomic, AtomicOrder::Relaxed, |place| {
            // SAFETY: as above.
            let old = unsafe { T::atomic_compare_exchange(place, expected, value) };
            (old, if old.has_bits_of(expected) { Effect::Update } else { Effect::Read })
        })
    }

    /// Writes the lesser of it and `value`.
    #[inline(always)]
    #[track_caller]
    pub fn min(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::Min, value)
    }

    /// Writes the greater of it and `value`.
    #[inline(always)]
    #[track_caller]
    pub fn max(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::Max, value)
    }

    /// Writes the bits that both it and `value` have.
    #[inline(always)]
    #[track_caller]
    pub fn and(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::And, value)
    }

    /// Writes the bits that it or `value` has.
    #[inline(always)]
    #[track_caller]
    pub fn or(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::Or, value)
    }

    /// Writes the bits that one of it and `value` has.
    #[inline(always)]
    #[track_caller]
    pub fn xor(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::Xor, value)
    }

    #[inline(always)]
    #[track_caller]
    fn change(&self, change: AtomicChange, value: T) -> T
    where
        T: AtomicInteger,
    {
        // SAFETY: as above.
        self.apply(Access::Atomic, AtomicOrder::Relaxed, |place| unsafe {
            (T::atomic_change(place, change, value), Effect::Update)
        })
    }

    /// Adds `value`, with release semantics.
    #[inline(always)]
    #[track_caller]
    pub(super) fn release_add(&self, value: T) {
        // SAFETY: as above. No access before it is moved behind it.
        self.apply(Access::Atomic, AtomicOrder::Release, |place| unsafe {
            std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
            (T::atomic_add(place, value), Effect::Update)
        });
    }

    #[inline(always)]
    #[track_caller]
    fn apply<R>(
        &self,
        access: Access,
        order: AtomicOrder,
        act: impl FnOnce(*mut T) -> (R, Effect),
    ) -> R {
        // SAFETY: inside, as whoever made this has checked.
        unsafe {
            match self.of {
                Of::Global(tag) => M::global(tag, self.place, 1, access),
                Of::Shared(tag, index) => M::shared::<T>(tag, index, 1, access),
                Of::Outside => {}
            }
        }
        let result = match block::checker() {
            None => act(self.place).0,
            Some(checker) => {
                let is_shared = matches!(self.of, Of::Shared(..));
                let word = (self.place.addr(), size_of::<T>());
                checker.atomic(word, is_shared, order, || act(self.place))
            }
        };
        poll::count_atomic(Location::caller());
        result
    }
}

/// Waits until a flag has reached a value.
#[cfg(feature = "cpu")]
pub(super) fn wait_for_at_least(
    place: *mut u32,
    at_least: u32,
    location: &'static Location<'static>,
) {
    let wait = FlagWait { address: place.addr(), at_least };
    if !wait.is_over() {
        wait_for(Wait::Flag(wait), location);
    }
    if let Some(checker) = block::checker() {
        checker.acquire(place.addr(), at_least);
    }
}
