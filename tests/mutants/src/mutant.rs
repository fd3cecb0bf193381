//! Mutants: their names, and the text of a file in which each can be switched on at run time.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    hash::{Hash, Hasher},
    ops::Range,
};

use crate::{
    operators::{Operator, Site, sites},
    source::{Function, SourceFile},
};

/// One mistake in one place.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its number in this run, from 1.
    pub id: u32,
    /// The number of its site.
    pub site: u32,
    /// `tiled/tiled/weaken-comparison/a_col < k`: module, function, operator, expression. If
    /// several mutants would have this name, also the replacement, and a number. The name stays the
    /// same when the function moves or is reformatted.
    pub name: String,
    pub operator: Operator,
    /// Its file, as an index into the list.
    pub file: usize,
    pub range: Range<usize>,
    /// The replacement.
    pub to: String,
}

/// Every mutant of the files, in their order. Of kernels only those that are run.
pub fn mutants(files: &[SourceFile], kernels: &BTreeSet<String>) -> Vec<Mutant> {
    let mut mutants = Vec::<Mutant>::new();
    let mut known = BTreeMap::<String, usize>::new();
    let mut site = 0;
    for (number, file) in files.iter().enumerate() {
        let is_run = |of: &Function| !of.is_kernel || kernels.contains(&of.name);
        for function in file.functions().into_iter().filter(is_run) {
            for Site { range, alternatives } in sites(file, &function) {
                site += 1;
                let several = |operator| {
                    alternatives.iter().filter(|one| one.operator == operator).count() > 1
                };
                for one in &alternatives {
                    let from = on_one_line(&file.text[range.clone()]);
                    let (family, operator) = (file.family(), one.operator.name());
                    let mut name = format!("{family}/{}/{operator}/{from}", function.name);
                    if several(one.operator) {
                        name += &format!(" => {}", on_one_line(&one.text));
                    }
                    let before = known.entry(name.clone()).or_default();
                    *before += 1;
                    if *before > 1 {
                        name += &format!(" #{before}");
                    }
                    let id = mutants.len() as u32 + 1;
                    let (operator, to) = (one.operator, one.text.clone());
                    let range = range.clone();
                    mutants.push(Mutant { id, site, name, operator, file: number, range, to });
                }
            }
        }
    }
    mutants
}

/// A hash of what a file's mutants depend on: its functions, without comments and white space.
pub fn content(file: &SourceFile) -> u64 {
    let mut hasher = Fnv::default();
    for function in file.functions() {
        hash_of_function(file, &function, &mut hasher);
    }
    hasher.finish()
}

/// FNV-1a. Its values are the same in every release of the compiler, because tables in the
/// repository have them.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The same for one function.
fn hash_of_function(file: &SourceFile, function: &Function, hasher: &mut impl Hasher) {
    function.name.hash(hasher);
    // The definition of a macro has `$`, which its tokens do not have. So its text is hashed.
    for line in file.text_of(function.block).lines() {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        code.split_whitespace().for_each(|word| word.hash(hasher));
    }
}

/// `count` of a file's mutants, drawn by its content: the same until that changes.
pub fn drawn(mut mutants: Vec<Mutant>, content: u64, count: usize) -> Vec<Mutant> {
    mutants.sort_by_cached_key(|mutant| {
        let mut hasher = Fnv::default();
        (content, &mutant.name).hash(&mut hasher);
        hasher.finish()
    });
    mutants.truncate(count);
    mutants
}

/// A file with switches, and the place of each mutant's text in it.
pub struct Woven {
    pub text: String,
    pub places: Vec<(Range<usize>, u32)>,
}

/// Puts switches into a file's text: each site gets its expression, or the replacement that is
/// switched on.
pub fn weave(text: &str, mutants: &[&Mutant]) -> Woven {
    let mut sites = BTreeMap::<(usize, usize), Vec<&Mutant>>::new();
    for &mutant in mutants {
        let key = (mutant.range.start, usize::MAX - mutant.range.end);
        sites.entry(key).or_default().push(mutant);
    }
    let sites = sites.into_values().collect::<Vec<_>>();
    let mut woven = Woven { text: String::new(), places: Vec::new() };
    woven.add(text, 0..text.len(), &mut sites.as_slice());
    woven
}

impl Woven {
    /// Appends a range of the text, with the sites that start in it. It takes these off the list.
    fn add(&mut self, text: &str, range: Range<usize>, sites: &mut &[Vec<&Mutant>]) {
        let mut done = range.start;
        while let Some((first, rest)) = sites.split_first()
            && first[0].range.start < range.end
        {
            *sites = rest;
            let of = first[0].range.clone();
            self.text += &text[done..of.start];
            let ids = first.iter().map(|mutant| mutant.id).collect::<Vec<_>>();
            let switch = |ids: &[u32]| format!("crate::mutation::any({}, &{ids:?})", first[0].site);
            self.text += &format!("(if !{} {{ (", switch(&ids));
            self.add(text, of.clone(), sites);
            for (number, mutant) in first.iter().enumerate() {
                self.text += &match number + 1 == first.len() {
                    true => ") } else { (".to_owned(),
                    false => format!(") }} else if crate::mutation::is({}) {{ (", mutant.id),
                };
                let start = self.text.len();
                self.text += &mutant.to;
                self.places.push((start..self.text.len(), mutant.id));
            }
            self.text += ") })";
            done = of.end;
        }
        self.text += &text[done..range.end];
    }
}

