//! Mutants that make no difference: a list next to the kernels, with reasons.

use std::{collections::HashMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::source::ROOMS;

/// A file `mutants.toml` in a room or in a family's folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    equivalent: Vec<Group>,
    /// Old and new names of functions, `module/old = "new"`, until the entries are rewritten.
    #[serde(default)]
    renamed: HashMap<String, String>,
}

/// Mutants that make no difference for the same reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    reason: String,
    mutants: Vec<String>,
}

/// The reasons, by the mutants' names.
#[derive(Debug, Default)]
pub struct Equivalents(HashMap<String, String>);

impl Equivalents {
    /// Reads every list below `src`.
    pub fn read(src: &Path) -> Result<Self> {
        let mut all = Equivalents::default();
        for room in ROOMS.map(|room| src.join(room)) {
            let folders = fs::read_dir(&room)?.map(|entry| Ok(entry?.path()));
            let folders = folders.collect::<Result<Vec<_>>>()?.into_iter();
            for folder in [room].into_iter().chain(folders.filter(|path| path.is_dir())) {
                let path = folder.join("mutants.toml");
                if path.is_file() {
                    let text = fs::read_to_string(&path)?;
                    all.add(&text).with_context(|| format!("in {}", path.display()))?;
                }
            }
        }
        Ok(all)
    }

    fn add(&mut self, text: &str) -> Result<()> {
        let List { equivalent, renamed } = toml::from_str(text)?;
        for Group { reason, mutants } in equivalent {
            ensure!(!reason.trim().is_empty(), "no reason for {mutants:?}");
            for name in mutants {
                let name = rename(name, &renamed);
                let twice = self.0.insert(name.clone(), reason.clone()).is_some();
                ensure!(!twice, "`{name}` is listed twice");
            }
        }
        Ok(())
    }

    /// Why a mutant makes no difference, if listed.
    pub fn reason(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Entries that name no mutant.
    pub fn stale<'a>(&'a self, names: &[&str]) -> Vec<&'a str> {
        let mut stale = self.0.keys().map(String::as_str).collect::<Vec<_>>();
        stale.retain(|name| !names.contains(name));
        stale.sort_unstable();
        stale
    }
}

/// A name with the function's new name.
fn rename(name: String, renamed: &HashMap<String, String>) -> String {
    let parts = name.splitn(3, '/').collect::<Vec<_>>();
    let [family, function, rest] = parts[..] else { return name };
    match renamed.get(&format!("{family}/{function}")) {
        Some(new) => format!("{family}/{new}/{rest}"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list() {
        let mut all = Equivalents::default();
        let text = r#"
            [renamed]
            "walk/go_on" = "advance"
            [[equivalent]]
            reason = "i is 0"
            mutants = ["walk/go_on/halve-index/i", "walk/f/halve-index/i"]
        "#;
        all.add(text).unwrap();
        assert_eq!(all.reason("walk/advance/halve-index/i"), Some("i is 0"));
        assert_eq!(all.stale(&["walk/advance/halve-index/i"]), ["walk/f/halve-index/i"]);
        assert!(all.add(text).unwrap_err().to_string().contains("twice"));
        let without = "[[equivalent]]\nreason = ' '\nmutants = ['a/b/c/d']";
        assert!(all.add(without).unwrap_err().to_string().contains("no reason"));
    }
}
