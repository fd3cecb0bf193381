//! The kernel files: which kernels they hold, and which functions a kernel is made of.

use std::{
    collections::HashSet,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use syn::{
    Attribute, Block, ExprPath, FnArg, Generics, ImplItemFn, ItemFn, Macro, Signature, Type,
    spanned::Spanned,
    visit::{self, Visit},
};

/// What declares an array in shared memory.
pub const SHARED_MACROS: [&str; 3] = ["shared", "shared_array", "dynamic_shared"];

/// A file of kernels, as text and taken apart.
pub struct KernelFile {
    /// Its module: `tiled`.
    pub module: String,
    /// As it stands there.
    pub text: String,
    parsed: syn::File,
}

/// A function of a kernel file.
pub struct Function<'a> {
    pub name: String,
    pub generics: &'a Generics,
    pub block: &'a Block,
    /// Made a kernel by its attribute, with parameters of this kind.
    pub kernel: Option<Params>,
    /// Functions of this file, or of others, that it names.
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
}

/// A kernel that uses shared memory.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    pub params: Params,
    /// The functions that it is made of, its own included, by their places in [`KernelFile::functions`].
    pub functions: Vec<usize>,
}

impl KernelFile {
    /// Takes a file's text apart.
    pub fn new(path: &Path, text: String) -> Result<Self> {
        let parsed =
            syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        let module = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(KernelFile { module, text, parsed })
    }

    /// Every kernel file of a folder, in the order of their names.
    pub fn all(folder: &Path) -> Result<Vec<Self>> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.retain(|path| {
            path.extension().is_some_and(|e| e == "rs") && !path.ends_with("mod.rs")
        });
        paths.sort();
        ensure!(!paths.is_empty(), "no kernel file in {}", folder.display());
        let read = |path: &PathBuf| {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            KernelFile::new(path, text)
        };
        paths.iter().map(read).collect()
    }

    /// Everything in it.
    pub fn syntax(&self) -> &syn::File {
        &self.parsed
    }

    /// Does it import the vocabulary from the module above it, rather than by the library's name?
    pub fn takes_device_from_above(&self) -> bool {
        // Alone, or at the head of a list: rustfmt sorts it there.
        let text = self.text.split_whitespace().collect::<String>();
        text.contains("super::device") || text.contains("super::{device")
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

    /// Its functions, methods too.
    pub fn functions(&self) -> Vec<Function<'_>> {
        let mut functions = Functions(Vec::new());
        functions.visit_file(&self.parsed);
        functions.0
    }

    /// The kernels that use shared memory, themselves or in a function that they call.
    pub fn kernels(&self) -> Vec<Kernel> {
        let functions = self.functions();
        let kernels = functions.iter().enumerate().filter_map(|(index, function)| {
            let params = function.kernel?;
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
            let name = function.name.clone();
            shared.then_some(Kernel { name, params, functions: reached })
        });
        kernels.collect()
    }
}

/// Where a piece of syntax stands in its file.
pub fn range(piece: &impl Spanned) -> Range<usize> {
    piece.span().byte_range()
}

struct Functions<'a>(Vec<Function<'a>>);

impl<'a> Functions<'a> {
    fn add(&mut self, attributes: &[Attribute], signature: &'a Signature, block: &'a Block) {
        let is_kernel = |attribute: &Attribute| last_segment(attribute.path()) == "kernel";
        let pointer =
            |arg: &FnArg| matches!(arg, FnArg::Typed(typed) if matches!(*typed.ty, Type::Ptr(_)));
        let kernel =
            attributes.iter().any(is_kernel).then(|| match signature.inputs.iter().any(pointer) {
                true => Params::Pointers,
                false => Params::Views,
            });
        let mut uses = Uses::default();
        uses.visit_block(block);
        self.0.push(Function {
            name: signature.ident.to_string(),
            generics: &signature.generics,
            block,
            kernel,
            names: uses.names,
            declares_shared: uses.shared,
        });
    }
}

impl<'a> Visit<'a> for Functions<'a> {
    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }
}

/// The functions that a block names, and whether it declares shared memory.
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
        self.shared |= SHARED_MACROS.contains(&&*last_segment(&call.path));
    }
}

/// `sync_threads` of `thread::sync_threads`.
pub fn last_segment(path: &syn::Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
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
            #[kernel(block = (16, 16))] pub fn with(a: In<f32>) { tile(); }
            #[device::kernel] pub unsafe fn own(a: *const f32) { let x = shared_array![f32; 4]; }
            #[kernel] pub fn without(a: In<f32>) { inner(); }
        ";
        let file = KernelFile::new(Path::new("k.rs"), text.into()).unwrap();
        let functions = file.functions();
        let made_of = |kernel: &Kernel| {
            let names = kernel.functions.iter().map(|&index| functions[index].name.as_str());
            (kernel.name.clone(), kernel.params, names.collect::<Vec<_>>().join(" "))
        };
        let kernels = file.kernels().iter().map(made_of).collect::<Vec<_>>();
        assert_eq!(
            kernels,
            [
                ("with".into(), Params::Views, "with tile inner".into()),
                ("own".into(), Params::Pointers, "own".into()),
            ]
        );
        assert!(!file.takes_device_from_above());
        assert_eq!(file.line_at(text.find("fn inner").unwrap()), "fn inner() {}");
    }
}
