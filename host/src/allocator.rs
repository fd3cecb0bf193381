//! The command's allocator: the system's. When memory runs out, the command ends with an error
//! message.
//!
//! Allocations that grow with a problem return an error if they fail ([`host::memory`]). This
//! allocator serves the rest: small allocations, and those of other crates. If one of these fails,
//! the standard library aborts the process.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fmt::{self, Write},
    io, ptr,
};

pub(crate) struct Allocator;

// SAFETY: every function passes the caller's arguments to the system's allocator, or does not
// return.
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

/// The C library reserves 64 MiB of address space for each thread's small allocations. If address
/// space is limited, threads share them.
#[cfg(target_env = "gnu")]
pub(crate) fn share_what_is_limited() {
    if simt::cpu::address_space_is_limited() {
        // SAFETY: no other thread runs yet. The call fails for unknown parameters only.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// The C library and the standard library abort if they have no memory for themselves. From now on
/// such a process ends as with [`end`].
pub(crate) fn end_in_order_on_abort() -> io::Result<()> {
    let or_go_on = || {
        // SAFETY: an anonymous mapping at an address that the system selects. Nobody uses it.
        let some = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(ptr::null_mut(), LITTLE, libc::PROT_READ, flags, -1, 0)
        };
        match some == libc::MAP_FAILED {
            true => end(format_args!("fewer than {LITTLE} bytes are left")),
            // The process aborted for another reason, and dies. SAFETY: mapped above, and used by
            // nobody.
            false => drop(unsafe { libc::munmap(some, LITTLE) }),
        }
    };
    // SAFETY: the handler allocates nothing, takes no lock, and does not unwind.
    unsafe { signal_hook::low_level::register(signal_hook::consts::SIGABRT, or_go_on) }.map(drop)
}

/// If this many bytes cannot be mapped, the process is out of memory. The C library takes more for
/// a thread.
const LITTLE: usize = 256 * 1024;

/// Reports the missing bytes, and ends the process with the exit code of
/// [`host::Error::OutOfMemory`]. It allocates nothing and runs no destructors, because these might
/// need memory.
#[cold]
fn end(what: fmt::Arguments) -> ! {
    let mut line = Line { text: [0; 96], len: 0 };
    let _ = writeln!(line, "error: out of memory: {what}");
    // SAFETY: the text has this many bytes. `_exit` has no condition.
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
