//! The error type.

use std::{convert::Infallible, fmt, time::Duration};

use crate::memory::available;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error. Its message names the argument or the part at fault, its value and the limit.
///
/// [`Error::exit_code`] gives the command's exit code for it.
///
/// ```
/// use gpu_gemm::{Device, Error, Matrix};
///
/// let error = Matrix::from_row_major(&Device::cpu(), 2, 2, &[1.0f32]).unwrap_err();
/// assert_eq!(error.to_string(), "values.len() = 1: must be rows * cols = 4");
/// assert!(matches!(error, Error::Argument { .. }) && error.exit_code() == 2);
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is outside its limits. Nothing was allocated or launched.
    #[error("{argument} = {value}: {limit}")]
    Argument {
        /// The argument's name as the caller knows it: `k`, `--device`.
        argument: String,
        /// Its value.
        value: String,
        /// The values that are accepted.
        limit: String,
    },

    /// A file has the wrong contents, or the system does not read it.
    #[error("{file}: {what}")]
    File {
        /// Its path.
        file: String,
        /// The field at fault, its value and the values that are accepted.
        what: String,
    },

    /// The system does not write a file that it has opened: the disk is full, has a limit, or
    /// fails.
    #[error("{argument} = {file}: cannot be written: {reason}")]
    Unwritten {
        /// The argument that gave the path.
        argument: String,
        /// Its path.
        file: String,
        /// The system's words.
        reason: String,
    },

    /// The kernel's declaration or the device does not allow a launch. Nothing was launched.
    #[error("kernel {kernel}: {what}")]
    Launch {
        /// The kernel's name.
        kernel: &'static str,
        /// The part of the launch that is wrong, and the limit.
        what: String,
    },

    /// The NVIDIA driver's library cannot be loaded, or the driver does not start.
    #[error("no NVIDIA driver: {reason}")]
    NoDriver {
        /// The words of the loader or of the driver.
        reason: String,
    },

    /// cuBLAS's library cannot be loaded, or it lacks a function.
    #[error("no cuBLAS: {reason}")]
    NoCublas {
        /// The loader's words.
        reason: String,
    },

    /// This machine has no CUDA device with that index.
    #[error("cuda:{index}: this machine has {count} CUDA device(s), numbered from 0")]
    NoDevice {
        /// The index asked for.
        index: usize,
        /// The number of devices.
        count: usize,
    },

    /// The device is older than compute capability 8.0, for which the oldest kernels are built.
    #[error("{device}: compute capability {}.{} is below 8.0, the oldest the kernels are built for", .capability.0, .capability.1)]
    Architecture {
        /// The device's name.
        device: String,
        /// Its compute capability (major, minor).
        capability: (u32, u32),
    },

    /// The driver refuses a kernel's PTX: the driver is too old, or the file is damaged.
    #[error("the driver (CUDA {}.{}) refuses {module}: {log}", .driver.0, .driver.1)]
    Ptx {
        /// The PTX file.
        module: String,
        /// The CUDA version that the driver supports (major, minor).
        driver: (u32, u32),
        /// The log of the driver's compiler. If that is empty, the driver's error.
        log: String,
    },

    /// The device has not enough memory. Sizes are in bytes.
    #[error("out of memory on {device}: {}", shortage(*.needed, *.free))]
    OutOfMemory {
        /// The device.
        device: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },

    /// A thread of a kernel failed on the CPU device: it panicked, or the block deadlocked.
    #[cfg(feature = "cpu")]
    #[error("{0}")]
    Kernel(#[from] Box<simt::cpu::Fault>),

    /// The driver reports a failure: a kernel has faulted, or the device is lost.
    #[error("{call} failed: {name} ({code}): {text}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its result code.
        code: i32,
        /// The code's name, `CUDA_ERROR_...`.
        name: String,
        /// The driver's description.
        text: String,
    },

    /// What is not possible while a stream's work is captured for a [graph](crate::Graph), or while
    /// it is [prepared](crate::Stream::prepare).
    #[error("in the capture of a graph: {what}")]
    Capture {
        /// What is not possible, and what to do.
        what: String,
    },

    /// A device of several has failed. What was queued on the others has ended.
    #[error("on {device}: {error}")]
    Device {
        /// The device's name, and its place.
        device: String,
        /// What has failed.
        error: Box<Error>,
    },

    /// The work on a device had not ended in time. Its memory is never freed.
    #[error(
        "the work on {device} had not ended after {after:?}: it hangs, or other work keeps it busy; this process cannot use the device any more"
    )]
    Hung {
        /// The device.
        device: String,
        /// For how long it was waited for.
        after: Duration,
    },

    /// A plan for several devices has forgotten to order or to permit an access: a fault of this
    /// crate. Several [CPU devices](crate::Devices::cpu) find it; on GPUs it would be a race.
    #[error("{what}")]
    Unordered {
        /// The two accesses.
        what: String,
    },

    /// Ctrl-C, or [`crate::interrupt`].
    #[error("interrupted")]
    Interrupted,
}

