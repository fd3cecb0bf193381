//! Each kernel fails by the gate of its row, and each solution passes all gates. Each question has
//! the answer that its explanation derives.

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Output},
};

use exercises::{
    exercise::{Exercise, Fails, Side},
    grade::{Grade, grade},
    list::{RUNGS, exercises, of_rung},
    questions::{QUESTIONS, of_rung as questions_of_rung},
};

/// Printed if a kernel is not as wrong as it was.
const RESTORE: &str =
    "(exercises are mended in tests/exercises/mine, not in tests/exercises/src/kernels)";

/// The grades of one side of all exercises. Another thread grades every second one.
fn grades(side: fn(&'static Exercise) -> &'static Side) -> Vec<Grade> {
    let every_second = |first: usize| {
        let some = exercises().skip(first).step_by(2);
        some.map(|exercise| grade(exercise, side(exercise)).unwrap()).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| every_second(1));
        [every_second(0), other.join().unwrap()].concat()
    })
}

#[test]
fn each_starting_point_fails_by_the_gate_of_its_row() {
    for grade in grades(|exercise| &exercise.start) {
        let Exercise { name, fails, counters, .. } = grade.exercise;
        let first = grade.failures.first().map(|failure| failure.gate());
        assert_eq!(first, Some(fails.gate()), "{name} {RESTORE}\n{grade}");
        match fails {
            Fails::Findings(kinds) => {
                let expected = kinds.iter().copied().collect::<BTreeSet<_>>();
                let found = grade.kinds().into_iter().collect::<BTreeSet<_>>();
                assert_eq!(found, expected, "{name} {RESTORE}\n{grade}");
            }
            Fails::Result => assert_eq!(grade.failures.len(), 1, "{name}\n{grade}"),
            Fails::Counter(number) => assert!(*number < counters.len(), "{name}"),
        }
    }
}

#[test]
fn each_solution_passes_every_gate() {
    for grade in grades(|exercise| &exercise.solution) {
        assert!(grade.solved(), "{grade}");
        assert_eq!(grade.passed.len(), grade.exercise.counters.len(), "{grade}");
    }
}

#[test]
fn both_sides_of_an_exercise_have_one_name_and_one_head() {
    for Exercise { name, start, solution, .. } in exercises() {
        for side in [start, solution] {
            assert!(side.source.contains(&format!("pub fn {name}(")), "{name}: {}", side.folder);
            assert!(side.source.lines().count() <= 160, "{name}: {}", side.folder);
        }
        let (one, other) = (start.kernel.declaration(), solution.kernel.declaration());
        assert_eq!((one.name, one.block), (other.name, other.block));
        assert_ne!(start.source, solution.source, "{name}");
    }
}

