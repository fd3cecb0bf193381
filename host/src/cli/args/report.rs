//! Flags of `report`.

use std::path::PathBuf;

use clap::Args;

use super::{DeviceChoice, devices, seconds};

/// Flags of a report.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// The folder for report.md and results.csv. It is created if necessary
    pub(crate) folder: PathBuf,

    /// Where to run
    #[arg(long, value_name = "cuda[:N]|cpu", default_value_t = DeviceChoice::Cuda(0))]
    #[arg(value_parser = devices(), hide_possible_values = true)]
    pub(crate) device: DeviceChoice,

    /// Seconds after which nothing more is begun; the last step may exceed them. What is left out
    /// is named
    #[arg(long, default_value_t = 600.0, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) seconds: f64,

    /// The commit of the sources, if git cannot be asked
    #[arg(long, value_name = "HASH")]
    pub(crate) commit: Option<String>,
}
