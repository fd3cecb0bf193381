//! Questions of the operators about a piece of syntax.

use syn::{
    BinOp, Expr, ExprBinary, ExprIf, Lit, Pat, Stmt,
    visit::{self, Visit},
};

use crate::source::{SourceFile, last_segment};

/// Collects the comparisons of a function, each once.
pub(super) struct Comparisons<'a>(pub &'a SourceFile, pub &'a mut Vec<String>);

impl<'ast> Visit<'ast> for Comparisons<'_> {
    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        use BinOp::{Eq, Ge, Gt, Le, Lt, Ne};
        let text = self.0.text_of(binary);
        if matches!(binary.op, Lt(_) | Le(_) | Gt(_) | Ge(_) | Eq(_) | Ne(_))
            && !self.1.iter().any(|known| known == text)
        {
            self.1.push(text.into());
        }
        visit::visit_expr_binary(self, binary);
    }
}

/// Each name that a `let` binds, and its value. A tuple that is bound to a tuple is split.
pub(super) fn bindings<'a>(pattern: &'a Pat, value: &'a Expr) -> Vec<(&'a Pat, &'a Expr)> {
    match (pattern, value) {
        (Pat::Tuple(pattern), Expr::Tuple(value)) => {
            pattern.elems.iter().zip(&value.elems).collect()
        }
        _ => vec![(pattern, value)],
    }
}

/// Whether it is the name of a place in a matrix or in a tile.
pub(super) fn is_position(name: &str) -> bool {
    ["at", "from", "to"].contains(&name) || name.starts_with("from_") || name.starts_with("to_")
}

/// The variable at the start of an expression: `acc` of `acc[i][j]`.
pub(super) fn root(expr: &Expr) -> String {
    match expr {
        Expr::Path(path) => last_segment(&path.path),
        Expr::Index(index) => root(&index.expr),
        Expr::Paren(paren) => root(&paren.expr),
        _ => String::new(),
    }
}

/// Whether it is fixed at compile time: made of literals, `CONSTANTS`, const parameters and sizes
/// of types.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Path(path) => {
            let name = last_segment(&path.path);
            !name.is_empty() && !name.contains(|c: char| c.is_lowercase())
        }
        Expr::Call(call) => {
            matches!(&*call.func, Expr::Path(path) if last_segment(&path.path) == "size_of")
        }
        Expr::Binary(binary) => is_constant(&binary.left) && is_constant(&binary.right),
        Expr::Unary(unary) => is_constant(&unary.expr),
        Expr::Paren(paren) => is_constant(&paren.expr),
        Expr::Cast(cast) => is_constant(&cast.expr),
        _ => false,
    }
}

/// `0`, `0.0f32`, `[0.0; 4]`, `f32::ZERO`.
pub(super) fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Float(float) => float.base10_parse::<f64>().is_ok_and(|x| x == 0.0),
            Lit::Int(int) => int.base10_digits() == "0",
            _ => false,
        },
        Expr::Path(path) => last_segment(&path.path) == "ZERO",
        Expr::Repeat(repeat) => is_zero(&repeat.expr),
        Expr::Paren(paren) => is_zero(&paren.expr),
        Expr::Block(block) => {
            matches!(&*block.block.stmts, [Stmt::Expr(only, None)] if is_zero(only))
        }
        _ => false,
    }
}

/// The `load` of `if inside { load } else { 0.0 }`.
pub(super) fn loaded(value: &Expr) -> Option<(&ExprIf, &Expr)> {
    let Expr::If(fill) = value else { return None };
    let (_, otherwise) = fill.else_branch.as_ref()?;
    match &*fill.then_branch.stmts {
        // A sum is an index that wraps, and no load.
        [Stmt::Expr(Expr::Binary(_), None)] => None,
        [Stmt::Expr(load, None)] if is_zero(otherwise) => Some((fill, load)),
        _ => None,
    }
}
