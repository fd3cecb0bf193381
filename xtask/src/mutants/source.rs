//! The kernel files: which kernels they hold, and which functions a kernel is made of. Functions that a macro makes
//! are taken from its definition, and the names of the kernels among them from its calls, whose first word they are.

use std::{
    collections::HashSet,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use syn::{
    Attribute, Block, ExprPath, FnArg, Generics, ImplItemFn, Item, ItemFn, ItemMacro, ItemMod,
    Macro, Signature, Type, Visibility,
    spanned::Spanned,
    visit::{self, Visit},
};

/// What declares an array in shared memory.
pub const SHARED_MACROS: [&str; 3] = ["shared", "shared_array", "dynamic_shared"];

/// Kernels that are compiled as one module: a file, or a folder of files.
pub struct KernelModule {
    /// Its name: `tiled`, `gemm`.
    pub name: String,
    /// The file of that name, or the folder's `mod.rs` and then the others.
    pub files: Vec<KernelFile>,
}

/// A file of a kernel module, as text and taken apart.
pub struct KernelFile {
    /// Its name: `tiled.rs`.
    pub name: String,
    /// As it stands there.
    pub text: String,
    parsed: syn::File,
    expansions: Vec<Expansion>,
}

/// What a macro of a kernel file expands to, as it stands in the macro's definition: `$x` is a name, and what is
/// repeated is there once.
struct Expansion {
    name: String,
    kind: ExpansionKind,
}

enum ExpansionKind {
    Items(syn::File),
    Block(Block),
}

/// A function of a kernel module, or a macro that is a block.
pub struct Function<'a> {
    pub name: String,
    /// The file that it stands in, by its place in [`KernelModule::files`].
    pub file: usize,
    pub generics: Option<&'a Generics>,
    pub block: &'a Block,
    /// Made a kernel by its attribute, with parameters of this kind.
    pub kernel: Option<Params>,
    /// The names that a macro gives it, where one makes it a kernel again and again.
    entries: Vec<String>,
    /// Functions of this module, or of others, that it names.
    names: HashSet<String>,
    declares_shared: bool,
}

/// How a kernel takes its matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Params {
    /// As `In` and `Out`.
    Views,
    /// As raw pointers.
    Pointers,
    /// As `In` and `Out`, with a `Problem` that says the rest.
    General,
    /// As tensor maps, with a `Problem`.
    Tensor,
}

impl Params {
    /// Are they those of a general product, which is several kernels of one text?
    pub fn are_general(self) -> bool {
        matches!(self, Params::General | Params::Tensor)
    }
}

/// A kernel that uses shared memory, or several that are one text.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    pub params: Params,
    /// The kernels themselves, by their names.
    pub entries: Vec<String>,
    /// Of each the function that it is.
    pub own: Vec<usize>,
    /// The functions that it is made of, its own included, by their places in [`KernelModule::functions`].
    pub functions: Vec<usize>,
}

impl KernelModule {
    /// Every module of a folder, in the order of their names.
    pub fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut modules = Vec::new();
        for path in entries(folder)? {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let files = match path.is_dir() {
                true => {
                    let mut files = entries(&path)?;
                    // `false` comes before `true`.
                    files.sort_by_key(|file| !file.ends_with("mod.rs"));
                    files
                }
                false if path.ends_with("mod.rs") => continue,
                false => vec![path],
            };
            modules.push(KernelModule {
                name,
                files: files.iter().map(|path| KernelFile::read(path)).collect::<Result<_>>()?,
            });
        }
        ensure!(!modules.is_empty(), "no kernel file in {}", folder.display());
        Ok(modules)
    }

    /// Does it import the vocabulary from the module above it, rather than by the library's name?
    pub fn takes_device_from_above(&self) -> bool {
        // Alone, or at the head of a list: rustfmt sorts it there.
        let text = self.files[0].text.split_whitespace().collect::<String>();
        text.contains("super::device") || text.contains("super::{device")
    }

    /// Its functions, methods too.
    pub fn functions(&self) -> Vec<Function<'_>> {
        let mut functions = Functions { found: Vec::new(), file: 0, entries: Vec::new() };
        for (number, file) in self.files.iter().enumerate() {
            functions.file = number;
            functions.entries = Vec::new();
            functions.visit_file(&file.parsed);
            for Expansion { name, kind } in &file.expansions {
                functions.entries = file.calls(name).map(|(_, first)| first).collect();
                match kind {
                    ExpansionKind::Items(items) => functions.visit_file(items),
                    ExpansionKind::Block(block) => functions.add(name.clone(), None, None, block),
                }
            }
        }
        functions.found
    }

    /// Where a kernel's name is known, from the module's own on: a module further, if its file is one that others may name.
    pub fn place(&self, kernel: &str) -> String {
        let is_it = |function: &&Function| {
            function.kernel.is_some()
                && (function.name == kernel || function.entries.iter().any(|name| name == kernel))
        };
        let file = self.functions().iter().find(is_it).map_or(0, |function| function.file);
        let name = self.files[file].name.trim_end_matches(".rs");
        let is_public = |item: &Item| matches!(item, Item::Mod(ItemMod { vis: Visibility::Public(_), ident, .. }) if ident == name);
        match self.files[0].parsed.items.iter().any(is_public) {
            true => format!("::{name}"),
            false => String::new(),
        }
    }

    /// The kernels that use shared memory, themselves or in a function that they call.
    pub fn kernels(&self) -> Vec<Kernel> {
        let functions = self.functions();
        let kernels = functions.iter().enumerate().flat_map(|(index, function)| {
            let Some(params) = function.kernel else { return Vec::new() };
            // A function counts once it is reached; the list grows while it is gone through.
            let mut reached = vec![index];
            let mut next = 0;
            while let Some(&from) = reached.get(next) {
                next += 1;
                for (to, callee) in functions.iter().enumerate() {
                    if functions[from].names.contains(&callee.name) && !reached.contains(&to) {
                        reached.push(to);
                    }
                }
            }
            let shared = reached.iter().any(|&index| functions[index].declares_shared);
            let kernel = |name: &String| {
                let (name, entries) = (name.clone(), vec![name.clone()]);
                Kernel { name, params, entries, own: vec![index], functions: reached.clone() }
            };
            match (shared, function.entries.is_empty()) {
                (false, _) => Vec::new(),
                (true, true) => vec![kernel(&function.name)],
                (true, false) => function.entries.iter().map(kernel).collect(),
            }
        });
        kernels.collect()
    }
}

