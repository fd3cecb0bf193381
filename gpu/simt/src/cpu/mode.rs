//! How a kernel's accesses are carried out: bounds-checked and no more, or watched.
//!
//! The views and the shared arrays are written once, generic in their [`Mode`]. [`Fast`] is what
//! [`device`](super::device) names, [`Watched`](super::check::Watched) what [`checked`](crate::checked)
//! names; a kernel is compiled against one or the other, so that the fast version holds no trace of the
//! checks.

use std::{fmt::Debug, panic::Location};

use super::{
    block::{current, current_cluster, shared_base},
    boxes::GlobalBox,
    check,
    cluster::{Begun, Place},
};

/// What a thread does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A read and a write that nothing comes between.
    Atomic,
}

/// An access that is not carried out.
#[derive(Clone, Copy, Debug)]
pub enum Refused {
    /// Outside a buffer or an array.
    Outside {
        /// The first element.
        index: usize,
        /// How many elements.
        count: usize,
        /// How many there are.
        len: usize,
    },
    /// Outside a shared array that is indexed by row and column.
    Outside2d {
        /// Row and column.
        index: (usize, usize),
        /// Rows and columns.
        shape: (usize, usize),
    },
    /// An access to several elements at an address that is no multiple of their bytes.
    Misaligned {
        /// The first element.
        index: usize,
        /// Bytes of all.
        bytes: usize,
    },
    /// A box that begins where the tensor memory accelerator cannot begin.
    BoxColumn {
        /// The first column.
        col: u32,
        /// Bytes of an element.
        element: usize,
    },
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match *self {
            Refused::Outside { index, count: 1, len } => {
                write!(f, "index {index} is outside: there are {len} elements")
            }
            Refused::Outside { index, count, len } => write!(
                f,
                "{count} elements from index {index} on are outside: there are {len} elements"
            ),
            Refused::Outside2d { index, shape } => write!(
                f,
                "index {index:?} is outside: the shared array has {shape:?} rows and columns"
            ),
            Refused::Misaligned { index, bytes } => {
                let bits = 8 * bytes;
                write!(f, "{bits}-bit access at index {index}: not {bytes}-byte aligned")
            }
            Refused::BoxColumn { col, element } => write!(
                f,
                "a box that begins at column {col} of elements of {element} bytes: it must begin at a multiple \
                 of sixteen bytes of the row"
            ),
        }
    }
}

/// An array in shared memory, as it is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayDeclaration {
    /// Bytes of an element.
    pub element: usize,
    /// Rows and columns; of dynamic shared memory its elements and 1.
    pub shape: (usize, usize),
    /// Is it the memory whose size the launch gives?
    pub dynamic: bool,
    /// Where it is declared.
    pub place: &'static Location<'static>,
}

