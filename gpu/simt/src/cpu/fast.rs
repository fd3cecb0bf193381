//! The mode of a fast launch: bounds are checked, and nothing else.

use std::panic::Location;

use super::{
    access::{Access, Refused},
    block::{self, current_cluster, shared_base},
    boxes::GlobalBox,
    check::Array,
    cluster::{CopyOrigin, Place},
    mode::{self, Mode},
};

/// Bounds are checked, and an access out of bounds ends the launch. Asynchronous operations
/// complete where they begin.
#[derive(Clone, Copy, Debug)]
pub enum Fast {}

impl mode::sealed::Sealed for Fast {}

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

    #[inline(always)]
    fn fma() {}
}

/// The origin of a copy that the running thread begins.
pub(super) fn copy_origin(at: &'static Location<'static>) -> CopyOrigin {
    CopyOrigin { block: block::block_index(), thread: block::thread_index(), at }
}

/// The ranks of the blocks whose bits are set.
pub(super) fn ranks(blocks: u16) -> impl Iterator<Item = u32> {
    (0..u16::BITS).filter(move |rank| blocks >> rank & 1 == 1)
}

/// The address in the shared memory of the block of that rank that corresponds to `place` in the
/// running thread's block.
pub(super) fn in_block(place: *mut u8, rank: u32) -> *mut u8 {
    current_cluster().shared(rank).wrapping_add(place.addr() - shared_base().addr())
}

/// Ends the launch. The return type `!` is needed where it is inlined: the compiler does not unroll
/// a loop to which this might return. The functions below take plain numbers, because a `Refused`
/// would take space on the stack of every thread, and that costs time at every barrier.
#[inline(always)]
#[track_caller]
fn end(refused: Refused) -> ! {
    match refused {
        Refused::Outside { index, count, len } => outside(index, count, len),
        Refused::Outside2d { index, shape } => outside_2d(index.0, index.1, shape.0, shape.1),
        Refused::Misaligned { index, bytes } => misaligned(index, bytes),
        Refused::BoxColumn { .. } => panic!("{refused}"),
    }
}

#[cold]
#[track_caller]
fn outside(index: usize, count: usize, len: usize) -> ! {
    panic!("{}", Refused::Outside { index, count, len })
}

#[cold]
#[track_caller]
fn outside_2d(row: usize, col: usize, rows: usize, cols: usize) -> ! {
    panic!("{}", Refused::Outside2d { index: (row, col), shape: (rows, cols) })
}

#[cold]
#[track_caller]
fn misaligned(index: usize, bytes: usize) -> ! {
    panic!("{}", Refused::Misaligned { index, bytes })
}
