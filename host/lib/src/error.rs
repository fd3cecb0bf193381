//! Everything that can go wrong, sorted by whose turn it is to act.

use std::{convert::Infallible, fmt};

use crate::memory::available;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. Each message names the argument or the part at fault, its value and the limit.
///
/// [`Error::exit_code`] groups the variants as the command does: usage, environment, device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument outside its limits: nothing was allocated or launched.
    #[error("{argument} = {value}: {limit}")]
    Argument {
        /// The argument's name as the caller wrote it, for example `k` or `--device`.
        argument: String,
        /// Its value.
        value: String,
        /// What would have been accepted.
        limit: String,
    },

    /// A file that is not what it must be, or that the system does not read.
    #[error("{file}: {what}")]
    File {
        /// Its path.
        file: String,
        /// What is wrong with it: the field, its value and what would have been accepted.
        what: String,
    },

    /// A file that the system took, and then did not write: the disk is full, or has a limit, or fails.
    #[error("{argument} = {file}: cannot be written: {reason}")]
    Unwritten {
        /// The name of the argument that has the path.
        argument: String,
        /// Its path.
        file: String,
        /// What the system said.
        reason: String,
    },

    /// A launch that the kernel's declaration or the device does not allow: nothing was launched.
    #[error("kernel {kernel}: {what}")]
    Launch {
        /// The kernel's name.
        kernel: &'static str,
        /// Which part of the launch breaks which limit.
        what: String,
    },

    /// The NVIDIA driver's library cannot be loaded, or it does not start.
    #[error("no NVIDIA driver: {reason}")]
    NoDriver {
        /// What the loader or the driver said.
        reason: String,
    },

    /// cuBLAS's library is not there, or lacks a function.
    #[error("no cuBLAS: {reason}")]
    NoCublas {
        /// What the loader said.
        reason: String,
    },

    /// A device index that this machine does not have.
    #[error("cuda:{index}: this machine has {count} CUDA device(s), numbered from 0")]
    NoDevice {
        /// The index asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },

    /// A device older than the oldest PTX this crate carries.
    #[error("{device}: compute capability {}.{} is below 8.0, the oldest the kernels are built for", .capability.0, .capability.1)]
    Architecture {
        /// The device's name.
        device: String,
        /// Its compute capability (major, minor).
        capability: (u32, u32),
    },

    /// PTX that the driver refuses: too old a driver, or a damaged file.
    #[error("the driver (CUDA {}.{}) refuses {module}: {log}", .driver.0, .driver.1)]
    Ptx {
        /// Which PTX file.
        module: String,
        /// The CUDA version that the driver supports (major, minor).
        driver: (u32, u32),
        /// The driver's own words: its JIT log, or its error where the log is empty.
        log: String,
    },

    /// Memory that the device does not have. Sizes are in bytes.
    #[error("out of memory on {device}: {}", shortage(*.needed, *.free))]
    OutOfMemory {
        /// The device.
        device: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes that were free at that moment.
        free: u64,
    },

    /// A thread of a kernel panicked on the CPU device.
    #[error("{0}")]
    Kernel(#[from] Box<simt::cpu::Fault>),

    /// The driver reports a failure: a fault in a kernel, a lost device.
    #[error("{call} failed: {name} ({code}): {text}")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// Its result code.
        code: i32,
        /// The code's name, `CUDA_ERROR_...`.
        name: String,
        /// The driver's description.
        text: String,
    },

    /// Ctrl-C, or [`crate::interrupt`].
    #[error("interrupted")]
    Interrupted,
}

/// What is missing. The figures are of one moment after the other, and a system may refuse what is free: a limit, or in pieces.
/// The CPU device leaves some for the C library.
fn shortage(needed: u64, free: u64) -> String {
    match needed > free {
        true => format!("{needed} bytes needed, {free} free"),
        false => format!(
            "{needed} bytes needed, {free} free: the system refuses them, or too little would be left"
        ),
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
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

    /// An [`Error::File`] for a field of that file.
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

    /// The command's exit code: 2 for usage and for files that are not what they must be, 3 for the environment, 4 for the
    /// device, for memory and for a disk that does not write, 130 after an interrupt.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Argument { .. } | Error::File { .. } | Error::Launch { .. } => 2,
            Error::NoDriver { .. }
            | Error::NoCublas { .. }
            | Error::NoDevice { .. }
            | Error::Architecture { .. }
            | Error::Ptx { .. } => 3,
            Error::OutOfMemory { .. }
            | Error::Unwritten { .. }
            | Error::Kernel(_)
            | Error::Driver { .. } => 4,
            Error::Interrupted => 130,
        }
    }

    /// This machine's memory does not have `needed` bytes.
    pub(crate) fn out_of_host_memory(needed: u64) -> Self {
        Error::OutOfMemory { device: "cpu".to_owned(), needed, free: available().0 }
    }

    /// Why a launch on the CPU device ended early.
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
