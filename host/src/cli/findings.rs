//! Findings, printed for people and as JSON.

use std::io::{self, Write};

use host::{
    check::Seen,
    gpu::registry,
    simt::check::{Example, Finding, Order, Place},
};
use serde::Serialize;

/// A finding in `--json`.
#[derive(Serialize)]
pub(super) struct FindingLine<'a> {
    kind: &'static str,
    kernel: &'static str,
    /// The buffer or the shared array.
    memory: Option<&'a str>,
    /// The number of its columns, if it has rows and columns.
    columns: Option<usize>,
    place: Option<PlaceLine<'a>>,
    /// The place of the conflicting access.
    other_place: Option<PlaceLine<'a>>,
    detail: &'a str,
    /// What to write, where that is known.
    help: Option<&'a str>,
    /// The part of the page about it.
    page: String,
    /// How often it was seen, in the first of the orders.
    count: u64,
    orders: Vec<String>,
    /// Some of these cases.
    examples: Vec<ExampleLine>,
}

/// A place in the source.
#[derive(Serialize)]
pub(super) struct PlaceLine<'a> {
    pub(super) file: &'a str,
    pub(super) line: u32,
    pub(super) column: u32,
    /// The text of the line, if known.
    pub(super) source: Option<&'static str>,
}

#[derive(Serialize)]
struct ExampleLine {
    #[serde(flatten)]
    thread: ThreadLine,
    /// The element of the buffer or shared array, counted row by row.
    element: Option<usize>,
    other: Option<ThreadLine>,
}

#[derive(Serialize)]
struct ThreadLine {
    block: [u32; 3],
    thread: [u32; 3],
}

impl<'a> FindingLine<'a> {
    pub(super) fn new(Seen { finding, orders, .. }: &'a Seen) -> Self {
        let Finding { kind, kernel, memory, columns, place, other_place, .. } = finding;
        let Finding { detail, count, examples, .. } = finding;
        FindingLine {
            kind: kind.name(),
            kernel,
            memory: memory.as_deref(),
            columns: *columns,
            place: place.as_ref().map(PlaceLine::new),
            other_place: other_place.as_ref().map(PlaceLine::new),
            detail,
            help: finding.advice(),
            page: kind.page(),
            count: *count,
            orders: orders.iter().map(Order::to_string).collect(),
            examples: examples.iter().map(ExampleLine::new).collect(),
        }
    }
}

impl<'a> PlaceLine<'a> {
    pub(super) fn new(place: &'a Place) -> Self {
        let Place { file, line, column } = place;
        let source = source(place).map(str::trim);
        PlaceLine { file, line: *line, column: *column, source }
    }
}

impl ExampleLine {
    fn new(example: &Example) -> Self {
        let Example { block, thread, element, other, .. } = *example;
        ExampleLine {
            thread: ThreadLine { block, thread },
            element,
            other: other.map(|(block, thread)| ThreadLine { block, thread }),
        }
    }
}

/// The text of a place's line, if it is of a kernel of the registry.
pub(super) fn source(place: &Place) -> Option<&'static str> {
    registry::source(&place.file, place.line)
}

