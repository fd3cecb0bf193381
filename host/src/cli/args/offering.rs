//! Values of a flag, and their names.

use std::ffi::OsStr;

use clap::{
    ValueEnum,
    builder::{PossibleValue, TypedValueParser},
};

/// A value's name on the command line.
pub(crate) fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Values that completion scripts offer. A parser may take more.
#[derive(Clone)]
pub(super) struct Offering<P> {
    pub(super) parser: P,
    pub(super) values: Vec<PossibleValue>,
}

impl<P: TypedValueParser> TypedValueParser for Offering<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<P::Value, clap::Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values.iter().cloned()))
    }
}
