//! Statements and labels of a body.

use std::ops::Range;

use super::declared::{Array, array};

/// An instruction or a declaration in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The line of the file that it begins on, from 1.
    pub line: usize,
    /// Its text without labels, predicate, comments and `;`, with single spaces.
    pub text: String,
    /// What decides whether it is executed: `@%p1`, `@!%p1`; empty where nothing does.
    pub predicate: String,
}

/// A place in a body that a branch can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// The statement after it, as an index into the body; the body's length where it is last.
    pub statement: usize,
    /// The statements that can name it: those between the braces that it stands in.
    pub scope: Range<usize>,
}

impl Statement {
    /// Whether it is an instruction: else it declares something.
    pub fn is_instruction(&self) -> bool {
        !self.text.starts_with('.')
    }

    /// The instruction's name split at its dots: `ld`, `global`, `b32`.
    pub fn opcode(&self) -> impl Iterator<Item = &str> {
        self.text.split(' ').next().unwrap_or_default().split('.')
    }

    /// The words of the statement that could be names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$')))
    }

    /// The array that it sets aside in shared memory, where it is such a declaration.
    pub fn shared_array(&self) -> Option<Array> {
        array(&self.text, ".shared")
    }

    /// The function that it calls: `Some("")` for a call through a pointer, `None` for no call.
    pub fn callee(&self) -> Option<&str> {
        let (opcode, operands) = self.text.split_once(' ')?;
        if opcode.split('.').next() != Some("call") {
            return None;
        }
        // `call.uni (result), name, (arguments)`: both lists may be missing.
        let operands = match operands.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1.trim_start_matches([',', ' ']),
            None => operands,
        };
        let name = operands.split(',').next().unwrap_or_default().trim();
        Some(if name.starts_with('%') { "" } else { name })
    }
}

/// The number of the line at a byte offset, from 1.
pub(super) fn line_at(code: &str, offset: usize) -> usize {
    1 + code[..offset].matches('\n').count()
}
