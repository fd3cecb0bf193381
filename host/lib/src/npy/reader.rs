//! A matrix in a file, to be read block by block.

use std::{fs::File, ops::Range, os::unix::fs::FileExt, path::Path};

use super::{Dtype, Element, Header, Meaning, dtype::decode, runs::Runs};
use crate::{
    error::{Error, Result},
    matrix::Layout,
};

/// Bytes read between two looks at whether to stop, and converted at a time: in a processor's cache.
const CHUNK: usize = 256 << 10;

/// A matrix in a file. Its blocks may be read from several threads at once.
#[derive(Debug)]
pub struct Reader {
    /// As its user has named it.
    path: Box<Path>,
    file: File,
    header: Header,
    /// Bytes behind the elements.
    surplus: u64,
}

impl Reader {
    /// Opens a file that says all of itself, and reads its header.
    ///
    /// # Errors
    /// As [`open_as`](Reader::open_as).
    pub fn open(argument: &str, path: &Path) -> Result<Self> {
        Reader::open_as(argument, path, Meaning::default())
    }

    /// Opens a file and reads its header, taking for `meaning` what that leaves open.
    ///
    /// # Errors
    /// [`Error::Argument`] for a file that cannot be opened, which is `argument`'s value; [`Error::File`] for a
    /// field of the header that is not what it must be, and for a file that is shorter than it says.
    pub fn open_as(argument: &str, path: &Path, meaning: Meaning) -> Result<Self> {
        let refuse = |why: String| Error::argument(argument, path.display(), why);
        let file = crate::open_input(argument, path)?;
        let data = file.metadata().map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let (header, surplus) = Header::read(&file, data.len(), meaning)
            .map_err(|refusal| Error::file(path, refusal.field, refusal.value, refusal.limit))?;
        Ok(Reader { surplus, ..Reader::of(path, file, header) })
    }

    /// A file that is open, and known to be what its header says.
    pub(super) fn of(path: &Path, file: File, header: Header) -> Self {
        Reader { path: path.into(), file, header, surplus: 0 }
    }

    /// What the file says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many bytes the file has behind the last element. They are ignored, as NumPy does.
    pub fn surplus_bytes(&self) -> u64 {
        self.surplus
    }

    /// The file, as its user has named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a block, dense and in that layout, whatever the file's order is. No element is rounded.
    ///
    /// # Errors
    /// [`Error::Argument`] for a block that reaches outside, and for another number of values than it has;
    /// [`Error::File`] for what cannot be read, and for elements of 64 bits where 32 are asked for;
    /// [`Error::Interrupted`].
    pub fn read<T: Element>(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [T],
    ) -> Result<()> {
        let Header { dtype, rows: all_rows, cols: all_cols, .. } = self.header;
        if dtype > T::DTYPE {
            let limit = format!("must be at most {}, or its elements would be rounded", T::DTYPE);
            return Err(Error::file(&self.path, "descr", dtype, limit));
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
        // Each run of the file is spread over the other layout.
        let run = match layout {
            Layout::RowMajor => rows.len(),
            Layout::ColMajor => cols.len(),
        };
        let apart = values.len() / run;
        let mut line = vec![T::default(); run];
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

    /// Reads elements that lie side by side, from that one on.
    fn read_run<T: Element>(
        &self,
        start: u64,
        values: &mut [T],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Header { dtype, big_endian, offset, .. } = self.header;
        let mut place = offset + start * dtype.bytes() as u64;
        let as_they_are = dtype == T::DTYPE && big_endian == cfg!(target_endian = "big");
        for values in values.chunks_mut(CHUNK / dtype.bytes()) {
            crate::check_interrupt()?;
            let count = values.len() * dtype.bytes();
            if as_they_are {
                self.read_bytes(place, bytemuck::cast_slice_mut(values))?;
            } else {
                bytes.resize(count, 0);
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
            // It had them when it was opened.
            Error::file(&self.path, "data", value, format!("cannot be read: {error}"))
        })
    }
}

impl Dtype {
    /// The type to compute with that holds the elements of all these: f32, or f64 if one of them is.
    pub fn computed(dtypes: impl IntoIterator<Item = Dtype>) -> Dtype {
        dtypes.into_iter().fold(Dtype::F4, Dtype::max)
    }
}
