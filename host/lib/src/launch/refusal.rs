//! Why a launch is refused.

use simt::{Declaration, LaunchConfig};

use crate::error::Error;

/// Why an argument cannot be passed.
#[doc(hidden)]
#[derive(Debug)]
pub enum Unbound {
    /// It does not fit the launch.
    Refused(String),
    /// The driver does not let its stream wait for another.
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

/// What the kernel of a launch is called.
pub(super) fn called(declaration: &Declaration, config: &LaunchConfig) -> &'static str {
    config.constants.variant().unwrap_or(declaration.name)
}

/// The error of a launch with which something is wrong.
pub(super) fn refused(declaration: &Declaration, config: &LaunchConfig, what: String) -> Error {
    Error::Launch { kernel: called(declaration, config), what }
}
