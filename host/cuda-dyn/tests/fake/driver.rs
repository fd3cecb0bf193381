//! A stand-in for `libcuda.so.1` that fails on request. `mod.rs` compiles it and its modules, not
//! Cargo: this file is the root of a crate of its own.
//!
//! Device memory is host memory, and every function that needs a current context checks it. The
//! environment variable `FAKE_CUDA` sets results of functions and properties of the machine:
//! `cuInit=803`, `devices=0`, `major=7`, `cuMemGetInfo_v2=700`. Each call writes a line to the file
//! `FAKE_CUDA_LOG`. With `late=1` asynchronous copies happen at the next wait or launch.
//!
//! A function that is not defined here is missing, as in an older driver.

#![allow(non_snake_case)]

mod copies;
mod launches;
mod memory;
mod products;
mod settings;

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr::null;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use self::copies::{Copy2d, Copy3d, Side3d, catch_up, copy_rows, is_awaited, later};
use self::hangs::{follow, launched, waits_for_all};
use self::launches::{FIRST_KERNEL, KERNELS, LaunchConfig, launch};
use self::memory::{TOTAL, allocate, free, free_bytes, is_allocated};
use self::settings::{Handle, called, configured, traced};

thread_local! {
    /// The contexts of this thread. The last is the current one.
    static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// This thread's current context, or 0.
fn current() -> usize {
    CONTEXTS.with_borrow(|contexts| contexts.last().copied().unwrap_or(0))
}

/// The first device's context. The next device has the next one.
const FIRST_CONTEXT: usize = 0x1000;

/// Each stream has a handle of its own.
static STREAMS: AtomicUsize = AtomicUsize::new(0);
const FIRST_STREAM: usize = 0x4000;
const FIRST_EVENT: usize = 0x5000;
static DESTROYED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Whether that stream was made, and not destroyed. Null is the default stream.
fn is_stream(stream: Handle) -> bool {
    let stream = stream as usize;
    let is_made = (FIRST_STREAM..FIRST_STREAM + STREAMS.load(Relaxed)).contains(&stream);
    let is_others = !is_made && configured("foreign") == Some(1);
    stream == 0 || is_others || is_made && !DESTROYED.lock().unwrap().contains(&stream)
}

/// Checks that work can be queued on a stream. With `foreign=1` the handles of other libraries are
/// logged.
pub(crate) fn check_stream(stream: Handle) {
    assert!(is_stream(stream), "stream {stream:?}");
    if configured("foreign") == Some(1) && !(FIRST_STREAM..).contains(&(stream as usize)) {
        called(&format!("on stream {}", stream as usize));
    }
}

/// The result of a function on the current context's device alone: `cuLaunchKernel@1=700`.
fn refused_here(name: &str) -> Option<c_int> {
    configured(&format!("{name}@{}", current().wrapping_sub(FIRST_CONTEXT)))
}

macro_rules! driver {
    // Functions after the mark need a current context.
    ($($(@$context:tt)? fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some only return a number")]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            let name = stringify!($name);
            let refused = called(name).or(crate::refused_here(name));
            if let Some(code) = refused.or(crate::graphs::refusal(name)) {
                return code;
            }
            $(
                let _: &str = stringify!($context);
                if current() == 0 {
                    return 201;
                }
            )?
            unsafe { $body }
        }
    )*};
}

mod graphs;
mod hangs;
mod others;
mod peers;

