//! Refused calls: the message starts with the argument, C is not changed, and nothing is launched.

use host::{
    Activation, Batch, BatchMut, Bias, Buffer, Device, Gemm, Layout, Matrix, MatrixView,
    MatrixViewMut, Pod, Result, Stream, testing,
};
use tests::{
    cuda_devices, devices,
    gemm::{bytes, counted},
};

/// A right 4 x 3 product of a 4 x 5 and a 5 x 3 matrix. Each case changes one thing.
struct Operands {
    device: Device,
    stream: Stream,
    a: Matrix<f32>,
    b: Matrix<f32>,
    bias: Buffer<f32>,
}

/// The content of C's memory: a NaN that no arithmetic makes. There is room for two Cs.
const UNTOUCHED: u32 = 0x7fed_cba9;
const C_LEN: usize = 24;

/// A call with one mistake.
type Wrong = fn(&Operands, &mut Buffer<f32>) -> Result<()>;

impl Operands {
    fn new(device: &Device) -> Self {
        let ones = |rows, cols| Matrix::from_row_major(device, rows, cols, &vec![1.0; rows * cols]);
        Operands {
            device: device.clone(),
            stream: device.stream().unwrap(),
            a: ones(4, 5).unwrap(),
            b: ones(5, 3).unwrap(),
            bias: device.upload(&[1.0; 5]).unwrap(),
        }
    }

    fn zeros(&self, rows: usize, cols: usize) -> Result<Matrix<f32>> {
        Matrix::zeros(&self.device, rows, cols)
    }

    /// The product by `gemm`.
    fn run(&self, gemm: Gemm<f32>, c: &mut Buffer<f32>) -> Result<()> {
        self.to(gemm, matrix(c)?)
    }

    fn to(&self, gemm: Gemm<f32>, c: MatrixViewMut<f32>) -> Result<()> {
        gemm.run(&self.stream, self.a.view(), self.b.view(), c).map(|_| ())
    }

    /// Two products in one launch, with these counts of matrices.
    fn batch(&self, counts: [usize; 3], gemm: Gemm<f32>, c: &mut Buffer<f32>) -> Result<()> {
        let (a, b) =
            (Batch::repeat(self.a.view(), counts[0]), Batch::repeat(self.b.view(), counts[1]));
        let c = BatchMut::new(c.view_mut(..)?, (4, 3), [3, 1], counts[2], 12)?;
        gemm.launch_batch(&self.stream, a, b, c).map(|_| ())
    }
}

/// C at its place.
fn matrix(c: &mut Buffer<f32>) -> Result<MatrixViewMut<'_, f32>> {
    MatrixViewMut::new(c.view_mut(..12)?, 4, 3, [3, 1])
}

/// C with other strides.
fn strided(c: &mut Buffer<f32>, strides: [usize; 2]) -> Result<MatrixViewMut<'_, f32>> {
    MatrixViewMut::new(c.view_mut(..)?, 4, 3, strides)
}

/// Checks that each case is refused on each device with its words. Then the right call works.
fn refused(test: &str, cases: &[(&str, Wrong)]) {
    for device in devices() {
        let operands = Operands::new(&device);
        let untouched = vec![f32::from_bits(UNTOUCHED); C_LEN];
        let mut c = device.upload(&untouched).unwrap();
        for (message, wrong) in cases {
            let before = testing::counts().launches;
            let error = wrong(&operands, &mut c).expect_err(message);
            assert!(error.to_string().starts_with(message), "{device}: {error}\nnot: {message}");
            assert_eq!(error.exit_code(), 2, "{device}: {error}");
            assert_eq!(testing::counts().launches, before, "{device}: {error}");
            assert!(bytes(&c.to_vec().unwrap()) == bytes(&untouched), "{device}: {error}");
        }
        let before = testing::counts().launches;
        operands.run(Gemm::new(), &mut c).unwrap();
        assert_eq!(
            testing::counts().launches,
            before + 1,
            "else it would not be seen that none was made"
        );
        assert_eq!(c.view(..12).unwrap().to_vec().unwrap(), [5.0; 12]);
    }
    counted(test, cases.len());
}

