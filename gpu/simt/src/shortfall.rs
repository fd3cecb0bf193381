//! The error for a buffer that is shorter than its kernel declares.

use std::fmt;

use crate::{Size, count_of};

/// A buffer that is too short for the sizes of the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The parameter.
    pub param: &'static str,
    /// The number of its elements.
    pub len: usize,
    /// The declared rule as written: `m * k`.
    pub rule: &'static str,
    /// The number of elements that the rule gives.
    pub needed: i128,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Shortfall { param, len, rule, needed } = self;
        write!(f, "{param} has {}, {rule} = {needed} are needed", count_of(len, "element"))
    }
}

impl Shortfall {
    /// Compares a buffer's length with the number of elements that a rule requires. A parameter
    /// without a length passes.
    #[doc(hidden)]
    pub fn check(
        param: &'static str,
        len: Option<usize>,
        rule: &'static str,
        needed: impl Into<Size>,
    ) -> Result<(), Shortfall> {
        let Size(needed) = needed.into();
        match len {
            Some(len) if (len as i128) < needed => Err(Shortfall { param, len, rule, needed }),
            _ => Ok(()),
        }
    }
}
