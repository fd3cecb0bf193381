//! One exercise alone is compiled if `EXERCISE` names it: a kernel that does not compile leaves the
//! others usable.

use std::path::Path;

use exercises::list::exercises;

#[path = "../modules.rs"]
mod list_of_modules;

use list_of_modules::{modules, names};

#[test]
fn the_files_of_no_other_exercise_are_compiled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = names(folder).unwrap();
    assert_eq!(all.len(), exercises().count());
    let text = modules(folder, &all, "guard_the_tail");
    let files = text.lines().filter(|line| line.contains("#[path")).collect::<Vec<_>>();
    let expected = ["kernels", "solutions"].map(|side| {
        let file = folder.join(format!("src/{side}/guard_the_tail.rs"));
        assert!(file.is_file(), "{}", file.display());
        format!("    #[path = {file:?}]")
    });
    assert_eq!(files, expected);
    for name in all.iter().filter(|name| *name != "guard_the_tail") {
        let stands_in =
            format!("pub mod {name} {{ pub use crate::exercise::NOT_COMPILED as {name}; }}");
        assert_eq!(text.matches(&stands_in).count(), 2, "{name}: {text}");
    }
}
