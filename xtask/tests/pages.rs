//! What the pages of `docs` promise their readers, where no other check sees it.

use std::{fs, path::Path, process::Command};

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

/// README and the guides call tasks that exist.
#[test]
fn tasks_in_the_pages_exist() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let mut pages = vec!["README.md".to_owned(), "docs/testing/README.md".to_owned()];
    for folder in ["docs/guide", "docs/course"] {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(folder);
        let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        pages.extend(names.map(|name| format!("{folder}/{}", name.to_str().unwrap())));
    }
    let mut seen = 0;
    for name in pages {
        let text = page(&name);
        let words = text.split_whitespace().collect::<Vec<_>>();
        for call in words.windows(3).filter(|call| call[0].ends_with("cargo") && call[1] == "xtask")
        {
            let task = call[2].trim_matches(|letter: char| !letter.is_ascii_alphabetic());
            let has = |line: &str| line.split_whitespace().next() == Some(task);
            assert!(help.lines().any(has), "{name}: cargo xtask {}", call[2]);
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} calls");
}
