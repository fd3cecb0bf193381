//! What launches a plan's kernels: a stream, or something that watches them.

use simt::{AnyKernel, LaunchConfig};

use super::super::plan::Multiply;
use crate::{
    buffer::{Buffer, Pod},
    error::Result,
    launch::Named,
    stream::Stream,
};

/// Launches the kernel that multiplies.
pub(in crate::gemm) trait Executor {
    /// Where the plan's other launches go, and its workspace is.
    fn stream(&self) -> &Stream;

    /// Prepares a workspace.
    ///
    /// # Errors
    /// Those of writing it.
    fn prepare<T: Pod>(&self, workspace: &mut Buffer<T>) -> Result<()> {
        let _ = workspace;
        Ok(())
    }

    /// Launches it.
    ///
    /// # Errors
    /// As [`Stream::launch`].
    ///
    /// # Safety
    /// As for [`Stream::launch`].
    unsafe fn multiply(
        &self,
        step: &Multiply,
        arguments: &mut [(&'static str, &mut dyn Named)],
    ) -> Result<()>;

    /// Launches a kernel before or after it.
    ///
    /// # Errors
    /// As [`Stream::launch`].
    ///
    /// # Safety
    /// As for [`Stream::launch`].
    unsafe fn launch(
        &self,
        kernel: &'static dyn AnyKernel,
        config: &LaunchConfig,
        arguments: &mut [(&'static str, &mut dyn Named)],
    ) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { self.stream().launch_named(kernel, config, arguments) }
    }
}

impl Executor for &Stream {
    fn stream(&self) -> &Stream {
        self
    }

    unsafe fn multiply(
        &self,
        step: &Multiply,
        arguments: &mut [(&'static str, &mut dyn Named)],
    ) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { self.launch_named(step.entry.kernel, &step.config, arguments) }
    }
}