driver! {
    fn cuInit(_flags: c_uint) { 0 }
    fn cuDriverGetVersion(version: *mut c_int) {
        *version = configured("version").unwrap_or(13000);
        0
    }
    fn cuDeviceGetCount(count: *mut c_int) {
        *count = configured("devices").unwrap_or(1);
        0
    }
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        *device = ordinal;
        0
    }
    fn cuDeviceGetName(name: *mut c_char, length: c_int, _device: c_int) {
        let text = b"Fake GPU\0";
        assert!(length as usize >= text.len());
        name.copy_from(text.as_ptr().cast(), text.len());
        0
    }
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        *value = match attribute {
            75 => configured("major").unwrap_or(9),
            76 => configured("minor").unwrap_or(0),
            1 => 1024,
            8 => 48 << 10,
            97 => 227 << 10,
            13 => return 1,
            other => 1000 + other,
        };
        0
    }
    fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) {
        *bytes = TOTAL;
        0
    }
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) {
        *context = (FIRST_CONTEXT + device as usize) as Handle;
        0
    }
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        waits_for_all(FIRST_CONTEXT + device as usize);
        0
    }
    fn cuCtxGetCurrent(context: *mut Handle) {
        *context = current() as Handle;
        0
    }
    fn cuCtxSetCurrent(context: Handle) {
        CONTEXTS.with_borrow_mut(|contexts| {
            contexts.pop();
            contexts.extend((!context.is_null()).then_some(context as usize));
        });
        0
    }
    fn cuCtxPushCurrent_v2(context: Handle) {
        assert!(!context.is_null());
        CONTEXTS.with_borrow_mut(|contexts| contexts.push(context as usize));
        0
    }
    @context fn cuCtxPopCurrent_v2(context: *mut Handle) {
        *context = CONTEXTS.with_borrow_mut(|contexts| contexts.pop()).unwrap() as Handle;
        0
    }
    @context fn cuCtxSynchronize() {
        waits_for_all(current());
        catch_up()
    }
    @context fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        *free = free_bytes();
        *total = TOTAL;
        0
    }
    @context fn cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        allocate(&mut *address, bytes)
    }
    // Rows are 512-byte aligned.
    @context fn cuMemAllocPitch_v2(
        address: *mut u64, pitch: *mut usize, row: usize, rows: usize, element: c_uint
    ) {
        if row == 0 || rows == 0 || ![4, 8, 16].contains(&element) {
            return 1;
        }
        *pitch = row.next_multiple_of(512);
        allocate(&mut *address, *pitch * rows)
    }
    @context fn cuMemcpy2D_v2(copy: *const Copy2d) {
        let Copy2d { from, to, bytes, rows } = &*copy;
        copy_rows(from.start(from.pitch), to.start(to.pitch), [from.pitch, to.pitch], *bytes, *rows)
    }
    @context fn cuMemcpy2DAsync_v2(copy: *const Copy2d, stream: Handle) {
        assert!(is_stream(stream));
        let Copy2d { from, to, bytes, rows } = &*copy;
        let [start, target] = [from, to].map(|side| side.start(side.pitch) as usize);
        let (pitches, bytes, rows) = ([from.pitch, to.pitch], *bytes, *rows);
        later([start, target], move || {
            assert_eq!(copy_rows(start as _, target as _, pitches, bytes, rows), 0);
        })
    }
    @context fn cuMemcpy3D_v2(copy: *const Copy3d) {
        let Copy3d { from, to, bytes, rows, slices } = &*copy;
        for slice in 0..*slices {
            let start = |side: &Side3d| side.start().add(slice * side.pitch * side.height);
            let code =
                copy_rows(start(from), start(to), [from.pitch, to.pitch], *bytes, *rows);
            if code != 0 {
                return code;
            }
        }
        0
    }
    // 9: the index of the device whose memory it is. `memory_of=1` says another. 1: its context.
    // `memory_in=` says it, 0 for none.
    @context fn cuPointerGetAttribute(data: Handle, attribute: c_int, address: u64) {
        if !is_allocated(address) {
            return 1;
        }
        match attribute {
            1 => {
                let context = configured("memory_in").map_or(FIRST_CONTEXT, |it| it as usize);
                *data.cast::<Handle>() = context as Handle;
            }
            9 => *data.cast::<c_int>() = configured("memory_of").unwrap_or(0),
            other => panic!("an attribute that nobody asks for: {other}"),
        }
        0
    }
    @context fn cuMemFree_v2(address: u64) {
        waits_for_all(current());
        catch_up();
        free(address)
    }
    @context fn cuMemcpyHtoD_v2(target: u64, source: *const u8, bytes: usize) {
        (target as *mut u8).copy_from(source, bytes);
        0
    }
    @context fn cuMemcpyDtoH_v2(target: *mut u8, source: u64, bytes: usize) {
        target.copy_from(source as *const u8, bytes);
        0
    }
    @context fn cuMemcpyHtoDAsync_v2(
        target: u64, source: *const u8, bytes: usize, stream: Handle
    ) {
        assert!(is_stream(stream));
        let source = source as usize;
        later([source, target as usize], move || {
            (target as *mut u8).copy_from(source as *const u8, bytes);
        })
    }
    @context fn cuMemcpyDtoHAsync_v2(target: *mut u8, source: u64, bytes: usize, stream: Handle) {
        assert!(is_stream(stream));
        let target = target as usize;
        later([source as usize, target], move || {
            (target as *mut u8).copy_from(source as *const u8, bytes);
        })
    }
    @context fn cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: Handle) {
        assert!(is_stream(stream));
        later([source as usize, target as usize], move || {
            (target as *mut u8).copy_from(source as *const u8, bytes);
        })
    }
    @context fn cuMemAllocHost_v2(address: *mut *mut u8, bytes: usize) {
        let mut start = 0;
        let code = allocate(&mut start, bytes);
        *address = start as *mut u8;
        code
    }
    @context fn cuMemFreeHost(address: *mut u8) {
        assert!(!is_awaited(address as usize), "a copy may be on its way");
        free(address as u64)
    }
    @context fn cuMemsetD8_v2(target: u64, value: u8, count: usize) {
        std::slice::from_raw_parts_mut(target as *mut u8, count).fill(value);
        0
    }
    @context fn cuMemsetD32_v2(target: u64, value: u32, count: usize) {
        std::slice::from_raw_parts_mut(target as *mut u32, count).fill(value);
        0
    }
    @context fn cuModuleLoadDataEx(
        module: *mut Handle, image: *const c_char, count: c_uint, options: *mut c_int,
        values: *mut Handle
    ) {
        let image = CStr::from_ptr(image).to_str().unwrap();
        let logged = image.contains("bad instruction");
        for i in 0..count as usize {
            let size = || *values.add(i + 1) as usize;
            match *options.add(i) {
                // 5 and 3: buffers for errors and information, each followed by its size.
                5 if logged => {
                    let text = b"ptxas application ptx input, line 7; fatal   : Parsing error\n\0";
                    assert!(size() >= text.len());
                    (*values.add(i)).cast::<u8>().copy_from(text.as_ptr(), text.len());
                    *values.add(i + 1) = (text.len() - 1) as Handle;
                }
                5 | 3 => assert!(size() >= 1024),
                4 | 6 => continue,
                7 => assert!(*values.add(i) as usize <= 4, "a level of optimization"),
                other => panic!("option {other}"),
            }
        }
        if logged {
            return 218;
        }
        if image.contains(".version 99.0") {
            return 222;
        }
        *module = 0x2000 as Handle;
        0
    }
    @context fn cuModuleUnload(module: Handle) {
        assert_eq!(module as usize, 0x2000);
        0
    }
    @context fn cuModuleGetFunction(function: *mut Handle, _module: Handle, name: *const c_char) {
        let name = CStr::from_ptr(name);
        if name == c"fill" {
            *function = 0x3000 as Handle;
        } else if configured("kernels").is_some() {
            let mut kernels = KERNELS.lock().unwrap();
            kernels.push(name.to_str().unwrap().to_owned());
            *function = (FIRST_KERNEL + kernels.len() - 1) as Handle;
        } else {
            return 500;
        }
        0
    }
    // The variable `TABLE` of eight bytes, or of `table` bytes.
    @context fn cuModuleGetGlobal_v2(
        address: *mut u64, bytes: *mut usize, _module: Handle, name: *const c_char
    ) {
        static mut TABLE: [u64; 1] = [0];
        if CStr::from_ptr(name) != c"TABLE" {
            return 500;
        }
        *address = &raw mut TABLE as u64;
        *bytes = configured("table").unwrap_or(8) as usize;
        0
    }
    @context fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, _function: Handle) {
        *value = [1024, 2048, 0, 16, 32][attribute as usize];
        0
    }
    @context fn cuFuncSetAttribute(_function: Handle, attribute: c_int, value: c_int) {
        // The share of an SM's memory that is shared memory, in percent.
        if attribute == 9 {
            assert!((-1..=100).contains(&value));
            return 0;
        }
        assert_eq!(attribute, 8);
        if value > (227 << 10) - 2048 { 1 } else { 0 }
    }
    @context fn cuLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        _shared: c_uint, stream: Handle, params: *mut Handle, extra: *mut Handle
    ) {
        launched(stream);
        launch(function, [gx, gy, gz], [bx, by, bz], stream, params, extra)
    }
    // Each attribute writes a line to the log.
    @context fn cuLaunchKernelEx(
        config: *const LaunchConfig, function: Handle, params: *mut Handle, extra: *mut Handle
    ) {
        let LaunchConfig { grid, block, stream, attributes, attribute_count, .. } = *config;
        for attribute in std::slice::from_raw_parts(attributes, attribute_count as usize) {
            if attribute.id == 6 {
                assert_eq!((attribute.cluster, attribute.rest), ([1, 0, 0, 0], [0; 6]));
                called("dependent");
                continue;
            }
            assert_eq!(attribute.id, 4, "an attribute that the tests' driver does not know");
            let [cluster @ .., _] = attribute.cluster;
            assert_eq!(attribute.rest, [0; 6]);
            called(&format!("cluster {cluster:?}"));
            if (0..3).any(|axis| cluster[axis] == 0 || grid[axis] % cluster[axis] != 0) {
                return 1;
            }
            if cluster.iter().product::<c_uint>() > 8 {
                return 912;
            }
        }
        launched(stream);
        launch(function, grid, block, stream, params, extra)
    }
    // Checks what NVIDIA's documentation demands of a description. The map is the description
    // itself: the address, extents, strides and the box, each in words, and then the numbers.
    @context fn cuTensorMapEncodeTiled(
        map: *mut [u64; 16], data_type: c_uint, rank: c_uint, address: u64, extents: *const u64,
        strides: *const u64, box_extents: *const u32, element_strides: *const u32,
        interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint
    ) {
        assert!(map.addr().is_multiple_of(64) && rank == 3, "the tests' own maps have rank 3");
        let extents = *extents.cast::<[u64; 3]>();
        let strides = *strides.cast::<[u64; 2]>();
        let [cols, rows, matrices] = (*box_extents.cast::<[u32; 3]>()).map(u64::from);
        let element = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4][data_type as usize];
        let span = [256 * element, 32, 64, 128][swizzle as usize];
        assert_eq!((*element_strides.cast::<[u32; 3]>(), interleave, fill), ([1; 3], 0, 0));
        let refused = address % 16 != 0
            || extents.iter().any(|&extent| extent == 0 || extent > 1 << 32)
            || strides.iter().any(|&stride| stride % 16 != 0 || stride >= 1 << 40)
            || [cols, rows, matrices].iter().any(|&extent| extent == 0 || extent > 256)
            || cols * element % 16 != 0
            || cols * element > span;
        if refused {
            return 1;
        }
        let [data_type, swizzle, promotion] = [data_type, swizzle, promotion].map(u64::from);
        *map = [
            address, extents[0], extents[1], extents[2], strides[0], strides[1], cols, rows, matrices,
            data_type, swizzle, promotion, 0, 0, 0, 0,
        ];
        0
    }
    @context fn cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, _priority: c_int) {
        let is_free = configured("streams_of_others").is_some();
        assert!(flags == 1 || is_free, "a stream must not wait for the default stream");
        *stream = (FIRST_STREAM + STREAMS.fetch_add(1, Relaxed)) as Handle;
        0
    }
    @context fn cuStreamDestroy_v2(stream: Handle) {
        assert!(!stream.is_null() && is_stream(stream));
        DESTROYED.lock().unwrap().push(stream as usize);
        0
    }
    @context fn cuStreamSynchronize(stream: Handle) {
        assert!(is_stream(stream));
        catch_up()
    }
    @context fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) {
        check_stream(stream);
        assert!(event as usize >= FIRST_EVENT && flags == 0);
        follow(stream, event);
        traced(|| format!("wait on {:x} for {:x}", stream as usize, event as usize));
        0
    }
    @context fn cuEventCreate(event: *mut Handle, _flags: c_uint) {
        static EVENTS: AtomicUsize = AtomicUsize::new(FIRST_EVENT);
        *event = EVENTS.fetch_add(1, Relaxed) as Handle;
        0
    }
    @context fn cuEventDestroy_v2(_event: Handle) { 0 }
    @context fn cuEventRecord(event: Handle, stream: Handle) {
        check_stream(stream);
        follow(event, stream);
        traced(|| format!("record on {:x} as {:x}", stream as usize, event as usize));
        0
    }
    @context fn cuEventSynchronize(_event: Handle) { catch_up() }
    @context fn cuEventElapsedTime(milliseconds: *mut f32, _start: Handle, _end: Handle) {
        *milliseconds = 1.5;
        0
    }
}

/// The name and the description of the codes that the tests use.
fn describe(code: c_int) -> Option<(&'static CStr, &'static CStr)> {
    Some(match code {
        0 => (c"CUDA_SUCCESS", c"no error"),
        1 => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        2 => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        46 => {
            (c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable")
        }
        201 => (c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
        222 => (
            c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            c"the provided PTX was compiled with an unsupported toolchain.",
        ),
        700 => (c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
        701 => (c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch"),
        900 => (
            c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
            c"operation not permitted when stream is capturing",
        ),
        901 => (
            c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
            c"operation failed due to a previous error during capture",
        ),
        803 => (
            c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            c"system has unsupported display driver / cuda driver combination",
        ),
        912 => (c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"cluster misconfiguration"),
        _ => return None,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: c_int, text: *mut *const c_char) -> c_int {
    let words = describe(code);
    unsafe { *text = words.map_or(null(), |words| words.0.as_ptr()) };
    if words.is_some() { 0 } else { 1 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: c_int, text: *mut *const c_char) -> c_int {
    let words = describe(code);
    unsafe { *text = words.map_or(null(), |words| words.1.as_ptr()) };
    if words.is_some() { 0 } else { 1 }
}
