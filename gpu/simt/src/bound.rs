//! Launches of a kernel that is known only when the program runs.
//!
//! A [`Kernel`] has its parameters' types, so the compiler checks the arguments of a launch. A
//! table of kernels has [`AnyKernel`]s: there each argument is a [`Bound`], whose type is compared
//! with the parameter's at the launch.

use std::{any::Any, fmt};

use crate::{
    argument::Bound,
    declaration::{Declaration, LaunchConfig, Limits},
    kernel::Kernel,
    params::{Params, Slots},
    types::Type,
};
#[cfg(feature = "cpu")]
use crate::{
    check::{self, CheckableParams, Report},
    cpu::{self, Stop},
};

/// A kernel of any parameters. Sealed: whoever launches it believes what it says of itself.
pub trait AnyKernel: Any + Sync + fmt::Debug + sealed::Sealed {
    /// The kernel's declaration.
    fn declaration(&self) -> &Declaration;

    /// Whether the elements of its `param`th parameter are rounded to tf32 when TMA copies them.
    fn rounds(&self, param: usize) -> bool;

    /// The arguments as the driver takes them, in the order of the parameters. A
    /// [`Map`](crate::Map) must have the driver's encoding already: an encoding of tf32 for a
    /// parameter that [rounds](Self::rounds).
    ///
    /// # Errors
    /// A message that names the argument, or the part of the launch, and what is wrong.
    fn slots(
        &self,
        config: &LaunchConfig,
        limits: &Limits,
        arguments: &[Bound],
    ) -> Result<Slots, String>;

    /// Runs it on the CPU: [`cpu::launch`], with the arguments in the order of the parameters.
    ///
    /// # Errors
    /// As there, and [`Stop::Config`] for an argument whose type differs from its parameter's.
    ///
    /// # Safety
    /// As there.
    #[cfg(feature = "cpu")]
    unsafe fn launch(
        &self,
        config: &LaunchConfig,
        arguments: &[Bound],
        options: &cpu::Options,
    ) -> Result<(), Stop>;
}

mod sealed {
    pub trait Sealed {}
    impl<P: crate::Params> Sealed for crate::Kernel<P> {}
}

/// A kernel of any parameters that can be checked.
#[cfg(feature = "cpu")]
pub trait AnyCheckedKernel: AnyKernel {
    /// Runs it in a checked launch: [`check::launch`], with the arguments in the order of the
    /// parameters.
    ///
    /// # Errors
    /// As there, and [`Stop::Config`] for an argument whose type differs from its parameter's.
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

/// The arguments as the tuple of a kernel's parameters.
fn params<P: Params>(
    declaration: &Declaration,
    config: &LaunchConfig,
    arguments: &[Bound],
) -> Result<P, String> {
    types_agree(declaration, config, arguments)?;
    P::from_bound(arguments).map_err(|number| wrong_argument(declaration, arguments, number))
}

/// Why the `number`th argument is refused. `usize::MAX`: the number of arguments is wrong.
fn wrong_argument(declaration: &Declaration, arguments: &[Bound], number: usize) -> String {
    match declaration.params.get(number) {
        Some(param) => format!("{}: the kernel's parameter is {}", param.name, param.ty),
        None => {
            format!("{} arguments: the kernel takes {}", arguments.len(), declaration.params.len())
        }
    }
}

/// Checks that arguments are of the type that the kernel's constant chooses, if they are of one
/// that it chooses among.
fn types_agree(
    declaration: &Declaration,
    config: &LaunchConfig,
    arguments: &[Bound],
) -> Result<(), String> {
    let mut constants = None;
    let chosen = declaration.type_choices().flat_map(|choice| {
        let arguments = declaration.params.iter().zip(arguments);
        let of_choice = arguments.filter(move |(param, _)| param.is_chosen_by(choice));
        of_choice.map(move |(param, argument)| (choice, param, argument))
    });
    for (choice, param, argument) in chosen {
        let constants = match &constants {
            Some(constants) => constants,
            None => constants.insert(declaration.resolve(&config.constants)?),
        };
        let said = constants.get(choice.name);
        let of = match argument {
            Bound::Value(_) => None,
            Bound::Elements(elements) => Some(elements.of),
            Bound::Maps(maps) => maps.first().map(|map| map.of),
        };
        let given = of.and_then(Type::of_id).and_then(|of| choice.value_for(of));
        if let (Some(given), Some(said)) = (given, said)
            && given != said
        {
            return Err(format!(
                "{} is of {given}, the constant {} of {said}: the kernel takes one of both",
                param.name, choice.name
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

    #[cfg(feature = "cpu")]
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

#[cfg(feature = "cpu")]
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

/// A parameter's name and its argument.
pub type Named<'a> = (&'static str, Bound<'a>);

impl dyn AnyKernel {
    /// [`launch`](AnyKernel::launch), with arguments by name.
    ///
    /// # Errors
    /// As there, and [`Stop::Config`] for an argument that is missing, or that the kernel does not
    /// have.
    ///
    /// # Safety
    /// As there.
    #[cfg(feature = "cpu")]
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

    /// The kernel with its types, if its parameters are these.
    pub fn of_params<P: Params>(&self) -> Option<&Kernel<P>> {
        (self as &dyn Any).downcast_ref()
    }
}

#[cfg(feature = "cpu")]
impl dyn AnyCheckedKernel {
    /// [`check`](AnyCheckedKernel::check), with arguments by name.
    ///
    /// # Errors
    /// As there, and [`Stop::Config`] for an argument that is missing, or that the kernel does not
    /// have.
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
    /// Sorts values that are given by parameter name into the order of the parameters.
    ///
    /// # Errors
    /// A message that names a parameter without a value, or a name that is no parameter or is given
    /// twice.
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
