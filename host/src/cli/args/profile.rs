//! Flags of `profile`.

use std::{num::NonZeroU32, path::PathBuf, str::FromStr};

use clap::{
    Args,
    builder::{PossibleValue, TypedValueParser},
};
use host::profile::{Gpu, gpu, gpu_names};

use super::{DeviceChoice, Offering, Sizes, check::WhichKernel, seed};

/// Flags of a profile.
#[derive(Args, Clone, Debug)]
#[command(after_help = PROFILE_EXIT_CODES)]
pub(crate) struct Profile {
    #[command(flatten)]
    pub(crate) sizes: Sizes,

    #[command(flatten)]
    pub(crate) kernel: WhichKernel,

    /// Count one block in N, and scale the counts [default: all blocks of a small grid, some
    /// hundred of a large one]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = every)]
    pub(crate) every: Option<NonZeroU32>,

    /// The GPU for the occupancy: a compute capability (sm_80, sm_89 ...), a product (rtx4090 ...),
    /// or cuda[:N] [default: this machine's, otherwise sm_90]
    #[arg(long, value_name = "GPU", value_parser = gpus(), hide_possible_values = true)]
    pub(crate) on: Option<On>,

    /// Seed of the random operands
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,

    /// One JSON object a kernel; `clean` is null if nothing was launched
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a page for a browser, too: the counts of each line, and of each the worst request of
    /// block 0,0, with the lanes' sectors and banks. One file that needs no other
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

const PROFILE_EXIT_CODES: &str =
    "Exit codes: 0 counted, and nothing found; 1 something was found; the others as for a product.";

impl Profile {
    /// The command line that checks this kernel with the same operands and in the same order.
    pub(crate) fn to_check(&self, kernel: &str) -> String {
        let Profile { sizes, seed, .. } = self;
        format!(
            "cargo run -p host -- check {sizes} --kernel {kernel} --seed {seed} --order forward"
        )
    }
}

/// The GPU for which the occupancy is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum On {
    /// A kind of GPU.
    Named(&'static Gpu),
    /// A GPU of this machine.
    Cuda(usize),
}

impl FromStr for On {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match DeviceChoice::from_str(text) {
            Ok(DeviceChoice::Cuda(index)) => Ok(On::Cuda(index)),
            _ => gpu(text).map(On::Named).map_err(|error| match error {
                host::Error::Argument { limit, .. } => format!("{limit}, or cuda, or cuda:N"),
                error => error.to_string(),
            }),
        }
    }
}

fn gpus() -> impl TypedValueParser<Value = On> {
    let values = gpu_names().chain(["cuda"]).map(PossibleValue::new).collect();
    Offering { parser: On::from_str, values }
}

fn every(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("must be a whole number from 1 to {}", u32::MAX))
}
