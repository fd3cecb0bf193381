//! The pipeline of an out-of-core product: threads that read, multiply and write.
//!
//! * **The readers** take turns. Each fills chunks of pinned memory, in the order of the schedule.
//! * **The caller's thread** queues the copies of chunks to buffers on the device, and the
//!   products. It waits for neither. Each buffer has a stream of its own. Copies there wait on the
//!   device for the last product that uses the buffer, and a product waits for the copies to its
//!   buffers. So the next block is copied while this one is multiplied.
//! * **The writer** copies finished blocks of C from the device, chunk by chunk, and writes them.
//!
//! If the system gives no threads, the caller's thread does all of this.
//!
//! The number of chunks is fixed, so no thread runs far ahead. A thread that fails or is
//! interrupted drops its ends of the channels, and then the others end, too. On the CPU device
//! copies and products have ended when the calls return. The rest is the same.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use super::{
    partner::{Alone, Channels, Halt, Partner, fill, write},
    parts::{Parts, strides},
    place::{Place, Tile, places_of_c},
    plan::{BlockPlan, CHUNKS, READERS},
    product::{Product, sides},
    schedule::{Load, Operand, Scheduled, chunks, schedule},
    source::Sink,
};
use crate::{
    device::Device,
    error::{Error, Result},
    gemm::{Choice, Scalar},
    matrix::{Layout, MatrixView, MatrixViewMut},
    parallel,
    pinned::{Lines, Pinned},
    progress,
    stream::Stream,
};

