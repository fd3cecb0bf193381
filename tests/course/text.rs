//! `docs/course`: its excerpts are equal to the sources, and its tables name what exists.

use std::fs;

use exercises::{list::exercises, questions::QUESTIONS};
use gpu::registry::ladder;
use tests::scratch::workspace;

/// The table of topics, and where each is covered.
const COVERAGE: &str = "docs/course/18-coverage.md";

/// All pages, in the order of their numbers.
fn text() -> String {
    let entries = fs::read_dir(workspace().join("docs/course")).unwrap();
    let mut pages = entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    pages.sort();
    pages.iter().map(|page| fs::read_to_string(page).unwrap()).collect()
}

/// `cargo xtask course --check` also checks the figures.
#[test]
fn every_excerpt_is_what_its_source_says() {
    let excerpts = xtask::course::check_sources(workspace());
    let excerpts = excerpts.unwrap_or_else(|error| panic!("{error:#}"));
    assert!(excerpts >= ladder().count(), "{excerpts} excerpts");
}

#[test]
fn every_rung_has_its_step_in_order() {
    let text = text();
    let mut rest = &*text;
    for (entry, _) in ladder() {
        let marker = format!("<!-- counts: {} -->", entry.name());
        let at = rest.find(&marker);
        let at = at.unwrap_or_else(|| panic!("{marker} is missing or too early in docs/course"));
        rest = &rest[at..];
        let measured = format!("<!-- measured: {} -->", entry.name());
        assert!(rest.contains(&measured), "{measured}");
    }
}

/// `cargo xtask course` writes the list.
#[test]
fn every_exercise_is_in_the_list() {
    let text = text();
    for exercise in exercises() {
        let row = format!("\n| `{}` |", exercise.name);
        assert!(text.contains(&row), "{}", exercise.name);
    }
    for question in QUESTIONS {
        let posed = format!("**Question: {}.**", question.name);
        assert!(text.contains(&posed), "{posed}");
    }
}

/// The cells of the table of topics.
fn table() -> Vec<Vec<String>> {
    let table = fs::read_to_string(workspace().join(COVERAGE)).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// The texts in backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_row_has_a_file_and_a_test_that_exist() {
    let rows = table();
    assert!(rows.len() >= 26, "a topic is gone");
    for (row, number) in rows.iter().zip(1_usize..) {
        let [at, _, what, files, tests] = &row[..] else { panic!("five cells: {row:?}") };
        assert_eq!(*at, number.to_string());
        assert!(!what.is_empty(), "row {number}");
        let files = code(files);
        assert!(!files.is_empty(), "row {number} names no file");
        for file in files {
            assert!(workspace().join(file).exists(), "row {number}: {file}");
        }
        // A file, and tests in it.
        let (mut source, mut tests_named) = (None, 0);
        for word in code(tests) {
            if word.contains('/') {
                let path = workspace().join(word);
                let text = fs::read_to_string(&path);
                source = Some(text.unwrap_or_else(|error| panic!("row {number}: {word}: {error}")));
            } else {
                let source = source.as_deref().unwrap_or_else(|| panic!("row {number}: {word}"));
                let function = format!("fn {word}(");
                assert!(source.contains(&function), "row {number}: there is no `{word}`");
                tests_named += 1;
            }
        }
        assert!(tests_named > 0, "row {number} names no test");
    }
}
