//! The candidates that a tuned product times.

use simt::types::Typed;

use super::{
    Choice, Request,
    choice::Reason,
    choose::{Ways, choose_kernel},
    fit::{Fit, evaluate},
    partials,
};
use crate::{
    error::Result,
    gemm::{Output, Scalar, Target, scalar::Kernel},
};

/// At most `most` candidates with the shortest predicted times, the shortest first. A kernel may
/// be there twice: with partial products and without.
///
/// # Errors
/// As [`choose_kernel`].
pub(in crate::gemm) fn shortlist<T: Scalar<O>, O: Output>(
    request: &Request,
    target: &Target,
    most: usize,
) -> Result<Vec<(Kernel, Choice)>> {
    let predicted = choose_kernel::<T, O>(request, target, None)?;
    let request = &request.as_launched().with_order::<T, O>(target)?;
    let Ways { whole, in_parts } = Ways::of(request, None);
    let whole =
        T::kernels().filter(|_| whole).filter_map(|kernel| evaluate(kernel, request, target).ok());
    let types = [T::TYPE, T::Sums::TYPE];
    let in_parts = in_parts.then(|| partials::each(types, request, target)).into_iter().flatten();
    let timed = whole.chain(in_parts).filter_map(|fit| Some((fit.us()?, fit)));
    let mut timed = timed.collect::<Vec<(f64, Fit)>>();
    timed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    timed.truncate(most);
    match timed.is_empty() {
        true => Ok(vec![predicted]),
        false => {
            let choice = |(_, fit): (f64, Fit)| (fit.kernel, fit.choice(Reason::Named, target));
            Ok(timed.into_iter().map(choice).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bf16, Compute, Shape, gemm::Invariant};

    fn check<T: Scalar<O>, O: Output>(request: &Request, target: &Target) {
        let listed = shortlist::<T, O>(request, target, 8).unwrap();
        let (_, predicted) = choose_kernel::<T, O>(request, target, None).unwrap();
        let us = |choice: &Choice| choice.times.unwrap().us();
        assert!((1..=8).contains(&listed.len()));
        assert_eq!(us(&listed[0].1), us(&predicted), "{request:?} {target:?}");
        assert!(listed.is_sorted_by(|(_, a), (_, b)| us(a) <= us(b)));
        let known = |(_, one): &(Kernel, Choice)| (one.entry.name(), one.split_k, one.partials);
        let mut names = listed.iter().map(known).collect::<Vec<_>>();
        // By its name and its split of k each is found again.
        for &(kernel, listed) in &listed {
            let (split_k, partials) = (Some(listed.split_k), Some(listed.partials));
            let request = Request { split_k, partials, ..*request };
            let (_, again) = choose_kernel::<T, O>(&request, target, Some(kernel)).unwrap();
            assert_eq!(format!("{again:?}"), format!("{listed:?}"), "{request:?} {target:?}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), listed.len());
    }

    /// The first is the one that is taken untimed; no candidate is there twice.
    #[test]
    fn the_shortest_predictions_are_first() {
        for target in [Target::H200, Target::gpu((8, 0), 108), Target::cpu(4)] {
            for [m, n, k] in [[1, 4096, 4096], [64, 64, 65536], [1000, 700, 513], [0, 3, 4]] {
                let plain = Request::dense(Shape::new(m, n, k).unwrap());
                let partials = Request { partials: Some(4), ..plain };
                let tf32 = Request { compute: Compute::Tf32, ..plain };
                let slices = Request { compute: Compute::Fp32F16x3, ..plain };
                let invariant = Request { invariant: Some(Invariant::Rows), ..plain };
                let split = Request { split_k: Some(2), ..plain };
                let unaligned = Request { aligned: [false; 3], ..plain };
                for request in [plain, tf32, slices, split, partials, invariant, unaligned] {
                    if choose_kernel::<f32, f32>(&request, &target, None).is_ok() {
                        check::<f32, f32>(&request, &target);
                    }
                }
                check::<Bf16, Bf16>(&plain, &target);
            }
        }
    }
}
