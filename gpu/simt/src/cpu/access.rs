//! Memory accesses of a thread: their kinds, and why one is refused.

use std::panic::Location;

use crate::count_of;

/// What a thread does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A read, or a read and a write, in one indivisible step.
    Atomic,
    /// A write of the same kind, which reads nothing.
    AtomicStore,
}

/// Why an access is not carried out.
#[derive(Clone, Copy, Debug)]
pub enum Refused {
    /// It is outside a buffer or an array.
    Outside {
        /// The first element.
        index: usize,
        /// The number of elements accessed.
        count: usize,
        /// The number of elements of the buffer or array.
        len: usize,
    },
    /// It is outside a shared array that is indexed by row and column.
    Outside2d {
        /// Row and column.
        index: (usize, usize),
        /// The array's rows and columns.
        shape: (usize, usize),
    },
    /// It is to several elements at an address that is no multiple of their bytes.
    Misaligned {
        /// The first element.
        index: usize,
        /// Bytes of all elements.
        bytes: usize,
    },
    /// It is a bulk copy whose address, or number of bytes, is no multiple of 16; or of no bytes.
    Bulk {
        /// The first element.
        index: usize,
        /// Bytes of all elements.
        bytes: usize,
    },
    /// It is a TMA copy of a box whose first column is not aligned to 16 bytes.
    BoxColumn {
        /// The first column.
        col: u32,
        /// Bytes of an element.
        element: usize,
    },
}

fn are(elements: usize) -> String {
    let are = if elements == 1 { "is" } else { "are" };
    format!("{are} {}", count_of(elements, "element"))
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match *self {
            Refused::Outside { index, count: 1, len } => {
                write!(f, "index {index} is outside: there {}", are(len))
            }
            Refused::Outside { index, count, len } => {
                write!(f, "{count} elements from index {index} on are outside: there {}", are(len))
            }
            Refused::Outside2d { index, shape } => write!(
                f,
                "index {index:?} is outside: the shared array has {shape:?} rows and columns"
            ),
            Refused::Misaligned { index, bytes } => {
                let bits = 8 * bytes;
                write!(f, "{bits}-bit access at index {index}: not {bytes}-byte aligned")
            }
            Refused::Bulk { index, bytes } => write!(
                f,
                "a bulk copy of {bytes} bytes from index {index} on: the address and the bytes must be multiples \
                 of sixteen, and not 0"
            ),
            Refused::BoxColumn { col, element } => write!(
                f,
                "a box that begins at column {col} of elements of {element} bytes: it must begin at a multiple \
                 of sixteen bytes of the row"
            ),
        }
    }
}

/// A shared array as a kernel declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayDeclaration {
    /// Bytes of an element.
    pub element: usize,
    /// Rows and columns. Dynamic shared memory has one column.
    pub shape: (usize, usize),
    /// Whether it is the dynamic shared memory, whose size the launch gives.
    pub dynamic: bool,
    /// Where the source declares it.
    pub place: &'static Location<'static>,
}

/// Ends the launch. The return type `!` is needed where it is inlined: the compiler does not unroll
/// a loop to which this might return. The functions below take plain numbers, because a `Refused`
/// would take space on the stack of every thread, and that costs time at every barrier.
#[inline(always)]
#[track_caller]
pub(super) fn end(refused: Refused) -> ! {
    match refused {
        Refused::Outside { index, count, len } => outside(index, count, len),
        Refused::Outside2d { index, shape } => outside_2d(index.0, index.1, shape.0, shape.1),
        Refused::Misaligned { index, bytes } => misaligned(index, bytes),
        Refused::Bulk { .. } | Refused::BoxColumn { .. } => panic!("{refused}"),
    }
}

#[cold]
#[track_caller]
fn outside(index: usize, count: usize, len: usize) -> ! {
    panic!("{}", Refused::Outside { index, count, len })
}

#[cold]
#[track_caller]
fn outside_2d(row: usize, col: usize, rows: usize, cols: usize) -> ! {
    panic!("{}", Refused::Outside2d { index: (row, col), shape: (rows, cols) })
}

#[cold]
#[track_caller]
fn misaligned(index: usize, bytes: usize) -> ! {
    panic!("{}", Refused::Misaligned { index, bytes })
}
