//! Launching a kernel: its arguments, typed; the checks before; the driver or the fibers.

mod argument;
mod backend;
mod halves;
mod named;
mod refusal;

use simt::{Kernel, LaunchConfig, Params};

pub(crate) use self::{argument::check_device, named::Named};
pub use self::{
    argument::{Argument, Arguments},
    refusal::Unbound,
};
use self::{
    backend::cpu_options,
    halves::with_half,
    refusal::{called, refused},
};
use crate::{
    device::Kind,
    error::{Error, Result},
    stream::Stream,
};

impl Stream {
    /// Launches a kernel: `arguments` is the tuple of its arguments, numbers by value, `&Buffer` or a view
    /// for what it reads, `&mut Buffer` or a mutable view for what it writes, [`Boxes`](crate::Boxes) for matrices
    /// that it copies box by box, or an array of them, [`BoxesMut`](crate::BoxesMut) for those that it writes so.
    ///
    /// The types are checked by the compiler. Before anything is launched, the configuration is checked
    /// against what the kernel declares and the device allows, and each buffer against the length that
    /// the kernel declares and the device that it lies on.
    ///
    /// On a GPU it returns at once; [`Stream::synchronize`] and everything that reads a buffer wait. On the device it
    /// comes after all that was queued here, and after what other streams do with the same buffers, one of both
    /// writing.
    ///
    /// # Errors
    /// [`Error::Launch`], naming what is wrong with the launch; [`Error::Ptx`] where the driver refuses
    /// the kernels; on the CPU device [`Error::Kernel`] for a kernel that goes wrong.
    ///
    /// # Safety
    /// 1. The kernel keeps inside its buffers. (On the CPU device views are bounds-checked; on a GPU
    ///    nothing is.)
    /// 2. No two threads of it access one element, one of them writing, without a barrier between.
    /// 3. No work on another stream that has not been waited for touches the same variables, one of both writing,
    ///    except through [`Symbol`](crate::Symbol). (What it does with the buffers is waited for.)
    /// 4. What the kernel's pointer variables point to is there until the kernel has ended, and used by it as the
    ///    other conditions say.
    /// 5. A thread of the kernel holds no two references into one `Out` or shared array, one of them mutable, and none where it waits
    ///    for threads that write there. No reference, view, tensor map or shared array outlives the thread.
    /// 6. Where a thread waits, or makes an atomic operation, it holds nothing whose destructor must run, and lends nothing to another
    ///    thread of the process: on the CPU device it is abandoned there when another one goes wrong, and wherever it is where its stack
    ///    is too small.
    pub unsafe fn launch<P: Params, A: Arguments<P>>(
        &self,
        kernel: &Kernel<P>,
        config: &LaunchConfig,
        arguments: A,
    ) -> Result<()> {
        let declaration = &kernel.declaration;
        let refuse = |what| refused(declaration, config, what);
        let names = declaration.params.iter().map(|param| param.name);
        let constants = with_half(declaration, config.constants, || arguments.halves());
        let config = &LaunchConfig { constants: constants.map_err(refuse)?, ..*config };
        // SAFETY: the arguments are borrowed until this returns, and what is launched uses them as this function's contract says.
        let params = unsafe { arguments.bind(self, &mut { names }) }
            .map_err(|unbound| unbound.into_error(declaration, config))?;
        kernel.check(config, &self.device().limits(), &params).map_err(refuse)?;
        crate::testing::launched();
        match &*self.device().0 {
            Kind::Cpu(cpu) => {
                let options = cpu_options(cpu.workers, config);
                // SAFETY: the caller's promises; the buffers are borrowed until this returns.
                unsafe { simt::cpu::launch(kernel, config, params, &options) }
                    .map_err(|stop| Error::from_stop(called(declaration, config), stop))
            }
            // SAFETY: the caller's promises; the slots hold the values of the kernel's parameters.
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => unsafe { self.begin(gpu, declaration, config, params.slots()) },
        }
    }
}
