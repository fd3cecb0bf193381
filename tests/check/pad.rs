//! The copies that are made for products by tensor copies: right and clean in every order, at any size; and turning over
//! costs no bank conflict.

use std::num::NonZeroU32;

use simt::{
    Kernel, LaunchConfig,
    check::{self, Operation, Options, Order, Profile},
    checked::{In, Out},
};

/// Rows, columns, elements from row to row, matrices, rows of blocks: fewer of these than there are tiles, too.
const CASES: [(usize, usize, usize, usize, u32); 7] = [
    (1, 1, 1, 1, 1),
    (32, 32, 32, 1, 1),
    (33, 31, 31, 1, 2),
    (7, 130, 133, 3, 1),
    (100, 65, 70, 2, 4),
    (100, 65, 70, 2, 1),
    (150, 5, 5, 1, 2),
];

type Params = (u32, u32, u64, u64, u64, u64, In<f32>, Out<f32>);

/// Copies with that kernel, and checks what comes out.
fn copy(
    kernel: &Kernel<Params>,
    (rows, cols, pitch, matrices, grid_rows): (usize, usize, usize, usize, u32),
    turned: bool,
    options: &Options,
) -> Option<Profile> {
    let (tile_cols, to) = if turned { (32, (cols, rows)) } else { (128, (rows, cols)) };
    let to_pitch = to.1.next_multiple_of(4);
    let (step, to_step) = (rows * pitch + 3, to.0 * to_pitch);
    let last = (matrices - 1) * step + (rows - 1) * pitch + cols;
    let from = (0..last).map(|i| i as f32).collect::<Vec<_>>();
    let mut copied = vec![f32::NAN; matrices * to_step];
    let grid = [cols.div_ceil(tile_cols) as u32, grid_rows, matrices as u32];
    let config = LaunchConfig::new(grid, [32, 8, 1]);
    let sizes = (rows as u32, cols as u32);
    let words = [pitch, step, to_pitch, to_step].map(|elements| elements as u64);
    let [pitch_word, step_word, to_pitch_word, to_step_word] = words;
    // SAFETY: the vectors outlive the launch, and nobody else uses them.
    let report = unsafe {
        let from = In::new(from.as_ptr(), from.len());
        let to = Out::uninit(copied.as_mut_ptr(), copied.len());
        let params =
            (sizes.0, sizes.1, pitch_word, step_word, to_pitch_word, to_step_word, from, to);
        check::launch(kernel, &config, params, options)
    };
    let report = report.expect("not cancelled");
    let context = format!("{rows} x {cols}, {matrices} of them, turned: {turned}");
    assert!(report.is_clean(), "{context}: {report}");
    for (at, value) in copied.iter().enumerate() {
        let (i, row, col) = (at / to_step, at / to_pitch % to.0, at % to_pitch);
        let (from_row, from_col) = if turned { (col, row) } else { (row, col) };
        let expected = from.get(i * step + from_row * pitch + from_col).filter(|_| col < to.1);
        // What pads a row stays as it was.
        let right = expected.map_or(value.is_nan(), |expected| value == expected);
        assert!(right, "{context}: element ({row}, {col}) of matrix {i} is {value}");
    }
    report.profile
}

#[test]
fn copies_are_clean_and_right() {
    use gpu::checked::kernels::gemm::pad::{pad_rows, turn_rows};
    for case in CASES {
        for order in [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)] {
            let mut options = Options::default();
            options.order = order;
            copy(&pad_rows, case, false, &options);
            copy(&turn_rows, case, true, &options);
        }
    }
}

/// Reads and writes of whole sectors, and of 32 banks at a time.
#[test]
fn turning_over_is_coalesced_and_without_bank_conflicts() {
    use gpu::checked::kernels::gemm::pad::turn_rows;
    let mut options = Options::default();
    options.profile = NonZeroU32::new(1);
    let profile = copy(&turn_rows, (64, 96, 96, 1, 2), true, &options).expect("it was asked for");
    let requests = 64 * 96 / 32;
    for (operation, units) in [
        (Operation::GlobalLoad, 4),
        (Operation::GlobalStore, 4),
        (Operation::SharedStore, 1),
        (Operation::SharedLoad, 1),
    ] {
        let lines = profile.lines.iter().filter(|line| line.operation == operation);
        let counts = lines.fold((0, 0), |(r, u), line| (r + line.requests, u + line.units));
        assert_eq!(counts, (requests, requests * units), "{operation:?}");
    }
}
