//! Ways round the exercises: changes of a solution that leave the kernel clean and right, and the
//! exercise's idea out.

mod tensor_cores;
mod threads;

/// A way round an exercise.
#[allow(dead_code, reason = "the build script reads the changes, and the test what refuses them")]
pub struct Defeat {
    /// The exercise.
    pub exercise: &'static str,
    /// What it does instead, as a name.
    pub name: &'static str,
    /// What stands in the solution, and what is written in its place.
    pub changes: &'static [(&'static str, &'static str)],
    /// The counter that refuses it, as the student reads it.
    pub refused: &'static str,
}

const fn defeat(
    exercise: &'static str,
    name: &'static str,
    changes: &'static [(&'static str, &'static str)],
    refused: &'static str,
) -> Defeat {
    Defeat { exercise, name, changes, refused }
}

/// A stage for each phase, so that none is filled again.
const MANY: (&str, &str) = ("const STAGES: usize = 3;", "const STAGES: usize = 8;");
const STAGES: &str = "stages in the shared memory of a block, measured 8";
const FOUR: (&str, &str) = ("const STAGES: usize = 3;", "const STAGES: usize = 4;");
const A_FOURTH: &str = "at most 3 stages in the shared memory of a block, measured 4";
const TWO: (&str, &str) = ("const STAGES: usize = 3;", "const STAGES: usize = 2;");
const FEWER_THAN_THREE: &str = "at least 3 stages in the shared memory of a block, measured";
const NO_COPY_LEFT: &str = "waits for copies that leave a group in flight, measured 0";

/// All of them.
pub fn defeats() -> Vec<&'static Defeat> {
    threads::DEFEATS.iter().chain(tensor_cores::DEFEATS).collect()
}
