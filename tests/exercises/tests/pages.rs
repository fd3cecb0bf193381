//! The pages of the course: the list of exercises is that of the command, and each rung's page
//! links to its part.

use std::{fs, path::PathBuf};

use exercises::{command::run, list::RUNGS};

fn page(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/course").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_list_in_the_course_is_that_of_the_command() {
    let mut list = Vec::new();
    assert!(run(&["list", "--markdown"], &mut list).unwrap());
    let list = String::from_utf8(list).unwrap();
    let page = page("31-exercises.md");
    let written = page.split("<!-- exercises -->\n").nth(1).unwrap();
    let written = written.split("<!-- end -->").next().unwrap();
    assert_eq!(written.trim_end(), list.trim_end(), "`cargo xtask course` writes it anew");
}

#[test]
fn the_page_of_a_rung_links_to_its_exercises() {
    for (rung, name) in RUNGS {
        let link = format!("](31-exercises.md#{rung})");
        assert!(page(name).contains(&link), "{name}: {link}");
    }
}
