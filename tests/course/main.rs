//! What `docs/course.md` teaches, held against what is counted; and the text itself.

mod example_3x3;
mod text;
mod theory;
