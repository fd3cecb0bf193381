//! C in the memory of an operand. Rust's borrows forbid it (`tests/src/does_not_compile.rs`).
//! Foreign memory may be borrowed twice, so it is checked.

use host::{
    Batch, BatchMut, Bias, Buffer, Device, Gemm, MatrixView, MatrixViewMut, Result, testing,
};
use tests::gemm::{counted, each_device};

/// Size, strides and first element of A, B, C or a bias. A bias has the strides of a matrix with
/// one row.
#[derive(Clone, Copy, Debug)]
struct Part {
    size: (usize, usize),
    strides: [usize; 2],
    start: usize,
}

impl Part {
    fn rows(rows: usize, cols: usize, start: usize) -> Self {
        Part { size: (rows, cols), strides: [cols, 1], start }
    }

    fn strided(size: (usize, usize), strides: [usize; 2], start: usize) -> Self {
        Part { size, strides, start }
    }

    fn len(&self) -> usize {
        let ((rows, cols), [between_rows, between_cols]) = (self.size, self.strides);
        if rows * cols == 0 { 0 } else { (rows - 1) * between_rows + (cols - 1) * between_cols + 1 }
    }

    /// # Safety
    /// The memory exists, and nobody else uses it.
    unsafe fn buffer(&self, device: &Device, memory: u64) -> Buffer<f32> {
        // SAFETY: the caller's.
        unsafe { device.foreign(memory + 4 * self.start as u64, self.len()) }.unwrap()
    }
}

/// An address on a GPU that is a multiple of 4. Nothing is launched that would access it.
const NOWHERE: u64 = 1 << 40;

/// The address of a device's memory for refused calls. On the CPU it exists, in case it is used in
/// spite of the refusal.
fn place(device: &Device, memory: &mut [f32]) -> u64 {
    if device.is_cuda() { NOWHERE } else { memory.as_mut_ptr() as u64 }
}

/// `C += A B + bias` on a memory, with `bias` per row.
///
/// # Safety
/// The memory has room for the parts, or nothing is launched.
unsafe fn run(device: &Device, memory: u64, [a, b, c, bias]: [Part; 4]) -> Result<()> {
    // SAFETY: the caller's. Only this code uses it.
    let [a_all, b_all, mut c_all, bias_all] =
        [a, b, c, bias].map(|part| unsafe { part.buffer(device, memory) });
    let a = MatrixView::new(a_all.view(..)?, a.size.0, a.size.1, a.strides)?;
    let b = MatrixView::new(b_all.view(..)?, b.size.0, b.size.1, b.strides)?;
    let c = MatrixViewMut::new(c_all.view_mut(..)?, c.size.0, c.size.1, c.strides)?;
    let gemm = Gemm::new().beta(1.0).bias(Bias::PerRow(bias_all.view(..)?));
    gemm.run(&device.stream()?, a, b, c).map(|_| ())
}

/// Elements of the memory.
const LEN: usize = 200;
/// A place without other parts.
const FAR: usize = 100;

