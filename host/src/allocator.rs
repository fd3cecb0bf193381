//! The command's allocator: the system's, and an end in one line where there is no memory.
//!
//! What grows with a problem is allocated so that its absence is an error ([`host::memory`]). What is left are small things, and
//! those of other crates; for these the standard library ends a process by an abort.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fmt::{self, Write},
    io, ptr,
};

pub(crate) struct Allocator;

// SAFETY: every function is the system's allocator's with the caller's arguments, or does not return.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_end(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_end(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_end(unsafe { System.realloc(start, layout, size) }, size)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

fn or_end(start: *mut u8, bytes: usize) -> *mut u8 {
    if start.is_null() && !host::memory::allocation_may_fail() {
        end(format_args!("the system does not give {bytes} bytes more"));
    }
    start
}

/// The C library reserves 64 MiB of address space for the small things of each thread. Where address space is limited, threads share.
#[cfg(target_env = "gnu")]
pub(crate) fn share_what_is_limited() {
    if simt::cpu::address_space_is_limited() {
        // SAFETY: no other thread runs yet. It fails for unknown parameters alone.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// The C library and the standard library end a process by an abort where they find no memory for something of their own. From now on
/// such an end is like those of [`end`].
pub(crate) fn end_in_order_on_abort() -> io::Result<()> {
    let or_go_on = || {
        // SAFETY: an anonymous mapping at an address of the system's choice, which nobody uses.
        let some = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(ptr::null_mut(), LITTLE, libc::PROT_READ, flags, -1, 0)
        };
        match some == libc::MAP_FAILED {
            true => end(format_args!("fewer than {LITTLE} bytes are left")),
            // Of other reasons whoever aborts dies.
            // SAFETY: mapped above, and used by nobody.
            false => drop(unsafe { libc::munmap(some, LITTLE) }),
        }
    };
    // SAFETY: what is called in the handler allocates nothing, takes no lock, and does not unwind.
    unsafe { signal_hook::low_level::register(signal_hook::consts::SIGABRT, or_go_on) }.map(drop)
}

/// Bytes without which a process is out of memory: fewer than the C library takes for a thread.
const LITTLE: usize = 256 * 1024;

/// Says what is missing, and ends the process with the exit code of [`host::Error::OutOfMemory`]. Nothing is allocated meanwhile, and
/// nothing is done in order: whatever would be, might need memory.
#[cold]
fn end(what: fmt::Arguments) -> ! {
    let mut line = Line { text: [0; 96], len: 0 };
    let _ = writeln!(line, "error: out of memory: {what}");
    // SAFETY: so many bytes of the text are there. `_exit` has no condition.
    unsafe {
        libc::write(2, line.text.as_ptr().cast(), line.len);
        libc::_exit(4)
    }
}

/// Text of a fixed length.
struct Line {
    text: [u8; 96],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}
