//! Why a launch is refused.

use simt::{Declaration, LaunchConfig};

use crate::{device::Device, error::Error};

/// An argument cannot be passed.
#[doc(hidden)]
#[derive(Debug)]
pub enum Unbound {
    /// It does not fit the launch. The text says why.
    Refused(String),
    /// The driver cannot let the stream wait for another.
    Failed(Error),
}

impl Unbound {
    pub(super) fn into_error(self, declaration: &Declaration, config: &LaunchConfig) -> Error {
        match self {
            Unbound::Refused(what) => refused(declaration, config, what),
            Unbound::Failed(error) => error,
        }
    }
}

impl From<Error> for Unbound {
    fn from(error: Error) -> Self {
        Unbound::Failed(error)
    }
}

/// Checks that an argument is on the device of the launch.
pub(crate) fn check_device(wanted: &Device, actual: &Device, name: &str) -> Result<(), Unbound> {
    if wanted == actual {
        return Ok(());
    }
    let what = format!("{name} is on {}, the launch is on {}", actual.name(), wanted.name());
    Err(Unbound::Refused(what))
}

/// The name of the kernel of a launch: of its variant, if the constants say one.
pub(super) fn called(declaration: &Declaration, config: &LaunchConfig) -> &'static str {
    config.constants.variant().unwrap_or(declaration.name)
}

/// The error of a launch that is refused.
pub(super) fn refused(declaration: &Declaration, config: &LaunchConfig, what: String) -> Error {
    Error::Launch { kernel: called(declaration, config), what }
}
