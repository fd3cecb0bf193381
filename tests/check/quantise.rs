//! The kernels that round matrices to 8 bits: clean and right in every order.

use gpu::{
    checked::kernels::quantise::{quantise_f32, quantise_half},
    kernels::quantise::THREADS,
    params::QuantiseParams,
};
use simt::{
    Bf16, Constants, E4m3, Element, Half, Kernel, LaunchConfig,
    check::{self, Options, Order},
    checked::{In, Out},
};

/// Rows, columns, both pitches, rows and columns of a group, its threads. Aligned and not; groups
/// of one warp, of several, and of a part of one.
const CASES: [[usize; 7]; 7] = [
    [5, 136, 136, 144, 1, 128, 8],
    [3, 131, 131, 133, 1, 128, 8],
    [17, 520, 520, 520, 1, 520, 64],
    [3, 300, 300, 301, 1, 300, 32],
    [1, 8200, 8200, 8200, 1, 8200, 512],
    [130, 144, 144, 144, 128, 128, 512],
    [130, 130, 135, 131, 128, 128, 512],
];

type Params<T> = (QuantiseParams, In<T>, Out<u8>, Out<f32>);

/// From 1 to 14 times 2^3, of either sign: each is its scale times an e4m3 where the greatest of
/// the group is 112.
fn number(at: usize) -> f32 {
    let value = (8 + at / 7 % 7) as f32 * 2f32.powi((at % 7) as i32 - 3);
    if at.is_multiple_of(3) { -value } else { value }
}

fn rounds<T: Element, S: Element>(kernel: &Kernel<Params<T>>, stored: fn(f32) -> S) -> usize {
    let constants = Constants::NONE.with("fraction", 3);
    let constants = match size_of::<T>() {
        2 => constants.with_word("half", "bf16"),
        _ => constants,
    };
    let mut runs = 0;
    for [rows, cols, from_pitch, to_pitch, down, width, threads] in CASES {
        // The greatest is in the first row or column of each group.
        let value = |row: usize, col: usize| match row.is_multiple_of(down) && col % width < 3 {
            true => 112.0,
            false => number(row * cols + col),
        };
        let from = (0..rows * from_pitch).map(|at| match at % from_pitch {
            col if col < cols => stored(value(at / from_pitch, col)),
            _ => stored(f32::NAN),
        });
        let from = from.collect::<Vec<_>>();
        let across = cols.div_ceil(width);
        let groups = rows.div_ceil(down) * across;
        let params = QuantiseParams {
            rows: rows as u32,
            cols: cols as u32,
            down: down as u32,
            width: width as u32,
            across: across as u32,
            threads: threads as u32,
            from_pitch: from_pitch as u64,
            to_pitch: to_pitch as u64,
            scales: [across as u64, 1],
        };
        let config = LaunchConfig::new(
            [groups.div_ceil(THREADS / threads) as u32, 1, 1],
            [THREADS as u32, 1, 1],
        );
        for order in [Order::Forward, Order::Reverse, Order::Random(1)] {
            let mut options = Options::default();
            options.order = order;
            let (mut to, mut scales) = (vec![0xaau8; rows * to_pitch], vec![0f32; groups]);
            // SAFETY: the vectors outlive the launch, and nobody else uses them; `S` has the bits
            // of `T`.
            let report = unsafe {
                let from = In::new(from.as_ptr().cast::<T>(), (rows - 1) * from_pitch + cols);
                let to = Out::uninit(to.as_mut_ptr(), (rows - 1) * to_pitch + cols);
                let scales = Out::uninit(scales.as_mut_ptr(), groups);
                let config = LaunchConfig { constants, ..config };
                check::launch(kernel, &config, (params, from, to, scales), &options)
            };
            let report = report.expect("not cancelled");
            let context = format!("{rows} x {cols}, pitches {from_pitch} and {to_pitch}, {order}");
            assert!(report.is_clean(), "{context}: {report}");
            assert_eq!(scales, vec![0.25; groups], "{context}");
            for (at, got) in to.iter().enumerate() {
                let (row, col) = (at / to_pitch, at % to_pitch);
                let want = match col < cols {
                    true => E4m3::from_f32(4.0 * value(row, col)).to_bits(),
                    false => 0xaa,
                };
                assert_eq!(*got, want, "{context}: ({row}, {col})");
            }
            runs += 1;
        }
    }
    runs
}

#[test]
fn rounded_matrices_are_clean_and_right() {
    assert_eq!(rounds(&quantise_f32, |value| value), 21);
    assert_eq!(rounds::<Half, _>(&quantise_half, Bf16::from_f32), 21);
}
