//! The product: panels travel, and are multiplied where C is.

use std::fmt;

use gpu_gemm::{
    Buffer, Event, Gemm, Lines, MatrixView, MatrixViewMut, Pinned, Stream, gemm::Scalar,
};
use mpi::traits::Equivalence;

use crate::{
    error::Result,
    exchange::Exchange,
    grid::{Grid, is_direct},
    messages::Messages,
};

/// Panels are at least so wide, that products of them are efficient, and at most.
const WIDTHS: [usize; 2] = [128, 512];
/// The panels of a k that is long enough: with fewer, little of the communication is overlapped.
const PANELS: usize = 4;
/// The most bytes of a rank's panel. MPI counts some of them in 32 bits.
const PANEL_BYTES: usize = 1 << 30;
/// Panels in memory: one is multiplied, one travels, and one may still be read by the device.
const SLOTS: usize = 3;

/// A type of elements of distributed matrices: `f32` and `f64`.
pub trait Element: Scalar + Equivalence + Default {}

impl Element for f32 {}
impl Element for f64 {}

/// How a product was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of panels, and the indices of k in a panel.
    pub panels: [usize; 2],
    /// Whether A, and B, were broadcast along lines of the grid. Otherwise each piece was sent from
    /// its owner to the ranks that need it.
    pub broadcast: [bool; 2],
    /// Whether MPI used the device's memory itself, without a copy in host memory.
    pub direct: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [panels, width] = self.panels;
        let way = self.broadcast.map(|by| if by { "by broadcasts" } else { "from the owners" });
        let memory = if self.direct { "between devices' memories" } else { "through host memory" };
        write!(f, "{panels} panels of {width}; A {}, B {}, {memory}", way[0], way[1])
    }
}

/// A panel of A or B in memory.
struct Panel<T> {
    memory: Buffer<T>,
    /// Where it arrives, if not in the device's memory.
    staged: Option<Pinned<T>>,
    /// The place where it arrives.
    target: *mut T,
}

impl<T: Element> Panel<T> {
    fn new(stream: &Stream, len: usize, direct: bool) -> gpu_gemm::Result<Self> {
        let mut memory = stream.device().uninit::<T>(len)?;
        let (staged, target) = if direct {
            (None, memory.all_mut().address_on(stream)?)
        } else {
            let mut staged = stream.device().pinned::<T>(len)?;
            let target = staged.as_mut_slice()?.as_mut_ptr();
            (Some(staged), target)
        };
        Ok(Panel { memory, staged, target })
    }

    fn view(
        &self,
        outer: usize,
        inner: usize,
        strides: [usize; 2],
    ) -> gpu_gemm::Result<MatrixView<'_, T>> {
        MatrixView::new(self.memory.all(), outer, inner, strides)
    }
}

/// The panels of A and B that travel together. (`messages` comes first: its drop waits before the
/// memory goes.)
struct Slot<T> {
    messages: Messages,
    panels: [Panel<T>; 2],
    /// When the device has multiplied them.
    multiplied: Option<Event>,
}

/// `C = alpha A B + beta C` of the parts that the exchanges move. `c`: this rank's elements of C's
/// part. All ranks of the grid call it, with the same scalars.
///
/// # Errors
/// The first that any rank meets, on all ranks. C may then be half-written.
pub(crate) fn multiply<T: Element>(
    grid: &Grid,
    stream: &Stream,
    [alpha, beta]: [f64; 2],
    exchanges: &[Exchange<T>; 2],
    k: usize,
    mut c: MatrixViewMut<T>,
) -> Result<Report> {
    // As in BLAS, A and B are not read then.
    let k = if alpha == 0.0 { 0 } else { k };
    let direct = is_direct(stream.device());
    let most = exchanges.iter().map(Exchange::most_outer).max().unwrap_or(0);
    let fitting = (PANEL_BYTES / size_of::<T>() / most.max(1)).max(1);
    let width = k.div_ceil(PANELS).clamp(WIDTHS[0], WIDTHS[1]).min(fitting).min(k.max(1));
    let panels = (0..k).step_by(width).map(|start| start..k.min(start + width)).collect::<Vec<_>>();
    let broadcast = exchanges.each_ref().map(|exchange| exchange.is_broadcast);
    let report = Report { panels: [panels.len(), width], broadcast, direct };

    let slots = || -> Result<Vec<Slot<T>>> {
        // Afterwards no rank refuses a message for which others wait.
        exchanges.iter().try_for_each(Exchange::check)?;
        // Memory that was allocated or written before is there.
        stream.synchronize()?;
        let slot = |_| {
            let [a, b] =
                exchanges.each_ref().map(|of| Panel::new(stream, of.outer() * width, direct));
            Ok(Slot { messages: Messages::default(), panels: [a?, b?], multiplied: None })
        };
        (0..panels.len().clamp(1, SLOTS)).map(slot).collect()
    };
    let mut slots = grid.agree(slots())?;
    let count = slots.len();
    let begin = |index: usize, slot: &mut Slot<T>| -> Result<()> {
        let Some(panel) = panels.get(index) else { return Ok(()) };
        let waited = slot.multiplied.take().map_or(Ok(()), |event| event.wait());
        for (exchange, to) in exchanges.iter().zip(&slot.panels) {
            // SAFETY: the panel has room for `width` indices of k. The device has multiplied what
            // was there, or has failed. Nobody reads it before `messages` has waited.
            unsafe { exchange.begin(panel, width, to.target, &mut slot.messages)? };
        }
        Ok(waited?)
    };

    // An error of the device here does not keep this rank from sending what others wait for.
    let mut result = begin(0, &mut slots[0]);
    for (index, panel) in panels.iter().enumerate() {
        let arrived = slots[index % count].messages.wait();
        result = result.and(arrived).and(begin(index + 1, &mut slots[(index + 1) % count]));
        if result.is_ok() {
            let beta = if index == 0 { beta } else { 1.0 };
            let scalars = [alpha, beta];
            let slot = &mut slots[index % count];
            result = launch(stream, scalars, exchanges, [panel.len(), width], slot, c.reborrow())
                .map_err(Into::into);
        }
    }
    if panels.is_empty() && result.is_ok() {
        let slot = &mut slots[0];
        result = launch(stream, [0.0, beta], exchanges, [0, width], slot, c).map_err(Into::into);
    }
    let ended = stream.synchronize().map_err(Into::into);
    grid.agree(result.and(ended).map(|()| report))
}

/// Puts the product of two panels on the stream.
fn launch<T: Element>(
    stream: &Stream,
    [alpha, beta]: [f64; 2],
    exchanges: &[Exchange<T>; 2],
    [inner, width]: [usize; 2],
    slot: &mut Slot<T>,
    c: MatrixViewMut<T>,
) -> gpu_gemm::Result<()> {
    for panel in &mut slot.panels {
        if let Some(staged) = &mut panel.staged {
            let len = staged.len();
            let lines = Lines { count: 1, len, stride: len };
            stream.upload(staged, panel.memory.all_mut(), lines)?;
        }
    }
    let [a, b] = [0, 1].map(|side| {
        let exchange = &exchanges[side];
        slot.panels[side].view(exchange.outer(), inner, exchange.strides(width))
    });
    Gemm::<T>::new().alpha(alpha).beta(beta).launch(stream, a?, b?.t(), c)?;
    slot.multiplied = Some(stream.record()?);
    Ok(())
}
