//! The two backends of a launch: the driver, and the CPU device.

#[cfg(feature = "cuda")]
use simt::Slots;
#[cfg(feature = "cpu")]
use simt::cpu;
use simt::{Declaration, LaunchConfig};

use crate::error::Result;
#[cfg(feature = "cpu")]
use crate::{device::Cpu, error::Error, launch::refusal::called};
#[cfg(feature = "cuda")]
use crate::{device::Cuda, launch::refusal::refused, stream::Stream};

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

#[cfg(feature = "cpu")]
impl Cpu {
    /// Launches a kernel on the CPU device: `launch` runs it.
    pub(super) fn launch(
        &self,
        declaration: &Declaration,
        config: &LaunchConfig,
        launch: impl FnOnce(&cpu::Options) -> std::result::Result<(), cpu::Stop>,
    ) -> Result<()> {
        let mut options = cpu::Options::default();
        options.workers = self.workers;
        options.cancel = Some(&crate::INTERRUPTED);
        options.done = Some(crate::progress::begin(config.blocks()));
        launch(&options).map_err(|stop| Error::from_stop(called(declaration, config), stop))
    }
}
