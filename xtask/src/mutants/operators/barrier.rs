//! Mistakes with barriers and with the block's index.

use syn::{Expr, ExprCall};

use super::Places;
use crate::mutants::{
    mutant::{Edit, Operator},
    source::{last_segment, range},
};

impl Places<'_, '_> {
    /// `sync_threads()` left out, or reached by some threads only: by the first column of the block's, or
    /// by those for which a condition holds that the function has anyway. `sync_warp(mask)`, and `sync()` of a
    /// cluster, left out.
    pub(super) fn barrier(&mut self, call: &ExprCall) {
        let name = called(call).unwrap_or_default();
        if !["sync_threads", "sync_warp", "sync"].contains(&&*name) {
            return;
        }
        let (file, function) = (self.mutants.file, self.number);
        let (place, text) = (range(call), file.text_of(call));
        let edit = |text: &str| vec![Edit::new(place.clone(), text)];
        self.mutants.add(Operator::RemoveBarrier, function, "", edit("()"));
        if name != "sync_threads" {
            return;
        }
        let first = format!("{} == 0", text.replacen("sync_threads", "thread_idx_x", 1));
        // A condition may stand where its variables do not exist yet: then this does not compile.
        for condition in [first].iter().chain(&self.conditions) {
            let branch = format!("if {condition} {{ {text} }}");
            self.mutants.add(Operator::BranchBarrier, function, condition, edit(&branch));
        }
    }

    /// Half the block's index: two blocks compute, and write, the same.
    pub(super) fn block_index(&mut self, call: &ExprCall) {
        if called(call).is_some_and(|name| name.starts_with("block_idx_")) {
            let text = format!("({} / 2)", self.mutants.file.text_of(call));
            let edits = vec![Edit::new(range(call), text)];
            self.mutants.add(Operator::HalveBlockIndex, self.number, "", edits);
        }
    }
}

/// The name of the function that is called.
fn called(call: &ExprCall) -> Option<String> {
    match &*call.func {
        Expr::Path(path) => Some(last_segment(&path.path)),
        _ => None,
    }
}