#[test]
fn sizes_that_do_not_fit_together() {
    refused(
        "arguments::sizes_that_do_not_fit_together",
        &[
            ("B.rows = 4: must be A.cols = 5", |o, c| {
                let b = o.zeros(4, 3)?;
                Gemm::new().run(&o.stream, o.a.view(), b.view(), matrix(c)?).map(|_| ())
            }),
            ("B.rows = 3: must be A.cols = 5", |o, c| {
                Gemm::new().run(&o.stream, o.a.view(), o.b.view().t(), matrix(c)?).map(|_| ())
            }),
            ("C.rows = 4: must be A.rows = 3", |o, c| {
                let a = o.zeros(3, 5)?;
                Gemm::new().run(&o.stream, a.view(), o.b.view(), matrix(c)?).map(|_| ())
            }),
            ("C.cols = 3: must be B.cols = 4", |o, c| {
                let b = o.zeros(5, 4)?;
                Gemm::new().run(&o.stream, o.a.view(), b.view(), matrix(c)?).map(|_| ())
            }),
            ("C.rows = 3: must be A.rows = 4", |o, c| o.to(Gemm::new(), matrix(c)?.t())),
            ("B.count = 1: must be A.count = 2", |o, c| o.batch([2, 1, 2], Gemm::new(), c)),
            ("C.count = 1: must be A.count = 2", |o, c| o.batch([2, 2, 1], Gemm::new(), c)),
            ("B.count = 2: must be A.count = 0", |o, c| o.batch([0, 2, 2], Gemm::new(), c)),
            ("inputs.len() = 2: must be outputs.len() = 1", |o, c| {
                let inputs = [(o.a.view(), o.b.view()); 2];
                Gemm::new().launch_array(&o.stream, &inputs, &mut [matrix(c)?]).map(|_| ())
            }),
            // The first product is right, and is not launched either.
            ("product 1: B.rows = 3: must be A.cols = 5", |o, c| {
                let mut other = o.zeros(4, 3)?;
                let inputs = [(o.a.view(), o.b.view()), (o.a.view(), o.b.view().t())];
                let mut outputs = [matrix(c)?, other.view_mut()];
                Gemm::new().launch_array(&o.stream, &inputs, &mut outputs).map(|_| ())
            }),
        ],
    );
}

#[test]
fn biases_that_do_not_fit() {
    refused(
        "arguments::biases_that_do_not_fit",
        &[
            ("bias.len() = 3: must be C.rows = 4", |o, c| {
                o.run(Gemm::new().bias(Bias::PerRow(o.bias.view(..3)?)), c)
            }),
            ("bias.len() = 5: must be C.rows = 4", |o, c| {
                o.run(Gemm::new().bias(Bias::PerRow(o.bias.view(..)?)), c)
            }),
            ("bias.len() = 4: must be C.cols = 3", |o, c| {
                o.run(Gemm::new().bias(Bias::PerCol(o.bias.view(..4)?)), c)
            }),
            ("bias.len() = 0: must be C.cols = 3", |o, c| {
                o.run(Gemm::new().bias(Bias::PerCol(o.bias.view(..0)?)), c)
            }),
            // A column-major C also has rows.
            ("bias.len() = 3: must be C.rows = 4", |o, c| {
                let gemm = Gemm::new().bias(Bias::PerRow(o.bias.view(..3)?));
                o.to(gemm, strided(c, [1, 4])?)
            }),
        ],
    );
}

