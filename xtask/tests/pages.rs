//! What the pages of `docs` promise their readers, where no other check sees it.

use std::{fs, path::Path};

fn page(name: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A page of the course that predicts a speed says after the measurement whether that was right.
#[test]
fn every_prediction_has_a_verdict() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/course"));
    let mut predictions = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = page(&format!("docs/course/{name}"));
        if !text.contains("\n## Predicted\n") {
            continue;
        }
        predictions += 1;
        let (_, after) = text.split_once("\n**Came out** ").expect(&name);
        let verdict = after.split("\n## ").next().unwrap_or_default();
        assert!(verdict.contains("predict"), "{name} has no verdict on its prediction");
    }
    assert_eq!(predictions, 10);
}

/// Words that tables, `--help` and JSON print.
#[test]
fn the_glossary_has_the_words_that_are_printed() {
    let glossary = page("docs/glossary.md");
    for word in ["roof", "err/bound", "`ratio_low`", "descriptor", "Freivalds' check", "k-step"] {
        let has = |line: &str| line.starts_with(&format!("| {word}"));
        assert!(glossary.lines().any(has), "{word}");
    }
}

/// The project was asked to use them.
#[test]
fn each_of_the_five_crates_has_a_row() {
    let text = page("docs/guide/device-compiler.md");
    for name in ["cuda_std", "cuda_builder", "cust", "nalgebra", "proptest"] {
        let has = |line: &str| line.starts_with(&format!("| `{name}`"));
        assert!(text.lines().any(has), "{name}");
    }
    assert!(page("README.md").contains("docs/guide/device-compiler.md#cuda_std-"));
}