#[test]
fn shared_elements_are_refused() {
    let (a, b, bias) =
        (Part::rows(4, 4, FAR), Part::rows(4, 4, FAR + 20), Part::rows(1, 4, FAR + 40));
    let c = |start| Part::rows(4, 4, start);
    let block = |start, width| Part::strided((4, width), [9, 1], start);
    let refused = [
        ("A = at ", [a, b, c(FAR), bias]),
        // They overlap by one element at either end.
        ("A = at ", [a, b, c(FAR - 15), bias]),
        ("A = at ", [a, b, c(FAR + 15), bias]),
        ("B = at ", [Part::rows(4, 4, 0), b, c(FAR + 20), bias]),
        ("B = at ", [Part::rows(4, 4, 0), b, c(FAR + 35), bias]),
        ("bias = at ", [Part::rows(4, 4, 0), Part::rows(4, 4, 20), c(FAR + 37), bias]),
        // Column blocks of one matrix that share a column. C's block reaches into the next row of
        // A's.
        ("A = at ", [block(0, 4), b, block(3, 4), bias]),
        ("A = at ", [block(0, 4), b, block(6, 4), bias]),
        // The other way round: C's block comes first.
        ("A = at ", [block(3, 4), b, block(0, 4), bias]),
        // Rows of one are between the rows of the other. They share no element, but this is not
        // computed.
        ("A = at ", [Part::strided((4, 4), [8, 1], 0), b, Part::strided((4, 4), [16, 1], 4), bias]),
    ];
    let mut memory = [1.0; LEN];
    each_device("overlap::shared_elements_are_refused", |device, count| {
        for (message, parts) in refused {
            let before = testing::counts().launches;
            let memory = place(&device, &mut memory);
            // SAFETY: nothing is launched.
            let error = unsafe { run(&device, memory, parts) }.expect_err(message).to_string();
            assert!(error.starts_with(message) && error.ends_with("must not overlap C"), "{error}");
            assert_eq!(testing::counts().launches, before);
            *count += 1;
        }
    });
}

/// Neighbouring parts do not overlap.
#[test]
fn neighbours_are_fine() {
    let (b, bias) = (Part::rows(4, 4, FAR), Part::rows(1, 4, FAR + 16));
    let block = |start| Part::strided((4, 4), [9, 1], start);
    let rows = |start| Part::strided((4, 4), [1, 9], start);
    let fine = [
        [Part::rows(4, 4, 0), b, Part::rows(4, 4, 16), bias],
        [Part::rows(4, 4, 16), b, Part::rows(4, 4, 0), bias],
        // Column blocks of a row-major matrix, in either order; row blocks of a column-major one.
        [block(0), b, block(4), bias],
        [block(4), b, block(0), bias],
        [block(0), b, block(5), bias],
        [rows(0), b, rows(4), bias],
        [rows(5), b, rows(0), bias],
        // Every other element of a matrix, left and right half.
        [Part::strided((4, 4), [18, 2], 0), b, Part::strided((4, 4), [18, 2], 8), bias],
        [Part::strided((4, 4), [2, 18], 8), b, Part::strided((4, 4), [2, 18], 0), bias],
        // C after the bias, and an empty A at C's place.
        [Part::rows(4, 4, 0), b, Part::rows(4, 4, FAR + 20), bias],
        [Part::rows(4, 0, 8), Part::rows(0, 4, 8), Part::rows(4, 4, 0), bias],
    ];
    let device = Device::cpu();
    for parts in fine {
        let before = (0..LEN).map(|at| (at % 7) as f32 - 3.0).collect::<Vec<_>>();
        let mut memory = before.clone();
        // SAFETY: all parts end before LEN, and nobody else uses the vector meanwhile.
        unsafe { run(&device, memory.as_mut_ptr() as u64, parts) }.unwrap();
        let mut expected = before.clone();
        let [a, b, c, bias] = parts;
        let at = |part: Part, row, col| part.start + row * part.strides[0] + col * part.strides[1];
        for (row, col) in (0..4).flat_map(|row| (0..4).map(move |col| (row, col))) {
            let product = |p| before[at(a, row, p)] * before[at(b, p, col)];
            let sum = (0..a.size.1).map(product).sum::<f32>();
            expected[at(c, row, col)] += sum + before[at(bias, 0, row)];
        }
        assert_eq!(memory, expected, "{parts:?}");
    }
    counted("overlap::neighbours_are_fine", fine.len());
}

