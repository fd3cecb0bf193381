//! Macros for the rows of the registry.

/// A measured speed: GFLOP/s of an SM or a core, the fraction that a single block reaches, the
/// fixed time, the times of a further full and partial tile in microseconds (0 on the CPU), and the
/// products that it holds for, if not all.
macro_rules! speed {
    ($gflops:expr, $alone:expr, $fixed_us:expr $(, $full_us:expr, $partial_us:expr)?) => {
        speed!($gflops, $alone, $fixed_us $(, $full_us, $partial_us)?, All)
    };
    ($gflops:expr, $alone:expr, $fixed_us:expr, All) => {
        speed!($gflops, $alone, $fixed_us, 0.0, 0.0, All)
    };
    ($gflops:expr, $alone:expr, $fixed_us:expr, $full_us:expr, $partial_us:expr, $of:ident $(($of_number:expr))?) => {
        Some(Speed {
            gflops: $gflops,
            alone: $alone,
            fixed_us: $fixed_us,
            tile_us: [$full_us, $partial_us],
            of: Products::$of $(($of_number))?,
        })
    };
}

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

/// A product's kernel: its name, its speed on a GPU, unless another kernel is always faster, its
/// speed on the CPU, the largest number of CTAs that split k, and the width of narrow tiles.
macro_rules! product {
    ($module:ident::$name:ident; cpu $($on_cpu:expr),+) => {
        product!(@design $module::$name, None, product!(@speed $($on_cpu),+), 1, None)
    };
    ($module:ident::$name:ident; $($speed:expr),+ $(; of $of:ident $(($number:expr))?)? $(; cpu $($on_cpu:expr),+)? $(; split_k $splits:literal)? $(; or $narrow:literal)?) => {
        product!(
            @design $module::$name,
            speed!($($speed),+ $(, $of $(($number))?)?),
            product!(@speed $($($on_cpu),+)?),
            product!(@or 1 $($splits)?),
            product!(@some $($narrow)?)
        )
    };
    (@design $module:ident::$name:ident, $on_gpu:expr, $on_cpu:expr, $most_splits:expr, $narrow:expr) => {
        Design {
            kernel: &crate::kernels::$module::$name,
            #[cfg(feature = "cpu")]
            checked: Some(&crate::checked::kernels::$module::$name),
            of: Of::Product { most_splits: $most_splits, narrow: $narrow },
            rung: None,
            on_gpu: $on_gpu,
            on_cpu: $on_cpu,
        }
    };
    (@or $else:literal) => { $else };
    (@or $else:literal $value:literal) => { $value };
    (@some) => { None };
    (@some $value:literal) => { Some($value) };
    (@speed) => { None };
    (@speed $($speed:expr),+) => { speed!($($speed),+) };
}

/// A kernel with parameters of its own: its path, what runs it, and what it does.
macro_rules! program {
    ($($path:ident)::+, $program:ident $(($of:literal))?, $summary:literal) => {
        Design {
            kernel: &crate::$($path)::+,
            #[cfg(feature = "cpu")]
            checked: Some(&crate::checked::$($path)::+),
            of: Of::Program(Program::$program $(($of))?, $summary),
            rung: None,
            on_gpu: None,
            on_cpu: None,
        }
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
