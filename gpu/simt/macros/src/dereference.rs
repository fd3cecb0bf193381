//! The body of a kernel that takes raw pointers, with each `*pointer` reported to a checked launch.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::{
    BinOp, Block, Expr, ExprUnary, UnOp, parse_quote, parse_quote_spanned,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};

/// `*p` that is read becomes `*Probe(&p).read()`; an assignment to a place behind `*p` is made
/// `if Probe(&p).write()`. (`Probe` lets everything pass that is no raw pointer.) Where an address
/// is taken, nothing is reported.
pub(crate) fn reported(block: &Block) -> Block {
    let mut block = block.clone();
    Reported.visit_block_mut(&mut block);
    block
}

struct Reported;

impl VisitMut for Reported {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Assign(assign) => {
                let may_write = pointers_written(&assign.left, false);
                self.visit_expr_mut(&mut assign.right);
                self.visit_place(&mut assign.left);
                *expr = if_all(may_write, expr);
            }
            Expr::Binary(binary) if is_assignment(&binary.op) => {
                let may_write = pointers_written(&binary.left, true);
                self.visit_expr_mut(&mut binary.right);
                self.visit_place(&mut binary.left);
                *expr = if_all(may_write, expr);
            }
            Expr::Reference(reference) => self.visit_place(&mut reference.expr),
            Expr::RawAddr(address) => self.visit_place(&mut address.expr),
            Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr: pointer, .. }) => {
                self.visit_expr_mut(pointer);
                let span = pointer.span();
                *expr = parse_quote_spanned!(span=> *::simt::check::raw::Probe(&#pointer).read());
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}

impl Reported {
    /// A place that is not read: of `(*p.add(*i)).x[*j]` only `*i` and `*j` are.
    fn visit_place(&mut self, place: &mut Expr) {
        match place {
            Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr: pointer, .. }) => {
                self.visit_expr_mut(pointer);
            }
            Expr::Paren(paren) => self.visit_place(&mut paren.expr),
            Expr::Field(field) => self.visit_place(&mut field.base),
            Expr::Index(index) => {
                self.visit_place(&mut index.expr);
                self.visit_expr_mut(&mut index.index);
            }
            _ => self.visit_expr_mut(place),
        }
    }
}

/// For each pointer behind which an assignment writes: may it?
fn pointers_written(place: &Expr, read_too: bool) -> Vec<TokenStream> {
    match place {
        Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr: pointer, .. }) => {
            let span = pointer.span();
            let probe = quote_spanned!(span=> ::simt::check::raw::Probe(&#pointer));
            vec![match read_too {
                true => quote_spanned!(span=> { let _ = #probe.read(); #probe.write() }),
                false => quote_spanned!(span=> #probe.write()),
            }]
        }
        Expr::Paren(paren) => pointers_written(&paren.expr, read_too),
        Expr::Field(field) => pointers_written(&field.base, read_too),
        Expr::Index(index) => pointers_written(&index.expr, read_too),
        Expr::Tuple(tuple) => {
            tuple.elems.iter().flat_map(|element| pointers_written(element, read_too)).collect()
        }
        _ => Vec::new(),
    }
}

/// An assignment that is made if all may write. What it assigns may read, so that comes first.
fn if_all(may_write: Vec<TokenStream>, assignment: &Expr) -> Expr {
    match assignment {
        _ if may_write.is_empty() => assignment.clone(),
        Expr::Assign(assign) => {
            let (left, right) = (&assign.left, &assign.right);
            parse_quote!({ let __value = #right; if #(#may_write)&* { #left = __value } })
        }
        _ => parse_quote!({ if #(#may_write)&* { #assignment } }),
    }
}

pub(crate) fn is_assignment(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}
