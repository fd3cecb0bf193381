//! Launches of kernels: arguments with types, checks, and the driver or the CPU device that runs
//! them.

mod argument;
mod backend;
mod named;
mod refusal;
mod type_choice;

use simt::{Kernel, LaunchConfig, Params};

pub use self::argument::{Argument, Arguments};
pub(crate) use self::{
    named::{Named, NamedArguments, Value},
    refusal::{Unbound, check_device},
};
use crate::{error::Result, stream::Stream};

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
    /// launch; [`Error::Ptx`](crate::Error::Ptx) if the driver refuses the kernel; on the CPU
    /// device [`Error::Kernel`](crate::Error::Kernel) if the kernel fails.
    /// [`Error::Capture`](crate::Error::Capture) for a kernel that is not loaded yet, in a capture.
    ///
    /// # Safety
    /// 1. The kernel does not access memory outside of its buffers. (The CPU device checks this. A
    ///    GPU does not.)
    /// 2. Two threads of it access the same element, if either writes, only by atomic operations,
    ///    or where something orders the two: a barrier, or a release and an acquire
    ///    ([`simt::check`](mod@simt::check)).
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
    ///
    /// [`Error::Launch`]: crate::Error::Launch
    /// [`Error::Ptx`]: crate::Error::Ptx
    /// [`Error::Kernel`]: crate::Error::Kernel
    /// [`Error::Capture`]: crate::Error::Capture
    pub unsafe fn launch<P: Params, A: Arguments<P>>(
        &self,
        kernel: &Kernel<P>,
        config: &LaunchConfig,
        arguments: A,
    ) -> Result<()> {
        let mut arguments = arguments.named()?;
        // SAFETY: the caller's promises. The arguments are borrowed until this returns, and what is
        // launched uses them as this function's contract says.
        unsafe { self.launch_in_order(kernel, config, &mut arguments) }
    }
}
