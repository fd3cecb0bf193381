//! The grid of ranks, and the device of each.

use std::env;

use gpu_gemm::Device;
use libloading::os::unix::Library;
use mpi::{
    Rank,
    collective::SystemOperation,
    topology::{Color, SimpleCommunicator},
    traits::{Communicator, CommunicatorCollectives, Root},
};

use crate::error::{Error, Result};

/// The variable that makes MPI read and write host memory alone.
const STAGED: &str = "GPU_GEMM_MPI_STAGED";

/// The ranks of a communicator as a grid. It has communicators of its own: its messages and the
/// caller's do not meet.
pub struct Grid {
    /// All ranks, row after row.
    pub(crate) all: SimpleCommunicator,
    /// The ranks of this rank's row, and those of its column.
    pub(crate) lines: [SimpleCommunicator; 2],
    /// Rows and columns of the grid.
    pub(crate) size: [usize; 2],
    /// This rank's row and column.
    pub(crate) own: [usize; 2],
    /// This rank's number on its machine.
    on_machine: usize,
}

impl Grid {
    /// The ranks of a communicator, row after row. All of them call this.
    ///
    /// # Errors
    /// [`Error::Gemm`] if the communicator has not `rows * cols` ranks.
    pub fn new(ranks: &impl Communicator, rows: usize, cols: usize) -> Result<Self> {
        let rank = ranks.rank() as usize;
        Grid::at(ranks, [rows, cols], [rank / cols.max(1), rank % cols.max(1)])
    }

    /// The grid with the most rows that are no more than its columns.
    ///
    /// # Errors
    /// None that is known.
    pub fn square(ranks: &impl Communicator) -> Result<Self> {
        let count = ranks.size() as usize;
        let rows = (1..=count.isqrt()).rev().find(|rows| count.is_multiple_of(*rows)).unwrap_or(1);
        Grid::new(ranks, rows, count / rows)
    }

    /// As `new`, with this rank's row and column.
    pub(crate) fn at(ranks: &impl Communicator, size: [usize; 2], own: [usize; 2]) -> Result<Self> {
        let ([rows, cols], [row, col]) = (size, own);
        if rows.checked_mul(cols) != Some(ranks.size() as usize) {
            let limit = format!("must have as many places as there are ranks, {}", ranks.size());
            return Err(Error::argument("the grid", format!("{rows} x {cols}"), limit));
        }
        let split = |of: &SimpleCommunicator, color: usize, key: usize| {
            let line = of.split_by_color_with_key(Color::with_value(color as Rank), key as Rank);
            line.ok_or(Error::Mpi { call: "MPI_Comm_split", code: 0 })
        };
        let all = ranks.split_by_color_with_key(Color::with_value(0), (row * cols + col) as Rank);
        let all = all.ok_or(Error::Mpi { call: "MPI_Comm_split", code: 0 })?;
        let lines = [split(&all, row, col)?, split(&all, col, row)?];
        let on_machine = all.split_shared(0).rank() as usize;
        Ok(Grid { all, lines, size, own, on_machine })
    }

    /// Rows and columns of the grid.
    pub fn size(&self) -> [usize; 2] {
        self.size
    }

    /// This rank's row and column.
    pub fn own(&self) -> [usize; 2] {
        self.own
    }

    /// All ranks of the grid, row after row.
    pub fn communicator(&self) -> &SimpleCommunicator {
        &self.all
    }

    pub(crate) fn ranks(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// The row and the column of a rank.
    pub(crate) fn place(&self, rank: usize) -> [usize; 2] {
        [rank / self.size[1], rank % self.size[1]]
    }

    /// The rank in a row and a column.
    pub(crate) fn rank_at(&self, [row, col]: [usize; 2]) -> usize {
        row * self.size[1] + col
    }

    /// Makes the error of the first rank that has one the error of all. All ranks call this.
    ///
    /// # Errors
    /// This rank's own, or [`Error::Rank`].
    pub fn agree<T>(&self, result: Result<T>) -> Result<T> {
        let all = &self.all;
        let own = if result.is_err() { all.rank() } else { all.size() };
        let mut first = own;
        all.all_reduce_into(&own, &mut first, SystemOperation::min());
        if first == all.size() {
            return result;
        }
        let failed = all.process_at_rank(first);
        let text = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let mut text = text.into_bytes();
        let code = result.as_ref().err().map_or(0, Error::exit_code);
        let mut head = [text.len(), usize::from(code)];
        failed.broadcast_into(&mut head[..]);
        let [len, code] = head;
        text.resize(len, 0);
        failed.broadcast_into(&mut text[..]);
        match result {
            Err(error) if first == all.rank() => Err(error),
            _ => {
                let text = String::from_utf8_lossy(&text).into_owned();
                Err(Error::Rank { rank: first, text, code: code as u8 })
            }
        }
    }

    /// This rank's device: the ranks of a machine take its GPUs in turn. Without a GPU, the CPU.
    ///
    /// # Errors
    /// Those of [`Device::cuda`].
    pub fn device(&self) -> Result<Device> {
        match Device::cuda_count() {
            Ok(count) if count > 0 => Ok(Device::cuda(self.on_machine % count)?),
            _ => Ok(Device::cpu()),
        }
    }
}

/// Whether MPI reads and writes the device's memory itself: it is host memory, or MPI says that it
/// knows CUDA's. `GPU_GEMM_MPI_STAGED=1` says no.
pub(crate) fn is_direct(device: &Device) -> bool {
    let is_staged = env::var_os(STAGED).is_some_and(|value| !value.is_empty() && value != "0");
    !is_staged && (!device.is_cuda() || knows_cuda())
}

fn knows_cuda() -> bool {
    let program = Library::this();
    // SAFETY: the function has this type in the MPIs that have it: Open MPI, and those from it.
    let query =
        unsafe { program.get::<unsafe extern "C" fn() -> i32>(b"MPIX_Query_cuda_support\0") };
    // SAFETY: it has no conditions. The program has it loaded while this runs.
    query.is_ok_and(|query| unsafe { query() } == 1)
}
