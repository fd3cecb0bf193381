//! Matrices of nalgebra and ndarray, and slices, as operands with any strides. Memory between their
//! elements is not touched.

use host::{Device, Gemm, SliceView, SliceViewMut};
use nalgebra::{DMatrix, Dyn, U1};
use ndarray::{ArcArray, Array2, ArrayView2, Axis, CowArray, s};
use tests::streams;

/// Small integers: every product is exact.
fn element(seed: usize, row: usize, col: usize) -> f32 {
    ((row * 7 + col * 3 + seed) % 11) as f32 - 5.0
}

#[test]
fn nalgebra_matrices_and_parts() {
    for (_, stream) in streams() {
        let a = DMatrix::from_fn(5, 7, |row, col| element(1, row, col));
        let b = DMatrix::from_fn(7, 4, |row, col| element(2, row, col));
        let mut c = DMatrix::zeros(5, 4);
        Gemm::new().run_slices(&stream, &a, &b, &mut c).unwrap();
        assert_eq!(c, &a * &b);
        assert!(c.iter().any(|&x| x != 0.0));

        // A part of C, from parts of A and B, transposed.
        let want = a.view((1, 2), (3, 4)).transpose() * b.view((2, 0), (3, 2)) * 2.0;
        let mut whole = DMatrix::from_element(9, 6, -1.0f32);
        let a_part = a.view((1, 2), (3, 4));
        let a_part = SliceView::try_from(&a_part).unwrap().t();
        Gemm::new()
            .alpha(2.0)
            .run_slices(
                &stream,
                a_part,
                &b.view((2, 0), (3, 2)),
                &mut whole.view_mut((3, 1), (4, 2)),
            )
            .unwrap();
        assert_eq!(whole.view((3, 1), (4, 2)), want);
        assert_eq!(whole.iter().filter(|&&x| x == -1.0).count(), 9 * 6 - 4 * 2);

        // A row times a column, in f64.
        let row = nalgebra::RowVector3::new(1.0, 2.0, 3.0);
        let column = nalgebra::Vector3::new(4.0, 5.0, 6.0);
        let mut scalar = nalgebra::Matrix1::new(0.5);
        Gemm::new().beta(2.0).run_slices(&stream, &row, &column, &mut scalar).unwrap();
        assert_eq!(scalar[0], 33.0);
    }
}

#[test]
fn ndarray_arrays_and_slices() {
    for (_, stream) in streams() {
        let a = Array2::from_shape_fn((6, 8), |(row, col)| element(3, row, col));
        let b = Array2::from_shape_fn((8, 5), |(row, col)| element(4, row, col));
        let mut c = Array2::zeros((6, 5));
        Gemm::new().run_slices(&stream, &a, &b, &mut c).unwrap();
        assert_eq!(c, a.dot(&b));
        assert!(c.iter().any(|&x| x != 0.0));

        // Every other row and column, also of C, and one row repeated for all rows.
        let (a, b) = (a.slice(s![..;2, ..;3]), b.slice(s![1..4, ..;2]));
        let mut whole = Array2::from_elem((7, 7), -1.0);
        let part = &mut whole.slice_mut(s![1..;2, ..;3]);
        Gemm::new().run_slices(&stream, &a, &b, part).unwrap();
        assert_eq!(whole.slice(s![1..;2, ..;3]), a.dot(&b));
        whole.slice_mut(s![1..;2, ..;3]).fill(-1.0);
        assert!(whole.iter().all(|&x| x == -1.0), "C's neighbours were written");

        let row = Array2::from_shape_fn((1, 3), |(_, col)| element(5, 0, col));
        let rows: ArrayView2<f32> = row.broadcast((4, 3)).unwrap();
        let mut c = Array2::zeros((4, 3));
        Gemm::new().run_slices(&stream, &rows, &b, &mut c).unwrap();
        assert_eq!(c, rows.to_owned().dot(&b));
    }
}

/// A view is already a borrow. It is taken by value and by reference.
#[test]
fn views_by_value() {
    let stream = Device::cpu().stream().unwrap();
    let a = Array2::from_shape_fn((6, 8), |(row, col)| element(3, row, col));
    let b = Array2::from_shape_fn((8, 5), |(row, col)| element(4, row, col));
    let mut c = Array2::zeros((6, 5));
    Gemm::new().run_slices(&stream, a.view(), b.view(), c.view_mut()).unwrap();
    assert_eq!(c, a.dot(&b));
    let mut half = Array2::zeros((3, 5));
    let rows = a.slice(s![..;2, ..]);
    Gemm::new().run_slices(&stream, rows, &b, half.slice_mut(s![.., ..])).unwrap();
    assert_eq!(half, rows.dot(&b));

    let a = DMatrix::from_fn(4, 6, |row, col| element(7, row, col));
    let mut c = DMatrix::zeros(2, 2);
    let (left, right) = (a.view((0, 0), (2, 4)), a.view((0, 4), (4, 2)));
    Gemm::new().run_slices(&stream, left, right, c.as_view_mut::<Dyn, Dyn, U1, Dyn>()).unwrap();
    assert_eq!(c, left * right);
}

