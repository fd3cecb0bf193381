//! The exercises of `docs/course`: kernels that grade themselves, and questions whose answers are
//! counted.
//!
//! `README.md` beside this crate's manifest says how to start. An exercise is
//!
//! * a kernel, in [`kernels`] or [`spoiled`], which the student edits in a copy, in [`mine`],
//! * a solution, in [`solutions`]: `src/solutions/NAME.diff` is between the two,
//! * a row in [`list`]: idea, task, hint, launch, shapes, counters, and the gate that the first
//!   kernel does not pass.
//!
//! The repository's tests check that each kernel fails by the gate of its row, and
//! that each of [`solutions`] passes all gates.

// Arrays of a thread are indexed together, as on a slide.
#![allow(clippy::needless_range_loop)]

// Each pair is compiled once, for the checked launch. Nothing here runs on a GPU.
use simt::checked as device;

pub mod attempt;
pub mod command;
mod counted;
pub mod counter;
pub mod exercise;
pub mod grade;
mod in_flight;
#[cfg(not(one_exercise))]
pub mod kernels;
pub mod list;
pub mod problem;
pub mod questions;

// `solutions`, `spoiled` and `mine`, and `kernels` of one exercise: `modules.rs` says why.
include!(concat!(env!("OUT_DIR"), "/modules.rs"));