/// Prints findings, each with its source lines, and the orders in which it was made.
pub(super) fn print(out: &mut impl Write, seen: &[Seen], orders: &[Order]) -> io::Result<()> {
    for seen in seen {
        writeln!(out, "\n{}", seen.finding.with_source(source))?;
        if orders.len() > 1 {
            writeln!(out, "    {}", seen.in_orders(orders.len()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use host::{check::merge, simt::check::Options};
    use serde_json::{Value, json};

    use super::*;

    /// The findings of a specimen in these orders.
    fn seen(specimen: &str, orders: &[Order]) -> Vec<Seen> {
        let specimen = specimens::list::find(specimen).unwrap();
        let products = orders.iter().map(|&order| {
            let (x, mut y) = (specimen.x(), specimen.y());
            let mut options = Options::default();
            options.order = order;
            options.complete = true;
            let report = specimen.check(&x, &mut y, &options);
            (order, report.unwrap().findings)
        });
        let products = products.collect::<Vec<_>>();
        merge(products.iter().flat_map(|(order, findings)| findings.iter().map(|f| (*order, f))))
    }

    const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Random(5)];

    fn text(seen: &[Seen], orders: &[Order]) -> String {
        let mut text = Vec::new();
        print(&mut text, seen, orders).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn objects(seen: &[Seen]) -> Vec<Value> {
        seen.iter().map(|seen| serde_json::to_value(FindingLine::new(seen)).unwrap()).collect()
    }

    #[test]
    fn a_race_for_people() {
        let file = "tests/specimens/src/kernels/races.rs";
        let memory = format!("the shared array of 32 elements of 4 bytes declared at {file}:36:20");
        let expected = format!(
            "
race: a write after a write, in {memory} (64 times)
    writes {file}:38:9
    wrote  {file}:38:9
    block [0, 0, 0] thread [1, 0, 0], element 0, against thread [0, 0, 0]
    block [0, 0, 0] thread [3, 0, 0], element 1, against thread [2, 0, 0]
    block [0, 0, 0] thread [5, 0, 0], element 2, against thread [4, 0, 0]
    help: let one thread write each element; for a sum there is `atomic_add`
    page: gpu/simt/FINDINGS.md#race
"
        );
        let [forward] = [Order::Forward];
        assert_eq!(text(&seen("two_writers", &[forward]), &[forward]), expected);
        let in_each = expected.clone() + "    in each of 3 orders\n";
        assert_eq!(text(&seen("two_writers", &ORDERS), &ORDERS), in_each);
        let in_one = expected + "    in 1 of 3 orders: forward\n";
        assert_eq!(text(&seen("two_writers", &[forward]), &ORDERS), in_one);
    }

    #[test]
    fn a_race_for_programs() {
        let [object] = &objects(&seen("two_writers", &ORDERS))[..] else { panic!("one finding") };
        for (key, value) in [
            ("kind", json!("write-after-write")),
            ("kernel", json!("two_writers")),
            ("count", json!(64)),
            ("detail", json!("")),
            ("help", json!("let one thread write each element; for a sum there is `atomic_add`")),
            ("page", json!("gpu/simt/FINDINGS.md#race")),
            ("columns", Value::Null),
            ("orders", json!(["forward", "reverse", "random:5"])),
        ] {
            assert_eq!(object[key], value, "{key}");
        }
        let place = json!({
            "file": "tests/specimens/src/kernels/races.rs", "line": 38, "column": 9, "source": null
        });
        assert_eq!((&object["place"], &object["other_place"]), (&place, &place));
        let memory = object["memory"].as_str().unwrap();
        assert!(memory.starts_with("the shared array of 32 elements"), "{memory}");
        assert_eq!(object["examples"].as_array().map(Vec::len), Some(3));
        let example = json!({
            "block": [0, 0, 0], "thread": [3, 0, 0], "element": 1,
            "other": { "block": [0, 0, 0], "thread": [2, 0, 0] }
        });
        assert_eq!(object["examples"][1], example);
    }

    #[test]
    fn a_finding_without_a_place() {
        let seen = seen("incomplete", &ORDERS);
        let kinds = objects(&seen).into_iter().map(|object| {
            assert_eq!((&object["place"], &object["other_place"]), (&Value::Null, &Value::Null));
            assert_eq!(object["examples"], json!([]));
            assert!(object["detail"].as_str().unwrap().starts_with("64 of 128 elements"));
            format!("{} {}", object["kind"], object["memory"])
        });
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        assert_eq!(kinds, r#""never-read" "buffer x", "never-written" "buffer y""#);
        let text = text(&seen, &ORDERS);
        assert!(text.contains("\noutput elements that no thread wrote, in buffer y\n"), "{text}");
    }

    #[test]
    fn lines_of_the_registrys_kernels_are_shown() {
        let declaration = registry::find("basic").unwrap().declaration();
        let line = (declaration.line..)
            .find(|&line| registry::source(declaration.file, line).unwrap().contains("c["))
            .unwrap();
        let mut seen = seen("two_writers", &[Order::Forward]);
        let place = seen[0].finding.place.as_mut().unwrap();
        (place.file, place.line) = (declaration.file.to_owned(), line);
        let text = text(&seen, &[Order::Forward]);
        let shown =
            format!("    writes gpu/src/lessons/basic.rs:{line}:9\n           c[row * n + col]");
        assert!(text.contains(&shown), "{text}");
        let source = objects(&seen)[0]["place"]["source"].clone();
        assert!(source.as_str().unwrap().starts_with("c[row * n + col]"), "{source}");
    }
}
