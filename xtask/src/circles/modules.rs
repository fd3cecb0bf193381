//! The modules of a crate, and the file that defines what a path names.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tokens::{
    Segments, end_of_item, end_of_statement, is_punct, name_of, path_of, plain_path, use_tree,
};

/// Names of nested modules, from the crate's root.
type ModulePath = Vec<String>;

/// What a path names.
enum Named<'a> {
    /// A module itself.
    Module,
    /// An item that this file defines.
    Item(&'a str),
}

/// The most nested imports that are followed.
const MOST_IMPORTS: usize = 8;

/// A module.
#[derive(Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    /// Names that it imports, re-exported or not, and their paths.
    imports: BTreeMap<String, Segments>,
    /// Modules all of whose names it imports.
    globs: Vec<Segments>,
    /// Names of items that it defines.
    items: BTreeSet<String>,
}

/// A path in a file.
struct Mention {
    module: ModulePath,
    path: Segments,
    /// A re-export: `pub`, with any visibility.
    is_export: bool,
}

/// The modules of a crate, and the paths in them.
#[derive(Default)]
pub(super) struct Crate {
    modules: BTreeMap<ModulePath, Module>,
    mentions: Vec<Mention>,
    /// Files of `#[macro_export]` macros, which are found at the crate's root.
    macros: BTreeMap<String, String>,
}

impl Crate {
    pub(super) fn read(root: &str, files: &BTreeMap<String, String>) -> Result<Crate> {
        let mut krate = Crate::default();
        let folder = folder_of(root).to_owned();
        krate.read_file(root, &folder, Vec::new(), files, &mut BTreeSet::new())?;
        Ok(krate)
    }

    /// Reads a module's file. The files of its children are in `folder`. A file of two modules is
    /// read once.
    fn read_file(
        &mut self,
        file: &str,
        folder: &str,
        module: ModulePath,
        files: &BTreeMap<String, String>,
        seen: &mut BTreeSet<String>,
    ) -> Result<()> {
        let (Some(text), true) = (files.get(file), seen.insert(file.to_owned())) else {
            return Ok(());
        };
        let tokens =
            text.parse::<TokenStream>().ok().with_context(|| format!("cannot read {file}"))?;
        let mut reader = Reader { krate: self, file, children: Vec::new() };
        reader.module(tokens, &module, folder);
        for Child { module, folder, path } in reader.children {
            let name = module.last().map_or("", String::as_str);
            let (file, folder) = match path {
                Some(path) => {
                    let file = format!("{folder}{path}").replace("/./", "/");
                    let folder = folder_of(&file).to_owned();
                    (file, folder)
                }
                None => {
                    let inside = format!("{folder}{name}/mod.rs");
                    let beside = format!("{folder}{name}.rs");
                    let file = if files.contains_key(&inside) { inside } else { beside };
                    (file, format!("{folder}{name}/"))
                }
            };
            self.read_file(&file, &folder, module, files, seen)?;
        }
        Ok(())
    }

    /// What a path in a module names. `None` if it is not in this crate.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<Named<'_>> {
        // Imports may form a circle themselves.
        let depth = depth.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.resolve_in(&[], rest, depth),
            "self" => self.resolve_in(module, rest, depth),
            "super" => self.resolve_super(module, rest, depth),
            name => {
                let known = self.modules.get(module)?;
                let is_local = known.children.contains(name) || known.imports.contains_key(name);
                is_local.then(|| self.resolve_in(module, path, depth)).flatten()
            }
        }
    }

    fn resolve_super(&self, module: &[String], rest: &[String], depth: usize) -> Option<Named<'_>> {
        let (_, parent) = module.split_last()?;
        match rest.split_first() {
            Some((next, rest)) if next == "super" => self.resolve_super(parent, rest, depth),
            _ => self.resolve_in(parent, rest, depth),
        }
    }

    /// What a path names whose first segment is a name in that module.
    fn resolve_in(&self, module: &[String], path: &[String], depth: usize) -> Option<Named<'_>> {
        let known = self.modules.get(module)?;
        let Some((name, rest)) = path.split_first() else { return Some(Named::Module) };
        if known.children.contains(name) {
            return self.resolve_in(&[module, std::slice::from_ref(name)].concat(), rest, depth);
        }
        if let Some(import) = known.imports.get(name) {
            return self.resolve(module, &[import, rest].concat(), depth);
        }
        if known.items.contains(name) || name == "*" {
            return Some(Named::Item(&known.file));
        }
        if let Some(file) = self.macros.get(name).filter(|_| module.is_empty()) {
            return Some(Named::Item(file));
        }
        let mut globs = known.globs.iter().filter_map(|glob| {
            let inside = self.module_of(module, &glob[..glob.len() - 1])?;
            let of = self.modules.get(&inside)?;
            let is_there = of.items.contains(name)
                || of.imports.contains_key(name)
                || of.children.contains(name);
            is_there.then(|| self.resolve_in(&inside, path, depth.checked_sub(1)?)).flatten()
        });
        globs.next().or(Some(Named::Item(&known.file)))
    }

    /// The module that a path of modules names.
    fn module_of(&self, module: &[String], path: &[String]) -> Option<ModulePath> {
        let mut at = module.to_vec();
        for segment in path {
            match segment.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => _ = at.pop()?,
                name => at.push(name.to_owned()),
            }
        }
        self.modules.contains_key(&at).then_some(at)
    }

    /// For each file, the files that it uses.
    pub(super) fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut edges = BTreeMap::<&str, BTreeSet<&str>>::new();
        for Mention { module, path, is_export } in &self.mentions {
            let Some(of) = self.modules.get(module) else { continue };
            let child = path.iter().find(|segment| *segment != "self");
            if *is_export && child.is_some_and(|child| of.children.contains(child)) {
                continue;
            }
            let Some(Named::Item(file)) = self.resolve(module, path, MOST_IMPORTS) else {
                continue;
            };
            if file != of.file {
                edges.entry(&of.file).or_default().insert(file);
            }
        }
        edges
    }
}