/// An array that shares its elements is copied when it is written. The copy has its own place and
/// strides.
#[test]
fn arrays_that_share_their_elements() {
    let stream = Device::cpu().stream().unwrap();
    let a = Array2::from_shape_fn((64, 64), |(row, col)| element(6, row, col));
    let base = Array2::<f32>::from_elem((64, 64 * 64), 7.0);
    let mut cow = CowArray::from(base.slice(s![.., ..;64]));
    Gemm::new().run_slices(&stream, &a, &a, &mut cow).unwrap();
    assert_eq!(cow, a.dot(&a));
    let shared = ArcArray::from(Array2::<f32>::from_elem((64, 64), 7.0));
    let mut own = shared.clone();
    Gemm::new().run_slices(&stream, &a, &a, &mut own).unwrap();
    assert_eq!(own, a.dot(&a));
    assert!(base.iter().chain(shared.iter()).all(|&x| x == 7.0), "somebody else's was written");
}

/// Rows of C may lie between rows of A: the borrows ensure that they are different memory.
#[test]
fn parts_of_one_matrix() {
    for (_, stream) in streams() {
        let mut whole = DMatrix::from_fn(4, 6, |row, col| element(7, row, col));
        let before = whole.clone();
        let (top, mut bottom) = whole.rows_range_pair_mut(0..2, 2..4);
        let mut product = DMatrix::zeros(2, 2);
        Gemm::new().run_slices(&stream, &top, &top.transpose(), &mut product).unwrap();
        let mut left = bottom.columns_mut(1, 2);
        let b = SliceView::try_from(&top).unwrap().t();
        Gemm::new().run_slices(&stream, &top, b, &mut left).unwrap();
        assert_eq!(whole.view((2, 1), (2, 2)), product);
        assert_eq!(whole.view((0, 0), (2, 6)), before.view((0, 0), (2, 6)));
        assert_eq!(whole.view((2, 3), (2, 3)), before.view((2, 3), (2, 3)));
    }
}

#[test]
fn what_cannot_be_an_operand_says_so() {
    let stream = Device::cpu().stream().unwrap();
    let mut a = Array2::<f32>::zeros((2, 2));
    a.invert_axis(Axis(0));
    let (b, mut c) = (Array2::<f32>::zeros((2, 2)), Array2::<f32>::from_elem((2, 2), 7.0));
    let error = Gemm::new().run_slices(&stream, &a, &b, &mut c).unwrap_err().to_string();
    assert!(error.starts_with("A.strides = [-2, 1]: must not be negative"), "{error}");
    let error = Gemm::new().run_slices(&stream, &b.slice(s![.., ..1]), &b, &mut c).unwrap_err();
    assert_eq!(error.to_string(), "B.rows = 2: must be A.cols = 1");
    assert!(c.iter().all(|&x| x == 7.0));
}

#[test]
fn slices_of_any_stride() {
    for (_, stream) in streams() {
        let a = [1.0f64, 9.0, 2.0, 9.0, 3.0, 9.0, 4.0];
        let mut c = [5.0f64; 7];
        let a = SliceView::new(&a, 2, 2, [4, 2]).unwrap();
        let to = SliceViewMut::new(&mut c, 2, 2, [1, 5]).unwrap();
        Gemm::new().run_slices(&stream, a, a.t(), to).unwrap();
        assert_eq!(c, [5.0, 11.0, 5.0, 5.0, 5.0, 11.0, 25.0]);
    }
}

/// An inverted axis of one element has a stride that nobody uses, and so has each of an empty
/// array.
#[test]
fn an_unused_stride_of_ndarray_may_be_negative() {
    let all = Array2::from_shape_fn((3, 4), |(row, col)| (10 * row + col) as f32);
    for (rows, cols, axis) in [(1, 4, 0), (3, 1, 1), (1, 1, 0), (0, 4, 1), (3, 0, 0), (3, 4, 0)] {
        let mut part = all.slice(s![..rows, ..cols]);
        part.invert_axis(Axis(axis));
        let view = SliceView::try_from(part);
        assert_eq!(view.is_ok(), (rows, cols) != (3, 4), "{rows} {cols} {axis}");
    }
}
