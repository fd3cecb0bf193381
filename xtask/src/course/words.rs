//! The words of `simt`, by the files that define them.

use std::{fs, path::Path};

use anyhow::{Context, Result};

/// The files, in the order in which a reader needs them. `$`: the types for which a macro of that
/// file writes methods.
const FILES: [(&str, &str); 22] = [
    ("macros.rs", ""),
    ("cpu/device/thread.rs", ""),
    ("cpu/device/memory.rs", "In, Out"),
    ("cpu/device/shared.rs", "Shared, DynamicShared"),
    ("cpu/device/atomic.rs", ""),
    ("float.rs", ""),
    ("in_order.rs", ""),
    ("cpu/device/warp.rs", ""),
    ("cpu/device/copies.rs", ""),
    ("mma.rs", ""),
    ("mma/fragment.rs", "Fragment"),
    ("cpu/device/variable.rs", ""),
    ("cpu/device/mbarrier.rs", ""),
    ("pipeline.rs", ""),
    ("cpu/device/tensor.rs", ""),
    ("cpu/device/box_shape.rs", ""),
    ("cpu/device/bulk.rs", ""),
    ("cpu/device/proxy.rs", ""),
    ("cpu/device/warpgroup.rs", ""),
    ("cpu/device/named_barrier.rs", ""),
    ("cpu/device/cluster.rs", ""),
    ("cpu/device/grid.rs", ""),
];

/// A table: for each file what it is for, and its words.
pub fn table(root: &Path) -> Result<String> {
    let modules = fs::read_to_string(root.join("gpu/simt/src/cpu/device/mod.rs"));
    let modules = modules.context("cannot read gpu/simt/src/cpu/device/mod.rs")?;
    let mut text = "| file | what it has | words |\n|---|---|---|".to_owned();
    for (file, types) in FILES {
        let path = format!("gpu/simt/src/{file}");
        let source = fs::read_to_string(root.join(&path));
        let source = source.with_context(|| format!("cannot read {path}"))?;
        let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".rs");
        // The functions of a public module have its name before theirs. Of another file the types
        // are words that `mod.rs` names.
        let is_module = ["mod ", "use crate::"]
            .iter()
            .any(|how| modules.contains(&format!("\npub {how}{name};")));
        let module = is_module.then(|| format!("{name}::"));
        let is_word = |of_type: &str| module.is_some() || modules.contains(of_type);
        let prefix = module.as_deref().unwrap_or_default();
        let (what, words) = (first_sentence(&source), words(&source, prefix, types, is_word));
        text += &format!("\n| [{name}](../../{path}) | {what} | {words} |");
    }
    Ok(text)
}

/// The first sentence of the comment at a file's head, up to a colon that ends a clause.
fn first_sentence(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text = lines.take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>();
    let text = text.join(" ");
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    // A link of rustdoc has no target here.
    let plain = text[..end].replace("[`", "`").replace("`]", "`");
    match plain.find("`(") {
        Some(at) => {
            let after = plain[at..].find(')').map_or(plain.len(), |end| at + end + 1);
            format!("{}`{}", &plain[..at], &plain[after..])
        }
        None => plain,
    }
}

/// The public names of a file: functions, and types with their methods.
fn words(source: &str, module: &str, types: &str, is_word: impl Fn(&str) -> bool) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let (mut current, mut hidden) = (0, false);
    let group = |groups: &mut Vec<(String, Vec<String>)>, name: &str| {
        let name = if name.starts_with('$') { types } else { name };
        match groups.iter().position(|(known, _)| known == name) {
            Some(at) => at,
            None => {
                groups.push((name.to_owned(), Vec::new()));
                groups.len() - 1
            }
        }
    };
    for line in source.lines() {
        let code = line.trim_start();
        if code == "#[doc(hidden)]" {
            hidden = true;
            continue;
        }
        if let Some(name) = type_of_impl(code) {
            current = group(&mut groups, name);
        } else if let Some(name) = named(code, &["pub struct ", "pub trait "]) {
            current = group(&mut groups, name);
        } else if let Some(name) = named(code, &["pub fn ", "pub const fn ", "pub unsafe fn "]) {
            let is_free = line == code;
            let at = if is_free { group(&mut groups, "") } else { current };
            let module = if is_free { module } else { "" };
            if !hidden && !name.starts_with('$') {
                groups[at].1.push(format!("{module}{name}"));
            }
        } else if let Some(name) = exported(code) {
            let at = group(&mut groups, "");
            groups[at].1.push(format!("{module}{name}"));
        } else if code.starts_with('#') || code.starts_with("//") {
            continue;
        }
        hidden = false;
    }
    let listed = |names: &[String]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let of_group = |(name, names): &(String, Vec<String>)| match (&**name, names.is_empty()) {
        ("", true) => None,
        ("", false) => Some(listed(names)),
        (name, true) => is_word(name).then(|| format!("`{name}`")),
        (name, false) => {
            let types = name.split(", ").map(str::to_owned).collect::<Vec<_>>();
            Some(format!("{}: {}", listed(&types), listed(names)))
        }
    };
    groups.iter().filter_map(of_group).collect::<Vec<_>>().join("; ")
}

