//! A thread's last choices.
//!
//! Programs repeat the same products. A selection takes the host 13 us; a product of 1024 x 1024 x
//! 1024 in bf16 takes the GPU 6 us.

use std::cell::RefCell;

use gpu::registry::Type;

use super::{Choice, Request, choose_kernel};
use crate::{
    error::Result,
    gemm::{
        Target,
        scalar::{Kernel, Output, Scalar},
    },
};

/// Choices that a thread remembers: more than a model's layer has products, and few enough for a
/// linear search.
const RECENT: usize = 16;

/// All that a choice depends on: types, request, target, and the named kernel.
type Key = ([Type; 2], Request, Target, Option<&'static str>);

/// A ring of choices.
struct Recent {
    choices: [Option<(Key, Choice)>; RECENT],
    next: usize,
}

thread_local! {
    static CHOSEN: RefCell<Recent> = const { RefCell::new(Recent { choices: [None; RECENT], next: 0 }) };
}

/// [`choose_kernel`], or what it gave for the same question before.
pub(in crate::gemm) fn choose_cached<T: Scalar<O>, O: Output>(
    request: &Request,
    target: &Target,
    kernel: Option<Kernel>,
) -> Result<(Kernel, Choice)> {
    let key = ([T::TYPE, O::TYPE], *request, *target, kernel.map(|kernel| kernel.entry.name()));
    let known = CHOSEN.with_borrow(|recent| {
        let mut choices = recent.choices.iter().flatten();
        choices.find(|(other, _)| *other == key).map(|(_, choice)| *choice)
    });
    if let Some(choice) = known
        && let Some(product) = &choice.entry.product
    {
        return Ok((Kernel { entry: choice.entry, product }, choice));
    }
    let (kernel, choice) = choose_kernel::<T, O>(request, target, kernel)?;
    CHOSEN.with_borrow_mut(|recent| {
        recent.choices[recent.next] = Some((key, choice));
        recent.next = (recent.next + 1) % RECENT;
    });
    Ok((kernel, choice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gemm::scalar, shape::Shape};

    #[test]
    fn a_cached_choice_is_the_choice() {
        let sizes = [64, 100, 512, 513, 1000, 4096];
        let shapes = sizes.iter().flat_map(|&m| sizes.map(|k| Shape::new(m, 256, k).unwrap()));
        let target = Target::H200;
        // More than are remembered, and each of them twice at once and once more later.
        for shape in shapes.clone().flat_map(|shape| [shape; 2]).chain(shapes) {
            let request = Request::dense(shape);
            for split_k in [None, Some(2)] {
                let request = Request { split_k, ..request };
                let (kernel, choice) = choose_cached::<f32, f32>(&request, &target, None).unwrap();
                let (fresh, wanted) = choose_kernel::<f32, f32>(&request, &target, None).unwrap();
                assert_eq!(kernel.entry.name(), fresh.entry.name());
                assert_eq!(format!("{choice:?}"), format!("{wanted:?}"));
            }
        }
        // Another type is another question, and an error is one each time.
        let request = Request::dense(Shape::new(64, 256, 64).unwrap());
        let (kernel, _) = choose_cached::<f64, f64>(&request, &target, None).unwrap();
        assert_eq!(kernel.entry.name(), "mma_f64_64x64x32");
        let narrow = scalar::find::<f64, f64>("gemm_f64_4x64x1").unwrap();
        let request = Request { split_k: Some(2), ..request };
        for _ in 0..2 {
            assert!(choose_cached::<f64, f64>(&request, &target, Some(narrow)).is_err());
        }
    }
}
