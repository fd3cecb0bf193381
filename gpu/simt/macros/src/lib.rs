//! `#[kernel]`: one function, made into a PTX entry point or into a kernel for the host.
//! `#[check]`: a test of it.
//!
//! They are documented at `simt::device::kernel` and `simt::check`.

mod check;
mod compound;
mod declaration;
mod dereference;
mod expand;
mod signatures;

use proc_macro::TokenStream;
use syn::{Expr, Token, punctuated::Punctuated};

/// Makes a function a kernel; see `simt::device::kernel`.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let attribute = syn::parse_macro_input!(attribute as declaration::Attribute);
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    expand::kernel(attribute, function).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function a case for the checker; see `simt::check`.
#[proc_macro_attribute]
pub fn check(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let parse = Punctuated::<Expr, Token![,]>::parse_terminated;
    let cases = syn::parse_macro_input!(attribute with parse);
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    check::case(&cases, &function).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Leaves out what a thread executes. For `gpu-simt` itself, where it is compiled without the CPU
/// device: `signatures` leaves signatures, `signatures(types)` types and constants.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn signatures(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let is_of_types = !attribute.is_empty();
    let item = syn::parse_macro_input!(item as syn::Item);
    signatures::of(item, is_of_types).unwrap_or_else(syn::Error::into_compile_error).into()
}
