//! Who reads and writes for the thread that launches: other threads, or that thread itself.

use std::{
    ops::Range,
    sync::mpsc::{Receiver, Sender},
};

use super::{
    place::{Place, Tile},
    plan::{CHUNKS, READERS},
    product::{Product, sides},
    schedule::{Operand, chunks},
    source::{Sink, Source},
};
use crate::{
    error::{Error, Result},
    gemm::Scalar,
    matrix::Layout,
    pinned::{Lines, Pinned},
};

/// A result on the caller's thread. `Err(None)`: another thread has ended too early, and returns
/// the reason.
pub(super) type Halt<T> = std::result::Result<T, Option<Error>>;

/// Channels to and from a reader: empty chunks out, filled chunks in.
type Exchange<T> = (Sender<Pinned<T>>, Receiver<Pinned<T>>);

/// The caller's ends of all channels.
pub(super) struct Channels<T> {
    /// To each reader and from it.
    pub(super) chunks: Vec<Exchange<T>>,
    /// The reader whose turn it is.
    pub(super) turn: usize,
    pub(super) tile_send: Sender<Tile<T>>,
    pub(super) place_receive: Receiver<Place<T>>,
}

/// Reads A, B and C and writes C, for the thread that launches.
pub(super) trait Partner<T> {
    /// A chunk with the next elements of an operand. `out`: the layout of the result. `piece`: the
    /// outer and the inner range.
    fn filled(
        &mut self,
        operand: Operand,
        out: Layout,
        piece: [Range<usize>; 2],
    ) -> Halt<Pinned<T>>;
    /// Takes back a chunk whose copy to the device was queued. It may be filled again after the
    /// copy.
    fn used(&mut self, chunk: Pinned<T>);
    /// A free buffer for a block of C.
    fn place(&mut self) -> Halt<Place<T>>;
    /// Takes a finished block of C, to be written.
    fn finished(&mut self, tile: Tile<T>) -> Halt<()>;
}

impl<T> Partner<T> for Channels<T> {
    fn filled(&mut self, _: Operand, _: Layout, _: [Range<usize>; 2]) -> Halt<Pinned<T>> {
        // The reader follows the same schedule.
        self.chunks[self.turn].1.recv().map_err(|_| None)
    }

    fn used(&mut self, chunk: Pinned<T>) {
        // A reader that has read everything has ended.
        let _ = self.chunks[self.turn].0.send(chunk);
        self.turn = (self.turn + 1) % READERS;
    }

    fn place(&mut self) -> Halt<Place<T>> {
        self.place_receive.recv().map_err(|_| None)
    }

    fn finished(&mut self, tile: Tile<T>) -> Halt<()> {
        self.tile_send.send(tile).map_err(|_| None)
    }
}

/// The caller's thread itself.
pub(super) struct Alone<'a, T> {
    pub(super) product: &'a Product<'a, T>,
    pub(super) chunk: Option<Pinned<T>>,
    pub(super) back: [Pinned<T>; 2],
    pub(super) chunk_len: usize,
    /// Free buffers for C.
    pub(super) places: Vec<Place<T>>,
    pub(super) out: &'a mut dyn Sink<T>,
}

impl<T: Scalar> Partner<T> for Alone<'_, T> {
    fn filled(
        &mut self,
        operand: Operand,
        out: Layout,
        [outer, inner]: [Range<usize>; 2],
    ) -> Halt<Pinned<T>> {
        let mut chunk = self.chunk.take().ok_or(None)?;
        let (source, layout) = self.product.source(operand, out);
        fill(source, layout, (outer, inner), &mut chunk)?;
        Ok(chunk)
    }

    fn used(&mut self, chunk: Pinned<T>) {
        self.chunk = Some(chunk);
    }

    fn place(&mut self) -> Halt<Place<T>> {
        self.places.pop().ok_or(None)
    }

    fn finished(&mut self, tile: Tile<T>) -> Halt<()> {
        let Alone { out, back, chunk_len, places, .. } = self;
        Ok(write_tile(*out, back, *chunk_len, tile, |place| places.push(place))?)
    }
}

/// The writer: writes finished blocks of C, and gives their buffers back.
pub(super) fn write<T: Scalar>(
    out: &mut dyn Sink<T>,
    mut back: [Pinned<T>; CHUNKS],
    chunk: usize,
    tiles: &Receiver<Tile<T>>,
    places: &Sender<Place<T>>,
) -> Result<()> {
    while let Ok(tile) = tiles.recv() {
        write_tile(out, &mut back, chunk, tile, |place| drop(places.send(place)))?;
    }
    Ok(())
}

/// Copies a block from the device, chunk by chunk, and writes it. `free` takes its buffer after the
/// last copy.
fn write_tile<T: Scalar>(
    out: &mut dyn Sink<T>,
    [full, empty]: &mut [Pinned<T>; CHUNKS],
    chunk: usize,
    Tile { place, rows, cols }: Tile<T>,
    free: impl FnOnce(Place<T>),
) -> Result<()> {
    let layout = out.layout();
    let Place { buffer, copies } = &place;
    let (outer, inner) = sides(layout, rows, cols);
    // A chunk is written while the next one is copied.
    let mut copied: Option<(Range<usize>, Range<usize>)> = None;
    let mut put = |full: &mut Pinned<T>, (outer, inner): (Range<usize>, Range<usize>)| {
        let len = outer.len() * inner.len();
        let (rows, cols) = sides(layout, outer, inner);
        out.write(rows, cols, layout, &full.as_slice()?[..len])
    };
    for (outer, inner, before) in chunks(outer, inner, chunk) {
        let len = outer.len() * inner.len();
        let lines = Lines { count: 1, len, stride: len };
        copies.download(buffer.view(before..before + len)?, empty, lines)?;
        if let Some(copied) = copied.replace((outer, inner)) {
            put(full, copied)?;
        }
        std::mem::swap(full, empty);
    }
    // After the last chunk all of the block is copied.
    full.as_slice()?;
    free(place);
    if let Some(copied) = copied {
        put(full, copied)?;
    }
    Ok(())
}

/// Fills a chunk with the elements of an outer and an inner range.
pub(super) fn fill<T: Scalar>(
    source: &dyn Source<T>,
    layout: Layout,
    (outer, inner): (Range<usize>, Range<usize>),
    chunk: &mut Pinned<T>,
) -> Result<()> {
    let len = outer.len() * inner.len();
    let (rows, cols) = sides(layout, outer, inner);
    source.read(rows, cols, layout, &mut chunk.as_mut_slice()?[..len])
}
