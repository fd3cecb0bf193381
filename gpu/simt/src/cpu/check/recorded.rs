//! What the launches of a case found: `case` reads what `launch` records.

use std::sync::{Mutex, PoisonError};

use super::{finding::Finding, limits::Limit, place::Place};
use crate::Declaration;

/// The launches of a case in one order.
#[derive(Debug, Default)]
pub(super) struct Launches(Mutex<Vec<Launch>>);

/// A launch.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) findings: Vec<Finding>,
    pub(super) limits: Vec<Limit>,
    /// The kernel's place.
    pub(super) place: Place,
}

impl Launches {
    pub(super) fn add(&self, kernel: &Declaration, findings: &[Finding], limits: &[Limit]) {
        let file = kernel.file.replace("/./", "/");
        let place = Place { file, line: kernel.line, column: 1 };
        let launch = Launch { findings: findings.to_vec(), limits: limits.to_vec(), place };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(launch);
    }

    /// All of them, in their order.
    pub(super) fn into_all(self) -> Vec<Launch> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
