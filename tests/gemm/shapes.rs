//! Exact results at sizes where kernels are likely to fail: matrices in any layouts, with scalars
//! and without.

use host::{Bf16, F16};
use tests::gemm::{Case, Data, Number, Random, Suite};
use tests::once;

/// Scalars that keep integers exact.
const SCALARS: [(f64, f64); 4] = [(1.0, 0.0), (2.0, -1.0), (-1.0, 1.0), (0.5, 2.0)];

fn exact<T: Number>(suite: &mut Suite<T>, sizes: [usize; 3], random: &mut Random) {
    let data = Data::exact(sizes[2]);
    let case = Case::anywhere(sizes, data, random);
    let (alpha, beta) = random.choose(&SCALARS);
    suite.exact(&match beta {
        0.0 => case,
        _ => case.scaled(alpha, beta, data, random.next()),
    });
}

/// Each shape in each type. All but f32 run one kernel in turn.
fn shapes(test: &str, shapes: impl IntoIterator<Item = [usize; 3]>) {
    let (mut single, mut double) = (Suite::<f32>::new(), Suite::<f64>::new().in_turns());
    let (mut upper, mut half) = (Suite::<Bf16>::new().in_turns(), Suite::<F16>::new().in_turns());
    let mut random = Random::new(2);
    for sizes in shapes {
        exact(&mut single, sizes, &mut random);
        exact(&mut double, sizes, &mut random);
        exact(&mut upper, sizes, &mut random);
        exact(&mut half, sizes, &mut random);
    }
    single.done(test);
    double.done(test);
    upper.done(test);
    half.done(test);
}

/// All triples of these sizes.
fn triples<'a>(
    m: &'a [usize],
    n: &'a [usize],
    k: &'a [usize],
) -> impl Iterator<Item = [usize; 3]> + 'a {
    let pairs = m.iter().flat_map(move |&m| n.iter().map(move |&n| [m, n]));
    pairs.flat_map(move |[m, n]| k.iter().map(move |&k| [m, n, k]))
}

/// m, n and k in each of the three orders that a rotation gives.
fn rotations([m, n, k]: [usize; 3]) -> [[usize; 3]; 3] {
    [[m, n, k], [n, k, m], [k, m, n]]
}

#[test]
fn squares() {
    once!(crate::SOURCES);
    shapes("shapes::squares", (1..=20).map(|size| [size; 3]));
}

/// One less than a kernel's tile, as many, and one more, at one and at two tiles.
#[test]
fn edges_of_tiles() {
    once!(crate::SOURCES);
    let edges = |tile: usize| [tile - 1, tile, tile + 1];
    let around = |tile: usize, k: usize| {
        let [sizes, k] = [edges(tile), edges(k)];
        triples(&sizes, &sizes, &k).collect::<Vec<_>>()
    };
    let shapes_of = [(4, 4), (8, 8), (32, 8), (64, 16), (128, 64)];
    shapes("shapes::edges_of_tiles", shapes_of.into_iter().flat_map(|(tile, k)| around(tile, k)));
}

/// A phase takes 8 or 16 k-steps: the last may be nearly empty, nearly full or full. There are two
/// buffers.
#[test]
fn edges_of_phases() {
    once!(crate::SOURCES);
    shapes("shapes::edges_of_phases", (1..=50).map(|k| [33, 34, k]));
}

#[test]
fn thin() {
    once!(crate::SOURCES);
    let thin = triples(&[63, 64, 65], &[1, 2, 3, 4], &[5, 6, 7, 8]).collect::<Vec<_>>();
    let single = [[1, 1, 1000], [1, 300, 200]];
    shapes("shapes::thin", thin.into_iter().chain(single).flat_map(rotations));
}

#[test]
fn primes() {
    once!(crate::SOURCES);
    let primes = [[7, 13, 31], [61, 127, 251], [127, 61, 13], [251, 7, 61], [13, 509, 127]];
    let more = [[1021, 31, 7], [1000, 700, 513]];
    shapes("shapes::primes", primes.into_iter().flat_map(rotations).chain(more));
}

#[test]
fn long_sums() {
    once!(crate::SOURCES);
    shapes("shapes::long_sums", [[9, 16, 23040], [33, 17, 5000]]);
}

/// Within the bound. It is significant even for this many products, because their sum is far below
/// them.
#[test]
fn a_very_long_sum_on_a_gpu() {
    let mut suite = Suite::<f32>::cuda();
    if suite.is_empty() {
        return; // on the CPU it would take half a minute
    }
    suite.bounded(&Case::dense([128, 128, 300_000], Data::Uniform, 3));
    suite.done("shapes::a_very_long_sum_on_a_gpu");
}