/// What is in a folder, in the order of the names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

impl KernelFile {
    fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        KernelFile::new(name, text).with_context(|| format!("cannot parse {}", path.display()))
    }

    /// Takes a file's text apart.
    pub fn new(name: String, text: String) -> Result<Self> {
        let parsed = syn::parse_file(&text)?;
        let definitions = parsed.items.iter().filter_map(|item| match item {
            Item::Macro(ItemMacro { ident: Some(name), mac, .. }) => Some((name.to_string(), mac)),
            _ => None,
        });
        let expansions = definitions.flat_map(|(name, definition)| {
            let kinds = expansions(definition.tokens.clone());
            kinds.into_iter().map(move |kind| Expansion { name: name.clone(), kind })
        });
        let expansions = expansions.collect();
        Ok(KernelFile { name, text, parsed, expansions })
    }

    /// Everything in it.
    pub fn syntax(&self) -> &syn::File {
        &self.parsed
    }

    /// Its text without the kernels that are not `wanted`.
    pub fn with_kernels(&self, wanted: impl Fn(&str) -> bool) -> String {
        let is_unwanted = |item: &&Item| match item {
            Item::Fn(function) => {
                is_kernel(&function.attrs) && !wanted(&function.sig.ident.to_string())
            }
            Item::Macro(call) => self.makes_kernels(call) && !wanted(&first_word(call)),
            _ => false,
        };
        let mut text = self.text.clone();
        // From the last on, so that the places of the others stay.
        for item in self.parsed.items.iter().filter(is_unwanted).rev() {
            text.replace_range(range(item), "");
        }
        text
    }

    /// Does it define a macro of that name?
    pub fn defines_macro(&self, name: &str) -> bool {
        self.expansions.iter().any(|expansion| expansion.name == name)
    }

    /// The calls of a macro of this file, beside functions, each with the first word that it is given.
    fn calls(&self, name: &str) -> impl Iterator<Item = (&ItemMacro, String)> {
        self.parsed.items.iter().filter_map(move |item| match item {
            Item::Macro(call) if call.ident.is_none() && last_segment(&call.mac.path) == name => {
                Some((call, first_word(call)))
            }
            _ => None,
        })
    }

    /// Is it a call of a macro of this file that makes kernels of what it is given, the name first?
    fn makes_kernels(&self, call: &ItemMacro) -> bool {
        let name = last_segment(&call.mac.path);
        let expansions = self.expansions.iter().filter(|expansion| expansion.name == name);
        let mut items = expansions.flat_map(|expansion| match &expansion.kind {
            ExpansionKind::Items(file) => &file.items[..],
            ExpansionKind::Block(_) => &[],
        });
        items.any(|item| matches!(item, Item::Fn(function) if is_kernel(&function.attrs)))
    }

    /// The text of a piece of syntax.
    pub fn text_of(&self, piece: &impl Spanned) -> &str {
        &self.text[range(piece)]
    }

    /// The whole line that a byte stands in, without the space around it.
    pub fn line_at(&self, byte: usize) -> &str {
        let start = self.text[..byte].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[byte..].find('\n').map_or(self.text.len(), |length| byte + length);
        self.text[start..end].trim()
    }
}

