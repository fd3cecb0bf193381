//! Macros for lessons and programs in the registry.

/// A lesson: its kernel, the same file below `checked`, its tile, and what sets it apart. On tensor
/// cores the name of the module is that of the file in `tensor`; then come the ways in which it
/// loads, is launched, and stores.
macro_rules! lesson {
    ($module:ident::$name:ident, $rows:literal x $cols:literal, $summary:literal) => {
        lesson!(@ $module::$name, Lesson::f32($rows, $cols), $summary)
    };
    (tensor::$module:ident::$name:ident, $rows:literal x $cols:literal $(, $how:ident($($of:literal)?))*; $summary:literal) => {
        lesson!(@ tensor::$module::$name, Lesson::bf16($rows, $cols)$(.$how($($of)?))*, $summary)
    };
    (@ $($path:ident)::+, $lesson:expr, $summary:literal) => {
        Design {
            kernel: &crate::lessons::$($path)::+,
            #[cfg(feature = "cpu")]
            checked: Some(&crate::checked::lessons::$($path)::+),
            of: Of::Lesson($lesson, $summary),
            rung: None,
            on_gpu: None,
            on_cpu: None,
        }
    };
}

/// Kernels with parameters of their own: the path, what runs it, what it does, and its speed.
macro_rules! programs {
    ($($($path:ident)::+: $program:ident $(($of:literal))?, $summary:literal $(, $on_gpu:expr)?;)*) => {
        &[$(Design {
            kernel: &crate::$($path)::+,
            #[cfg(feature = "cpu")]
            checked: Some(&crate::checked::$($path)::+),
            of: Of::Program(Program::$program $(($of))?, $summary),
            rung: None,
            on_gpu: [$($on_gpu,)? None][0],
            on_cpu: None,
        }),*]
    };
}

/// FLOP for each byte that a block reads if a `rows x cols` tile of C takes `rows` elements of A
/// and `cols` of B for each k-step: `2 rows cols / 4 (rows + cols)`.
pub(super) const fn tile_ratio(rows: u32, cols: u32) -> f64 {
    (rows * cols) as f64 / (2 * (rows + cols)) as f64
}

/// The same for elements of two bytes: `2 rows cols / 2 (rows + cols)`.
pub(super) const fn bf16_ratio(rows: u32, cols: u32) -> f64 {
    2.0 * tile_ratio(rows, cols)
}
