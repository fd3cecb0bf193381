//! What the build script writes: solutions by their diffs, and the modules. One exercise alone is
//! compiled if `EXERCISE` names it: a kernel that does not compile leaves the others usable.

use std::{fs, path::Path};

use exercises::list::exercises;

#[path = "../modules.rs"]
mod list_of_modules;

use list_of_modules::{both, changed, modules, names};

const KERNEL: &str = "a\nb\nc\nb\nd\n";

#[test]
fn a_kernel_is_changed_by_a_diff_without_line_numbers() {
    for (diff, expected) in [
        ("", KERNEL),
        ("@@\n-a\n+A\n", "A\nb\nc\nb\nd\n"),
        ("@@\n c\n-b\n@@\n d\n+e\n+\n+f\n", "a\nb\nc\nd\ne\n\nf\n"),
        ("@@\n-a\n@@\n-c\n+C\n@@\n-d\n", "b\nC\nb\n"),
    ] {
        assert_eq!(changed(KERNEL, diff).as_deref(), Ok(expected), "{diff}");
    }
    for (diff, named) in [
        ("@@\n-b\n", "\nb\n"),                    // twice
        ("@@\n-x\n+y\n", "\nx\n"),                // not there
        ("@@\n-d\n@@\n-c\n", "\nc\n"),            // not in this order
        ("@@\n-a\n-b\n@@\n b\n-c\n", "\nb\nc\n"), // a line in two changes
        ("@@\n-\n", "\n\n"),                      // an empty line, which is not there
    ] {
        let error = changed(KERNEL, diff).unwrap_err();
        assert!(error.ends_with(named), "{diff}: {error}");
    }
}

/// `d` has the solution of `a`, with its own name and head, and its kernel is that solution without
/// a line.
#[test]
fn a_diff_of_another_exercise_is_read_backwards() {
    let folder = std::env::temp_dir().join(format!("exercises-of-{}", std::process::id()));
    let file = |path: &str, text: &str| {
        let path = folder.join("src").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    file("kernels/a.rs", "//! A?\n\npub fn a(\nb\nc\n");
    file("solutions/a.diff", "@@\n-//! A?\n+//! A.\n@@\n-b\n+B\n");
    let of = |diff: &str| {
        file("solutions/d.diff", diff);
        both(&folder, "d")
    };
    let (kernel, solution) = ("//! D?\n\npub fn d(\nB\n", "//! D?\n//! D.\n\npub fn d(\nB\nc\n");
    let read = of("of a\n@@\n //! D?\n+//! D.\n@@\n B\n+c\n");
    let wrong = [
        ("of a\n@@\n B\n+c\n", "src/solutions/d.diff: the first change is not that of the head"),
        ("of a\n@@\n //! D?\n@@\n+b\n", "src/solutions/d.diff: this is not in the kernel once"),
        ("of d\n@@\n //! D?\n", "src/kernels/d.rs: "),
    ]
    .map(|(diff, says)| (of(diff).unwrap_err(), says));
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(read.unwrap(), [kernel, solution]);
    for (error, says) in wrong {
        assert!(error.starts_with(says), "{says}: {error}");
    }
}

#[test]
fn the_files_of_no_other_exercise_are_compiled() {
    let (folder, out) = (Path::new(env!("CARGO_MANIFEST_DIR")), Path::new("/out"));
    let all = names(folder).unwrap();
    assert_eq!(all.len(), exercises().count());
    let written = folder.join("src/kernels/guard_the_tail.rs");
    assert!(written.is_file());
    for (one, kernel) in
        [("guard_the_tail", written), ("box_in_use", out.join("kernels/box_in_use.rs"))]
    {
        let text = modules(folder, out, &all, Some(one));
        let files = text.lines().filter(|line| line.contains("#[path")).collect::<Vec<_>>();
        let mine = folder.join(format!("mine/{one}.rs"));
        let mut expected = vec![out.join(format!("solutions/{one}.rs")), kernel];
        expected.extend(mine.is_file().then_some(mine));
        let expected = expected.iter().map(|file| format!("    #[path = {file:?}]"));
        assert_eq!(files, expected.collect::<Vec<_>>());
        for name in all.iter().filter(|name| *name != one) {
            let stands_in =
                format!("pub mod {name} {{ pub use crate::exercise::NOT_COMPILED as {name}; }}");
            assert_eq!(text.matches(&stands_in).count(), 2, "{name}: {text}");
        }
    }
}

/// What is begun is compiled beside the kernel that it began as, and no other file of the folder.
#[test]
fn what_is_begun_is_a_kernel_of_its_own() {
    let folder = std::env::temp_dir().join(format!("exercises-{}", std::process::id()));
    fs::create_dir_all(folder.join("mine")).unwrap();
    for file in ["one_barrier.rs", "notes.rs", "one_barrier.rs~"] {
        fs::write(folder.join("mine").join(file), "").unwrap();
    }
    let all = ["guard_the_tail", "one_barrier"].map(str::to_owned);
    let texts = [None, Some("one_barrier"), Some("guard_the_tail")]
        .map(|one| modules(&folder, Path::new("/out"), &all, one));
    fs::remove_dir_all(&folder).unwrap();
    let side = "(\"one_barrier\", exercise::Side { folder: exercise::MINE, kernel: &mine::one_barrier::one_barrier,";
    let counts = texts.each_ref().map(|text| text.matches(side).count());
    assert_eq!(counts, [1, 1, 0], "{texts:#?}");
    assert!(texts.iter().all(|text| !text.contains("notes")), "{texts:#?}");
}
