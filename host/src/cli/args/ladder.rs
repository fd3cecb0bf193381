//! Flags of `ladder` and `explain`.

use std::{fmt, path::PathBuf, str::FromStr};

use clap::{
    Args,
    builder::{PossibleValue, TypedValueParser},
};
use host::{
    Device, Shape,
    gpu::registry::{self, Entry, Product, TOY, Type},
};

use super::{
    DeviceChoice, Offering, Verify, all_products, devices, find, seconds, seed, size, types::one_of,
};

/// Flags of the ladder.
#[derive(Args, Clone, Debug)]
#[command(after_help = LADDER_EXIT_CODES)]
pub(crate) struct Ladder {
    /// m, n and k alike [default: 4096 on a GPU, 256 on the CPU]
    #[arg(long, value_name = "N", value_parser = at_least_one, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["m", "n", "k"])]
    size: Option<u64>,

    /// Rows of A and C
    #[arg(short, long, requires_all = ["n", "k"])]
    #[arg(value_parser = at_least_one, allow_negative_numbers = true)]
    m: Option<u64>,

    /// Columns of B and C
    #[arg(short, long, requires_all = ["m", "k"])]
    #[arg(value_parser = at_least_one, allow_negative_numbers = true)]
    n: Option<u64>,

    /// Columns of A and rows of B, the inner size
    #[arg(short, long, requires_all = ["m", "n"])]
    #[arg(value_parser = at_least_one, allow_negative_numbers = true)]
    k: Option<u64>,

    /// Which ladder: f32 on CUDA cores, or bf16 on tensor cores
    #[arg(long = "type", default_value_t = Type::F32, hide_possible_values = true)]
    #[arg(value_name = "f32|bf16", value_parser = types_with_a_ladder())]
    pub(crate) operands: Type,

    /// Where to time the rungs: auto takes a GPU if there is one. Without a GPU and without a size,
    /// the figures recorded on an H200 are shown. Rungs are always counted on the CPU
    #[arg(long, value_name = "auto|cuda[:N]|cpu", default_value_t = DeviceChoice::Auto)]
    #[arg(value_parser = devices(), hide_possible_values = true)]
    pub(crate) device: DeviceChoice,

    /// Seed of the random operands
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,

    /// Which elements of C to compare with float64, once for each rung; auto compares all if that
    /// takes seconds
    #[arg(long, value_parser = Verify::something(), default_value = "auto")]
    pub(crate) verify: Verify,

    /// Seconds to measure each rung [default: 1 on a GPU, 0.25 on the CPU]
    #[arg(long, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,

    /// One JSON object a rung
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw the speed of each rung as bars
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) plot: Option<Picture>,

    /// Draw each rung under the device's roof: speed against FLOP per byte
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub(crate) roofline: Option<Picture>,

    /// Run nothing: show and draw what `ladder --json` printed to this file
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["size", "m", "n", "k", "operands", "device", "seed", "verify", "seconds"])]
    pub(crate) from: Option<PathBuf>,

    /// Replace the file of --from, if a picture is to be written there
    #[arg(long, requires = "from")]
    pub(crate) force: bool,
}

const LADDER_EXIT_CODES: &str = "Exit codes: 0 every rung is right; 1 one is wrong, and was not timed; the others as for a product.";

impl Ladder {
    /// Whether no flag asks for a measurement: then the recorded figures may be shown.
    pub(crate) fn is_plain(&self) -> bool {
        let Ladder { size, m, seconds, seed, verify, device, .. } = self;
        let measured_so = self.operands != Type::F32
            || size.is_some()
            || m.is_some()
            || seconds.is_some()
            || *seed != 1;
        !measured_so && *verify == Verify::Auto && *device == DeviceChoice::Auto
    }

    /// The sizes asked for, or default ones that take the device about a minute.
    pub(crate) fn shape_on(&self, device: &Device) -> host::Result<Shape> {
        match (self.m, self.n, self.k) {
            (Some(m), Some(n), Some(k)) => Shape::new(m, n, k),
            _ => {
                let size = self.size.unwrap_or(if device.is_cuda() { 4096 } else { 256 });
                Shape::new(size, size, size)
            }
        }
    }

    /// The seconds to measure each rung.
    pub(crate) fn seconds_on(&self, device: &Device) -> f64 {
        self.seconds.unwrap_or(if device.is_cuda() { 1.0 } else { 0.25 })
    }
}

impl Verify {
    /// The values that compare something.
    fn something() -> impl TypedValueParser<Value = Verify> {
        const NAMES: [(&str, Verify); 3] =
            [("auto", Verify::Auto), ("full", Verify::Full), ("sample", Verify::Sample)];
        clap::builder::PossibleValuesParser::new(NAMES.map(|(name, _)| name)).map(|chosen| {
            let verify = NAMES.iter().find(|(name, _)| *name == chosen);
            verify.map_or(Verify::Auto, |(_, verify)| *verify)
        })
    }
}

/// A size of at least one: an empty product has no time.
fn at_least_one(text: &str) -> Result<u64, String> {
    let limit = || format!("must be a whole number from 1 to {}", u32::MAX);
    size(text).ok().filter(|&size| size > 0).ok_or_else(limit)
}

