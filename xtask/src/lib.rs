//! Builds kernel crates into PTX with rustc's own NVPTX backend, and checks the result.
//!
//! The library part works for any kernel crate:
//!
//! ```no_run
//! use xtask::{PtxBuilder, Target};
//!
//! # fn main() -> anyhow::Result<()> {
//! let ptx = PtxBuilder::new("my-kernels").target(Target::SM_90A).build()?;
//! std::fs::write("my-kernels.ptx", ptx.text())?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | its one idea |
//! |---|---|
//! | [`builder`] | builds a kernel crate, and checks the PTX |
//! | [`target`] | the GPUs and the versions of PTX that kernels are built for |
//! | [`toolchain`] | finds a device compiler, and calls it |
//! | [`ptx`] | PTX text, parsed as far as the checks need |
//! | [`declaration`] | a kernel's declaration, and the directives that follow from it |
//! | [`check`] | rules for every PTX file |
//! | [`ptxas`] | NVIDIA's assembler, if there is one: registers, spills, warnings |
//! | [`listing`] | a kernel's instructions by kind and its main loop, in PTX and in machine code |
//! | `download` | downloads that are kept: verified, by one process at a time, complete or not at all |
//! | `budgets` | limits of files, PTX and builds |
//! | `ptx_commits` | a commit that changes much PTX says why |
//! | `unsafe_sites` | every unsafe block has a comment `SAFETY:` |
//! | `units` | the kernels are compiled once, whichever packages a command has |
//! | `circles` | a crate's files use each other in one direction |
//! | [`build_ptx`], [`new`], [`inspect`], [`sass`], [`doctor`], [`course`], [`site`], [`browser`], [`tidy`], [`licences`], [`wheel`], [`ci`], [`times`] | the tasks of `cargo xtask` |

#![warn(clippy::print_stderr, clippy::print_stdout)] // they panic: `say` and `note` do not

mod architectures;
pub mod browser;
mod budgets;
pub mod build_ptx;
pub mod builder;
pub mod check;
pub mod ci;
mod circles;
pub mod course;
mod cubin;
mod debian;
pub mod declaration;
pub mod doctor;
mod download;
mod environment;
mod files;
pub mod inspect;
pub mod licences;
mod linker;
pub mod listing;
mod machine;
pub mod new;
mod plain;
pub mod ptx;
mod ptx_commits;
pub mod ptxas;
mod resources;
mod rustup;
pub mod sass;
pub mod site;
pub mod target;
pub mod tidy;
pub mod times;
mod tool;
pub mod toolchain;
mod units;
mod unsafe_sites;
mod version;
pub mod wheel;

pub use builder::{Ptx, PtxBuilder};
pub use environment::{note, run_package, say, workspace_root};
pub use target::Target;
pub use toolchain::{Toolchain, ToolchainAbsent};
