//! Exact results at sizes where kernels are likely to fail.

use tests::{devices, products};

use crate::check::{Data, check_all, shape};

/// Checks every shape on every device, and that no product was left out.
fn check_shapes(shapes: impl IntoIterator<Item = [usize; 3]>, expected: usize) {
    let (shapes, devices) = (Vec::from_iter(shapes), devices());
    let mut checked = 0;
    for device in &devices {
        for (seed, &[m, n, k]) in (1..).zip(&shapes) {
            checked += check_all(device, shape(m, n, k), Data::Integers, seed)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert_eq!(checked, expected * products().len() * devices.len());
}

/// All triples of these sizes.
fn cube(sizes: &[usize]) -> impl Iterator<Item = [usize; 3]> {
    let pairs = sizes.iter().flat_map(move |&m| sizes.iter().map(move |&n| [m, n]));
    pairs.flat_map(move |[m, n]| sizes.iter().map(move |&k| [m, n, k]))
}

/// m, n and k in each of the three orders that a rotation gives.
fn rotations([m, n, k]: [usize; 3]) -> [[usize; 3]; 3] {
    [[m, n, k], [n, k, m], [k, m, n]]
}

#[test]
fn small_and_empty() {
    check_shapes(cube(&[0, 1, 2, 3, 5, 9]), 216);
}

#[test]
fn squares() {
    check_shapes((1..=20).map(|size| [size; 3]), 20);
}

/// One less than a tile, as many, and one more. m and n have two tiles of 16 or more, so there are
/// many blocks.
#[test]
fn tile_edges() {
    check_shapes(cube(&[15, 16, 17]), 27);
    check_shapes(cube(&[31, 32, 33]), 27);
    check_shapes(cube(&[47, 48, 49]).step_by(2), 14);
    check_shapes(cube(&[63, 64, 65]).step_by(2), 14);
}

/// The last phase along k may be nearly empty, nearly full, or full.
#[test]
fn phases() {
    check_shapes((1..=130).step_by(3).map(|k| [33, 34, k]), 44);
}

#[test]
fn primes() {
    let shapes = [[7, 13, 31], [61, 127, 251], [127, 61, 13], [251, 7, 61], [13, 509, 127]];
    check_shapes(shapes.into_iter().flat_map(rotations), 15);
}

#[test]
fn thin() {
    let shapes = cube(&[63, 65, 1, 2, 4, 5, 7, 8])
        .filter(|[m, n, k]| (63..66).contains(m) && (1..5).contains(n) && (5..9).contains(k));
    check_shapes(shapes.flat_map(rotations), 54);
    // One row, one column, one product for each sum.
    check_shapes([[1, 1, 1000], [1000, 1, 1], [1, 1000, 1]].into_iter().flat_map(rotations), 9);
    check_shapes(rotations([1, 300, 200]), 3);
}

/// Sums so long that a wrong count of phases, or a wrong offset in shared memory, would show.
#[test]
fn long_sums() {
    check_shapes([[9, 16, 23040], [33, 17, 5000]], 2);
}

/// A quarter of the sizes of the project's first command: no multiples of a tile. (A test of the
/// command runs it as it is.)
#[test]
fn a_quarter_of_the_first_command() {
    check_shapes([[250, 175, 129]], 1);
}
