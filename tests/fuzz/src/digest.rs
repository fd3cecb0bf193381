//! A line for each of many products: what is planned on some targets, and C's bits on a device. A
//! change that should leave everything as it was leaves every line.

use std::hash::{DefaultHasher, Hash, Hasher};

use gpu_gemm::{Device, gemm::Target};

use crate::{
    benches::Benches,
    campaign::case,
    draw::{Pool, product},
};

/// The targets that products are planned for.
fn targets() -> [Target; 4] {
    [Target::H200, Target::gpu((8, 0), 108), Target::gpu((7, 5), 40), Target::cpu(16)]
}

/// The line of product number `number`: what draws it, the digests of its plans and of C's bits,
/// and the kernels that the plans select.
fn line(pool: &Pool, benches: &mut Benches, seed: u64, number: u64) -> Result<String, String> {
    let case = case(seed, number);
    let drawn = product(pool, case);
    let (plans, bits) =
        benches.digest(&drawn, &targets()).map_err(|wrong| format!("--case {case:#x}: {wrong}"))?;
    let digest = |of: &[u8]| {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        hasher.finish()
    };
    let kernels = plans.lines().map(|plan| plan.split(' ').next().unwrap_or_default());
    let kernels = kernels.collect::<Vec<_>>().join(" ");
    let [plans, bits] = [plans.as_bytes(), &bits].map(digest);
    Ok(format!("{case:#018x} {plans:016x} {bits:016x} {kernels}"))
}

/// The lines of so many products, one after the other.
///
/// # Errors
/// Those of the device, and of the first product that panics.
pub fn lines(
    device: &Device,
    seed: u64,
    count: u64,
) -> Result<impl Iterator<Item = Result<String, String>>, String> {
    let pool = Pool::new();
    let mut benches = Benches::new(device).map_err(|error| error.to_string())?;
    Ok((0..count).map(move |number| line(&pool, &mut benches, seed, number)))
}
