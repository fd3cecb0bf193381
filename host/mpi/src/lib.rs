//! Matrix products over the ranks of MPI, each with a GPU or, without one, its CPU.
//!
//! ```no_run
//! use gpu_gemm_mpi::{Distributed, Grid, product};
//!
//! let universe = mpi::initialize().ok_or("MPI does not start")?;
//! let grid = Grid::square(&universe.world())?;
//! let stream = grid.device()?.stream()?;
//! let of = |size, seed| {
//!     let element = move |row, col| ((row * 7 + col * seed) % 10) as f32;
//!     Distributed::from_fn(&grid, stream.device(), size, [256, 256], element)
//! };
//! let (a, b) = (of([1000, 513], 3)?, of([513, 700], 5)?);
//! let (c, report) = product(&grid, &stream, &a, &b)?;
//! if let Some(all) = c.gather(&grid, 0)? {
//!     println!("{} elements by {report:?}", all.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A matrix is in blocks over a grid of ranks ([`Distributed`]). [`multiply`] is SUMMA: for a
//! range of k at a time, the rows of the grid broadcast their parts of A, its columns those of B,
//! and each rank adds their product to its part of C. Meanwhile the next range travels.
//!
//! The library also has ScaLAPACK's `pdgemm_` and `psgemm_`, for a program that it is loaded into
//! by `LD_PRELOAD`.

mod blacs;
mod cyclic;
mod error;
mod exchange;
mod grid;
mod matrix;
mod messages;
mod pblas;
mod product;

pub use cyclic::Cyclic;
pub use error::{Error, Result};
pub use grid::Grid;
pub use matrix::{Distributed, multiply, product};
pub use pblas::{pdgemm_, psgemm_};
pub use product::{Element, Report};
