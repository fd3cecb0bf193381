//! One checked launch of a kernel of the exercises.

use std::{fmt, num::NonZeroU32, time::Duration};

use simt::{
    Bf16, Declaration, Kernel, LaunchConfig,
    check::{self, CheckableParams, Finding, Options, Order, Profile, Report, Trace},
    checked::{Element, In, Out, TensorMap, TensorMapMut},
};

use crate::problem::{Data, Launch};

/// What a launch did.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The order in which it ran.
    pub order: Order,
    /// What the checker found.
    pub findings: Vec<Finding>,
    /// What is wrong with the result.
    pub wrong: Option<Wrong>,
    /// The counts.
    pub profile: Profile,
    /// What the threads of the first block did.
    pub trace: Trace,
    /// What the threads of each block of [`Launch::sharing`] did.
    pub sharing: Vec<Trace>,
}

/// Wrong elements of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// Their number.
    pub count: usize,
    /// The number of all elements.
    pub elements: usize,
    /// Row and column of the first.
    pub first: (usize, usize),
    /// The wrong value.
    pub is: f64,
    /// The right value.
    pub should_be: f64,
}

impl Attempt {
    /// Whether nothing was found and the result is right.
    pub fn is_right(&self) -> bool {
        self.findings.is_empty() && self.wrong.is_none()
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Wrong { count, elements, first: (row, col), is, should_be } = self;
        write!(f, "{count} of {elements} elements are wrong; ")?;
        write!(f, "the first is in row {row}, column {col}: {is}, and {should_be} is right")
    }
}

/// A kernel that can be launched.
pub trait Subject: Sync + fmt::Debug {
    /// Its declaration.
    fn declaration(&self) -> &Declaration;

    /// Launches it on these operands. Gives the report and the result.
    ///
    /// # Errors
    /// Why it could not be launched: no memory, or a tensor map that TMA does not know.
    fn launch(
        &self,
        launch: &Launch,
        shape: [usize; 3],
        data: &Data,
        options: &Options,
    ) -> Result<(Report, Vec<f64>), String>;
}

/// Launches a kernel once, with all checks, on the problem's data of that shape and in that order
/// of its threads. If it is not `counted`, profile and trace are empty.
///
/// # Errors
/// As [`Subject::launch`].
pub fn attempt(
    subject: &dyn Subject,
    launch: &Launch,
    shape: [usize; 3],
    data: &Data,
    order: Order,
    counted: bool,
) -> Result<Attempt, String> {
    let mut options = Options::default();
    options.order = order;
    options.complete = true;
    options.profile = counted.then_some(NonZeroU32::MIN);
    options.trace = counted.then_some([0; 3]);
    // Far more than these kernels need, and a kernel without an end is found within seconds.
    options.most_accesses = Some(1 << 20);
    options.most_waits = Some(1 << 14);
    options.patience = Some(Duration::from_secs(1));
    // Blocks run one after another, so that the text is the same every time.
    options.workers = Some(1);
    let (report, result) = subject.launch(launch, shape, data, &options)?;
    let mut sharing = Vec::new();
    for block in launch.sharing().into_iter().filter(|_| counted) {
        let mut options = options.clone();
        (options.profile, options.trace) = (None, Some(block));
        let (report, _) = subject.launch(launch, shape, data, &options)?;
        sharing.extend(report.trace);
    }
    Ok(Attempt {
        order,
        findings: report.findings,
        wrong: compare(launch.problem.result(shape).1, &result, &data.expected),
        profile: report.profile.unwrap_or_default(),
        trace: report.trace.unwrap_or_default(),
        sharing,
    })
}

fn compare(cols: usize, result: &[f64], expected: &[f64]) -> Option<Wrong> {
    let wrong = |at: &usize| result[*at] != expected[*at]; // NaN is wrong, too
    let all = (0..result.len()).filter(wrong).collect::<Vec<_>>();
    let &first = all.first()?;
    Some(Wrong {
        count: all.len(),
        elements: result.len(),
        first: (first / cols, first % cols),
        is: result[first],
        should_be: expected[first],
    })
}

/// A number type of the exercises.
trait Number: Element {
    fn of(value: f32) -> Self;
    fn value(self) -> f64;
}

impl Number for f32 {
    fn of(value: f32) -> f32 {
        value
    }

    fn value(self) -> f64 {
        self.into()
    }
}

impl Number for Bf16 {
    fn of(value: f32) -> Bf16 {
        Bf16::from_f32(value)
    }

    fn value(self) -> f64 {
        self.to_f32().into()
    }
}

/// Numbers that begin at a multiple of sixteen bytes, as a device's buffers do.
struct Buffer<T> {
    memory: Vec<T>,
    first: usize,
    len: usize,
}

impl<T: Number> Buffer<T> {
    fn new(values: impl ExactSizeIterator<Item = f32>) -> Self {
        let len = values.len();
        let mut memory = vec![T::of(0.0); len + 16 / size_of::<T>()];
        let first = memory.as_ptr().align_offset(16);
        for (to, value) in memory[first..].iter_mut().zip(values) {
            *to = T::of(value);
        }
        Buffer { memory, first, len }
    }

    fn of(values: &[f32]) -> Self {
        Buffer::new(values.iter().copied())
    }