/// The types that a ladder is of.
fn types_with_a_ladder() -> impl TypedValueParser<Value = Type> {
    one_of(Type::multiplied().filter(|of| registry::ladder_of(*of).next().is_some()).collect())
}

/// A file to draw to.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

/// The format, from the file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    Png,
}

impl FromStr for Picture {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        let extension =
            path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let format = match extension.as_deref() {
            Some("svg") => Format::Svg,
            Some("png") => Format::Png,
            _ if text == "-" => {
                return Err(
                    "is not standard output: must be a file that ends in .svg or .png".to_owned()
                );
            }
            _ => return Err("must end in .svg or .png".to_owned()),
        };
        Ok(Picture { path, format })
    }
}

/// Flags of an explanation.
#[derive(Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("traced").multiple(true))]
pub(crate) struct Explain {
    /// The kernel's name (`host kernels` lists them); tiled2 is a tiled kernel small enough to
    /// follow
    #[arg(value_name = "NAME", value_parser = kernels_and_toy(), hide_possible_values = true)]
    pub(crate) kernel: Explained,

    /// Run it on the CPU, and print what each thread of one block does in each phase
    #[arg(long, group = "traced")]
    pub(crate) trace: bool,

    /// Print the trace as one JSON object: each warp's requests with the address of each lane,
    /// their sectors and wavefronts, and the stages of a pipeline over time
    #[arg(long, requires = "trace")]
    pub(crate) json: bool,

    /// Write the trace as a page for a browser: one file that needs no other
    #[arg(long, value_name = "FILE", group = "traced")]
    pub(crate) html: Option<PathBuf>,

    /// Rows of A and C in the trace [default: two blocks; in a page or JSON one]
    #[arg(short, long, requires = "traced", value_parser = traced, allow_negative_numbers = true)]
    m: Option<u64>,

    /// Columns of B and C in the trace [default: two blocks; in a page or JSON one]
    #[arg(short, long, requires = "traced", value_parser = traced, allow_negative_numbers = true)]
    n: Option<u64>,

    /// Columns of A and rows of B in the trace [default: the width of two blocks, at most 32; in a
    /// page or JSON of a kernel on tensor cores six stages]
    #[arg(short, long, requires = "traced", value_parser = traced, allow_negative_numbers = true)]
    k: Option<u64>,

    /// The block to trace: its column and row in the grid
    #[arg(long, value_name = "X,Y", requires = "traced", default_value = "0,0")]
    pub(crate) block: BlockIndex,
}

impl Explain {
    /// The sizes of a trace for a kernel with these tiles.
    pub(crate) fn shape(&self, [rows, cols]: [u32; 2]) -> host::Result<Shape> {
        let two = |tile: u32| u64::from(2 * tile);
        let k = two(rows.min(cols)).min(32);
        Shape::new(self.m.unwrap_or(two(rows)), self.n.unwrap_or(two(cols)), self.k.unwrap_or(k))
    }

    /// The sizes of a picture: one block. Of persistent CTAs two tiles, so that the pipeline goes
    /// on from one to the next.
    pub(crate) fn shape_of_picture(&self, product: &Product) -> host::Result<Shape> {
        let [rows, cols] = product.tile().map(u64::from);
        let (tiles, k) = match product.variant.operands == Type::BF16 {
            true if product.persistent => (2, 4 * STAGE),
            true => (1, 6 * STAGE),
            false => (1, (2 * rows.min(cols)).min(32)),
        };
        Shape::new(self.m.unwrap_or(tiles * rows), self.n.unwrap_or(cols), self.k.unwrap_or(k))
    }
}

/// K-steps of a stage of the rungs on tensor cores.
const STAGE: u64 = 64;

/// A size of a trace. People read a trace, so it is small.
fn traced(text: &str) -> Result<u64, String> {
    const MOST: u64 = 1024;
    let limit =
        || format!("must be a whole number from 1 to {MOST}: a trace is for small products");
    size(text).ok().filter(|size| (1..=MOST).contains(size)).ok_or_else(limit)
}

/// A kernel of the registry, or `tiled2`, which is in no list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Explained(pub(crate) &'static Entry);

impl FromStr for Explained {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == TOY.name() {
            return Ok(Explained(&TOY));
        }
        find(name, TOY.name()).map(Explained)
    }
}

fn kernels_and_toy() -> impl TypedValueParser<Value = Explained> {
    let listed = all_products().chain([&*TOY]);
    let values = listed.map(|entry| PossibleValue::new(entry.name()).help(entry.summary)).collect();
    Offering { parser: Explained::from_str, values }
}

/// A block's column and row in the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockIndex(pub(crate) [u32; 2]);

impl FromStr for BlockIndex {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let index = text
            .split_once(',')
            .and_then(|(x, y)| Some(BlockIndex([x.trim().parse().ok()?, y.trim().parse().ok()?])));
        index.ok_or("must be X,Y: two whole numbers, the block's column and its row")
    }
}

impl fmt::Display for BlockIndex {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let BlockIndex([x, y]) = self;
        write!(f, "{x},{y}")
    }
}
