//! The CPU device, tested by kernels that are made for it.
//!
//! | module | what it tests |
//! |---|---|
//! | `indices` | every thread of every block runs once, with its own indices |
//! | `barriers` | a barrier waits for all, and only for the threads of its block |
//! | `shared` | each block has its own shared memory, which starts as NaN |
//! | `memory` | 128-bit accesses, views, the fused multiply-add |
//! | `faults` | a kernel that fails gives an error that names the place |
//! | `stacks` | a stack overflow is an error |
//! | `pipelines` | mbarriers, TMA copies, clusters |
//! | `tensor_cores` | products of warpgroups, and the findings of a checked launch |
//! | `mma` | products of warps, and copies of four, eight and sixteen bytes |
//! | `bound` | arguments by name, for kernels that are known only at run time |
//! | `constants` | constants of a kernel, which a launch sets |
//! | `launches` | cancelled and concurrent launches, parts of a grid |

mod barriers;
mod bound;
mod constants;
mod faults;
mod indices;
mod launches;
mod memory;
mod mma;
mod pipelines;
mod shared;
#[cfg(target_os = "linux")]
mod stacks;
mod tensor_cores;

use simt::{
    Element, Kernel, LaunchConfig, Params,
    cpu::{Fault, Options, Stop},
    device::*,
};

/// Launches a kernel of this test on the CPU.
fn launch<P: Params>(
    kernel: &Kernel<P>,
    grid: [u32; 3],
    block: [u32; 3],
    params: P,
) -> Result<(), Stop> {
    launch_with(kernel, LaunchConfig::new(grid, block), params, &Options::default())
}

fn launch_with<P: Params>(
    kernel: &Kernel<P>,
    config: LaunchConfig,
    params: P,
    options: &Options,
) -> Result<(), Stop> {
    // SAFETY: the views are of vectors that live until this returns. In each of these kernels a
    // thread writes elements of its own, or there is a barrier in between.
    unsafe { simt::cpu::launch(kernel, &config, params, options) }
}

/// The fault with which a launch must end.
fn fault(outcome: Result<(), Stop>) -> Fault {
    match outcome {
        Err(Stop::Fault(fault)) => fault,
        other => panic!("no fault: {other:?}"),
    }
}

/// A view for reading.
fn read<T: Element>(values: &[T]) -> In<T> {
    // SAFETY: used in `launch` only.
    unsafe { In::new(values.as_ptr(), values.len()) }
}

/// A view for writing.
fn write<T: Element>(values: &mut [T]) -> Out<T> {
    // SAFETY: as in `read`.
    unsafe { Out::new(values.as_mut_ptr(), values.len()) }
}

/// Sixteen-byte alignment, for the 128-bit accesses.
#[repr(align(16))]
struct Aligned<T>(T);
