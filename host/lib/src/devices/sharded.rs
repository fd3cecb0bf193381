//! A matrix in shards, one at each place.

use std::time::Duration;

use super::{Block, Devices, ShardLayout};
use crate::{
    buffer::{Buffer, BufferViewMut, Pod},
    error::{Error, Result},
    matrix::{MatrixView, MatrixViewMut},
    memory,
    stream::lane::{AllLanes, transfer},
};

/// A matrix in shards: each place of some [`Devices`] holds the rows and columns that a
/// [`ShardLayout`] says, row-major.
///
/// ```
/// use gpu_gemm::{Devices, ShardLayout, Sharded};
///
/// let devices = Devices::cpu(2)?;
/// let layout = ShardLayout::Rows(vec![0, 1, 3]);
/// let a = Sharded::from_row_major(&devices, 3, 2, layout, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(a.shard(0)?.rows(), 1);
/// assert_eq!(a.gather()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
///
/// let by_columns = a.reshard(ShardLayout::Cols(vec![0, 1, 2]))?;
/// assert_eq!(by_columns.shard(1)?.cols(), 1);
/// assert_eq!(by_columns.gather()?, a.gather()?);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct Sharded<T> {
    devices: Devices,
    size: [usize; 2],
    layout: ShardLayout,
    shards: Vec<Buffer<T>>,
}

/// Elements from one row of a shard to the next. A shard of whole rows has the pitch of the whole
/// matrix: kernels with alignment classes count by it. Others have 16-byte aligned rows.
pub(crate) fn pitch_of(element: usize, cols: usize, whole: usize) -> usize {
    let aligned = cols.checked_next_multiple_of(16 / element.min(16));
    // So long a row is no memory's.
    if cols == whole { cols } else { aligned.unwrap_or(usize::MAX) }
}

impl<T: Pod> Sharded<T> {
    /// Zeros.
    ///
    /// # Errors
    /// [`Error::Argument`] for a layout of another size or number of places;
    /// [`Error::OutOfMemory`].
    pub fn zeros(devices: &Devices, rows: usize, cols: usize, layout: ShardLayout) -> Result<Self> {
        let size = [rows, cols];
        layout.check("layout", size, devices.len())?;
        let shard = |place: usize| {
            let [rows, own] = layout.block(place, size).size();
            let len = rows.checked_mul(pitch_of(size_of::<T>(), own, cols)).ok_or_else(|| {
                Error::argument("rows", rows, format!("{cols} columns cannot be addressed"))
            })?;
            devices.at(place).zeros(len)
        };
        let shards = (0..devices.len()).map(shard).collect::<Result<Vec<_>>>()?;
        Ok(Sharded { devices: devices.clone(), size, layout, shards })
    }

    /// The shards of `values`, dense and row-major.
    ///
    /// # Errors
    /// As [`Sharded::zeros`]; [`Error::Argument`] if there are not `rows * cols` values.
    pub fn from_row_major(
        devices: &Devices,
        rows: usize,
        cols: usize,
        layout: ShardLayout,
        values: &[T],
    ) -> Result<Self> {
        if Some(values.len()) != rows.checked_mul(cols) {
            let limit = format!("must be rows * cols = {rows} * {cols}");
            return Err(Error::argument("values.len()", values.len(), limit));
        }
        let mut sharded = Sharded::zeros(devices, rows, cols, layout)?;
        for place in 0..devices.len() {
            let (block, pitch) = (sharded.block(place), sharded.pitch(place));
            if block.is_empty() {
                continue;
            }
            // One copy of all rows with their padding.
            let mut padded = memory::filled(T::zeroed(), block.rows.len() * pitch)?;
            for (row, to) in block.rows.clone().zip(padded.chunks_mut(pitch)) {
                let from = row * cols + block.cols.start;
                to[..block.cols.len()].copy_from_slice(&values[from..from + block.cols.len()]);
            }
            sharded.shards[place].write(0, &padded)?;
        }
        Ok(sharded)
    }

