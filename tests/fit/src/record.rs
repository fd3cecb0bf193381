//! Records of `bench --all-candidates`: products with the times of their candidates.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use gpu::registry::{self, Entry, KERNELS};
use gpu_gemm::{
    Compute, Shape,
    gemm::{Request, predict},
};
use serde::Deserialize;

use crate::figures::{Figures, with};

/// The weight of a product that was asked for by its sizes, beside that of one drawn at random.
const OF_SIZES: f64 = 2.0;

/// How many times as long all others are said to take where a choice is held.
const HELD: f64 = 1.15;

/// A kernel that was timed.
pub(crate) struct Timed {
    pub(crate) entry: &'static Entry,
    /// The product, with the split of k.
    pub(crate) request: Request,
    /// Microseconds.
    pub(crate) us: f64,
}

/// A product, and its candidates.
pub(crate) struct Measured {
    /// The file.
    record: String,
    aligned: bool,
    /// How many times it counts.
    pub(crate) weight: f64,
    /// Whether it holds a choice: it has no times.
    pub(crate) held: bool,
    pub(crate) timed: Vec<Timed>,
}

impl Measured {
    pub(crate) fn fastest_us(&self) -> f64 {
        self.timed.iter().map(|timed| timed.us).fold(f64::INFINITY, f64::min)
    }

    /// The time of the candidate with the shortest predicted time over that of the fastest.
    pub(crate) fn loss(&self, us: &[f64]) -> f64 {
        let chosen = self.timed.iter().zip(us).min_by(|(_, a), (_, b)| a.total_cmp(b));
        chosen.map_or(1.0, |(timed, _)| timed.us / self.fastest_us())
    }
}

/// A row of a record, as far as it is read.
#[derive(Deserialize)]
struct Row {
    /// Empty for a product that was asked for by its sizes.
    #[serde(default)]
    group: String,
    #[serde(default)]
    aligned: String,
    m: usize,
    n: usize,
    k: usize,
    batch: usize,
    trans: String,
    epilogue: String,
    kernel: String,
    /// `held`: the choice is to remain, and has no time.
    #[serde(default)]
    role: String,
    time_us: Option<f64>,
}

/// The products of a record: a table of CSV. One with a kernel of tf32 allows tf32.
///
/// # Errors
/// A file that is no record, or without a product of several candidates.
pub(crate) fn read(record: &str, text: &str) -> Result<Vec<Measured>> {
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize().collect();
    let rows: Vec<Row> = Result::<_, csv::Error>::with_context(rows, || record.to_owned())?;
    let is_tf32 = rows.iter().any(|row| row.kernel.contains("tf32"));
    let compute = if is_tf32 { Compute::Tf32 } else { Compute::Native };
    let mut products = BTreeMap::<String, Measured>::new();
    for (number, row) in (2..).zip(&rows) {
        let Row { group, m, n, k, batch, trans, epilogue, role, .. } = row;
        let held = role == "held";
        // Without libraries, and what was not timed.
        if role == "baseline" || !held && row.time_us.is_none() {
            continue;
        }
        let timed = timed(row, compute).with_context(|| format!("{record}: line {number}"))?;
        let name = format!("{group} {m}x{n}x{k} {batch} {trans} {epilogue}");
        let (record, aligned) = (record.to_owned(), row.aligned.eq_ignore_ascii_case("true"));
        let weight = if group.is_empty() { OF_SIZES } else { 1.0 };
        let product = Measured { record, aligned, weight, held, timed: Vec::new() };
        products.entry(name).or_insert(product).timed.extend(timed);
    }
    let products = products.into_values().filter(|of| of.timed.len() > 1).collect::<Vec<_>>();
    ensure!(!products.is_empty(), "{record}: no product has the times of several kernels");
    Ok(products)
}

/// The candidate of a row, or all kernels, if its choice is held.
fn timed(row: &Row, compute: Compute) -> Result<Vec<Timed>> {
    let Row { m, n, k, batch, .. } = *row;
    let of = |transposed, rows, cols| if transposed { [1, rows] } else { [cols, 1] };
    let [a, b] = match &*row.trans {
        "nn" => [false; 2],
        "nt" => [false, true],
        "tn" => [true, false],
        "tt" => [true; 2],
        other => anyhow::bail!("trans = {other}: must be nn, nt, tn or tt"),
    };
    let name = &*row.kernel;
    let (rest, partials) = name.split_once('/').unwrap_or((name, "1"));
    let (kernel, blocks) = rest.split_once(':').unwrap_or((rest, "1"));
    let entry = registry::find(kernel).with_context(|| format!("there is no kernel {kernel}"))?;
    let shape = Shape::new(m as u64, n as u64, k as u64)?;
    let mut request = Request::new(shape, [of(a, m, k), of(b, k, n), [n, 1]]);
    (request.batch, request.compute) = (batch, compute);
    request.plain = row.epilogue.is_empty();
    request.split_k = Some(blocks.parse().with_context(|| format!("{name}: blocks"))?);
    request.partials = Some(partials.parse().with_context(|| format!("{name}: partial products"))?);
    if let Some(us) = row.time_us {
        ensure!(us > 0.0 && us.is_finite(), "time_us = {us}: must be above 0");
        return Ok(vec![Timed { entry, request, us }]);
    }
    let types = |of: &Entry| of.product.map(|of| [of.variant.operands, of.variant.c]);
    let all = KERNELS.iter().filter(|other| types(other) == types(entry));
    let of = |entry, split_k, us| {
        let mut request = request;
        request.split_k = split_k;
        Timed { entry, request, us }
    };
    // The same kernel in one block, too, if it is to split k.
    let split_k = request.split_k.filter(|blocks| *blocks > 1);
    let whole = split_k.map(|_| of(entry, Some(1), HELD));
    let others =
        all.filter(|other| other.name() != entry.name()).map(|other| of(other, None, HELD));
    Ok([of(entry, split_k, 1.0)].into_iter().chain(whole).chain(others).collect())
}

