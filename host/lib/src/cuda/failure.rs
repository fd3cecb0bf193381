//! The driver's result codes, and their [`Error`]s.

use crate::error::{Error, Result};
#[cfg(feature = "cust")]
use cust::{error::CudaError, sys::CUresult};

/// `CUDA_ERROR_INVALID_VALUE`.
pub(super) const INVALID_VALUE: i32 = 1;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(super) const OUT_OF_MEMORY: i32 = 2;
/// `CUDA_ERROR_NO_DEVICE`.
pub(super) const NO_DEVICE: i32 = 100;
/// `CUDA_ERROR_NOT_FOUND`.
pub(super) const NOT_FOUND: i32 = 500;
/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: i32 = 600;
/// `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
pub(super) const LAUNCH_OUT_OF_RESOURCES: i32 = 701;
/// `CUDA_ERROR_INVALID_CLUSTER_SIZE`.
pub(super) const INVALID_CLUSTER_SIZE: i32 = 912;

/// A failed call, with the driver's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    /// The driver's function.
    pub(super) call: &'static str,
    /// Its result code.
    pub(super) code: i32,
}

impl Raw {
    /// The failure of this thread's last call through `cust`, which has returned `code`. (`cust`
    /// knows only the codes of CUDA 11.4.)
    #[cfg(feature = "cust")]
    fn last(code: i32) -> Self {
        match cuda_dyn::take_failure() {
            Some(failure) => Raw { call: failure.function, code: failure.code },
            None => Raw { call: "a call of the CUDA driver", code },
        }
    }

    /// The code's name, number and description, to be used inside a sentence.
    pub(super) fn words(self) -> String {
        let (name, text) = (cuda_dyn::error_name(self.code), cuda_dyn::error_text(self.code));
        format!("{name} ({}): {text}", self.code)
    }

    /// The error, if the caller has no better one.
    pub(super) fn error(self) -> Error {
        let driver = |advice: &str| Error::Driver {
            call: self.call,
            code: self.code,
            name: cuda_dyn::error_name(self.code).into(),
            text: format!("{}{advice}", cuda_dyn::error_text(self.code)),
        };
        match self.code {
            // cuda-dyn returns this for a function that the driver's library lacks.
            302 => {
                let library = cuda_dyn::driver().unwrap_or("libcuda.so.1");
                let needed = match cuda_dyn::since(self.call) {
                    Some((major, minor)) => format!(" to one of CUDA {major}.{minor} or newer"),
                    None => String::new(),
                };
                let reason = format!(
                    "{library} has no function {}: the driver is too old, update it{needed}",
                    self.call
                );
                Error::NoDriver { reason }
            }
            46 => driver("; another process may hold the device for itself: see nvidia-smi"),
            // Faults of a kernel or of the hardware. The context is unusable after them.
            214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721 => driver(
                "; seen now, caused by a kernel launched earlier; \
                 this process cannot use the device any more",
            ),
            _ => driver(""),
        }
    }
}

/// A result of a call, for a caller that handles some codes.
pub(super) trait Outcome {
    /// The value of a success.
    type Value;
    /// The value, or the failure.
    fn outcome(self) -> std::result::Result<Self::Value, Raw>;
}

impl Outcome for std::result::Result<(), cuda_dyn::Failure> {
    type Value = ();
    fn outcome(self) -> std::result::Result<(), Raw> {
        self.map_err(|failure| Raw { call: failure.function, code: failure.code })
    }
}

impl<T> Outcome for std::result::Result<T, Raw> {
    type Value = T;
    fn outcome(self) -> Self {
        self
    }
}

#[cfg(feature = "cust")]
impl<T> Outcome for std::result::Result<T, CudaError> {
    type Value = T;
    fn outcome(self) -> std::result::Result<T, Raw> {
        self.map_err(|error| Raw::last(error as i32))
    }
}

#[cfg(feature = "cust")]
impl Outcome for CUresult {
    type Value = ();
    fn outcome(self) -> std::result::Result<(), Raw> {
        if self == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Raw::last(self as i32)) }
    }
}

/// The result of a call, for a caller that handles no code.
pub(super) fn check<O: Outcome>(result: O) -> Result<O::Value> {
    result.outcome().map_err(Raw::error)
}

/// Whether the work has ended that a call has asked about.
pub(super) fn has_ended<O: Outcome>(result: O) -> Result<bool> {
    match result.outcome() {
        Ok(_) => Ok(true),
        Err(Raw { code: NOT_READY, .. }) => Ok(false),
        Err(raw) => Err(raw.error()),
    }
}

/// Loads the driver's library. The error says what to do.
pub(super) fn library() -> Result<()> {
    cuda_dyn::driver().map(|_| ()).map_err(|why| Error::NoDriver {
        reason: format!(
            "{why}; install NVIDIA's driver, in a container start it with the GPU passed in"
        ),
    })
}

/// A sentence: why `cuInit` failed, and what to do.
pub(super) fn startup(raw: Raw) -> String {
    let advice = match raw.code {
        34 => "; the toolkit's stub library was loaded: take its stubs folder off LD_LIBRARY_PATH",
        302 => "; this libcuda.so.1 is not NVIDIA's driver",
        304 | 999 => "; is the kernel module loaded, and /dev/nvidia* open to this user?",
        802 => "; on machines with NVSwitch the fabric manager must run",
        803 | 804 => "; library and kernel module differ: restart after a driver update",
        _ => "",
    };
    format!("{} failed, {}{advice}", raw.call, raw.words())
}
