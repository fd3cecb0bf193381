//! Arguments by name, for a kernel that is known only when the program runs.
//!
//! A [`Kernel`] knows its parameters' types, and a launch that names it is checked by the compiler. A table of kernels has them
//! as [`AnyKernel`]s: there each argument is a [`Bound`], whose type is compared with the parameter's when it is launched.

use std::{
    any::{Any, TypeId},
    fmt,
};

use crate::{
    Declaration, Element, Half, Kernel, LaunchConfig, Limits, Params, Slots,
    check::{self, CheckableParams, Report},
    cpu::{self, Stop},
    device::BoxShape,
};

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Bound<'a> {
    /// A number, or a [`Record`](crate::Record).
    Value(&'a dyn Any),
    /// Elements of global memory.
    Elements(Elements),
    /// Matrices that are copied by boxes: one map of them, or as many as the parameter has.
    Maps(Vec<Map>),
}

/// Elements of global memory, whatever they are.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    pub(crate) address: *mut u8,
    pub(crate) len: usize,
    pub(crate) of: TypeId,
    /// May a kernel write them?
    pub(crate) writable: bool,
    /// Do they hold values?
    pub(crate) written: bool,
}

impl Elements {
    /// Elements that a kernel reads.
    ///
    /// # Safety
    /// 1. As for [`In::new`](crate::device::In::new).
    pub unsafe fn read<T: Element>(address: *const T, len: usize) -> Self {
        let address = address.cast_mut().cast();
        Elements { address, len, of: TypeId::of::<T>(), writable: false, written: true }
    }

    /// Elements that a kernel writes, and may read.
    ///
    /// # Safety
    /// 1. As for [`Out::new`](crate::device::Out::new).
    pub unsafe fn write<T: Element>(address: *mut T, len: usize) -> Self {
        let address = address.cast();
        Elements { address, len, of: TypeId::of::<T>(), writable: true, written: true }
    }

    /// The same of elements that hold no values yet.
    #[must_use]
    pub fn uninit(self) -> Self {
        Elements { written: false, ..self }
    }

    /// Elements of `T`, or such as `T` is taken for?
    pub(crate) fn are<T: Element>(&self) -> bool {
        T::takes(self.of)
    }
}

/// Matrices that are copied by boxes, of whatever elements: a [`TensorMap`](crate::device::TensorMap) whose type is not known
/// yet.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub(crate) base: *const u8,
    pub(crate) of: TypeId,
    pub(crate) extents: [usize; 3],
    pub(crate) strides: [usize; 2],
    pub(crate) shape: BoxShape,
    pub(crate) encoded: [u64; 16],
}

/// A kernel of any parameters.
pub trait AnyKernel: Any + Sync + fmt::Debug {
    /// What the kernel says of itself.
    fn declaration(&self) -> &Declaration;

    /// Are the elements of its parameter of that number rounded to tf32 as they are copied?
    fn rounds(&self, param: usize) -> bool;

    /// The arguments as the driver is given them, in the order of the parameters. What the driver has made of a [`Map`] is in it
    /// already: for a parameter that [rounds](Self::rounds) that must be of tf32.
    ///
    /// # Errors
    /// A sentence that names what is wrong with an argument or the launch.
    fn slots(
        &self,
        config: &LaunchConfig,
        limits: &Limits,
        arguments: &[Bound],
    ) -> Result<Slots, String>;

    /// Runs it on the CPU: [`cpu::launch`], with the arguments in the order of the parameters.
    ///
    /// # Errors
    /// As there, and [`Stop::Config`] for an argument that is of another type than its parameter.
    ///
    /// # Safety
    /// As there.
    unsafe fn launch(
        &self,
        config: &LaunchConfig,
        arguments: &[Bound],
        options: &cpu::Options,
    ) -> Result<(), Stop>;
}

/// The same of one that can be checked.
pub trait AnyCheckedKernel: AnyKernel {
    /// Runs it with every access watched: [`check::launch`], with the arguments in the order of the parameters.
    ///
    /// # Errors
    /// As there, and [`Stop::Config`] for an argument that is of another type than its parameter.
    ///
    /// # Safety
    /// As there.
    unsafe fn check(
        &self,
        config: &LaunchConfig,
        arguments: &[Bound],
        options: &check::Options,
    ) -> Result<Report, Stop>;
}

/// The tuple of a kernel's parameters.
fn params<P: Params>(
    declaration: &Declaration,
    config: &LaunchConfig,
    arguments: &[Bound],
) -> Result<P, String> {
    halves_agree(declaration, config, arguments)?;
    P::from_bound(arguments).map_err(|number| match declaration.params.get(number) {
        Some(param) => format!("{}: the kernel's parameter is {}", param.name, param.ty),
        None => {
            format!("{} arguments: the kernel takes {}", arguments.len(), declaration.params.len())
        }
    })
}

