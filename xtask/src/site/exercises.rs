//! The exercises of a rung, from the list in Markdown that their package keeps, if there is one.

use std::{fs, path::Path};

/// The lists, of which the first that is there counts.
const LISTS: [&str; 2] = ["exercises/README.md", "tests/exercises/README.md"];

/// The section of a rung's page with its exercises: the rows of the list's tables that name the kernel in backticks.
/// `None` if no list names it.
pub(super) fn section(root: &Path, kernel: &str) -> Option<String> {
    let texts = LISTS.iter().filter_map(|list| fs::read_to_string(root.join(list)).ok());
    of_list(&texts.into_iter().next()?, kernel)
}

fn of_list(list: &str, kernel: &str) -> Option<String> {
    let name = format!("`{kernel}`");
    let mut section = String::new();
    // The head of the current table, until it is written.
    let (mut head, mut before) = (None, "");
    for line in list.lines() {
        match line.starts_with('|') {
            false => head = None,
            true if line.starts_with("|-") || line.starts_with("|:") => {
                head = Some(format!("\n{before}\n{line}\n"));
            }
            true if line.contains(&name) => {
                section += &format!("{}{line}\n", head.take().unwrap_or_default())
            }
            true => {}
        }
        before = line;
    }
    (!section.is_empty()).then(|| format!("## Exercises with a grader\n{section}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_kernel_come_with_the_heads_of_their_tables() {
        let list = "# All\n\n| exercise | rung |\n|---|---|\n| 1 | `basic` |\n| 2 | `tiled16` |\n| 3 | `basic` |\n\n\
                    | more | rung |\n|---|---|\n| 4 | `tiled16` |\n";
        let expected = "## Exercises with a grader\n\n| exercise | rung |\n|---|---|\n| 1 | `basic` |\n| 3 | `basic` |\n\n";
        assert_eq!(of_list(list, "basic").unwrap(), expected);
        let both = of_list(list, "tiled16").unwrap();
        assert_eq!((both.matches("|---|---|").count(), both.matches("`tiled16`").count()), (2, 2));
        assert_eq!(of_list(list, "tiled"), None);
    }
}
