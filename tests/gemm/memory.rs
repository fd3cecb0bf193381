//! Memory that runs out: the error says so, nothing is lost, and the next call works.

use host::{
    Activation, Bias, Device, Error, Gemm, Layout, Matrix, Result, SliceView, SliceViewMut,
    testing::{counts, refuse_allocation},
};
use tests::{devices, gemm::counted, streams};

/// Uploads operands, multiplies, and downloads the result.
fn product(device: &Device) -> Result<Vec<f32>> {
    let values = |len: usize| (0..len).map(|at| (at % 9) as f32 - 4.0).collect::<Vec<_>>();
    let stream = device.stream()?;
    let a = Matrix::from_row_major(device, 40, 33, &values(40 * 33))?;
    let mut b = Matrix::with_layout(device, 33, 70, Layout::ColMajor, 40)?;
    b.write_row_major(&values(33 * 70))?;
    let bias = device.upload(&values(70))?;
    let mut c = Matrix::zeros(device, 40, 70)?;
    let gemm = Gemm::new().bias(Bias::PerCol(bias.view(..)?)).activation(Activation::Gelu);
    gemm.run(&stream, a.view(), b.view(), c.view_mut())?;
    c.to_row_major()
}

#[test]
fn at_every_allocation() {
    let mut refused = 0;
    for device in devices() {
        let before = counts();
        let right = product(&device).unwrap();
        let after = counts();
        let allocations = after.allocations - before.allocations;
        assert_eq!(after.frees - before.frees, allocations, "{device}: all is given back");
        for nth in 1..=allocations {
            let before = counts();
            refuse_allocation(nth);
            match product(&device).unwrap_err() {
                Error::OutOfMemory { needed, free, .. } => assert!(needed > 0 && free > 0),
                other => panic!("{device}, allocation {nth}: {other}"),
            }
            let after = counts();
            assert_eq!(after.launches, before.launches, "{device}, allocation {nth}");
            let (granted, freed) =
                (after.allocations - before.allocations, after.frees - before.frees);
            assert_eq!((granted, freed), (nth - 1, nth - 1), "{device}, allocation {nth}");
            assert_eq!(product(&device).unwrap(), right, "{device}, after allocation {nth}");
            refused += 1;
        }
        // With one more allocation nothing is refused.
        refuse_allocation(allocations + 1);
        assert_eq!(product(&device).unwrap(), right);
        refuse_allocation(0);
    }
    counted("memory::at_every_allocation", refused / devices().len());
}

/// The same with operands in host memory: on the CPU device nothing is allocated.
#[test]
fn at_every_allocation_for_slices() {
    let [a, b] =
        [40 * 33, 33 * 70].map(|len| (0..len).map(|at| (at % 9) as f32).collect::<Vec<_>>());
    for (device, stream) in streams() {
        let product = |c: &mut [f32]| -> Result<()> {
            let (a, b) = (SliceView::row_major(&a, 40, 33)?, SliceView::col_major(&b, 33, 70)?);
            let c = SliceViewMut::row_major(c, 40, 70)?;
            Gemm::new().beta(1.0).run_slices(&stream, a, b, c).map(|_| ())
        };
        let (before, mut right) = (counts(), vec![1.0; 40 * 70]);
        product(&mut right).unwrap();
        let allocations = counts().allocations - before.allocations;
        assert_eq!(allocations > 0, device.is_cuda(), "{device}");
        for nth in 1..=allocations {
            let (before, mut c) = (counts(), vec![1.0; 40 * 70]);
            refuse_allocation(nth);
            let error = product(&mut c).unwrap_err();
            assert!(
                matches!(error, Error::OutOfMemory { .. }),
                "{device}, allocation {nth}: {error}"
            );
            assert!(c.iter().all(|&x| x == 1.0), "{device}, allocation {nth}: C has changed");
            let after = counts();
            let kept = (after.allocations - after.frees) - (before.allocations - before.frees);
            assert_eq!((after.launches, kept), (before.launches, 0), "{device}, allocation {nth}");
            product(&mut c).unwrap();
            assert_eq!(c, right, "{device}, after allocation {nth}");
        }
        if device.is_cuda() {
            counted("memory::at_every_allocation_for_slices", allocations as usize);
        }
    }
}

/// More than any machine has: the error names the number of bytes.
#[test]
fn more_than_there_is() {
    let mut refused = 0;
    for device in devices() {
        let before = counts();
        let [rows, cols] = [1 << 28, 1 << 30];
        for error in [
            Matrix::<f32>::zeros(&device, rows, cols).map(|_| ()).unwrap_err(),
            Matrix::<f32>::with_layout(&device, rows, 1, Layout::RowMajor, cols)
                .map(|_| ())
                .unwrap_err(),
            device.zeros::<f32>(rows * cols).map(|_| ()).unwrap_err(),
        ] {
            let text = error.to_string();
            assert_eq!(error.exit_code(), 4, "{text}");
            match error {
                Error::OutOfMemory { needed, free, .. } => {
                    assert!(needed == 4 << 58 && free < needed, "{device}: {text}");
                }
                other => panic!("{device}: {other}"),
            }
            refused += 1;
        }
        let after = counts();
        assert_eq!(after.allocations - before.allocations, after.frees - before.frees);
        product(&device).unwrap();
    }
    counted("memory::more_than_there_is", refused / devices().len());
}
