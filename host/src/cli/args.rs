//! The command's flags, each in one place.

mod bench;
mod blur;
mod bytes;
mod check;
mod devices;
mod epilogue;
mod errors;
mod gemm;
mod kernel;
mod ladder;
mod offering;
mod profile;
mod random;
mod report;
mod types;

use std::{fmt, path::PathBuf, str::FromStr};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use host::{
    Device, Shape, TuningCache,
    gemm::{CARDS, Card, Output, Scalar},
    scaling::{ScaleKind, Scaling},
};

pub(crate) use self::{
    bench::{Bench, BenchKernel, Group, INVARIANT, Layouts, Vs},
    blur::Blur,
    check::Check,
    devices::DevicesChoice,
    epilogue::AsFlags,
    errors::{Errors, Numbers},
    gemm::Gemm,
    kernel::{KernelChoice, flags, is_counted, product_by},
    ladder::{Explain, Format, Ladder, Picture},
    offering::name_of,
    profile::{On, Profile},
    report::Report,
    types::{ComputeMode, TypeFlags},
};
use self::{
    kernel::{all_products, auto_or_named, find, kernels},
    offering::Offering,
};

/// Multiplies matrices with kernels written in Rust, on a GPU or on the CPU, and verifies the
/// result.
///
/// C = A B, where A is m x k, B is k x n and C is m x n, all row-major, of the type
/// `--type`. The result goes to standard output; notes and progress go to standard error.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = EXIT_CODES
)]
pub(crate) struct Invocation {
    #[command(flatten)]
    pub(crate) run: Run,

    /// Print each step and its time on standard error
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 done, and nothing compared is wrong; 1 C is wrong, or a check found something, 2 usage, 3 no such \
                          device, driver or architecture, 4 device fault, out of memory, or a disk or standard output that is not written, 130 interrupted by Ctrl-C; after another signal it ends by that signal.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show in two minutes what is here, without a GPU
    ///
    /// It runs the course's first kernel, counts its sectors, lets a race be found, compares three
    /// rungs by their counts, and ends with three next commands.
    Tour,
    /// Time kernels side by side, and compared with cuBLAS
    ///
    /// Every kernel is verified at every size. Then all are timed in turn, in one process, so that
    /// clocks and temperature affect them alike. With --vs the kernel that `auto` selects is
    /// compared with the fastest of cuBLAS and of cublasLt's algorithms. A wrong kernel is shown,
    /// and not timed.
    Bench(Bench),
    /// Compare errors with cuBLAS's, over kinds of numbers and inner sizes
    ///
    /// Products of f32 of numbers that are normal, positive, of wide exponents and so on, with sums
    /// of 64 to 16384 terms, each beside float64: the median and the largest relative error, that
    /// in the Frobenius norm, and the largest
    /// |error| / (|A| |B|), which is what bounds are of.
    Errors(Errors),
    /// Show every rung of the course: its speed, its counts, what changed and why
    ///
    /// Each rung is verified, then all are timed in turn on the device at hand. What a rung does to
    /// memory is counted on the CPU at a small size of its own, so it is known without a GPU too.
    /// On a GPU cuBLAS's float32 product is timed in the same rounds, where its library is there.
    /// On a machine without a GPU the figures are those that were recorded on an H200, unless
    /// --device, a size or --seconds asks for its own.
    Ladder(Ladder),
    /// Explain one kernel: its idea, its figures, its source, and with --trace its phases
    Explain(Explain),
    /// Run a kernel on the CPU with every access checked, and report its errors
    ///
    /// It finds races in shared and in global memory, reads of memory that was not written,
    /// accesses out of bounds, barriers that some threads skip, and elements that are left out. It
    /// does not depend on the result. Threads and blocks run in several orders, because CUDA
    /// promises none. C is compared as after every product.
    Check(Check),
    /// Count on the CPU the memory accesses of each source line of a kernel
    ///
    /// A warp's accesses are combined into requests, sectors and wavefronts as on a GPU, and summed
    /// under Nsight Compute's names. The report also says how many of the kernel's blocks an SM
    /// holds, and which resource limits that. The kernel is checked at the same time: `check`
    /// reports more about findings.
    Profile(Profile),
    /// Multiply matrices in NumPy's files: C = alpha op(A) op(B) + beta C
    ///
    /// Files that do not fit into the device's memory are multiplied in blocks: the next blocks are
    /// read and copied while the current ones are multiplied. If the inner size is not split, the
    /// result has the same bits. The new file is compared with the product in float64 before it
    /// gets its name.
    Gemm(Gemm),
    /// Blur an image, a PNG file
    ///
    /// Every pixel becomes the mean of the (2 RADIUS + 1) x (2 RADIUS + 1) box around it. Pixels
    /// outside the image do not count. Each channel is computed separately and rounded to the
    /// nearest integer. The result is compared with the reference, byte by byte, before it is
    /// written.
    Blur(Blur),
    /// List the kernels, by what they compute
    Kernels(Kernels),
    /// List the devices
    Devices(List),
    /// Check this machine's driver, devices and settings
    Doctor(List),
    /// Verify and time the kernels of a card, and write a file to attach to an issue
    ///
    /// Every family of kernels that the card runs is compared with float64 at ragged sizes of each
    /// type. Then `auto`'s kernels are timed at the sizes of `bench --sizes all`, with cuBLAS where
    /// it is installed. FOLDER/report.md also has the card, its driver and its clocks.
    Report(Report),
    /// Print a completion script for a shell
    Completions(Completions),
}

