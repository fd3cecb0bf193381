//! The mode of a fast launch: bounds are checked, and nothing else.

#[cfg(feature = "cpu")]
use std::panic::Location;

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

use super::mode::{self, Mode};
#[cfg(feature = "cpu")]
use super::{
    access::{Access, Refused, end},
    block::{copy_origin, current_cluster, in_block, ranks},
    boxes::GlobalBox,
    check::Array,
    cluster::Place,
};

/// Bounds are checked, and an access out of bounds ends the launch. Asynchronous operations
/// complete where they begin.
#[derive(Clone, Copy, Debug)]
pub enum Fast {}

impl mode::sealed::Sealed for Fast {}

#[cfg_attr(not(feature = "cpu"), signatures(types))]
impl Mode for Fast {
    type Global = ();
    type Shared = ();
    const WATCHED: bool = false;
    const WRITTEN: () = ();
    const UNWRITTEN: () = ();

    #[inline(always)]
    unsafe fn shared_array(_: *const Array) {}

    #[inline(always)]
    unsafe fn global<T>(_: (), _: *const T, _: usize, _: Access) {}

    #[inline(always)]
    unsafe fn shared<T>(_: (), _: usize, _: usize, _: Access) {}

    #[inline(always)]
    fn global_at(_: *const u8, _: &'static str) {}

    #[inline(always)]
    fn refuse_global<T>(_: (), refused: Refused, _: Access) -> *mut T {
        end(refused)
    }

    #[inline(always)]
    fn refuse_shared<T>(_: (), refused: Refused, _: Access) -> *mut T {
        end(refused)
    }

    // The hardware may complete the copy at once, too.
    #[inline(always)]
    unsafe fn copy_async<T: Copy, const N: usize>(_: (), place: *mut T, _: usize, values: [T; N]) {
        // SAFETY: inside, as the caller promises.
        unsafe { *place.cast() = values }
    }

    #[inline(always)]
    fn commit_group() {}

    #[inline(always)]
    fn wait_group(_: u32) {}

    // At once, as in `copy_async`.
    #[track_caller]
    unsafe fn load_box(
        _: ((), usize),
        _: (),
        to: *mut u8,
        source: GlobalBox,
        (_, done): Place,
        blocks: u16,
    ) {
        let bytes = source.bytes() as u32; // at most 256 x 256 elements
        let origin = copy_origin(Location::caller());
        for rank in ranks(blocks) {
            // SAFETY: inside, as the caller promises; each block's shared memory is as large.
            unsafe { source.load(in_block(to, rank)) };
            if let Err(reason) = current_cluster().complete((rank, done), bytes, origin) {
                panic!("{reason}");
            }
        }
    }

    // At once, as in `copy_async`.
    unsafe fn store_box(_: ((), usize), _: (), from: *const u8, target: GlobalBox) {
        // SAFETY: inside, as the caller promises; a worker does one thing at a time, so that nobody
        // writes there meanwhile.
        unsafe { target.store(std::slice::from_raw_parts(from, target.extent()), from.addr()) };
    }

    #[inline(always)]
    fn remote(_: u32, _: Access) {}
}
