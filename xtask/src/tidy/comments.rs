//! Comments that are wider than rustfmt's `max_width`. It leaves them as they are, and wide lines
//! are not counted where lines are.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use proc_macro2::{TokenStream, TokenTree};

use super::refusal::Refusal;

/// The setting in the text of rustfmt.toml, or rustfmt's default.
pub(super) fn max_width(settings: &str) -> usize {
    let value = settings.lines().find_map(|line| line.strip_prefix("max_width = "));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(100)
}

/// Comments and documentation of sources that are too wide. Tables, blocks of code and what cannot
/// be broken may be.
pub(super) fn check(max_width: usize, sources: &[(String, String)]) -> Vec<Refusal> {
    let is_wide = |line: &str| line.chars().count() > max_width;
    let mut refusals = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| file.ends_with(".rs")) {
        if !text.lines().any(is_wide) {
            continue;
        }
        let code = Code::of(text);
        let (mut fenced, mut before) = (false, "");
        for (line, number) in text.lines().zip(1..) {
            let (marker, words) = match code.is_text(number) {
                true => ("", ""),
                false => comment(line),
            };
            // A block of code ends with its comment.
            fenced &= marker == before;
            before = marker;
            let is_fence = words.starts_with("```");
            fenced ^= is_fence && marker != "//";
            let is_kept = fenced || is_fence || words.starts_with('|') || code.is_text(number);
            if !is_wide(line) || is_kept {
                continue;
            }
            let what = match marker {
                "" if code.has_comment_behind(number, line) => "beside code: put it above",
                "" => continue,
                _ if !can_be_broken(line, words, max_width) => continue,
                _ => "break it",
            };
            let width = line.chars().count();
            let what = format!("a comment of {width} letters, and {max_width} are allowed: {what}");
            refusals.push(Refusal { file: file.clone(), line: number, what });
        }
    }
    refusals
}

/// The marker of a line that is a comment, and its words.
fn comment(line: &str) -> (&str, &str) {
    let line = line.trim();
    let marker = ["///", "//!", "//"].into_iter().find(|marker| line.starts_with(marker));
    marker.map_or(("", ""), |marker| (marker, line[marker.len()..].trim()))
}

/// Whether a word begins after the first one, and within the width. The definition of a link is one
/// line.
fn can_be_broken(line: &str, words: &str, max_width: usize) -> bool {
    let is_link = words.starts_with('[') && words.contains("]: ");
    let indent = line.chars().count() - words.chars().count();
    // The marker of a list is no word.
    let marker = words.find(' ').filter(|at| *at < 3).map_or(0, |at| at + 1);
    let first = words[marker..].find(' ').map_or(usize::MAX, |at| indent + marker + at);
    !is_link && first <= max_width
}

/// Where a file has code.
struct Code {
    /// Lines that begin within a string.
    texts: BTreeSet<usize>,
    /// Where the last piece of code of a line ends.
    ends: BTreeMap<usize, usize>,
}

impl Code {
    fn of(text: &str) -> Code {
        let mut code = Code { texts: BTreeSet::new(), ends: BTreeMap::new() };
        // What does not parse is no file of the workspace, such as one that tests must refuse.
        if let Ok(tokens) = TokenStream::from_str(text) {
            code.add(tokens);
        }
        code
    }

    fn add(&mut self, tokens: TokenStream) {
        for token in tokens {
            let (start, end) = (token.span().start(), token.span().end());
            let last = self.ends.entry(end.line).or_default();
            *last = end.column.max(*last);
            match token {
                TokenTree::Group(group) => self.add(group.stream()),
                TokenTree::Literal(_) => self.texts.extend(start.line + 1..=end.line),
                _ => {}
            }
        }
    }

    fn is_text(&self, line: usize) -> bool {
        self.texts.contains(&line)
    }

    fn has_comment_behind(&self, number: usize, line: &str) -> bool {
        let end = self.ends.get(&number).copied().unwrap_or(0);
        line.chars().skip(end).collect::<String>().trim_start().starts_with("//")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Vec<String> {
        let refusals = check(30, &[("a.rs".to_owned(), text.to_owned())]);
        refusals.into_iter().map(|refusal| refusal.to_string()).collect()
    }

    #[test]
    fn the_width_is_rustfmts() {
        assert_eq!(max_width("a = 1\nmax_width = 90\n"), 90);
        assert_eq!(max_width("a = 1\n"), 100);
    }

    #[test]
    fn a_wide_comment_is_refused_with_its_line() {
        let wide = "words that are wider than thirty";
        for marker in ["//", "///", "//!"] {
            let refusal =
                &refused(&format!("{marker} narrow\n    {marker} {wide}\nfn f() {{}}\n"))[..];
            let [refusal] = refusal else { panic!("{refusal:?}") };
            assert!(
                refusal.starts_with("a.rs:2: a comment of 3")
                    || refusal.starts_with("a.rs:2: a comment of 4"),
                "{refusal}"
            );
            assert!(refusal.ends_with("and 30 are allowed: break it"), "{refusal}");
        }
        let beside = refused("let a_long_name = 12345; // why it is so\n");
        assert_eq!(
            beside,
            ["a.rs:1: a comment of 40 letters, and 30 are allowed: beside code: put it above"]
        );
        // Letters count, not bytes.
        assert_eq!(refused("// 30 letters: ²²²²²²²²²²²²²²\n"), [""; 0]);
    }

    #[test]
    fn what_cannot_be_broken_or_is_no_comment_stays() {
        for text in [
            "/// | a table | of two columns | is wide |\n",
            "/// ```\n/// let code = \"what a test compiles\";\n/// ```\n",
            "// https://example.org/a/very/long/path\n",
            "/// * https://example.org/a/very/long/path\n",
            "/// [name]: https://example.org/long path\n",
            "const A: &str = \"a string is rustfmt's matter\";\n",
            "const A: &str = \"\n// in a string there are no comments\n\";\n",
            "const A: &str = r#\"\n/// \"in a string\" there are no comments\n\"#;\n",
            "const A: &str = \"code // and no comment in it\";\n",
        ] {
            assert_eq!(refused(text), [""; 0], "{text}");
        }
        // After the block of code, and in a comment that follows it, the rule is back.
        let text = "/// ```\n/// a\n/// ```\n/// words that are wider than thirty\n";
        assert_eq!(refused(text).len(), 1);
        let text = "/// ```\n/// no end\nfn f() {}\n/// words that are wider than thirty\n";
        assert_eq!(refused(text).len(), 1);
    }
}
