//! A document split into lines of prose, code, tables and generated text.

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prose,
    Heading,
    Table,
    /// A code block with its fences, or an indented one.
    Code,
    /// Between a marker of `cargo xtask course` and its end.
    Generated,
}

pub(super) struct Line<'a> {
    /// From 1.
    pub number: usize,
    pub kind: Kind,
    pub text: &'a str,
}

/// A document.
pub(super) struct Page<'a> {
    /// Its path below the root.
    pub file: &'a str,
    pub lines: Vec<Line<'a>>,
}

impl<'a> Page<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Page<'a> {
        let (mut is_fenced, mut is_generated, mut is_blank) = (false, false, true);
        let mut lines: Vec<Line> = Vec::new();
        for (text, number) in text.lines().zip(1..) {
            let is_fence = text.trim_start().starts_with("```");
            let before = lines.last().map(|line| line.kind);
            let kind = match () {
                _ if text.starts_with("<!-- ") => {
                    is_generated = text != "<!-- end -->" && !is_fenced;
                    Kind::Generated
                }
                _ if is_generated => Kind::Generated,
                _ if is_fence || is_fenced => Kind::Code,
                // An indented block follows an empty line. (In a list such a line is a
                // continuation.)
                _ if text.starts_with("    ") && (is_blank || before == Some(Kind::Code)) => {
                    Kind::Code
                }
                _ if text.starts_with('#') => Kind::Heading,
                _ if text.starts_with('|') => Kind::Table,
                _ => Kind::Prose,
            };
            is_fenced ^= is_fence;
            is_blank = text.trim().is_empty();
            lines.push(Line { number, kind, text });
        }
        Page { file, lines }
    }

    /// Its lines that people write.
    pub fn written(&self) -> impl Iterator<Item = &Line<'a>> {
        let is_written = |kind| matches!(kind, Kind::Prose | Kind::Heading | Kind::Table);
        self.lines.iter().filter(move |line| is_written(line.kind))
    }
}

/// A line with each piece in backticks replaced by one letter.
pub(super) fn without_code(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let outside = |(number, piece): (usize, &str)| match number % 2 {
        0 => piece.to_owned(),
        _ => "`".to_owned(),
    };
    pieces.map(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_kinds() {
        let text = "# A\n\nprose\n\n```text\n# code\n```\n| a |\n<!-- counts: k -->\n| b |\n```rust\n```\n<!-- end -->\n\n    \
                    indented\n\n* item\n    continued\n";
        let page = Page::new("x.md", text);
        let kinds = page.lines.iter().map(|line| line.kind).collect::<Vec<_>>();
        use Kind::*;
        let expected = [
            Heading, Prose, Prose, Prose, Code, Code, Code, Table, Generated, Generated, Generated,
            Generated, Generated, Prose, Code, Prose, Prose, Prose,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(
            page.written().map(|line| line.number).collect::<Vec<_>>(),
            [1, 2, 3, 4, 8, 14, 16, 17, 18]
        );
        assert_eq!(without_code("a `b c` d `e`"), "a ` d `");
    }
}