/// An additional module of the crate with switches. It says what is on, as the driver does.
pub const SWITCH: &str = "\
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

unsafe extern \"Rust\" {
    safe static MUTATION: AtomicU32;
    safe fn mutation_reached(site: u32);
}

/// Whether one of a site's mutants is on, and which. Reached sites are recorded if asked for.
#[inline(always)]
pub fn any(site: u32, ids: &[u32]) -> bool {
    let on = MUTATION.load(Relaxed);
    if on == u32::MAX {
        mutation_reached(site);
    }
    ids.contains(&on)
}

#[inline(always)]
pub fn is(id: u32) -> bool {
    MUTATION.load(Relaxed) == id
}
";

/// Text without line breaks.
pub fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The functions of a file that another version of the file does not have in the same form.
pub fn changed_functions(file: &SourceFile, before: Option<&SourceFile>) -> HashSet<String> {
    let hash = |file: &SourceFile, function: &Function| {
        let mut hasher = Fnv::default();
        hash_of_function(file, function, &mut hasher);
        (function.name.clone(), hasher.finish())
    };
    let old = before.map_or_else(HashSet::new, |old| {
        old.functions().iter().map(|function| hash(old, function)).collect()
    });
    let new = file.functions().into_iter().map(|function| hash(file, &function));
    new.filter(|one| !old.contains(one)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new("walk/rows.rs".into(), text.into()).unwrap()
    }

    fn names(file: SourceFile) -> Vec<String> {
        mutants(&[file], &BTreeSet::new()).into_iter().map(|mutant| mutant.name).collect()
    }

    #[test]
    fn a_name_survives_moves_and_reformatting() {
        let text = "fn f() { if i < n && i < n {} } fn g() { a[\n  i,  ]; }";
        let moved = "// More.\n\nfn g() { a[i]; }\nfn f() {\n    if i < n && i < n {\n    }\n}";
        let [mut one, mut other] =
            [text, moved].map(|text| names(file(&text.replace(",  ]", "]"))));
        one.sort();
        other.sort();
        assert_eq!(one, other);
        assert!(one.contains(&"walk/f/weaken-comparison/i < n".into()), "{one:?}");
        assert!(one.contains(&"walk/f/weaken-comparison/i < n #2".into()), "{one:?}");
        let several = names(file("fn f() { sync_threads(); if i < n {} }"));
        let branch = "walk/f/branch-barrier/sync_threads() => if i < n { sync_threads() }";
        assert!(several.contains(&branch.into()), "{several:?}");
    }

    #[test]
    fn switches_nest() {
        let source = "fn f() { a[if i < n { i } else { 0 }]; }";
        let file = file(source);
        let all = mutants(std::slice::from_ref(&file), &BTreeSet::new());
        let wanted = ["index-plus-one/if i < n { i } else { 0 }", "strengthen-comparison/i < n"];
        let wanted = wanted.map(|name| all.iter().find(|one| one.name.ends_with(name)).unwrap());
        let [outer, inner] = wanted.map(|one| one.id);
        let woven = weave(source, &wanted);
        let [site_outer, site_inner] = wanted.map(|one| one.site);
        let expected = format!(
            "fn f() {{ a[(if !crate::mutation::any({site_outer}, &[{outer}]) {{ (if \
             (if !crate::mutation::any({site_inner}, &[{inner}]) {{ (i < n) }} else {{ (i + 1 < n) }}) \
             {{ i }} else {{ 0 }}) }} else {{ ((if i < n {{ i }} else {{ 0 }}) + 1) }})]; }}"
        );
        assert_eq!(woven.text, expected);
        for (place, id) in woven.places {
            assert_eq!(woven.text[place], all[id as usize - 1].to);
        }
    }

    #[test]
    fn what_changed_is_known_by_function() {
        let old = file("fn f() { a[i]; } fn g() { b[i]; }");
        let new = file("fn g() { b[i] /* */; }\n// Said.\nfn f() { a[i + 1]; // here\n}");
        assert_eq!(content(&old), content(&file("fn f() {\n a[i];\n} fn g() { b[i]; }")));
        assert_ne!(content(&old), content(&new));
        let changed = changed_functions(&new, Some(&old));
        assert!(changed.contains("f"), "{changed:?}");
        assert_eq!(changed_functions(&new, None).len(), 2);
    }
}
