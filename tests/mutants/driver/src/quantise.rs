//! The kernels that round matrices to 8 bits.

use gpu::{kernels::quantise::THREADS, params::QuantiseParams};
use simt::{AnyCheckedKernel, Bound, Constants, LaunchConfig};

use crate::{
    memory::{Matrix, Number, Place},
    product::{Trial, launch, trials},
};

/// Rows, columns, and what is between rows; rows and columns of a group, and its threads; the
/// constant `fraction`. The first two cases are run in every order.
pub fn rounds<T: Number>(
    kernel: &'static dyn AnyCheckedKernel,
    constants: Constants,
) -> Vec<Trial> {
    let cases = vec![
        ([3, 272], 0, [1, 128], 8, 3),
        ([2, 1100], 4, [1, 1100], 128, 0),
        ([130, 144], 0, [128, 128], 512, 2),
        ([131, 130], 3, [128, 128], 512, 3),
        ([3, 131], 1, [1, 128], 8, 0),
        ([2, 8208], 16, [1, 8208], 512, 3),
        ([3, 500], 0, [1, 500], 32, 2),
    ];
    trials(cases, 2, move |&([rows, cols], gap, [down, width], threads, fraction), options| {
        // Of all sizes, and some that are not finite; a row of zeros; a row of tiny numbers.
        let number = |[_, row, col]: [usize; 3]| match (row, (row * 7 + col * 5) % 97) {
            (1, _) if rows > 2 => 0.0,
            (_, 0) => f64::NAN,
            (_, 1) => f64::INFINITY,
            (2, n) => (n as f64 - 48.0) * 1e-24,
            (_, n) => (n as f64 - 48.0) * 0.5f64.powi((col % 11) as i32),
        };
        let place = Place::strided([cols + gap, 1]);
        let (size, across) = ([1, rows, cols], cols.div_ceil(width));
        let groups = rows.div_ceil(down) * across;
        let mut from = Matrix::<T>::new(size, place).filled(number);
        let mut to = Matrix::<u8>::new(size, place);
        let mut scales = Matrix::<f32>::vector(groups);
        let [rows, cols, down, width, across, of_group] =
            [rows, cols, down, width, across, threads].map(|number| number as u32);
        let pitch = u64::from(cols) + gap as u64;
        let params = QuantiseParams {
            rows,
            cols,
            down,
            width,
            across,
            threads: of_group,
            from_pitch: pitch,
            to_pitch: pitch,
            scales: [across.into(), 1],
        };
        let blocks = groups.div_ceil(THREADS / threads) as u32;
        let config = LaunchConfig::new([blocks, 1, 1], [THREADS as u32, 1, 1]);
        let arguments = [
            ("shape", Bound::Value(&params)),
            ("from", from.view()),
            ("to", to.out(0, false)),
            ("scales", scales.out(0, false)),
        ];
        let constants = constants.with("fraction", fraction);
        let config = LaunchConfig { constants, ..config };
        // SAFETY: the matrices outlive the launch, and nobody else uses them.
        unsafe { launch(kernel, &config, arguments, &options) }.and(&to).and(&scales)
    })
}