/// The first word that a macro is given.
fn first_word(call: &ItemMacro) -> String {
    call.mac.tokens.clone().into_iter().next().map(|word| word.to_string()).unwrap_or_default()
}

/// What the rules of a macro expand to, where that is items or a block.
fn expansions(rules: TokenStream) -> Vec<ExpansionKind> {
    let mut expansions = Vec::new();
    let mut groups = rules.into_iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(group),
        _ => None,
    });
    // A rule is a pattern, an arrow and what comes of it.
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

/// `$x` becomes a name that stands where both stood, `$( .. )*` what is in it.
fn without_dollars(tokens: TokenStream) -> TokenStream {
    let mut result = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(dollar) if dollar.as_char() == '$' => match tokens.next() {
                Some(TokenTree::Ident(name)) => {
                    let span = dollar.span().join(name.span()).unwrap_or(name.span());
                    result.push(Ident::new(&name.to_string(), span).into());
                }
                Some(TokenTree::Group(repeated)) => {
                    result.extend(without_dollars(repeated.stream()));
                    // What stands between them, and how many they are.
                    let counts = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if "*+?".contains(p.as_char()));
                    while tokens.next().is_some_and(|token| !counts(&token)) {}
                }
                other => result.extend(other),
            },
            TokenTree::Group(group) => {
                let stream = without_dollars(group.stream());
                let mut inner = Group::new(group.delimiter(), stream);
                inner.set_span(group.span());
                result.push(inner.into());
            }
            other => result.push(other),
        }
    }
    result.into_iter().collect()
}

/// Where a piece of syntax stands in its file.
pub fn range(piece: &impl Spanned) -> Range<usize> {
    piece.span().byte_range()
}

fn is_kernel(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| last_segment(attribute.path()) == "kernel")
}

struct Functions<'a> {
    found: Vec<Function<'a>>,
    file: usize,
    /// What a kernel is called, where the functions are a macro's.
    entries: Vec<String>,
}

impl<'a> Functions<'a> {
    fn add(
        &mut self,
        name: String,
        generics: Option<&'a Generics>,
        kernel: Option<Params>,
        block: &'a Block,
    ) {
        let mut uses = Uses::default();
        uses.visit_block(block);
        let Uses { names, shared: declares_shared } = uses;
        let file = self.file;
        let entries = if kernel.is_some() { self.entries.clone() } else { Vec::new() };
        self.found.push(Function {
            name,
            file,
            generics,
            block,
            kernel,
            entries,
            names,
            declares_shared,
        });
    }

    fn add_function(
        &mut self,
        attributes: &[Attribute],
        signature: &'a Signature,
        block: &'a Block,
    ) {
        let types = || {
            signature.inputs.iter().filter_map(|arg| match arg {
                FnArg::Typed(typed) => Some(&*typed.ty),
                FnArg::Receiver(_) => None,
            })
        };
        let is_problem =
            |ty: &Type| matches!(ty, Type::Path(ty) if last_segment(&ty.path) == "Problem");
        let kernel = is_kernel(attributes).then(|| {
            let is_map =
                |ty: &Type| matches!(ty, Type::Path(ty) if last_segment(&ty.path).starts_with("TensorMap"));
            if types().any(is_map) {
                Params::Tensor
            } else if types().any(is_problem) {
                Params::General
            } else if types().any(|ty| matches!(ty, Type::Ptr(_))) {
                Params::Pointers
            } else {
                Params::Views
            }
        });
        self.add(signature.ident.to_string(), Some(&signature.generics), kernel, block);
    }
}

impl<'a> Visit<'a> for Functions<'a> {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        // A file's tests are no part of a kernel, whatever they call their functions.
        let is_of_tests = |attribute: &Attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<Ident>().is_ok_and(|what| what == "test")
        };
        if !module.attrs.iter().any(is_of_tests) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        self.add_function(&function.attrs, &function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        self.add_function(&function.attrs, &function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }
}

/// The functions and macros that a block names, and whether it declares shared memory.
#[derive(Default)]
struct Uses {
    names: HashSet<String>,
    shared: bool,
}

impl<'a> Visit<'a> for Uses {
    fn visit_expr_path(&mut self, path: &'a ExprPath) {
        self.names.insert(last_segment(&path.path));
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        self.names.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        let name = last_segment(&call.path);
        self.shared |= SHARED_MACROS.contains(&&*name);
        self.names.insert(name);
    }
}

