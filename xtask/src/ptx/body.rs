//! A function's body: statements, labels, and their places.

use std::ops::Range;

use super::statement::{Label, Statement, line_at};

/// The text between a function's braces.
pub(super) struct Body {
    pub(super) statements: Vec<Statement>,
    pub(super) labels: Vec<Label>,
    /// The start of each statement in the file, after its labels and its predicate.
    pub(super) starts: Vec<usize>,
}

impl Body {
    /// Splits a body into statements and labels. A brace at the start of a statement opens or
    /// closes a block. Any other brace belongs to a vector operand, `{%r1, %r2}`.
    pub(super) fn read(code: &str, body: Range<usize>) -> Body {
        let mut statements = Vec::new();
        let mut starts = Vec::new();
        let mut labels: Vec<Label> = Vec::new();
        // The labels of each open block start here.
        let mut blocks = vec![(0, 0)];
        let mut start = body.start;
        let mut line = line_at(code, body.start);
        let mut in_operand = false;
        // The body's own closing brace is read last.
        for (offset, byte) in code[body.clone()].bytes().chain(*b"}").enumerate() {
            let at = body.start + offset;
            match byte {
                b'{' if !strip_labels(&code[start..at]).is_empty() => in_operand = true,
                b'}' if in_operand => in_operand = false,
                b';' | b'{' | b'}' => {
                    let whole = &code[start..at];
                    let text = strip_labels(whole);
                    let lead = &whole[..whole.len() - text.len()];
                    let next = statements.len();
                    let names = lead.split_whitespace().filter_map(|word| word.strip_suffix(':'));
                    labels.extend(names.map(|name| Label {
                        name: name.into(),
                        statement: next,
                        scope: next..usize::MAX,
                    }));
                    if !text.is_empty() {
                        let line = line + lead.matches('\n').count();
                        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                        let mut words = lead.split_whitespace();
                        let predicate = words.rfind(|word| word.starts_with('@'));
                        let predicate = predicate.unwrap_or_default().to_owned();
                        statements.push(Statement { line, text, predicate });
                        starts.push(start + lead.len());
                    }
                    line += whole.matches('\n').count();
                    start = at + 1;
                    match byte {
                        b'{' => blocks.push((statements.len(), labels.len())),
                        b'}' => {
                            let (from, first) = blocks.pop().unwrap_or_default();
                            let here = from..statements.len();
                            // Inner blocks have closed theirs.
                            let open = labels.iter_mut().skip(first);
                            open.filter(|label| label.scope.end == usize::MAX)
                                .for_each(|label| label.scope = here.clone());
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Body { statements, labels, starts }
    }
}

/// A statement without the labels and the predicate before it.
fn strip_labels(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let word = text.split(char::is_whitespace).next().unwrap_or_default();
        let is_label = word.ends_with(':') || word.starts_with('@');
        if !is_label {
            return text;
        }
        text = &text[word.len()..];
    }
}
