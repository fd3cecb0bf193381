//! CUDA graphs: launches that are captured once, and launched together as often as they are needed.

#[cfg(feature = "cuda")]
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{Buffer, BufferView, BufferViewMut, Pod, Storage, UsedRange, Written},
    device::Device,
    error::{Error, Result},
    matrix::{MatrixView, MatrixViewMut, view::has_gaps},
    stream::{Mode, Stream},
};

/// Launches that were captured, to be launched together: one call of the driver for all of them. A
/// CUDA graph.
///
/// ```
/// use gpu_gemm::{Device, Error, Gemm, Matrix};
///
/// let device = Device::best().device;
/// let stream = device.stream()?;
/// let x = Matrix::from_row_major(&device, 1, 2, &[1.0f32, 2.0])?;
/// let w = Matrix::from_row_major(&device, 2, 2, &[1.0, 0.0, 1.0, 1.0])?;
/// let (mut y, mut z) = (Matrix::zeros(&device, 1, 2)?, Matrix::zeros(&device, 1, 2)?);
///
/// // Two layers: Y = X W, Z = Y W.
/// let layer = Gemm::<f32>::new();
/// layer.prepare(&stream, x.view(), w.view(), y.view_mut())?;
/// layer.prepare(&stream, y.view(), w.view(), z.view_mut())?;
/// let graph = stream.capture(|stream| {
///     layer.launch(stream, x.view(), w.view(), y.view_mut())?;
///     layer.launch(stream, y.view(), w.view(), z.view_mut())
/// });
/// let graph = match graph {
///     Err(Error::Argument { .. }) if !device.is_cuda() => return Ok(()), // The CPU has no graphs.
///     graph => graph?,
/// };
/// for _ in 0..100 {
///     let (x, w, y, z) = (x.view(), w.view(), y.view_mut(), z.view_mut());
///     graph.launch(&stream, [x.into(), w.into(), y.into(), z.into()])?;
/// }
/// assert_eq!(z.to_row_major()?, [5.0, 4.0]);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
///
/// # Operands
/// A graph has the addresses of its operands, and no borrow. Each launch takes the operands again,
/// as any launch does. So between two launches a program may read and write them, and the graph
/// sees the new elements. A launch without one of them, or with another matrix in its place, is
/// refused, and so are elements of another type. Of a matrix with gaps between its rows or columns
/// a view of its buffer's elements is passed: another view may have the elements between.
///
/// # What it holds
/// The workspace of the captured launches, which no other graph and no stream uses; their tensor
/// maps; and their kernels, which stay loaded. Two graphs can run at once. Two launches of one
/// graph run one after the other, on any streams.
#[derive(Debug)]
pub struct Graph {
    // Dropped in this order.
    #[cfg(feature = "cuda")]
    graph: cuda::Graph,
    /// The workspace.
    own: Vec<Storage>,
    #[cfg(feature = "cuda")]
    _functions: Vec<cuda::Function>,
    /// What the kernels use besides the workspace.
    ranges: Vec<UsedRange>,
    device: Device,
}

/// A matrix or a buffer that a [`Graph`] uses. It is made of a view: `a.view().into()`,
/// `c.view_mut().into()`.
#[derive(Debug)]
pub struct GraphOperand<'a> {
    memory: &'a Storage,
    device: &'a Device,
    range: UsedRange,
    /// Whether there are elements between its own that it does not borrow. Another view may have
    /// them.
    has_gaps: bool,
}

impl<'a> GraphOperand<'a> {
    fn new<T: Pod>(buffer: &'a Buffer<T>, address: u64, len: usize, is_written: bool) -> Self {
        let range = UsedRange::new::<T>(address, len, is_written);
        let (memory, device) = (buffer.storage(), buffer.device());
        GraphOperand { memory, device, range, has_gaps: false }
    }

    fn written<T: Pod>(elements: Written<'a, T>) -> Self {
        let address = elements.as_view().address() as u64;
        GraphOperand::new(elements.buffer(), address, elements.len(), true)
    }
}

impl<'a, T: Pod> From<BufferView<'a, T>> for GraphOperand<'a> {
    fn from(view: BufferView<'a, T>) -> Self {
        GraphOperand::new(view.buffer(), view.address() as u64, view.len(), false)
    }
}

impl<'a, T: Pod> From<BufferViewMut<'a, T>> for GraphOperand<'a> {
    fn from(view: BufferViewMut<'a, T>) -> Self {
        GraphOperand::written(view.into())
    }
}

