//! The driver: its start, its version, and its devices.

use super::binding;
use super::failure::{self, NO_DEVICE, Raw, check};
use crate::error::{Error, Result};

/// The number of devices that this process may use. A driver that finds none is no error: 0.
///
/// # Errors
/// [`Error::NoDriver`] if the driver's library is missing or does not start.
pub(crate) fn device_count() -> Result<usize> {
    match initialize()? {
        // The driver's number is an `int`.
        Started::Devices => match check(binding::device_count())? {
            count @ 0..=MOST_DEVICES => Ok(count as usize),
            count => {
                let reason = format!("cuDeviceGetCount says that there are {count} devices");
                Err(Error::NoDriver { reason })
            }
        },
        Started::NoDevice => Ok(0),
    }
}

/// The largest number that is believed.
const MOST_DEVICES: i32 = 1 << 16;

/// The newest CUDA version that the driver supports (major, minor). It limits the version of PTX.
///
/// # Errors
/// [`Error::NoDriver`] if the driver's library is missing.
pub(crate) fn driver_version() -> Result<(u32, u32)> {
    failure::library()?;
    check(binding::version())
}

/// The state of a driver that works.
enum Started {
    Devices,
    NoDevice,
}

/// Starts the driver. After the first call this costs nothing.
fn initialize() -> Result<Started> {
    failure::library()?;
    match binding::init() {
        Ok(()) => Ok(Started::Devices),
        Err(Raw { code: NO_DEVICE, .. }) => Ok(Started::NoDevice),
        Err(raw) => Err(Error::NoDriver { reason: failure::startup(raw) }),
    }
}
