//! Tests of prepared slices.

use super::*;
use crate::{Batch, BatchMut, Device, Error, Gemm, Matrix};

/// Both arithmetics, and a kernel of each. Its operands may be row-major or column-major.
const KINDS: [(Compute, &str); 2] = [
    (Compute::Fp32Bf16x6, "wgmma_bf16x6_64x128x64"),
    (Compute::Fp32F16x3, "wgmma_f16x3_64x128x64"),
];

/// The product by a kernel of slices, with slices that were prepared, or without any.
fn product(
    compute: Compute,
    prepared: &[&PreparedMatrix<f32>],
    [a, b]: [MatrixView<f32>; 2],
) -> Result<Vec<u32>> {
    let device = Device::cpu();
    let by_rows = |view: &MatrixView<f32>| if view.strides()[1] == 1 { "n" } else { "t" };
    let (_, kernel) = KINDS[usize::from(compute == Compute::Fp32F16x3)];
    let kernel = format!("{kernel}_{}{}", by_rows(&a), by_rows(&b));
    let gemm = Gemm::<f32>::new().compute(compute).kernel(&kernel)?;
    let gemm = prepared.iter().fold(gemm, |gemm, prepared| gemm.prepared(prepared));
    let mut c = Matrix::<f32>::zeros(&device, a.rows(), b.cols())?;
    gemm.run(&device.stream()?, a, b, c.view_mut())?;
    Ok(c.to_row_major()?.into_iter().map(f32::to_bits).collect())
}

/// Views of one memory that begin at the same element, of which one is prepared, as A and as B.
#[test]
fn slices_serve_their_own_view_alone() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let values = (0..64 * 128).map(|i| ((i * 37) % 101) as f32 - 50.0).collect::<Vec<_>>();
    let buffer = device.upload(&values).unwrap();
    let view = |size, strides| MatrixView::new(buffer.all(), size, size, strides).unwrap();
    let views = [[64, 1], [128, 1], [96, 1], [1, 64], [1, 128]].map(|strides| view(64, strides));
    for (compute, _) in KINDS {
        for prepared in views {
            let slices = PreparedMatrix::for_compute(&stream, prepared, compute).unwrap();
            for other in views {
                for operands in [[prepared, other], [other, prepared]] {
                    let expected = product(compute, &[], operands).unwrap();
                    let served = product(compute, &[&slices], operands).unwrap();
                    let strides = operands.map(|operand| operand.strides());
                    assert!(served == expected, "{compute:?} {:?} {strides:?}", prepared.strides());
                }
            }
            // A part of it is another matrix.
            let part = prepared.sub(0..32, 0..32).unwrap();
            assert!(product(compute, &[&slices], [part, part]).is_err());
        }
    }
}

/// Slices of both arithmetics for one matrix: each product takes its own.
#[test]
fn slices_are_known_by_their_scheme() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let a = Matrix::from_row_major(&device, 8, 8, &[0.1f32; 64]).unwrap();
    let of = |compute| PreparedMatrix::for_compute(&stream, a.view(), compute).unwrap();
    let both = KINDS.map(|(compute, _)| of(compute));
    for (compute, _) in KINDS {
        let expected = product(compute, &[], [a.view(); 2]).unwrap();
        for order in [[&both[0], &both[1]], [&both[1], &both[0]]] {
            assert!(product(compute, &order, [a.view(); 2]).unwrap() == expected);
            let gemm = order.iter().fold(Gemm::new(), |gemm, one| gemm.prepared(one));
            let scheme = match compute {
                Compute::Fp32F16x3 => Scheme::F16x3,
                _ => Scheme::Bf16x6,
            };
            let slices = gemm.planes_of(&Batch::one(a.view()), scheme);
            assert_eq!(slices.and_then(|slices| slices.rows(scheme)), Some((8, 8)));
        }
    }
}

/// The last launch of a batch may have one product: with the slices of the first matrix it would be
/// wrong.
#[test]
fn slices_serve_no_batch_of_different_matrices() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let buffer = device.upload(&[1.0f32; 3 * 64]).unwrap();
    let first = MatrixView::new(buffer.all(), 8, 8, [8, 1]).unwrap();
    let prepared = PreparedMatrix::new(&stream, first).unwrap();
    let gemm = Gemm::<f32>::new().prepared(&prepared);
    let mut c = device.zeros::<f32>(3 * 64).unwrap();
    let mut launch = |step| {
        let a = Batch::new(buffer.all(), (8, 8), [8, 1], 3, step).unwrap();
        let b = Batch::new(buffer.all(), (8, 8), [8, 1], 3, 64).unwrap();
        let c = BatchMut::new(c.all_mut(), (8, 8), [8, 1], 3, 64).unwrap();
        gemm.launch_batch(&stream, a, b, c).map(drop)
    };
    launch(0).unwrap();
    let error = launch(64).unwrap_err();
    assert!(matches!(error, Error::Argument { .. }));
    assert_eq!(error.to_string(), "prepared = 8x8: must be A or B, or its transpose");
}
