//! Flags of `bench`.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, ValueEnum};
use host::{Device, Shape, baseline::DenseBatch, gpu::registry::Entry, timing};

use super::{
    DeviceChoice, TypeFlags, Verify, auto_or_named, bytes::bytes_or_none, devices,
    epilogue::EpilogueFlags, find, name_of, random::Random, seconds, seed, size,
};

/// A kernel to be timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchKernel {
    /// `None` for `auto`.
    pub(crate) entry: Option<&'static Entry>,
    /// The number of blocks of a cluster that split k.
    pub(crate) split_k: Option<u32>,
    /// The number of partial products.
    pub(crate) partials: Option<u32>,
    /// The bits of a row depend on no other row.
    pub(crate) invariant: bool,
}

/// What follows the name of a kernel for an invariant product.
pub(crate) const INVARIANT: &str = "+invariant";

impl BenchKernel {
    pub(crate) const AUTO: BenchKernel =
        BenchKernel { entry: None, split_k: None, partials: None, invariant: false };
    pub(crate) const INVARIANT: BenchKernel = BenchKernel { invariant: true, ..BenchKernel::AUTO };

    pub(crate) fn of(entry: &'static Entry) -> Self {
        BenchKernel { entry: Some(entry), ..Self::AUTO }
    }
}

impl fmt::Display for BenchKernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.entry.map_or("auto", |entry| entry.name()))?;
        self.split_k.map_or(Ok(()), |blocks| write!(f, ":{blocks}"))?;
        self.partials.map_or(Ok(()), |count| write!(f, "/{count}"))?;
        f.write_str(if self.invariant { INVARIANT } else { "" })
    }
}

impl FromStr for BenchKernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (text, invariant) = match text.strip_suffix(INVARIANT) {
            Some(kernel) => (kernel, true),
            None => (text, false),
        };
        let number = |of: &str, what: &str| {
            of.parse::<u32>().map_err(|_| format!("{text}: {what} must be a number"))
        };
        let (rest, count) = match text.split_once('/') {
            Some((rest, count)) => (rest, Some(number(count, "partial products")?)),
            None => (text, None),
        };
        let (name, blocks) = match rest.split_once(':') {
            Some((name, blocks)) => (name, Some(number(blocks, "blocks that split k")?)),
            None => (rest, None),
        };
        let entry = if name == "auto" { None } else { Some(find(name, "auto")?) };
        Ok(BenchKernel { entry, split_k: blocks, partials: count, invariant })
    }
}

fn kernels() -> impl clap::builder::TypedValueParser<Value = BenchKernel> {
    auto_or_named(BenchKernel::from_str)
}

