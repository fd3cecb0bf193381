//! The kernel files: their functions, and their kernels.
//!
//! Functions that a `macro_rules!` makes are taken from its definition. Kernels that macros make
//! are rows of a table, `kernels! { .. }`: their names are taken from there.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use syn::{
    Attribute, Block, ImplItemFn, Item, ItemFn, ItemImpl, ItemMacro, ItemMod, ItemTrait, Signature,
    TraitItemFn, Type,
    spanned::Spanned,
    visit::{self, Visit},
};

/// The folders below `src` with kernels and shared code.
pub const ROOMS: [&str; 3] = ["collective", "kernels", "lessons"];

/// A kernel file, as text and parsed.
pub struct SourceFile {
    /// Its path below the crate's `src`: `kernels/wgmma/main_loop.rs`.
    pub path: String,
    pub text: String,
    syntax: syn::File,
    expansions: Vec<Expansion>,
    /// The rows of its tables.
    rows: Vec<Row>,
}

/// A row of a table: `entry! { name: .. } gpu { .. };`.
struct Row {
    name: String,
    place: Range<usize>,
}

/// The expansion of a macro's rule, as in the definition: `$x` is a name, and repeated parts are
/// there once.
struct Expansion {
    name: String,
    kind: ExpansionKind,
}

enum ExpansionKind {
    Items(syn::File),
    Block(Block),
}

/// A function of a kernel file, or a macro that is a block.
pub struct Function<'a> {
    /// `multiply`. For a type or a trait `Walk::advance`.
    pub name: String,
    pub block: &'a Block,
    /// Whether it is a kernel that no macro makes.
    pub is_kernel: bool,
}

impl SourceFile {
    pub fn new(path: String, text: String) -> Result<Self> {
        let syntax = syn::parse_file(&text).with_context(|| format!("cannot parse {path}"))?;
        let definitions = syntax.items.iter().filter_map(|item| match item {
            Item::Macro(ItemMacro { ident: Some(name), mac, .. }) => Some((name.to_string(), mac)),
            _ => None,
        });
        let expansions = definitions.flat_map(|(name, definition)| {
            let kinds = expansions(definition.tokens.clone());
            kinds.into_iter().map(move |kind| Expansion { name: name.clone(), kind })
        });
        let expansions = expansions.collect();
        let tables = syntax.items.iter().filter_map(|item| match item {
            Item::Macro(ItemMacro { ident: None, mac, .. })
                if last_segment(&mac.path) == "kernels" =>
            {
                Some(rows(mac.tokens.clone()))
            }
            _ => None,
        });
        let rows = tables.flatten().collect();
        Ok(SourceFile { path, text, syntax, expansions, rows })
    }

