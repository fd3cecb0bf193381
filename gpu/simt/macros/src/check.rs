//! What `#[check]` adds to a function: a test that runs its cases.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Error, Expr, ItemFn, Result, Token, punctuated::Punctuated};

pub(crate) fn case(cases: &Punctuated<Expr, Token![,]>, function: &ItemFn) -> Result<TokenStream> {
    let (signature, refuse) = (&function.sig, |tokens: &dyn ToTokens, why: &str| {
        Err(Error::new_spanned(tokens, format!("`#[check]`: {why}")))
    });
    if let Some(word) = &signature.asyncness {
        return refuse(word, "a case cannot be async");
    }
    if !signature.generics.params.is_empty() {
        return refuse(&signature.generics, "a case cannot be generic");
    }
    let name = &signature.ident;
    let arms = match (signature.inputs.len(), cases.is_empty()) {
        (0, _) => return refuse(name, "the last parameter is the launch's `Options`"),
        (1, false) => {
            return refuse(cases, "the function takes no values: its only parameter is `Options`");
        }
        (1, true) => vec![quote!(_ => #name(__options))],
        (_, true) => {
            return refuse(
                name,
                "values for the parameters are missing, such as `#[check(1, 33)]`",
            );
        }
        (parameters, false) => {
            let mut arms = Vec::new();
            for (number, case) in cases.iter().enumerate() {
                let values = match case {
                    _ if parameters == 2 => quote!(#case),
                    Expr::Tuple(tuple) if tuple.elems.len() == parameters - 1 => {
                        tuple.elems.to_token_stream()
                    }
                    _ => {
                        let values = parameters - 1;
                        let why = format!("a case of {values} values in parentheses is expected");
                        return refuse(case, &why);
                    }
                };
                arms.push(quote!(#number => #name(#values, __options),));
            }
            arms.push(quote!(_ => ::core::unreachable!()));
            arms
        }
    };
    let texts = match cases.is_empty() {
        true => quote!(""),
        false => {
            let cases = cases.iter();
            quote!(#(::core::stringify!(#cases)),*)
        }
    };
    let test = format_ident!("gpu_check_{name}");
    let conditions = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    Ok(quote! {
        #function
        #(#conditions)*
        #[test]
        fn #test() {
            ::simt::check::run_cases(
                ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#name)),
                &[#texts],
                |__case, __options| match __case { #(#arms)* },
            );
        }
    })
}
