//! What launches a plan's kernels: a stream, or something that watches them.

use super::super::plan::binding::Launched;
use crate::{buffer::Buffer, error::Result, launch::NamedArguments, stream::Stream};

/// Launches the kernels of a plan.
pub(in crate::gemm) trait Executor {
    /// Where it launches, and where the plan's workspace is.
    fn stream(&self) -> &Stream;

    /// Prepares a workspace.
    ///
    /// # Errors
    /// Those of writing it.
    fn prepare(&self, workspace: &mut Buffer<u8>) -> Result<()> {
        let _ = workspace;
        Ok(())
    }

    /// Launches a kernel.
    ///
    /// # Errors
    /// As [`Stream::launch`].
    ///
    /// # Safety
    /// As for [`Stream::launch`].
    unsafe fn launch(&self, step: &Launched, arguments: &mut NamedArguments) -> Result<()>;
}

impl Executor for Stream {
    fn stream(&self) -> &Stream {
        self
    }

    unsafe fn launch(&self, step: &Launched, arguments: &mut NamedArguments) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { self.launch_named(step.kernel, &step.config, arguments) }
    }
}
