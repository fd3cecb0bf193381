//! A matrix that becomes a file, block by block.

use std::{ops::Range, os::unix::fs::FileExt, path::Path};

use super::{Dtype, Element, Header, dtype::encode, runs::Runs};
use crate::{
    error::{Error, Result},
    matrix::Layout,
    new_file::NewFile,
};

/// Bytes converted and written at a time.
const CHUNK: usize = 256 << 10;

/// A file that will be there when all of it is ([`Writer::finish`]); dropped before, it leaves nothing.
#[derive(Debug)]
pub struct Writer {
    file: NewFile,
    header: Header,
    overflows: u64,
}

impl Writer {
    /// Makes sure that the file can be written, and gives it its header and its length. `argument` is the name
    /// under which messages know its path. An element that nobody writes is zero.
    ///
    /// # Errors
    /// [`Error::Argument`] for a file that cannot be written there; [`Error::Unwritten`] where the system does not write it.
    pub fn create(
        argument: &str,
        path: &Path,
        rows: usize,
        cols: usize,
        dtype: Dtype,
        layout: Layout,
    ) -> Result<Self> {
        let elements = rows.checked_mul(cols).and_then(|len| len.checked_mul(dtype.bytes()));
        if elements.is_none_or(|bytes| bytes > i64::MAX as usize / 2) {
            let value = format!("{rows} * {cols}");
            return Err(Error::argument("rows * cols", value, "no file has that many elements"));
        }
        let file = NewFile::create(argument, path)?;
        let header = Header { dtype, big_endian: false, layout, rows, cols, offset: 0 };
        let (header, bytes) = header.write();
        let begin = || {
            file.file().write_all_at(&bytes, 0)?;
            file.file().set_len(header.offset + header.data_bytes())
        };
        begin().map_err(|error| file.unwritten(&error))?;
        Ok(Writer { file, header, overflows: 0 })
    }

    /// What the file says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Finite values that were written as infinities so far, because the file's type has none so large.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Writes a block whose values are dense and in that layout, whatever the file's order is, each rounded to
    /// the nearest of the file's type.
    ///
    /// # Errors
    /// [`Error::Argument`] for a block that reaches outside, and for another number of values than it has;
    /// [`Error::Unwritten`] for what the system does not write; [`Error::Interrupted`].
    pub fn write<T: Element>(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &[T],
    ) -> Result<()> {
        let Header { rows: all_rows, cols: all_cols, .. } = self.header;
        let runs = Runs::of(self.header.layout, [all_rows, all_cols], &rows, &cols, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if layout == self.header.layout {
            for (start, values) in runs.starts().zip(values.chunks(runs.len)) {
                self.write_run(start, values, &mut bytes)?;
            }
            return Ok(());
        }
        // Each run of the file is gathered from the other layout.
        let (apart, runs_apart) = match layout {
            Layout::RowMajor => (cols.len(), all_rows),
            Layout::ColMajor => (rows.len(), all_cols),
        };
        let mut line = Vec::<T>::with_capacity(values.len() / apart);
        for index in 0..apart {
            line.clear();
            line.extend(values[index..].iter().step_by(apart));
            let start = match layout {
                Layout::RowMajor => (cols.start + index) * runs_apart + rows.start,
                Layout::ColMajor => (rows.start + index) * runs_apart + cols.start,
            };
            self.write_run(start as u64, &line, &mut bytes)?;
        }
        Ok(())
    }

    /// Writes elements that lie side by side, from that one on.
    fn write_run<T: Element>(
        &mut self,
        start: u64,
        values: &[T],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Header { dtype, offset, .. } = self.header;
        let mut place = offset + start * dtype.bytes() as u64;
        let as_they_are = dtype == T::DTYPE && cfg!(target_endian = "little");
        for values in values.chunks(CHUNK / dtype.bytes()) {
            crate::check_interrupt()?;
            let bytes = match as_they_are {
                true => bytemuck::cast_slice(values),
                false => {
                    bytes.resize(values.len() * dtype.bytes(), 0);
                    self.overflows += encode(dtype, values, bytes);
                    &bytes[..]
                }
            };
            let written = self.file.file().write_all_at(bytes, place);
            written.map_err(|error| self.file.unwritten(&error))?;
            place += bytes.len() as u64;
        }
        Ok(())
    }

    /// Reads back what was written, as a [`Reader`](super::Reader) of the file would.
    ///
    /// # Errors
    /// [`Error::Unwritten`] where the system does not.
    pub fn reader(&self) -> Result<super::Reader> {
        let file = self.file.file().try_clone();
        let file = file.map_err(|error| self.file.unwritten(&error))?;
        Ok(super::Reader::of(self.file.named(), file, self.header))
    }

    /// Puts the file in its place, where it replaces what is there in one step.
    ///
    /// # Errors
    /// [`Error::Unwritten`] where the system does not; [`Error::Interrupted`].
    pub fn finish(self) -> Result<()> {
        self.file.finish()
    }
}