/// `sync_threads` of `thread::sync_threads`.
pub fn last_segment(path: &syn::Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

#[cfg(test)]
impl KernelModule {
    /// A module of one file.
    pub fn of(name: &str, text: &str) -> Self {
        let file = KernelFile::new(format!("{name}.rs"), text.into()).unwrap();
        KernelModule { name: name.into(), files: vec![file] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_made_of_what_it_calls() {
        let text = "
            fn unused() { let x = shared![f32; 4]; }
            fn tile() { let x = shared![f32; 4]; inner(); }
            fn inner() {}
            #[kernel(block = (64))] pub fn general(problem: Problem, a: In<f32>) { tile(); }
            #[kernel(block = (16, 16))] pub fn with(a: In<f32>) { tile(); }
            #[device::kernel] pub unsafe fn own(a: *const f32) { let x = shared_array![f32; 4]; }
            #[kernel] pub fn without(a: In<f32>) { inner(); }
            #[cfg(test)] mod tests { fn inner() {} }
        ";
        let module = KernelModule::of("k", text);
        let functions = module.functions();
        let made_of = |kernel: &Kernel| {
            let names = kernel.functions.iter().map(|&index| functions[index].name.as_str());
            (kernel.name.clone(), kernel.params, names.collect::<Vec<_>>().join(" "))
        };
        let kernels = module.kernels().iter().map(made_of).collect::<Vec<_>>();
        assert_eq!(
            kernels,
            [
                ("general".into(), Params::General, "general tile inner".into()),
                ("with".into(), Params::Views, "with tile inner".into()),
                ("own".into(), Params::Pointers, "own".into()),
            ]
        );
        assert!(!module.takes_device_from_above());
        let without = KernelModule::of("k", &module.files[0].with_kernels(|name| name == "own"));
        let left = without.functions().into_iter().map(|function| function.name);
        assert_eq!(left.collect::<Vec<_>>(), ["unused", "tile", "inner", "own"]);
        assert_eq!(module.files[0].line_at(text.find("fn inner").unwrap()), "fn inner() {}");
    }

    #[test]
    fn functions_that_a_macro_makes() {
        let text = "
            #[kernel] pub fn all() { let x = shared![f32; 4]; T::load(); }
            macro_rules! reals { ($($real:ident = $end:expr;)*) => {$(
                impl Real for $real { fn load(&self) -> [$real; 4] { four!($real, |i| self[i + $end]) } }
            )*}; }
            macro_rules! four { ($real:ident, |$i:ident| $load:expr) => {{ for $i in 0..4 { $load; } }}; }
            reals! { f32 = 4.0; }
        ";
        let module = KernelModule::of("k", text);
        let functions = module.functions();
        let names = functions.iter().map(|function| function.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["all", "load", "four"]);
        assert_eq!(module.kernels()[0].functions, [0, 1, 2]);
        let file = &module.files[0];
        assert!(file.defines_macro("four") && !file.defines_macro("shared"));
        let [load, four] = [1, 2].map(|number| &functions[number].block.stmts[0]);
        assert_eq!(file.text_of(load), "four!($real, |i| self[i + $end])");
        assert_eq!(file.text_of(four), "for $i in 0..4 { $load; }");
    }

    #[test]
    fn kernels_that_a_macro_makes_one_a_call() {
        let text = "
            macro_rules! entry {
                ($name:ident: $rows:literal) => { entry! { @ $name: $rows } };
                (@ $name:ident: $rows:literal) => {
                    #[kernel] pub fn $name(problem: Problem) { shared![f32; $rows]; multiply(); }
                };
            }
            entry! { one: 1 }
            entry! { two: 2 }
            other! { three: 3 }
            fn multiply() {}
        ";
        let module = KernelModule::of("k", text);
        let kernels = module.kernels();
        let names = kernels.iter().map(|kernel| kernel.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["one", "two"]);
        assert!(kernels.iter().all(|kernel| kernel.params == Params::General));
        // The macro's function and the other, of which there is one each.
        assert!(kernels.iter().all(|kernel| kernel.functions.len() == 2));
        let without = module.files[0].with_kernels(|name| name == "two");
        assert!(!without.contains("entry! { one") && without.contains("entry! { two: 2 }"));
        assert!(without.contains("other! { three: 3 }") && without.contains("fn multiply"));
    }

    #[test]
    fn a_kernel_stands_in_the_module_of_its_file() {
        let file = |name: &str, text: &str| KernelFile::new(name.into(), text.into()).unwrap();
        let files = vec![
            file("mod.rs", "pub mod parts; mod own; pub use own::*; #[kernel] pub fn whole() {}"),
            file("parts.rs", "#[kernel] pub fn part() {}"),
            file("own.rs", "#[kernel] pub fn shown() {}"),
        ];
        let module = KernelModule { name: "k".into(), files };
        let places = ["whole", "part", "shown"].map(|kernel| module.place(kernel));
        assert_eq!(places, ["", "::parts", ""]);
    }
}
