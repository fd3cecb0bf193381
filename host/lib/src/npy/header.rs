//! The header of a file.
//!
//! The parser is our own. The crates `npyz` 0.9 and `ndarray-npy` 0.10 parse all of Python's
//! literals. A header of twenty opening brackets takes them half a minute, and each further one
//! doubles that. `npyz` panics for a shape whose product overflows. Their errors do not name the
//! field.

use std::{fs::File, os::unix::fs::FileExt};

use simt::types::Type;

use super::{
    Meaning, Vector, descr,
    dtype::name,
    literal::{entries, without_comments},
    refusal::{Result, refuse, shown},
};
use crate::matrix::Layout;

/// The most bytes of text. A header of two dimensions has about a hundred. NumPy refuses ten
/// thousand.
const MOST_TEXT: u32 = 1 << 16;
/// The beginning of every file.
const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy aligns the elements to this.
const ALIGN: usize = 64;

/// The header of a file: type, layout and shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The element type.
    pub dtype: Type,
    /// Whether elements are big-endian.
    pub big_endian: bool,
    /// Row-major: C order. Column-major: Fortran order.
    pub layout: Layout,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub cols: usize,
    /// The first element's offset in the file, in bytes.
    pub offset: u64,
}

impl Header {
    /// Bytes of all elements.
    pub fn data_bytes(&self) -> u64 {
        // This does not overflow: `read` has checked it, and `write` is called for fewer.
        self.rows as u64 * self.cols as u64 * self.dtype.bytes() as u64
    }

    /// Reads the header of a file with `len` bytes, and the number of bytes after the last element.
    /// A file that is too short is refused.
    pub(super) fn read(file: &File, len: u64, meaning: Meaning) -> Result<(Self, u64)> {
        let mut start = [0; 12];
        let there = len.min(12) as usize;
        read_at(file, &mut start[..there], 0)?;
        let magic = &start[..there.min(MAGIC.len())];
        if magic != MAGIC {
            let value = format!("\"{}\"", magic.escape_ascii());
            return refuse("magic", value, "must be \"\\x93NUMPY\": this is no .npy file");
        }
        // A file that ends here is refused below: any length is too long for it.
        let (text_start, text_len) = match (start[6], start[7]) {
            _ if there < 8 => (12, 0),
            (1, 0) => (10, u32::from(u16::from_le_bytes([start[8], start[9]]))),
            (2 | 3, 0) => (12, u32::from_le_bytes([start[8], start[9], start[10], start[11]])),
            (major, minor) => {
                let value = format!("{major}.{minor}");
                return refuse("version", value, "must be 1.0, 2.0 or 3.0");
            }
        };
        let offset = text_start + u64::from(text_len);
        if len < offset {
            let limit = format!("ends within its header, which says that it has {offset}");
            return refuse("file", format_args!("{len} bytes"), limit);
        }
        if text_len > MOST_TEXT {
            let limit = format!("must be at most {MOST_TEXT}");
            return refuse("header length", text_len, limit);
        }
        let mut text = vec![0; text_len as usize];
        read_at(file, &mut text, text_start)?;
        let header = Header { offset, ..parse(&text, meaning)? };
        let (there, needed) = (len - offset, header.data_bytes());
        let Some(surplus) = there.checked_sub(needed) else {
            let Header { dtype, rows, cols, .. } = header;
            let limit =
                format!("truncated: {rows} x {cols} elements of {} have {needed}", name(dtype));
            return refuse("data", format_args!("{there} bytes"), limit);
        };
        Ok((header, surplus))
    }

    /// The bytes before the first element, and this header with their number.
    pub(super) fn write(self) -> (Self, Vec<u8>) {
        let Header { dtype, rows, cols, .. } = self;
        let order = if self.layout == Layout::ColMajor { "True" } else { "False" };
        let (endian, code) = (if self.big_endian { '>' } else { '<' }, dtype.numpy_code());
        let mut text = format!(
            "{{'descr': '{endian}{code}', 'fortran_order': {order}, 'shape': ({rows}, {cols}), }}"
        );
        let before = MAGIC.len() + 4;
        let end = (before + text.len() + 1).next_multiple_of(ALIGN);
        text.extend(std::iter::repeat_n(' ', end - before - text.len() - 1));
        text.push('\n');
        // With two numbers it is far shorter than 65535 bytes, the limit of version 1.0.
        let len = (text.len() as u16).to_le_bytes();
        let bytes = [MAGIC, &[1, 0], &len, text.as_bytes()].concat();
        (Header { offset: end as u64, ..self }, bytes)
    }
}

fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> Result<()> {
    file.read_exact_at(bytes, offset).or_else(|error| {
        let value = format!("{} bytes from {offset} on", bytes.len());
        refuse("header", value, format_args!("cannot be read: {error}"))
    })
}

/// Parses the text of a header. The offset of the elements is not known yet.
fn parse(text: &[u8], meaning: Meaning) -> Result<Header> {
    let text = &*without_comments(text);
    let (mut descr, mut order, mut shape) = (None, None, None);
    for (key, value) in entries(text)? {
        let (field, place) = match key {
            b"descr" => ("descr", &mut descr),
            b"fortran_order" => ("fortran_order", &mut order),
            b"shape" => ("shape", &mut shape),
            _ => {
                return refuse(
                    "header",
                    shown(key),
                    "must have descr, fortran_order and shape alone",
                );
            }
        };
        if place.replace(value).is_some() {
            return refuse(field, shown(value), "must be there once");
        }
    }
    let there = |field: &'static str, value: Option<_>| match value {
        Some(value) => Ok(value),
        None => refuse("header", shown(text), format_args!("must have {field}")),
    };
    let (descr, order, shape) =
        (there("descr", descr)?, there("fortran_order", order)?, there("shape", shape)?);
    let (dtype, big_endian) = descr::parse(descr, meaning.bf16)?;
    let layout = match order {
        b"True" => Layout::ColMajor,
        b"False" => Layout::RowMajor,
        other => return refuse("fortran_order", shown(other), "must be True or False"),
    };
    let [rows, cols] = parse_shape(shape, meaning.vector)?;
    let elements = rows.checked_mul(cols).and_then(|len| len.checked_mul(dtype.bytes() as u64));
    if elements.is_none_or(|bytes| bytes > i64::MAX as u64) {
        return refuse("shape", shown(shape), "no file has that many elements");
    }
    let (rows, cols) = (rows as usize, cols as usize);
    Ok(Header { dtype, big_endian, layout, rows, cols, offset: 0 })
}

fn parse_shape(shape: &[u8], vector: Option<Vector>) -> Result<[u64; 2]> {
    let limit = "must be two numbers: a matrix has rows and columns";
    let inner = shape.strip_prefix(b"(").and_then(|shape| shape.strip_suffix(b")"));
    let Some(inner) = inner else { return refuse("shape", shown(shape), limit) };
    let mut parts = inner.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect::<Vec<_>>();
    // `(3,)` and `(3, 4,)` end with a comma.
    let ends_with_comma = parts.pop_if(|last| last.is_empty()).is_some();
    let mut numbers = Vec::new();
    for part in &parts {
        // Python 2 wrote its long integers with an L.
        let digits = part.strip_suffix(b"L").unwrap_or(part);
        // In Python `02` is no number, but `00` is one.
        if digits.starts_with(b"0") && digits.iter().any(|digit| (b'1'..=b'9').contains(digit)) {
            return refuse("shape", shown(shape), "must be whole numbers without leading zeros");
        }
        let number = match !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
            true => str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok()),
            false => return refuse("shape", shown(shape), "must be whole numbers"),
        };
        let Some(number) = number else {
            return refuse("shape", shown(shape), "no file has that many elements");
        };
        numbers.push(number);
    }
    if let ([len], false) = (&numbers[..], ends_with_comma) {
        let limit = format!("must be a tuple: of one dimension ({len},)");
        return refuse("shape", shown(shape), limit);
    }
    match (&numbers[..], vector) {
        (&[rows, cols], _) => Ok([rows, cols]),
        (&[len], Some(Vector::Row)) => Ok([1, len]),
        (&[len], Some(Vector::Column)) => Ok([len, 1]),
        _ => {
            let limit = format!("{limit}, and this array has {} dimensions", numbers.len());
            refuse("shape", shown(shape), limit)
        }
    }
}