/// Are the arguments for a [`Half`] of the kind that the kernel's constant says?
fn halves_agree(
    declaration: &Declaration,
    config: &LaunchConfig,
    arguments: &[Bound],
) -> Result<(), String> {
    let Some(is_f16) = declaration.resolve(&config.constants)?.is_f16() else { return Ok(()) };
    let said = if is_f16 { "f16" } else { "bf16" };
    for (param, argument) in declaration.params.iter().zip(arguments) {
        let of = match argument {
            Bound::Value(_) => None,
            Bound::Elements(elements) => Some(elements.of),
            Bound::Maps(maps) => maps.first().map(|map| map.of),
        };
        if let Some(word) = of.and_then(Half::word)
            && word != said
        {
            let name = param.name;
            return Err(format!(
                "{name} is of {word}, the constant half of {said}: the kernel takes one of both"
            ));
        }
    }
    Ok(())
}

impl<P: Params> AnyKernel for Kernel<P> {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn rounds(&self, param: usize) -> bool {
        P::rounds(param)
    }

    fn slots(
        &self,
        config: &LaunchConfig,
        limits: &Limits,
        arguments: &[Bound],
    ) -> Result<Slots, String> {
        let params = params::<P>(&self.declaration, config, arguments)?;
        self.check(config, limits, &params)?;
        Ok(params.slots())
    }

    unsafe fn launch(
        &self,
        config: &LaunchConfig,
        arguments: &[Bound],
        options: &cpu::Options,
    ) -> Result<(), Stop> {
        let params = params(&self.declaration, config, arguments).map_err(Stop::Config)?;
        // SAFETY: the caller's.
        unsafe { cpu::launch(self, config, params, options) }
    }
}

impl<P: CheckableParams> AnyCheckedKernel for Kernel<P> {
    unsafe fn check(
        &self,
        config: &LaunchConfig,
        arguments: &[Bound],
        options: &check::Options,
    ) -> Result<Report, Stop> {
        let params = params(&self.declaration, config, arguments).map_err(Stop::Config)?;
        // SAFETY: the caller's.
        unsafe { check::launch(self, config, params, options) }
    }
}

/// An argument, and the parameter that it is for.
pub type Named<'a> = (&'static str, Bound<'a>);

impl dyn AnyKernel {
    /// [`launch`](AnyKernel::launch), with arguments by name.
    ///
    /// # Errors
    /// As there, and [`Stop::Config`] for an argument that is missing, or is none of the kernel's.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn launch_named<'a>(
        &self,
        config: &LaunchConfig,
        arguments: impl IntoIterator<Item = Named<'a>>,
        options: &cpu::Options,
    ) -> Result<(), Stop> {
        let arguments = self.declaration().in_order(arguments).map_err(Stop::Config)?;
        // SAFETY: the caller's.
        unsafe { self.launch(config, &arguments, options) }
    }

    /// It, if its parameters are these.
    pub fn of_params<P: Params>(&self) -> Option<&Kernel<P>> {
        (self as &dyn Any).downcast_ref()
    }
}

impl dyn AnyCheckedKernel {
    /// [`check`](AnyCheckedKernel::check), with arguments by name.
    ///
    /// # Errors
    /// As there, and [`Stop::Config`] for an argument that is missing, or is none of the kernel's.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn check_named<'a>(
        &self,
        config: &LaunchConfig,
        arguments: impl IntoIterator<Item = Named<'a>>,
        options: &check::Options,
    ) -> Result<Report, Stop> {
        let arguments = self.declaration().in_order(arguments).map_err(Stop::Config)?;
        // SAFETY: the caller's.
        unsafe { self.check(config, &arguments, options) }
    }
}

impl Declaration {
    /// What was said of the parameters, by name, in their order.
    ///
    /// # Errors
    /// A sentence that names a parameter of which nothing was said, or what is no parameter or was said twice.
    pub fn in_order<T>(
        &self,
        named: impl IntoIterator<Item = (&'static str, T)>,
    ) -> Result<Vec<T>, String> {
        let mut places = self.params.iter().map(|_| None).collect::<Vec<_>>();
        for (name, argument) in named {
            let place = self.params.iter().position(|param| param.name == name);
            let place = place.and_then(|place| places.get_mut(place)).ok_or_else(|| {
                let names = self.params.iter().map(|param| param.name).collect::<Vec<_>>();
                format!("{name}: the kernel's parameters are {}", names.join(", "))
            })?;
            if place.replace(argument).is_some() {
                return Err(format!("{name}: is given twice"));
            }
        }
        let said = places.into_iter().zip(self.params);
        said.map(|(place, param)| place.ok_or_else(|| format!("{}: is not given", param.name)))
            .collect()
    }
}