    fn at(&mut self) -> *mut T {
        self.memory[self.first..].as_mut_ptr()
    }

    fn values(&self) -> Vec<f64> {
        self.memory[self.first..][..self.len].iter().map(|value| value.value()).collect()
    }
}

/// A kernel's parameters, as they are made of the operands.
trait Operands: CheckableParams {
    /// The type of all elements.
    type Element: Number;

    /// # Safety
    /// 1. The buffers are valid while a kernel uses the parameters, and nobody else uses them.
    unsafe fn bind(
        shape: [usize; 3],
        launch: &Launch,
        buffers: [&mut Buffer<Self::Element>; 3],
    ) -> Result<Self, String>;
}

impl<P: Operands> Subject for Kernel<P> {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn launch(
        &self,
        launch: &Launch,
        shape: [usize; 3],
        data: &Data,
        options: &Options,
    ) -> Result<(Report, Vec<f64>), String> {
        let (mut a, mut b) = (Buffer::of(&data.a), Buffer::of(&data.b));
        let before = if launch.problem.begins_with_zeros() { 0.0 } else { f32::NAN };
        let mut c = Buffer::new(vec![before; data.expected.len()].into_iter());
        let block = self.declaration.block.unwrap_or([1; 3]);
        let blocks = launch.grid.blocks(launch.problem.result(shape));
        let mut config = LaunchConfig::new(blocks, block);
        config.dynamic_shared = self.declaration.dynamic_shared.unwrap_or(0);
        // SAFETY:
        // 1. The buffers outlive the launch, and nobody else uses them.
        // 2. These kernels take views and tensor maps.
        // 3. and 4. An element of a view is a number that is copied, and no local has a destructor.
        let report = unsafe {
            let params = P::bind(shape, launch, [&mut a, &mut b, &mut c])?;
            check::launch(self, &config, params, options)
        };
        Ok((report.map_err(|stop| stop.to_string())?, c.values()))
    }
}

/// The result, which holds zeros or nothing before the launch.
///
/// # Safety
/// 1. As [`Operands::bind`].
unsafe fn result<T: Number>(launch: &Launch, buffer: &mut Buffer<T>) -> Out<T> {
    // SAFETY: the caller's.
    unsafe {
        match launch.problem.begins_with_zeros() {
            true => Out::new(buffer.at(), buffer.len),
            false => Out::uninit(buffer.at(), buffer.len),
        }
    }
}

/// # Safety
/// 1. As [`Operands::bind`].
unsafe fn operand<T: Number>(buffer: &mut Buffer<T>) -> In<T> {
    // SAFETY: the caller's.
    unsafe { In::new(buffer.at(), buffer.len) }
}

/// The tensor map of a row-major matrix.
///
/// # Safety
/// 1. As [`Operands::bind`].
unsafe fn map<T: Number>(
    buffer: &mut Buffer<T>,
    (rows, cols): (usize, usize),
    launch: &Launch,
    number: usize,
) -> Result<TensorMap<T>, String> {
    let (extents, strides) = ([1, rows, cols], [rows * cols, cols]);
    // SAFETY: the caller's.
    unsafe { TensorMap::new(buffer.at(), extents, strides, launch.boxes[number]) }
}

/// Parameters of a kernel, made of the shape, the launch and the three buffers.
macro_rules! operands {
    ($($(#[$doc:meta])* ($($param:ty),*): |$shape:pat_param, $launch:pat_param, $buffers:pat_param| ($($value:expr),*);)*) => {$(
        $(#[$doc])*
        impl<T: Number> Operands for ($($param),*) {
            type Element = T;

            unsafe fn bind(
                $shape: [usize; 3],
                $launch: &Launch,
                $buffers: [&mut Buffer<T>; 3],
            ) -> Result<Self, String> {
                // SAFETY: the caller's.
                Ok(unsafe { ($($value),*) })
            }
        }
    )*};
}

operands! {
    /// m, n, k, A, B, C.
    (u32, u32, u32, In<T>, In<T>, Out<T>): |[m, n, k], launch, [a, b, c]|
        (m as u32, n as u32, k as u32, operand(a), operand(b), result(launch, c));
    /// n, x, y, z.
    (u32, In<T>, In<T>, Out<T>): |[_, n, _], launch, [x, y, z]|
        (n as u32, operand(x), operand(y), result(launch, z));
    /// m, n, x, y.
    (u32, u32, In<T>, Out<T>): |[m, n, _], launch, [x, _, y]|
        (m as u32, n as u32, operand(x), result(launch, y));
    /// m, n, k, maps of A and B, C.
    (u32, u32, u32, TensorMap<T>, TensorMap<T>, Out<T>): |[m, n, k], launch, [a, b, c]| (
        m as u32, n as u32, k as u32,
        map(a, (m, k), launch, 0)?, map(b, (k, n), launch, 1)?, result(launch, c)
    );
    /// m, n, k, maps of A, B and C.
    (u32, u32, u32, TensorMap<T>, TensorMap<T>, TensorMapMut<T>): |[m, n, k], launch, [a, b, c]| (
        m as u32, n as u32, k as u32,
        map(a, (m, k), launch, 0)?, map(b, (k, n), launch, 1)?,
        TensorMapMut::uninit(c.at(), [1, m, n], [m * n, n], launch.boxes[2])?
    );
}
