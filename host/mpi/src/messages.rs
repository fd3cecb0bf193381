//! Messages of parts of matrices, without packing: MPI reads and writes the elements in their
//! matrices.

use std::mem::MaybeUninit;

use mpi::{
    Rank,
    ffi::{self, MPI_Aint, MPI_Datatype, MPI_Request},
    topology::SimpleCommunicator,
    traits::{AsRaw, Equivalence},
};

use crate::error::{Error, Result};

/// Elements of a column-major matrix: those in some of its rows and some of its columns. They are
/// sent column after column.
pub(crate) struct Part<T> {
    /// The matrix's first element, in memory that MPI reads and writes.
    pub start: *mut T,
    /// From a column to the next, in elements.
    pub leading: usize,
    /// The runs of rows.
    pub rows: Vec<[usize; 2]>,
    /// The runs of columns.
    pub cols: Vec<[usize; 2]>,
}

/// Messages on their way. Drop waits for them.
#[derive(Default)]
pub(crate) struct Messages {
    requests: Vec<MPI_Request>,
}

impl Messages {
    /// Begins to send a part to a rank.
    ///
    /// # Safety
    /// 1. The part's elements can be read, and nothing writes them, until `wait` or drop.
    pub unsafe fn send<T: Equivalence>(
        &mut self,
        part: &Part<T>,
        to: Rank,
        tag: i32,
        ranks: &SimpleCommunicator,
    ) -> Result<()> {
        let (of, ranks) = (part.type_of()?, ranks.as_raw());
        self.begin("MPI_Isend", |request| {
            // SAFETY: the type's elements are the part's, whose memory the caller answers for.
            unsafe { ffi::MPI_Isend(part.start.cast(), 1, of.0, to, tag, ranks, request) }
        })
    }

    /// Begins to receive a part from a rank.
    ///
    /// # Safety
    /// 1. The part's elements can be written, and nothing else uses them, until `wait` or drop.
    pub unsafe fn receive<T: Equivalence>(
        &mut self,
        part: &Part<T>,
        from: Rank,
        tag: i32,
        ranks: &SimpleCommunicator,
    ) -> Result<()> {
        let (of, ranks) = (part.type_of()?, ranks.as_raw());
        self.begin("MPI_Irecv", |request| {
            // SAFETY: the type's elements are the part's, whose memory the caller answers for.
            unsafe { ffi::MPI_Irecv(part.start.cast(), 1, of.0, from, tag, ranks, request) }
        })
    }

    /// Begins to broadcast a part of `root` to parts of the other ranks.
    ///
    /// # Safety
    /// As of [`send`](Self::send) at the root, and of [`receive`](Self::receive) elsewhere.
    pub unsafe fn broadcast<T: Equivalence>(
        &mut self,
        part: &Part<T>,
        root: Rank,
        ranks: &SimpleCommunicator,
    ) -> Result<()> {
        let (of, ranks) = (part.type_of()?, ranks.as_raw());
        self.begin("MPI_Ibcast", |request| {
            // SAFETY: the type's elements are the part's, whose memory the caller answers for.
            unsafe { ffi::MPI_Ibcast(part.start.cast(), 1, of.0, root, ranks, request) }
        })
    }

    fn begin(
        &mut self,
        call: &'static str,
        begin: impl FnOnce(*mut MPI_Request) -> i32,
    ) -> Result<()> {
        self.requests.push(made(call, begin)?);
        Ok(())
    }

    /// Waits for all of them.
    ///
    /// # Errors
    /// MPI's.
    pub fn wait(&mut self) -> Result<()> {
        let mut requests = std::mem::take(&mut self.requests);
        let count = int("messages", requests.len())?;
        // SAFETY: requests of this rank, each waited for once. MPI allows to ignore the statuses.
        done("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(count, requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
        })
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // There is nobody to tell: who wants to know has waited.
        let _ = self.wait();
    }
}

/// A type of MPI. Messages that were begun with it go on without it.
struct PartType(MPI_Datatype);

impl Drop for PartType {
    fn drop(&mut self) {
        // SAFETY: a type that MPI has made, freed once.
        unsafe { ffi::MPI_Type_free(&raw mut self.0) };
    }
}

impl<T: Equivalence> Part<T> {
    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.cols.is_empty()
    }

    fn type_of(&self) -> Result<PartType> {
        let of_runs = |at: usize| self.rows.iter().map(move |run| int("rows", run[at]));
        let starts = of_runs(0).collect::<Result<Vec<_>>>()?;
        let lens = of_runs(1).collect::<Result<Vec<_>>>()?;
        let step = self.leading * size_of::<T>();
        let columns = self.cols.iter().flat_map(|&[start, len]| start..start + len);
        let columns = columns.map(|col| (col * step) as MPI_Aint).collect::<Vec<_>>();
        let (runs, cols) = (int("runs of rows", lens.len())?, int("columns", columns.len())?);
        let element = T::equivalent_datatype().as_raw();
        let column = made("MPI_Type_indexed", |column| {
            // SAFETY: the arrays have as many elements as `runs` says, and MPI copies them.
            unsafe { ffi::MPI_Type_indexed(runs, lens.as_ptr(), starts.as_ptr(), element, column) }
        });
        let column = column.map(PartType)?;
        let part = made("MPI_Type_create_hindexed_block", |part| {
            // SAFETY: the array has as many elements as `cols` says, and MPI copies it.
            unsafe {
                ffi::MPI_Type_create_hindexed_block(cols, 1, columns.as_ptr(), column.0, part)
            }
        });
        let mut part = part.map(PartType)?;
        // SAFETY: a type that MPI has just made.
        done("MPI_Type_commit", unsafe { ffi::MPI_Type_commit(&raw mut part.0) })?;
        Ok(part)
    }
}

/// What a function of MPI makes.
fn made<H>(call: &'static str, make: impl FnOnce(*mut H) -> i32) -> Result<H> {
    let mut handle = MaybeUninit::uninit();
    done(call, make(handle.as_mut_ptr()))?;
    // SAFETY: the call has succeeded, so it has written the handle.
    Ok(unsafe { handle.assume_init() })
}

fn done(call: &'static str, code: i32) -> Result<()> {
    if code == ffi::MPI_SUCCESS as i32 { Ok(()) } else { Err(Error::Mpi { call, code }) }
}

/// A number that is an `int` for MPI.
pub(crate) fn int(what: &str, number: usize) -> Result<i32> {
    i32::try_from(number)
        .map_err(|_| Error::argument(what, number, format!("of a rank are at most {}", i32::MAX)))
}
