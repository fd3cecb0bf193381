//! Sizes of 0.

use host::{Gemm, MatrixView, MatrixViewMut, testing};
use tests::gemm::{Case, Data, Number, Operand, Place, Suite, bytes, each_device};

/// m, n and k, some of them 0.
fn empty() -> impl Iterator<Item = [usize; 3]> {
    let sizes =
        |zeros: usize| [3, 5, 7].map(|size| if zeros.is_multiple_of(size) { 0 } else { size });
    // Each of 3, 5 and 7 divides some of them.
    [3, 5, 7, 15, 21, 35, 105].into_iter().map(sizes)
}

fn each<T: Number>() {
    let mut suite = Suite::<T>::new();
    for sizes @ [m, n, _] in empty() {
        for (alpha, beta) in [(1.0, 0.0), (1.0, 1.0), (0.7, 1.3), (0.0, 0.0), (f64::NAN, 3.0)] {
            let case = Case::dense(sizes, Data::Uniform, 4).scaled(alpha, beta, Data::Uniform, 5);
            let before = testing::counts().launches;
            suite.check(&case, &tests::gemm::Want::bounded(&case));
            let launched = testing::counts().launches > before;
            // An empty grid is not launched, nor is a product that leaves C as it is.
            assert_eq!(launched, m > 0 && n > 0 && beta != 1.0, "{case}");
        }
    }
    suite.done("empty::every_combination");
}

#[test]
fn every_combination() {
    each::<f32>();
    each::<f64>();
}

/// C is left as it is, even if it is NaN.
#[test]
fn without_products_and_with_beta_one_c_stays() {
    let mut suite = Suite::<f32>::new();
    for [m, n, _] in empty() {
        let rows = |size| Place::padded(size, tests::gemm::Order::Rows, 3);
        let (a, b) = (Operand::noise((m, 0), rows((m, 0))), Operand::noise((0, n), rows((0, n))));
        let case = Case { beta: 1.0, ..Case::plain(a, b, rows((m, n))) };
        suite.each(|bench, kernel| {
            let c = bench.run(&case, Some(kernel)).unwrap();
            assert_eq!(bytes(&c), bytes(&case.c.values()), "{case}");
        });
    }
    suite.done("empty::without_products_and_with_beta_one_c_stays");
}

/// A matrix without elements may have any address.
#[test]
fn no_memory_at_all() {
    each_device("empty::no_memory_at_all", |device, count| {
        let stream = device.stream().unwrap();
        for [m, n, k] in empty() {
            // SAFETY: no elements.
            let nothing = || unsafe { device.foreign::<f32>(0, 0) }.unwrap();
            let full = |len: usize| {
                if len == 0 { nothing() } else { device.upload(&vec![1.0; len]).unwrap() }
            };
            let (a, b, mut c) = (full(m * k), full(k * n), full(m * n));
            let a = MatrixView::new(a.view(..).unwrap(), m, k, [k, 1]).unwrap();
            let b = MatrixView::new(b.view(..).unwrap(), k, n, [n, 1]).unwrap();
            let view = MatrixViewMut::new(c.view_mut(..).unwrap(), m, n, [n, 1]).unwrap();
            Gemm::new().beta(2.0).run(&stream, a, b, view).unwrap();
            assert_eq!(c.to_vec().unwrap(), vec![2.0; m * n], "{device}: {m} {n} {k}");
            *count += 1;
        }
    });
}
