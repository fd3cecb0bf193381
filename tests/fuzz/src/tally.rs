//! What was tried: how much of it was computed, by which kernels, and what was refused.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use gpu::registry::{Entry, KERNELS, Variant};
use gpu_gemm::gemm::Choice;

use crate::{
    product::{Kernel, Product},
    run::Outcome,
};

/// Counts of products.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Computed, twice and right.
    pub computed: u64,
    /// Refused, as they may be: by the argument that the error names.
    pub refused: BTreeMap<String, u64>,
    /// Computed, by types, by the way they were asked for, and by the kind of their launches.
    kinds: BTreeMap<String, u64>,
    /// Computed, by the kernel's name.
    kernels: BTreeMap<&'static str, u64>,
}

/// Kinds of which some product must be tried on every device.
const KINDS: [&str; 13] = [
    "by Array",
    "by Arrays",
    "by Batch",
    "by Launch",
    "by Planned",
    "by Run",
    "by Slices",
    "chosen: one kernel",
    "chosen: partial products",
    "named: copies of operands",
    "named: k split in a cluster",
    "named: partial products",
    "named: slices",
];

/// The kind of a product's launches.
fn kind(choice: &Choice) -> &'static str {
    match choice {
        _ if choice.partials > 1 => "partial products",
        _ if choice.entry.is_emulated() => "slices",
        _ if choice.split_k > 1 => "k split in a cluster",
        _ if choice.workspace_bytes > 0 => "copies of operands",
        _ => "one kernel",
    }
}

/// Who names the kernel.
fn origin(kernel: &Kernel) -> &'static str {
    match kernel {
        Kernel::Chosen => "chosen",
        Kernel::AsOn(target) if target.capability == (9, 0) => "as on an H200",
        Kernel::AsOn(_) => "as on an A100",
        Kernel::Named(_) => "named",
    }
}

/// Kernels that differ in their tile, its loads and their types alone. (With types some would have
/// three products of 100,000.)
fn family(variant: &Variant) -> String {
    let Variant { family, scheme, access, .. } = variant;
    format!("{family:?} {scheme} {access:?}")
}

impl Tally {
    /// Counts a product.
    pub fn add(&mut self, product: &Product, outcome: &Outcome) {
        let choice = match outcome {
            Outcome::Refused(argument) => {
                *self.refused.entry(argument.clone()).or_default() += 1;
                return;
            }
            Outcome::Computed(choice) => choice,
        };
        self.computed += 1;
        let mut kinds = vec![
            format!("types {:?}", product.types),
            format!("by {:?}", product.way),
            format!("kernel {}", origin(&product.kernel)),
        ];
        if let Some(choice) = choice {
            kinds.push(format!("{}: {}", origin(&product.kernel), kind(choice)));
            *self.kernels.entry(choice.entry.name()).or_default() += 1;
        }
        let more = [
            ("with slices made before", product.prepared.iter().any(Option::is_some)),
            ("with A and B in one memory", product.shared),
            ("prepared", product.prepares),
            ("with other numbers in the same memory", product.again),
            ("without elements", product.size.contains(&0) || product.count() == 0),
            ("of which A and B are not read", !product.multiplies()),
            ("with k above 1000", product.size[2] > 1000),
            ("with a bias", product.bias.is_some()),
        ];
        kinds.extend(more.into_iter().filter(|(_, is)| *is).map(|(name, _)| name.to_owned()));
        for kind in kinds {
            *self.kinds.entry(kind).or_default() += 1;
        }
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: Tally) {
        self.computed += other.computed;
        other.refused.into_iter().for_each(|(name, n)| *self.refused.entry(name).or_default() += n);
        other.kinds.into_iter().for_each(|(name, n)| *self.kinds.entry(name).or_default() += n);
        other.kernels.into_iter().for_each(|(name, n)| *self.kernels.entry(name).or_default() += n);
    }

    /// All products.
    pub fn tried(&self) -> u64 {
        self.computed + self.refused.values().sum::<u64>()
    }

    /// Whether too many were refused.
    pub fn too_few_computed(&self) -> Option<String> {
        let (computed, tried) = (self.computed, self.tried());
        let too_few = computed * 100 < tried * 80;
        too_few.then(|| format!("{computed} of {tried} computed, and 80 % are asked for"))
    }

    /// The same, and what no product was tried of, of kernels for which `runs`. `each_kernel`: not
    /// only each family.
    pub fn missing(&self, runs: impl Fn(&Entry) -> bool, each_kernel: bool) -> Vec<String> {
        let mut missing = self.too_few_computed().into_iter().collect::<Vec<_>>();
        for kind in KINDS {
            if !self.kinds.contains_key(kind) {
                missing.push(format!("no product: {kind}"));
            }
        }
        let mut families = BTreeMap::<String, u64>::new();
        for entry in KERNELS.iter().filter(|entry| runs(entry)) {
            let Some(of) =
                entry.product.as_ref().filter(|of| of.variant.operands.format().is_wide_float())
            else {
                continue;
            };
            let count = self.kernels.get(entry.name()).copied().unwrap_or_default();
            *families.entry(family(&of.variant)).or_default() += count;
            if each_kernel && count == 0 {
                missing.push(format!("no product by {}", entry.name()));
            }
        }
        let none = families.into_iter().filter(|(_, n)| *n == 0);
        missing.extend(none.map(|(family, _)| format!("no product by {family}")));
        missing
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let tried = self.tried().max(1) as f64;
        let share = |n: u64| 100.0 * n as f64 / tried;
        writeln!(
            f,
            "computed {} of {} ({:.1} %), each twice: right, the same bits, nothing else touched",
            self.computed,
            self.tried(),
            share(self.computed)
        )?;
        let mut refused = String::new();
        for (argument, n) in &self.refused {
            write!(refused, "{}{argument} {n}", if refused.is_empty() { "" } else { ", " })?;
        }
        writeln!(f, "refused, as may be, by argument: {refused}")?;
        for (kind, n) in &self.kinds {
            writeln!(f, "  {kind}: {n} ({:.1} %)", share(*n))?;
        }
        let (least, n) = self.kernels.iter().min_by_key(|(_, n)| **n).unwrap_or((&"none", &0));
        write!(f, "kernels: {}; the fewest products, {n}, by {least}", self.kernels.len())
    }
}
