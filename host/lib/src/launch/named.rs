//! Launches of kernels of the registry. Arguments have names, and their types are compared with the
//! parameters' at the launch.

use std::any::TypeId;

use gpu::params::{GemmParams, MatrixBatch};
use simt::{AnyKernel, Bound, Elements, Half, LaunchConfig};

use super::{Unbound, check_device, halves::with_half, refusal::refused};
use crate::{
    boxes::{BoxElement, Boxes, BoxesMut},
    buffer::{BufferView, Pod, Written},
    device::Kind,
    error::Result,
    stream::Stream,
};

/// An argument with a name.
pub(crate) trait Named {
    /// The value for the kernel. Messages call the parameter `name`. `rounds`: TMA rounds the
    /// elements to tf32.
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        rounds: bool,
    ) -> std::result::Result<Bound<'_>, Unbound>;

    /// As [`Argument::half`](super::Argument::half).
    fn half(&self) -> Option<&'static str> {
        None
    }
}

/// [`Named::half`] of an argument with elements of `T`.
macro_rules! element {
    () => {
        fn half(&self) -> Option<&'static str> {
            Half::word(TypeId::of::<T>())
        }
    };
}

macro_rules! values {
    ($($ty:ty)*) => {$(
        impl Named for $ty {
            fn bound(&mut self, _: &Stream, _: &str, _: bool) -> std::result::Result<Bound<'_>, Unbound> {
                Ok(Bound::Value(self))
            }
        }
    )*};
}

values! { u32 u64 GemmParams MatrixBatch }

impl<T: Pod> Named for BufferView<'_, T> {
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        _: bool,
    ) -> std::result::Result<Bound<'_>, Unbound> {
        check_device(stream.device(), self.device(), name)?;
        // SAFETY: as for a typed argument: the kernel runs while the buffer is borrowed (CPU), or
        // its memory outlives the work that was launched before it is freed (CUDA).
        Ok(Bound::Elements(unsafe { Elements::read(self.address_on(stream)?, self.len()) }))
    }

    element!();
}

impl<T: Pod> Named for Written<'_, T> {
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        _: bool,
    ) -> std::result::Result<Bound<'_>, Unbound> {
        check_device(stream.device(), self.device(), name)?;
        let len = self.len();
        // SAFETY: as above; the elements are borrowed mutably, so nobody else reads them.
        Ok(Bound::Elements(unsafe { Elements::write(self.address_on(stream)?, len) }))
    }

    element!();
}

impl<T: BoxElement> Named for Boxes<'_, T> {
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        rounds: bool,
    ) -> std::result::Result<Bound<'_>, Unbound> {
        Ok(Bound::Maps(vec![self.described(stream, name, rounds)?.erased()]))
    }

    element!();
}

impl<T: BoxElement> Named for BoxesMut<'_, T> {
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        _: bool,
    ) -> std::result::Result<Bound<'_>, Unbound> {
        Ok(Bound::Maps(vec![self.described(stream, name)?.erased()]))
    }

    fn half(&self) -> Option<&'static str> {
        Half::word(TypeId::of::<T>())
    }
}

impl<T: BoxElement> Named for Vec<Boxes<'_, T>> {
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        rounds: bool,
    ) -> std::result::Result<Bound<'_>, Unbound> {
        let described =
            |boxes: &Boxes<T>| Ok::<_, Unbound>(boxes.described(stream, name, rounds)?.erased());
        let maps = self.iter().map(described);
        Ok(Bound::Maps(maps.collect::<std::result::Result<_, _>>()?))
    }

    element!();
}

impl Stream {
    /// The arguments in the order of the parameters, and the configuration with the constants that
    /// follow from their types.
    ///
    /// # Errors
    /// As [`launch_named`](Self::launch_named).
    pub(crate) fn bound<'b>(
        &self,
        kernel: &dyn AnyKernel,
        config: &LaunchConfig,
        arguments: &'b mut [(&'static str, &mut dyn Named)],
    ) -> Result<(LaunchConfig, Vec<Bound<'b>>)> {
        let declaration = kernel.declaration();
        let refuse = |what| refused(declaration, config, what);
        let named = arguments.iter_mut().map(|(name, argument)| (*name, argument));
        let arguments = declaration.in_order(named).map_err(refuse)?;
        let halves = || arguments.iter().map(|argument| argument.half()).collect();
        let constants = with_half(declaration, config.constants, halves).map_err(refuse)?;
        let config = LaunchConfig { constants, ..*config };
        let numbered = arguments.into_iter().zip(declaration.params).enumerate();
        let bound = numbered.map(|(number, (argument, param))| {
            argument.bound(self, param.name, kernel.rounds(number))
        });
        let bound = bound
            .collect::<std::result::Result<_, _>>()
            .map_err(|unbound| unbound.into_error(declaration, &config))?;
        Ok((config, bound))
    }

    /// As [`launch`](Self::launch), with arguments by name. An argument of a wrong type, with an
    /// unknown name, or missing is an error.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn launch_named(
        &self,
        kernel: &dyn AnyKernel,
        config: &LaunchConfig,
        arguments: &mut [(&'static str, &mut dyn Named)],
    ) -> Result<()> {
        let declaration = kernel.declaration();
        let (config, bound) = self.bound(kernel, config, arguments)?;
        let config = &config;
        match &*self.device().0 {
            Kind::Cpu(_) if self.is_preparing() => Ok(()),
            #[cfg(feature = "cpu")]
            Kind::Cpu(cpu) => {
                crate::testing::launched();
                cpu.launch(declaration, config, |options| {
                    // SAFETY: the caller's promises; the buffers are borrowed until this returns.
                    unsafe { kernel.launch(config, &bound, options) }
                })
            }
            #[cfg(not(feature = "cpu"))]
            Kind::Cpu(cpu) => match *cpu {},
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let slots = kernel
                    .slots(config, &self.device().limits(), &bound)
                    .map_err(|what| refused(declaration, config, what))?;
                if !self.is_preparing() {
                    crate::testing::launched();
                }
                // SAFETY: the caller's promises; the slots hold the values of the kernel's
                // parameters.
                unsafe { self.begin(gpu, declaration, config, slots) }
            }
        }
    }
}
