//! Pairs of invariant products with common rows: their plans, and their bits on a device.

use std::{collections::BTreeMap, fmt};

use gpu_gemm::Device;
use tests::invariant::Pair;

use crate::campaign::case;

/// Pairs of plans for each pair that is computed.
const PLANS: u64 = 1000;

/// What was compared.
#[derive(Debug, Default)]
pub struct Tally {
    plans: u64,
    refused_plans: u64,
    products: u64,
    refused_products: u64,
    /// Pairs of plans by order, and computed pairs by kernels.
    orders: BTreeMap<String, u64>,
    kernels: BTreeMap<[&'static str; 2], u64>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Tally { plans, refused_plans, products, refused_products, .. } = self;
        let differ = self.kernels.keys().filter(|[one, other]| one != other).count();
        writeln!(f, "{plans} pairs of plans have one order each, {refused_plans} were refused")?;
        for (order, count) in &self.orders {
            writeln!(f, "  {order}: {count}")?;
        }
        write!(
            f,
            "{products} pairs of products have the same bits in common rows, {refused_products} were refused; {} pairs \
             of kernels, {differ} of two kernels",
            self.kernels.len()
        )
    }
}

/// Compares so many pairs of products, and more of plans.
///
/// # Errors
/// The first pair that differs.
pub fn pairs(device: &Device, seed: u64, count: u64) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for number in 0..count {
        for plan in 0..PLANS {
            match Pair::large(case(seed, number * PLANS + plan)).plan()? {
                Some((sum, split_k, partials)) => {
                    let in_parts = if partials > 1 { ", partial products" } else { "" };
                    let order = format!("{sum}: {split_k} blocks{in_parts}");
                    *tally.orders.entry(order).or_default() += 1;
                    tally.plans += 1;
                }
                None => tally.refused_plans += 1,
            }
        }
        match Pair::small(case(seed, number), 4).run(device)? {
            Some(names) => {
                *tally.kernels.entry(names).or_default() += 1;
                tally.products += 1;
            }
            None => tally.refused_products += 1,
        }
    }
    Ok(tally)
}
