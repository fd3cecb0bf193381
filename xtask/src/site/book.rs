//! The pages as mdBook wants them, and the table of contents.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{
    host::Host,
    rung::{self, Rung},
};
use crate::course;

/// The parts of the site: a folder of `docs`, and its heading.
const PARTS: [(&str, &str); 6] = [
    ("course", "The course"),
    ("guide", "Guide"),
    ("design", "Design"),
    ("results", "Results"),
    ("testing", "Testing"),
    ("log", "Log"),
];

/// Files of the pictures, which are in every page.
const PICTURES: &str = "host/src/picture/page";

const SETTINGS: &str = "\
[book]
title = \"Matrix multiplication in Rust, from three loops to tensor cores\"
language = \"en\"
src = \"source\"

[build]
build-dir = \"book\"
create-missing = false

[output.html]
default-theme = \"light\"
preferred-dark-theme = \"navy\"
additional-css = [\"theme/picture.css\", \"theme/site.css\"]
additional-js = [\"theme/picture.js\"]
no-section-label = true # a chapter has the number of its file

[output.html.print]
enable = false

[output.html.playground]
runnable = false
";

/// Writes the book's source into the folder. Returns the number of pages.
pub(super) fn write(root: &Path, folder: &Path, host: &Host) -> Result<usize> {
    let source = folder.join("source");
    if source.exists() {
        fs::remove_dir_all(&source)
            .with_context(|| format!("cannot empty {}", source.display()))?;
    }
    let (scratch, theme) = (folder.join("pictures"), folder.join("theme"));
    for folder in [&source, &scratch, &theme] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    put(&folder.join("book.toml"), SETTINGS)?;
    put(&theme.join("site.css"), include_str!("site.css"))?;
    for name in ["picture.css", "picture.js"] {
        let from = root.join(PICTURES).join(name);
        fs::copy(&from, theme.join(name))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    copy_others(&root.join("docs"), &source)?;
    let rungs = rung::rungs(host)?;
    let mut contents = Vec::new();
    for (name, text) in course::documents(root)? {
        let Some(inside) = name.strip_prefix("docs/") else { continue };
        let text = without_outer_links(root, &name, &text);
        let text = match rung_of(inside, &rungs) {
            Some(rung) => rung.page(root, &text, host, &scratch).with_context(|| name.clone())?,
            None => text,
        };
        put(&source.join(inside), &text)?;
        contents.push((inside.to_owned(), title(&text).with_context(|| name.clone())?));
    }
    for rung in &rungs {
        let has_page = contents.iter().any(|(page, _)| is_page_of(page, &rung.name));
        ensure!(has_page, "the rung {} has no page in docs/course", rung.name);
    }
    put(&source.join("SUMMARY.md"), &summary(&contents))?;
    Ok(contents.len())
}

/// A rung's page is `course/NUMBER-NAME.md`.
fn rung_of<'r>(page: &str, rungs: &'r [Rung]) -> Option<&'r Rung> {
    rungs.iter().find(|rung| is_page_of(page, &rung.name))
}

fn is_page_of(page: &str, name: &str) -> bool {
    let stem = page.strip_prefix("course/").and_then(|rest| rest.strip_suffix(".md"));
    stem.and_then(|stem| stem.split_once('-')).is_some_and(|(_, of)| of == name)
}

/// The first heading, as plain text.
fn title(text: &str) -> Result<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("# "));
    Ok(line.context("a page without a heading")?.replace(['`', '[', ']'], ""))
}

/// The number of a chapter: that with which its file's name begins.
fn number(page: &str) -> Option<u32> {
    let name = page.rsplit('/').next()?;
    name.split_once('-')?.0.parse().ok()
}

/// The table of contents, in mdBook's form.
fn summary(contents: &[(String, String)]) -> String {
    let mut text = "# Summary\n\n".to_owned();
    let entry = |(page, title): &(String, String), is_in_list: bool| {
        let number = number(page).map(|number| format!("{number}. ")).unwrap_or_default();
        format!("{}[{number}{title}]({page})\n", if is_in_list { "- " } else { "" })
    };
    for page in contents.iter().filter(|(page, _)| !page.contains('/')) {
        text += &entry(page, false);
    }
    for (folder, heading) in PARTS {
        text += &format!("\n# {heading}\n\n");
        let own = contents
            .iter()
            .filter(|(page, _)| page.split_once('/').is_some_and(|(top, _)| top == folder));
        // The page of the folder itself comes first.
        let (first, rest) = own.partition::<Vec<_>, _>(|(page, _)| page.ends_with("README.md"));
        for page in first.into_iter().chain(rest) {
            text += &entry(page, true);
        }
    }
    text
}

