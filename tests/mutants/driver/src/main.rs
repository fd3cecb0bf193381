//! Runs kernels of the registry under the checker, on a fixed list of small, ragged cases, and tells what came out.
//!
//! * `mutants-driver cover KERNEL..` runs all trials of these kernels: for each a line of JSON on stdout, with what was found, a
//!   hash of what was computed, and the mutation sites that were passed.
//! * `mutants-driver run ID KERNEL:TRIAL:HASH..` runs these trials with a mutation on, up to the first with a finding. Its lines
//!   are `found KIND`, `wrong KERNEL WHAT` where a hash is another one, and `done` at the end.
//!
//! A mutation is a run-time switch in the source of crate `gpu`, woven into a copy of the workspace, which refers to [`MUTATION`] and
//! [`mutation_reached`]. Without one both are unused, and the kernels are as they are.

mod copies;
mod general;
mod memory;
mod numbers;
mod product;
mod slices;
mod tensor;
mod trial;

use std::{
    hash::Hasher,
    process::ExitCode,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use gpu::registry::{self, Contract, Entry};

use crate::trial::{Outcome, Trial};

/// The mutation that is on; 0: none; `u32::MAX`: none, and sites that are passed are reported.
#[unsafe(no_mangle)]
pub static MUTATION: AtomicU32 = AtomicU32::new(0);

/// A bit for each site.
static REACHED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The site has been passed. Called by many threads at once.
#[unsafe(no_mangle)]
pub extern "Rust" fn mutation_reached(site: u32) {
    let (word, bit) = (&REACHED[site as usize / 64], 1 << (site % 64));
    if word.load(Relaxed) & bit == 0 {
        word.fetch_or(bit, Relaxed);
    }
}

const USAGE: &str =
    "usage: mutants-driver cover KERNEL..\n       mutants-driver run ID KERNEL:TRIAL:HASH..";

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let done = match &*arguments {
        ["cover", kernels @ ..] => cover(kernels),
        ["run", id, trials @ ..] => run(id, trials),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn cover(kernels: &[&str]) -> Result<(), String> {
    MUTATION.store(u32::MAX, Relaxed);
    for &kernel in kernels {
        for (number, trial) in trials(kernel)?.iter().enumerate() {
            REACHED.iter().for_each(|word| word.store(0, Relaxed));
            let begin = Instant::now();
            let Outcome { found, hasher } = (trial.run)();
            let micros = begin.elapsed().as_micros() as u64;
            let is_reached =
                |site: &usize| REACHED[site / 64].load(Relaxed) >> (site % 64) & 1 == 1;
            let reached = (0..64 * REACHED.len()).filter(is_reached).collect::<Vec<_>>();
            let line = serde_json::json!({
                "kernel": kernel, "trial": number, "what": trial.what, "micros": micros,
                "hash": format!("{:016x}", hasher.finish()), "found": found, "reached": reached,
            });
            println!("{line}");
        }
    }
    Ok(())
}

fn run(id: &str, of_kernels: &[&str]) -> Result<(), String> {
    MUTATION.store(id.parse().map_err(|_| USAGE)?, Relaxed);
    let mut is_wrong = false;
    for argument in of_kernels {
        let [kernel, number, hash] = *argument.split(':').collect::<Vec<_>>() else {
            return Err(USAGE.to_owned());
        };
        let number = number.parse::<usize>().map_err(|_| USAGE)?;
        let expected = u64::from_str_radix(hash, 16).map_err(|_| USAGE)?;
        let trials = trials(kernel)?;
        let trial = trials.get(number).ok_or(format!("{kernel} has no trial {number}"))?;
        let Outcome { found, hasher } = (trial.run)();
        found.iter().for_each(|kind| println!("found {kind}"));
        if hasher.finish() != expected && !is_wrong {
            println!("wrong {kernel} {}", trial.what);
            is_wrong = true;
        }
        if !found.is_empty() {
            break;
        }
    }
    println!("done");
    Ok(())
}

/// All trials of a kernel.
fn trials(kernel: &str) -> Result<Vec<Trial>, String> {
    let entry = registry::find(kernel).ok_or(format!("{kernel}: no such kernel"))?;
    of_entry(entry).ok_or(format!("{kernel}: there are no cases for it"))
}

fn of_entry(entry: &'static Entry) -> Option<Vec<Trial>> {
    Some(match &entry.contract {
        Contract::Product(product) => general::of_product(product),
        Contract::ProductF64(product) => general::of_general(product),
        Contract::ProductBf16(product) => general::of_general(product),
        Contract::ProductBf16F32(product) => general::of_general(product),
        Contract::ProductF16(product) => general::of_general(product),
        Contract::ProductF16F32(product) => general::of_general(product),
        Contract::ProductTf32(product) => general::of_general(product),
        Contract::TensorProduct(product) => tensor::of_f32(product)?,
        Contract::TensorProductBf16(product) => tensor::of_16_bits(product)?,
        Contract::TensorProductBf16F32(product) => tensor::of_16_bits(product)?,
        Contract::TensorProductF16(product) => tensor::of_16_bits(product)?,
        Contract::TensorProductF16F32(product) => tensor::of_16_bits(product)?,
        Contract::Program(_) => copies::of_program(entry.name())?,
        _ => return None,
    })
}
