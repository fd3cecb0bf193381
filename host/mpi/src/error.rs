//! The error type.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error. What one rank meets is the error of all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library's, of this rank. It names the argument and the limit.
    #[error(transparent)]
    Gemm(#[from] gpu_gemm::Error),

    /// MPI refuses a call, and its handler of errors returns.
    #[error("{call} failed with MPI's error {code}")]
    Mpi {
        /// The function.
        call: &'static str,
        /// Its error code.
        code: i32,
    },

    /// Another rank's.
    #[error("rank {rank}: {text}")]
    Rank {
        /// The rank in the grid.
        rank: i32,
        /// What it said.
        text: String,
        /// The exit code of its error.
        code: u8,
    },
}

impl Error {
    /// The exit code of a program that ends with it: those of the command.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Gemm(error) => error.exit_code(),
            Error::Mpi { .. } => 4,
            Error::Rank { code, .. } => *code,
        }
    }

    pub(crate) fn argument(name: &str, value: impl std::fmt::Display, limit: String) -> Self {
        gpu_gemm::Error::argument(name, value, limit).into()
    }
}
