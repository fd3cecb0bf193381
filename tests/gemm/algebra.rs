//! Laws of products for any numbers. They hold bit by bit, because an element's sum is the same at
//! every place.

use tests::gemm::{Bench, Case, Data, Number, Operand, Order, Place, Random, Suite, bytes};
use tests::once;

const SIZES: [[usize; 3]; 6] =
    [[1, 1, 1], [5, 9, 3], [33, 20, 17], [64, 65, 32], [100, 37, 50], [129, 70, 24]];

/// The product of two matrices in any layouts.
fn multiply<T: Number>(
    bench: &mut Bench<T>,
    kernel: &str,
    a: &Operand<T>,
    b: &Operand<T>,
) -> Operand<T> {
    let size = (a.size.0, b.size.1);
    let case = Case::plain(a.clone(), b.clone(), Place::padded(size, Order::Rows, 1));
    let c = bench.run(&case, Some(kernel)).unwrap();
    Operand::new(size, case.c.place, |_, row, col| c[row * size.1 + col])
}

/// A matrix of the same elements at other places: (row, col) is `from(row, col)` in `matrix`.
fn moved<T: Number>(
    matrix: &Operand<T>,
    size: (usize, usize),
    from: impl Fn(usize, usize) -> (usize, usize),
) -> Operand<T> {
    let place = Place::padded(size, Order::Columns, 2);
    Operand::new(size, place, |_, row, col| {
        let (row, col) = from(row, col);
        matrix.get(0, row, col)
    })
}

fn same<T: Number>(one: &Operand<T>, other: &Operand<T>) -> bool {
    bytes(&one.values()) == bytes(&other.values()) && !one.is_empty()
}

/// Checks a law for all sizes, with every kernel on every device, in both types.
fn holds(test: &str, single: Law<f32>, double: Law<f64>) {
    each(test, single);
    each(test, double);
}

/// Whether the law holds for A and B.
type Law<T> = fn(&mut Bench<T>, &str, &Operand<T>, &Operand<T>) -> bool;

fn each<T: Number>(test: &str, law: Law<T>) {
    let (mut suite, mut random) = (Suite::<T>::new(), Random::new(60));
    for sizes in SIZES {
        let Case { a, b, .. } = Case::anywhere(sizes, Data::Uniform, &mut random);
        suite.each(|bench, kernel| {
            assert!(law(bench, kernel, &a, &b), "{kernel} on {}, {sizes:?}", bench.device());
        });
    }
    suite.done(test);
}

/// `A I = A` and `I B = B`.
fn identity<T: Number>(bench: &mut Bench<T>, kernel: &str, a: &Operand<T>, b: &Operand<T>) -> bool {
    let (k, place) = (a.size.1, Place::dense(a.size, Order::Rows));
    let one = |_, row: usize, col: usize| T::nearest(if row == col { 1.0 } else { 0.0 });
    let identity = Operand::new((k, k), Place { strides: [k, 1], ..place }, one);
    same(&multiply(bench, kernel, a, &identity), a)
        && same(&multiply(bench, kernel, &identity, b), b)
}

#[test]
fn the_identity_changes_nothing() {
    once!(crate::SOURCES);
    holds("algebra::the_identity_changes_nothing", identity, identity);
}

/// `(A B)^T = B^T A^T`.
fn transpose<T: Number>(
    bench: &mut Bench<T>,
    kernel: &str,
    a: &Operand<T>,
    b: &Operand<T>,
) -> bool {
    let turned = |m: &Operand<T>| moved(m, (m.size.1, m.size.0), |row, col| (col, row));
    let c = multiply(bench, kernel, a, b);
    same(&turned(&c), &multiply(bench, kernel, &turned(b), &turned(a)))
}

#[test]
fn the_transpose_of_a_product() {
    once!(crate::SOURCES);
    holds("algebra::the_transpose_of_a_product", transpose, transpose);
}

/// Permuted rows of A give permuted rows of C.
fn permuted<T: Number>(bench: &mut Bench<T>, kernel: &str, a: &Operand<T>, b: &Operand<T>) -> bool {
    let m = a.size.0;
    let order = move |row: usize| (row * 7 + 3) % m;
    let bijective = !m.is_multiple_of(7);
    let c = multiply(bench, kernel, a, b);
    let shuffled = multiply(bench, kernel, &moved(a, a.size, |row, col| (order(row), col)), b);
    bijective && same(&moved(&c, c.size, |row, col| (order(row), col)), &shuffled)
}

#[test]
fn rows_in_another_order() {
    once!(crate::SOURCES);
    holds("algebra::rows_in_another_order", permuted, permuted);
}

/// Some columns of B give those columns of C.
fn split<T: Number>(bench: &mut Bench<T>, kernel: &str, a: &Operand<T>, b: &Operand<T>) -> bool {
    let c = multiply(bench, kernel, a, b);
    let (n, at) = (b.size.1, b.size.1 / 3);
    [0..at, at..n].into_iter().filter(|part| !part.is_empty()).all(|part| {
        let cut =
            |m: &Operand<T>| moved(m, (m.size.0, part.len()), |row, col| (row, part.start + col));
        same(&cut(&c), &multiply(bench, kernel, a, &cut(b)))
    })
}

#[test]
fn columns_by_themselves() {
    once!(crate::SOURCES);
    holds("algebra::columns_by_themselves", split, split);
}

/// A power of two can be factored out of the sums: of alpha, and of A's elements.
fn doubled<T: Number>(bench: &mut Bench<T>, kernel: &str, a: &Operand<T>, b: &Operand<T>) -> bool {
    let times = |m: &Operand<T>, by: f64| {
        Operand::new(m.size, m.place, |_, row, col| T::nearest(by).times(m.get(0, row, col)))
    };
    let c = times(&multiply(bench, kernel, a, b), 4.0);
    let case = Case { alpha: 4.0, ..Case::plain(a.clone(), b.clone(), c.place) };
    let scaled = bench.run(&case, Some(kernel)).unwrap();
    same(&c, &multiply(bench, kernel, &times(a, 4.0), b)) && bytes(&c.values()) == bytes(&scaled)
}

#[test]
fn powers_of_two() {
    once!(crate::SOURCES);
    holds("algebra::powers_of_two", doubled, doubled);
}

/// `3 A B = A B + 2 A B`, of integers, by `beta = 1`.
fn thrice<T: Number>(bench: &mut Bench<T>, kernel: &str, a: &Operand<T>, b: &Operand<T>) -> bool {
    let [m, n, k] = [a.size.0, b.size.1, a.size.1];
    let case = Case::<T>::dense([m, n, k], Data::exact(k), 61);
    let mut run = |alpha: f64, c: Option<&[T]>| {
        let beta = if c.is_some() { 1.0 } else { 0.0 };
        let mut case = Case { alpha, beta, ..case.clone() };
        for (at, (i, row, col)) in case.c.places().enumerate() {
            case.c.set(i, row, col, c.map_or(T::noise()[0], |c| c[at]));
        }
        bench.run(&case, Some(kernel)).unwrap()
    };
    let once = run(1.0, None);
    bytes(&run(3.0, None)) == bytes(&run(2.0, Some(&once)))
}

#[test]
fn once_and_twice_is_thrice() {
    once!(crate::SOURCES);
    holds("algebra::once_and_twice_is_thrice", thrice, thrice);
}
