//! A finding as the compiler shows an error: for people, and as its JSON.

use std::fmt::Write;

use super::{finding::Kind, place::Place, seen::Seen, source};

/// An error, or a note of one.
pub(super) struct Diagnostic {
    level: &'static str,
    code: Option<Kind>,
    message: String,
    /// The place, and what is said of it there.
    place: Option<(Place, &'static str)>,
    notes: Vec<Diagnostic>,
}

const BOLD: &str = "1";
const RED: &str = "1;91";
const YELLOW: &str = "1;33";
const GREEN: &str = "1;92";
const BLUE: &str = "1;94";
const CYAN: &str = "1;96";

impl Diagnostic {
    /// What was found. `kernel`: the place of the kernel, for a finding that has none. `found_in`:
    /// the cases and orders in which it was.
    pub(super) fn of(Seen { finding, .. }: &Seen, kernel: Place, found_in: String) -> Self {
        let (does, did) = finding.verbs().unwrap_or(("", "and"));
        let place = finding.place.clone().map_or((kernel, "of this kernel"), |place| (place, does));
        let mut notes = Vec::new();
        if let Some(place) = finding.other_place.clone() {
            notes.push(Diagnostic {
                place: Some((place, "")),
                ..Self::note("note", format!("{did} here"))
            });
        }
        let advice = finding.advice();
        let detail = Some(&*finding.detail).filter(|detail| !detail.is_empty());
        notes.extend(detail.filter(|it| advice != Some(it)).map(|it| Self::note("note", it)));
        let examples = finding.examples().collect::<Vec<_>>().join("\n");
        let examples = Some(examples).filter(|examples| !examples.is_empty());
        notes.extend(examples.map(|it| Self::note("note", it)));
        notes.push(Self::note("note", found_in));
        notes.extend(advice.map(|it| Self::note("help", it)));
        let name = finding.kind.name();
        notes.push(Self::note("note", format!("more: `cargo gpu-check --explain {name}`")));
        let message = finding.title();
        Diagnostic { level: "error", code: Some(finding.kind), message, place: Some(place), notes }
    }

    /// A message without a place.
    pub(super) fn note(level: &'static str, message: impl Into<String>) -> Self {
        Diagnostic { level, code: None, message: message.into(), place: None, notes: Vec::new() }
    }

    /// The text for people.
    pub(super) fn rendered(&self, colours: bool) -> String {
        let paint = |code: &str, text: &str| match colours {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        };
        let lines = [self].into_iter().chain(&self.notes).filter_map(|it| it.place.as_ref());
        let width = lines.map(|(place, _)| place.line.to_string().len()).max().unwrap_or(0);
        let bar = paint(BLUE, &format!("{:width$} |", ""));
        let mut text = String::new();
        let mut rows = |it: &Diagnostic, is_first: bool| {
            let colour = match it.level {
                "error" => RED,
                "warning" => YELLOW,
                "help" => CYAN,
                _ => GREEN,
            };
            let code = it.code.map(|code| format!("[{}]", code.name())).unwrap_or_default();
            let level = paint(colour, &format!("{}{code}", it.level));
            if !is_first && it.place.is_none() {
                let indent = format!("\n{:1$}", "", width + " = : ".len() + it.level.len());
                let message = it.message.replace("\n    ", "\n").replace('\n', &indent);
                let (sign, level) = (paint(BLUE, "="), paint(BOLD, it.level));
                return writeln!(text, "{:width$} {sign} {level}: {message}", "");
            }
            writeln!(text, "{level}{}", paint(BOLD, &format!(": {}", it.message)))?;
            let Some((place, label)) = &it.place else { return Ok(()) };
            writeln!(text, "{:width$}{} {place}", "", paint(BLUE, "-->"))?;
            let Some(line) = source::line(place) else { return Ok(()) };
            let number = paint(BLUE, &format!("{:<width$} |", place.line));
            let before = line.chars().take(place.column.saturating_sub(1) as usize).collect();
            let below = format!("^ {label}");
            let below = paint(if is_first { RED } else { GREEN }, below.trim_end());
            let indent = spaced(before).chars().count();
            writeln!(text, "{bar}\n{number} {}", spaced(line).trim_end())?;
            writeln!(text, "{bar} {:indent$}{below}", "")?;
            if is_first { writeln!(text, "{bar}") } else { Ok(()) }
        };
        let written = rows(self, true).and(self.notes.iter().try_for_each(|it| rows(it, false)));
        debug_assert!(written.is_ok(), "a string takes everything");
        text
    }

    /// The line of JSON, in the form of the compiler's own.
    pub(super) fn json(&self) -> String {
        format!(
            "{{\"$message_type\":\"diagnostic\",{}}}\n",
            self.fields(&quoted(&self.rendered(false)))
        )
    }