    /// Every Rust file below a folder, in the order of their paths.
    pub fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut files = Vec::new();
        for path in paths(folder)? {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            files.push(SourceFile::new(name, text)?);
        }
        ensure!(!files.is_empty(), "no kernel file in {}", folder.display());
        Ok(files)
    }

    /// The files of the kernels: those of the [rooms](ROOMS) below `src`.
    pub fn of_kernels(src: &Path) -> Result<Vec<Self>> {
        let mut files = SourceFile::all(src)?;
        files.retain(|file| {
            file.path.split_once('/').is_some_and(|(room, _)| ROOMS.contains(&room))
        });
        Ok(files)
    }

    /// The module of the file: a family of kernels, a lesson, or `collective`.
    pub fn family(&self) -> &str {
        let room = ["lessons/", "kernels/"].iter().find_map(|room| self.path.strip_prefix(room));
        let path = room.unwrap_or(&self.path);
        match path.split_once('/') {
            Some((folder, _)) => folder,
            None => path.trim_end_matches(".rs"),
        }
    }

    /// Its functions, in order.
    pub fn functions(&self) -> Vec<Function<'_>> {
        let mut functions = Functions { found: Vec::new(), owner: None, in_macro: false };
        functions.visit_file(&self.syntax);
        functions.in_macro = true;
        for Expansion { name, kind } in &self.expansions {
            match kind {
                ExpansionKind::Items(items) => functions.visit_file(items),
                ExpansionKind::Block(block) => {
                    functions.found.push(Function { name: name.clone(), block, is_kernel: false });
                }
            }
        }
        functions.found
    }

    /// The names of its kernels.
    pub fn kernels(&self) -> Vec<String> {
        self.places().map(|(name, _)| name).collect()
    }

    /// The names of the kernels in its tables.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| &*row.name)
    }

    /// Its text with spaces in place of the kernels that are not `wanted`, so that everything else
    /// stays at its place.
    pub fn with_kernels(&self, wanted: impl Fn(&str) -> bool) -> String {
        let mut text = self.text.clone();
        for (_, place) in self.places().filter(|(name, _)| !wanted(name)) {
            let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
            let blanks = text[place.clone()].bytes().map(blank).collect::<String>();
            text.replace_range(place, &blanks);
        }
        text
    }

    /// The names of its kernels, and their places.
    fn places(&self) -> impl Iterator<Item = (String, Range<usize>)> {
        let functions = self.syntax.items.iter().filter_map(|item| match item {
            Item::Fn(function) if is_kernel(&function.attrs) => {
                Some((function.sig.ident.to_string(), range(item)))
            }
            _ => None,
        });
        functions.chain(self.rows.iter().map(|row| (row.name.clone(), row.place.clone())))
    }

    /// Whether it defines a macro of that name.
    pub fn defines_macro(&self, name: &str) -> bool {
        self.expansions.iter().any(|expansion| expansion.name == name)
    }

    /// The text of a piece of syntax.
    pub fn text_of(&self, piece: &impl Spanned) -> &str {
        &self.text[range(piece)]
    }
}

/// Every Rust file below a folder, in order.
fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || format!("cannot list {}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(read)? {
        let path = entry.with_context(read)?.path();
        match path.is_dir() {
            true => found.extend(paths(&path)?),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
    found.sort();
    Ok(found)
}

/// The rows of a table. Each ends with a semicolon. The table's first word is its family.
fn rows(table: TokenStream) -> Vec<Row> {
    let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ';');
    let tokens = table.into_iter().collect::<Vec<_>>();
    let row = |tokens: &[TokenTree]| {
        let [first, .., last] = tokens else { return None };
        let call = tokens.iter().find_map(|token| match token {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        });
        let name = call?.into_iter().next()?.to_string();
        Some(Row { name, place: range(first).start..range(last).end })
    };
    tokens.split_inclusive(is_end).filter_map(row).collect()
}

/// The expansions of a macro's rules, if they are items or a block.
fn expansions(rules: TokenStream) -> Vec<ExpansionKind> {
    let mut expansions = Vec::new();
    let mut groups = rules.into_iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(group),
        _ => None,
    });
    // A rule is a pattern, an arrow and a body.
    while let (Some(_), Some(body)) = (groups.next(), groups.next()) {
        let body = without_dollars(body.stream());
        if let Ok(block) = syn::parse2(body.clone()) {
            expansions.push(ExpansionKind::Block(block));
        } else if let Ok(items) = syn::parse2(body) {
            expansions.push(ExpansionKind::Items(items));
        }
    }
    expansions
}

/// Replaces `$x` by a name at the place of both, and `$( .. )*` by its content.
fn without_dollars(tokens: TokenStream) -> TokenStream {
    let mut result = Vec::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(dollar) if dollar.as_char() == '$' => match tokens.next() {
                Some(TokenTree::Ident(name)) => {
                    let span = dollar.span().join(name.span()).unwrap_or(name.span());
                    result.push(Ident::new(&name.to_string(), span).into());
                }
                Some(TokenTree::Group(repeated)) => {
                    result.extend(without_dollars(repeated.stream()));
                    // The separator, and the repetition.
                    let counts = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if "*+?".contains(p.as_char()));
                    while tokens.next().is_some_and(|token| !counts(&token)) {}
                }
                other => result.extend(other),
            },
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_dollars(group.stream()));
                inner.set_span(group.span());
                result.push(inner.into());
            }
            other => result.push(other),
        }
    }
    result.into_iter().collect()
}

