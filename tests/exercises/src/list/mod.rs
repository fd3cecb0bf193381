//! The list of all exercises: a row each, in the order of the two ladders.

use crate::exercise::Exercise;

mod hopper;
mod registers;
mod tensor_cores;
mod threads;

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
    ("tensor_mma", "20-tensor_mma.md"),
    ("tensor_ldmatrix", "21-tensor_ldmatrix.md"),
    ("tensor_cp_async", "22-tensor_cp_async.md"),
    ("tensor_wgmma", "23-tensor_wgmma.md"),
    ("tensor_tma", "24-tensor_tma.md"),
    ("tensor_producer", "25-tensor_producer.md"),
    ("tensor_wide", "26-tensor_wide.md"),
    ("tensor_persistent", "27-tensor_persistent.md"),
    ("tensor_cluster", "28-tensor_cluster.md"),
    ("tensor_tma_store", "29-tensor_tma_store.md"),
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
