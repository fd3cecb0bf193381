//! Writing blocks of a matrix to a file.

use std::{ops::Range, os::unix::fs::FileExt, path::Path};

use simt::types::Type;

use super::{
    Element, Header,
    dtype::{encode, name, types},
    runs::Runs,
};
use crate::{
    error::{Error, Result},
    matrix::Layout,
    memory,
    new_file::NewFile,
};

/// Bytes converted and written at a time.
const CHUNK: usize = 256 << 10;

/// A matrix in a new file, for writing. [`Writer::finish`] gives the file its name. Dropped before
/// that, it leaves nothing.
#[derive(Debug)]
pub struct Writer {
    file: NewFile,
    header: Header,
    overflows: u64,
}

impl Writer {
    /// Makes a file with a header and zeros. `argument`: the name of the argument that gave the
    /// path.
    ///
    /// # Errors
    /// [`Error::Argument`] for a type that is not multiplied, for a path that cannot be written,
    /// and for more elements than a file can have; [`Error::Unwritten`] if the system does not
    /// write it.
    pub fn create(
        argument: &str,
        path: &Path,
        rows: usize,
        cols: usize,
        dtype: Type,
        layout: Layout,
    ) -> Result<Self> {
        if types().all(|of| of != dtype) {
            let names = types().map(name).collect::<Vec<_>>();
            let limit = format!("must be one of {}", names.join(", "));
            return Err(Error::argument("dtype", dtype, limit));
        }
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

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of finite values so far that became infinite, because they are too large for the
    /// file's type.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Writes a block from `values`, dense, in a layout, which may differ from the file's. Each is
    /// rounded to the nearest of the file's type.
    ///
    /// # Errors
    /// [`Error::Argument`] for rows or columns beyond the last, and for another number of values
    /// than the block has; [`Error::Unwritten`] if the system does not write them;
    /// [`Error::Interrupted`].
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
        // A run of the file is strided in the other layout.
        let (apart, runs_apart) = match layout {
            Layout::RowMajor => (cols.len(), all_rows),
            Layout::ColMajor => (rows.len(), all_cols),
        };
        let mut line = memory::reserved::<T>(values.len() / apart)?;
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

    /// Writes contiguous elements, from index `start` on.
    fn write_run<T: Element>(
        &mut self,
        start: u64,
        values: &[T],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Header { dtype, offset, .. } = self.header;
        let mut place = offset + start * dtype.bytes() as u64;
        let as_they_are = dtype == T::TYPE && cfg!(target_endian = "little");
        for values in values.chunks(CHUNK / dtype.bytes()) {
            crate::check_interrupt()?;
            let bytes = match as_they_are {
                true => bytemuck::cast_slice(values),
                false => {
                    let count = values.len() * dtype.bytes();
                    if bytes.len() != count {
                        *bytes = memory::filled(0, count)?;
                    }
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

    /// A [`Reader`](super::Reader) of the file so far.
    ///
    /// # Errors
    /// [`Error::Unwritten`] if the system gives no second handle.
    pub fn reader(&self) -> Result<super::Reader> {
        let file = self.file.file().try_clone();
        let file = file.map_err(|error| self.file.unwritten(&error))?;
        Ok(super::Reader::of(self.file.named(), file, self.header))
    }

    /// Gives the file its name. It replaces a file of that name in one step.
    ///
    /// # Errors
    /// [`Error::Unwritten`] if the system does not; [`Error::Interrupted`].
    pub fn finish(self) -> Result<()> {
        self.file.finish()
    }
}
