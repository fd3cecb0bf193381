//! Launches of kernels, now or as nodes of a graph.

use std::ffi::{c_int, c_uint};
use std::sync::Mutex;

use crate::copies::catch_up;
use crate::graphs::captured;
use crate::check_stream;
use crate::products::{Problem, multiply, multiply_batch, takes_boxes, types};
use crate::settings::{Handle, called, configured, traced};

/// With `kernels=1` kernels of every name exist. A launch logs the name and does nothing. With
/// `kernels=2` they also multiply: `kernel(m, n, k, a, b, c)`, and those of `Gemm` as
/// `kernel(problem, a, b, c, bias)`.
pub(crate) static KERNELS: Mutex<Vec<String>> = Mutex::new(Vec::new());
pub(crate) const FIRST_KERNEL: usize = 0x10_0000;

/// A launch, with copies of its parameters.
pub(crate) enum Launch {
    /// The kernel `fill(u64 address, u32 value, u32 count)`.
    Fill(u64, u32, u32),
    /// One of [`KERNELS`], its grid's size along z, and its parameters, as far as they are used.
    Named(String, c_uint, Vec<Vec<u64>>),
}

impl Launch {
    pub(crate) unsafe fn run(&self) {
        catch_up();
        let (name, grid_z, values) = match self {
            Launch::Fill(address, value, count) => {
                let (start, count) = (*address as *mut u32, *count as usize);
                return unsafe { std::slice::from_raw_parts_mut(start, count) }.fill(*value);
            }
            Launch::Named(name, grid_z, values) => (name, *grid_z, values),
        };
        called(&format!("launch {name}"));
        if configured("kernels") != Some(2) {
            return;
        }
        let params = values.iter().map(|value| value.as_ptr() as Handle).collect::<Vec<_>>();
        unsafe {
            match types(name) {
                Some(of) => {
                    // Persistent CTAs compute all products.
                    let products = (*params[0].cast::<Problem>()).products;
                    let is_persistent = name.split('_').next() == Some("wgmma");
                    let count = if is_persistent { products } else { grid_z };
                    multiply_batch(&params, count as usize, of);
                }
                None => multiply(&params),
            }
        }
    }
}

/// Launches one of [`KERNELS`], or the kernel `fill`.
pub(crate) unsafe fn launch(
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    stream: Handle,
    params: *mut Handle,
    extra: *mut Handle,
) -> c_int {
    check_stream(stream);
    assert!(extra.is_null());
    let launch = if let Some(index) = (function as usize).checked_sub(FIRST_KERNEL) {
        let name = KERNELS.lock().unwrap()[index].clone();
        let sizes = match configured("kernels") {
            Some(2) if takes_boxes(&name) => {
                unimplemented!("the tests' driver multiplies no boxes: {name}")
            }
            Some(2) if types(&name).is_some() => &[size_of::<Problem>(), 8, 8, 8, 8][..],
            Some(2) => &[4, 4, 4, 8, 8, 8],
            _ => &[],
        };
        let copied = |(index, bytes): (usize, &usize)| {
            let mut value = vec![0u64; bytes.div_ceil(8)];
            unsafe {
                let from = (*params.add(index)).cast::<u8>();
                value.as_mut_ptr().cast::<u8>().copy_from(from, *bytes);
            }
            value
        };
        traced(|| format!("kernel on {:x}", stream as usize));
        Launch::Named(name, grid[2], sizes.iter().enumerate().map(copied).collect())
    } else {
        assert_eq!(function as usize, 0x3000);
        if grid.contains(&0) {
            return 1;
        }
        if block.iter().product::<c_uint>() > 1024 {
            return 701;
        }
        unsafe {
            let [address, value, count] = [0, 1, 2].map(|index| *params.add(index));
            Launch::Fill(*address.cast(), *value.cast(), *count.cast())
        }
    };
    if let Some(launch) = captured(stream, launch) {
        unsafe { launch.run() };
    }
    0
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared: c_uint,
    pub(crate) stream: Handle,
    pub(crate) attributes: *const Attribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUlaunchAttribute`, one of a cluster.
#[repr(C)]
pub(crate) struct Attribute {
    pub(crate) id: c_uint,
    pub(crate) pad: c_uint,
    pub(crate) cluster: [c_uint; 4],
    pub(crate) rest: [u64; 6],
}

