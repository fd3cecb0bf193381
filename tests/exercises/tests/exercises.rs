//! Each kernel is wrong in the way of its exercise, and its answer is right. Each question has the answer that its
//! explanation derives.

use std::{
    collections::BTreeSet,
    process::{Command, Output},
};

use exercises::{
    attempt::attempt,
    list::{REPAIRS, exercises},
    questions::QUESTIONS,
};

/// Printed if a kernel is not as wrong as it was.
const RESTORE: &str = "(`git restore tests/exercises` brings a mended exercise back)";

#[test]
fn each_kernel_is_wrong_in_its_own_way() {
    for repair in REPAIRS {
        let name = repair.name;
        let attempt = attempt(repair.kernel, repair.shape, repair.goal).unwrap();
        let found: BTreeSet<_> = attempt.findings.iter().map(|finding| finding.kind).collect();
        let expected: BTreeSet<_> = repair.finds.iter().copied().collect();
        let text = attempt.text(name, repair.source);
        assert_eq!(found, expected, "{name} {RESTORE}\n{text}");
        assert_eq!(attempt.wrong.is_some(), repair.wrong, "{name} {RESTORE}\n{text}");
        // A kernel without findings and with a right C misses its goal.
        let only_slow = expected.is_empty() && !repair.wrong;
        assert_eq!(attempt.missing.is_some(), only_slow, "{name} {RESTORE}\n{text}");
        assert!(!attempt.solved(), "{name} {RESTORE}");
    }
}

#[test]
fn each_answer_is_right() {
    for repair in REPAIRS {
        let attempt = attempt(repair.answer, repair.shape, repair.goal).unwrap();
        assert!(attempt.solved(), "{}", attempt.text(repair.name, repair.answer_source));
    }
}

#[test]
fn a_kernel_and_its_answer_have_one_name_and_one_head() {
    for repair in REPAIRS {
        let signature = format!("pub fn {}(", repair.name);
        for source in [repair.source, repair.answer_source] {
            assert!(source.contains(&signature), "{}", repair.name);
        }
        assert_eq!(repair.kernel.declaration.name, repair.answer.declaration.name);
        assert_eq!(repair.kernel.declaration.block, repair.answer.declaration.block);
        assert_ne!(repair.source, repair.answer_source);
    }
}

/// Derived by hand, as in the explanations.
#[test]
fn each_question_has_the_answer_that_its_explanation_derives() {
    let answers = QUESTIONS.iter().map(|question| (question.answer)().unwrap());
    let expected = [
        16.0,            // rows that a warp's store touches
        (16 / 2) as f64, // rows in one of two banks
        (2 * 16 * 64) as f64 / (4 * 80) as f64,
        (64 - 36) as f64,
        (1536 / 256) as f64,
    ];
    assert!(
        answers.eq(expected),
        "{:?}",
        QUESTIONS.iter().map(|q| (q.answer)()).collect::<Vec<_>>()
    );
}

fn command(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_exercises")).args(arguments).output().unwrap();
    let Output { status, stdout, stderr } = output;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().expect("ended by itself"), text(stdout), text(stderr))
}

#[test]
fn the_list_has_every_exercise() {
    let (code, stdout, _) = command(&[]);
    assert_eq!(code, 0);
    for (number, _) in exercises() {
        assert!(stdout.lines().any(|line| line.starts_with(&format!("{number:>3}  "))), "{stdout}");
    }
}

#[test]
fn an_exercise_is_not_solved_and_its_answer_is() {
    let (code, stdout, _) = command(&["1"]);
    assert_eq!(code, 1, "{stdout}");
    for part in
        ["not yet (order forward)", "a barrier that not all threads", "threads of the block wait"]
    {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    // With the source line below its place.
    assert!(stdout.contains("thread::sync_threads();"), "{stdout}");
    let (code, stdout, _) = command(&["1", "--answer"]);
    assert!(code == 0 && stdout.contains("clean and right in every order"), "{stdout}");
}

#[test]
fn a_question_is_asked_and_its_answer_judged() {
    let question = (REPAIRS.len() + 3).to_string();
    let (code, stdout, _) = command(&[&question]);
    assert!(code == 1 && stdout.contains("How many FLOP") && !stdout.contains("6.4"), "{stdout}");
    for right in ["6.4", "6.40"] {
        let (code, stdout, _) = command(&[&question, right]);
        assert!(code == 0 && stdout.starts_with("right: 6.4."), "{stdout}");
    }
    for wrong in ["4", "-6.4", "NaN", "inf", "0"] {
        let (code, stdout, _) = command(&[&question, wrong]);
        assert!(code == 1 && stdout.starts_with("not "), "{wrong}: {stdout}");
    }
    let (code, stdout, _) = command(&[&question, "--answer"]);
    assert!(code == 0 && stdout.starts_with("6.4."), "{stdout}");
}

#[test]
fn usage_errors() {
    let last = exercises().count();
    let beyond = (last + 1).to_string();
    let limit = format!("must be a number from 1 to {last}");
    for (arguments, words) in [
        (&["0"][..], &*limit),
        (&[&beyond], &limit),
        (&["one"], &limit),
        (&["1", "2"], "one argument too many"),
        (&["1", "--answer", "2"], "one argument too many"),
        (&["12", "many"], "answer `many`: must be a number"),
    ] {
        let (code, stdout, stderr) = command(arguments);
        assert_eq!((code, &*stdout), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(words), "{arguments:?}: {stderr}");
        assert!(stderr.contains("\nUsage: cargo run -p exercises"), "{stderr}");
    }
}
