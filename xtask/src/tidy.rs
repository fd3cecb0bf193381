//! `cargo xtask tidy`: rules for documents and comments.
//!
//! | module | refused |
//! |---|---|
//! | (here) | a README above its limit |
//! | `links` | links and paths that lead nowhere |
//! | `words` | retired words, in documents and in sources |
//! | `prose` | paragraphs and sentences that are too long |
//! | `comments` | comments that are wider than rustfmt's `max_width` |
//! | `page` | nothing: a document split into prose, code, tables and generated text |
//!
//! Each refusal is a line: the file, the line, and what to write instead.

mod comments;
mod links;
mod page;
mod prose;
mod refusal;
mod words;

use std::{fs, path::Path};

use anyhow::{Result, bail};

use self::{page::Page, refusal::Refusal};
use crate::{
    course,
    environment::{known_files, say},
};

/// The most bytes of README: it is read in five minutes.
const README_BYTES: usize = 10_000;

/// Checks everything in the workspace in `root`.
///
/// # Errors
/// All refusals, one on a line.
pub fn run(root: &Path) -> Result<()> {
    let documents = course::documents(root)?;
    let pages = documents.iter().map(|(file, text)| Page::new(file, text)).collect::<Vec<_>>();
    let sources = known_files(root, &["*.rs", "*.toml", ".ci"])?;
    let mut refusals = readme(&documents);
    refusals.extend(links::check(root, &pages, &sources));
    refusals.extend(words::check(&pages, &sources));
    refusals.extend(prose::check(&pages));
    let settings = fs::read_to_string(root.join("rustfmt.toml")).unwrap_or_default();
    refusals.extend(comments::check(comments::max_width(&settings), &sources));
    refusals.sort();
    if refusals.is_empty() {
        return say(&format!("tidy: {} pages, {} sources\n", pages.len(), sources.len()));
    }
    let lines = refusals.iter().map(|refusal| format!("  {refusal}\n")).collect::<String>();
    bail!("{} to mend:\n{}", refusals.len(), lines.trim_end())
}

fn readme(documents: &[(String, String)]) -> Vec<Refusal> {
    let readme =
        documents.iter().filter(|(file, text)| file == "README.md" && text.len() > README_BYTES);
    let refusal = |(file, text): &(String, String)| Refusal {
        file: file.clone(),
        line: 1,
        what: format!(
            "{} bytes, and {README_BYTES} are allowed: move a part to a page in docs, and link it",
            text.len()
        ),
    };
    readme.map(refusal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readme_has_a_size() {
        let documents = |bytes| [("README.md".to_owned(), "x".repeat(bytes))];
        assert_eq!(readme(&documents(README_BYTES)), []);
        let refusals = readme(&documents(README_BYTES + 1));
        let expected = "README.md:1: 10001 bytes, and 10000 are allowed: move a part to a page in docs, and link it";
        assert_eq!(refusals[0].to_string(), expected);
    }
}
