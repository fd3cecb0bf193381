//! Bulk copies without a tensor map, and bulk groups: groups of TMA copies from shared to global
//! memory, which [`DynamicShared`](super::DynamicShared) begins (PTX ISA, "Bulk async-group").
//!
//! A fast launch on the CPU carries out a copy where it begins, as the hardware may. A checked
//! launch reads shared memory at some time before the thread's wait for that ends, and writes
//! global memory at some later time before the wait for that ends.

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use super::memory::is_bulk_allowed;
use super::{
    arrays::DynamicShared,
    mbarrier::Mbarrier,
    memory::views::{In, Out},
};
#[cfg(feature = "cpu")]
use crate::cpu::{access::Access, block, boxes::GlobalBox};
use crate::{Element, cpu::mode::Mode};

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<T: Element, M: Mode> DynamicShared<T, M> {
    /// Begins a bulk copy (`cp.async.bulk`, without a tensor map) of `count` elements from
    /// element `from` of `source` to the elements from `index` on. Both addresses, and the
    /// bytes, are multiples of 16. The copy is asynchronous. It completes its bytes at the
    /// mbarrier `done`.
    #[track_caller]
    pub fn load_bulk(
        &mut self,
        index: usize,
        source: &In<T, M>,
        from: usize,
        count: usize,
        done: Mbarrier,
    ) {
        let Some(first) = source.bulk(from, count, Access::Read) else { return };
        let offset = index * size_of::<T>();
        if !self.is_bulk_allowed(index, count, Access::Write) {
            return;
        }
        let line = GlobalBox::line(first.cast(), size_of::<T>(), count);
        // SAFETY: both inside, as just checked.
        unsafe {
            let (to, own) = (self.base.add(index).cast(), 1 << block::rank());
            M::load_box((self.tag, offset), source.tag, to, line, done.place(), own);
        }
    }

    /// Begins a bulk copy (`cp.async.bulk`, without a tensor map) of `count` elements from
    /// `index` on to the elements of `target` from `to` on. Both addresses, and the bytes, are
    /// multiples of 16. What [`store_box`](Self::store_box) says of fences and groups holds.
    #[track_caller]
    pub fn store_bulk(&self, index: usize, target: &mut Out<T, M>, to: usize, count: usize) {
        let Some(first) = target.bulk(to, count, Access::Write) else { return };
        let offset = index * size_of::<T>();
        if !self.is_bulk_allowed(index, count, Access::Read) {
            return;
        }
        let line = GlobalBox::line(first.cast(), size_of::<T>(), count);
        // SAFETY: both inside, as just checked.
        unsafe {
            M::store_box((self.tag, offset), target.tag, self.base.add(index).cast(), line);
        }
    }

    /// Whether a bulk copy may access `count` elements from `index` on here; otherwise reports
    /// it.
    #[track_caller]
    fn is_bulk_allowed(&self, index: usize, count: usize, access: Access) -> bool {
        let allowed = is_bulk_allowed(self.base, self.len, index, count);
        if let Err(refused) = allowed {
            M::refuse_shared::<T>(self.tag, refused, access);
        }
        allowed.is_ok()
    }
}

/// Makes a group of the TMA copies to global memory that this thread has begun since the last call.
/// The group may be empty.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn commit_group() {
    if let Some(checker) = block::checker() {
        checker.commit_stores();
    }
}

/// Waits until at most the last `PENDING` of this thread's groups still read shared memory. The
/// sources of the other groups may then be overwritten, and the block may end. Other threads know
/// of that after a barrier.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn wait_group_read<const PENDING: u32>() {
    if let Some(checker) = block::checker() {
        checker.wait_for_stores(PENDING, false);
    }
}

/// Waits until at most the last `PENDING` of this thread's groups are in flight. What the others
/// have copied is then in global memory.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn wait_group<const PENDING: u32>() {
    if let Some(checker) = block::checker() {
        checker.wait_for_stores(PENDING, true);
    }
}