impl<'a, T: Pod> From<MatrixView<'a, T>> for GraphOperand<'a> {
    fn from(view: MatrixView<'a, T>) -> Self {
        let has_gaps = has_gaps(view.rows(), view.cols(), view.strides());
        GraphOperand { has_gaps, ..GraphOperand::from(view.elements()) }
    }
}

impl<'a, T: Pod> From<MatrixViewMut<'a, T>> for GraphOperand<'a> {
    fn from(view: MatrixViewMut<'a, T>) -> Self {
        let has_gaps = has_gaps(view.rows(), view.cols(), view.strides());
        GraphOperand { has_gaps, ..GraphOperand::written(view.into_elements()) }
    }
}

impl Stream {
    /// Loads and allocates what the launches of `run` need, and launches nothing. `run` gets a
    /// stream on which it makes the launches that it is to make in [`capture`](Self::capture).
    ///
    /// The workspace is reserved for the next graph that is captured on this stream. Several calls
    /// reserve the largest of their workspaces. [`Gemm::prepare`](crate::Gemm::prepare) does this
    /// for one product.
    ///
    /// # Errors
    /// Those of `run`. [`Error::Capture`] for what is not possible in a capture, and while this
    /// thread captures another stream.
    pub fn prepare<R>(&self, run: impl FnOnce(&Stream) -> Result<R>) -> Result<R> {
        self.refuse_in_capture("a preparation within one, or within a capture")?;
        self.refuse_beside_capture("a preparation on the same thread: prepare before the capture")?;
        let preparing = self.with(Mode::Preparing, self.take_reserved());
        let result = run(&preparing);
        self.reserve(preparing.into_parts().1);
        result
    }

    /// Captures the launches that `run` makes on the stream it gets, for a graph. They are not
    /// launched.
    ///
    /// Their kernels must be loaded, and their workspace reserved:
    /// [`Gemm::prepare`](crate::Gemm::prepare) or [`prepare`](Self::prepare), with the same
    /// launches. The graph takes that workspace, so the next one is prepared anew.
    ///
    /// In `run` nothing can be read or waited for, nothing allocated, and nothing copied from or to
    /// the host. What `run` drops on this thread is freed when the capture has ended. Products of
    /// the graph are not counted by [`recomputed`](Self::recomputed).
    ///
    /// # Errors
    /// Those of `run`; [`Error::Capture`] for a launch that was not prepared, and within another
    /// capture of this thread, of any stream: nothing is begun, and the other capture is not
    /// disturbed; [`Error::Argument`] for a stream of the CPU device, which has no graphs; those of
    /// the driver.
    pub fn capture<R>(&self, run: impl FnOnce(&Stream) -> Result<R>) -> Result<Graph> {
        self.refuse_in_capture("another capture, or a preparation")?;
        // The driver would begin it, and then refuse to make its graph, and spoil the capture
        // around it.
        let what = "another capture of the same thread: capture one graph after the other";
        self.refuse_beside_capture(what)?;
        #[cfg(feature = "cuda")]
        if self.cuda().is_some() {
            return self.captured(run);
        }
        let _ = run;
        Err(Error::argument("stream", self.device().name(), "must be on a GPU to be captured"))
    }

    /// Refuses what would allocate or begin a capture while this thread captures another stream.
    fn refuse_beside_capture(&self, what: &str) -> Result<()> {
        #[cfg(feature = "cuda")]
        if self.cuda().is_some() && cuda::is_capturing() {
            return Err(Error::capture(what));
        }
        let _ = what;
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn captured<R>(&self, run: impl FnOnce(&Stream) -> Result<R>) -> Result<Graph> {
        // No memory has been used on the new stream. So no other stream waits for it, and becomes
        // part of the capture.
        let fresh = self.device().stream()?;
        let cuda =
            fresh.cuda().ok_or_else(|| Error::capture("a stream of the CPU device"))?.clone();
        let stream = fresh.with(Mode::Capturing(Mutex::default()), self.take_reserved());
        let capture = Capture::begin(&cuda)?;
        let result = run(&stream)?;
        let graph = capture.end()?;
        drop(result);
        let (mode, kept) = stream.into_parts();
        let recorded = match mode {
            Mode::Capturing(recorded) => {
                recorded.into_inner().unwrap_or_else(PoisonError::into_inner)
            }
            Mode::Launching | Mode::Preparing => {
                return Err(Error::capture("a stream that is none"));
            }
        };
        let own = kept.into_memories();
        let is_own = |range: &UsedRange| own.iter().any(|memory| memory.range().covers(range));
        let ranges = recorded.ranges.into_iter().filter(|range| !is_own(range)).collect();
        let device = self.device().clone();
        Ok(Graph { graph, own, _functions: recorded.functions, ranges, device })
    }
}

/// A capture that has begun. It ends with this value. Then what was dropped in it is released.
#[cfg(feature = "cuda")]
struct Capture<'a> {
    /// `None`: it has ended.
    stream: Option<&'a Arc<cuda::Stream>>,
    /// Dropped after the end.
    _releases: cuda::Releases,
}

