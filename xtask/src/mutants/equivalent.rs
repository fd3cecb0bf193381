//! Mutants that are no mistakes: each was looked at, and each says why nothing can find it.

use super::mutant::Mutant;

/// A change of a kernel that makes no difference. It names no line number: those change.
#[derive(Debug)]
pub struct Equivalent {
    /// The kernels that it is true of.
    pub kernels: &'static [&'static str],
    /// The operator's name.
    pub operator: &'static str,
    /// The line that it stands in, without the space around it.
    pub line: &'static str,
    /// What stood there.
    pub from: &'static str,
    /// What stands there now.
    pub to: &'static str,
    /// Why it makes no difference.
    pub reason: &'static str,
}

impl Equivalent {
    /// Is this mutant of this kernel the one that is meant?
    pub fn is(&self, kernel: &str, mutant: &Mutant) -> bool {
        self.kernels.contains(&kernel)
            && self.operator == mutant.operator.name()
            && (self.line, self.from, self.to) == (&mutant.line, &mutant.from, &mutant.to)
    }
}

/// All of them. One that is found after all, or that is no mutant any more, is an error.
pub const EQUIVALENT: &[Equivalent] = &[];
