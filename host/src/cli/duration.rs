//! Times printed for people.

/// A time for people.
pub(super) fn duration(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.2} us"),
        us if us < 1e6 => format!("{:.3} ms", us * 1e-3),
        us => format!("{:.3} s", us * 1e-6),
    }
}
