//! The two backends of a launch: the driver, and the CPU device.

use simt::LaunchConfig;
#[cfg(feature = "cuda")]
use simt::{Declaration, Slots};

#[cfg(feature = "cuda")]
use super::refusal::refused;
#[cfg(feature = "cuda")]
use crate::{device::Cuda, error::Result, stream::Stream};

#[cfg(feature = "cuda")]
impl Stream {
    /// Launches a kernel on a GPU.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch), and the slots hold the values of the kernel's parameters.
    pub(super) unsafe fn begin(
        &self,
        gpu: &Cuda,
        declaration: &Declaration,
        config: &LaunchConfig,
        mut slots: Slots,
    ) -> Result<()> {
        let Some(stream) = self.cuda() else {
            let what = "a CUDA device's stream has no CUDA stream".to_owned();
            return Err(refused(declaration, config, what));
        };
        let name = declaration.name;
        let function = gpu.function(declaration, &config.constants, || {
            self.refuse_unprepared(|| {
                format!(
                    "kernel {name} is not loaded, and the driver does not load in a capture: prepare the same launches before \
                     (Gemm::prepare, Stream::prepare)"
                )
            })
        })?;
        if config.dynamic_shared > 0 {
            function.set_max_dynamic_shared(config.dynamic_shared)?;
        }
        // A cluster that the kernel declares is in its PTX.
        let cluster = if declaration.cluster.is_some() { [1; 3] } else { config.cluster };
        let config = LaunchConfig { cluster, ..*config };
        let Some(function) = self.noted(function)? else { return Ok(()) };
        let mut pointers = slots.pointers().map(<*mut u64>::cast).collect::<Vec<_>>();
        // SAFETY: the slots hold the values of the kernel's parameters (`Param`, and the
        // declaration in the PTX is the source's). The rest is the caller's promise.
        unsafe { function.launch(stream, &config, &mut pointers) }
    }
}

/// The options of a launch on the CPU device.
pub(super) fn cpu_options(
    workers: Option<usize>,
    config: &LaunchConfig,
) -> simt::cpu::Options<'static> {
    let mut options = simt::cpu::Options::default();
    options.workers = workers;
    options.cancel = Some(&crate::INTERRUPTED);
    options.done = Some(crate::progress::begin(config.blocks()));
    options
}
