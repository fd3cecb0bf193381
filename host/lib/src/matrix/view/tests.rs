//! Views and parts of matrices.

use super::*;
use crate::{Layout, Matrix};

#[test]
fn parts_and_transposes_see_the_same_elements() {
    let device = Device::cpu();
    let values = (0..12).map(|x| x as f32).collect::<Vec<_>>();
    let matrix = Matrix::from_row_major(&device, 3, 4, &values).unwrap();
    let part = matrix.view().sub(1..3, 1..4).unwrap();
    assert_eq!((part.rows(), part.cols(), part.strides()), (2, 3, [4, 1]));
    assert_eq!(part.elements().len(), 7);
    let part = part.t().sub(2..3, 0..2).unwrap();
    assert_eq!((part.rows(), part.cols(), part.strides()), (1, 2, [1, 4]));
    assert_eq!(part.elements().to_vec().unwrap(), [7.0, 8.0, 9.0, 10.0, 11.0]);
    assert_eq!(matrix.view().sub(3..3, 4..4).unwrap().elements().len(), 0);
    for (rows, cols, text) in [
        (2..4, 0..1, "rows = 2..4: the matrix has 3 rows"),
        (0..1, 4..5, "cols = 4..5: the matrix has 4 cols"),
        (
            #[expect(clippy::reversed_empty_ranges)]
            {
                2..1
            },
            0..1,
            "rows = 2..1",
        ),
    ] {
        let error = matrix.view().sub(rows, cols).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
}

#[test]
fn halves_are_all_and_have_nothing_in_common() {
    let device = Device::cpu();
    for (layout, leading) in [(Layout::RowMajor, 6), (Layout::ColMajor, 5)] {
        let mut matrix = Matrix::<f32>::with_layout(&device, 3, 4, layout, leading).unwrap();
        let start = matrix.buffer().address();
        let [between_rows, between_cols] = matrix.view().strides();
        // Size, and the first element's place.
        let described = |view: &MatrixViewMut<f32>| {
            let place = (view.as_view().elements().address() as u64 - start) as usize / 4;
            assert_eq!(view.strides(), [between_rows, between_cols]);
            (view.rows(), view.cols(), if view.rows() * view.cols() == 0 { 0 } else { place })
        };
        for row in 0..=3 {
            let (above, below) = matrix.view_mut().split_rows_at(row).unwrap();
            assert_eq!(described(&above), (row, 4, 0));
            let place = if row < 3 { row * between_rows } else { 0 };
            assert_eq!(described(&below), (3 - row, 4, place));
        }
        for col in 0..=4 {
            let (left, right) = matrix.view_mut().split_cols_at(col).unwrap();
            assert_eq!(described(&left), (3, col, 0));
            let place = if col < 4 { col * between_cols } else { 0 };
            assert_eq!(described(&right), (3, 4 - col, place));
        }
        let error = matrix.view_mut().split_rows_at(4).unwrap_err().to_string();
        assert_eq!(error, "row = 4: the matrix has 3 rows");
        let error = matrix.view_mut().t().split_cols_at(usize::MAX).unwrap_err().to_string();
        assert_eq!(error, format!("col = {}: the matrix has 3 columns", usize::MAX));
    }
}

#[test]
fn elements_that_would_be_one_are_refused_where_they_are_written() {
    let device = Device::cpu();
    let mut buffer = device.zeros::<f32>(100).unwrap();
    for (rows, cols, strides, fine) in [
        (3, 4, [4, 1], true),
        (3, 4, [3, 1], false),
        (3, 4, [1, 3], true),
        (3, 4, [1, 2], false),
        (3, 4, [8, 2], true),
        (3, 4, [7, 2], true),
        (3, 4, [6, 2], false),
        (3, 4, [0, 1], false),
        (1, 4, [0, 1], true),
        (1, 4, [0, 0], false),
        (4, 1, [0, 1], false),
        (1, 1, [0, 0], true),
        (0, 4, [0, 0], true),
    ] {
        let view = MatrixViewMut::new(buffer.view_mut(..).unwrap(), rows, cols, strides);
        assert_eq!(view.is_ok(), fine, "{rows}x{cols} {strides:?}");
        let view = MatrixView::new(buffer.view(..).unwrap(), rows, cols, strides);
        assert!(view.is_ok(), "{rows}x{cols} {strides:?}");
    }
}

#[test]
fn too_few_elements_are_named() {
    let device = Device::cpu();
    let buffer = device.zeros::<f32>(11).unwrap();
    let new = |rows, cols, strides| MatrixView::new(buffer.view(..).unwrap(), rows, cols, strides);
    assert!(new(3, 3, [4, 1]).is_ok());
    let error = new(3, 4, [4, 1]).unwrap_err().to_string();
    assert_eq!(error, "elements.len() = 11: must be at least 12 for 3x4, strides [4, 1]");
    let error = new(3, 4, [usize::MAX, 1]).unwrap_err().to_string();
    assert!(error.starts_with("strides = "), "{error}");
    let tall = Matrix::<f32>::with_layout(&device, 2, 3, Layout::ColMajor, 5).unwrap();
    assert_eq!(tall.view().strides(), [1, 5]);
    assert_eq!(tall.view().elements().len(), 12);
}

/// By what each matrix says of itself, beside the elements that it has.
#[test]
fn gaps_are_elements_that_a_matrix_leaves_out() {
    for (rows, cols) in (0..5).flat_map(|rows| (0..5).map(move |cols| (rows, cols))) {
        for strides in (0..7).flat_map(|one| (0..7).map(move |other| [one, other])) {
            let mut own = vec![false; extent(rows, cols, strides).unwrap()];
            for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
                own[row * strides[0] + col * strides[1]] = true;
            }
            let what = format!("{rows}x{cols} {strides:?}");
            assert_eq!(has_gaps(rows, cols, strides), own.contains(&false), "{what}");
        }
    }
    // Sizes whose product is more than 64 bits have.
    assert!(!has_gaps(1 << 33, 1 << 33, [0, 1]));
    assert!(has_gaps(1 << 62, 2, [0, 4]));
    assert!(has_gaps(1 << 40, 1 << 40, [2, 3]));
}

