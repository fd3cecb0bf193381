//! What the page of a rung gets: the picture of a block, and the rung's source beside the last
//! rung's.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{
    beside::{new_lines, table},
    host::Host,
};
use crate::course::{body, function};

/// A rung of one of the course's two ladders.
pub(super) struct Rung {
    pub(super) name: String,
    idea: String,
    file: String,
    /// The rung before, by name and file.
    before: Option<(String, String)>,
}

/// All rungs, in order, from the command's list of kernels.
pub(super) fn rungs(host: &Host) -> Result<Vec<Rung>> {
    let mut rungs = Vec::<Rung>::new();
    let mut last = None::<(String, String, String)>;
    for kernel in host.kernels()?.iter().filter(|kernel| kernel["idea"].is_string()) {
        let text = |key: &str| kernel[key].as_str().unwrap_or_default().to_owned();
        let (name, file, operands) = (text("name"), text("file"), text("operands"));
        let before = last.take().filter(|(.., of)| *of == operands);
        let before = before.map(|(name, file, _)| (name, file));
        rungs.push(Rung { name: name.clone(), idea: text("idea"), file: file.clone(), before });
        last = Some((name, file, operands));
    }
    Ok(rungs)
}

impl Rung {
    /// The page with what it gets: before its first source or its second heading, whichever comes
    /// first.
    pub(super) fn page(
        &self,
        root: &Path,
        text: &str,
        host: &Host,
        scratch: &Path,
    ) -> Result<String> {
        let (head, rest) = split(text);
        let picture = self.picture(host, scratch)?;
        let beside = self.beside(root)?;
        // A page that goes on with a source has no heading for it.
        let heading = if rest.starts_with("<!-- ") { "## The kernel\n\n" } else { "" };
        let idea = &self.idea;
        Ok(format!(
            "{head}\n## The picture\n\n*In one sentence: {idea}.* The block below ran on the CPU when this page was \
             built. Its figures are counted.\n\n{picture}\n{beside}{heading}{rest}"
        ))
    }

    /// The element that a page's script draws. `scratch`: a folder for the command's page.
    fn picture(&self, host: &Host, scratch: &Path) -> Result<String> {
        let file = scratch.join(format!("{}.html", self.name));
        let path = file.to_str().context("the target folder's name is no text")?;
        host.run(&["explain", &self.name, "--html", path])?;
        let page = fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
        let line = page.lines().find(|line| line.starts_with("<div class=\"trace\">"));
        Ok(format!("{}\n", line.context("the command's page has no picture")?))
    }

    /// The source beside the last rung's.
    fn beside(&self, root: &Path) -> Result<String> {
        let Some((name, file)) = &self.before else { return Ok(String::new()) };
        if *file == self.file {
            return Ok(format!(
                "## Beside the last rung\n\n`{name}` and `{}` are one function: only its constant differs.\n\n",
                self.name
            ));
        }
        let text = |file| {
            fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
        };
        let (what, [old, new]) = shown([(name, &text(file)?), (&self.name, &text(&self.file)?)]);
        let (count, all) = (new_lines(&old, &new), new.lines().count());
        Ok(format!(
            "## Beside the last rung\n\n{count} of the {all} lines of `{}`{what} are not in `{name}`. They are marked.\n\n{}\n\n",
            self.name,
            table([(name, &old), (&self.name, &new)])
        ))
    }
}

/// The fewest lines of a kernel that is more than a call of another function.
const KERNEL_LINES: usize = 15;

/// What is compared of two files: the kernels' own functions. If one of the two only calls another
/// function: the files. And what to say of it.
fn shown(kernels: [(&str, &str); 2]) -> (&'static str, [String; 2]) {
    let alone = kernels.map(|(name, text)| {
        function(text, name).ok().filter(|kernel| kernel.lines().count() >= KERNEL_LINES)
    });
    match alone {
        [Some(old), Some(new)] => (" itself, without the functions that it calls,", [old, new]),
        _ => ("", kernels.map(|(_, text)| body(text))),
    }
}

/// A page's first paragraphs, and the rest.
fn split(text: &str) -> (&str, &str) {
    let places = ["\n<!-- source: ", "\n<!-- counts: ", "\n## "].map(|mark| text.find(mark));
    let place = places.into_iter().flatten().min().map_or(text.len(), |place| place + 1);
    text.split_at(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_split_before_its_first_source() {
        let page = "# a\n\nIdea.\n\n<!-- source: x.rs -->\ncode\n\n## More\n";
        assert_eq!(split(page), ("# a\n\nIdea.\n\n", "<!-- source: x.rs -->\ncode\n\n## More\n"));
        assert_eq!(split("# a\n\nIdea.\n"), ("# a\n\nIdea.\n", ""));
        let kernel = format!("#[kernel]\npub fn k() {{\n{}}}", "    f();\n".repeat(15));
        let file = format!("//! Head.\n\nfn f() {{}}\n\n{kernel}\n");
        let (what, texts) = shown([("k", &file), ("k", &file)]);
        assert!(!what.is_empty() && texts == [kernel.clone(), kernel]);
        let short = "fn k() {\n    f();\n}\n";
        let (what, [_, new]) = shown([("k", &file), ("k", short)]);
        assert_eq!((what, &*new), ("", short.trim_end()));
        assert_eq!(body("//! Head.\n\nuse a;\n\nfn f() {}\n"), "use a;\n\nfn f() {}");
    }
}
