//! Statements and labels of a body.

use std::ops::Range;

use super::declared::{Array, array};

/// An instruction or a declaration in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its line in the file, from 1.
    pub line: usize,
    /// Its text without labels, predicate, comments and `;`, with single spaces.
    pub text: String,
    /// Its predicate: `@%p1`, `@!%p1`, or empty.
    pub predicate: String,
}

/// A label in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// The statement after it, as an index into the body. The body's length for a label at the end.
    pub statement: usize,
    /// The statements that can use it: those between its braces.
    pub scope: Range<usize>,
}

impl Statement {
    /// Whether it is an instruction. Otherwise it is a declaration.
    pub fn is_instruction(&self) -> bool {
        !self.text.starts_with('.')
    }

    /// The instruction's name split at its dots: `ld`, `global`, `b32`.
    pub fn opcode(&self) -> impl Iterator<Item = &str> {
        self.text.split(' ').next().unwrap_or_default().split('.')
    }

    /// The words of the statement that may be names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$')))
    }

    /// The shared array that it declares, if any.
    pub fn shared_array(&self) -> Option<Array> {
        array(&self.text, ".shared")
    }

    /// The function that it calls. `Some("")` for a call through a pointer, `None` for no call.
    pub fn callee(&self) -> Option<&str> {
        let (opcode, operands) = self.text.split_once(' ')?;
        if opcode.split('.').next() != Some("call") {
            return None;
        }
        // `call.uni (result), name, (arguments)`: both lists are optional.
        let operands = match operands.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1.trim_start_matches([',', ' ']),
            None => operands,
        };
        let name = operands.split(',').next().unwrap_or_default().trim();
        Some(if name.starts_with('%') { "" } else { name })
    }
}

/// The line number of a byte offset, from 1.
pub(super) fn line_at(code: &str, offset: usize) -> usize {
    1 + code[..offset].matches('\n').count()
}
