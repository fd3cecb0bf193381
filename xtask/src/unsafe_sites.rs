//! Compares the table of unsafe code, `docs/design/unsafe.md`, with the sources: a row for each
//! file, with the number of its sites, and the sums in its first paragraph.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::environment::known_files;

const TABLE: &str = "docs/design/unsafe.md";

/// Checks that every file has its row.
pub fn check(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(TABLE)).with_context(|| format!("no {TABLE}"))?;
    let sites = |text: &str| text.lines().filter(|line| is_site(line)).count();
    let files = known_files(root, &["gpu/**.rs", "host/**.rs"])?.into_iter();
    let found = files.map(|(file, text)| (file, sites(&text))).filter(|(_, sites)| *sites > 0);
    let found = found.collect::<BTreeMap<_, _>>();
    let rows = rows(&text);
    let differs = |file: &&String| rows.get(*file) != found.get(*file);
    let wrong = rows.keys().chain(found.keys()).find(differs);
    ensure!(
        wrong.is_none(),
        "{TABLE}: {} has {} lines with unsafe code, and its row says {}. Say in the row which invariant no type enforces, and who \
         holds it",
        wrong.map_or("", String::as_str),
        wrong.and_then(|file| found.get(file)).unwrap_or(&0),
        wrong.and_then(|file| rows.get(file)).unwrap_or(&0)
    );
    let sums = summary(&found);
    ensure!(text.contains(&sums), "{TABLE}: its first paragraph must say `{sums}`");
    Ok(())
}

/// How much the command in the table prints.
fn summary(found: &BTreeMap<String, usize>) -> String {
    format!("It prints {} lines, in {} files.", found.values().sum::<usize>(), found.len())
}

/// Whether `grep -E 'unsafe (\{|fn|impl)'` matches the line.
fn is_site(line: &str) -> bool {
    line.match_indices("unsafe ").any(|(at, word)| {
        let next = &line[at + word.len()..];
        ["{", "fn", "impl"].iter().any(|start| next.starts_with(start))
    })
}

/// The files in the table, and the numbers of their sites.
fn rows(table: &str) -> BTreeMap<String, usize> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let file = cells.next().filter(|cell| cell.ends_with(".rs"))?;
        Some((file.to_owned(), cells.next()?.parse().ok()?))
    };
    table.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_what_the_command_in_the_table_prints() {
        for site in [
            "    unsafe { x }",
            "pub unsafe fn f()",
            "unsafe impl Sync for X {}",
            "a: unsafe fn(&P),",
        ] {
            assert!(is_site(site), "{site}");
        }
        for none in ["unsafe trait X {", "#[unsafe(no_mangle)]", "/// unsafe code"] {
            assert!(!is_site(none), "{none}");
        }
    }

    #[test]
    fn a_row_has_a_file_and_a_number() {
        let table = "| file | sites | what |\n|---|---|---|\n| a/b.rs | 12 | x |\n| `c` | 3 | y |";
        let rows = rows(table);
        assert_eq!(rows, BTreeMap::from([("a/b.rs".to_owned(), 12)]));
        assert_eq!(summary(&rows), "It prints 12 lines, in 1 files.");
    }
}
