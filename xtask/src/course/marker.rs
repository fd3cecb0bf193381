//! A document split at its markers, and joined again.

use anyhow::{Context, Result, bail, ensure};

/// The kinds of markers, and whether arguments must follow.
const KINDS: [(&str, bool); 10] = [
    ("source", true),
    ("counts", true),
    ("families", false),
    ("exercises", false),
    ("ladder", false),
    ("bench", true),
    ("measured", true),
    ("output", true),
    ("example", true),
    ("words", false),
];
const END: &str = "<!-- end -->";

/// A marker: `<!-- KIND: ARGUMENTS -->`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker<'a> {
    /// Its line in the document, from 1.
    pub line: usize,
    pub kind: &'a str,
    pub arguments: &'a str,
}

impl<'a> Marker<'a> {
    /// The marker in a line. `None` for any other line.
    fn read(text: &'a str, line: usize) -> Result<Option<Marker<'a>>> {
        let Some(inner) = text.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"))
        else {
            return Ok(None);
        };
        let (kind, arguments) = inner.split_once(": ").unwrap_or((inner, ""));
        let Some((_, takes)) = KINDS.iter().find(|(known, _)| *known == kind) else {
            let known = KINDS.map(|(known, _)| known).join(", ");
            bail!("line {line}: no marker begins with `{kind}`: there are {known}");
        };
        ensure!(arguments.is_empty() != *takes, "line {line}: `{kind}: ` of what? Or of nothing?");
        Ok(Some(Marker { line, kind, arguments }))
    }
}

/// A document with its markers filled.
#[derive(Debug)]
pub struct Filled {
    pub text: String,
    pub markers: usize,
    /// The markers whose text was different.
    pub stale: Vec<String>,
}

/// Puts the text of `write` after each marker. `None` keeps the text.
pub fn fill(
    text: &str,
    mut write: impl FnMut(&Marker) -> Result<Option<String>>,
) -> Result<Filled> {
    let mut filled = Filled { text: String::new(), markers: 0, stale: Vec::new() };
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        filled.text += &format!("{line}\n");
        ensure!(line != END, "line {number}: `{END}` without a marker before it");
        let Some(marker) = Marker::read(line, number)? else { continue };
        filled.markers += 1;
        let mut old = String::new();
        loop {
            let (line, _) = lines.next().with_context(|| format!("`{line}` has no `{END}`"))?;
            if line == END {
                break;
            }
            old += &format!("{line}\n");
        }
        let new = write(&marker).with_context(|| format!("line {number}, `{line}`"))?;
        let new = new.map_or(old.clone(), |new| format!("{}\n", new.trim_end()));
        if new != old {
            filled.stale.push(format!("line {number}: {line}"));
        }
        filled.text += &format!("{new}{END}\n");
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A\n<!-- source: x.rs fn f -->\nold\nlines\n<!-- end -->\nB\n\
                        <!-- ladder -->\n<!-- end -->\nC\n";

    #[test]
    fn what_stands_between_markers_is_replaced_and_nothing_else() {
        let mut lines = Vec::new();
        let mut write = |marker: &Marker| {
            lines.push(marker.line);
            Ok(Some(format!("{} of {}.\n\n", marker.kind, marker.arguments)))
        };
        let filled = fill(TEXT, &mut write).unwrap();
        let expected = "# A\n<!-- source: x.rs fn f -->\nsource of x.rs fn f.\n<!-- end -->\nB\n\
                        <!-- ladder -->\nladder of .\n<!-- end -->\nC\n";
        assert_eq!((&*filled.text, filled.markers), (expected, 2));
        let stale = ["line 2: <!-- source: x.rs fn f -->", "line 7: <!-- ladder -->"];
        assert_eq!(filled.stale, stale);
        // A second run changes nothing.
        let again = fill(expected, &mut write).unwrap();
        assert_eq!((&*again.text, again.stale.len()), (expected, 0));
        assert_eq!(lines, [2, 7, 2, 6]);
    }

    #[test]
    fn what_is_left_alone_stays() {
        let filled = fill(TEXT, |_| Ok(None)).unwrap();
        assert_eq!((&*filled.text, filled.stale.len()), (TEXT, 0));
    }

    #[test]
    fn a_marker_without_an_end_is_refused_and_one_that_nobody_knows() {
        for (text, words) in [
            ("<!-- ladder -->\nA\n", "has no `<!-- end -->`"),
            ("A\n<!-- end -->\n", "line 2"),
            ("<!-- sources: x -->\n<!-- end -->\n", "no marker begins with `sources`"),
            ("<!-- source -->\n<!-- end -->\n", "of what?"),
            ("<!-- ladder: x -->\n<!-- end -->\n", "Or of nothing?"),
        ] {
            let error = fill(text, |_| Ok(None)).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        let error = fill(TEXT, |_| bail!("no")).unwrap_err();
        assert!(format!("{error:#}").contains("line 2, `<!-- source: x.rs fn f -->`: no"));
    }
}
