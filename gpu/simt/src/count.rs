//! A number and what it counts, as text.

use std::fmt::Display;

/// `1 barrier`, `2 barriers`, `0.5 barriers`.
pub fn count_of(number: impl Display, thing: &str) -> String {
    let number = number.to_string();
    let s = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{s}")
}