/// The predicted time of a candidate by a kernel in its place, in microseconds. One without a time
/// is not taken.
pub(crate) fn predict_us(entry: &'static Entry, timed: &Timed) -> f64 {
    predict(entry, &timed.request).map_or(f64::INFINITY, |times| times.us())
}

/// The predicted times of the candidates of each product.
pub(crate) fn predicted(products: &[Measured], figures: &Figures) -> Vec<Vec<f64>> {
    let mut entries = BTreeMap::new();
    let mut us = |of: &Timed| {
        predict_us(entries.entry(of.entry.name()).or_insert_with(|| with(figures, of.entry)), of)
    };
    products.iter().map(|product| product.timed.iter().map(&mut us).collect()).collect()
}

/// Whether a product is of a kind.
type IsOf = fn(&Measured) -> bool;

/// The losses at each record: mean, 95th percentile and worst.
pub(crate) fn report(what: &str, products: &[Measured], figures: &Figures) -> String {
    let mut text = String::new();
    for products in products.chunk_by(|a, b| a.record == b.record) {
        text += &format!("{what}, {}\n", products[0].record);
        let mut losses = Vec::new();
        for (product, us) in products.iter().zip(predicted(products, figures)) {
            losses.push((product.loss(&us), product));
        }
        losses.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let kinds: [(_, IsOf); 4] = [
            ("all", |_| true),
            ("aligned", |product| product.aligned),
            ("unaligned", |product| !product.aligned),
            ("with epilogue", |product| !product.timed[0].request.plain),
        ];
        for (name, is_of) in kinds {
            let of = losses.iter().filter(|(_, product)| is_of(product));
            let of = of.map(|(loss, _)| *loss).collect::<Vec<_>>();
            let Some(worst) = of.last() else { continue };
            let mean = (of.iter().map(|loss| loss.ln()).sum::<f64>() / of.len() as f64).exp();
            let (most, count) = (of[(of.len() * 95).div_ceil(100) - 1], of.len());
            text += &format!(
                "  {name:<13}  mean {mean:.3}, 95 % {most:.3}, worst {worst:.2}, of {count}\n"
            );
        }
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn record(rows: &str) -> Result<Vec<Measured>> {
        read("a record", &format!("m,n,k,batch,trans,epilogue,kernel,time_us\n{rows}"))
    }

    #[test]
    fn a_record_has_products_and_their_loss() {
        let rows = "64,80,9000,2,tn,\"bias, relu\",wgmma_bf16_64x64x64_tn:3,15\n\
                    64,80,9000,2,tn,\"bias, relu\",wgmma_bf16_f32_64x64x64_tn/8,9\n\
                    64,80,9000,2,tn,\"bias, relu\",gemm_bf16_64x64x16,10\n";
        let products = record(rows).unwrap();
        let Request { strides, plain, split_k, .. } = products[0].timed[0].request;
        let expected = ([[1, 64], [80, 1], [80, 1]], false, Some(3));
        assert_eq!((strides, plain, split_k), expected);
        let text = report("judged", &products, &crate::figures::known());
        // Partial products are not of batches: they are predicted by nobody.
        assert!(
            text.contains("  all            mean 1.667, 95 % 1.667, worst 1.67, of 1\n"),
            "{text}"
        );
        for (row, why) in [
            ("8,8,8,1,nn,,gemm_f32_9x9,1", "line 2: there is no kernel gemm_f32_9x9"),
            ("8,x,8,1,nn,,gemm_f32_32x32x8,1", "line: 2, byte: 42): field 1: invalid digit"),
            ("8,8,8,1,n,,gemm_f32_32x32x8,1", "trans = n: must be nn, nt, tn or tt"),
            ("8,8,8,1,nn,,gemm_f32_32x32x8,0", "time_us = 0: must be above 0"),
            ("8,8,8,1,nn,,gemm_f32_32x32x8,1", "no product has the times of several kernels"),
        ] {
            let refused = format!("{:#}", record(row).err().unwrap());
            assert!(refused.contains(why), "{refused}");
        }
    }
}