/// The place of a piece of syntax in its file, in bytes.
pub fn range(piece: &impl Spanned) -> Range<usize> {
    piece.span().byte_range()
}

/// `sync_threads` of `thread::sync_threads`.
pub fn last_segment(path: &syn::Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

fn is_kernel(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| last_segment(attribute.path()) == "kernel")
}

struct Functions<'a> {
    found: Vec<Function<'a>>,
    /// The type or trait of the next methods.
    owner: Option<String>,
    in_macro: bool,
}

impl<'a> Functions<'a> {
    fn add(&mut self, attributes: &[Attribute], signature: &Signature, block: &'a Block) {
        // What is computed at compile time cannot be switched at run time.
        if signature.constness.is_some() {
            return;
        }
        let name = match &self.owner {
            Some(owner) => format!("{owner}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        let is_kernel = !self.in_macro && is_kernel(attributes);
        self.found.push(Function { name, block, is_kernel });
    }

    fn owned(&mut self, owner: Option<String>, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.owner, owner);
        visit(self);
        self.owner = before;
    }
}

impl<'a> Visit<'a> for Functions<'a> {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        // A file's tests are no part of a kernel.
        let tests = |attribute: &Attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<Ident>().is_ok_and(|what| what == "test")
        };
        if !module.attrs.iter().any(tests) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        let owner = match &*item.self_ty {
            Type::Path(path) => Some(last_segment(&path.path)),
            _ => None,
        };
        self.owned(owner, |of| visit::visit_item_impl(of, item));
    }

    fn visit_item_trait(&mut self, item: &'a ItemTrait) {
        self.owned(Some(item.ident.to_string()), |of| visit::visit_item_trait(of, item));
    }

    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.attrs, &function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(file: &SourceFile) -> Vec<String> {
        file.functions().into_iter().map(|function| function.name).collect()
    }

    #[test]
    fn functions_have_their_types_names() {
        let text = "
            const fn size() -> usize { 4 }
            fn free() {}
            impl<const N: usize> Walk<N> { fn advance(&mut self) {} }
            trait Rows { fn load(&self); fn twice(&self) { self.load() } }
            #[cfg(test)] mod tests { fn inner() {} }
        ";
        let file = SourceFile::new("k.rs".into(), text.into()).unwrap();
        assert_eq!(names(&file), ["free", "Walk::advance", "Rows::twice"]);
    }

    #[test]
    fn kernels_that_a_macro_makes() {
        let text = "
            macro_rules! entry {
                ($name:ident: $rows:literal) => { entry! { @ $name: $rows } };
                (@ $name:ident: $rows:literal) => {
                    #[kernel] pub fn $name(problem: Problem) { multiply($rows); }
                };
            }
            kernels! {
                family;
                // Measured.
                entry! { one: 1 } gpu { gflops: 1.0 };
                entry! { two: 2 };
            }
            other! { three: 3 }
            fn multiply() {}
            macro_rules! four { ($real:ident, |$i:ident| $load:expr) => {{ for $i in 0..4 { $load; } }}; }
        ";
        let file = SourceFile::new("family/entries.rs".into(), text.into()).unwrap();
        assert_eq!(file.family(), "family");
        assert_eq!(file.kernels(), ["one", "two"]);
        assert!(file.rows().eq(["one", "two"]));
        assert_eq!(names(&file), ["multiply", "name", "four"]);
        let without = file.with_kernels(|name| name == "two");
        assert!(!without.contains("one: 1") && !without.contains("gpu"), "{without}");
        assert!(without.contains("entry! { two: 2 };"), "{without}");
        assert!(without.contains("other! { three: 3 }"));
        assert_eq!(without.find("fn multiply"), text.find("fn multiply"));
        let functions = file.functions();
        assert_eq!(file.text_of(&functions[2].block.stmts[0]), "for $i in 0..4 { $load; }");
    }
}
