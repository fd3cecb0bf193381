//! What a kernel becomes: for `nvptx64` an entry point, elsewhere a `Kernel`.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{
    Error, FnArg, GenericArgument, Ident, ItemFn, Pat, PathArguments, PointerMutability, Result,
    ReturnType, Type, parse_quote, spanned::Spanned,
};

use crate::{
    compound,
    declaration::{Attribute, Constant, Length, Triple, Values},
};

pub(crate) fn kernel(attribute: Attribute, function: ItemFn) -> Result<TokenStream> {
    refuse_what_a_kernel_cannot_be(&function)?;
    let mut params = function.sig.inputs.iter().map(Param::new).collect::<Result<Vec<_>>>()?;
    for param in &mut params {
        param.allow_unused_if_in(&attribute.len);
    }
    let barriers = match &attribute.barriers {
        Some(declared) => declared.to_token_stream(),
        None => count_barriers(function.block.to_token_stream()).to_token_stream(),
    };
    let on_gpu = entry_point(&attribute, &barriers, &params, &function);
    let names = params.iter().map(|param| param.name.to_string()).collect();
    let block = Box::new(compound::with_reads(&function.block, names));
    let on_host = ItemFn { block, ..function };
    let on_host = kernel_value(&attribute, &barriers, &params, &on_host)?;
    Ok(quote! { #on_gpu #on_host })
}

fn refuse_what_a_kernel_cannot_be(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let refuse = |tokens: &dyn ToTokens, why: &str| Err(Error::new_spanned(tokens, why));
    if let ReturnType::Type(..) = signature.output {
        return refuse(&signature.output, "a kernel returns nothing: it writes to an `Out`");
    }
    if !signature.generics.params.is_empty() {
        return refuse(
            &signature.generics,
            "a kernel has one name in the PTX, so it cannot be generic: call a generic helper",
        );
    }
    if let Some(word) = &signature.asyncness {
        return refuse(word, "a kernel cannot be async");
    }
    if let Some(word) = &signature.abi {
        return refuse(word, "`#[kernel]` chooses the ABI");
    }
    if signature.inputs.is_empty() || signature.inputs.len() > 16 {
        return refuse(&signature.ident, "a kernel takes 1 to 16 parameters");
    }
    Ok(())
}

/// A parameter of the kernel.
struct Param {
    arg: FnArg,
    name: Ident,
    ty: Type,
    /// As in the PTX comment: `u32`, `in.f32`, `out.f32`.
    kind: String,
}

impl Param {
    fn new(arg: &FnArg) -> Result<Self> {
        let FnArg::Typed(typed) = arg else {
            return Err(Error::new_spanned(arg, "a kernel is a free function"));
        };
        let Pat::Ident(pattern) = &*typed.pat else {
            return Err(Error::new_spanned(&typed.pat, "a kernel's parameter is a plain name"));
        };
        let kind = kind(&typed.ty).ok_or_else(|| {
            let expected =
                "a number, `In<T>`, `Out<T>`, a `TensorMap`, `TensorMaps` or a raw pointer is expected here";
            Error::new_spanned(&typed.ty, expected)
        })?;
        Ok(Param { arg: arg.clone(), name: pattern.ident.clone(), ty: (*typed.ty).clone(), kind })
    }
}

impl Param {
    /// A size that only the lengths of buffers name is used: no warning says otherwise.
    fn allow_unused_if_in(&mut self, lengths: &[Length]) {
        if let FnArg::Typed(typed) = &mut self.arg
            && lengths.iter().any(|length| names(length.rule.to_token_stream(), &self.name))
        {
            typed.attrs.push(parse_quote!(#[allow(unused_variables)]));
        }
    }

    fn is_pointer(&self) -> bool {
        matches!(self.ty, Type::Ptr(_))
    }

    /// Whether it is a tensor map, which TMA reads.
    fn is_tensor_map(&self) -> bool {
        ["tensormap.", "tensormaps.", "tensormapmut."]
            .iter()
            .any(|start| self.kind.starts_with(start))
    }

    /// Whether it is a buffer with a length.
    fn is_view(&self) -> bool {
        !self.is_pointer() && !self.is_tensor_map() && self.kind.contains('.')
    }
}

/// A type as in the PTX comment.
fn kind(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let name = last.ident.to_string().to_lowercase();
            match &last.arguments {
                PathArguments::None => Some(name),
                PathArguments::AngleBracketed(list) => {
                    let mut args = list.args.iter();
                    let element = match args.next()? {
                        GenericArgument::Type(element) => kind(element)?,
                        _ => return None,
                    };
                    let count = match args.next() {
                        Some(count) => format!("x{}", count.to_token_stream()),
                        None => String::new(),
                    };
                    Some(format!("{name}.{element}{count}").replace(' ', ""))
                }
                PathArguments::Parenthesized(_) => None,
            }
        }
        Type::Ptr(pointer) => {
            let way =
                if matches!(pointer.mutability, PointerMutability::Mut(_)) { "out" } else { "in" };
            Some(format!("{way}.{}", kind(&pointer.elem)?))
        }
        Type::Array(array) => {
            Some(format!("{}x{}", kind(&array.elem)?, array.len.to_token_stream()).replace(' ', ""))
        }
        _ => None,
    }
}

/// Whether the name is among the tokens.
fn names(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => names(group.stream(), name),
        TokenTree::Ident(word) => word == *name,
        _ => false,
    })
}

