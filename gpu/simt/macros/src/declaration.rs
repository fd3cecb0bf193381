//! The declarations in the parentheses of `#[kernel(..)]`.

use std::collections::HashSet;

use proc_macro2::Span;
use syn::{
    Expr, Ident, LitInt, Result, Token, parenthesized,
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
    pub(crate) stack: Option<Expr>,
    pub(crate) dependent: bool,
    pub(crate) len: Vec<Length>,
    pub(crate) constants: Vec<Constant>,
}

/// `a_mn_major = 0 | 1` or `half = bf16 | f16`: the values that a launch may set. The first is the
/// default.
pub(crate) struct Constant {
    pub(crate) name: Ident,
    pub(crate) values: Values,
}

/// The value of a constant.
pub(crate) enum Values {
    Numbers(Vec<u32>),
    Words(Vec<String>),
}

/// The most constants of a kernel, and the most combinations of their values, as in `simt`.
const MOST_CONSTANTS: usize = 4;
const MOST_SPECIALISATIONS: usize = 32;

/// Extents along x, y and z; those left out are 1.
pub(crate) struct Triple(pub(crate) [Expr; 3]);

/// `a = m * k`: buffer `a` has at least that number of elements.
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
            } else if key == "constants" {
                once(!attribute.constants.is_empty())?;
                let list;
                parenthesized!(list in input);
                let constants = Punctuated::<Constant, Token![,]>::parse_terminated(&list)?;
                attribute.constants = constants.into_iter().collect();
                check_constants(&attribute.constants, key.span())?;
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
                    "stack" => once(attribute.stack.replace(input.parse()?).is_some())?,
                    _ => {
                        let known = "block, shared, dynamic_shared, barriers, len, min_blocks, cluster, \
                                     arch, opt_level, stack, constants and dependent";
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

/// Refuses two of one name, and more than a kernel may have.
fn check_constants(constants: &[Constant], span: Span) -> Result<()> {
    let mut names = HashSet::new();
    for Constant { name, .. } in constants {
        if !names.insert(name.to_string()) {
            return Err(syn::Error::new(name.span(), format!("`{name}` is declared twice")));
        }
    }
    if constants.len() > MOST_CONSTANTS {
        let message = format!("a kernel has at most {MOST_CONSTANTS} constants");
        return Err(syn::Error::new(span, message));
    }
    let specialisations: usize = constants.iter().map(|constant| constant.values.len()).product();
    if specialisations > MOST_SPECIALISATIONS {
        let message = format!(
            "{specialisations} combinations of constants: at most {MOST_SPECIALISATIONS}, each of which is compiled by itself"
        );
        return Err(syn::Error::new(span, message));
    }
    Ok(())
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Numbers(numbers) => numbers.len(),
            Values::Words(words) => words.len(),
        }
    }
}

impl Parse for Constant {
    fn parse(input: ParseStream) -> Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let values = if input.peek(LitInt) {
            let list = Punctuated::<LitInt, Token![|]>::parse_separated_nonempty(input)?;
            let numbers = list.iter().map(LitInt::base10_parse).collect::<Result<Vec<u32>>>()?;
            Values::Numbers(numbers)
        } else {
            let list = Punctuated::<Ident, Token![|]>::parse_separated_nonempty(input)?;
            Values::Words(list.iter().map(ToString::to_string).collect())
        };
        let is_known_twice = match &values {
            Values::Numbers(numbers) => {
                (1..numbers.len()).any(|i| numbers[..i].contains(&numbers[i]))
            }
            Values::Words(words) => (1..words.len()).any(|i| words[..i].contains(&words[i])),
        };
        match is_known_twice {
            true => Err(input.error(format!("a value of `{name}` is given twice"))),
            false => Ok(Constant { name, values }),
        }
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