/// Flags of a benchmark.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Bench {
    /// Sizes, separated by commas: N for a cube, MxNxK (C is M x N, K the inner size), COUNT*MxNxK
    /// for a batch, or a group: square, ragged, skinny, transformer, batched, all [default:
    /// 512,1024,2048,4096 on a GPU, 128,256,512 on the CPU; with --vs all]
    #[arg(long, value_delimiter = ',')]
    pub(crate) sizes: Vec<BenchSize>,

    /// Kernels, separated by commas; without --vs the others are compared with the first. With
    /// NAME:BLOCKS this number of blocks of a cluster splits k, with NAME/COUNT it is computed as
    /// so many partial products, if the kernel can, with NAME+invariant the bits of a row depend on
    /// no other row [default: of f32 all lessons and general
    /// products, in the order of `host kernels`; of other types and arithmetics auto, then the
    /// library's kernels for them; with --vs auto]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(value_parser = kernels(), hide_possible_values = true)]
    pub(crate) kernels: Vec<BenchKernel>,

    #[command(flatten)]
    pub(crate) random: Random,

    /// Time auto+invariant, too. For random shapes the summary has the mean of its time over auto's
    #[arg(long)]
    pub(crate) invariant: bool,

    /// Compare with other libraries: cuBLAS and cublasLt on a GPU, with cublas-fast cublasLt's fast
    /// accumulation of 8-bit floats; on the CPU device nalgebra and the crate gemm
    #[arg(long, value_enum)]
    pub(crate) vs: Option<Vs>,

    /// The layouts of A and B, separated by commas: n row-major, t column-major, A's letter first
    #[arg(long, value_name = "nn|nt|tn|tt", value_delimiter = ',', default_value = "nn")]
    pub(crate) trans: Vec<Layouts>,

    #[command(flatten)]
    pub(crate) types: TypeFlags,

    #[command(flatten)]
    pub(crate) epilogue: EpilogueFlags,

    /// Where to run: auto takes a GPU if there is one
    #[arg(long, value_name = "auto|cuda[:N]|cpu", default_value_t = DeviceChoice::Auto)]
    #[arg(value_parser = devices(), hide_possible_values = true)]
    pub(crate) device: DeviceChoice,

    /// Device memory for a kernel's workspace, besides the operands: kernels that need more are
    /// left out. Bytes, or with K, M, G or T [default: 256M; 4G for i8 and
    /// emulated fp32]
    #[arg(long, value_name = "BYTES", value_parser = bytes_or_none, allow_negative_numbers = true)]
    pub(crate) workspace_limit: Option<u64>,

    /// Seed of the random operands, and of random shapes
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,

    /// Which elements of C to compare with float64, once for each kernel and size; auto compares
    /// all if that takes seconds, with --vs if it takes one
    #[arg(long, value_enum, default_value_t = Verify::Auto)]
    pub(crate) verify: Verify,

    /// Seconds to measure each kernel at each size. At least seven rounds are measured. Warm-up and
    /// verification are additional [default: 1; with --vs 0.25, with --random 0.15]
    #[arg(long, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,

    /// Time each kernel's sustained speed: it runs alone for this time, after half of it untimed,
    /// in turn, seven times [default: kernels alternate every millisecond, and one that draws more
    /// power profits from the others]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    #[arg(num_args = 0..=1, default_missing_value = "1", conflicts_with = "seconds")]
    pub(crate) sustained: Option<f64>,

    /// One JSON object a line; `verified` is null if nothing was compared
    #[arg(long)]
    pub(crate) json: bool,

    /// Write results.jsonl, results.csv, machine.json and pictures (speed, ratio, roofline; for
    /// random shapes random; each as SVG and PNG) to this folder. It is created if necessary
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    /// Replace the results of --from or --compare, if they are in the folder of --out
    #[arg(long, requires = "out")]
    pub(crate) force: bool,

    /// The commit for machine.json, if git cannot be asked
    #[arg(long, value_name = "HASH", requires = "out")]
    pub(crate) commit: Option<String>,

    /// Run nothing: show and draw what --out wrote to this folder, or --json printed to this file;
    /// several are joined
    #[arg(long, value_name = "FOLDER|FILE", num_args = 1..)]
    #[arg(conflicts_with_all = ["sizes", "kernels", "vs", "trans", "bias", "activation", "alpha", "beta", "scales", "device", "workspace_limit", "seed", "verify", "seconds", "sustained", "commit"])]
    pub(crate) from: Vec<PathBuf>,

    /// Show what is faster or slower than in an older run, beyond the noise of both
    #[arg(long, value_name = "FOLDER|FILE")]
    pub(crate) compare: Option<PathBuf>,

    /// Verify alone.
    #[arg(skip)]
    pub(crate) untimed: bool,
}

const EXIT_CODES: &str = "Exit codes: 0 every kernel is right; 1 one is wrong, and was not timed; the others as for a product.";

/// What to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Vs {
    /// The fastest of cuBLAS and of the algorithms that cublasLt proposes
    Cublas,
    /// The same, where cublasLt sums products of 8-bit floats by its fast accumulation
    CublasFast,
    /// The faster of nalgebra and the crate gemm, on the CPU device
    Cpu,
}

