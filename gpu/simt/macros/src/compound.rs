//! The body of a kernel for the CPU, in which `x[i] += v` reads the element before it writes it.
//!
//! `x[i] += v` calls `IndexMut`, which gives a reference: what is done with that cannot be seen. So
//! it becomes
//!
//! ```ignore
//! match v { value => { let index = i; Place(&x).read(&index); x[index] += value } }
//! ```
//!
//! `Place::read` reads an element of memory that a checked launch watches, and does nothing for any
//! other type. The type of `x` is not known here, so `x` must be a plain name: to name it twice has
//! no effect. What functions and macros do that the body calls is not seen, nor are items and
//! constants within the body.
//!
//! `v` is evaluated before `i`, as Rust does for numbers. For a type with a `+=` of its own, such
//! as bf16, Rust evaluates `i` first. (What `v` borrows lives as long as in the original: hence
//! `match`.)

use proc_macro2::Span;
use quote::quote_spanned;
use syn::{
    Block, Expr, ExprConst, ExprRepeat, Ident, Item, TypeArray, parse_quote, parse_quote_spanned,
    visit_mut::{self, VisitMut},
};

use crate::dereference::is_assignment;

/// The same block with a read before each compound assignment to an element of a name. `params`:
/// the names of the kernel's parameters.
pub(crate) fn with_reads(block: &Block, params: Vec<String>) -> Block {
    let mut block = block.clone();
    WithReads { params }.visit_block_mut(&mut block);
    block
}

struct WithReads {
    params: Vec<String>,
}

impl VisitMut for WithReads {
    // No thread runs these, and a constant cannot call `read`.
    fn visit_item_mut(&mut self, _: &mut Item) {}
    fn visit_expr_const_mut(&mut self, _: &mut ExprConst) {}
    fn visit_type_array_mut(&mut self, _: &mut TypeArray) {}

    fn visit_expr_repeat_mut(&mut self, repeat: &mut ExprRepeat) {
        self.visit_expr_mut(&mut repeat.expr);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        let Expr::Binary(binary) = expr else { return };
        let (op, right, attrs) = (&binary.op, &binary.right, &binary.attrs);
        let Expr::Index(place) = &*binary.left else { return };
        if !is_assignment(op) || !self.is_variable(&place.expr) {
            return;
        }
        let [value, index] =
            ["__value", "__index"].map(|name| Ident::new(name, Span::mixed_site()));
        // Both accesses have the place of the brackets.
        let (memory, span) = (&place.expr, place.bracket_token.span.open());
        let read = quote_spanned!(span=> read(&#index));
        let mut element = place.clone();
        let old = std::mem::replace(&mut *element.index, parse_quote_spanned!(span=> #index));
        *expr = parse_quote! {
            #(#attrs)*
            {
                #[allow(unused_imports)]
                use ::simt::check::compound::Unwatched as _;
                match #right {
                    #value => {
                        let #index = #old;
                        ::simt::check::compound::Place(&#memory).#read;
                        #element #op #value
                    }
                }
            }
        };
    }
}

impl WithReads {
    /// Whether it is the name of a variable: a parameter's, or one with a small letter. (A static's
    /// has none, and may need `unsafe`.)
    fn is_variable(&self, expr: &Expr) -> bool {
        let Expr::Path(path) = expr else { return false };
        let name = path.path.get_ident().map(ToString::to_string);
        name.is_some_and(|name| self.params.contains(&name) || name.contains(char::is_lowercase))
    }
}
