//! Links and paths that lead nowhere.

use std::{collections::BTreeMap, path::Path};

use super::{
    page::{Kind, Page, without_code},
    refusal::{OWN, Refusal},
};

/// The log may name files that no longer exist.
const LOG: &str = "docs/log/";

/// Checks links of documents, to files and to headings; paths in backticks; and paths of documents
/// in comments.
pub(super) fn check(root: &Path, pages: &[Page], sources: &[(String, String)]) -> Vec<Refusal> {
    let anchors = pages.iter().map(|page| (page.file, anchors(page))).collect();
    let mut refusals = Vec::new();
    for page in pages {
        let mut refuse = |line, what| {
            refusals.push(Refusal { file: page.file.to_owned(), line, what });
        };
        for line in page.lines.iter().filter(|line| line.kind != Kind::Code) {
            for target in targets(line.text) {
                if let Some(what) = wrong(root, &anchors, page.file, &target) {
                    refuse(line.number, what);
                }
            }
        }
        for line in page.written().filter(|_| !page.file.starts_with(LOG)) {
            for path in paths_in(line.text).filter(|path| !root.join(path).exists()) {
                refuse(
                    line.number,
                    format!("`{path}` does not exist: name the file that has it now"),
                );
            }
        }
    }
    let sources = sources.iter().filter(|(file, _)| !file.starts_with(OWN));
    for (file, text) in sources {
        for (line, number) in text.lines().zip(1..) {
            for path in documents_in(line).filter(|path| !root.join(path).exists()) {
                let what = format!("`{path}` is no file: name the page that has it now");
                refusals.push(Refusal { file: file.clone(), line: number, what });
            }
        }
    }
    refusals
}

/// The targets of links in a line of Markdown.
fn targets(text: &str) -> Vec<String> {
    let text = without_code(text);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// What is wrong with a link in `file`.
fn wrong(
    root: &Path,
    anchors: &BTreeMap<&str, Vec<String>>,
    file: &str,
    target: &str,
) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let to = match path {
        "" => file.to_owned(),
        path => join(file, path),
    };
    if !root.join(&to).exists() {
        return Some(format!("the link `{target}` leads to `{to}`, which does not exist"));
    }
    if anchor.is_empty() {
        return None;
    }
    let there = anchors.get(&*to)?;
    match there.iter().any(|known| known == anchor) {
        true => None,
        false => Some(format!("`{to}` has no heading `#{anchor}`: it has {}", there.join(", "))),
    }
}

/// A path relative to a document's path.
fn join(file: &str, path: &str) -> String {
    let mut parts = file.split('/').collect::<Vec<_>>();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            // Above the root the path stays, and is no file.
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as GitHub makes them. (A second heading with the same words
/// would have a number.)
fn anchors(page: &Page) -> Vec<String> {
    let generated =
        page.lines.iter().filter(|line| line.kind == Kind::Generated && line.text.starts_with('#'));
    let headings = page.lines.iter().filter(|line| line.kind == Kind::Heading).chain(generated);
    headings.map(|line| anchor(line.text.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_lowercase().next().unwrap_or(c)),
        _ => None,
    };
    heading.chars().filter_map(kept).collect()
}

/// The repository's paths in backticks.
fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    const TOP: [&str; 5] = ["docs/", "gpu/", "host/", "tests/", "xtask/"];
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(move |span| {
        TOP.iter().any(|top| span.starts_with(top)) && span.chars().all(is_path)
    })
}

/// The paths of documents in a comment.
fn documents_in(line: &str) -> impl Iterator<Item = &str> {
    let start = ["//", "#"].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    let comment = &line[start..];
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let words = comment.split(move |c| !is_path(c)).map(|word| word.trim_end_matches('.'));
    words.filter(|word| {
        word.starts_with("docs/") && (word.ends_with(".md") || word.ends_with(".txt"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_files_and_headings() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = "# One two: `three`\n[a](../../README.md) [b](#one-two-three) [c](https://x.y/z#w)\n`[d](nowhere.md)`\n\
                    ```\n[e](nowhere.md)\n```\n";
        let page = Page::new("docs/design/new.md", text);
        // It is no file. But a page may link itself.
        let own = |page: &Page| {
            check(root, std::slice::from_ref(page), &[])
                .into_iter()
                .map(|refusal| refusal.what)
                .collect::<Vec<_>>()
        };
        let missing =
            "the link `#one-two-three` leads to `docs/design/new.md`, which does not exist";
        assert_eq!(own(&page), [missing]);
        let page = Page::new("README.md", "# A b\n[x](#a-b) [y](#b) [z](docs/nowhere.md)\n");
        assert_eq!(
            own(&page),
            [
                "`README.md` has no heading `#b`: it has a-b",
                "the link `docs/nowhere.md` leads to `docs/nowhere.md`, which does not exist",
            ]
        );
    }

    #[test]
    fn paths_in_backticks_exist() {
        let page = |file| {
            Page::new(file, "`host/src` `host/src/nowhere.rs` `host/src/*.rs` `host --m 1`\n")
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let refusals = check(root, &[page("README.md"), page("docs/log/a.md")], &[]);
        let refusals = refusals.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            refusals,
            ["README.md:1: `host/src/nowhere.rs` does not exist: name the file that has it now"]
        );
    }

    #[test]
    fn a_comment_names_pages_that_exist() {
        let root = Path::new("/nowhere");
        let source = |text: &str| [("a.rs".to_owned(), text.to_owned())];
        assert_eq!(check(root, &[], &source("let x = \"docs/x.md\";\n")), []);
        let refusals = check(root, &[], &source("f();\n/// Measured: docs/x.md, \"A\".\n"));
        assert_eq!(
            refusals[0].to_string(),
            "a.rs:2: `docs/x.md` is no file: name the page that has it now"
        );
    }

    #[test]
    fn paths_are_joined() {
        assert_eq!(join("docs/a/b.md", "../c/d.md"), "docs/c/d.md");
        assert_eq!(join("README.md", "./docs/"), "docs");
        assert_eq!(join("README.md", "../x"), "../x");
        assert_eq!(anchor("By `mma.sync`, A_b - c"), "by-mmasync-a_b---c");
    }
}