#[test]
fn leading_dimensions_that_are_too_small() {
    let layouts: [(&str, Wrong); 6] = [
        ("leading_dimension = 4: must be at least 5", |o, _| {
            Matrix::<f32>::with_layout(&o.device, 4, 5, Layout::RowMajor, 4).map(|_| ())
        }),
        ("leading_dimension = 3: must be at least 4", |o, _| {
            Matrix::<f32>::with_layout(&o.device, 4, 5, Layout::ColMajor, 3).map(|_| ())
        }),
        ("leading_dimension = 0: must be at least 1", |o, _| {
            Matrix::<f32>::with_layout(&o.device, 0, 1, Layout::RowMajor, 0).map(|_| ())
        }),
        // Two elements of C would be the same.
        ("strides = [2, 1]: two elements", |o, c| o.to(Gemm::new(), strided(c, [2, 1])?)),
        ("strides = [1, 3]: two elements", |o, c| o.to(Gemm::new(), strided(c, [1, 3])?)),
        ("strides = [3, 0]: two elements", |o, c| o.to(Gemm::new(), strided(c, [3, 0])?)),
    ];
    refused("arguments::leading_dimensions_that_are_too_small", &layouts);
}

#[test]
fn memories_that_are_too_short() {
    refused(
        "arguments::memories_that_are_too_short",
        &[
            ("elements.len() = 19: must be at least 20", |o, _| {
                MatrixView::new(o.a.buffer().view(..19)?, 4, 5, [5, 1]).map(|_| ())
            }),
            ("elements.len() = 20: must be at least 21", |o, _| {
                MatrixView::new(o.a.buffer().view(..)?, 4, 3, [6, 1]).map(|_| ())
            }),
            ("elements.len() = 11: must be at least 12", |_, c| {
                MatrixViewMut::new(c.view_mut(..11)?, 4, 3, [3, 1]).map(|_| ())
            }),
            ("elements.len() = 24: must be at least 26", |_, c| strided(c, [1, 11]).map(|_| ())),
            ("elements.len() = 39: must be at least 40", |o, _| {
                let twice = o.zeros(4, 10)?;
                Batch::new(twice.buffer().view(..39)?, (4, 5), [5, 1], 2, 20).map(|_| ())
            }),
            ("elements.len() = 24: must be at least 25", |_, c| {
                BatchMut::new(c.view_mut(..)?, (4, 3), [3, 1], 2, 13).map(|_| ())
            }),
            (
                "step = 11: two elements of 2 written 4x3 matrices of strides [3, 1] might share memory",
                |_, c| BatchMut::new(c.view_mut(..)?, (4, 3), [3, 1], 2, 11).map(|_| ()),
            ),
            (
                "step = 0: two elements of 2 written 4x3 matrices of strides [3, 1] might share memory",
                |_, c| BatchMut::new(c.view_mut(..)?, (4, 3), [3, 1], 2, 0).map(|_| ()),
            ),
            ("range = 0..25: the buffer has 24", |_, c| c.view_mut(..25).map(|_| ())),
            ("range = 5..4: the buffer has 20", |o, _| {
                o.a.buffer()
                    .view((std::ops::Bound::Included(5), std::ops::Bound::Excluded(4)))
                    .map(|_| ())
            }),
            ("rows = 2..5: the matrix has 4 rows", |o, _| o.a.view().sub(2..5, 0..5).map(|_| ())),
            ("cols = 6..6: the matrix has 5 cols", |o, _| o.a.view().sub(0..4, 6..6).map(|_| ())),
            ("cols = 0..4: the matrix has 3 cols", |_, c| matrix(c)?.sub(0..4, 0..4).map(|_| ())),
            ("values.len() = 19: must be rows * cols = 20", |o, _| {
                Matrix::from_row_major(&o.device, 4, 5, &[1.0f32; 19]).map(|_| ())
            }),
        ],
    );
}