/// The number of calls of `sync_threads` in the body.
fn count_barriers(tokens: TokenStream) -> u32 {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => count_barriers(group.stream()),
            TokenTree::Ident(word) => (word == "sync_threads").into(),
            _ => 0,
        })
        .sum()
}

/// For `nvptx64`: the entry point, with its declarations as a comment for the builder and the host.
fn entry_point(
    attribute: &Attribute,
    barriers: &TokenStream,
    params: &[Param],
    function: &ItemFn,
) -> TokenStream {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let name = &sig.ident;
    let args = params.iter().map(|param| {
        let Param { arg, name, ty, .. } = param;
        match param.is_tensor_map() {
            true => quote!(#name: ::simt::device::TensorMapParam<{ <#ty>::COUNT }>),
            false => arg.to_token_stream(),
        }
    });
    // TMA needs the address of a map among the parameters; Rust would copy the map to a local
    // variable.
    let maps = params.iter().enumerate().filter(|(_, param)| param.is_tensor_map());
    let maps = maps.map(|(number, Param { name: map, ty, .. })| {
        let text = format!("cvta.param.u64 {{}}, {name}_param_{number};");
        quote! {
            let _ = #map;
            let #map: #ty = {
                let address: u64;
                // SAFETY: takes the parameter's address, where the launch has put such a map.
                unsafe {
                    ::simt::device::__private::asm!(
                        #text,
                        out(reg64) address,
                        options(pure, nomem, nostack, preserves_flags)
                    );
                    <#ty>::at(address)
                }
            };
        }
    });
    let mut text = format!("// simt.kernel name={name}");
    let mut values = Vec::new();
    let mut word = |key: &str, parts: &[&dyn ToTokens]| {
        text += &format!(" {key}={}", vec!["{}"; parts.len()].join(","));
        values.extend(parts.iter().map(|part| part.to_token_stream()));
    };
    if let Some(Triple([x, y, z])) = &attribute.block {
        word("block", &[x, y, z]);
    }
    if let Some(bytes) = &attribute.shared {
        word("shared", &[bytes]);
    }
    word("barriers", &[barriers]);
    if let Some(blocks) = &attribute.min_blocks {
        word("min_blocks", &[blocks]);
    }
    if let Some(Triple([x, y, z])) = &attribute.cluster {
        word("cluster", &[x, y, z]);
    }
    if let Some(bytes) = &attribute.dynamic_shared {
        word("dynamic_shared", &[bytes]);
    }
    if let Some(arch) = &attribute.arch {
        word("arch", &[arch]);
    }
    if let Some(level) = &attribute.opt_level {
        word("opt_level", &[level]);
    }
    if attribute.dependent {
        text += " dependent=true";
    }
    if !attribute.constants.is_empty() {
        let constants = attribute.constants.iter().map(Constant::text).collect::<Vec<_>>();
        text += &format!(" constants={}", constants.join(","));
    }
    let constants = attribute.constants.iter().filter_map(Constant::on_gpu);
    let kinds = params.iter().map(|param| param.kind.as_str()).collect::<Vec<_>>();
    text += &format!(" params={}", kinds.join(","));
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #[unsafe(no_mangle)]
        #[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
        #(#attrs)*
        #vis unsafe extern "ptx-kernel" fn #name(#(#args),*) {
            // SAFETY: a comment: no instruction.
            unsafe {
                ::simt::device::__private::asm!(
                    #text,
                    #(const #values,)*
                    options(nomem, nostack, preserves_flags)
                )
            };
            #(#maps)*
            #(#constants)*
            #block
        }
    }
}

