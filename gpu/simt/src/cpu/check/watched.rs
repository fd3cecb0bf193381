//! The mode of a checked launch: the checker observes every access.

use std::{cell::Cell, panic::Location, ptr::null, sync::atomic::Ordering};

use super::{
    checker::{Checker, PROFILED_BLOCKS},
    copies::AsyncCopy,
    findings::{MemoryId, memory_of},
    global::Buffer,
    profile::Operation,
    shared::Array,
};
use crate::cpu::{
    access::{Access, Refused},
    block::{self, copy_origin, in_block, ranks},
    boxes::GlobalBox,
    cluster::{BoxCopy, Place},
    mode::{self, Mode},
};

/// Every access is checked. Errors are reported, and the launch goes on.
#[derive(Clone, Copy, Debug)]
pub enum Watched {}

/// A shared array's shadow, with what the fast path of a saturated read needs.
#[derive(Clone, Copy, Debug)]
pub struct SharedTag {
    array: *const Array,
    saturated: *const [Cell<u32>],
    saturated_clock: *const Cell<u32>,
}

/// A buffer's shadow, which is null before the launch; and whether the buffer's elements hold
/// values at the launch.
#[derive(Clone, Copy, Debug)]
pub struct GlobalTag {
    pub(super) buffer: *const Buffer,
    pub(super) written: bool,
}

/// The checker of the running thread. Panics in a fast launch.
fn checker() -> &'static Checker<'static> {
    block::checker().expect(
        "the kernel is compiled against simt::checked: launch it with simt::check::launch, and for a \
         fast launch compile it against simt::device",
    )
}

impl mode::sealed::Sealed for Watched {}

impl Mode for Watched {
    type Global = GlobalTag;
    type Shared = SharedTag;
    const WATCHED: bool = true;
    const WRITTEN: GlobalTag = GlobalTag { buffer: null(), written: true };
    const UNWRITTEN: GlobalTag = GlobalTag { buffer: null(), written: false };