    /// A copy of all elements, dense and row-major. Of a replicated matrix the first place's.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host; errors of kernels launched before.
    pub fn gather(&self) -> Result<Vec<T>> {
        let [rows, cols] = self.size;
        let mut values = memory::filled(T::zeroed(), rows * cols)?;
        let places = match self.layout {
            ShardLayout::Replicated => 1,
            _ => self.devices.len(),
        };
        for place in 0..places {
            let (block, shard) = (self.block(place), self.read_shard(place)?);
            for (row, from) in block.rows.clone().zip(shard.chunks(block.cols.len().max(1))) {
                let to = row * cols + block.cols.start;
                values[to..to + from.len()].copy_from_slice(from);
            }
        }
        Ok(values)
    }

    /// Refuses a place that there is not.
    fn check_place(&self, place: usize) -> Result<()> {
        match self.devices.len() {
            places if place < places => Ok(()),
            places => Err(Error::argument("place", place, format!("there are {places}, from 0"))),
        }
    }

    /// A copy of the elements that a place holds, dense and row-major.
    ///
    /// # Errors
    /// As [`Sharded::gather`]; [`Error::Argument`] for a place that there is not.
    pub fn read_shard(&self, place: usize) -> Result<Vec<T>> {
        self.check_place(place)?;
        let ([rows, cols], pitch) = (self.block(place).size(), self.pitch(place));
        let padded = self.shards[place].to_vec()?;
        if pitch == cols {
            return Ok(padded);
        }
        let mut values = memory::reserved(rows * cols)?;
        padded.chunks(pitch.max(1)).for_each(|row| values.extend_from_slice(&row[..cols]));
        Ok(values)
    }

    /// The same matrix in another layout, over the same devices. What a place has it copies; the
    /// rest comes from other places. Waits for the copies.
    ///
    /// # Errors
    /// As [`Sharded::zeros`]; those of the driver.
    pub fn reshard(&self, layout: ShardLayout) -> Result<Sharded<T>> {
        let [rows, cols] = self.size;
        let mut to = Sharded::zeros(&self.devices, rows, cols, layout)?;
        let lanes = self.devices.lanes::<1>()?;
        let all = AllLanes(&lanes);
        let mut copied = Ok(());
        for (place, [lane]) in lanes.iter().enumerate() {
            let (wanted, pitch) = (to.block(place), to.pitch(place));
            for (from, part) in self.sources(place, &wanted) {
                let start = offset(&self.block(from), self.pitch(from), &part);
                let target = offset(&wanted, pitch, &part);
                let from_view = self.shards[from].view(start..);
                let to_view = to.shards[place].view_mut(target..);
                copied = copied.and_then(|()| {
                    self.shards[from].wait_for_uses()?;
                    let (from, to) = ((from_view?, self.pitch(from)), (to_view?, pitch));
                    // SAFETY: `all` waits for the copies, also after a panic, and no two
                    // write one element.
                    unsafe { transfer(lane, from, to, part.size()) }
                });
            }
        }
        // A link that is slow, ten times.
        let bytes = (rows * cols).saturating_mul(size_of::<T>());
        let slow = Duration::from_nanos(10 * bytes as u64);
        let limit = self.devices.time_limit.saturating_add(slow);
        let ended = all.wait(limit, || None, |place, error| self.devices.failed(place)(error));
        copied.and(ended).map(|()| to)
    }

    /// Where a place gets a part of the matrix: its own shard first, then the next places'.
    pub(crate) fn sources(&self, place: usize, part: &Block) -> Vec<(usize, Block)> {
        sources(&self.layout, self.size, self.devices.len(), place, part)
    }

    /// Rows and columns that a place holds.
    pub(crate) fn block(&self, place: usize) -> Block {
        self.layout.block(place, self.size)
    }

    pub(crate) fn pitch(&self, place: usize) -> usize {
        pitch_of(size_of::<T>(), self.block(place).cols.len(), self.size[1])
    }

    /// The elements of each place.
    pub(crate) fn shards(&self) -> &[Buffer<T>] {
        &self.shards
    }

