//! Runs kernels of the registry under the checker, on a fixed list of small, ragged cases, and
//! prints the results.
//!
//! * `mutants-driver cover KERNEL..` runs all trials of these kernels. For each it prints a line of
//!   JSON on stdout, with the findings, a hash of the result, and the mutation sites that were
//!   reached.
//! * `mutants-driver run ID KERNEL:TRIAL:HASH..` runs these trials with a mutation switched on, up
//!   to the first one with a finding, or some more after the first wrong result. It prints
//!   `found KIND`, `wrong KERNEL WHAT` if a hash differs, and `done` at the end.
//!
//! A mutation is a run-time switch in the source of crate `gpu`. It is inserted in a copy of the
//! workspace, which refers to [`MUTATION`] and [`mutation_reached`](mutation::mutation_reached).
//! Without a mutation both are unused, and the kernels are unchanged.

mod general;
mod memory;
mod mutation;
mod numbers;
mod product;
mod quantise;
mod reduce;
mod slices;
mod tensor;

use std::{hash::Hasher, process::ExitCode, sync::atomic::Ordering::Relaxed, time::Instant};

use gpu::{
    checked::kernels::{
        emulated, pack, quantise as rounded, reduce as adds, transpose, transpose_bytes,
    },
    registry::{self, Entry, Product},
};
use simt::{Bf16, Constants, F16, with_types};

use crate::{
    memory::Number,
    mutation::{MUTATION, REACHED},
    product::Trial,
};

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let done = match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["cover", kernels @ ..] => kernels.iter().try_for_each(|kernel| cover(kernel)),
        ["run", id, trials @ ..] => run(id, trials),
        _ => Err("cover or run".to_owned()),
    };
    let Err(message) = done else { return ExitCode::SUCCESS };
    eprintln!("{message}\nusage: mutants-driver cover KERNEL..");
    eprintln!("       mutants-driver run ID KERNEL:TRIAL:HASH..");
    ExitCode::from(2)
}

fn cover(kernel: &str) -> Result<(), String> {
    MUTATION.store(u32::MAX, Relaxed);
    for (number, trial) in trials(kernel)?.iter().enumerate() {
        REACHED.iter().for_each(|word| word.store(0, Relaxed));
        let begin = Instant::now();
        let outcome = (trial.run)();
        let micros = begin.elapsed().as_micros() as u64;
        let is_reached = |site: &usize| REACHED[site / 64].load(Relaxed) >> (site % 64) & 1 == 1;
        let line = serde_json::json!({
            "kernel": kernel, "trial": number, "what": trial.what, "micros": micros,
            "hash": format!("{:016x}", outcome.hasher.finish()), "found": outcome.found,
            "reached": (0..64 * REACHED.len()).filter(is_reached).collect::<Vec<_>>(),
        });
        println!("{line}");
    }
    Ok(())
}

/// The fewest trials of a mutation, even after a wrong result.
const MORE: usize = 11;

fn run(id: &str, of_kernels: &[&str]) -> Result<(), String> {
    MUTATION.store(id.parse().map_err(|_| format!("{id}: no number"))?, Relaxed);
    let mut last = None;
    for (number_of_trial, argument) in of_kernels.iter().enumerate() {
        if last.is_some_and(|last| number_of_trial > last) {
            break;
        }
        let mut parts = argument.split(':');
        let no_trial = || format!("{argument}: no KERNEL:TRIAL:HASH");
        let mut part = || parts.next().ok_or_else(no_trial);
        let (kernel, number, hash) = (part()?, part()?.parse::<usize>(), part()?);
        let expected = u64::from_str_radix(hash, 16).map_err(|_| no_trial())?;
        let trials = trials(kernel)?;
        let trial = number.ok().and_then(|number| trials.get(number)).ok_or_else(no_trial)?;
        let outcome = (trial.run)();
        outcome.found.iter().for_each(|kind| println!("found {kind}"));
        if outcome.hasher.finish() != expected && last.is_none() {
            println!("wrong {kernel} {}", trial.what);
            // It is caught. Whether the checker also finds it shows soon or never.
            last = Some((2 * number_of_trial + 1).max(MORE));
        }
        if !outcome.found.is_empty() {
            break;
        }
    }
    println!("done");
    Ok(())
}

/// All trials of a kernel. Its variants, with different constants, alternate.
fn trials(kernel: &str) -> Result<Vec<Trial>, String> {
    let is_it = |entry: &&Entry| entry.declaration().name == kernel;
    let of_variants = registry::KERNELS.iter().filter(is_it).map(trials_of);
    let of_variants = of_variants.collect::<Result<Vec<_>, _>>()?;
    let variants = of_variants.len();
    if variants == 0 {
        return Err(format!("{kernel}: no such kernel"));
    }
    let in_turn = |(variant, trials): (usize, Vec<Trial>)| {
        let trials = trials.into_iter().enumerate();
        trials.filter(move |(number, _)| number % variants == variant)
    };
    let mut trials = of_variants.into_iter().enumerate().flat_map(in_turn).collect::<Vec<_>>();
    trials.sort_by_key(|(number, _)| *number);
    Ok(trials.into_iter().map(|(_, trial)| trial).collect())
}

/// All trials of a variant.
fn trials_of(entry: &'static Entry) -> Result<Vec<Trial>, String> {
    let kernel = entry.name();
    let Some(product) = &entry.product else {
        return Ok(match kernel {
            "pack_rows" => slices::pads::<f32>(&pack::pack_rows, false),
            "pack_rows_u16" => slices::pads::<u16>(&pack::pack_rows_u16, false),
            "pack_rows_f64" => slices::pads::<f64>(&pack::pack_rows_f64, false),
            "pack_rows_u8" => slices::pads::<u8>(&pack::pack_rows_u8, false),
            "transpose_rows_u8" => slices::pads::<u8>(&transpose_bytes::transpose_rows_u8, true),
            "transpose_rows" => slices::pads::<f32>(&transpose::transpose_rows, true),
            "transpose_rows_u16" => slices::pads::<u16>(&transpose::transpose_rows_u16, true),
            "reduce_f32" => reduce::sums::<f32, f32>(&adds::reduce_f32, Constants::NONE),
            "reduce_f64" => reduce::sums::<f64, f64>(&adds::reduce_f64, Constants::NONE),
            "reduce_i32" => reduce::sums::<i32, i32>(&adds::reduce_i32, Constants::NONE),
            "reduce_half" => {
                let bf16 = Constants::NONE.with_word("half", "bf16");
                reduce::sums::<f32, Bf16>(&adds::reduce_half, bf16)
            }
            "quantise_f32" => quantise::rounds::<f32>(&rounded::quantise_f32, Constants::NONE),
            "quantise_half" => {
                let bf16 = Constants::NONE.with_word("half", "bf16");
                quantise::rounds::<Bf16>(&rounded::quantise_half, bf16)
            }
            "split_bf16x3" => slices::splits::<Bf16>(&emulated::split_bf16x3::split_bf16x3),
            "split_f16x2" => slices::splits::<F16>(&emulated::split_f16x2::split_f16x2),
            _ => return Err(format!("{kernel}: there are no cases for it")),
        });
    };
    let variant = product.variant;
    with_types!((variant.operands, variant.c), |T, O| of_types::<T, O>(entry, product))
        .ok_or_else(|| format!("{kernel}: no products of its types are computed"))
}

fn of_types<T: Number, O: Number>(entry: &'static Entry, product: &'static Product) -> Vec<Trial> {
    match product.requires_layouts() {
        true => tensor::trials::<T, O>(entry, product),
        false => general::trials::<T, O>(entry, product),
    }
}
