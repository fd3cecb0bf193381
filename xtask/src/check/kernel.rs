//! A kernel, as the rules need it.

use std::collections::HashSet;

use crate::ptx::{Array, Function, Module, Statement};

/// A kernel with all functions that it calls.
pub(super) struct Kernel<'m> {
    pub(super) module: &'m Module,
    pub(super) entry: &'m Function,
    pub(super) reached: Vec<&'m Function>,
    pub(super) unknown_callees: Vec<String>,
    pub(super) shared: Vec<Array>,
    pub(super) barriers: usize,
}

impl<'m> Kernel<'m> {
    pub(super) fn new(module: &'m Module, entry: &'m Function) -> Self {
        let mut reached = vec![entry];
        let mut unknown_callees = Vec::new();
        let mut next = 0;
        while let Some(function) = reached.get(next).copied() {
            next += 1;
            for callee in function.instructions().filter_map(Statement::callee) {
                match module.function(callee) {
                    Some(known) if reached.iter().any(|f| f.name == known.name) => {}
                    Some(known) => reached.push(known),
                    None => unknown_callees.push(callee.to_string()),
                }
            }
        }
        let bodies = || reached.iter().flat_map(|function| &function.body);
        let named: HashSet<&str> = bodies().flat_map(Statement::names).collect();
        let outside = module.shared.iter().filter(|array| named.contains(array.name.as_str()));
        let shared = bodies().filter_map(Statement::shared_array).chain(outside.cloned()).collect();
        let barriers = bodies().filter(|statement| is_barrier(statement)).count();
        Kernel { module, entry, reached, unknown_callees, shared, barriers }
    }
}

/// Whether an instruction is a block barrier, in any of PTX's spellings: `bar.sync`, `bar.red`,
/// `bar.arrive`, `barrier.sync`, `barrier.cta.sync.aligned`. Barriers of a warp or a cluster are
/// not, nor are named barriers with a number of threads: these are for some of the block's warps.
pub(super) fn is_barrier(statement: &Statement) -> bool {
    let parts: Vec<&str> = statement.opcode().collect();
    matches!(parts[0], "bar" | "barrier")
        && !parts.iter().any(|part| matches!(*part, "warp" | "cluster"))
        && match () {
            () if parts.contains(&"red") => true,
            () if parts.contains(&"sync") || parts.contains(&"arrive") => {
                !statement.text.contains(',')
            }
            () => false,
        }
}

/// The place of a statement, for a message.
pub(super) fn line(function: &Function, statement: &Statement) -> String {
    match function.is_kernel {
        true => format!("line {}", statement.line),
        false => format!("line {}, in `{}`", statement.line, function.name),
    }
}
