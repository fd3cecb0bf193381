//! What stands in the parentheses of `#[kernel(..)]`.

use syn::{
    Expr, Ident, Result, Token, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// The declarations of a kernel, as written.
#[derive(Default)]
pub(crate) struct Attribute {
    pub(crate) block: Option<Triple>,
    pub(crate) shared: Option<Expr>,
    pub(crate) barriers: Option<Expr>,
    pub(crate) min_blocks: Option<Expr>,
    pub(crate) cluster: Option<Triple>,
    pub(crate) dynamic_shared: Option<Expr>,
    pub(crate) arch: Option<Expr>,
    pub(crate) opt_level: Option<Expr>,
    pub(crate) dependent: bool,
    pub(crate) len: Vec<Length>,
}

/// Extents along x, y and z; those left out are 1.
pub(crate) struct Triple(pub(crate) [Expr; 3]);

/// `a = m * k`: buffer `a` has at least so many elements.
pub(crate) struct Length {
    pub(crate) param: Ident,
    pub(crate) rule: Expr,
}

impl Parse for Attribute {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attribute = Attribute::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let once = |taken: bool| match taken {
                true => Err(syn::Error::new(key.span(), format!("`{key}` is given twice"))),
                false => Ok(()),
            };
            if key == "len" {
                once(!attribute.len.is_empty())?;
                let list;
                parenthesized!(list in input);
                let lengths = Punctuated::<Length, Token![,]>::parse_terminated(&list)?;
                attribute.len = lengths.into_iter().collect();
            } else if key == "dependent" {
                once(std::mem::replace(&mut attribute.dependent, true))?;
            } else {
                input.parse::<Token![=]>()?;
                match key.to_string().as_str() {
                    "block" => once(attribute.block.replace(input.parse()?).is_some())?,
                    "cluster" => once(attribute.cluster.replace(input.parse()?).is_some())?,
                    "shared" => once(attribute.shared.replace(input.parse()?).is_some())?,
                    "barriers" => once(attribute.barriers.replace(input.parse()?).is_some())?,
                    "min_blocks" => once(attribute.min_blocks.replace(input.parse()?).is_some())?,
                    "dynamic_shared" => {
                        once(attribute.dynamic_shared.replace(input.parse()?).is_some())?;
                    }
                    "arch" => once(attribute.arch.replace(input.parse()?).is_some())?,
                    "opt_level" => once(attribute.opt_level.replace(input.parse()?).is_some())?,
                    _ => {
                        let known = "block, shared, dynamic_shared, barriers, len, min_blocks, cluster, \
                                     arch, opt_level and dependent";
                        let message = format!("a kernel declares {known}, not `{key}`");
                        return Err(syn::Error::new(key.span(), message));
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attribute)
    }
}

impl Parse for Triple {
    fn parse(input: ParseStream) -> Result<Self> {
        if !input.peek(syn::token::Paren) {
            return Err(input.error("extents stand in parentheses: (256) or (16, 16)"));
        }
        let list;
        parenthesized!(list in input);
        let span = list.span();
        let mut extents = Punctuated::<Expr, Token![,]>::parse_terminated(&list)?.into_iter();
        let one = || syn::parse_quote!(1);
        let triple = [
            extents
                .next()
                .ok_or_else(|| syn::Error::new(span, "one to three extents: (x, y, z)"))?,
            extents.next().unwrap_or_else(one),
            extents.next().unwrap_or_else(one),
        ];
        match extents.next() {
            Some(_) => Err(syn::Error::new(span, "at most three extents: (x, y, z)")),
            None => Ok(Triple(triple)),
        }
    }
}

impl Parse for Length {
    fn parse(input: ParseStream) -> Result<Self> {
        let param = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Length { param, rule: input.parse()? })
    }
}