impl Bench {
    /// The products asked for, or the default ones for this device, each with its group.
    pub(crate) fn products_on(
        &self,
        device: &Device,
    ) -> host::Result<Vec<(Option<Group>, DenseBatch)>> {
        let cubes: &[u64] =
            if device.is_cuda() { &[512, 1024, 2048, 4096] } else { &[128, 256, 512] };
        let cubes = || cubes.iter().map(|&n| BenchSize::One(Product { count: 1, size: [n; 3] }));
        let sizes = match (&self.sizes[..], self.vs) {
            ([], None) => cubes().collect(),
            ([], Some(_)) => vec![BenchSize::All],
            (asked, _) => asked.to_vec(),
        };
        let mut products = Vec::new();
        for size in sizes {
            let all = Group::value_variants();
            let (groups, one) = match size {
                BenchSize::One(product) => (&[][..], Some(product)),
                BenchSize::Group(group) => (&all[group as usize..=group as usize], None),
                BenchSize::All => (all, None),
            };
            let of_groups = groups.iter().flat_map(|&group| {
                let products = group.products(device.is_cuda());
                products.into_iter().map(move |product| (Some(group), product))
            });
            products.extend(of_groups);
            products.extend(one.map(|product| (None, product)));
        }
        let mut dense = Vec::new();
        for (group, Product { count, size: [m, n, k] }) in products {
            for &Layouts(transposed) in &self.trans {
                let product = DenseBatch { shape: Shape::new(m, n, k)?, transposed, count };
                product.lens()?;
                if !dense.iter().any(|(_, other)| *other == product) {
                    dense.push((group, product));
                }
            }
        }
        Ok(dense)
    }

    /// The time to spend on these candidates at one size.
    pub(crate) fn options(&self, device: &Device, candidates: usize) -> timing::Options {
        if let Some(seconds) = self.sustained {
            return timing::Options::sustained(device, Duration::from_secs_f64(seconds));
        }
        let usual = timing::Options::new(device, candidates);
        let (seconds, usual) = match (self.random.count, self.vs) {
            // Many shapes follow each other, so clocks have settled. And no figure is of a single
            // shape.
            (Some(_), _) => {
                let shorter = |time: Duration, ms| time.min(Duration::from_millis(ms));
                let warmup_at_least = shorter(usual.warmup_at_least, 50);
                let warmup_at_most = shorter(usual.warmup_at_most, 250);
                (0.15, timing::Options { warmup_at_least, warmup_at_most, ..usual })
            }
            (None, Some(_)) => (0.25, usual),
            (None, None) => (1.0, usual),
        };
        let seconds = self.seconds.unwrap_or(seconds);
        let duration = Duration::from_secs_f64(seconds * candidates as f64);
        timing::Options { duration, ..usual }
    }
}

/// Sizes of a benchmark: one product, or a group of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BenchSize {
    One(Product),
    Group(Group),
    All,
}

/// A batch of products of one size: m, n and k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    count: usize,
    size: [u64; 3],
}

/// A group of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Group {
    /// Cubes
    Square,
    /// Multiples of nothing, in each position and in all
    Ragged,
    /// 16, 64 and 128 in each position
    Skinny,
    /// 1000 x 700 x 513
    Odd,
    /// The products of a transformer's layer
    Transformer,
    /// Many small products in one launch
    Batched,
}

