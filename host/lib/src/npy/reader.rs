//! Reading blocks of a matrix in a file.

use std::{fs::File, ops::Range, os::unix::fs::FileExt, path::Path};

use super::{
    Element, Header, Meaning,
    dtype::{decode, name},
    runs::Runs,
};
use crate::{
    error::{Error, Result},
    matrix::Layout,
    memory,
};

/// Bytes read and converted at a time. They fit in a core's cache. Between two chunks an interrupt
/// is checked.
const CHUNK: usize = 256 << 10;

/// A matrix in a file, for reading. Several threads can read blocks at the same time.
#[derive(Debug)]
pub struct Reader {
    /// The path as the user gave it.
    path: Box<Path>,
    file: File,
    header: Header,
    /// Bytes after the last element.
    surplus: u64,
}

impl Reader {
    /// Opens a file and reads its header. `argument`: the name of the argument that gave the path.
    ///
    /// # Errors
    /// As [`open_as`](Reader::open_as).
    pub fn open(argument: &str, path: &Path) -> Result<Self> {
        Reader::open_as(argument, path, Meaning::default())
    }

    /// As [`open`](Reader::open). `meaning`: what arrays of one dimension and raw bytes mean.
    ///
    /// # Errors
    /// [`Error::Argument`] for a file that cannot be opened; [`Error::File`] for a wrong field of
    /// the header, and for a file that is shorter than its header says.
    pub fn open_as(argument: &str, path: &Path, meaning: Meaning) -> Result<Self> {
        let refuse = |why: String| Error::argument(argument, path.display(), why);
        let file = crate::open_input(argument, path)?;
        let data = file.metadata().map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let (header, surplus) = Header::read(&file, data.len(), meaning)
            .map_err(|refusal| Error::file(path, refusal.field, refusal.value, refusal.limit))?;
        Ok(Reader { surplus, ..Reader::of(path, file, header) })
    }

    /// A reader of an open file, whose header is known to be true.
    pub(super) fn of(path: &Path, file: File, header: Header) -> Self {
        Reader { path: path.into(), file, header, surplus: 0 }
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of bytes after the last element. They are ignored, as by NumPy.
    pub fn surplus_bytes(&self) -> u64 {
        self.surplus
    }

    /// The path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a block to `values`, dense, in a layout, which may differ from the file's. No element
    /// is rounded.
    ///
    /// # Errors
    /// [`Error::Argument`] for rows or columns beyond the last, and for another number of values
    /// than the block has; [`Error::File`] for a file that cannot be read, and for elements of 64
    /// bits if `T` is f32; [`Error::Interrupted`].
    pub fn read<T: Element>(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [T],
    ) -> Result<()> {
        let Header { dtype, rows: all_rows, cols: all_cols, .. } = self.header;
        if dtype.bytes() > T::TYPE.bytes() {
            let most = name(T::TYPE);
            let limit = format!("must be at most {most}, or its elements would be rounded");
            return Err(Error::file(&self.path, "descr", name(dtype), limit));
        }
        let size = [all_rows, all_cols];
        let runs = Runs::of(self.header.layout, size, &rows, &cols, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if layout == self.header.layout {
            for (start, values) in runs.starts().zip(values.chunks_mut(runs.len)) {
                self.read_run(start, values, &mut bytes)?;
            }
            return Ok(());
        }
        // A run of the file is strided in the other layout.
        let run = match layout {
            Layout::RowMajor => rows.len(),
            Layout::ColMajor => cols.len(),
        };
        let apart = values.len() / run;
        let mut line = memory::filled(T::default(), run)?;
        for index in 0..apart {
            let start = match layout {
                Layout::RowMajor => (cols.start + index) * all_rows + rows.start,
                Layout::ColMajor => (rows.start + index) * all_cols + cols.start,
            };
            self.read_run(start as u64, &mut line, &mut bytes)?;
            for (place, value) in values[index..].iter_mut().step_by(apart).zip(&line) {
                *place = *value;
            }
        }
        Ok(())
    }

    /// Reads contiguous elements, from index `start` on.
    fn read_run<T: Element>(
        &self,
        start: u64,
        values: &mut [T],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Header { dtype, big_endian, offset, .. } = self.header;
        let mut place = offset + start * dtype.bytes() as u64;
        let as_they_are = dtype == T::TYPE && big_endian == cfg!(target_endian = "big");
        for values in values.chunks_mut(CHUNK / dtype.bytes()) {
            crate::check_interrupt()?;
            let count = values.len() * dtype.bytes();
            if as_they_are {
                self.read_bytes(place, bytemuck::cast_slice_mut(values))?;
            } else {
                if bytes.len() != count {
                    *bytes = memory::filled(0, count)?;
                }
                self.read_bytes(place, bytes)?;
                decode(dtype, big_endian, bytes, values);
            }
            place += count as u64;
        }
        Ok(())
    }

    fn read_bytes(&self, place: u64, bytes: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(bytes, place).map_err(|error| {
            let value = format!("{} bytes from {place} on", bytes.len());
            // The file had them when it was opened.
            Error::file(&self.path, "data", value, format!("cannot be read: {error}"))
        })
    }
}