/// Flags of a list.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of the list of kernels.
#[derive(Args, Debug)]
pub(crate) struct Kernels {
    /// List kernels that match all of these words: a type of A and B (f32, f64, bf16, f16), or the
    /// start of a word in a kernel's name or summary, as in `kernels lessons` or
    /// `kernels bf16 tensor`
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The shell of a completion script.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// The sizes of a product. (They are required. `required` allows subcommands without them.)
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Rows of A and C
    #[arg(short, long, required = true, default_value = "0", hide_default_value = true)]
    #[arg(value_parser = size, allow_negative_numbers = true)]
    m: u64,

    /// Columns of B and C
    #[arg(short, long, required = true, default_value = "0", hide_default_value = true)]
    #[arg(value_parser = size, allow_negative_numbers = true)]
    n: u64,

    /// Columns of A and rows of B, the inner size
    #[arg(short, long, required = true, default_value = "0", hide_default_value = true)]
    #[arg(value_parser = size, allow_negative_numbers = true)]
    k: u64,
}

impl Sizes {
    pub(crate) fn shape(self) -> host::Result<Shape> {
        Shape::new(self.m, self.n, self.k)
    }
}

/// As flags.
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Sizes { m, n, k } = self;
        write!(f, "--m {m} --n {n} --k {k}")
    }
}

/// Flags of a product.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) sizes: Sizes,

    /// Where to run: auto takes a GPU if there is one
    #[arg(long, value_name = "auto|cuda[:N]|cpu", default_value_t = DeviceChoice::Auto)]
    #[arg(value_parser = devices(), hide_possible_values = true)]
    pub(crate) device: DeviceChoice,

    /// A kernel's name (`host kernels` lists them); auto takes the one with the shortest predicted
    /// time (--plan says why)
    #[arg(long, value_name = "auto|NAME", default_value_t = KernelChoice::Auto)]
    #[arg(value_parser = kernels(), hide_possible_values = true)]
    pub(crate) kernel: KernelChoice,

    #[command(flatten)]
    pub(crate) types: TypeFlags,

    /// Multiply A and B by random scales, of 8-bit numbers: one for each row of A and column of B,
    /// or for each 1 x 128 of A and 128 x 128 of B
    #[arg(long, value_name = "rows-cols|blocks", conflicts_with = "devices")]
    pub(crate) scales: Option<ScaleKind>,

    /// The bits of a row of C depend on no other row, nor on the number of SMs
    #[arg(long)]
    pub(crate) invariant: bool,

    /// Time at most eight kernels, and take the fastest instead of the one with the shortest
    /// predicted time. With FILE: take the answer from there, or keep it there
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "plan")]
    pub(crate) tune: Option<Option<PathBuf>>,

    /// Elements of A and B
    #[arg(long, value_enum, default_value_t = Init::Uniform)]
    pub(crate) init: Init,

    /// Seed of the random operands
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,

    /// Which elements of C to compare with float64
    #[arg(long, value_enum, default_value_t = Verify::Auto)]
    pub(crate) verify: Verify,

    /// How often to run the kernel; the time shown is the median [default: 1 on the CPU, 20 on a
    /// GPU]
    #[arg(long, value_parser = iterations, allow_negative_numbers = true)]
    pub(crate) iters: Option<u32>,

    /// Runs before those that are timed [default: 0 on the CPU, 1 on a GPU]
    #[arg(long, allow_negative_numbers = true, value_parser = count)]
    pub(crate) warmup: Option<u32>,

    /// Print what would run, and why, and run nothing. No device is opened: a launch has the limits
    /// of any CUDA device
    #[arg(long)]
    pub(crate) plan: bool,

    /// The GPU to plan for. Times are predicted from measurements on an H200 and from the GPU's
    /// published figures [default: h200, with --device cpu the CPU]
    #[arg(long, value_parser = cards(), value_name = "GPU", requires = "plan")]
    pub(crate) on: Option<&'static Card>,

    /// Plan for so many devices of one machine: A and C by rows, B by columns. Shows the predicted
    /// times of other numbers, too
    #[arg(long, value_name = "N", requires = "plan", conflicts_with = "json")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) devices: Option<u16>,

    /// One JSON object on standard output; `verified` is null if nothing was compared
    #[arg(long)]
    pub(crate) json: bool,
}