impl<T: Scalar> Product<'_, T> {
    /// Computes a device's part of the product.
    pub(super) fn part(
        &self,
        device: &Device,
        stage: &mut Stage<T>,
        out: &mut dyn Sink<T>,
    ) -> Result<Option<Choice>> {
        match self.on_threads(device, stage, out)? {
            Some(choice) => Ok(choice),
            None => self.alone(device, stage, out),
        }
    }

    /// Runs the plan with threads that read and write. `None` if the system does not give them:
    /// nothing was done.
    fn on_threads(
        &self,
        device: &Device,
        stage: &mut Stage<T>,
        out: &mut dyn Sink<T>,
    ) -> Result<Option<Option<Choice>>> {
        let (plan, number) = (stage.plan, stage.number);
        let (mut chunks, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..READERS {
            let (free_send, free_receive) = channel();
            let (filled_send, filled_receive) = channel();
            for _ in 0..CHUNKS {
                let _ = free_send.send(device.pinned(plan.chunk())?);
            }
            chunks.push((free_send, filled_receive));
            ends.push((free_receive, filled_send));
        }
        let (tile_send, tile_receive) = channel();
        let (place_send, place_receive) = channel();
        for place in places_of_c(device, plan)? {
            let _ = place_send.send(place);
        }
        let back = [device.pinned(plan.chunk())?, device.pinned(plan.chunk())?];
        let layout = out.layout();
        thread::scope(|scope| {
            let mut readers = Vec::new();
            for (turn, (free, filled)) in ends.into_iter().enumerate() {
                let read = move || self.read(turn, (plan, number), layout, &free, &filled);
                readers.extend(parallel::start(scope, read));
            }
            let write = move || write(out, back, plan.chunk(), &tile_receive, &place_send);
            let (Some(writer), READERS) = (parallel::start(scope, write), readers.len()) else {
                // The ends of the channels are dropped, so the threads that were started end.
                drop((chunks, tile_send));
                return Ok(None);
            };
            let channels = Channels { chunks, turn: 0, tile_send, place_receive };
            let computed = stage.compute(channels);
            // The caller's ends of the channels are dropped, so all threads end.
            let read = readers.into_iter().map(join).collect::<Vec<_>>();
            let written = join(writer);
            let (computed, error) = match computed {
                Err(Some(error)) => (Err(None), Some(error)),
                computed => (computed, None),
            };
            let errors = read.into_iter().map(Result::err).chain([error, written.err()]);
            let (interrupts, others): (Vec<_>, Vec<_>) =
                errors.flatten().partition(|error| matches!(error, Error::Interrupted));
            // Several threads see an interrupt. Another error says more.
            match others.into_iter().chain(interrupts).next() {
                Some(error) => Err(error),
                None => stage.ended(computed).map(Some),
            }
        })
    }

    /// Runs the plan on the caller's thread, one step after another.
    fn alone(
        &self,
        device: &Device,
        stage: &mut Stage<T>,
        out: &mut dyn Sink<T>,
    ) -> Result<Option<Choice>> {
        let plan = stage.plan;
        let chunk = || device.pinned(plan.chunk());
        let alone = Alone {
            product: self,
            chunk: Some(chunk()?),
            back: [chunk()?, chunk()?],
            chunk_len: plan.chunk(),
            places: places_of_c(device, plan)?,
            out,
        };
        let computed = stage.compute(alone);
        stage.ended(computed)
    }

    /// A reader. It fills every [`READERS`]th chunk, from `turn` on.
    fn read(
        &self,
        turn: usize,
        (plan, number): (&BlockPlan, usize),
        layout: Layout,
        free: &Receiver<Pinned<T>>,
        filled: &Sender<Pinned<T>>,
    ) -> Result<()> {
        let mut next = 0;
        for load in schedule(plan, number, self.reads_c()).flat_map(|scheduled| scheduled.loads) {
            let (source, layout) = self.source(load.operand, layout);
            let (outer, inner) = sides(layout, load.rows, load.cols);
            for (outer, inner, _) in chunks(outer, inner, plan.chunk()) {
                next += 1;
                if (next - 1) % READERS != turn {
                    continue;
                }
                let Ok(mut chunk) = free.recv() else { return Ok(()) };
                fill(source, layout, (outer, inner), &mut chunk)?;
                if filled.send(chunk).is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The result of a thread. Its panic continues here.
fn join<T>(thread: thread::ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The state of the thread that launches on a device.
pub(super) struct Stage<'a, T> {
    plan: &'a BlockPlan,
    /// The device's number in the plan.
    number: usize,
    /// Set when another device has failed.
    stop: &'a AtomicBool,
    /// Of A, B and C.
    layouts: [Layout; 3],
    reads_c: bool,
    parts: Parts<'a, T>,
    products: Stream,
    a: Vec<Place<T>>,
    b: Vec<Place<T>>,
}

impl<'a, T: Scalar> Stage<'a, T> {
    pub(super) fn new(
        product: &Product<T>,
        device: &Device,
        (plan, number, stop): (&'a BlockPlan, usize, &'a AtomicBool),
        out: Layout,
    ) -> Result<Self> {
        let [rows, cols, depth] = plan.block();
        let places = |count: usize, len: usize| {
            (0..count).map(|_| Place::new(device, len)).collect::<Result<Vec<_>>>()
        };
        let layouts = [product.a.layout(), product.b.layout(), out];
        Ok(Stage {
            plan,
            number,
            stop,
            layouts,
            reads_c: product.reads_c(),
            parts: Parts::new(product, device, plan, layouts)?,
            products: device.stream()?,
            a: places(plan.places()[0], rows * depth)?,
            b: places(plan.places()[1], depth * cols)?,
        })
    }

    /// Queues the copies and the products of all steps.
    fn compute(&mut self, mut partner: impl Partner<T>) -> Halt<Option<Choice>> {
        let (mut choice, mut tile) = (None, None);
        for scheduled in schedule(self.plan, self.number, self.reads_c) {
            crate::check_interrupt()?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(None);
            }
            for load in &scheduled.loads {
                // C's buffer comes last: A and B need not wait for it.
                if load.operand == Operand::C && tile.is_none() {
                    tile = Some(partner.place()?);
                }
                self.load(&mut partner, load, tile.as_mut())?;
            }
            let mut c = match tile.take() {
                Some(c) => c,
                None => partner.place()?,
            };
            choice = Some(self.launch(&scheduled, &mut c)?);
            if !scheduled.last {
                tile = Some(c);
                continue;
            }
            let (rows, cols) = (self.plan.rows(scheduled.step), self.plan.cols(scheduled.step));
            partner.finished(Tile { place: c, rows, cols })?;
        }
        if let Some(choice) = &mut choice
            && choice.entry.is_emulated()
        {
            choice.recomputed = Some(self.products.recomputed()?);
        }
        // The writer waits for the last products, and sees their errors.
        Ok(choice)
    }

    /// The result of a device whose other threads have returned no error. A device that was stopped
    /// has none: another one returns the reason.
    pub(super) fn ended(&self, computed: Halt<Option<Choice>>) -> Result<Option<Choice>> {
        computed.or_else(|error| match error {
            Some(error) => Err(error),
            None if self.stop.load(Ordering::Relaxed) => Ok(None),
            None => {
                let limit = "not all blocks were computed: a thread has ended early, which is a fault of this library";
                Err(Error::argument("plan", format!("{:?} blocks", self.plan.blocks()), limit))
            }
        })
    }

    /// Launches a step's product, after the copies.
    fn launch(&mut self, scheduled: &Scheduled, place: &mut Place<T>) -> Result<Choice> {
        let Scheduled { step, first, .. } = *scheduled;
        let (rows, cols, depth) =
            (self.plan.rows(step), self.plan.cols(step), self.plan.depth(step));
        let (m, n, k) = (rows.len(), cols.len(), depth.len());
        let c_strides = strides(self.layouts[2], m, n);
        let c = MatrixViewMut::new(place.buffer.view_mut(..m * n)?, m, n, c_strides)?;
        // Operands that are not read have no buffer and no elements.
        let none = self.products.device().uninit(0)?;
        let a = self.a.get(scheduled.a).map_or(&none, |place| &place.buffer);
        let b = self.b.get(scheduled.b).map_or(&none, |place| &place.buffer);
        let [a_strides, b_strides] =
            [strides(self.layouts[0], m, k), strides(self.layouts[1], k, n)];
        let a = MatrixView::new(a.view(..m * k)?, m, k, a_strides)?;
        let b = MatrixView::new(b.view(..k * n)?, k, n, b_strides)?;
        let part = progress::begin_part(weight(m, n, k));
        let choice = self.parts.launch(first, &self.products, a, b, c)?;
        part.launched(self.products.device().is_cuda());
        let places = [self.a.get_mut(scheduled.a), self.b.get_mut(scheduled.b), Some(place)];
        places.into_iter().flatten().try_for_each(Place::launched)?;
        Ok(choice)
    }

    /// Queues the copies of a block to its buffer.
    fn load(
        &mut self,
        partner: &mut impl Partner<T>,
        load: &Load,
        c: Option<&mut Place<T>>,
    ) -> Halt<()> {
        let place = match load.operand {
            Operand::A => self.a.get_mut(load.place),
            Operand::B => self.b.get_mut(load.place),
            Operand::C => c,
        };
        let Some(Place { buffer, copies }) = place else { return Ok(()) };
        let layout = self.layouts[load.operand as usize];
        let (outer, inner) = sides(layout, load.rows.clone(), load.cols.clone());
        for (outer, inner, before) in chunks(outer, inner, self.plan.chunk()) {
            let len = outer.len() * inner.len();
            let mut chunk = partner.filled(load.operand, self.layouts[2], [outer, inner])?;
            let lines = Lines { count: 1, len, stride: len };
            copies.upload(&mut chunk, buffer.view_mut(before..before + len)?, lines)?;
            partner.used(chunk);
        }
        Ok(())
    }
}

/// The weight of a step in the progress: `m n k`, or `m n` if k is 0.
pub(super) fn weight(m: usize, n: usize, k: usize) -> f64 {
    m as f64 * n as f64 * k.max(1) as f64
}