    /// The same, to be written.
    pub(crate) fn shards_mut(&mut self) -> impl Iterator<Item = BufferViewMut<'_, T>> {
        self.shards.iter_mut().map(Buffer::all_mut)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.size[0]
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.size[1]
    }

    /// Which part each place holds.
    pub fn layout(&self) -> &ShardLayout {
        &self.layout
    }

    /// The devices that hold it.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The shard of a place, from 0.
    ///
    /// # Errors
    /// [`Error::Argument`] for a place that there is not.
    pub fn shard(&self, place: usize) -> Result<MatrixView<'_, T>> {
        self.check_place(place)?;
        let ([rows, cols], pitch) = (self.block(place).size(), self.pitch(place));
        Ok(MatrixView::whole(self.shards[place].all(), rows, cols, [pitch, 1]))
    }

    /// The same, to be written. The copies of a replicated matrix are the caller's to keep equal.
    ///
    /// # Errors
    /// [`Error::Argument`] for a place that there is not.
    pub fn shard_mut(&mut self, place: usize) -> Result<MatrixViewMut<'_, T>> {
        self.check_place(place)?;
        let ([rows, cols], pitch) = (self.block(place).size(), self.pitch(place));
        Ok(MatrixViewMut::whole(self.shards[place].all_mut(), rows, cols, [pitch, 1]))
    }
}

/// The index of a part's first element in a shard that holds `block`.
pub(crate) fn offset(block: &Block, pitch: usize, part: &Block) -> usize {
    (part.rows.start - block.rows.start) * pitch + part.cols.start - block.cols.start
}

/// As [`Sharded::sources`], of a layout.
pub(crate) fn sources(
    layout: &ShardLayout,
    size: [usize; 2],
    places: usize,
    place: usize,
    part: &Block,
) -> Vec<(usize, Block)> {
    let own = layout.block(place, size);
    if own.contains(part) {
        return if part.is_empty() { Vec::new() } else { vec![(place, part.clone())] };
    }
    let others = (0..places).map(|step| (place + step) % places);
    let parts = others.map(|from| (from, layout.block(from, size).and(part)));
    parts.filter(|(_, part)| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_gathers_and_reshards() {
        let (rows, cols) = (150, 70);
        let values = (0..rows * cols).map(|i| i as f32).collect::<Vec<_>>();
        for places in [1, 2, 3, 8] {
            let devices = Devices::cpu(places).unwrap();
            let grid = if places == 8 { [2, 4] } else { [places, 1] };
            let layouts = [
                ShardLayout::Replicated,
                ShardLayout::rows(rows, places),
                ShardLayout::cols(cols, places),
                ShardLayout::grid([rows, cols], grid),
            ];
            for from in &layouts {
                let a =
                    Sharded::from_row_major(&devices, rows, cols, from.clone(), &values).unwrap();
                assert_eq!(a.gather().unwrap(), values, "{from}");
                for to in &layouts {
                    let moved = a.reshard(to.clone()).unwrap();
                    assert_eq!(moved.layout(), to);
                    assert_eq!(moved.gather().unwrap(), values, "{from} to {to}");
                }
            }
        }
    }

    #[test]
    fn another_number_of_values_or_places_is_refused() {
        let devices = Devices::cpu(2).unwrap();
        let make = |layout, values: &[f32]| {
            Sharded::from_row_major(&devices, 2, 2, layout, values).unwrap_err().to_string()
        };
        let error = make(ShardLayout::Replicated, &[0.0; 3]);
        assert!(error.starts_with("values.len() = 3"), "{error}");
        let mut zeros = Sharded::<f32>::zeros(&devices, 2, 2, ShardLayout::Replicated).unwrap();
        assert_eq!(zeros.shard_mut(1).unwrap().cols(), 2);
        let error = zeros.shard(2).unwrap_err().to_string();
        assert_eq!(error, "place = 2: there are 2, from 0");
        let error = make(ShardLayout::rows(2, 3), &[0.0; 4]);
        assert!(error.starts_with("layout = rows 0..2, 2..2, 2..2: must be"), "{error}");
    }
}
