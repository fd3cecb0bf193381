//! Places of matrices: leading dimensions, any strides, any misalignment.

use tests::once;
use tests::{
    devices,
    gemm::{Bench, Case, Data, Number, Operand, Order, Place, Suite, Want, bytes, counted},
};

/// All combinations of these for A, B and C.
fn thrice<'a, T: Copy>(things: &'a [T]) -> impl Iterator<Item = [T; 3]> + 'a {
    let pairs = move |a: T| things.iter().map(move |&b| (a, b));
    let all = things.iter().flat_map(move |&a| pairs(a));
    all.flat_map(move |(a, b)| things.iter().map(move |&c| [a, b, c]))
}

fn leading<T: Number>() {
    const M: usize = 33;
    const N: usize = 34;
    const K: usize = 21;
    let (mut suite, data) = (Suite::<T>::new().in_turns(), Data::exact(K));
    for orders in thrice(&Order::BOTH) {
        // 0 stands for a leading dimension of twice the minimum.
        for padding in thrice(&[None, Some(0), Some(1), Some(7)]) {
            let place = |which: usize, size: (usize, usize)| {
                let run = if orders[which] == Order::Rows { size.1 } else { size.0 };
                Place::padded(size, orders[which], padding[which].unwrap_or(run))
            };
            let a = Operand::draw((M, K), place(0, (M, K)), data, 1);
            let b = Operand::draw((K, N), place(1, (K, N)), data, 2);
            let case = Case::plain(a, b, place(2, (M, N)));
            suite.exact(&case.scaled(2.0, -1.0, data, 3));
        }
    }
    suite.done("places::leading_dimensions");
}

/// Each of A, B and C in either order, with four leading dimensions each. Padding is not changed,
/// and its NaN does not reach the result.
#[test]
fn leading_dimensions() {
    once!(crate::SOURCES);
    leading::<f32>();
    leading::<f64>();
}

/// Strides of a matrix that is read. They may be any: all elements may be at one place.
fn read((rows, cols): (usize, usize)) -> [[usize; 2]; 9] {
    [
        [2 * cols + 1, 2],
        [3, 3 * rows],
        [4, 4 * rows + 4],
        [cols * 8, 4],
        [0, 1],
        [1, 0],
        [0, 0],
        [1, 1],
        [2, 3],
    ]
}

/// Strides of a matrix that is written.
fn written((rows, cols): (usize, usize)) -> [[usize; 2]; 6] {
    [
        [2 * cols, 2],
        [2 * cols + 3, 2],
        [3, 3 * rows],
        [3, (3 * rows).saturating_sub(2)],
        [4 * cols + 4, 4],
        [cols * 5, 1],
    ]
}

fn strides<T: Number>() {
    const M: usize = 19;
    const N: usize = 36;
    const K: usize = 18;
    let (mut suite, data) = (Suite::<T>::new().in_turns(), Data::exact(K));
    for a in read((M, K)) {
        for b in read((K, N)) {
            for c in written((M, N)) {
                let a = Operand::draw((M, K), Place::strided(a), data, 1);
                let b = Operand::draw((K, N), Place::strided(b), data, 2);
                let case = Case::plain(a, b, Place::strided(c));
                suite.exact(&case.scaled(-1.0, 2.0, data, 3));
            }
        }
    }
    suite.done("places::strides_of_any_kind");
}

#[test]
fn strides_of_any_kind() {
    once!(crate::SOURCES);
    strides::<f32>();
    strides::<f64>();
}

fn slices<T: Number>() -> usize {
    let mut count = 0;
    for device in devices() {
        let bench = Bench::<T>::new(&device);
        for (m, n, k) in [(19, 36, 18), (1, 5, 3), (7, 1, 4), (4, 6, 0), (0, 3, 2)] {
            let data = Data::exact(k);
            for (a, b) in read((m, k)).into_iter().flat_map(|a| read((k, n)).map(|b| (a, b))) {
                for (c, beta) in written((m, n)).into_iter().flat_map(|c| [(c, 0.0), (c, 2.0)]) {
                    let a = Operand::draw((m, k), Place::strided(a).at(count % 4), data, 4);
                    let b = Operand::draw((k, n), Place::strided(b).transposed(), data, 5);
                    let case = Case::plain(a, b, Place::strided(c).at(count % 3));
                    let case = match beta {
                        0.0 => case,
                        _ => case.scaled(-1.0, beta, data, 6),
                    };
                    let c = bench.run_slices(&case).unwrap();
                    Want::exact(&case).check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{case}"));
                    count += 1;
                }
            }
        }
    }
    count / devices().len()
}

/// The same with matrices in host memory. Memory between their elements is not changed.
#[test]
fn slices_of_any_kind() {
    once!(crate::SOURCES);
    counted("places::slices_of_any_kind", slices::<f32>() + slices::<f64>());
}

fn distances<T: Number>() {
    const M: usize = 36;
    const N: usize = 40;
    const K: usize = 20;
    let mut suite = Suite::<T>::new().in_turns();
    for order in Order::BOTH {
        // Whole groups of four in a row, or not: then only some groups are aligned.
        for padding in [0, 1, 2, 4] {
            let case = |offsets: [usize; 3]| {
                let place =
                    |which: usize, size| Place::padded(size, order, padding).at(offsets[which]);
                let a = Operand::draw((M, K), place(0, (M, K)), Data::Uniform, 1);
                let b = Operand::draw((K, N), place(1, (K, N)), Data::Uniform, 2);
                Case::plain(a, b, place(2, (M, N))).scaled(0.7, 1.3, Data::Uniform, 3)
            };
            let mut aligned = None;
            for offsets in thrice(&[0, 1, 2, 3]) {
                let c = suite.bounded(&case(offsets));
                let aligned = aligned.get_or_insert_with(|| c.clone());
                assert!(
                    bytes(&c) == bytes(aligned),
                    "{order:?} + {padding}, {offsets:?} elements on"
                );
            }
        }
    }
    suite.done("places::distances_from_a_boundary");
}

/// Aligned 16 bytes may be moved at once. If A, B or C starts 1, 2 or 3 elements later, C has the
/// same bits.
#[test]
fn distances_from_a_boundary() {
    once!(crate::SOURCES);
    distances::<f32>();
    distances::<f64>();
}
