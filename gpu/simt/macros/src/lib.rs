//! `#[kernel]`: one function, made into a PTX entry point or into a kernel for the host.
//!
//! It is documented at `simt::device::kernel`.

mod compound;
mod declaration;
mod dereference;
mod expand;

use proc_macro::TokenStream;

/// Makes a function a kernel; see `simt::device::kernel`.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let attribute = syn::parse_macro_input!(attribute as declaration::Attribute);
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    expand::kernel(attribute, function).unwrap_or_else(syn::Error::into_compile_error).into()
}
