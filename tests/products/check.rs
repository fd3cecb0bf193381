//! One product compared with nalgebra. A failure says how to reproduce it with the command.

use gpu::registry::Entry;
use host::{Device, operands, product::Shape, verify};
use tests::{multiply_guarded, products, reference};

/// Operands of a test.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    /// Integers so small that the result is exact.
    Integers,
    /// Real numbers from [-1, 1).
    Uniform,
}

/// A shape whose sizes are known to be allowed.
pub fn shape(m: usize, n: usize, k: usize) -> Shape {
    Shape::new(m as u64, n as u64, k as u64).unwrap()
}

/// A and B for a shape. Integers have no zeros, so every product counts.
pub fn operands(shape: Shape, data: Data, seed: u64) -> (Vec<f32>, Vec<f32>) {
    let magnitude = operands::exact_magnitude(shape.k()).unwrap();
    let draw = |seed, len| {
        let values = match data {
            Data::Integers => operands::integers(seed, len, magnitude),
            Data::Uniform => operands::uniform(seed, len),
        };
        values.unwrap()
    };
    let (a, b) = (draw(seed, shape.a_len()), draw(operands::seed_of_b(seed), shape.b_len()));
    for (name, values) in [("A", &a), ("B", &b)] {
        let all_zero = values.iter().all(|&x| x == 0.0);
        assert!(values.is_empty() || !all_zero, "{name} is zero, so nothing would be tested");
    }
    (a, b)
}

/// Multiplies with every kernel on one device, and compares every element. Returns the number of
/// products.
pub fn check_all(device: &Device, shape: Shape, data: Data, seed: u64) -> Result<usize, String> {
    let entries = products().into_iter().map(|(entry, _)| entry).collect::<Vec<_>>();
    check(device, &entries, shape, data, seed)
}

/// The same with these kernels.
pub fn check(
    device: &Device,
    entries: &[&'static Entry],
    shape: Shape,
    data: Data,
    seed: u64,
) -> Result<usize, String> {
    let (a, b) = operands(shape, data, seed);
    let want = reference::product(shape, &a, &b);
    let bounds = match data {
        Data::Integers => vec![0.0; want.len()],
        Data::Uniform => bounds(shape, &a, &b),
    };
    for entry in entries {
        let hint = hint(device, entry, shape, seed);
        let c = multiply_guarded(device, entry, shape, &a, &b)
            .map_err(|error| format!("{error}\n{hint}"))?;
        for (index, (&got, (&want, &bound))) in c.iter().zip(want.iter().zip(&bounds)).enumerate() {
            let (err, place) =
                ((f64::from(got) - want).abs(), (index / shape.n(), index % shape.n()));
            if err <= bound {
                continue;
            }
            return Err(format!("C{place:?} = {got}, should be {want} up to {bound:e}\n{hint}"));
        }
        agrees(shape, &a, &b, &c, data).map_err(|error| format!("{error}\n{hint}"))?;
    }
    Ok(entries.len())
}

/// Checks that the project's own verification has the same verdict.
fn agrees(shape: Shape, a: &[f32], b: &[f32], c: &[f32], data: Data) -> Result<(), String> {
    let criterion = match data {
        Data::Integers => verify::Criterion::Exact,
        Data::Uniform => verify::Criterion::Bound,
    };
    let found = verify::compare(shape, a, b, c, criterion).map_err(|error| error.to_string())?;
    // An empty C is not called verified.
    if found.passed() == !c.is_empty() {
        return Ok(());
    }
    Err(format!("right, but not so for the verification: {found:?}"))
}

/// `gamma(k + 3) |A| |B|`, and `k + 3` times the smallest float.
fn bounds(shape: Shape, a: &[f32], b: &[f32]) -> Vec<f64> {
    let roundings = shape.k() as f64 + 3.0;
    let relative = roundings * 2f64.powi(-24);
    let gamma = relative / (1.0 - relative);
    let tiny = f64::from(f32::from_bits(1));
    reference::magnitude(shape, a, b).iter().map(|x| gamma * x + roundings * tiny).collect()
}

/// How to reproduce it.
fn hint(device: &Device, entry: &Entry, shape: Shape, seed: u64) -> String {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    format!(
        "cargo run -p host -- --m {m} --n {n} --k {k} --kernel {} --device {} --seed {seed}",
        entry.name(),
        device.name(),
    )
}
