//! Every small size with every pair of scalars and every transposition, as Reference-LAPACK tests
//! `DGEMM`.

use tests::gemm::{Case, Data, Number, Operand, Order, Place, Random, Suite};
use tests::once;

const SIZES: [usize; 6] = [0, 1, 2, 3, 5, 9];
const ALPHAS: [f64; 3] = [0.0, 1.0, 0.7];
const BETAS: [f64; 3] = [0.0, 1.0, 1.3];

/// The place of a matrix with one of four leading dimensions.
fn place(size: (usize, usize), order: Order, random: &mut Random) -> Place {
    let run = if order == Order::Rows { size.1 } else { size.0 };
    Place::padded(size, order, random.choose(&[0, 1, 7, run]))
}

fn cube<T: Number>() {
    let (mut suite, mut random) = (Suite::<T>::new().in_turns(), Random::new(1));
    let sizes = || SIZES.into_iter().flat_map(|m| SIZES.map(|n| [m, n]));
    for ([m, n], k) in sizes().flat_map(|mn| SIZES.map(|k| (mn, k))) {
        for (alpha, beta) in ALPHAS.into_iter().flat_map(|alpha| BETAS.map(|beta| (alpha, beta))) {
            for (a, b) in Order::BOTH.into_iter().flat_map(|a| Order::BOTH.map(|b| (a, b))) {
                let seed = random.next();
                // A transpose is a view in the other order.
                let [a, b] = [((m, k), a), ((k, n), b)].map(|(size, order)| match order {
                    Order::Rows => (size, place(size, order, &mut random)),
                    Order::Columns => (size, place(size, order, &mut random).transposed()),
                });
                let c = place((m, n), random.choose(&Order::BOTH), &mut random);
                let a = Operand::draw(a.0, a.1, Data::Uniform, seed);
                let b = Operand::draw(b.0, b.1, Data::Uniform, !seed);
                let case = Case::plain(a, b, c);
                suite.bounded(&match beta {
                    // C stays NaN: it must not be read.
                    0.0 => Case { alpha, ..case },
                    _ => case.scaled(alpha, beta, Data::Uniform, seed),
                });
            }
        }
    }
    suite.done("cube::every_small_product");
}

#[test]
fn every_small_product() {
    once!(crate::SOURCES);
    cube::<f32>();
    cube::<f64>();
}