impl Group {
    /// Its products: for a GPU, or small ones for the CPU.
    fn products(self, cuda: bool) -> Vec<Product> {
        let one = |size| Product { count: 1, size };
        let cubes = |sizes: &[u64]| sizes.iter().map(|&n| one([n; 3])).collect();
        match self {
            Group::Square if cuda => cubes(&[256, 512, 1024, 2048, 4096, 8192, 16384]),
            Group::Square => cubes(&[32, 64, 128, 256]),
            Group::Ragged => {
                let n = if cuda { 4096 } else { 128 };
                let mut sizes = vec![
                    [n - 1, n, n],
                    [n, n - 1, n],
                    [n, n, n - 1],
                    [n - 1, n - 3, n + 1],
                    [n + 1, n + 3, n + 5],
                ];
                if cuda {
                    sizes.extend([[2047, 2045, 2049], [1023, 1021, 1025], [511, 509, 513]]);
                }
                sizes.into_iter().map(one).collect()
            }
            Group::Skinny => {
                let (n, thin) = if cuda { (4096, [16, 64, 128]) } else { (128, [4, 16, 32]) };
                let positions = thin.map(|thin| [[thin, n, n], [n, thin, n], [n, n, thin]]);
                positions.into_iter().flatten().map(one).collect()
            }
            Group::Odd => vec![one(if cuda { [1000, 700, 513] } else { [100, 70, 51] })],
            Group::Transformer => {
                // Tokens, the model's width, heads and their width, the width of the feed-forward
                // network.
                let (tokens, width, heads, head, wide) =
                    if cuda { (2048, 4096, 32, 128, 16384) } else { (64, 64, 4, 16, 256) };
                vec![
                    // Queries, keys and values; scores; weighted values; the projection; up and
                    // down.
                    one([tokens, 3 * width, width]),
                    Product { count: heads, size: [tokens, tokens, head] },
                    Product { count: heads, size: [tokens, head, tokens] },
                    one([tokens, width, width]),
                    one([tokens, wide, width]),
                    one([tokens, width, wide]),
                ]
            }
            Group::Batched => {
                let batches: &[(usize, u64)] = match cuda {
                    true => &[(4096, 16), (2048, 32), (1024, 64), (256, 128)],
                    false => &[(64, 8), (32, 16)],
                };
                batches.iter().map(|&(count, n)| Product { count, size: [n; 3] }).collect()
            }
        }
    }

    pub(crate) fn name(self) -> String {
        name_of(&self)
    }
}

impl FromStr for BenchSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text == "all" {
            return Ok(BenchSize::All);
        }
        if let Ok(group) = Group::from_str(text, false) {
            return Ok(BenchSize::Group(group));
        }
        let (count, sizes) = match text.split_once('*') {
            None => (Ok(1), text),
            Some((count, sizes)) => (size(count.trim()), sizes),
        };
        let sizes = sizes.split(['x', 'X']).map(str::trim).map(size).collect::<Result<Vec<_>, _>>();
        let (count, size) = match (count, sizes.as_deref()) {
            (Ok(count), Ok(&[n])) => (count, [n, n, n]),
            (Ok(count), Ok(&[m, n, k])) => (count, [m, n, k]),
            _ => {
                let groups = Group::value_variants().iter().map(|group| group.name());
                return Err(format!(
                    "must be N or MxNxK, each from 1 to {}, for a batch COUNT* before it, or one of {}, all",
                    u32::MAX,
                    groups.collect::<Vec<_>>().join(", ")
                ));
            }
        };
        match count == 0 || size.contains(&0) {
            true => Err("there is nothing to time in an empty product".to_owned()),
            false => Ok(BenchSize::One(Product { count: count as usize, size })),
        }
    }
}

/// The layouts of A and B: whether each is column-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layouts(pub(crate) [bool; 2]);

impl FromStr for Layouts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Layouts(match text.trim() {
            "nn" => [false, false],
            "nt" => [false, true],
            "tn" => [true, false],
            "tt" => [true, true],
            _ => return Err("must be nn, nt, tn or tt: A's letter, then B's"),
        }))
    }
}

impl fmt::Display for Layouts {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let letter = |transposed| if transposed { 't' } else { 'n' };
        write!(f, "{}{}", letter(self.0[0]), letter(self.0[1]))
    }
}
