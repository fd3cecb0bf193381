//! What invariant products are predicted to cost at random shapes (docs/log/selection.md, "The same
//! bits for a row").

use host::{
    Bf16, Compute, Gemm,
    gemm::{Output, Request, Scalar, Target},
};

use super::shapes::{Drawn, Sizes, draw};

/// The geometric means of their predicted times over `auto`'s: of all shapes, and of those of up to
/// 16 rows. And how many were refused, for the workspace of copies.
fn cost<T: Scalar<O>, O: Output>(what: &str, compute: Compute) -> ([f64; 2], usize) {
    // Not the seed that the rules were found with.
    let shapes = draw(0x2026_1130, 700, Sizes::new(size_of::<T>(), false)).unwrap();
    let mut logs = Vec::new();
    let mut refused = 0;
    for Drawn { class, product, epilogue, .. } in shapes {
        let mut request = Request::new(product.shape, product.strides());
        request.batch = product.count;
        request.plain = epilogue.is_plain();
        let gemm = Gemm::<T, O>::of_types().compute(compute);
        let us = |gemm: Gemm<T, O>| {
            let choice = gemm.choose(&request, &Target::H200).ok()?;
            choice.times.map(|times| times.us())
        };
        match (us(gemm), us(gemm.invariant())) {
            (Some(auto), Some(invariant)) => {
                logs.push((class.name(), product.shape.m(), (invariant / auto).ln()));
            }
            _ => refused += 1,
        }
    }
    let mean = |is_it: &dyn Fn(&(&str, usize, f64)) -> bool| {
        let of_it = logs.iter().filter(|log| is_it(log)).map(|log| log.2).collect::<Vec<_>>();
        (of_it.iter().sum::<f64>() / of_it.len() as f64).exp()
    };
    let means = [mean(&|_| true), mean(&|log| log.1 <= 16)];
    let few = logs.iter().filter(|log| log.1 <= 16).count();
    print!("{what}: {:.3}, m <= 16 ({few}) {:.3}, refused {refused};", means[0], means[1]);
    for class in super::shapes::Class::ALL {
        print!(" {} {:.2}", class.name(), mean(&|log| log.0 == class.name()));
    }
    println!();
    (means, refused)
}

#[test]
fn invariant_products_are_predicted_to_cost_so_much() {
    // As docs/log/selection.md says, and a little more. (f64's `auto` has a kernel for few rows
    // and columns, whose order no other has.)
    let all = [
        (cost::<f32, f32>("f32", Compute::Native), [1.40, 1.92]),
        (cost::<Bf16, Bf16>("bf16", Compute::Native), [1.10, 1.33]),
        (cost::<f32, f32>("tf32", Compute::Tf32), [1.36, 1.82]),
        (cost::<f64, f64>("f64", Compute::Native), [1.20, 1.60]),
    ];
    for ((means, refused), most) in all {
        let is_within = means[0] <= most[0] && means[1] <= most[1];
        assert!(is_within && refused <= 40, "{means:?}, {refused} refused, at most {most:?}");
    }
}