#[test]
fn every_file_has_a_row_and_every_rung_a_row() {
    let sources = format!("{}/src", env!("CARGO_MANIFEST_DIR"));
    let files = |folder: &str, end: &str| {
        let names = fs::read_dir(format!("{sources}/{folder}")).unwrap().map(|entry| {
            entry.unwrap().file_name().into_string().unwrap().trim_end_matches(end).to_owned()
        });
        names.filter(|name| name != "mod").collect::<BTreeSet<_>>()
    };
    let mut rows = exercises().map(|exercise| exercise.name.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(files("solutions", ".diff"), rows);
    // A diff that is read backwards makes its own kernel.
    rows.retain(|name| {
        let diff = fs::read_to_string(format!("{sources}/solutions/{name}.diff")).unwrap();
        !diff.starts_with("of ")
    });
    assert_eq!(files("kernels", ".rs"), rows);
    let count = exercises().count();
    assert!(count >= 34, "{count}");
    assert_eq!(RUNGS.iter().map(|(rung, _)| of_rung(rung).count()).sum::<usize>(), count);
    let questions = RUNGS.iter().map(|(rung, _)| questions_of_rung(rung).count()).sum::<usize>();
    assert_eq!(questions, QUESTIONS.len());
}

/// Derived by hand, as in the explanations.
#[test]
fn each_question_has_the_answer_that_its_explanation_derives() {
    let answers = QUESTIONS.iter().map(|question| (question.answer)().unwrap()).collect::<Vec<_>>();
    let expected = [
        16.0,            // rows that a warp's store touches
        (16 / 2) as f64, // rows in one of two banks
        (2 * 16 * 64) as f64 / (4 * 80) as f64,
        (64 - 36) as f64,
        (1536 / 256) as f64,
        (281 * 64_u32).div_ceil(32 * 16) as f64,
    ];
    assert_eq!(answers, expected);
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
    let (_, markdown, _) = command(&["list", "--markdown"]);
    for Exercise { name, .. } in exercises() {
        assert!(stdout.lines().any(|line| line.starts_with(&format!("    {name} "))), "{stdout}");
        assert!(markdown.contains(&format!("\n| `{name}` | ")), "{name}: {markdown}");
    }
}

/// The text has the gate, the measured value with its limit, and the place with its line.
#[test]
fn a_grade_teaches() {
    for (name, parts) in [
        (
            "barrier_in_a_branch",
            &[
                "findings   FAILED: 1 by the checker",
                "a barrier that not all threads of the block reach",
                "tests/exercises/src/kernels/barrier_in_a_branch.rs:32:13",
                "thread::sync_threads();",
                "result     ok",
                "hint barrier_in_a_branch",
            ][..],
        ),
        (
            "rows_along_x",
            &[
                "findings   ok",
                "counter    FAILED: at most 4.1 sectors a request to global memory, measured 16",
                "global-store at tests/exercises/src/kernels/rows_along_x.rs:19:10",
                "c[row * n + col] = sum;",
            ],
        ),
        (
            "swizzled_tile",
            &["measured 32", "ok: at most 8192 bytes of shared memory a block, measured 8192"],
        ),
    ] {
        let (code, stdout, stderr) = command(&["grade", name]);
        assert_eq!((code, &*stderr), (1, ""));
        for part in parts {
            assert!(stdout.contains(part), "{part}: {stdout}");
        }
        let (code, stdout, _) = command(&["grade", "--solution", name]);
        assert!(code == 0 && stdout.contains("solved. Clean and right"), "{stdout}");
    }
    let (code, stdout, _) = command(&["grade", "basic"]);
    assert!(code == 1 && stdout.contains("0 of 4 are solved."), "{stdout}");
}

/// The answers on pages 21 to 28 of the course say these things of exercises.
#[test]
fn the_course_s_answers_quote_what_a_grade_prints() {
    for (name, parts) in [
        ("swizzle_for_ldmatrix", &["measured 8\n"][..]),
        ("groups_at_the_end", &["FAILED: 2 by the checker", "race: a read after a write"]),
        ("wait_for_copies", &["race: a read after a write", "copies::wait_group::<0>"]),
        ("swizzle_for_wgmma", &["4003 of 4096 elements are wrong"]),
        ("proxy_fence", &["FAILED: 2 by the checker", "without a proxy fence"]),
        ("released_too_early", &["race: a write after a read", "sums.multiply_add("]),
        ("cluster_ends", &["a use of shared memory of a block that may have ended"]),
    ] {
        let (_, stdout, _) = command(&["grade", name]);
        for part in parts {
            assert!(stdout.contains(part), "{part}: {stdout}");
        }
    }
}

/// A race with a copy, or with a product, says that it is not waited for, and what waits for it.
#[test]
fn a_race_with_a_unit_names_the_wait() {
    for (name, line, waits) in [
        (
            "wait_for_copies",
            "wrote  tests/exercises/src/kernels/wait_for_copies.rs:",
            "(cp.async) is not waited for. Its thread must call copies::wait_group::<0> before",
        ),
        (
            "products_under_way",
            "read   kernels/products_under_way.rs:",
            "(wgmma), which may still read, is not waited for. The warpgroup must call \
             Accumulators::wait::<0> (or warpgroup::wait::<0>) before",
        ),
        (
            "released_too_early",
            "read   kernels/released_too_early.rs:",
            "(wgmma), which may still read, is not waited for. The warpgroup must call \
             Accumulators::wait::<1> (or warpgroup::wait::<1>), or with a smaller number, before",
        ),
        (
            "box_in_use",
            "read   kernels/box_in_use.rs:",
            "(TMA), which may still read, is not waited for. Its thread must call bulk::wait_group_read::<0> before",
        ),
        (
            "box_at_the_end",
            "at     tests/exercises/src/kernels/box_at_the_end.rs",
            "one of its threads must wait for it, by bulk::wait_group_read::<0>",
        ),
    ] {
        let (code, stdout, _) = command(&["grade", name]);
        assert_eq!(code, 1, "{stdout}");
        assert!(stdout.contains(line) && stdout.contains(waits), "{line}: {waits}: {stdout}");
    }
}

#[test]
fn a_solution_is_shown_as_a_whole() {
    let (code, stdout, _) = command(&["solution", "guard_the_tail"]);
    let kernel = include_str!("../src/kernels/guard_the_tail.rs");
    let mended = "    if i < n as usize {\n        z[i] = x[i] + y[i];\n    }\n";
    let head =
        "//! A sum of vectors: a thread for each element.\n//!\n//! Solution: The finding names";
    assert!(code == 0 && stdout.starts_with(head) && stdout.contains(mended), "{stdout}");
    assert!(kernel.lines().filter(|line| stdout.contains(line)).count() >= 10, "{stdout}");
}

#[test]
fn a_hint_is_given_only_when_asked_for() {
    let hint = "Which threads have such an index?";
    let (code, stdout, _) = command(&["hint", "guard_the_tail"]);
    assert!(code == 0 && stdout.contains(hint), "{stdout}");
    let (_, stdout, _) = command(&["grade", "guard_the_tail"]);
    assert!(!stdout.contains(hint), "{stdout}");
}

/// Names in a text: with an underscore, with `::`, or in camel case.
fn names_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
    let words = words.map(|word| word.trim_matches(':'));
    let is_name = |word: &&str| {
        word.contains('_') || word.contains("::") || word.chars().skip(1).any(char::is_uppercase)
    };
    words.filter(is_name).collect()
}

