//! All kernels at a shape, with each split of k: what a model of their times is fitted to.

use host::{
    Error, Gemm,
    gemm::{Choice, Output, Request, Scalar, Target},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::case::Case;
use crate::cli::args::BenchKernel;

/// A kernel that is predicted to take at most so many times as long as the best is timed.
const NEAR: f64 = 2.5;

/// The share of the others that is timed, too.
const OTHERS: f64 = 0.05;

/// Partial products at most.
const MOST_PARTIALS: u32 = 4096;

/// The kernels to be timed at a shape: `auto`, those near the best by prediction, and some others,
/// which the seed and the shape's number draw.
pub(super) fn drawn<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    request: &Request,
    target: &Target,
    seed: u64,
    case: &Case,
) -> Result<Vec<BenchKernel>, Error> {
    let predicted = |kernel: &BenchKernel| -> Option<f64> {
        let mut gemm = *gemm;
        if let Some(blocks) = kernel.split_k {
            gemm = gemm.split_k(blocks).ok()?;
        }
        if let Some(count) = kernel.partials {
            gemm = gemm.partials(count).ok()?;
        }
        if let Some(entry) = kernel.entry {
            gemm = gemm.entry(entry).ok()?;
        }
        let Choice { times, split_k, .. } = gemm.choose(request, target).ok()?;
        // Fewer blocks than asked for are another candidate.
        let is_it = kernel.split_k.is_none_or(|blocks| blocks == split_k);
        times.filter(|_| is_it).map(|times| times.us())
    };
    let kernels =
        gemm.candidates(request, target).into_iter().filter(|one| one.ineligible.is_none());
    let powers = || (1..=MOST_PARTIALS.ilog2()).map(|power| Some(1 << power));
    // Partial products have a C of sums: of 16-bit types `auto` takes the kernel.
    let in_parts = powers().map(|partials| BenchKernel { partials, ..BenchKernel::AUTO });
    let named = kernels.flat_map(|candidate| {
        let kernel = BenchKernel::of(candidate.entry);
        let most = candidate.entry.product.as_ref().map_or(1, |product| product.most_splits);
        let split = (1..=most).map(move |blocks| BenchKernel { split_k: Some(blocks), ..kernel });
        split.chain(powers().map(move |partials| BenchKernel { partials, ..kernel }))
    });
    let timed = named.chain(in_parts).filter_map(|kernel| Some((predicted(&kernel)?, kernel)));
    let timed = timed.filter(|(us, _)| us.is_finite()).collect::<Vec<_>>();
    let best = timed.iter().map(|(us, _)| *us).fold(f64::INFINITY, f64::min);
    let number = case.draw.map_or(0, |draw| draw.number as u64);
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ number.rotate_left(32));
    let is_taken = |(us, _): &(f64, BenchKernel)| {
        // Drawn for each, so that those drawn do not depend on what is near.
        let is_drawn = rng.random_range(0.0..1.0) < OTHERS;
        *us <= NEAR * best || is_drawn
    };
    let taken = timed.into_iter().filter(is_taken).map(|(_, kernel)| kernel);
    Ok([BenchKernel::AUTO].into_iter().chain(taken).collect())
}

#[cfg(test)]
mod tests {
    use host::{
        Bf16, Shape,
        baseline::{DenseBatch, Epilogue},
    };

    use super::{super::case::Draw, *};

    #[test]
    fn the_near_ones_are_taken_and_few_others_the_same_each_time() {
        let gemm = Gemm::<Bf16, Bf16>::of_types();
        let of = |size: [u64; 3], number: usize, seed: u64| {
            let [m, n, k] = size;
            let shape = Shape::new(m, n, k).unwrap();
            let product = DenseBatch { shape, transposed: [false, true], count: 1 };
            let draw = Some(Draw { number, of: 100, aligned: true });
            let case = Case { group: None, draw, product, epilogues: vec![Epilogue::PLAIN] };
            let request = Request::new(shape, product.strides());
            let kernels = drawn(&gemm, &request, &Target::H200, seed, &case).unwrap();
            kernels.iter().map(BenchKernel::to_string).collect::<Vec<_>>()
        };
        let long_k = of([64, 128, 40_000], 1, 7);
        assert_eq!(long_k, of([64, 128, 40_000], 1, 7));
        assert_eq!(long_k[0], "auto");
        assert!(long_k.iter().any(|name| name.contains('/')), "{long_k:?}");
        assert!(!long_k.iter().any(|name| name.starts_with("tiled")), "{long_k:?}");
        let square = of([4096; 3], 1, 7);
        assert!(square.iter().any(|name| name == "wgmma_bf16_256x256x64_c2_nt:1"), "{square:?}");
        assert!((5..100).contains(&square.len()) && (5..150).contains(&long_k.len()));
        // A kernel that is far from the best is drawn for some shapes.
        let far = |number| {
            let all = of([4096; 3], number, 7);
            all.iter().any(|name| name.starts_with("gemm_bf16_4x4x256_dot"))
        };
        let count = (1..=60).filter(|&number| far(number)).count();
        assert!((1..45).contains(&count), "{count}");
    }
}
