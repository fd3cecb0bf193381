//! The private layer over the CUDA driver: contexts, memory, streams, events, modules, functions.
//!
//! Everything reaches the driver through `cust`: by its safe types where they fit, by `cust::sys` where
//! they do not (streams that do not wait for the default stream, the compiler's log, more than 48 KiB of
//! dynamic shared memory). The driver itself is loaded at run time by `cuda-dyn`, so all this compiles,
//! links and starts on a machine without one.
//!
//! Rules that hold in every file here:
//! * Each operation first makes its device's context current on the calling thread, so every type can be
//!   used from any thread and several devices can be mixed.
//! * Whatever lives on a device keeps its [`Context`] alive. Dropping never fails and never panics: after
//!   a fault in a kernel the driver refuses to release anything, and the process's end does it.
//! * Streams do not synchronise with the default stream. What must be finished when a call returns is
//!   waited for in that call.

mod context;
mod event;
mod failure;
mod function;
mod global;
mod memory;
mod module;
mod pinned;
mod rows;
mod stream;
mod tensor_map;
#[cfg(test)]
mod tests;
mod uses;

pub(crate) use context::Context;
pub use context::Properties;
pub(crate) use event::Event;
pub(crate) use function::Function;
pub(crate) use global::Global;
pub(crate) use memory::Memory;
pub(crate) use module::Module;
pub(crate) use pinned::{PinnedMemory, Pitched, Way};
pub(crate) use rows::{Side, copy_rows};
pub(crate) use stream::Stream;
pub(crate) use tensor_map::encode;
pub(crate) use uses::Uses;

use crate::error::{Error, Result};
use cust::{CudaApiVersion, CudaFlags};
use failure::{NO_DEVICE, Raw, check};

/// How many CUDA devices this process may use. A driver that runs and finds none is no error: 0.
///
/// # Errors
/// [`Error::NoDriver`] where the driver's library is not there or does not start.
pub(crate) fn device_count() -> Result<usize> {
    match initialize()? {
        // The driver's number is an `int`.
        Started::Devices => match check(cust::device::Device::num_devices())? {
            count @ 0..=MOST_DEVICES => Ok(count as usize),
            count => {
                let count = count as i32;
                let reason = format!("cuDeviceGetCount says that there are {count} devices");
                Err(Error::NoDriver { reason })
            }
        },
        Started::NoDevice => Ok(0),
    }
}

/// More devices than any machine has.
const MOST_DEVICES: u32 = 1 << 16;

/// The newest CUDA version that the driver supports (major, minor), which also limits the PTX it takes.
///
/// # Errors
/// [`Error::NoDriver`] where the driver's library is not there.
pub(crate) fn driver_version() -> Result<(u32, u32)> {
    failure::library()?;
    let version = check(CudaApiVersion::get())?;
    Ok((version.major().unsigned_abs(), version.minor().unsigned_abs()))
}

/// What a driver that works has to work with.
enum Started {
    Devices,
    NoDevice,
}

/// Starts the driver; from the second time on this costs nothing.
fn initialize() -> Result<Started> {
    failure::library()?;
    match failure::outcome(cust::init(CudaFlags::empty())) {
        Ok(()) => Ok(Started::Devices),
        Err(Raw { code: NO_DEVICE, .. }) => Ok(Started::NoDevice),
        Err(raw) => Err(Error::NoDriver { reason: failure::startup(raw) }),
    }
}