#[test]
fn numbers_beyond_what_can_be_addressed() {
    refused(
        "arguments::numbers_beyond_what_can_be_addressed",
        &[
            ("rows * cols = ", |o, _| {
                Matrix::<f32>::with_layout(&o.device, 1 << 33, 1, Layout::RowMajor, 1 << 33)
                    .map(|_| ())
            }),
            ("len = ", |o, _| o.zeros(1 << 31, 1 << 31).map(|_| ())),
            ("strides = ", |o, _| {
                MatrixView::new(o.a.buffer().view(..)?, 4, 5, [usize::MAX, 1]).map(|_| ())
            }),
            ("strides = ", |_, c| strided(c, [usize::MAX / 2, 1]).map(|_| ())),
            ("step = ", |o, _| {
                Batch::new(o.a.buffer().view(..)?, (4, 5), [5, 1], 3, usize::MAX).map(|_| ())
            }),
            // All elements are one, so memory is no limit.
            ("k = 4294967296: must be", |o, c| {
                let one = |rows, cols| MatrixView::new(o.a.buffer().view(..1)?, rows, cols, [0, 0]);
                let c = MatrixViewMut::new(c.view_mut(..)?, 1, 1, [1, 1])?;
                Gemm::new().run(&o.stream, one(1, 1 << 32)?, one(1 << 32, 1)?, c).map(|_| ())
            }),
            ("m = 4294967296: must be", |o, c| {
                let one = |rows, cols| MatrixView::new(o.a.buffer().view(..1)?, rows, cols, [0, 0]);
                let c = MatrixViewMut::new(c.view_mut(..)?, 1 << 32, 0, [1, 1])?;
                Gemm::new().run(&o.stream, one(1 << 32, 1)?, one(1, 0)?, c).map(|_| ())
            }),
            ("n = 4294967296: must be", |o, c| {
                let one = |rows, cols| MatrixView::new(o.a.buffer().view(..1)?, rows, cols, [0, 0]);
                let c = MatrixViewMut::new(c.view_mut(..)?, 0, 1 << 32, [1, 1])?;
                Gemm::new().run(&o.stream, one(0, 1)?, one(1, 1 << 32)?, c).map(|_| ())
            }),
            ("m * k = ", |o, c| {
                let most = u32::MAX as usize;
                let one = |rows, cols| MatrixView::new(o.a.buffer().view(..1)?, rows, cols, [0, 0]);
                let c = MatrixViewMut::new(c.view_mut(..)?, most, 0, [1, 1])?;
                Gemm::new().run(&o.stream, one(most, most)?, one(most, 0)?, c).map(|_| ())
            }),
        ],
    );
}

