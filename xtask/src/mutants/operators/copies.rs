//! Mistakes with asynchronous copies, and with products of tensor cores: with their groups, and with the stages that they go to.

use syn::{Expr, ExprCall, ExprPath, GenericArgument, Pat, PathArguments};

use super::Places;
use crate::mutants::{
    mutant::{Edit, Operator},
    source::range,
};

impl Places<'_, '_> {
    /// `wait_group::<N>()` (or `wait_group_read`, or `wait` of products) left out, or with one more group that may be on its
    /// way; `commit_group()` (or `commit`) left out.
    pub(super) fn group(&mut self, call: &ExprCall) {
        let Expr::Path(function) = &*call.func else { return };
        let Some(segment) = function.path.segments.last() else { return };
        let removed = match &*segment.ident.to_string() {
            "wait_group" | "wait_group_read" | "wait" => Operator::RemoveWait,
            "commit_group" | "commit" => Operator::RemoveCommit,
            _ => return,
        };
        self.mutants.add(removed, self.number, "", vec![Edit::new(range(call), "()")]);
        if let PathArguments::AngleBracketed(list) = &segment.arguments
            && let Some(GenericArgument::Const(pending)) = list.args.first()
        {
            let more = format!("{{ 1 + {} }}", self.mutants.file.text_of(pending));
            let edits = vec![Edit::new(range(pending), more)];
            self.mutants.add(Operator::WaitForLess, self.number, "", edits);
        }
    }

    /// Notes two variables that take turns: `let (mut now, mut free) = ..`. A thread's own arrays do not.
    pub(super) fn stages(&mut self, pattern: &Pat, value: &Expr) {
        let (Pat::Tuple(pattern), Expr::Tuple(value)) = (pattern, value) else { return };
        let name = |pattern: &Pat| match pattern {
            Pat::Ident(name) if name.mutability.is_some() => Some(name.ident.to_string()),
            _ => None,
        };
        let names = pattern.elems.iter().filter_map(name).collect::<Vec<_>>();
        let is_array = |value: &Expr| matches!(value, Expr::Array(_) | Expr::Repeat(_));
        if let Ok(pair) = <[String; 2]>::try_from(names)
            && !value.elems.iter().any(is_array)
        {
            self.stages.push(pair);
        }
    }

    /// Is it one of two that take turns?
    pub(super) fn is_stage(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Path(path) if self.other_stage(path).is_some())
    }

    fn other_stage(&self, path: &ExprPath) -> Option<&str> {
        self.stages.iter().find_map(|[one, other]| match () {
            () if path.path.is_ident(one) => Some(&**other),
            () if path.path.is_ident(other) => Some(one),
            () => None,
        })
    }

    /// The one in place of the other, but where they take their turns: there they may be equal.
    pub(super) fn wrong_stage(&mut self, path: &ExprPath) {
        if let Some(other) = self.other_stage(path).filter(|_| !self.turning) {
            let edits = vec![Edit::new(range(path), other)];
            self.mutants.add(Operator::WrongStage, self.number, "", edits);
        }
    }
}