/// The memory that is missing. A system may refuse memory that is free: because of a limit, or
/// because it is in pieces. The CPU device leaves some for the C library. `free` was read after the
/// allocation had failed, when what it was a part of may have been given back.
fn shortage(needed: u64, free: u64) -> String {
    let [of_needed, of_free] = [needed, free].map(in_units);
    match needed > free {
        true => format!("{needed} bytes needed{of_needed}, {free} free{of_free}"),
        false => format!(
            "{needed} bytes needed{of_needed}, which were refused, or too little would have been left: {free} free now{of_free}"
        ),
    }
}

/// A large number of bytes in the unit that people read, in parentheses.
fn in_units(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("TiB", 40), ("GiB", 30), ("MiB", 20)];
    let unit = UNITS.into_iter().find(|(_, bits)| bytes >> bits > 0);
    unit.map_or(String::new(), |(name, bits)| {
        format!(" ({:.1} {name})", bytes as f64 / (1u64 << bits) as f64)
    })
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Its message, since a `main` that returns an error, and `unwrap`, show this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// An [`Error::Argument`].
    pub fn argument(
        argument: impl Into<String>,
        value: impl fmt::Display,
        limit: impl Into<String>,
    ) -> Self {
        Error::Argument { argument: argument.into(), value: value.to_string(), limit: limit.into() }
    }

    /// The same with another name of the argument, if it is an [`Error::Argument`].
    #[doc(hidden)]
    pub fn renamed(mut self, name: impl FnOnce(&str) -> String) -> Self {
        if let Error::Argument { argument, .. } = &mut self {
            *argument = name(argument);
        }
        self
    }

    /// An [`Error::File`] for a field of a file.
    pub fn file(
        file: &std::path::Path,
        field: &str,
        value: impl fmt::Display,
        limit: impl fmt::Display,
    ) -> Self {
        Error::File {
            file: file.display().to_string(),
            what: format!("{field} = {value}: {limit}"),
        }
    }

    /// The command's exit code:
    ///
    /// * 2 for arguments and for files with wrong contents,
    /// * 3 for the environment: no driver, no such device, a device or a driver that is too old,
    /// * 4 for faults, memory, and a disk that does not write,
    /// * 130 after an interrupt.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Argument { .. }
            | Error::File { .. }
            | Error::Launch { .. }
            | Error::Capture { .. } => 2,
            Error::NoDriver { .. }
            | Error::NoCublas { .. }
            | Error::NoDevice { .. }
            | Error::Architecture { .. }
            | Error::Ptx { .. } => 3,
            Error::OutOfMemory { .. }
            | Error::Unwritten { .. }
            | Error::Driver { .. }
            | Error::Hung { .. }
            | Error::Unordered { .. } => 4,
            Error::Device { error, .. } => error.exit_code(),
            #[cfg(feature = "cpu")]
            Error::Kernel(_) => 4,
            Error::Interrupted => 130,
        }
    }

    /// An [`Error::Capture`].
    pub(crate) fn capture(what: impl Into<String>) -> Self {
        Error::Capture { what: what.into() }
    }

    /// This machine's memory does not have `needed` bytes.
    pub(crate) fn out_of_host_memory(needed: u64) -> Self {
        Error::OutOfMemory { device: "cpu".to_owned(), needed, free: available().0 }
    }

    /// The error for a launch on the CPU device that ended early.
    #[cfg(feature = "cpu")]
    pub(crate) fn from_stop(kernel: &'static str, stop: simt::cpu::Stop) -> Self {
        use simt::cpu::Stop;
        match stop {
            Stop::Fault(fault) => Error::Kernel(Box::new(fault)),
            Stop::Interrupted => Error::Interrupted,
            Stop::OutOfMemory(needed) => Error::out_of_host_memory(needed),
            Stop::Config(what) => Error::Launch { kernel, what },
            _ => Error::Launch { kernel, what: stop.to_string() },
        }
    }
}
