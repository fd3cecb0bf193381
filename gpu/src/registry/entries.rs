//! Rows of the registry: what designs of a kind have in common.

/// How fast a kernel was measured to be: 10^9 FLOP a second of a multiprocessor or of a core, the share of that which one block alone
/// comes to, microseconds before the first and after the last operation; and of which products, where not of all.
macro_rules! speed {
    ($gflops:expr, $alone:expr, $fixed_us:expr) => {
        speed!($gflops, $alone, $fixed_us, All)
    };
    ($gflops:expr, $alone:expr, $fixed_us:expr, $of:ident $(($of_number:expr))?) => {
        Some(Speed { gflops: $gflops, alone: $alone, fixed_us: $fixed_us, of: Products::$of $(($of_number))? })
    };
}

/// A lesson's kernel, from the module tree and from the same files below `checked`, with its tile, and what sets it apart.
macro_rules! lesson {
    ($module:ident::$name:ident, $rows:literal x $cols:literal, $summary:literal) => {
        Design {
            kernel: &crate::kernels::$module::$name,
            checked: Some(&crate::checked::kernels::$module::$name),
            of: Of::Lesson([$rows, $cols], $summary),
            rung: None,
            on_gpu: None,
            on_cpu: None,
        }
    };
}

/// A product's kernel, whose name says what it is; its speed on a GPU, and on the CPU; and in which blocks may split k, or which
/// has tiles of a second width.
macro_rules! product {
    ($module:ident::$name:ident; $($speed:expr),+ $(; of $of:ident $(($number:expr))?)? $(; cpu $($on_cpu:expr),+)? $(; split_k $splits:literal)? $(; or $narrow:literal)?) => {
        Design {
            kernel: &crate::kernels::$module::$name,
            checked: Some(&crate::checked::kernels::$module::$name),
            of: Of::Product { most_splits: product!(@or 1 $($splits)?), narrow: product!(@some $($narrow)?) },
            rung: None,
            on_gpu: speed!($($speed),+ $(, $of $(($number))?)?),
            on_cpu: product!(@speed $($($on_cpu),+)?),
        }
    };
    (@or $else:literal) => { $else };
    (@or $else:literal $value:literal) => { $value };
    (@some) => { None };
    (@some $value:literal) => { Some($value) };
    (@speed) => { None };
    (@speed $($speed:expr),+) => { speed!($($speed),+) };
}

/// A kernel with parameters of its own, what runs it, and what it is.
macro_rules! program {
    ($($path:ident)::+, $program:ident $(($of:literal))?, $summary:literal) => {
        Design {
            kernel: &crate::kernels::$($path)::+,
            checked: None,
            of: Of::Program(Program::$program $(($of))?, $summary),
            rung: None,
            on_gpu: None,
            on_cpu: None,
        }
    };
}

/// FLOP for each byte that a block reads, when a `rows x cols` tile of C takes `rows` elements of A and `cols`
/// of B for each step of k: `2 rows cols / 4 (rows + cols)`.
pub(super) const fn tile_ratio(rows: u32, cols: u32) -> f64 {
    (rows * cols) as f64 / (2 * (rows + cols)) as f64
}
