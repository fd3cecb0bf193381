//! Copies of rows, and copies that happen later.

use std::ffi::c_int;
use std::sync::Mutex;

use crate::memory::bytes_at;
use crate::settings::{Handle, configured};

/// Copies that have not happened yet. With `late=1` they happen at the next wait or launch,
/// whatever it is for.
static LATER: Mutex<Vec<Later>> = Mutex::new(Vec::new());

/// The addresses of a copy's source and target, and the copy.
type Later = ([usize; 2], Box<dyn FnOnce() + Send>);

pub(crate) fn later(ends: [usize; 2], copy: impl FnOnce() + Send + 'static) -> c_int {
    match configured("late") {
        Some(_) => LATER.lock().unwrap().push((ends, Box::new(copy))),
        None => copy(),
    }
    0
}

/// Whether a copy from or to the allocation at that address has not happened yet. Other threads'
/// copies may be among them.
pub(crate) fn is_awaited(address: usize) -> bool {
    let memory = address..address + bytes_at(address as u64);
    LATER.lock().unwrap().iter().any(|(ends, _)| ends.iter().any(|end| memory.contains(end)))
}

pub(crate) fn catch_up() -> c_int {
    LATER.lock().unwrap().drain(..).for_each(|(_, copy)| copy());
    0
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub(crate) struct Copy2d {
    pub(crate) from: Side2d,
    pub(crate) to: Side2d,
    pub(crate) bytes: usize,
    pub(crate) rows: usize,
}

#[repr(C)]
pub(crate) struct Side2d {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) kind: c_int,
    pub(crate) host: *mut u8,
    pub(crate) device: u64,
    pub(crate) array: Handle,
    pub(crate) pitch: usize,
}

impl Side2d {
    pub(crate) fn start(&self, pitch: usize) -> *mut u8 {
        start(self.kind, self.host, self.device).wrapping_add(self.y * pitch + self.x)
    }
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, which has the same layout.
#[repr(C)]
pub(crate) struct Copy3d {
    pub(crate) from: Side3d,
    pub(crate) to: Side3d,
    pub(crate) bytes: usize,
    pub(crate) rows: usize,
    pub(crate) slices: usize,
}

#[repr(C)]
pub(crate) struct Side3d {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) level: usize,
    pub(crate) kind: c_int,
    pub(crate) host: *mut u8,
    pub(crate) device: u64,
    pub(crate) array: Handle,
    /// Of a copy between two devices. Otherwise reserved.
    pub(crate) context: Handle,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

impl Side3d {
    pub(crate) fn start(&self) -> *mut u8 {
        let row = self.z * self.height + self.y;
        start(self.kind, self.host, self.device).wrapping_add(row * self.pitch + self.x)
    }
}

/// The address of rows in a kind of memory: 1 is the host's, 2 the device's.
fn start(kind: c_int, host: *mut u8, device: u64) -> *mut u8 {
    match kind {
        1 => {
            assert_eq!(device, 0);
            host
        }
        2 => {
            assert!(host.is_null());
            device as *mut u8
        }
        other => panic!("memory of type {other}"),
    }
}

pub(crate) unsafe fn copy_rows(
    from: *mut u8,
    to: *mut u8,
    pitches: [usize; 2],
    bytes: usize,
    rows: usize,
) -> c_int {
    if pitches.iter().any(|&pitch| pitch < bytes) {
        return 1;
    }
    for row in 0..rows {
        unsafe { to.add(row * pitches[1]).copy_from(from.add(row * pitches[0]), bytes) };
    }
    0
}
