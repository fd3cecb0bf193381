//! The body of a kernel that takes raw pointers, with each `*pointer` reported to a checked launch.

use syn::{
    BinOp, Block, Expr, ExprUnary, UnOp, parse_quote_spanned,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};

/// `*p` becomes `*Place::read(p)`, and on the left of an assignment `*Place::write(p)`. (`Place` is also
/// there for references, which report nothing.)
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
                self.visit_expr_mut(&mut assign.right);
                self.written(&mut assign.left, false);
            }
            Expr::Binary(binary) if is_assignment(&binary.op) => {
                self.visit_expr_mut(&mut binary.right);
                self.written(&mut binary.left, true);
            }
            // An address is taken, nothing is accessed.
            Expr::Reference(reference) if is_dereference(&reference.expr) => {
                if let Expr::Unary(unary) = &mut *reference.expr {
                    self.visit_expr_mut(&mut unary.expr);
                }
            }
            Expr::RawAddr(address) if is_dereference(&address.expr) => {
                if let Expr::Unary(unary) = &mut *address.expr {
                    self.visit_expr_mut(&mut unary.expr);
                }
            }
            Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr: pointer, .. }) => {
                self.visit_expr_mut(pointer);
                *expr = parse_quote_spanned!(pointer.span()=> *::simt::check::raw::Place::read(#pointer));
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}

impl Reported {
    /// The left side of an assignment.
    fn written(&mut self, left: &mut Expr, read_too: bool) {
        match left {
            Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr: pointer, .. }) => {
                self.visit_expr_mut(pointer);
                let span = pointer.span();
                *left = match read_too {
                    true => parse_quote_spanned! {span=>
                        *::simt::check::raw::Place::write(::simt::check::raw::Place::read_first(#pointer))
                    },
                    false => {
                        parse_quote_spanned!(span=> *::simt::check::raw::Place::write(#pointer))
                    }
                };
            }
            _ => self.visit_expr_mut(left),
        }
    }
}

fn is_dereference(expr: &Expr) -> bool {
    matches!(expr, Expr::Unary(ExprUnary { op: UnOp::Deref(_), .. }))
}

fn is_assignment(op: &BinOp) -> bool {
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
