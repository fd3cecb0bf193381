//! The list of all exercises: a row each, in the order of the two ladders.

use simt::check::Kind;

use crate::{attempt::Subject, counter::Counter, grade::Gate, problem::Launch};

mod hopper;
mod registers;
mod tensor_cores;
mod threads;

/// A kernel to mend or to finish.
#[derive(Debug)]
pub struct Exercise {
    /// Its name, which is also that of its kernel and of its two files.
    pub name: &'static str,
    /// The rung of one of the ladders to which it belongs.
    pub rung: &'static str,
    /// The idea, in a line.
    pub idea: &'static str,
    /// The task.
    pub task: &'static str,
    /// What helps, for whoever asks.
    pub hint: &'static str,
    /// How it is launched.
    pub launch: Launch,
    /// m, n and k of the launches.
    pub shapes: &'static [[usize; 3]],
    /// What is counted, besides findings and result.
    pub counters: &'static [Counter],
    /// The gate that the starting point does not pass.
    pub fails: Fails,
    /// The kernel that the student edits.
    pub start: Side,
    /// A solution.
    pub solution: Side,
}

/// A kernel of an exercise: the one to edit, or the solution.
#[derive(Debug)]
pub struct Side {
    /// The folder of its file.
    pub folder: &'static str,
    /// The kernel.
    pub kernel: &'static dyn Subject,
    /// Its file's text.
    pub source: &'static str,
}

/// The first gate that a starting point does not pass.
#[derive(Clone, Copy, Debug)]
pub enum Fails {
    /// Findings of just these kinds.
    Findings(&'static [Kind]),
    /// The result alone.
    Result,
    /// The counter of that number, and no other.
    Counter(usize),
}

impl Fails {
    /// The gate.
    pub fn gate(self) -> Gate {
        match self {
            Fails::Findings(_) => Gate::Findings,
            Fails::Result => Gate::Result,
            Fails::Counter(number) => Gate::Counter(number),
        }
    }
}

impl Side {
    /// The path of its file in the repository.
    pub fn file(&self, name: &str) -> String {
        format!("tests/exercises/src/{}/{name}.rs", self.folder)
    }
}

/// The rungs of both ladders that have exercises, in their order, and the page of each.
pub const RUNGS: &[(&str, &str)] = &[
    ("basic", "02-basic.md"),
    ("tiled_uncoalesced", "03-tiled_uncoalesced.md"),
    ("tiled_conflicts", "04-tiled_conflicts.md"),
    ("tiled16", "05-tiled16.md"),
    ("edges", "06-edges.md"),
    ("tiled32", "07-tiled32.md"),
    ("outer_product", "08-outer_product.md"),
    ("prefetched", "10-prefetched.md"),
    ("register_blocked", "11-register_blocked.md"),
    ("vectorised", "12-vectorised.md"),
    ("warp_tiled", "13-warp_tiled.md"),
    ("async_copy", "14-async_copy.md"),
    ("ladder", "15-ladder.md"),
    ("tensor_mma", "19-tensor-cores.md"),
    ("tensor_ldmatrix", "19-tensor-cores.md"),
    ("tensor_cp_async", "19-tensor-cores.md"),
    ("tensor_wgmma", "19-tensor-cores.md"),
    ("tensor_tma", "19-tensor-cores.md"),
    ("tensor_producer", "19-tensor-cores.md"),
    ("tensor_wide", "19-tensor-cores.md"),
    ("tensor_persistent", "19-tensor-cores.md"),
    ("tensor_cluster", "19-tensor-cores.md"),
    ("tensor_tma_store", "19-tensor-cores.md"),
];

/// All exercises.
pub fn exercises() -> impl Iterator<Item = &'static Exercise> {
    let all =
        [threads::EXERCISES, registers::EXERCISES, tensor_cores::EXERCISES, hopper::EXERCISES];
    all.into_iter().flatten()
}

/// The exercises of a rung.
pub fn of_rung(rung: &str) -> impl Iterator<Item = &'static Exercise> {
    exercises().filter(move |exercise| exercise.rung == rung)
}

/// The exercise of that name.
///
/// # Errors
/// What is wrong with the name, and the names that are like it.
pub fn find(name: &str) -> Result<&'static Exercise, String> {
    if let Some(found) = exercises().find(|exercise| exercise.name == name) {
        return Ok(found);
    }
    let like = |exercise: &&Exercise| {
        exercise.rung == name
            || name.split('_').any(|word| word.len() > 2 && exercise.name.contains(word))
    };
    let names = exercises().filter(like).map(|exercise| exercise.name).collect::<Vec<_>>();
    let near = match names.is_empty() {
        true => "`list` shows all names".to_owned(),
        false => format!("did you mean {}?", names.join(", ")),
    };
    Err(format!("there is no exercise `{name}`: {near}"))
}

/// A row: the exercise's name, and all other fields but its two sides.
macro_rules! exercise {
    ($name:ident { $($field:ident: $value:expr,)* }) => {
        $crate::list::Exercise {
            name: stringify!($name),
            start: $crate::list::exercise!(side $name, kernels),
            solution: $crate::list::exercise!(side $name, solutions),
            $($field: $value,)*
        }
    };
    (side $name:ident, $folder:ident) => {
        $crate::list::Side {
            folder: stringify!($folder),
            kernel: &$crate::$folder::$name::$name,
            source: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"), "/src/", stringify!($folder), "/", stringify!($name), ".rs"
            )),
        }
    };
}
use exercise;
