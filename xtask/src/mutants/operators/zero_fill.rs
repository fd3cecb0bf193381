//! Nothing where a zero should be stored.

use syn::{Expr, ExprIf, Stmt};

use super::{Places, is_zero};
use crate::mutants::{
    mutant::{Edit, Operator},
    source::range,
};

impl Places<'_, '_> {
    /// `to = if inside { load } else { 0.0 }` becomes `if inside { to = load }`: whatever was there stays.
    pub(super) fn zero_fill(&mut self, statement: &Stmt) {
        let Stmt::Expr(store, _) = statement else { return };
        let value = match store {
            Expr::Assign(assignment) => Some(&*assignment.right),
            Expr::MethodCall(call) => call.args.last(),
            _ => None,
        };
        let Some((fill, load)) = value.and_then(loaded) else { return };
        let file = self.mutants.file;
        let (store_at, fill_at) = (range(store), range(fill));
        let text = format!(
            "if {} {{ {}{}{} }}",
            file.text_of(&fill.cond),
            &file.text[store_at.start..fill_at.start],
            file.text_of(load),
            &file.text[fill_at.end..store_at.end],
        );
        let edits = vec![Edit::new(store_at, text)];
        self.mutants.add(Operator::DropZeroFill, self.number, "", edits);
    }
}

/// The `load` of `if inside { load } else { 0.0 }`.
fn loaded(value: &Expr) -> Option<(&ExprIf, &Expr)> {
    let Expr::If(fill) = value else { return None };
    let (_, otherwise) = fill.else_branch.as_ref()?;
    match &*fill.then_branch.stmts {
        // A sum is an index that starts again, and no load.
        [Stmt::Expr(Expr::Binary(_), None)] => None,
        [Stmt::Expr(load, None)] if is_zero(otherwise) => Some((fill, load)),
        _ => None,
    }
}
