//! `docs/course`: its claims are compared with counts, and its text is checked.

mod example_3x3;
mod text;
mod theory;
