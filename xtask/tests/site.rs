//! `cargo xtask site`, `browser` and `wheel` on a machine that lacks the programs that they call.

use std::{env, fs, path::PathBuf, process::Command};

/// The task in a workspace without packages, with these folders of programs. Nothing must be built
/// for these answers.
fn xtask(task: &str, settings: &[(&str, &str)]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::write(root.join("Cargo.toml"), "[workspace]\nresolver = \"3\"\n").unwrap();
    // The path of a program, for a test that runs outside cargo.
    let cargo = env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg(task).env("CARGO_MANIFEST_DIR", root).env("CARGO", cargo).current_dir(root);
    for variable in ["CARGO_TARGET_DIR", "CHROMIUM", "CI", "MDBOOK"] {
        command.env_remove(variable);
    }
    let empty = root.join("programs");
    fs::create_dir_all(&empty).unwrap();
    command.env("PATH", &empty).envs(settings.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn without_mdbook_the_site_says_how_to_get_it() {
    let (code, stdout, stderr) = xtask("site", &[]);
    assert_eq!((code, &*stdout), (1, ""), "{stderr}");
    for part in ["no mdbook on PATH", "`cargo install mdbook --version ^0.5`", "--source"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let (code, _, stderr) = xtask("site", &[("MDBOOK", "/no/such/mdbook")]);
    assert!(
        code == 1 && stderr.contains("MDBOOK is /no/such/mdbook, which is no file"),
        "{stderr}"
    );
}

/// Nobody takes a skipped test for a passed one, and CI has a browser.
#[test]
fn without_a_browser_the_test_is_skipped_loudly_and_fails_in_ci() {
    let (code, stdout, stderr) = xtask("browser", &[]);
    assert_eq!((code, &*stderr), (0, ""));
    let expected = "browser: SKIPPED, no page was opened: there is no Chromium on PATH (the package chromium of Debian has it)\n";
    assert_eq!(stdout, expected);
    let (code, stdout, stderr) = xtask("browser", &[("CI", "true")]);
    assert_eq!((code, &*stdout), (1, ""));
    assert!(
        stderr.contains("there is no Chromium on PATH") && stderr.contains("CI must have it"),
        "{stderr}"
    );
}

#[test]
fn without_python_the_wheel_says_what_is_needed() {
    let (code, stdout, stderr) = xtask("wheel", &[]);
    assert_eq!((code, &*stdout), (1, ""), "{stderr}");
    assert!(stderr.contains("Python 3.9 or later with venv is needed"), "{stderr}");
}