/// The name after one of these words.
fn named<'t>(code: &'t str, words: &[&str]) -> Option<&'t str> {
    let rest = words.iter().find_map(|word| code.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && !"_$".contains(c));
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The type of `impl<..> Type<..> {`, if it is no trait's.
fn type_of_impl(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("impl")?;
    if code.contains(" for ") || !code.ends_with('{') {
        return None;
    }
    let mut depth = 0;
    let end = rest.find(|c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0 && c == ' '
    })?;
    named(&rest[end..], &[" "])
}

/// The name that a macro is given: `macro_rules! shared {`, `lane_id = ..;` of `index!`.
fn exported(code: &str) -> Option<String> {
    if let Some(name) = named(code, &["macro_rules! "]) {
        let of_device = !name.starts_with("checked_");
        let makes_names = ["index", "view", "indexed", "floats"].contains(&name);
        return (of_device && !makes_names).then(|| format!("{name}!"));
    }
    let (name, value) = code.split_once(" = ")?;
    let is_index = value.starts_with("block::") && value.ends_with(';') && !name.contains(' ');
    is_index.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_grouped_by_their_types() {
        let source = "//! Barriers that\n//! count. More.\n\npub struct One<T> {\n}\nimpl<T: Is<A>> One<T> {\n    pub fn wait(self) {}\n\
                      #[doc(hidden)]\n    #[inline]\n    pub fn declare() {}\n    pub(crate) fn own() {}\n}\npub fn free<T>() {}\n\
                      impl<T> Index for One<T> {\n}\nimpl<M> $name<M> {\n    pub const fn len() {}\n}\n    lane_id = block::x();\n";
        assert_eq!(first_sentence(source), "Barriers that count.");
        let expected = "`One`: `wait`; `m::free`, `m::lane_id`; `A`, `B`: `len`";
        assert_eq!(words(source, "m::", "A, B", |_| true), expected);
        let source = "pub struct Own {\n}\npub struct Word;\n";
        assert_eq!(words(source, "", "", |name| name == "Word"), "`Word`");
    }

    /// Each word has one row of the page that says how faithful the CPU is: it is named there, or
    /// its file's rest is.
    #[test]
    fn each_word_is_as_faithful_as_the_page_says() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout");
        let page = fs::read_to_string(root.join("docs/testing/fidelity.md")).expect("the page");
        let table = table(root).expect("the words");
        let names = |cell: &str| {
            let names = cell.split('`').skip(1).step_by(2);
            names.map(|name| name.trim_end_matches('*').to_owned()).collect::<Vec<_>>()
        };
        let mut rows = table.lines().skip(2).map(|row| {
            let cells = row.split(" | ").collect::<Vec<_>>();
            let file = cells[0].trim_start_matches("| [").split(']').next().unwrap_or_default();
            (file.to_owned(), names(cells[2]))
        });
        let said = page.lines().filter(|line| line.starts_with("| [")).map(|row| {
            let cells = row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
            let file = cells[0].trim_start_matches('[').split(']').next().unwrap_or_default();
            (file.to_owned(), cells[1..].iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>())
        });
        let mut count = 0;
        for (file, classes) in said {
            let (known, words) = rows.next().expect("a row for each file, in its order");
            assert_eq!(file, known);
            let rests = classes.iter().filter(|class| class.starts_with("the rest")).count();
            assert_eq!(rests, 1, "{file}: one class has what is not named");
            for name in classes.iter().flat_map(|class| names(class)) {
                let is_word = words.iter().any(|word| word.rsplit("::").next() == Some(&name));
                assert!(is_word, "{file}: {name} is no word of it");
            }
            count += words.len();
        }
        assert!(rows.next().is_none() && count > 200, "{count} words");
    }

    #[test]
    fn links_of_rustdoc_become_plain() {
        let source = "//! Groups, which [`Shared::copy`](super::Shared) begins.\n";
        assert_eq!(first_sentence(source), "Groups, which `Shared::copy` begins.");
    }
}
