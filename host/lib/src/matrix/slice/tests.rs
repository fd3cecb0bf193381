//! Matrices in host memory, there and back.

use super::*;

/// A 2 x 3 matrix in a slice with these strides, and NaN elsewhere.
fn slice(strides: [usize; 2]) -> Vec<f32> {
    let mut data = vec![f32::NAN; 20];
    for row in 0..2 {
        for col in 0..3 {
            data[row * strides[0] + col * strides[1]] = (10 * row + col) as f32;
        }
    }
    data
}

#[test]
fn every_stride_goes_there_and_comes_back() {
    let device = Device::cpu();
    for strides in [[3, 1], [5, 1], [1, 2], [1, 7], [2, 5], [9, 3]] {
        let data = slice(strides);
        let view = SliceView::new(&data, 2, 3, strides).unwrap();
        let matrix = Matrix::upload(&device, view).unwrap();
        assert_eq!(matrix.to_row_major().unwrap(), [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
        for strides in [[3, 1], [5, 1], [1, 2], [1, 7], [2, 5]] {
            let mut back = vec![f32::NAN; 20];
            matrix.download(SliceViewMut::new(&mut back, 2, 3, strides).unwrap()).unwrap();
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&back), bits(&slice(strides)), "{strides:?}");
        }
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let data = [0.0f32; 5];
    let error = SliceView::row_major(&data, 2, 3).unwrap_err().to_string();
    assert!(error.starts_with("elements.len() = 5: must be at least 6"), "{error}");
    let mut data = [0.0f32; 6];
    let error = SliceViewMut::new(&mut data, 2, 3, [1, 1]).unwrap_err().to_string();
    assert!(error.starts_with("strides = [1, 1]: two elements"), "{error}");
    let matrix = Matrix::<f32>::zeros(&Device::cpu(), 2, 2).unwrap();
    let error = matrix.download(SliceViewMut::row_major(&mut data, 2, 3).unwrap());
    assert!(error.unwrap_err().to_string().starts_with("cols = 3: must be 2"));
}

/// What lies apart is packed, and what is stored otherwise is sorted, in memory that may be too
/// little.
#[test]
fn too_little_memory_is_an_error() {
    let device = Device::cpu();
    let data = vec![1.0f32; 64];
    let view = SliceView::new(&data, 4, 4, [16, 2]).unwrap();
    let matrix = Matrix::<f32>::with_layout(&device, 4, 4, Layout::ColMajor, 9).unwrap();
    crate::testing::refuse_vector(1);
    let uploaded = Matrix::upload(&device, view).map(drop);
    assert!(matches!(uploaded, Err(Error::OutOfMemory { .. })), "{uploaded:?}");
    // A copy of all that is stored, and the copy in another order.
    for nth in [1, 2] {
        crate::testing::refuse_vector(nth);
        let read = matrix.to_row_major().map(drop);
        assert!(matches!(read, Err(Error::OutOfMemory { .. })), "{nth}: {read:?}");
    }
    crate::testing::refuse_vector(0);
}

/// An inverted axis of one element has a stride that nobody uses, and so has each of an empty
/// array.
#[cfg(feature = "ndarray")]
#[test]
fn an_unused_stride_may_be_negative() {
    use ndarray::{Array2, Axis};

    let device = Device::cpu();
    let all = Array2::from_shape_fn((3, 4), |(row, col)| (10 * row + col) as f32);
    for (rows, cols) in [(1, 4), (3, 1), (1, 1), (0, 4), (3, 0), (0, 0)] {
        for axes in [&[0][..], &[1], &[0, 1]] {
            let mut part = all.slice(ndarray::s![..rows, ..cols]);
            axes.iter().for_each(|&axis| part.invert_axis(Axis(axis)));
            let is_used = axes.iter().any(|&axis| part.len_of(Axis(axis)) > 1) && !part.is_empty();
            let view = SliceView::try_from(part);
            assert_eq!(view.is_err(), is_used, "{rows} {cols} {axes:?}");
            let Ok(view) = view else { continue };
            let values = Matrix::upload(&device, view).unwrap().to_row_major().unwrap();
            assert_eq!(values, part.iter().copied().collect::<Vec<_>>());
            let mut owned = part.to_owned();
            axes.iter().for_each(|&axis| owned.invert_axis(Axis(axis)));
            SliceViewMut::try_from(&mut owned).unwrap();
            SliceView::try_from(&owned).unwrap();
            SliceViewMut::try_from(owned.view_mut()).unwrap();
        }
    }
    let mut inverted = all.view();
    inverted.invert_axis(Axis(1));
    let error = SliceView::try_from(inverted).unwrap_err().to_string();
    assert!(error.starts_with("strides = [4, -1]: must not be negative"), "{error}");
}
