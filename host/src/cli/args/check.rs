//! Flags of `check`.

use std::str::FromStr;

use clap::{
    Args,
    builder::{PossibleValue, TypedValueParser},
};
use host::{
    Error, Shape, check,
    gemm::{Candidate, Request, Target, candidates},
    gpu::registry::{self, Entry},
    simt::check::Order,
};

use super::{super::note, KernelChoice, Offering, Sizes, Types, is_counted, kernels, named, seed};

/// Flags of a check.
#[derive(Args, Clone, Debug)]
#[command(after_help = CHECK_EXIT_CODES)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) sizes: Sizes,

    /// A kernel's name (`host kernels` lists them), of f32, bf16 or f16; or all kernels of f32; or auto: the one that
    /// a product uses
    #[arg(long, value_name = "auto|all|NAME", default_value = "auto")]
    #[arg(value_parser = kernels_or_all(), hide_possible_values = true)]
    pub(crate) kernel: KernelOrAll,

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
        self.kernel.to_check(shape)
    }

    /// The types of their matrices.
    pub(crate) fn types(&self) -> Types {
        self.kernel.types()
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
        format!(
            "cargo run -p host -- check {sizes} --kernel {kernel} --seed {seed} --order {order}"
        )
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

    /// The types of a named kernel. Otherwise f32.
    fn types(self) -> Types {
        match self {
            KernelOrAll::One(KernelChoice::Named(entry)) => Types::of(entry).unwrap_or(Types::F32),
            _ => Types::F32,
        }
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
        let [of, _] = self.types().names();
        if let (KernelChoice::Named(entry), "bf16" | "f16") = (kernel, of) {
            if is_counted(entry) {
                return Ok(vec![entry]);
            }
            let name = entry.name();
            let limit = format!(
                "must be a lesson or a kernel of f32, whose accesses alone are counted: `check --kernel {name}` watches those of {of}"
            );
            return Err(Error::argument("--kernel", name, limit));
        }
        let entry = kernel.on_h200(shape)?;
        if is_counted(entry) {
            return Ok(vec![entry]);
        }
        let what = "copies its operands by TMA, which is not counted";
        let mut others = takes(shape)
            .filter(|candidate| is_counted(candidate.entry))
            .filter_map(|candidate| Some((candidate.predicted_us?, candidate.entry)))
            .collect::<Vec<_>>();
        others.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        match (kernel, others.first()) {
            (KernelChoice::Auto, Some((_, other))) => {
                let (auto, other) = (entry.name(), other.name());
                note(format_args!("note: an H200 would run {auto}, which {what}; {other} instead"));
                Ok(others.into_iter().take(1).map(|(_, entry)| entry).collect())
            }
            _ => {
                let limit = format!("{what}: `check --kernel {}` watches them", entry.name());
                Err(Error::argument("--kernel", entry.name(), limit))
            }
        }
    }
}

impl FromStr for KernelOrAll {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.trim() {
            "all" => Ok(KernelOrAll::All),
            "auto" => Ok(KernelOrAll::One(KernelChoice::Auto)),
            name => named(name, "auto or all").map(KernelOrAll::One),
        }
    }
}

/// The kernels that can compute this product on an H200.
fn takes(shape: Shape) -> impl Iterator<Item = Candidate> {
    let candidates = candidates::<f32>(&Request::dense(shape), &Target::H200);
    candidates.into_iter().filter(|candidate| candidate.ineligible.is_none())
}

pub(super) fn kernels_or_all() -> impl TypedValueParser<Value = KernelOrAll> {
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
