//! An exercise: a row of the list, its two kernels, and the gates that a kernel must pass.

use simt::check::Kind;

use crate::{attempt::Subject, counter::Counter, problem::Launch};

/// What a kernel must pass, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The checker finds nothing.
    Findings,
    /// The result is right.
    Result,
    /// A counter is within its limit: its number in the exercise's list.
    Counter(usize),
}

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
    /// The kernel that the student begins with.
    pub start: Side,
    /// A solution.
    pub solution: Side,
}

/// The folder of the exercises that the student has begun.
pub const MINE: &str = "tests/exercises/mine";

/// A kernel of an exercise: the one to begin with, the student's, or the solution.
#[derive(Debug)]
pub struct Side {
    /// The folder of its file, in the repository or where it was written.
    pub folder: &'static str,
    /// The kernel.
    pub kernel: &'static dyn Subject,
    /// Its file's text.
    pub source: &'static str,
}

/// Stands for a kernel that is not compiled, because `EXERCISE` names another one.
#[cfg(one_exercise)]
#[derive(Debug)]
pub struct NotCompiled;

/// The only one.
#[cfg(one_exercise)]
pub const NOT_COMPILED: NotCompiled = NotCompiled;

#[cfg(one_exercise)]
impl Subject for NotCompiled {
    fn declaration(&self) -> &simt::Declaration {
        const NONE: &simt::Declaration = &simt::Declaration::new("", &[], ("", 0));
        NONE
    }

    fn launch(
        &self,
        _: &Launch,
        _: [usize; 3],
        _: &crate::problem::Data,
        _: &simt::check::Options,
    ) -> Result<(simt::check::Report, Vec<f64>), String> {
        Err(format!("EXERCISE={} compiles no other", env!("EXERCISE")))
    }
}

/// The first gate that a starting point does not pass.
#[derive(Clone, Copy, Debug)]
pub enum Fails {
    /// Findings of just these kinds.
    Findings(&'static [Kind]),
    /// The result alone.
    Result,
    /// The counter of that number, before any other.
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
    /// The path of its file.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}.rs", self.folder)
    }
}

impl Exercise {
    /// What the student has made of it, if it was begun.
    pub fn mine(&self) -> Option<&'static Side> {
        let mut begun = crate::MINE.iter().filter(|(name, _)| *name == self.name);
        begun.next().map(|(_, side)| side)
    }
}

/// A row: the exercise's name, and all other fields but its two sides.
macro_rules! exercise {
    ($name:ident { $($field:ident: $value:expr,)* }) => {
        $crate::exercise::Exercise {
            name: stringify!($name),
            start: $crate::starts::$name,
            solution: $crate::exercise::Side {
                folder: "solutions",
                kernel: &$crate::solutions::$name::$name,
                source: include_str!(concat!(env!("OUT_DIR"), "/solutions/", stringify!($name), ".rs")),
            },
            $($field: $value,)*
        }
    };
}
pub(crate) use exercise;