/// The folder of a file, with a slash at the end.
fn folder_of(file: &str) -> &str {
    &file[..file.rfind('/').map_or(0, |slash| slash + 1)]
}

/// A module in a file of its own.
struct Child {
    module: ModulePath,
    /// The folder of the parent's children.
    folder: String,
    /// The value of `#[path]`.
    path: Option<String>,
}

/// Reads a file's tokens.
struct Reader<'a> {
    krate: &'a mut Crate,
    file: &'a str,
    children: Vec<Child>,
}

impl Reader<'_> {
    /// The items of a module.
    fn module(&mut self, tokens: TokenStream, module: &ModulePath, folder: &str) {
        let known = self.krate.modules.entry(module.clone()).or_default();
        known.file = self.file.to_owned();
        let tokens = tokens.into_iter().collect::<Vec<_>>();
        let mut path = None;
        let mut is_exported = false;
        let mut is_public = false;
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(attribute) = tokens.get(at + 1).map(ToString::to_string) {
                        path = path_of(&attribute).or(path);
                        is_exported |= attribute.contains("macro_export");
                    }
                    at += 2;
                    continue;
                }
                TokenTree::Ident(word) if word == "pub" => {
                    is_public = true;
                    at += 1;
                    // The path of `pub(in crate::x)` is no use.
                    let scope = matches!(tokens.get(at), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
                    at += usize::from(scope);
                    continue;
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = end_of_statement(&tokens, at);
                    for (name, path) in use_tree(&tokens[at + 1..end], &[]) {
                        self.import(module, name, path, is_public);
                    }
                    at = end;
                }
                TokenTree::Ident(word) if word == "mod" => {
                    let name = tokens.get(at + 1).map(ToString::to_string).unwrap_or_default();
                    let child = [&module[..], std::slice::from_ref(&name)].concat();
                    let known = self.krate.modules.entry(module.clone()).or_default();
                    known.children.insert(name.clone());
                    match tokens.get(at + 2) {
                        Some(TokenTree::Group(group)) => {
                            let inside = format!("{folder}{}/", path.take().unwrap_or(name));
                            self.module(group.stream(), &child, &inside);
                        }
                        _ => {
                            let (folder, path) = (folder.to_owned(), path.take());
                            self.children.push(Child { module: child, folder, path });
                        }
                    }
                    at += 2;
                }
                TokenTree::Ident(word) => {
                    let is_macro = word == "macro_rules";
                    // To the end of the item: its body, or a semicolon.
                    let end = end_of_item(&tokens, at);
                    if let Some(name) = name_of(&tokens[at..end]) {
                        if is_macro && is_exported {
                            self.krate.macros.insert(name.clone(), self.file.to_owned());
                        }
                        let known = self.krate.modules.entry(module.clone()).or_default();
                        known.items.insert(name);
                    }
                    self.body(&tokens[at..end], module);
                    at = end;
                    (path, is_public, is_exported) = (None, false, false);
                    continue;
                }
                _ => {}
            }
            if !matches!(&tokens[at], TokenTree::Ident(_)) {
                (path, is_public, is_exported) = (None, false, false);
            }
            at += 1;
        }
    }

    fn import(&mut self, module: &ModulePath, name: String, path: Segments, is_export: bool) {
        let known = self.krate.modules.entry(module.clone()).or_default();
        match name.as_str() {
            "*" => known.globs.push(path.clone()),
            "_" => {}
            _ => _ = known.imports.insert(name, path.clone()),
        }
        self.krate.mentions.push(Mention { module: module.clone(), path, is_export });
    }

    /// Paths outside lists of items.
    fn body(&mut self, tokens: &[TokenTree], module: &ModulePath) {
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    let inside = group.stream().into_iter().collect::<Vec<_>>();
                    // `pub(in crate::x)`.
                    let is_scope = group.delimiter() == Delimiter::Parenthesis
                        && matches!(inside.first(), Some(TokenTree::Ident(word)) if word == "in");
                    if !is_scope {
                        self.body(&inside, module);
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = end_of_statement(tokens, at);
                    for (_, path) in use_tree(&tokens[at + 1..end], &[]) {
                        self.mention(module, path);
                    }
                    at = end;
                    continue;
                }
                TokenTree::Ident(_) => {
                    let (path, end) = plain_path(tokens, at);
                    let is_expanded =
                        at.checked_sub(1).is_some_and(|at| is_punct(&tokens[at], '$'));
                    if path.len() > 1 && !is_expanded {
                        self.mention(module, path);
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn mention(&mut self, module: &ModulePath, path: Segments) {
        self.krate.mentions.push(Mention { module: module.clone(), path, is_export: false });
    }
}
