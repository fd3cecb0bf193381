//! Flags of `check`.

use std::str::FromStr;

use clap::{
    Args,
    builder::{PossibleValue, TypedValueParser},
};
use host::{
    Error, Shape, check,
    gemm::{Candidate, Request, Target, candidates},
    gpu::registry::{self, Entry, Type},
    product::counted,
    scaling::ScaleKind,
    simt::check::Order,
};

use super::{super::note, KernelChoice, Offering, Sizes, find, is_counted, kernels, seed};

/// Flags of a check.
#[derive(Args, Clone, Debug)]
#[command(after_help = CHECK_EXIT_CODES)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) sizes: Sizes,

    #[command(flatten)]
    kernel: WhichKernel,

    /// Multiply A and B by random scales, of a kernel of 8-bit numbers that has them
    #[arg(long, value_name = "rows-cols|blocks")]
    pub(crate) scales: Option<ScaleKind>,

    /// The number of orders of threads and blocks: forward, reverse, then random ones
    #[arg(long, default_value_t = 4, allow_negative_numbers = true, value_parser = orders)]
    pub(crate) orders: u32,

    /// Run in this order only: the one in which a finding was made
    #[arg(long, value_name = "forward|reverse|random:SEED", conflicts_with = "orders")]
    pub(crate) order: Option<Order>,

    /// Seed of the random operands. Random orders have this seed and the following ones
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,

    /// One JSON object a kernel; `clean` and `verified` are null if nothing was launched
    #[arg(long)]
    pub(crate) json: bool,
}

const CHECK_EXIT_CODES: &str = "Exit codes: 0 nothing found, and C is right; 1 something was found, or C is wrong; the others as \
                                for a product.";

impl Check {
    /// The kernels to check.
    pub(crate) fn entries(&self, shape: Shape) -> host::Result<Vec<&'static Entry>> {
        self.kernel.get().to_check(shape)
    }

    /// The types of their A and B, and of C.
    pub(crate) fn types(&self) -> [Type; 2] {
        self.kernel.get().types()
    }

    /// The orders to check them in.
    pub(crate) fn orders(&self) -> Vec<Order> {
        match self.order {
            Some(order) => vec![order],
            None => check::orders(self.orders, self.seed),
        }
    }

    /// The command line that checks this kernel again, in that order only.
    pub(crate) fn to_command(&self, kernel: &str, order: Order) -> String {
        let Check { sizes, seed, .. } = self;
        let scales = self.scales.map_or(String::new(), |kind| format!(" --scales {kind}"));
        format!(
            "cargo run -p host -- check {sizes} --kernel {kernel}{scales} --seed {seed} --order {order}"
        )
    }
}

/// The kernel of a check or a profile, with or without its flag.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WhichKernel {
    /// As --kernel NAME
    #[arg(value_name = "NAME", value_parser = kernels_or_all(), hide_possible_values = true)]
    #[arg(conflicts_with = "kernel")]
    name: Option<KernelOrAll>,

    /// A kernel's name (`host kernels` lists them), of a product; or all kernels of f32; or auto:
    /// the one that a product uses
    #[arg(long, value_name = "auto|all|NAME", default_value = "auto")]
    #[arg(value_parser = kernels_or_all(), hide_possible_values = true)]
    kernel: KernelOrAll,
}

impl WhichKernel {
    pub(crate) fn get(self) -> KernelOrAll {
        self.name.unwrap_or(self.kernel)
    }
}

/// One kernel, or all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KernelOrAll {
    All,
    One(KernelChoice),
}

impl KernelOrAll {
    /// The kernels to check. `auto` is the kernel that an H200 would run.
    fn to_check(self, shape: Shape) -> host::Result<Vec<&'static Entry>> {
        match self {
            KernelOrAll::All => Ok(takes(shape).map(|candidate| candidate.entry).collect()),
            // The check makes operands of its types and in its layout.
            KernelOrAll::One(KernelChoice::Named(entry)) => Ok(vec![entry]),
            KernelOrAll::One(auto) => Ok(vec![auto.on_h200(shape)?]),
        }
    }

    /// The types of a named kernel: of A and B, and of C. Otherwise f32.
    fn types(self) -> [Type; 2] {
        let named = match self {
            KernelOrAll::One(KernelChoice::Named(entry)) => entry.product.as_ref(),
            _ => None,
        };
        named.map_or([Type::F32; 2], |product| [product.variant.operands, product.variant.c])
    }

    /// The kernels whose accesses can be counted. `auto` is the one of them that an H200 would run.
    ///
    /// # Errors
    /// [`Error::Argument`] for the name of another kernel.
    pub(crate) fn to_count(self, shape: Shape) -> host::Result<Vec<&'static Entry>> {
        let kernel = match self {
            KernelOrAll::All => return Ok(registry::products().map(|(entry, _)| entry).collect()),
            KernelOrAll::One(kernel) => kernel,
        };
        if let KernelChoice::Named(entry) = kernel {
            let named = must_be_counted(entry)?;
            if self.types() != [Type::F32; 2] {
                return Ok(named);
            }
        }
        let entry = kernel.on_h200(shape)?;
        if is_counted(entry) {
            return Ok(vec![entry]);
        }
        let mut others = takes(shape)
            .filter(|candidate| is_counted(candidate.entry))
            .filter_map(|candidate| Some((candidate.predicted_us?, candidate.entry)))
            .collect::<Vec<_>>();
        others.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let Some((_, other)) = others.first() else { return must_be_counted(entry) };
        let (auto, instead) = (entry.name(), other.name());
        note(format_args!(
            "note: an H200 would run {auto}, whose accesses are not counted; {instead} instead"
        ));
        Ok(vec![other])
    }
}

/// The kernel, if its accesses are counted.
fn must_be_counted(entry: &'static Entry) -> host::Result<Vec<&'static Entry>> {
    match counted(entry) {
        Err(Error::Argument { value, limit, .. }) => {
            let limit = format!("{limit}; `check --kernel {value}` watches them");
            Err(Error::argument("--kernel", value, limit))
        }
        other => other.map(|_| vec![entry]),
    }
}

impl FromStr for KernelOrAll {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.trim() {
            "all" => Ok(KernelOrAll::All),
            "auto" => Ok(KernelOrAll::One(KernelChoice::Auto)),
            name => {
                let entry = find(name, "auto or all")?;
                Ok(KernelOrAll::One(KernelChoice::Named(entry)))
            }
        }
    }
}

/// The kernels that can compute this product on an H200.
fn takes(shape: Shape) -> impl Iterator<Item = Candidate> {
    let candidates = candidates::<f32>(&Request::dense(shape), &Target::H200);
    candidates.into_iter().filter(|candidate| candidate.ineligible.is_none())
}

fn kernels_or_all() -> impl TypedValueParser<Value = KernelOrAll> {
    let mut values = kernels().possible_values().into_iter().flatten().collect::<Vec<_>>();
    values.insert(1, PossibleValue::new("all").help("one after another"));
    Offering { parser: KernelOrAll::from_str, values }
}

fn orders(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|count| (1..=10_000).contains(count))
        .ok_or_else(|| "must be a whole number from 1 to 10000".to_owned())
}