#[test]
fn kernels_that_may_not_run() {
    refused(
        "arguments::kernels_that_may_not_run",
        &[
            (
                "kernel = gemm_f32_33x33x8: did you mean gemm_f32_32x32x8? It must be one of",
                |o, c| o.run(Gemm::new().kernel("gemm_f32_33x33x8")?, c),
            ),
            ("kernel = : must be one of", |o, c| o.run(Gemm::new().kernel("")?, c)),
            // A kernel with that name exists, but for another purpose or type.
            ("kernel = vec_add: is a program, and computes no product: `cargo run", |o, c| {
                o.run(Gemm::new().kernel("vec_add")?, c)
            }),
            ("kernel = gemm_f64_64x64x16: is for A and B of f64; it must be one of", |o, c| {
                o.run(Gemm::new().kernel("gemm_f64_64x64x16")?, c)
            }),
            (
                "kernel = gemm_f32_64x64x16: is for A and B of f32; it must be one of gemm_f64",
                |_, _| Gemm::<f64>::new().kernel("gemm_f32_64x64x16").map(|_| ()),
            ),
            ("kernel = tiled16: computes only A B", |o, c| {
                o.run(Gemm::new().kernel("tiled16")?.alpha(2.0), c)
            }),
            ("kernel = tiled16: computes only A B", |o, c| {
                o.run(Gemm::new().kernel("tiled16")?.beta(1.0), c)
            }),
            ("kernel = basic: computes only A B", |o, c| {
                o.run(Gemm::new().kernel("basic")?.bias(Bias::PerRow(o.bias.view(..4)?)), c)
            }),
            ("kernel = async_copy: computes only A B", |o, c| {
                o.run(Gemm::new().kernel("async_copy")?.activation(Activation::Relu), c)
            }),
            ("kernel = tiled16: computes one product a launch", |o, c| {
                o.batch([2, 2, 2], Gemm::new().kernel("tiled16")?, c)
            }),
            ("kernel = tiled16: needs dense row-major matrices", |o, c| {
                let a = o.zeros(5, 4)?;
                let gemm = Gemm::new().kernel("tiled16")?;
                gemm.run(&o.stream, a.view().t(), o.b.view(), matrix(c)?).map(|_| ())
            }),
            ("kernel = tiled16: needs dense row-major matrices", |o, c| {
                let b = Matrix::with_layout(&o.device, 5, 3, Layout::RowMajor, 4)?;
                let gemm = Gemm::new().kernel("tiled16")?;
                gemm.run(&o.stream, o.a.view(), b.view(), matrix(c)?).map(|_| ())
            }),
            ("kernel = tiled16: needs dense row-major matrices", |o, c| {
                o.to(Gemm::new().kernel("tiled16")?, strided(c, [4, 1])?)
            }),
            // For a column-major C, A and B are swapped. Then they have the wrong layout.
            ("kernel = tiled16: needs dense row-major matrices", |o, c| {
                o.to(Gemm::new().kernel("tiled16")?, strided(c, [1, 4])?)
            }),
        ],
    );
}

/// Makes foreign memory at that address. Nothing of it is used.
fn foreign<T: Pod>(operands: &Operands, address: u64, len: usize) -> Result<()> {
    // SAFETY: it is dropped at once.
    unsafe { operands.device.foreign::<T>(address, len) }.map(drop)
}

#[test]
fn somebody_elses_memory() {
    refused(
        "arguments::somebody_elses_memory",
        &[
            ("address = null: must be", |o, _| foreign::<f32>(o, 0, 4)),
            ("address = 0x1002: must be a multiple of 4", |o, _| foreign::<f32>(o, 0x1002, 4)),
            ("address = 0x1004: must be a multiple of 8", |o, _| foreign::<f64>(o, 0x1004, 4)),
            ("len = ", |o, _| foreign::<f32>(o, 0x1000, 1 << 62)),
        ],
    );
}

/// A, B, C or the bias on another device than the stream's. (All handles of the CPU are one device,
/// so this needs a GPU.)
#[test]
fn another_device() {
    let mut count = 0;
    for gpu in cuda_devices() {
        for (here, there) in [(&gpu, &Device::cpu()), (&Device::cpu(), &gpu)] {
            for which in ["A", "B", "C", "bias"] {
                let (mut operands, other) = (Operands::new(here), Operands::new(there));
                let on =
                    |device: &Device| device.upload(&[f32::from_bits(UNTOUCHED); C_LEN]).unwrap();
                let mut c = on(here);
                match which {
                    "A" => operands.a = other.a,
                    "B" => operands.b = other.b,
                    "C" => c = on(there),
                    _ => operands.bias = other.bias,
                }
                let before = testing::counts().launches;
                let bias = Bias::PerRow(operands.bias.view(..4).unwrap());
                let error = operands.run(Gemm::new().bias(bias), &mut c).unwrap_err();
                let (here, there) = (here.name(), there.name());
                let text = format!("{which} = {there}: must be on the stream's device, {here}");
                assert_eq!(error.to_string(), text);
                assert_eq!(testing::counts().launches, before, "{text}");
                let untouched = c.to_vec().unwrap().iter().all(|x| x.to_bits() == UNTOUCHED);
                assert!(untouched, "{text}");
                count += 1;
            }
        }
    }
    if count > 0 {
        counted("arguments::another_device", count / cuda_devices().len());
    }
}