    fn fields(&self, rendered: &str) -> String {
        let code = self.code.map_or("null".to_owned(), |code| {
            let (name, explanation) = (quoted(code.name()), quoted(code.explanation()));
            format!("{{\"code\":{name},\"explanation\":{explanation}}}")
        });
        let spans = self.place.iter().map(|(place, label)| span(place, label)).collect::<String>();
        let notes = self.notes.iter().map(|it| format!("{{{}}}", it.fields("null")));
        format!(
            "\"message\":{},\"code\":{code},\"level\":\"{}\",\"spans\":[{spans}],\"children\":[{}],\"rendered\":{rendered}",
            quoted(&self.message),
            self.level,
            notes.collect::<Vec<_>>().join(",")
        )
    }
}

/// A place in the compiler's JSON. The bytes are those of the file, or 0 where it cannot be read.
fn span(place: &Place, label: &str) -> String {
    let Place { file, line, column } = place;
    let (first, text) = match source::line_at(place) {
        Some((start, line)) => {
            let before = line.chars().take(*column as usize - 1).map(char::len_utf8).sum::<usize>();
            let (text, end) = (quoted(&line), column + 1);
            let text =
                format!("{{\"text\":{text},\"highlight_start\":{column},\"highlight_end\":{end}}}");
            (start + before, text)
        }
        None => (0, String::new()),
    };
    let label = if label.is_empty() { "null".to_owned() } else { quoted(label) };
    format!(
        "{{\"file_name\":{},\"byte_start\":{first},\"byte_end\":{},\"line_start\":{line},\"line_end\":{line},\
         \"column_start\":{column},\"column_end\":{},\"is_primary\":true,\"text\":[{text}],\"label\":{label},\
         \"suggested_replacement\":null,\"suggestion_applicability\":null,\"expansion\":null}}",
        quoted(file),
        first + 1,
        column + 1
    )
}

/// A string of JSON.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted += "\\n",
            '\0'..' ' => quoted += &format!("\\u{:04x}", u32::from(letter)),
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Tabs as the compiler shows them.
fn spaced(text: String) -> String {
    text.replace('\t', "    ")
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Finding, *};
    use crate::cpu::order::Order;

    fn diagnostic(change: impl FnOnce(&mut Finding)) -> Diagnostic {
        let memory = Some("buffer \"y\"".to_owned());
        let mut finding =
            Finding::general(Kind::WriteAfterWrite, "sum", memory, "a\n    b".to_owned());
        let place = |file: &str, line| Place { file: file.to_owned(), line, column: 5 };
        finding.place = Some(place(file!(), 1));
        finding.other_place = Some(place("no/such.rs", 123));
        change(&mut finding);
        let seen = Seen { finding, orders: vec![Order::Forward] };
        Diagnostic::of(&seen, place("kernel.rs", 7), "in sum(3)".to_owned())
    }

    #[test]
    fn a_finding_is_shown_as_an_error_of_the_compiler() {
        let expected = format!(
            "error[write-after-write]: race: a write after a write, in buffer \"y\"
   --> {}:1:5
    |
1   | //! A finding as the compiler shows an error: for people, and as its JSON.
    |     ^ writes
    |
note: wrote here
   --> no/such.rs:123:5
    = note: in sum(3)
    = help: a
            b
    = note: more: `cargo gpu-check --explain write-after-write`
",
            file!()
        );
        assert_eq!(diagnostic(|_| {}).rendered(false), expected);
        let coloured = diagnostic(|_| {}).rendered(true);
        assert!(coloured.starts_with("\x1b[1;91merror[write-after-write]\x1b[0m"), "{coloured}");
    }

    #[test]
    fn a_finding_without_a_place_is_the_kernels() {
        let text =
            diagnostic(|it| (it.kind, it.place) = (Kind::NeverWritten, None)).rendered(false);
        assert!(text.contains("\n   --> kernel.rs:7:5\nnote: and here\n"), "{text}");
        assert!(text.contains("\n    = help: launch more blocks"), "{text}");
    }

    #[test]
    fn json_is_of_the_compilers_form() {
        let json = diagnostic(|_| {}).json();
        let begin = "{\"$message_type\":\"diagnostic\",\"message\":\"race: a write after a write, in buffer \\\"y\\\"\",\
                     \"code\":{\"code\":\"write-after-write\",\"explanation\":\"race\\n\\n`read-after-write`";
        assert!(json.starts_with(begin), "{json}");
        assert!(json.contains("is meant.\"},\"level\":\"error\",\"spans\":[{"), "{json}");
        assert!(json.contains("\"byte_start\":4,\"byte_end\":5,\"line_start\":1,"), "{json}");
        assert_eq!(json.lines().count(), 1);
        assert_eq!(quoted("a\t\"\\\n\u{e9}"), "\"a\\u0009\\\"\\\\\\n\u{e9}\"");
    }
}
