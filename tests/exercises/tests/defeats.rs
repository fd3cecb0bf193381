//! Ways round the exercises: each is clean and right, and is refused by a counter that says what is
//! asked.

use exercises::{
    attempt::Subject,
    exercise::{Gate, Side},
    grade::{Grade, grade},
    list::find,
};
use simt::checked as device;

#[path = "defeats/table.rs"]
mod table;

use table::{Defeat, defeats};

include!(concat!(env!("OUT_DIR"), "/defeats.rs"));

fn graded(number: usize, exercise: &str) -> Grade {
    let (kernel, source) = KERNELS[number];
    let side = Box::leak(Box::new(Side { folder: "defeats", kernel, source }));
    grade(find(exercise).unwrap(), side).unwrap()
}

#[test]
fn each_way_round_is_refused_by_a_counter_that_says_what_is_asked() {
    assert_eq!(KERNELS.len(), defeats().len());
    let mut passed = Vec::new();
    for (number, Defeat { exercise, name, refused, .. }) in defeats().into_iter().enumerate() {
        let grade = graded(number, exercise);
        // It is clean and right: nothing but a counter refuses it.
        let counted = |gate| matches!(gate, Gate::Counter(_));
        let only = grade.failures.iter().all(|failure| counted(failure.gate()));
        let text = grade.to_string();
        let mut lines = text.lines().filter(|line| line.contains("FAILED"));
        if !only || !lines.any(|line| line.contains(refused)) {
            passed.push(format!("{exercise}, {name}: {text}"));
        }
    }
    assert_eq!(passed, [""; 0], "{}", passed.join("\n"));
}
