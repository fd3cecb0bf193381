//! The kernels that add partial products.

use gpu::{
    kernels::reduce::{BLOCK, COLS},
    params::{COL_BIAS, GELU, GemmParams, IDENTITY, NO_BIAS, RELU, ROW_BIAS},
};
use simt::{AnyCheckedKernel, Bound, Constants, LaunchConfig};

use crate::{
    memory::{Matrix, Number, Place},
    product::{Trial, launch, trials},
};

/// Partial products, rows and columns; rows of blocks; factors, bias and activation. The first two
/// cases are run in every order.
pub fn sums<P: Number, T: Number>(
    kernel: &'static dyn AnyCheckedKernel,
    constants: Constants,
) -> Vec<Trial> {
    let cases = vec![
        // Fewer and more partial products than warps, with more rows than blocks, and more columns
        // than a block computes.
        ([5, 3, 130], 2, (1.0, 0.0), NO_BIAS, IDENTITY),
        ([17, 4, 7], 3, (2.0, -1.0), ROW_BIAS, RELU),
        ([8, 2, 128], 2, (0.5, 0.0), COL_BIAS, IDENTITY),
        ([2, 1, 1], 1, (1.0, 1.0), COL_BIAS, GELU),
        ([9, 5, 260], 1, (1.0, 0.0), NO_BIAS, IDENTITY),
    ];
    trials(cases, 2, move |&(size, grid_rows, (alpha, beta), bias, activation), options| {
        let [count, m, n] = size;
        let number = |[i, row, col]: [usize; 3]| ((i * 7 + row * 5 + col * 3) % 11) as f64 - 5.0;
        let dense = |[_, rows, cols]: [usize; 3]| Place::padded(rows, cols);
        let mut partials = Matrix::<P>::new(size, dense(size)).filled(number);
        let mut c = Matrix::<T>::new([1, m, n], dense([1, m, n])).filled(number);
        let mut biases = Matrix::<T>::vector(m.max(n)).filled(number);
        let params = GemmParams {
            alpha,
            beta,
            bias,
            activation,
            ..GemmParams::dense(m as u32, n as u32, 1)
        };
        let grid = [n.div_ceil(COLS) as u32, grid_rows, 1];
        let config = LaunchConfig { constants, ..LaunchConfig::new(grid, BLOCK) };
        let count = count as u32;
        let arguments = [
            ("problem", Bound::Value(&params)),
            ("count", Bound::Value(&count)),
            ("partials", partials.view()),
            ("c", c.out(0, true)),
            ("bias", biases.view()),
        ];
        // SAFETY: the matrices outlive the launch, and nobody else uses them.
        unsafe { launch(kernel, &config, arguments, &options) }.and(&c)
    })
}