    unsafe fn shared_array(array: *const Array) -> SharedTag {
        let saturated_clock = checker().saturated_clock();
        // SAFETY: with a checker there is an array, which lives as long as the launch.
        let saturated = std::ptr::from_ref(&*unsafe { &*array }.saturated);
        SharedTag { array, saturated, saturated_clock }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn global<T>(tag: GlobalTag, address: *const T, count: usize, access: Access) {
        let bytes = count * size_of::<T>();
        if bytes == 0 {
            return;
        }
        // SAFETY: null, or a buffer that lives as long as the launch.
        let Some(buffer) = (unsafe { tag.buffer.as_ref() }) else {
            return no_launch();
        };
        if access == Access::Read && buffer.is_saturated(address.addr(), bytes) && !is_profiling() {
            return;
        }
        global_access(buffer, address.addr(), bytes, access, Location::caller());
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn shared<T>(tag: SharedTag, index: usize, count: usize, access: Access) {
        let (offset, bytes) = (index * size_of::<T>(), count * size_of::<T>());
        if bytes == 0 {
            return;
        }
        if access == Access::Read {
            // SAFETY: the checker and the array live as long as the launch.
            let (clock, saturated) = unsafe { ((*tag.saturated_clock).get(), &*tag.saturated) };
            // None where another block of the cluster has a shorter array there.
            let words = saturated.get(offset / 4..offset / 4 + bytes.div_ceil(4));
            let are_saturated = |words: &[Cell<u32>]| words.iter().all(|word| word.get() == clock);
            if (offset.is_multiple_of(4) || bytes < 4) && words.is_some_and(are_saturated) {
                return;
            }
        }
        // SAFETY: lives as long as the launch.
        shared_access(unsafe { &*tag.array }, offset, bytes, access, Location::caller());
    }

    fn global_at(address: *const u8, name: &'static str) -> GlobalTag {
        let holds = |b: &&Buffer| (b.address..b.address + b.bytes).contains(&address.addr());
        match checker().buffers().iter().find(holds) {
            Some(buffer) => GlobalTag { buffer, written: true },
            None => panic!(
                "the variable {name}, or the buffer that it points to, is unknown to the checker: name it in \
                 check::Options::memory"
            ),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse_global<T>(tag: GlobalTag, refused: Refused, access: Access) -> *mut T {
        let checker = checker();
        // SAFETY: null, or a buffer that lives as long as the launch.
        let number = unsafe { tag.buffer.as_ref() }
            .and_then(|buffer| checker.buffers().iter().position(|b| std::ptr::eq(b, buffer)));
        let memory = number.map(MemoryId::Global);
        let bytes = size_of::<T>().max(16);
        checker.refuse(memory, refused, bytes, access, Location::caller()).cast()
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse_shared<T>(tag: SharedTag, refused: Refused, access: Access) -> *mut T {
        // SAFETY: lives as long as the launch.
        let memory = Some(memory_of(unsafe { &*tag.array }));
        let bytes = size_of::<T>().max(16);
        checker().refuse(memory, refused, bytes, access, Location::caller()).cast()
    }

    #[inline(never)]
    #[track_caller]
    unsafe fn copy_async<T: Copy, const N: usize>(
        tag: SharedTag,
        place: *mut T,
        index: usize,
        values: [T; N],
    ) {
        let (offset, bytes) = (index * size_of::<T>(), N * size_of::<T>());
        let mut data = [0; 16];
        // SAFETY: at most sixteen bytes; the array lives as long as the launch.
        let array = unsafe {
            let values = std::ptr::from_ref(&values).cast::<u8>();
            data[..bytes].copy_from_slice(std::slice::from_raw_parts(values, bytes));
            &*tag.array
        };
        let place = place.cast();
        let copy = AsyncCopy { array, offset, bytes, place, data, begun_at: Location::caller() };
        checker().begin_copy(copy);
    }

    #[track_caller]
    fn commit_group() {
        checker().commit_group();
    }

    #[track_caller]
    fn wait_group(pending: u32) {
        checker().wait_group(pending);
    }

    #[inline(never)]
    #[track_caller]
    unsafe fn load_box(
        (array, offset): (SharedTag, usize),
        global: GlobalTag,
        to: *mut u8,
        source: GlobalBox,
        (_, done): Place,
        blocks: u16,
    ) {
        let place = Location::caller();
        // SAFETY: lives as long as the launch; the buffer too, where there is one.
        let (array, buffer) = unsafe { (&*array.array, global.buffer.as_ref()) };
        let Some(buffer) = buffer else { return no_launch() };
        let number = block::current().number;
        for part in source.parts() {
            let bytes = (part.addr(), source.cols_inside * source.element);
            checker().count(place);
            checker().global_by((number, None), buffer, bytes, Access::Read, place);
        }
        let copied = (&source, array.offset + offset, ranks(blocks).count());
        checker().copied(buffer, copied, Operation::TmaLoad, place);
        let to_offset = (array.offset + offset) as u32; // below 227 KiB
        let origin = copy_origin(place);
        for rank in ranks(blocks) {
            let array = checker().array_of_block(rank, to_offset);
            let (array, offset) = array.expect("this block has one there, so each has");
            // SAFETY: as above.
            let array = unsafe { &*array };
            assert_inside(array, (offset, source.extent()));
            let (to, done) = (in_block(to, rank), (rank, done));
            let copy = BoxCopy { source, to, to_place: (rank, to_offset), done, origin };
            checker().begin_box(array, offset, copy);
        }
    }

    #[inline(never)]
    #[track_caller]
    unsafe fn store_box(
        (array, offset): (SharedTag, usize),
        global: GlobalTag,
        from: *const u8,
        target: GlobalBox,
    ) {
        // SAFETY: as in `load_box`.
        let (array, buffer) = unsafe { (&*array.array, global.buffer.as_ref()) };
        let Some(buffer) = buffer else { return no_launch() };
        checker().begin_store((array, offset), buffer, (from, target), Location::caller());
    }

    #[track_caller]
    fn remote(rank: u32, access: Access) {
        let what = if access == Access::Write { "a write" } else { "a read" };
        checker().use_remote(rank, what, Location::caller());
    }
}

/// Observes a fused multiply-add. Gives whether there is nothing to observe, and an instruction for
/// it.
#[inline(always)]
#[track_caller]
pub(in crate::cpu) fn is_plain_fma() -> bool {
    let is_plain = PROFILED_BLOCKS.load(Ordering::Relaxed) == 0;
    if !is_plain {
        count_fma(Location::caller());
    }
    is_plain
}

/// Whether the running thread's block is profiled or traced.
#[inline(always)]
pub(super) fn is_profiling() -> bool {
    PROFILED_BLOCKS.load(Ordering::Relaxed) != 0 && block_is_profiled()
}

#[inline(never)]
fn block_is_profiled() -> bool {
    block::checker().is_some_and(Checker::is_profiling)
}

#[inline(never)]
fn count_fma(place: &'static Location<'static>) {
    if let Some(checker) = block::checker() {
        checker.fma(place);
    }
}

#[cold]
#[track_caller]
fn no_launch() {
    checker(); // panics where there is none, with what to do
    panic!("the view belongs to no launch: pass it as a parameter of the kernel");
}

/// Out of line: only the decision whether there is anything to do is inlined into a kernel.
#[inline(never)]
fn global_access(
    buffer: &Buffer,
    address: usize,
    bytes: usize,
    access: Access,
    place: &'static Location<'static>,
) {
    let checker = checker();
    checker.count(place);
    if access != Access::Read || !checker.is_free_read(buffer, (address, bytes)) {
        checker.global(buffer, (address, bytes), access, place);
    }
}

#[inline(never)]
fn shared_access(
    array: &Array,
    offset: usize,
    bytes: usize,
    access: Access,
    place: &'static Location<'static>,
) {
    let checker = checker();
    checker.count(place);
    assert_inside(array, (offset, bytes));
    checker.shared(array, (offset, bytes), access, place);
}

/// Panics where the bytes are outside the array: another block of the cluster may have a shorter
/// array there than this block.
fn assert_inside(array: &Array, (offset, bytes): (usize, usize)) {
    let (len, end, rank) = (array.bytes(), offset + bytes, array.rank);
    assert!(
        end <= len,
        "bytes {offset} to {end} of a shared array that has {len} in the block of rank {rank} of the cluster"
    );
}
