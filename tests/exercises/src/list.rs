//! The list of all exercises.

use simt::{
    Kernel,
    check::{
        Kind::{self, *},
        Operation, Profile,
    },
};

use crate::{
    attempt::{Goal, Params},
    questions::{QUESTIONS, Question},
};

/// A kernel to correct.
#[derive(Debug)]
pub struct Repair {
    /// Its name, which is also that of its file.
    pub name: &'static str,
    /// Where the mistake is from, or what it is about.
    pub about: &'static str,
    /// The task.
    pub task: &'static str,
    /// The kernel that the reader changes.
    pub kernel: &'static Kernel<Params>,
    /// Its file's text.
    pub source: &'static str,
    /// The corrected kernel.
    pub answer: &'static Kernel<Params>,
    /// The text of the answer's file.
    pub answer_source: &'static str,
    /// m, n, k.
    pub shape: [usize; 3],
    /// The kinds of findings of a checked launch before the correction.
    pub finds: &'static [Kind],
    /// Whether C is wrong before the correction.
    pub wrong: bool,
    /// The further goal.
    pub goal: Goal,
}

/// An exercise. Its number is its place in the list, from 1.
#[derive(Debug)]
pub enum Exercise {
    /// A kernel to correct.
    Repair(&'static Repair),
    /// A question whose answer is a number.
    Question(&'static Question),
}

/// Every exercise, the kernels first.
pub fn exercises() -> impl Iterator<Item = (usize, Exercise)> {
    let repairs = REPAIRS.iter().map(Exercise::Repair);
    (1..).zip(repairs.chain(QUESTIONS.iter().map(Exercise::Question)))
}

macro_rules! repair {
    ($name:ident, $shape:expr, finds $finds:expr, wrong $wrong:expr, goal $goal:expr,
     $about:literal, $task:literal) => {
        Repair {
            name: stringify!($name),
            about: $about,
            task: $task,
            kernel: &crate::kernels::$name::$name,
            source: include_str!(concat!("kernels/", stringify!($name), ".rs")),
            answer: &crate::answers::$name::$name,
            answer_source: include_str!(concat!("answers/", stringify!($name), ".rs")),
            shape: $shape,
            finds: &$finds,
            wrong: $wrong,
            goal: $goal,
        }
    };
}

/// Every kernel to correct: first the mistakes in the course's documents, in their order, then others.
pub static REPAIRS: &[Repair] = &[
    repair!(
        barrier_in_a_branch, [20, 24, 16], finds [BarrierSkipped], wrong false, goal nothing_more,
        "document 004, \"Inner Product - Before and After\"",
        "A check of C's edge was put around the inner product, and the second barrier slipped inside. Who waits \
         for whom? Keep the check."
    ),
    repair!(
        wrong_phase_variable, [20, 40, 33], finds [NeverRead], wrong true, goal nothing_more,
        "document 004, \"Loading Elements\"; documents 002 and 004, the tiled kernel",
        "The slides compare t * TILE_WIDTH + tx where they load p * TILE_WIDTH + tx. Without a t that does not \
         compile; with another t in scope it does."
    ),
    repair!(
        toy_table, [4, 4, 4], finds [WriteAfterWrite, Uninitialised], wrong true, goal nothing_more,
        "document 004, \"Execution Phases of Toy Example\"",
        "The table lets thread (0, 1) store N(0, 1) to Nds(1, 0) in phase 0. Who else stores there?"
    ),
    repair!(
        whole_phases_only, [20, 40, 33], finds [NeverRead], wrong true, goal nothing_more,
        "documents 000, 001, 002 and 004: n / TILE_WIDTH phases",
        "The division drops what is left of k. How many phases are there?"
    ),
    repair!(
        column_of_b, [20, 24, 33], finds [OutOfBounds, NeverRead], wrong true, goal nothing_more,
        "document 000, \"Tiled Matrix Multiplication (Cont.)\"",
        "B is indexed with \"the number of elements in a column of B\". How far apart are two elements of a column?"
    ),
    repair!(
        block_of_b, [20, 70, 33], finds [NeverRead], wrong true, goal nothing_more,
        "document 003, the first tiled kernel: B_gpu(j,i) with i from blockIdx.y",
        "Row i of A is right. Which columns of B does this block of C need?"
    ),
    repair!(
        one_step_too_many, [20, 40, 33], finds [OutOfBounds], wrong true, goal nothing_more,
        "document 003: `for k = 0 to threadDim.x`, where other loops end at `.. - 1`",
        "Which columns does a tile have? (And threadDim is blockDim.)"
    ),
    repair!(
        prefetch_past_the_end, [32, 48, 64], finds [OutOfBounds], wrong false, goal nothing_more,
        "document 003, \"Prefetching\"",
        "The last round of the loop prefetches as well. Which tile? And why is C right all the same?"
    ),
    repair!(
        one_barrier, [20, 40, 33], finds [WriteAfterRead, ReadAfterWrite], wrong true, goal nothing_more,
        "a race",
        "One barrier a phase is missing. Where, and which two accesses does it keep apart?"
    ),
    repair!(
        bank_conflict, [64, 64, 64], finds [], wrong false, goal no_bank_conflict,
        "bank conflicts",
        "It is right, and slow: a warp reads and writes a column of B's tile, all in one bank. Without changing \
         which element is read when, get every access to shared memory down to one wavefront."
    ),
    repair!(
        rows_along_x, [64, 64, 64], finds [], wrong false, goal coalesced,
        "coalescing",
        "It is right, and slow: a store touches 16 sectors. Get every access to global memory down to 4."
    ),
];

/// No further goal: no findings and a right C are enough.
fn nothing_more(_: &Profile) -> Option<String> {
    None
}

fn no_bank_conflict(profile: &Profile) -> Option<String> {
    let shared = [Operation::SharedLoad, Operation::SharedStore];
    worst(profile, "wavefronts", &shared, 1)
}

fn coalesced(profile: &Profile) -> Option<String> {
    worst(profile, "sectors", &[Operation::GlobalLoad, Operation::GlobalStore], 4)
}

/// The access with the most units for each request, if they are more than `at_most`.
fn worst(profile: &Profile, unit: &str, of: &[Operation], at_most: u64) -> Option<String> {
    let lines = profile.lines.iter().filter(|line| of.contains(&line.operation));
    let worst = lines.max_by_key(|line| line.units.div_ceil(line.requests.max(1)))?;
    let each = worst.units as f64 / worst.requests.max(1) as f64;
    (each > at_most as f64).then(|| {
        let (place, operation) = (&worst.place, worst.operation.name());
        format!("the {operation} at {place} takes {each:.1} {unit} a request, {at_most} are enough")
    })
}
