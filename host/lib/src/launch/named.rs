//! Launches of kernels of the registry. Arguments have names, and their types are compared with the
//! parameters' at the launch.

use std::any::Any;

use gpu::registry::Type;
use simt::{AnyKernel, Bound, Elements, LaunchConfig};

use super::{Unbound, check_device, refusal::refused, type_choice::with_choices};
use crate::{boxes::AnyBoxes, buffer::AnyView, device::Kind, error::Result, stream::Stream};

/// An argument, for a parameter of any type: their types are compared at the launch.
pub trait Named {
    /// The value for the kernel. Messages call the parameter `name`. `rounds`: TMA rounds the
    /// elements to tf32.
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        rounds: bool,
    ) -> std::result::Result<Bound<'_>, Unbound>;

    /// The type of its elements, if it has elements of the table's.
    fn element(&self) -> Option<Type> {
        None
    }
}

/// A number or a [`Record`](simt::Record).
pub(crate) struct Value<V>(pub(crate) V);

impl<V: Any> Named for Value<V> {
    fn bound(&mut self, _: &Stream, _: &str, _: bool) -> std::result::Result<Bound<'_>, Unbound> {
        Ok(Bound::Value(&self.0))
    }
}

impl Named for AnyView<'_> {
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        _: bool,
    ) -> std::result::Result<Bound<'_>, Unbound> {
        check_device(stream.device(), self.device(), name)?;
        let (of, address, len) = (self.element().id, self.address_on(stream)?, self.len());
        // SAFETY: as for a typed argument: the kernel runs while the buffer is borrowed (CPU), or
        // its memory outlives the work that was launched before it is freed (CUDA). Elements that
        // are written are borrowed mutably, so nobody else reads them.
        Ok(Bound::Elements(unsafe { Elements::of(of, address, len, self.is_written()) }))
    }

    fn element(&self) -> Option<Type> {
        Type::of_id(AnyView::element(self).id)
    }
}

impl Named for Vec<AnyBoxes<'_>> {
    fn bound(
        &mut self,
        stream: &Stream,
        name: &str,
        rounds: bool,
    ) -> std::result::Result<Bound<'_>, Unbound> {
        let maps = self.iter().map(|boxes| boxes.described(stream, name, rounds));
        Ok(Bound::Maps(maps.collect::<std::result::Result<_, _>>()?))
    }

    fn element(&self) -> Option<Type> {
        Type::of_id(self.first()?.element().id)
    }
}

/// Arguments by the names of their parameters.
pub(crate) type NamedArguments<'a> = [(&'static str, Box<dyn Named + 'a>)];

impl Stream {
    /// The arguments as the kernel takes them, and the configuration with the constants that follow
    /// from their types. They are in the order of the parameters.
    fn bound<'b>(
        &self,
        kernel: &dyn AnyKernel,
        config: &LaunchConfig,
        arguments: Vec<&'b mut (dyn Named + '_)>,
    ) -> Result<(LaunchConfig, Vec<Bound<'b>>)> {
        let declaration = kernel.declaration();
        let types = || arguments.iter().map(|argument| argument.element()).collect();
        let constants = with_choices(declaration, config.constants, types);
        let constants = constants.map_err(|what| refused(declaration, config, what))?;
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

    /// The same of arguments by name.
    ///
    /// # Errors
    /// As [`launch_named`](Self::launch_named).
    pub(crate) fn bound_by_name<'b>(
        &self,
        kernel: &dyn AnyKernel,
        config: &LaunchConfig,
        arguments: &'b mut NamedArguments,
    ) -> Result<(LaunchConfig, Vec<Bound<'b>>)> {
        let named = arguments.iter_mut().map(|(name, argument)| (*name, &mut **argument));
        let declaration = kernel.declaration();
        let in_order = declaration.in_order(named);
        let in_order = in_order.map_err(|what| refused(declaration, config, what))?;
        self.bound(kernel, config, in_order)
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
        arguments: &mut NamedArguments,
    ) -> Result<()> {
        let (config, bound) = self.bound_by_name(kernel, config, arguments)?;
        // SAFETY: the caller's.
        unsafe { self.launch_bound(kernel, &config, &bound) }
    }

    /// The same, with arguments in the order of the parameters.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn launch_in_order(
        &self,
        kernel: &dyn AnyKernel,
        config: &LaunchConfig,
        arguments: &mut [Box<dyn Named + '_>],
    ) -> Result<()> {
        let arguments = arguments.iter_mut().map(|argument| &mut **argument).collect();
        let (config, bound) = self.bound(kernel, config, arguments)?;
        // SAFETY: the caller's.
        unsafe { self.launch_bound(kernel, &config, &bound) }
    }

    /// The same, of what the arguments are bound to.
    ///
    /// # Safety
    /// As there.
    unsafe fn launch_bound(
        &self,
        kernel: &dyn AnyKernel,
        config: &LaunchConfig,
        bound: &[Bound],
    ) -> Result<()> {
        let declaration = kernel.declaration();
        let slots = || {
            let slots = kernel.slots(config, &self.device().limits(), bound);
            slots.map_err(|what| refused(declaration, config, what))
        };
        if !self.is_preparing() {
            crate::testing::launched();
        }
        match &*self.device().0 {
            // What the CPU device needs is there. The launch is refused as any.
            Kind::Cpu(_) if self.is_preparing() => slots().map(|_| ()),
            #[cfg(feature = "cpu")]
            Kind::Cpu(cpu) => cpu.launch(declaration, config, |options| {
                // SAFETY: the caller's promises; the buffers are borrowed until this returns.
                unsafe { kernel.launch(config, bound, options) }
            }),
            #[cfg(not(feature = "cpu"))]
            Kind::Cpu(cpu) => match *cpu {},
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let slots = slots()?;
                // SAFETY: the caller's promises; the slots hold the values of the kernel's
                // parameters.
                unsafe { self.begin(gpu, declaration, config, slots) }
            }
        }
    }
}
