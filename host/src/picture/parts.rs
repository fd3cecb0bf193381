//! What requests refer to: memories, lines of the source; and the kernel's place in its ladder.

use serde::Serialize;

/// A rung's place in its ladder.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// Its number, from 1.
    pub number: usize,
    /// The number of rungs.
    pub of: usize,
    /// Its idea.
    pub idea: &'static str,
    /// The name and the source file of the rung before.
    pub before: Option<[&'static str; 2]>,
}

/// A buffer or a shared array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Memory {
    /// `A`, `B`, `C`, or the array's name.
    pub name: String,
    /// `global` or `shared`.
    pub space: &'static str,
    /// Bytes of an element.
    pub element: usize,
    /// Elements of a row, if it has rows.
    pub columns: Option<usize>,
    /// Bytes before it in the block's shared memory.
    pub offset: usize,
    /// Its bytes.
    pub bytes: usize,
}

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// The file.
    pub file: String,
    /// The number of the line, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
}
