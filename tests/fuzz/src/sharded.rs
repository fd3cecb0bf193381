//! Random products over several devices: each has the bits that one device computes. The devices
//! are CPU devices, or as many places as are drawn on the GPUs that there are.
//!
//! Every algorithm that the layouts allow is run, in each layout of A, B and C.

use std::collections::BTreeMap;

use gpu_gemm::{
    Activation, Compute, Device, Devices, Error, Gemm, Matrix, Shape, ShardLayout, Sharded,
    gemm::{Algorithm, ShardedScalar},
};
use simt::with_float_types;
use tests::gemm::{Data, Number, Random, bytes};

use crate::{campaign::case, draw::Pool, product::Types};

/// Multiply-adds of a product at most: of most, and of one in 16.
const MOST_WORK: [usize; 2] = [1 << 15, 1 << 19];

/// How often what happened.
pub type Tally = BTreeMap<String, u64>;

/// A product, drawn from a seed.
#[derive(Debug)]
struct Drawn {
    types: Types,
    sizes: [usize; 3],
    places: usize,
    layouts: [ShardLayout; 3],
    scalars: [f64; 2],
    activation: Activation,
    compute: Compute,
    kernel: Option<&'static str>,
    partials: Option<u32>,
    seed: u64,
}

/// A size: often none, few, or about a tile.
fn size(random: &mut Random) -> usize {
    match random.below(16) {
        0 => 0,
        1 => 1,
        2..5 => random.below(8),
        5..10 => random.below(80),
        10..13 => random.choose(&[63, 64, 65, 127, 128, 129]),
        _ => random.below(400),
    }
}

/// Bounds of so many parts: even ones, or any.
fn bounds(random: &mut Random, len: usize, places: usize) -> Vec<usize> {
    let unit = match random.below(3) {
        0 => {
            let ShardLayout::Rows(bounds) = ShardLayout::rows(len, places) else {
                unreachable!("it is by rows")
            };
            return bounds;
        }
        1 => 16,
        _ => 1,
    };
    let mut bounds = (1..places).map(|_| (random.below(len + 1) / unit) * unit).collect::<Vec<_>>();
    bounds.extend([0, len]);
    bounds.sort_unstable();
    bounds
}

fn layout(random: &mut Random, [rows, cols]: [usize; 2], places: usize) -> ShardLayout {
    match random.below(8) {
        0 => ShardLayout::Replicated,
        1..4 => ShardLayout::Rows(bounds(random, rows, places)),
        4..6 => ShardLayout::Cols(bounds(random, cols, places)),
        _ => {
            let sides =
                (1..=places).filter(|side| places.is_multiple_of(*side)).collect::<Vec<_>>();
            let down = random.choose(&sides);
            let rows = bounds(random, rows, down);
            ShardLayout::Grid { rows, cols: bounds(random, cols, places / down) }
        }
    }
}

impl Drawn {
    fn new(pool: &Pool, seed: u64) -> Drawn {
        let mut random = Random::new(seed);
        let random = &mut random;
        let named = (random.below(3) == 0).then(|| pool.draw(random));
        let variant = named.and_then(|entry| entry.product.as_ref()).map(|product| product.variant);
        let all = Types::all();
        let types = variant.map_or_else(|| random.choose(&all), |it| Types(it.operands, it.c));
        let mut sizes = [0; 3].map(|_| size(random));
        let most = MOST_WORK[usize::from(random.below(16) == 0)];
        while sizes.iter().product::<usize>() > most {
            let longest = (0..3).max_by_key(|&side| sizes[side]).unwrap_or(0);
            sizes[longest] /= 2;
        }
        let places = 1 + random.below(8);
        // k is split, and by the whole product, too.
        let is_split = named.is_none() && random.below(5) == 0;
        if is_split {
            sizes = [random.below(70), random.below(70), 65 + random.below(600)];
        }
        let [m, n, k] = sizes;
        let mut layouts = [[m, k], [k, n], [m, n]].map(|size| layout(random, size, places));
        if is_split {
            layouts[0] = ShardLayout::cols(k, places);
            layouts[1] = ShardLayout::rows(k, places);
        }
        let counts = if is_split { &[2, 3, 8, 16] } else { &[1, 1, 1, 2] };
        let partials =
            (named.is_none() && (is_split || random.below(8) == 0)).then(|| random.choose(counts));
        let is_tf32 = named.is_some_and(|entry| entry.is_tf32());
        Drawn {
            types,
            sizes,
            places,
            layouts,
            scalars: [[1.0, 0.0], [1.0, 1.0], [0.5, -2.0], [0.0, 1.5], [-1.0, 0.0]]
                [random.below(5)],
            activation: random.choose(&[Activation::Identity, Activation::Relu, Activation::Silu]),
            compute: if is_tf32 { Compute::Tf32 } else { Compute::Native },
            kernel: named.map(|entry| entry.name()),
            partials,
            seed: random.next(),
        }
    }
}

/// So many places, on devices of that kind.
fn devices(one: &Device, places: usize) -> gpu_gemm::Result<Devices> {
    match one.is_cuda() {
        false => Devices::cpu(places),
        true => {
            let count = Device::cuda_count()?.max(1);
            Devices::of(&(0..places).map(|place| place % count).collect::<Vec<_>>())
        }
    }
}

