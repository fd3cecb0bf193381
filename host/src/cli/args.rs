//! The command's flags, each in one place.

use std::{fmt, str::FromStr};

use clap::{Args, Parser, Subcommand};
use host::{Device, gpu::registry::Entry, product};

/// Multiplies matrices with kernels written in Rust, on a GPU or on the CPU, and verifies the result.
///
/// C = A B, where A is m x k, B is k x n and C is m x n, all row-major float32.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Exit codes: 0 done and right, 1 C is wrong, 2 usage, 3 no such device, driver or \
                  architecture, 4 device fault or out of memory, 130 interrupted."
)]
pub(crate) struct Invocation {
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What else the command can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the kernels
    Kernels(List),
    /// List the devices
    Devices(List),
}

/// Flags of a list.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of a product. (The sizes are required; `required` lets the subcommands do without.)
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Rows of A and C
    #[arg(long, required = true, default_value = "0", hide_default_value = true)]
    #[arg(value_parser = size, allow_negative_numbers = true)]
    pub(crate) m: u64,

    /// Columns of B and C
    #[arg(long, required = true, default_value = "0", hide_default_value = true)]
    #[arg(value_parser = size, allow_negative_numbers = true)]
    pub(crate) n: u64,

    /// Columns of A and rows of B, the inner size
    #[arg(long, required = true, default_value = "0", hide_default_value = true)]
    #[arg(value_parser = size, allow_negative_numbers = true)]
    pub(crate) k: u64,

    /// Where to run: auto takes a GPU where there is one
    #[arg(long, value_name = "auto|cuda[:N]|cpu", default_value_t = DeviceChoice::Auto)]
    pub(crate) device: DeviceChoice,

    /// A kernel's name (`host kernels` lists them); auto takes the fastest
    #[arg(long, value_name = "auto|NAME", default_value = "auto", value_parser = kernel)]
    pub(crate) kernel: KernelChoice,

    /// Seed of the random operands
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,

    /// How often to run the kernel; the time shown is the median
    ///
    /// [default: 1 on the CPU; 20 on a GPU, after one run that is not counted]
    #[arg(long, value_parser = iterations, allow_negative_numbers = true)]
    pub(crate) iters: Option<u32>,

    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// A size as the command line gives it. Whether the product of two fits is checked with all three known.
fn size(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|&value| value <= u32::MAX.into())
        .ok_or_else(|| format!("must be a whole number from 0 to {}", u32::MAX))
}

fn iterations(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|&value| value > 0)
        .ok_or_else(|| format!("must be a whole number from 1 to {}", u32::MAX))
}

/// A kernel as the command line names it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KernelChoice {
    Auto,
    Named(&'static Entry),
}

fn kernel(name: &str) -> Result<KernelChoice, String> {
    match (name, product::find(name)) {
        ("auto", _) => Ok(KernelChoice::Auto),
        (_, Ok(entry)) => Ok(KernelChoice::Named(entry)),
        (_, Err(host::Error::Argument { limit, .. })) => Err(limit + ", or auto"),
        (_, Err(error)) => Err(error.to_string()),
    }
}

impl KernelChoice {
    /// The kernel to run on that device.
    pub(crate) fn resolve(self, device: &Device) -> &'static Entry {
        match self {
            KernelChoice::Auto => product::preferred(device),
            KernelChoice::Named(entry) => entry,
        }
    }
}

/// A device as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    Auto,
    Cuda(usize),
    Cpu,
}

const SYNTAX: &str = "must be auto, cpu, cuda, or cuda:N with N from 0";

impl FromStr for DeviceChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.strip_prefix("cuda:")) {
            ("auto", _) => Ok(DeviceChoice::Auto),
            ("cpu", _) => Ok(DeviceChoice::Cpu),
            ("cuda", _) => Ok(DeviceChoice::Cuda(0)),
            (_, Some(index)) => index.parse().map(DeviceChoice::Cuda).map_err(|_| SYNTAX),
            _ => Err(SYNTAX),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cuda(index) => write!(f, "cuda:{index}"),
            DeviceChoice::Cpu => f.write_str("cpu"),
        }
    }
}

impl DeviceChoice {
    /// The device, and if the CPU was taken for want of a GPU, why.
    pub(crate) fn open(self) -> host::Result<(Device, Option<String>)> {
        match self {
            DeviceChoice::Auto => {
                let best = Device::best();
                Ok((best.device, best.why_no_gpu))
            }
            DeviceChoice::Cuda(index) => Ok((Device::cuda(index)?, None)),
            DeviceChoice::Cpu => Ok((Device::cpu(), None)),
        }
    }
}