/// A GPU to plan for, by name. It need not be present.
fn cards() -> impl TypedValueParser<Value = &'static Card> {
    let names = CARDS.iter().map(|card| card.name);
    PossibleValuesParser::new(names)
        .try_map(|name| Card::named(&name).ok_or_else(|| format!("{name} is not known")))
}

impl Run {
    /// The product of these types.
    ///
    /// # Errors
    /// As [`KernelChoice::product`].
    pub(crate) fn product<T: Scalar<O>, O: Output>(
        &self,
    ) -> host::Result<host::Gemm<'static, T, O>> {
        let gemm = self.kernel.product(self.types.compute())?;
        Ok(if self.invariant { gemm.invariant() } else { gemm })
    }

    /// Random scales of the product, if it has any, perhaps for exact sums.
    ///
    /// # Errors
    /// As [`Scaling::draw`].
    pub(crate) fn scaling(&self, shape: Shape, are_exact: bool) -> host::Result<Option<Scaling>> {
        self.scales.map(|kind| Scaling::draw(kind, shape, self.seed, are_exact)).transpose()
    }

    /// What was timed before, if the product is tuned.
    ///
    /// # Errors
    /// As [`TuningCache::open`].
    pub(crate) fn tuning(&self) -> host::Result<Option<TuningCache>> {
        let open = |file: &Option<PathBuf>| match file {
            Some(path) => TuningCache::open(path),
            None => Ok(TuningCache::new()),
        };
        self.tune.as_ref().map(open).transpose()
    }

    /// The command line that repeats this run on that device.
    pub(crate) fn to_command(&self, device: &str) -> String {
        let Run { sizes, kernel, types, seed, .. } = self;
        let mut line = format!("cargo run -p host -- {sizes}{types} --device {device}");
        if let Some(scales) = self.scales {
            line += &format!(" --scales {scales}");
        }
        if self.invariant {
            line += " --invariant";
        }
        match &self.tune {
            Some(Some(path)) => line += &format!(" --tune {}", path.display()),
            Some(None) => line += " --tune",
            None => (),
        }
        line += &format!(" --kernel {kernel} --init {} --seed {seed}", name_of(&self.init));
        line += &format!(" --verify {}", name_of(&self.verify));
        for (flag, value) in [("iters", self.iters), ("warmup", self.warmup)] {
            if let Some(value) = value {
                line += &format!(" --{flag} {value}");
            }
        }
        line
    }
}

/// The values in the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Init {
    /// Uniform in [-1, 1)
    Uniform,
    /// Normal, mean 0, deviation 1
    Normal,
    /// Integers so small that the result is exact
    Int,
    /// Uniform, with a NaN in some rows of A and some columns of B
    Nan,
}

/// Which elements of C are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    /// All of it if that takes seconds, otherwise a sample
    Auto,
    /// Every element
    Full,
    /// 4096 elements, and random projections of all of C (Freivalds' check)
    Sample,
    /// Nothing
    None,
}

/// A size from the command line. The number of a matrix's elements is checked when all three sizes
/// are known.
fn size(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|&value| value <= u32::MAX.into())
        .ok_or_else(|| format!("must be a whole number from 0 to {}", u32::MAX))
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| (0.001..=3600.0).contains(seconds))
        .ok_or_else(|| "must be a number of seconds from 0.001 to 3600".to_owned())
}

fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16),
        _ => text.parse(),
    };
    number.map_err(|_| {
        let most = u64::MAX;
        format!("must be a whole number from 0 to {most}, or 0x and its hexadecimal digits")
    })
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u32::MAX))
}

fn iterations(text: &str) -> Result<u32, String> {
    within::<1, { u32::MAX }>(text)
}

fn within<const FIRST: u32, const LAST: u32>(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|value| (FIRST..=LAST).contains(value))
        .ok_or_else(|| format!("must be a whole number from {FIRST} to {LAST}"))
}

fn devices() -> impl TypedValueParser<Value = DeviceChoice> {
    let values = ["auto", "cuda", "cpu"].map(PossibleValue::new).into();
    Offering { parser: DeviceChoice::from_str, values }
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
    /// Opens the device. If `auto` took the CPU because there is no GPU: why.
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
