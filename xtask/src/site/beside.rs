//! Two sources side by side, with the difference marked.

use std::fmt::Write as _;

/// A line of both sources, or of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row<'t> {
    Same(&'t str),
    /// A line of the first, one of the second, or both where one replaces the other.
    Differs(Option<&'t str>, Option<&'t str>),
}

/// A table of two columns as HTML, on one line: Markdown would read on after an empty one.
pub(super) fn table([(old_name, old), (new_name, new)]: [(&str, &str); 2]) -> String {
    let rows = rows(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let mut html = format!(
        "<div class=\"beside\" tabindex=\"0\" role=\"region\" aria-label=\"{old_name} and {new_name}, side by \
         side\"><table><tr><th>{old_name}</th><th>{new_name}</th></tr>"
    );
    for row in rows {
        let _ = match row {
            Row::Same(text) => {
                let cell = cell(Some(text));
                write!(html, "<tr class=\"same\"><td>{cell}</td><td>{cell}</td></tr>")
            }
            Row::Differs(old, new) => {
                let class = |line: Option<&str>, name| if line.is_some() { name } else { "none" };
                write!(
                    html,
                    "<tr class=\"differs\"><td class=\"{}\">{}</td><td class=\"{}\">{}</td></tr>",
                    class(old, "gone"),
                    cell(old),
                    class(new, "new"),
                    cell(new)
                )
            }
        };
    }
    html + "</table></div>"
}

/// The share of the second source's lines that are not in the first.
pub(super) fn new_lines(old: &str, new: &str) -> usize {
    let rows = rows(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    rows.iter().filter(|row| matches!(row, Row::Differs(_, Some(_)))).count()
}

fn cell(line: Option<&str>) -> String {
    match line {
        Some("") => "&#8203;".to_owned(),
        Some(text) => escaped(text),
        None => String::new(),
    }
}

/// Text in HTML, where Markdown and mdBook find nothing of theirs.
pub(super) fn escaped(text: &str) -> String {
    let mut html = String::new();
    for letter in text.chars() {
        match letter {
            '&' => html += "&amp;",
            '<' => html += "&lt;",
            '>' => html += "&gt;",
            '"' => html += "&quot;",
            '{' => html += "&#123;",
            letter => html.push(letter),
        }
    }
    html
}

/// The longest common subsequence decides which lines are the same.
fn rows<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Row<'t>> {
    let mut longest = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i][j] = match old[i] == new[j] {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut rows) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            rows.push(Row::Same(old[i]));
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let (from_i, from_j) = (i, j);
        while (i < old.len() || j < new.len())
            && !(i < old.len() && j < new.len() && old[i] == new[j])
        {
            if j == new.len() || (i < old.len() && longest[i + 1][j] >= longest[i][j + 1]) {
                i += 1;
            } else {
                j += 1;
            }
        }
        let (gone, come) = (&old[from_i..i], &new[from_j..j]);
        for line in 0..gone.len().max(come.len()) {
            rows.push(Row::Differs(gone.get(line).copied(), come.get(line).copied()));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_beside_itself() {
        let rows = rows(&["a", "b", "c", "d"], &["a", "x", "c", "y", "z", "d"]);
        let expected = [
            Row::Same("a"),
            Row::Differs(Some("b"), Some("x")),
            Row::Same("c"),
            Row::Differs(None, Some("y")),
            Row::Differs(None, Some("z")),
            Row::Same("d"),
        ];
        assert_eq!(rows, expected);
        assert_eq!(super::rows(&[], &["a"]), [Row::Differs(None, Some("a"))]);
        assert_eq!(super::rows(&["a"], &[]), [Row::Differs(Some("a"), None)]);
        assert_eq!(new_lines("a\nb\nc", "a\nc\nd\ne"), 2);
    }

    #[test]
    fn a_table_is_one_line_and_safe() {
        let html = table([("old", "f(<T>);\n\nend"), ("new", "g(&{{x}});\n\nend")]);
        assert!(!html.contains('\n') && !html.contains("{{"), "{html}");
        assert!(html.contains("<td class=\"gone\">f(&lt;T&gt;);</td>"), "{html}");
        assert!(html.contains("<td class=\"new\">g(&amp;&#123;&#123;x}});</td>"), "{html}");
        assert_eq!(html.matches("<tr class=\"same\">").count(), 2, "the empty line and the last");
    }
}
