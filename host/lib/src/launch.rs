//! Launches of kernels: arguments with types, checks, and the driver or the CPU device that runs
//! them.

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
use self::{halves::with_half, refusal::refused};
use crate::{device::Kind, error::Result, stream::Stream};

impl Stream {
    /// Launches a kernel. `arguments` is a tuple with one argument for each parameter:
    ///
    /// | parameter | argument |
    /// |---|---|
    /// | a number | the number |
    /// | `In<T>` | `&Buffer<T>` or a [`BufferView`](crate::BufferView) |
    /// | `Out<T>` | `&mut Buffer<T>` or a [`BufferViewMut`](crate::BufferViewMut) |
    /// | `TensorMap<T>` | [`Boxes`](crate::Boxes) |
    /// | `TensorMaps<T, N>` | an array of [`Boxes`](crate::Boxes) |
    /// | `TensorMapMut<T>` | [`BoxesMut`](crate::BoxesMut) |
    ///
    /// The compiler checks the types. Before the launch, the configuration is checked against the
    /// kernel's declaration and the device's limits. Each buffer must be on the stream's device and
    /// have the length that the kernel declares.
    ///
    /// On a GPU this returns at once. [`Stream::synchronize`] waits for the kernel, and so does
    /// every method that reads a buffer. The kernel itself waits for all work that was queued here
    /// before, and for work on other streams with the same buffers, if either writes.
    ///
    /// ```
    /// use gpu_gemm::{
    ///     Device,
    ///     simt::{LaunchConfig, device::{Out, kernel, thread}},
    /// };
    ///
    /// /// c[i] = value: a thread for each of the n elements.
    /// #[kernel(block = (64), shared = 0, barriers = 0, len(c = n))]
    /// fn fill(n: u32, value: f32, mut c: Out<f32>) {
    ///     let i = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize;
    ///     if i < n as usize {
    ///         c[i] = value;
    ///     }
    /// }
    ///
    /// // For a GPU the kernel needs PTX (`Device::load_ptx`).
    /// let device = Device::cpu();
    /// let mut c = device.zeros::<f32>(100)?;
    /// let config = LaunchConfig::new([2, 1, 1], [64, 1, 1]);
    /// // SAFETY: a thread writes one element, which is inside C.
    /// unsafe { device.stream()?.launch(&fill, &config, (100, 2.0, &mut c))? };
    /// assert_eq!(c.to_vec()?, [2.0; 100]);
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Launch`](crate::Error::Launch) if the kernel or the device does not allow the
    /// launch; [`Error::Ptx`](crate::Error::Ptx) if the driver refuses the kernel; on the CPU device
    /// [`Error::Kernel`](crate::Error::Kernel) if the kernel fails.
    /// [`Error::Capture`](crate::Error::Capture) for a kernel that is not loaded yet, in a capture.
    ///
    /// # Safety
    /// 1. The kernel does not access memory outside of its buffers. (The CPU device checks this. A
    ///    GPU does not.)
    /// 2. Two threads of it access the same element only with a barrier between them, if either
    ///    writes.
    /// 3. Work on another stream that may still run accesses the same variables only through
    ///    [`Symbol`](crate::Symbol), if either writes. (For buffers the kernel waits.)
    /// 4. The memory that the kernel's pointer variables point to exists until the kernel has
    ///    ended. Conditions 1 to 3 hold for it, too.
    /// 5. A thread of the kernel holds no two references into one `Out` or shared array, if one of
    ///    them is mutable. While it waits for threads that write there, it holds none. No
    ///    reference, view, tensor map or shared array outlives the thread.
    /// 6. While a thread waits, and at an atomic operation, it holds no value whose destructor must
    ///    run, and lends none to another thread of the process. The CPU device abandons a thread
    ///    there if another one fails, and anywhere if its stack is too small.
    /// 7. In the [capture](Self::capture) of a graph, conditions 1 to 6 hold for each launch of the
    ///    graph.
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
        // SAFETY: the arguments are borrowed until this returns, and what is launched uses them as
        // this function's contract says.
        let params = unsafe { arguments.bind(self, &mut { names }) }
            .map_err(|unbound| unbound.into_error(declaration, config))?;
        kernel.check(config, &self.device().limits(), &params).map_err(refuse)?;
        if !self.is_preparing() {
            crate::testing::launched();
        }
        match &*self.device().0 {
            // What the CPU device needs is there.
            Kind::Cpu(_) if self.is_preparing() => Ok(()),
            #[cfg(feature = "cpu")]
            Kind::Cpu(cpu) => cpu.launch(declaration, config, |options| {
                // SAFETY: the caller's promises; the buffers are borrowed until this returns.
                unsafe { simt::cpu::launch(kernel, config, params, options) }
            }),
            #[cfg(not(feature = "cpu"))]
            Kind::Cpu(cpu) => match *cpu {},
            // SAFETY: the caller's promises; the slots hold the values of the kernel's parameters.
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => unsafe { self.begin(gpu, declaration, config, params.slots()) },
        }
    }
}
