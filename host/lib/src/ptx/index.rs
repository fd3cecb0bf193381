//! An index of the kernels in a PTX text. One pass makes it: a text may have tens of megabytes and
//! hundreds of kernels.

use std::{collections::HashMap, ops::Range};

/// A PTX text and the places of its kernels.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    text: &'a str,
    /// In the order of the text.
    kernels: Vec<Kernel<'a>>,
    /// The declarations of kernels, by name.
    declarations: HashMap<&'a str, &'a str>,
}

/// A kernel in a text.
#[derive(Debug)]
struct Kernel<'a> {
    name: &'a str,
    /// From the line with the name to the line that closes the body.
    place: Range<usize>,
}

/// The beginning of a kernel's first line, and of its declaration.
const ENTRY: &str = ".visible .entry ";
const DECLARATION: &str = "// simt.kernel name=";

impl<'a> Index<'a> {
    /// Reads a text.
    pub(crate) fn new(text: &'a str) -> Self {
        let (mut kernels, mut declarations) = (Vec::new(), HashMap::new());
        // The kernel whose body has not ended.
        let mut open = None;
        let mut start = 0;
        // (Line by line, because the search for a newline is optimised in a dev build, too.)
        while let Some(len) = text[start..].find('\n') {
            let (line, end) = (&text[start..start + len], start + len + 1);
            match line.as_bytes() {
                [b'.', ..] if open.is_none() && line.starts_with(ENTRY) => {
                    open = line[ENTRY.len()..].split('(').next().map(|name| (name, start));
                }
                b"}" => {
                    if let Some((name, first)) = open.take() {
                        kernels.push(Kernel { name, place: first..end });
                    }
                }
                [b'/' | b' ' | b'\t', ..] => declares(line, &mut declarations),
                _ => {}
            }
            start = end;
        }
        declares(&text[start..], &mut declarations);
        Index { text, kernels, declarations }
    }

    /// The declarations of its kernels, by name.
    pub(crate) fn declarations(&self) -> HashMap<String, String> {
        let owned = |(name, of): (&&str, &&str)| ((*name).to_owned(), (*of).to_owned());
        self.declarations.iter().map(owned).collect()
    }
}

/// Adds the declaration in a line, if there is one. Of two for one name the first counts.
fn declares<'a>(line: &'a str, declarations: &mut HashMap<&'a str, &'a str>) {
    let start = line.bytes().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(0);
    let Some(rest) = line[start..].strip_prefix(DECLARATION) else { return };
    if let Some((name, _)) = rest.split_once(' ') {
        let declaration = &line.trim()["// ".len()..];
        declarations.entry(name).or_insert(declaration);
    }
}

impl<'a> Index<'a> {
    /// The text before, between and after the kernels: one part more than there are kernels.
    pub(super) fn outside(&self) -> impl Iterator<Item = &'a str> {
        let ends = self.kernels.iter().map(|kernel| kernel.place.end);
        let starts = self.kernels.iter().map(|kernel| kernel.place.start).chain([self.text.len()]);
        [0].into_iter().chain(ends).zip(starts).map(|(end, start)| &self.text[end..start])
    }

    /// The names and texts of the kernels.
    pub(super) fn kernels(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.kernels.iter().map(|kernel| (kernel.name, &self.text[kernel.place.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_declarations_the_first_counts_and_the_last_line_needs_no_end() {
        let text = "// simt.kernel name=none of it\n.visible .entry one(\n)\n{\n\
                    \t// simt.kernel name=one first \n// simt.kernel name=one second\n}\n\
                    .visible .entry open(\n{\n\t// simt.kernel name=open the last";
        let index = Index::new(text);
        let declared = |kernel: &str| index.declarations().get(kernel).cloned();
        assert_eq!(declared("one").as_deref(), Some("simt.kernel name=one first"));
        assert_eq!(declared("open").as_deref(), Some("simt.kernel name=open the last"));
        assert_eq!(declared("on"), None);
        // What no line closes is no kernel.
        assert_eq!(index.kernels.iter().map(|kernel| kernel.name).collect::<Vec<_>>(), ["one"]);
        assert_eq!(index.kernels[0].place, 31..text.find(".visible .entry open").unwrap());
    }
}