/// Each array that is taken has as many addresses as elements, of all arrays of three small
/// dimensions with strides of either sign.
#[test]
fn a_written_array_has_no_element_twice() {
    let (mut taken, mut refused) = (0, 0);
    let strides = || [-8, -3, -1, 0, 1, 2, 4, 6, 12];
    for sizes in [[2, 2, 2], [3, 2, 2], [1, 2, 3], [3, 1, 1], [2, 0, 2], [1, 1, 1]] {
        for first in strides() {
            for (second, third) in
                strides().into_iter().flat_map(|one| strides().map(|two| (one, two)))
            {
                let (all, element) = ([first, second, third], 2);
                let mut bytes = std::collections::BTreeSet::new();
                let mut count = 0;
                for row in 0..sizes[0] {
                    for (col, depth) in
                        (0..sizes[1]).flat_map(|col| (0..sizes[2]).map(move |depth| (col, depth)))
                    {
                        let indices = [row, col, depth].map(|index| index as isize);
                        let start = indices
                            .iter()
                            .zip(all)
                            .map(|(index, stride)| index * stride)
                            .sum::<isize>();
                        bytes.extend(start..start + element);
                        count += element as usize;
                    }
                }
                match check_written("out", element as usize, &sizes, &all) {
                    Ok(()) => {
                        assert_eq!(bytes.len(), count, "{sizes:?} {all:?}");
                        taken += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(taken > 500 && refused > 500, "{taken} {refused}");
    // A dense array, its dimensions in another order, every second element, and backwards.
    for strides in [[12, 4, 1], [1, 15, 5], [24, 8, 2], [-12, -4, -1], [-12, 4, -1]] {
        check_written("out", 1, &[5, 3, 3], &strides).unwrap();
    }
    check_written("out", 8, &[], &[]).unwrap();
    let named = |sizes: &[usize], strides: &[isize]| {
        check_written("out", 8, sizes, strides).unwrap_err().to_string()
    };
    let of_batch =
        "out.strides = [0, 16, 8]: two elements of [3, 2, 2] that are written might share memory";
    assert_eq!(named(&[3, 2, 2], &[0, 16, 8]), of_batch);
    assert!(named(&[2, 2], &[-8, -8]).starts_with("out.strides = [-8, -8]"));
    assert!(named(&[2], &[4]).starts_with("out.strides = [4]"));
    assert!(named(&[2, 2], &[8]).starts_with("out.strides.len() = 1: must be 2"));
}

/// The same by every type for what is written, on the CPU and for a slice.
#[test]
fn no_type_for_writing_takes_an_element_twice() {
    let mut buffer = Device::cpu().zeros::<f64>(64).unwrap();
    for (size, strides, count, step) in [
        ((2, 2), [2, 1], 3, 0),
        ((2, 2), [2, 1], 3, 1),
        ((2, 2), [2, 1], 3, 3),
        ((2, 2), [0, 1], 1, 0),
        ((2, 2), [1, 1], 1, 8),
        ((1, 3), [7, 0], 1, 0),
        ((2, 3), [4, 1], 2, 4),
        ((3, 2), [1, 2], 2, 1),
    ] {
        let batch = crate::BatchMut::new(buffer.all_mut(), size, strides, count, step);
        assert!(batch.is_err(), "{size:?} {strides:?} {count} {step}");
    }
    for (rows, cols, strides) in [(2, 2, [1, 1]), (2, 2, [0, 1]), (3, 1, [0, 5]), (2, 3, [2, 1])] {
        assert!(MatrixViewMut::new(buffer.all_mut(), rows, cols, strides).is_err());
        let slice = buffer.as_mut_slice().unwrap();
        assert!(crate::SliceViewMut::new(slice, rows, cols, strides).is_err());
    }
}
