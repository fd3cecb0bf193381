//! Items without what a thread executes: what `gpu-simt` consists of without the CPU device.

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::{
    Block, Error, Field, Fields, ImplItem, Item, Result, Token, TraitItem, Visibility, parse_quote,
    punctuated::Punctuated,
};

/// The signatures of a function or of an `impl`, and a struct without its private fields. Of a
/// trait, and of its `impl` if `is_of_types`, the types and constants.
///
/// Other crates name what is `pub`, and traits name all that they have. What else an `impl` has is
/// called by bodies only, and goes with them. A `const fn` is no instruction of a thread, and
/// stays.
pub(crate) fn of(item: Item, is_of_types: bool) -> Result<TokenStream> {
    match item {
        Item::Fn(mut function) => {
            *function.block = absent();
            Ok(function.into_token_stream())
        }
        Item::Impl(mut block) => {
            let is_of_trait = block.trait_.is_some();
            block.items.retain_mut(|item| {
                let ImplItem::Fn(function) = item else { return true };
                if function.sig.constness.is_none() {
                    function.block = absent();
                }
                match is_of_trait {
                    true => !is_of_types,
                    false => matches!(function.vis, Visibility::Public(_)),
                }
            });
            Ok(block.into_token_stream())
        }
        Item::Struct(mut item) => {
            if let Fields::Named(of) = &mut item.fields {
                of.named = public(&of.named);
            } else if let Fields::Unnamed(of) = &mut item.fields {
                of.unnamed = public(&of.unnamed);
            }
            Ok(item.into_token_stream())
        }
        Item::Trait(mut item) => {
            item.items.retain(|item| !matches!(item, TraitItem::Fn(_)));
            Ok(item.into_token_stream())
        }
        other => Err(Error::new_spanned(other, "a function, an `impl`, a struct or a trait")),
    }
}

fn absent() -> Block {
    // Of the package where the attribute stands.
    let package = Ident::new("crate", Span::call_site());
    parse_quote!({ #package::cpu::absent() })
}

fn public(fields: &Punctuated<Field, Token![,]>) -> Punctuated<Field, Token![,]> {
    fields.iter().filter(|field| matches!(field.vis, Visibility::Public(_))).cloned().collect()
}