/// Interleaved batches are not told apart: C between the matrices of A is refused.
#[test]
fn batches_in_each_other_are_refused() {
    let mut memory = [1.0; LEN];
    each_device("overlap::batches_in_each_other_are_refused", |device, count| {
        let memory = place(&device, &mut memory);
        let foreign = |start: u64, len| {
            // SAFETY: nothing is launched that would use it.
            unsafe { device.foreign::<f32>(memory + 4 * start, len) }.unwrap()
        };
        let (a, b, mut c) = (foreign(0, 48), foreign(100, 16), foreign(16, 48));
        let a = Batch::new(a.view(..).unwrap(), (4, 4), [4, 1], 2, 32).unwrap();
        let b = Batch::new(b.view(..).unwrap(), (4, 4), [4, 1], 2, 0).unwrap();
        let c = BatchMut::new(c.view_mut(..).unwrap(), (4, 4), [4, 1], 2, 32).unwrap();
        let stream = device.stream().unwrap();
        let error = Gemm::new().launch_batch(&stream, a, b, c).unwrap_err().to_string();
        assert!(error.starts_with("A = at "), "{error}");
        *count += 1;
    });
}

/// Products of an array that write the same element: nothing is launched. Blocks of one matrix are
/// apart.
#[test]
fn outputs_in_each_other_are_refused() {
    let block = |start, width| Part::strided((4, width), [8, 1], start);
    let outputs = [
        (vec![Part::rows(4, 4, 0), Part::rows(4, 4, 16)], None),
        (vec![block(0, 4), block(4, 4)], None),
        // The right half as two blocks, of which the lower comes first; then one on top of it.
        (
            vec![Part::strided((2, 4), [8, 1], 20), block(0, 4), Part::strided((2, 4), [8, 1], 4)],
            None,
        ),
        (vec![Part::strided((2, 4), [8, 1], 20), block(0, 4), block(4, 4)], Some((2, 0))),
        (vec![Part::rows(4, 4, 0), Part::rows(4, 4, 32), Part::rows(4, 4, 0)], Some((2, 0))),
        (vec![Part::rows(4, 4, 15), Part::rows(4, 4, 0)], Some((1, 0))),
        (vec![block(0, 5), block(4, 4)], Some((1, 0))),
        // An empty one is nowhere.
        (vec![Part::rows(4, 4, 0), Part::rows(0, 4, 0), Part::rows(4, 0, 0)], None),
    ];
    let mut memory = [1.0; LEN];
    each_device("overlap::outputs_in_each_other_are_refused", |device, count| {
        let stream = device.stream().unwrap();
        for (parts, refused) in &outputs {
            // Nothing that is not refused is launched on a GPU: there is no such memory.
            if device.is_cuda() && refused.is_none() {
                continue;
            }
            let memory = place(&device, &mut memory);
            let of = |part: &Part| {
                // SAFETY: the products run one after another, and nobody else uses the memory.
                unsafe { part.buffer(&device, memory) }
            };
            let (ones, mut buffers) =
                (device.upload(&[1.0; 32]).unwrap(), parts.iter().map(of).collect::<Vec<_>>());
            let inputs = parts.iter().map(|part| {
                let matrix = |rows, cols| {
                    MatrixView::new(ones.view(..).unwrap(), rows, cols, [cols.max(1), 1]).unwrap()
                };
                (matrix(part.size.0, 1), matrix(1, part.size.1))
            });
            let views = buffers.iter_mut().zip(parts).map(|(buffer, part)| {
                let (rows, cols) = part.size;
                MatrixViewMut::new(buffer.view_mut(..).unwrap(), rows, cols, part.strides).unwrap()
            });
            let (inputs, mut views) = (inputs.collect::<Vec<_>>(), views.collect::<Vec<_>>());
            let before = testing::counts().launches;
            let done = Gemm::new().beta(1.0).launch_array(&stream, &inputs, &mut views);
            match *refused {
                None => assert_eq!(done.unwrap().len(), parts.len()),
                Some((one, other)) => {
                    let error = done.unwrap_err().to_string();
                    assert!(error.starts_with(&format!("product {one}: C = at 0x")), "{error}");
                    let end = format!(": must not overlap C of product {other}");
                    assert!(error.ends_with(&end), "{error}");
                    assert_eq!(testing::counts().launches, before);
                    *count += 1;
                }
            }
        }
    });
}
