//! The families of kernels, from `host kernels`.

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

    #[test]
    fn families_have_their_number_and_their_tiles() {
        let kernels = [
            json!({ "contract": "a product", "tile": [64, 64] }),
            json!({ "contract": "another", "tile": null }),
            json!({ "contract": "a product", "tile": [32, 32] }),
            json!({ "contract": "a product", "tile": [64, 64] }),
        ];
        let text = families(&kernels);
        let rows = text.lines().skip(2).collect::<Vec<_>>();
        assert_eq!(rows, ["| a product | 3 | 64 x 64, 32 x 32 |", "| another | 1 | - |"]);
    }
}
