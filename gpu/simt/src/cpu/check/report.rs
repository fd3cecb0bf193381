//! What a checked launch gives: findings, and the profile and trace where they were asked for.

use std::fmt;

use super::{finding::Finding, limits::Limit, profile::Profile, trace::Trace};
use crate::{count_of, cpu::order::Order};

/// What a checked launch found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The order of blocks, warps and lanes in which it ran. A launch in the same order repeats it.
    pub order: Order,
    /// What is wrong with the kernel; empty where nothing was found.
    pub findings: Vec<Finding>,
    /// What may have been missed, since a limit was reached. They make a report no less clean.
    pub limits: Vec<Limit>,
    /// Counts of accesses, if [`Options::profile`](super::Options::profile) asked for them.
    pub profile: Option<Profile>,
    /// The traced block's accesses. `None` where [`Options::trace`](super::Options::trace) asked
    /// for none, or the grid does not have the block.
    pub trace: Option<Trace>,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Report { kernel, order, findings, limits, .. } = self;
        match findings.len() {
            0 => write!(f, "{kernel}: nothing found (order: {order})")?,
            count => write!(f, "{kernel}: {} (order: {order})", count_of(count, "finding"))?,
        }
        findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))?;
        limits.iter().try_for_each(|limit| write!(f, "\nlimit reached: {}", limit.says()))
    }
}
