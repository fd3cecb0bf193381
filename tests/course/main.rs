//! `docs/course`: its claims are compared with what is counted; and the text itself.

mod example_3x3;
mod text;
mod theory;
