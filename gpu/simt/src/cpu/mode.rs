//! How a kernel's accesses are carried out: only bounds-checked, or observed by the checker.
//!
//! The views and the shared arrays are written once, generic in their [`Mode`].
//! [`device`](super::device) uses [`Fast`](super::fast::Fast), [`checked`](crate::checked) uses
//! [`Watched`](super::check::Watched). A kernel is compiled against each, so that the fast version
//! contains no trace of the checks.

use std::fmt::Debug;

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use super::{
    access::{Access, Refused},
    boxes::GlobalBox,
    check::Array,
    cluster::Place,
};

/// How a kernel's accesses are carried out.
///
/// The methods learn the access's place in the kernel through `#[track_caller]`.
///
/// Sealed: an access that was refused is carried out where `refuse_global` or `refuse_shared` says.
#[cfg_attr(not(feature = "cpu"), signatures(types))]
pub trait Mode: Copy + Debug + sealed::Sealed + 'static {
    /// What a view of global memory carries for the checker.
    type Global: Copy + Debug;
    /// What a shared array carries for the checker.
    type Shared: Copy + Debug;
    /// Whether accesses are reported to the checker.
    const WATCHED: bool;
    /// The tag of a view that belongs to no launch yet, and whose elements hold values.
    const WRITTEN: Self::Global;
    /// The tag of a view that belongs to no launch yet, and whose elements hold no values.
    const UNWRITTEN: Self::Global;

    /// The tag of a shared array.
    ///
    /// # Safety
    /// 1. `array` is what `declare_shared` gave: null, or valid as long as the launch.
    unsafe fn shared_array(array: *const Array) -> Self::Shared;

    /// Observes an access to `count` elements of global memory at `address`, all inside the view.
    ///
    /// # Safety
    /// 1. They are inside.
    #[track_caller]
    unsafe fn global<T>(tag: Self::Global, address: *const T, count: usize, access: Access);

    /// Observes an access to `count` elements of a shared array from `index` on, all inside the
    /// array.
    ///
    /// # Safety
    /// 1. They are inside.
    #[track_caller]
    unsafe fn shared<T>(tag: Self::Shared, index: usize, count: usize, access: Access);

    /// The tag of a view that the kernel itself makes: of the variable `name`, or of the buffer
    /// that it points to.
    fn global_at(address: *const u8, name: &'static str) -> Self::Global;

    /// Refuses an access to global memory: ends the launch, or reports the access and gives the
    /// address of memory to use instead.
    #[track_caller]
    fn refuse_global<T>(tag: Self::Global, refused: Refused, access: Access) -> *mut T;

    /// Refuses an access to a shared array in the same way.
    #[track_caller]
    fn refuse_shared<T>(tag: Self::Shared, refused: Refused, access: Access) -> *mut T;

    /// Begins an asynchronous copy (`cp.async`) of `values` to a shared array, from `index` on, all
    /// inside the array.
    ///
    /// # Safety
    /// 1. They are inside, and `place` is the address of the first.
    #[track_caller]
    unsafe fn copy_async<T: Copy, const N: usize>(
        tag: Self::Shared,
        place: *mut T,
        index: usize,
        values: [T; N],
    );

    /// Makes a group of the asynchronous copies that this thread has begun since the last call.
    #[track_caller]
    fn commit_group();

    /// Waits until at most the last `pending` groups of this thread's copies are in flight.
    #[track_caller]
    fn wait_group(pending: u32);

    /// Begins a TMA copy of a box from global memory to a shared array, from a byte of it on, all
    /// inside the array. It completes its bytes at the mbarrier `done`. The copy goes to each block
    /// of the cluster whose bit of `blocks` is set.
    ///
    /// # Safety
    /// 1. It is inside, `to` is the address of its first byte in this block, and the source is
    ///    valid.
    #[track_caller]
    unsafe fn load_box(
        array: (Self::Shared, usize),
        global: Self::Global,
        to: *mut u8,
        source: GlobalBox,
        done: Place,
        blocks: u16,
    );

    /// Begins a TMA copy from a shared array, from a byte of it on, all inside the array, to a box
    /// of global memory.
    ///
    /// # Safety
    /// 1. It is inside, `from` is the address of its first byte, and the target is valid.
    #[track_caller]
    unsafe fn store_box(
        array: (Self::Shared, usize),
        global: Self::Global,
        from: *const u8,
        target: GlobalBox,
    );

    /// Observes an access to the shared memory of the block of that rank.
    #[track_caller]
    fn remote(rank: u32, access: Access);
}

pub(in crate::cpu) mod sealed {
    pub trait Sealed {}
}