/// A hint says where to look, and which fact is needed. What the solution has and the kernel lacks,
/// it does not name.
#[test]
fn no_hint_is_the_solution() {
    for Exercise { name, hint, start, solution, .. } in exercises() {
        assert!(
            !hint.contains("::<") && !hint.contains("();") && !hint.contains("()"),
            "{name}: {hint}"
        );
        let code = |source: &'static str| {
            let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
            lines.flat_map(names_in).collect::<BTreeSet<_>>()
        };
        let (known, needed) = (code(start.source), code(solution.source));
        let given = names_in(hint).into_iter().filter(|word| !known.contains(word));
        let given = given.filter(|word| needed.contains(word)).collect::<Vec<_>>();
        assert!(
            given.is_empty(),
            "{name}: {given:?} is in the solution and not in the kernel: {hint}"
        );
        let says = solution.source.lines().find_map(|line| line.strip_prefix("//! Solution: "));
        assert!(says.is_none_or(|says| !hint.contains(says)), "{name}: {hint}");
    }
}

#[test]
fn a_question_is_asked_and_its_answer_judged() {
    let name = "flop_a_byte";
    let (code, stdout, _) = command(&["ask", name]);
    assert!(code == 1 && stdout.contains("How many FLOP") && !stdout.contains("6.4"), "{stdout}");
    for right in ["6.4", "6.40"] {
        let (code, stdout, _) = command(&["ask", name, right]);
        assert!(code == 0 && stdout.starts_with("right: 6.4."), "{stdout}");
    }
    for wrong in ["4", "-6.4", "NaN", "inf", "0"] {
        let (code, stdout, _) = command(&["ask", name, wrong]);
        assert!(code == 1 && stdout.starts_with("not "), "{wrong}: {stdout}");
    }
    let (code, stdout, _) = command(&["answer", name]);
    assert!(code == 0 && stdout.starts_with("6.4."), "{stdout}");
}

#[test]
fn usage_errors() {
    for (arguments, words) in [
        (&["grade", "one_barier"][..], "there is no exercise `one_barier`: did you mean one_"),
        (&["grade", "xyz"], "`list` shows all names"),
        (&["grade", "--fast"], "there is no option `--fast`"),
        (&["grade", "one_barrier", "xyz"], "there is no exercise `xyz`"),
        (&["hint"], "`hint` of which one?"),
        (&["hint", "one_barrier", "more"], "`more` is one argument too many"),
        (&["solution"], "`solution` of which one?"),
        (&["solution", "one_barrier", "more"], "`more` is one argument too many"),
        (&["hint", "xyz"], "there is no exercise `xyz`"),
        (&["ask"], "`ask` of which one?"),
        (&["ask", "xyz"], "there is no question `xyz`"),
        (&["ask", "flop_a_byte", "1", "2"], "`2` is one argument too many"),
        (&["ask", "flop_a_byte", "many"], "answer `many`: must be a number"),
        (&["9"], "there is no command `9`"),
    ] {
        let (code, stdout, stderr) = command(arguments);
        assert_eq!((code, &*stdout), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(words), "{arguments:?}: {stderr}");
        assert!(stderr.contains("\nUsage: cargo run -p exercises"), "{stderr}");
    }
}