#[cfg(feature = "cuda")]
impl<'a> Capture<'a> {
    fn begin(stream: &'a Arc<cuda::Stream>) -> Result<Self> {
        let releases = cuda::Releases::deferred()?;
        stream.begin_capture()?;
        Ok(Capture { stream: Some(stream), _releases: releases })
    }

    fn end(mut self) -> Result<cuda::Graph> {
        match self.stream.take() {
            Some(stream) => stream.end_capture(),
            None => Err(Error::capture("it has ended")),
        }
    }
}

#[cfg(feature = "cuda")]
impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            // The launches failed, or panicked.
            let _ = stream.end_capture();
        }
    }
}

impl Graph {
    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of device memory that it holds.
    pub fn workspace_bytes(&self) -> u64 {
        let bytes = |memory: &Storage| memory.range().bytes();
        self.own.iter().map(bytes).sum()
    }

    /// Queues the captured launches on a stream. `operands`: all that they read or write, in any
    /// order.
    ///
    /// As a launch does, the graph waits on the device for work on other streams that uses the
    /// operands, and later uses wait for it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a stream or an operand of another device, and if a captured launch
    /// uses elements that no operand without gaps has, or that are of another type there, or writes
    /// elements of one that is only read: nothing is launched. Those of the driver.
    pub fn launch<'a>(
        &self,
        stream: &Stream,
        operands: impl IntoIterator<Item = GraphOperand<'a>>,
    ) -> Result<()> {
        let what = "the launch of a graph";
        if stream.is_preparing() {
            return Err(Error::capture(what));
        }
        // In a capture of another library it would become a part of a graph that outlives it.
        stream.refuse_unprepared(|| what.to_owned())?;
        let operands = operands.into_iter().collect::<Vec<_>>();
        let devices = operands.iter().map(|operand| ("operands", operand.device));
        for (name, device) in devices.chain([("stream", stream.device())]) {
            self.device.refuse_elsewhere(name, device, "the graph's device")?;
        }
        for used in &self.ranges {
            let covering = || operands.iter().filter(|operand| operand.range.covers(used));
            let mut of_type =
                covering().filter(|operand| operand.range.element == used.element).peekable();
            let is_of_type = of_type.peek().is_some();
            if of_type.any(|operand| !operand.has_gaps) {
                continue;
            }
            if let (Some(other), false) = (covering().next(), is_of_type) {
                let value = format!("{} at {:#x}", other.range.element.name(), used.start);
                let limit = format!("must be of {}, as captured", used.element.name());
                return Err(Error::argument("operands", value, limit));
            }
            if is_of_type {
                let value = format!("a matrix with gaps between its rows, at {:#x}", used.start);
                let limit = "must have no gaps: pass a view of all elements of its buffer";
                return Err(Error::argument("operands", value, limit));
            }
            let verb = if used.is_written { "writes" } else { "reads" };
            let value = format!("none of {} bytes at {:#x}", used.bytes(), used.start);
            let limit = format!("the graph {verb} these: pass the views that were captured");
            return Err(Error::argument("operands", value, limit));
        }
        self.queue(stream, &operands)
    }

    #[cfg(feature = "cuda")]
    fn queue(&self, stream: &Stream, operands: &[GraphOperand]) -> Result<()> {
        let Some(stream) = stream.cuda() else {
            return Err(Error::capture("the stream of a GPU has no stream of the driver"));
        };
        let order = || {
            for memory in &self.own {
                memory.used_by(stream, true)?;
            }
            for GraphOperand { memory, range, .. } in operands {
                memory.used_by(stream, range.is_written)?;
            }
            Ok(())
        };
        // SAFETY:
        // 1. What the kernels use is the graph's own, or an operand's, which is borrowed, mutably
        //    where it is written. Memory is freed after the work that was queued before. Work on
        //    other streams is waited for, and so is the next use.
        // 2. The graph has the functions, which keep their modules.
        unsafe { self.graph.launch(stream, order) }
    }

    /// Without a GPU there is no graph.
    #[cfg(not(feature = "cuda"))]
    fn queue(&self, _: &Stream, operands: &[GraphOperand]) -> Result<()> {
        let memories = operands.iter().map(|operand| operand.memory);
        Err(Error::capture(format!("{} operands, and no GPU", memories.count())))
    }
}