/// For every other target: a static `Kernel` of the function's name.
fn kernel_value(
    attribute: &Attribute,
    barriers: &TokenStream,
    params: &[Param],
    function: &ItemFn,
) -> Result<TokenStream> {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let name = &sig.ident;
    let types = params.iter().map(|param| &param.ty).collect::<Vec<_>>();
    let names = params.iter().map(|param| &param.name).collect::<Vec<_>>();
    let texts = names.iter().map(ToString::to_string);
    let kinds = params.iter().map(|param| &param.kind);
    // An error about a parameter's type is reported at the parameter, not at every launch.
    let types_checked = types
        .iter()
        .map(|ty| quote_spanned!(ty.span()=> const _: fn() = ::simt::require_param::<#ty>;));
    let text = name.to_string();
    let declared = declared_fields(attribute, barriers);
    let watched = quote!(false #(|| <#types as ::simt::Param>::WATCHED)*);
    let thread = thread_fn(attribute, params, function, block, &watched);
    // What a checked launch runs. Views report their accesses themselves.
    let checked = match params.iter().any(Param::is_pointer) {
        true => {
            let reported = crate::dereference::reported(block);
            let thread = thread_fn(attribute, params, function, &reported, &quote!(true));
            quote!({ #[allow(unused_imports)] use ::simt::check::raw::Other as _; #thread })
        }
        false => quote!(__THREAD),
    };
    let checks = length_checks(attribute, params)?;
    Ok(quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #[allow(non_upper_case_globals)]
        #(#attrs)*
        #vis static #name: ::simt::Kernel<(#(#types,)*)> = {
            type __Params = (#(#types,)*);

            #(#types_checked)*

            #[allow(unused_variables)]
            fn __lengths(&(#(#names,)*): &__Params) -> ::core::result::Result<(), ::simt::Shortfall> {
                #checks
                ::core::result::Result::Ok(())
            }

            const __DECLARATION: ::simt::Declaration = {
                const __PARAMS: &[::simt::ParamDeclaration] =
                    &[#(::simt::ParamDeclaration { name: #texts, ty: #kinds }),*];
                let mut __declaration =
                    ::simt::Declaration::new(#text, __PARAMS, (::core::file!(), ::core::line!()));
                #declared
                __declaration
            };
            const __CODE: ::simt::Code<__Params> = ::simt::__code! {
                const __THREAD: ::simt::ThreadFn<__Params> = #thread;
                ::simt::Code {
                    thread: __THREAD,
                    checked: #checked,
                    params: ::core::marker::PhantomData,
                }
            };
            // SAFETY: all of them were made of this function.
            unsafe { ::simt::Kernel::new(__DECLARATION, __lengths, __CODE) }
        };
    })
}

/// The function that one fiber runs, compiled for any processor and for this kind of processor;
/// where it is `watched`, for any processor alone.
fn thread_fn(
    attribute: &Attribute,
    params: &[Param],
    function: &ItemFn,
    block: &syn::Block,
    watched: &TokenStream,
) -> TokenStream {
    let unsafety = &function.sig.safety;
    let args = params.iter().map(|param| &param.arg);
    let names = params.iter().map(|param| &param.name).collect::<Vec<_>>();
    let constants = attribute.constants.iter().filter_map(Constant::on_cpu);
    quote! {
        {
            // Inlined into both versions below, so that each compiles it for its own processor.
            #[allow(clippy::missing_safety_doc)]
            #[inline(always)]
            #unsafety fn __body(#(#args),*) {
                #(#constants)*
                #block
            }

            /// # Safety
            /// As the kernel's.
            #[allow(unused_unsafe)]
            unsafe fn __portable(&(#(#names,)*): &__Params) {
                // SAFETY: the caller's, as for the kernel.
                unsafe { __body(#(#names),*) }
            }

            /// # Safety
            /// As the kernel's, on a processor with these features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(unused_unsafe)]
            unsafe fn __tuned(&(#(#names,)*): &__Params) {
                // SAFETY: the caller's, as for the kernel.
                unsafe { __body(#(#names),*) }
            }
            #[cfg(not(target_arch = "x86_64"))]
            use __portable as __tuned;

            // The version that no constant names is not compiled.
            const __TUNED: unsafe fn(&__Params) = if #watched { __portable } else { __tuned };
            ::simt::ThreadFn { portable: __portable, tuned: __TUNED }
        }
    }
}

impl Constant {
    /// As in the PTX comment: `a_mn_major:0|1`.
    fn text(&self) -> String {
        let values = match &self.values {
            Values::Numbers(numbers) => numbers.iter().map(ToString::to_string).collect(),
            Values::Words(words) => words.clone(),
        };
        format!("{}:{}", self.name, values.join("|"))
    }

    /// Reads a number, once. A word is used only in instructions.
    fn on_gpu(&self) -> Option<TokenStream> {
        let (name, Values::Numbers(numbers)) = (&self.name, &self.values) else { return None };
        let text = format!("mov.u32 {{}}, /* simt.constant {name} */ {};", numbers[0]);
        // Not `pure`: it is in the PTX once, whether or not it is used.
        Some(quote! {
            #[allow(unused_variables, reason = "instructions may be told by it alone")]
            let #name: u32 = {
                let value: u32;
                // SAFETY: moves a number to a register.
                unsafe {
                    ::simt::device::__private::asm!(
                        #text,
                        out(reg32) value,
                        options(nomem, nostack, preserves_flags)
                    )
                };
                value
            };
        })
    }

    /// The same, of the launch.
    fn on_cpu(&self) -> Option<TokenStream> {
        let (name, Values::Numbers(_)) = (&self.name, &self.values) else { return None };
        let text = name.to_string();
        Some(quote! {
            #[allow(unused_variables, reason = "instructions may be told by it alone")]
            let #name: u32 = ::simt::device::__private::constant(#text);
        })
    }
}

/// The constants, for a `Declaration`.
fn declared_constants(constants: &[Constant]) -> TokenStream {
    let constants = constants.iter().map(|Constant { name, values }| {
        let name = name.to_string();
        let values = match values {
            Values::Numbers(numbers) => quote!(#(::simt::Value::Number(#numbers)),*),
            Values::Words(words) => quote!(#(::simt::Value::Word(#words)),*),
        };
        quote!(::simt::ConstantDeclaration { name: #name, values: &[#values] })
    });
    quote!(&[#(#constants),*])
}

/// Assignments to the fields of a `Declaration`.
fn declared_fields(attribute: &Attribute, barriers: &TokenStream) -> TokenStream {
    let some = |value: TokenStream| quote!(::core::option::Option::Some(#value));
    let triple = |Triple([x, y, z]): &Triple| some(quote!([(#x) as u32, (#y) as u32, (#z) as u32]));
    let fields = [
        ("block", attribute.block.as_ref().map(triple)),
        ("shared", attribute.shared.as_ref().map(|n| some(quote!((#n) as usize)))),
        ("barriers", Some(some(quote!((#barriers) as u32)))),
        ("min_blocks", attribute.min_blocks.as_ref().map(|n| some(quote!((#n) as u32)))),
        ("cluster", attribute.cluster.as_ref().map(triple)),
        ("dynamic_shared", attribute.dynamic_shared.as_ref().map(|n| some(quote!((#n) as u32)))),
        ("arch", attribute.arch.as_ref().map(|n| some(quote!((#n) as u32)))),
        ("opt_level", attribute.opt_level.as_ref().map(|n| some(quote!((#n) as u32)))),
        ("stack", attribute.stack.as_ref().map(|n| some(quote!((#n) as usize)))),
        ("dependent", attribute.dependent.then(|| quote!(true))),
        ("constants", Some(declared_constants(&attribute.constants))),
    ];
    let assignments = fields.into_iter().filter_map(|(name, value)| {
        let name = format_ident!("{name}");
        value.map(|value| quote!(__declaration.#name = #value;))
    });
    quote!(#(#assignments)*)
}

/// Statements that compare each buffer with its rule, in saturating arithmetic: no sizes overflow
/// it, and `(m - 1) * lda + k` of an empty matrix is no panic.
fn length_checks(attribute: &Attribute, params: &[Param]) -> Result<TokenStream> {
    let sizes = params
        .iter()
        .filter(|param| ["u32", "u64", "i32", "i64"].contains(&param.kind.as_str()))
        .map(|param| &param.name)
        .collect::<Vec<_>>();
    let checks = attribute.len.iter().map(|length| {
        let (param, rule) = (&length.param, &length.rule);
        match params.iter().find(|other| other.name == *param) {
            None => {
                let message = format!("the kernel has no parameter `{param}`");
                return Err(Error::new_spanned(param, message));
            }
            Some(found) if !found.is_view() => {
                let message = format!("`{param}` has no length: only `In` and `Out` have");
                return Err(Error::new_spanned(param, message));
            }
            Some(_) => {}
        }
        let (name, text) = (param.to_string(), rule.to_token_stream().to_string());
        Ok(quote! {
            {
                let __elements = ::simt::Param::elements(&#param);
                #(let #sizes = ::simt::Size::from(#sizes);)*
                ::simt::Shortfall::check(#name, __elements, #text, #rule)?;
            }
        })
    });
    checks.collect()
}