/// Tries a product. The error says what is wrong.
fn check<T, O>(drawn: &Drawn, one: &Device, tally: &mut Tally) -> Result<(), String>
where
    T: Number + ShardedScalar<O>,
    O: Number,
{
    let mut count = |what: &str| *tally.entry(what.to_owned()).or_default() += 1;
    let (mut random, [m, n, k]) = (Random::new(drawn.seed), drawn.sizes);
    let [alpha, beta] = drawn.scalars;
    let mut operand = |len| (0..len).map(|_| random.number(Data::Uniform)).collect::<Vec<T>>();
    let (a, b) = (operand(m * k), operand(k * n));
    let c = match beta == 0.0 {
        true => O::noise().iter().copied().cycle().take(m * n).collect::<Vec<_>>(),
        false => (0..m * n).map(|_| random.number::<O>(Data::Uniform)).collect(),
    };
    let mut gemm = Gemm::<T, O>::of_types().alpha(alpha).beta(beta).compute(drawn.compute);
    gemm = gemm.activation(drawn.activation);
    let words = |error: Error| error.to_string();
    if let Some(name) = drawn.kernel {
        gemm = gemm.kernel(name).map_err(words)?;
    }
    if let Some(partials) = drawn.partials {
        gemm = gemm.partials(partials).map_err(words)?;
    }
    let matrices = (
        Matrix::from_row_major(one, m, k, &a).map_err(words)?,
        Matrix::from_row_major(one, k, n, &b).map_err(words)?,
        Matrix::from_row_major(one, m, n, &c).map_err(words)?,
    );
    let (a1, b1, mut c1) = matrices;
    let stream = one.stream().map_err(words)?;
    let wanted = gemm.run(&stream, a1.view(), b1.view(), c1.view_mut());
    let wanted = wanted.and_then(|_| c1.to_row_major());
    let devices = devices(one, drawn.places).map_err(words)?;
    let [of_a, of_b, of_c] = drawn.layouts.clone();
    let a = Sharded::from_row_major(&devices, m, k, of_a, &a).map_err(words)?;
    let b = Sharded::from_row_major(&devices, k, n, of_b, &b).map_err(words)?;
    let shape = Shape::new(m as u64, n as u64, k as u64).map_err(words)?;
    let layouts = [&drawn.layouts[0], &drawn.layouts[1], &drawn.layouts[2]];
    let plans = match (gemm.plan_sharded(&devices, shape, layouts), &wanted) {
        (Ok(plans), Ok(_)) => plans,
        (Ok(_), Err(error)) => return Err(format!("one device refuses: {error}")),
        (Err(Error::Argument { limit, .. }), _) => {
            let expected =
                wanted.is_err() || limit.contains("multiples of 16") && drawn.kernel.is_some();
            count(if wanted.is_err() { "refused by one device, too" } else { "refused" });
            return if expected { Ok(()) } else { Err(format!("refused: {limit}")) };
        }
        (Err(error), _) => return Err(error.to_string()),
    };
    let wanted = wanted.map_err(words)?;
    let mut algorithms = plans.iter().map(|plan| plan.algorithm()).collect::<Vec<_>>();
    algorithms.sort_unstable_by_key(|algorithm| algorithm.to_string());
    algorithms.dedup();
    for algorithm in algorithms {
        let mut result =
            Sharded::from_row_major(&devices, m, n, of_c.clone(), &c).map_err(words)?;
        let plan = gemm.run_sharded_by(algorithm, &devices, &a, &b, &mut result);
        let plan = plan.map_err(|error| format!("{algorithm}: {error}"))?;
        for place in 0..if of_c == ShardLayout::Replicated { drawn.places } else { 1 } {
            // The copies of a replicated matrix are equal.
            let got = match of_c {
                ShardLayout::Replicated => result.read_shard(place),
                _ => result.gather(),
            };
            if bytes(&got.map_err(words)?) != bytes(&wanted) {
                return Err(format!("other bits than one device's, at place {place}\n{plan}"));
            }
        }
        count(&algorithm.to_string());
        count(if plan.transfers() == 0 { "without a transfer" } else { "with transfers" });
        if algorithm != Algorithm::OnePlace && drawn.layouts.iter().any(has_empty) {
            count("with empty shards");
        }
    }
    count("right");
    Ok(())
}

fn has_empty(layout: &ShardLayout) -> bool {
    let empty = |bounds: &[usize]| bounds.windows(2).any(|two| two[0] == two[1]);
    match layout {
        ShardLayout::Rows(bounds) | ShardLayout::Cols(bounds) => empty(bounds),
        ShardLayout::Grid { rows, cols } => empty(rows) || empty(cols),
        _ => false,
    }
}

/// Tries so many products of a seed. `go_on` is asked before each.
///
/// # Errors
/// The first that is wrong, with what it is.
pub fn run(
    one: &Device,
    seed: u64,
    count: u64,
    mut go_on: impl FnMut() -> bool,
) -> Result<Tally, String> {
    let (pool, mut tally) = (Pool::new(), Tally::new());
    for number in 0..count {
        if !go_on() {
            break;
        }
        let drawn = Drawn::new(&pool, case(seed, number));
        let Types(operands, c) = drawn.types;
        let checked =
            with_float_types!((operands, c), |T, O| check::<T, O>(&drawn, one, &mut tally));
        let wrong = |why: String| format!("product {number} of seed {seed}: {why}\n{drawn:?}");
        checked.unwrap_or(Ok(())).map_err(wrong)?;
    }
    Ok(tally)
}