/// How a kernel's accesses are carried out.
///
/// Each method that sees an access learns the kernel's line through `#[track_caller]`.
pub trait Mode: Copy + Debug + 'static {
    /// What a view of global memory carries along.
    type Global: Copy + Debug;
    /// What a shared array carries along.
    type Shared: Copy + Debug;
    /// Whether accesses are reported to the checker.
    const WATCHED: bool;
    /// What a view carries that belongs to no launch yet, and whose elements hold values.
    const WRITTEN: Self::Global;
    /// The same of one whose elements do not.
    const UNWRITTEN: Self::Global;

    /// What a shared array carries that the worker has just set aside.
    ///
    /// # Safety
    /// 1. `array` is what the worker gave: null, or valid as long as the launch.
    unsafe fn shared_array(array: *const check::Array) -> Self::Shared;

    /// Sees an access to `count` elements of global memory at `address`, all inside the view.
    ///
    /// # Safety
    /// 1. They are inside.
    #[track_caller]
    unsafe fn global<T>(tag: Self::Global, address: *const T, count: usize, access: Access);

    /// Sees an access to `count` elements of a shared array from `index` on, all inside the array.
    ///
    /// # Safety
    /// 1. They are inside.
    #[track_caller]
    unsafe fn shared<T>(tag: Self::Shared, index: usize, count: usize, access: Access);

    /// What a view of global memory at that address carries, which the kernel itself makes: of the variable
    /// of that name, or of what it points to.
    fn global_at(address: *const u8, name: &'static str) -> Self::Global;

    /// Takes note of an access to global memory that cannot be carried out, and gives the address of as
    /// many elements that may be used in its stead.
    #[track_caller]
    fn refuse_global<T>(tag: Self::Global, refused: Refused, access: Access) -> *mut T;

    /// The same for a shared array.
    #[track_caller]
    fn refuse_shared<T>(tag: Self::Shared, refused: Refused, access: Access) -> *mut T;

    /// Begins an asynchronous copy of `values` to a shared array, from `index` on, all inside the array.
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

    /// The copies that this thread has begun since the last call become a group.
    #[track_caller]
    fn commit_group();

    /// Waits until at most the last `pending` groups of this thread's copies are on their way.
    #[track_caller]
    fn wait_group(pending: u32);

    /// Begins to copy a box from global memory to a shared array, from a byte of it on, all inside the array; the
    /// mbarrier `done` is told when it has come. All this in each block of the cluster whose bit of `blocks` is set.
    ///
    /// # Safety
    /// 1. It is inside, `to` is the address of its first byte in this block, and the source is valid.
    #[track_caller]
    unsafe fn load_box(
        array: (Self::Shared, usize),
        global: Self::Global,
        to: *mut u8,
        source: GlobalBox,
        done: Place,
        blocks: u16,
    );

    /// Begins to copy from a shared array, from a byte of it on, all inside the array, to a box of global memory.
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

    /// Sees an access to the shared memory of the block of that rank.
    #[track_caller]
    fn remote(rank: u32, access: Access);

    /// Sees a fused multiply-add.
    #[track_caller]
    fn fma();
}

/// Bounds are checked, and an access outside ends the launch.
#[derive(Clone, Copy, Debug)]
pub enum Fast {}

impl Mode for Fast {
    type Global = ();
    type Shared = ();
    const WATCHED: bool = false;
    const WRITTEN: () = ();
    const UNWRITTEN: () = ();

    #[inline(always)]
    unsafe fn shared_array(_: *const check::Array) {}

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

    // At once, which is one of the times that the hardware may choose.
    #[inline(always)]
    unsafe fn copy_async<T: Copy, const N: usize>(_: (), place: *mut T, _: usize, values: [T; N]) {
        // SAFETY: inside, as the caller promises.
        unsafe { *place.cast() = values }
    }

    #[inline(always)]
    fn commit_group() {}

    #[inline(always)]
    fn wait_group(_: u32) {}

    // At once, as `copy_async`.
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
        let begun = Begun { thread: current(), at: Location::caller() };
        for rank in ranks(blocks) {
            // SAFETY: inside, as the caller promises; each block's shared memory is as large.
            unsafe { source.load(in_block(to, rank)) };
            if let Err(reason) = current_cluster().complete((rank, done), bytes, begun) {
                panic!("{reason}");
            }
        }
    }

    // At once, as `copy_async`.
    unsafe fn store_box(_: ((), usize), _: (), from: *const u8, target: GlobalBox) {
        // SAFETY: inside, as the caller promises; a worker does one thing at a time, so that nobody writes there meanwhile.
        unsafe { target.store(std::slice::from_raw_parts(from, target.extent()), from.addr()) };
    }

    #[inline(always)]
    fn remote(_: u32, _: Access) {}

    #[inline(always)]
    fn fma() {}
}

/// The ranks of the blocks whose bits are set.
pub(super) fn ranks(blocks: u16) -> impl Iterator<Item = u32> {
    (0..u16::BITS).filter(move |rank| blocks >> rank & 1 == 1)
}

/// The same place of the shared memory of the block of that rank in this cluster.
pub(super) fn in_block(place: *mut u8, rank: u32) -> *mut u8 {
    current_cluster().shared(rank).wrapping_add(place.addr() - shared_base().addr())
}

/// Ends the launch. That this does not return must be seen where it is called: a loop with a way back from
/// here is not unrolled. And its arguments are plain numbers, because a `Refused` would take room on the stack of
/// every thread, and that room costs time at every barrier.
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
