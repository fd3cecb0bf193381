//! The lists of kernels, from `host kernels`.

use anyhow::{Context, Result};
use serde_json::Value;

use super::program::Programs;

/// The output of `host kernels --json`, in the order of the registry.
pub(super) fn take(programs: &Programs) -> Result<Vec<Value>> {
    lines(programs, &["kernels", "--json"])
}

/// The JSON lines that the command prints.
pub(super) fn lines(programs: &Programs, arguments: &[&str]) -> Result<Vec<Value>> {
    let lines = programs.output("host", arguments, &[0])?;
    lines.lines().map(|line| serde_json::from_str(line).context("not a line of JSON")).collect()
}

/// Every kernel by its name: a heading and a table for each contract. Kernels that differ only in
/// the layouts of their operands have one row.
pub fn list(kernels: &[Value]) -> String {
    let mut text = String::new();
    for (contract, kernels) in by_contract(kernels) {
        text += &format!("## {contract}\n\n| kernel | tile of C | block | what sets it apart |\n");
        text += "|---|---|---|---|\n";
        let mut rows: Vec<(Row, Vec<&str>)> = Vec::new();
        for kernel in kernels {
            let row = Row::of(kernel);
            match rows.iter_mut().find(|(other, _)| *other == row) {
                Some((_, names)) => names.push(name(kernel)),
                None => rows.push((row, vec![name(kernel)])),
            }
        }
        for (Row { stem, tile, block, summary }, names) in rows {
            let shown = names.iter().enumerate().map(|(number, name)| match number {
                0 => format!("`{name}`"),
                _ => format!("`..{}`", &name[stem.len()..]),
            });
            let shown = shown.collect::<Vec<_>>().join(", ");
            text += &format!("| {shown} | {tile} | {block} | {summary} |\n");
        }
        text += "\n";
    }
    text
}

/// The contracts of kernels, and the number of kernels and the tiles for each.
pub fn families(kernels: &[Value]) -> String {
    let mut text = "| what is computed | kernels | tiles of C |\n|---|--:|---|\n".to_owned();
    for (contract, kernels) in by_contract(kernels) {
        let mut tiles = Vec::new();
        for tile in kernels.iter().map(|kernel| sizes(&kernel["tile"])) {
            if !tiles.contains(&tile) {
                tiles.push(tile);
            }
        }
        text += &format!("| {contract} | {} | {} |\n", kernels.len(), tiles.join(", "));
    }
    text
}

/// The fields in which all kernels of a row agree.
#[derive(PartialEq, Eq)]
struct Row<'a> {
    /// The name without its last part.
    stem: &'a str,
    tile: String,
    block: String,
    /// The summary without the layouts.
    summary: &'a str,
}

impl<'a> Row<'a> {
    fn of(kernel: &'a Value) -> Row<'a> {
        let summary = kernel["summary"].as_str().unwrap_or_default();
        // A kernel whose summary names no layouts has a row of its own.
        let (stem, summary) = match (name(kernel).rsplit_once('_'), summary.rsplit_once("; ")) {
            (Some((stem, _)), Some((summary, _))) => (stem, summary),
            _ => (name(kernel), summary),
        };
        Row { stem, tile: sizes(&kernel["tile"]), block: sizes(&kernel["block"]), summary }
    }
}

/// Kernels by contract, in the order of first appearance.
fn by_contract(kernels: &[Value]) -> Vec<(&str, Vec<&Value>)> {
    let mut all: Vec<(&str, Vec<&Value>)> = Vec::new();
    for kernel in kernels {
        let contract = kernel["contract"].as_str().unwrap_or_default();
        match all.iter_mut().find(|(other, _)| *other == contract) {
            Some((_, kernels)) => kernels.push(kernel),
            None => all.push((contract, vec![kernel])),
        }
    }
    all
}

fn name(kernel: &Value) -> &str {
    kernel["name"].as_str().unwrap_or_default()
}

/// `128 x 256`. Axes with one thread are left out.
fn sizes(value: &Value) -> String {
    let sizes = value.as_array().map_or(&[][..], Vec::as_slice);
    let mut sizes = sizes.iter().map(ToString::to_string).collect::<Vec<_>>();
    while sizes.len() > 1 && sizes.last().is_some_and(|size| size == "1") {
        sizes.pop();
    }
    if sizes.is_empty() { "-".into() } else { sizes.join(" x ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kernels() -> [Value; 5] {
        let kernel = |name: &str, summary: &str, contract: &str, tile: Value| {
            json!({
                "name": name, "summary": summary, "contract": contract, "tile": tile,
                "block": [128, 1, 1],
            })
        };
        let tile = json!([64, 64]);
        [
            kernel("wide_64_nn", "64 x 64 tiles; A along k", "a product", tile.clone()),
            kernel("plain", "nothing; else", "another", Value::Null),
            kernel("wide_32", "32 x 32 tiles", "a product", json!([32, 32])),
            kernel("wide_64_tn", "64 x 64 tiles; A along m", "a product", tile.clone()),
            kernel("deep_64_nn", "64 x 64 tiles; A along k", "a product", tile),
        ]
    }

    #[test]
    fn kernels_that_differ_in_how_operands_lie_have_a_row() {
        let rows = list(&kernels());
        let rows = rows.lines().filter(|line| !line.starts_with("| kernel")).collect::<Vec<_>>();
        let expected = [
            "## a product",
            "",
            "|---|---|---|---|",
            "| `wide_64_nn`, `.._tn` | 64 x 64 | 128 | 64 x 64 tiles |",
            "| `wide_32` | 32 x 32 | 128 | 32 x 32 tiles |",
            "| `deep_64_nn` | 64 x 64 | 128 | 64 x 64 tiles |",
            "",
            "## another",
            "",
            "|---|---|---|---|",
            "| `plain` | - | 128 | nothing; else |",
            "",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn families_have_their_number_and_their_tiles() {
        let text = families(&kernels());
        let rows = text.lines().skip(2).collect::<Vec<_>>();
        assert_eq!(rows, ["| a product | 4 | 64 x 64, 32 x 32 |", "| another | 1 | - |"]);
    }
}