/// A page whose links to files outside `docs`, and to folders, are plain text: the site does not
/// have them.
fn without_outer_links(root: &Path, name: &str, text: &str) -> String {
    let mut page = text.to_owned();
    let mut from = 0;
    while let Some(middle) = page[from..].find("](").map(|place| from + place) {
        from = middle + 2;
        let Some(end) = page[from..].find(')').map(|place| from + place) else { break };
        let Some(begin) = page[..middle].rfind('[') else { continue };
        let target = page[from..end].split('#').next().unwrap_or_default();
        if target.is_empty() || target.contains("://") {
            continue;
        }
        if is_inside(root, name, target) {
            // mdBook calls such a page index.html, and does not change links to it.
            if let Some(folder) = target.strip_suffix("README.md") {
                let index = format!("{folder}index.html");
                page.replace_range(from..from + target.len(), &index);
            }
            continue;
        }
        let words = page[begin + 1..middle].to_owned();
        page.replace_range(begin..=end, &words);
        from = begin + words.len();
    }
    page
}

/// Whether a link of a page leads to a file of `docs`.
fn is_inside(root: &Path, name: &str, target: &str) -> bool {
    let mut place = PathBuf::from(name);
    place.pop();
    for part in Path::new(target).components() {
        match part {
            std::path::Component::ParentDir => {
                place.pop();
            }
            part => place.push(part),
        }
    }
    place.starts_with("docs") && root.join(place).is_file()
}

/// Copies what is no page: pictures, and recorded figures.
fn copy_others(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            fs::create_dir_all(&target)
                .with_context(|| format!("cannot make {}", target.display()))?;
            copy_others(&path, &target)?;
        } else if path.extension().is_none_or(|extension| extension != "md") {
            fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_s_page_is_known_by_its_name() {
        assert!(is_page_of("course/05-tiled16.md", "tiled16"));
        assert!(is_page_of("course/20-tensor_mma.md", "tensor_mma"));
        assert!(!is_page_of("course/05-tiled16.md", "tiled1"));
        assert!(!is_page_of("guide/05-tiled16.md", "tiled16"));
    }

    #[test]
    fn links_out_of_the_pages_become_text() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = "See [the\nfile](../../gpu/src/lib.rs), [a page](../glossary.md#x), [there](#y) and \
                    [more](https://example.org).";
        let expected = "See the\nfile, [a page](../glossary.md#x), [there](#y) and [more](https://example.org).";
        assert_eq!(without_outer_links(root, "docs/course/README.md", text), expected);
        let text = without_outer_links(root, "docs/log/mma.md", "[all](../results/README.md#x)");
        assert_eq!(text, "[all](../results/index.html#x)");
    }

    #[test]
    fn the_contents_begin_with_the_page_of_a_folder() {
        let pages = ["README.md", "course/01-a.md", "course/README.md", "log/b.md"];
        let contents = pages.map(|page| (page.to_owned(), page.to_uppercase()));
        let text = summary(&contents);
        assert!(
            text.starts_with("# Summary\n\n[README.MD](README.md)\n\n# The course\n\n"),
            "{text}"
        );
        let first = text.find("(course/README.md)").unwrap();
        assert!(first < text.find("(course/01-a.md)").unwrap());
        assert_eq!(title("a\n# The `x` [of] y\n").unwrap(), "The x of y");
        // A chapter has the number of its file, whatever stands before it.
        assert!(text.contains("- [1. COURSE/01-A.MD](course/01-a.md)"), "{text}");
        assert!(text.contains("- [COURSE/README.MD]") && text.contains("- [LOG/B.MD]"), "{text}");
        assert!(SETTINGS.contains("no-section-label = true"));
    }
}
