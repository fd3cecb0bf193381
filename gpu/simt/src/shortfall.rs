//! Buffers that are shorter than their kernel declares.

use std::fmt;

use crate::Size;

/// A buffer that is too short for the sizes it is launched with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The parameter.
    pub param: &'static str,
    /// Elements it has.
    pub len: usize,
    /// The declared requirement, as written: `m * k`.
    pub rule: &'static str,
    /// What it comes to.
    pub needed: i128,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Shortfall { param, len, rule, needed } = self;
        write!(f, "{param} has {len} elements, {rule} = {needed} are needed")
    }
}

impl Shortfall {
    #[doc(hidden)]
    #[allow(missing_docs)]
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
