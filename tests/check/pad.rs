//! The copies for TMA kernels: right and clean in every order, at any size, from unaligned rows.
//! Transposing has no bank conflicts.

use std::num::NonZeroU32;

use gpu::kernels::{pack::PACK_BYTES, transpose_bytes::TILE};
use simt::{
    Element, Kernel, LaunchConfig,
    check::{self, Operation, Options, Order, Profile},
    checked::{In, Out},
};

/// Rows, columns, elements from row to row, matrices, rows of blocks. Some have fewer blocks than
/// tiles.
const CASES: [(usize, usize, usize, usize, u32); 8] = [
    (1, 1, 1, 1, 1),
    (32, 32, 32, 1, 1),
    (33, 31, 31, 1, 2),
    (7, 130, 133, 3, 1),
    (100, 65, 70, 2, 4),
    (9, 1100, 1103, 2, 1),
    (100, 65, 70, 2, 1),
    (150, 5, 5, 1, 2),
];

type Params<T> = (u32, u32, u64, u64, u64, u64, In<T>, Out<T>);

/// An element that can be told from others.
trait Numbered: Element + PartialEq + std::fmt::Debug {
    fn of(number: usize) -> Self;
}

impl Numbered for f32 {
    fn of(number: usize) -> f32 {
        number as f32
    }
}

impl Numbered for f64 {
    fn of(number: usize) -> f64 {
        number as f64
    }
}

impl Numbered for u8 {
    fn of(number: usize) -> u8 {
        (number % 251) as u8
    }
}

impl Numbered for u16 {
    fn of(number: usize) -> u16 {
        number as u16
    }
}

/// Sixteen bytes, aligned.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Sixteen(#[allow(dead_code, reason = "only its address is used")] [u8; 16]);

/// Copies with that kernel, from the `start`th element after a multiple of sixteen bytes on, and
/// checks the result.
fn copy<T: Numbered>(
    kernel: &Kernel<Params<T>>,
    (rows, cols, pitch, matrices, grid_rows): (usize, usize, usize, usize, u32),
    start: usize,
    turned: bool,
    options: &Options,
) -> Option<Profile> {
    let unit = 16 / size_of::<T>();
    let (tile_cols, to) = match turned {
        true => (if size_of::<T>() == 1 { TILE } else { 32 }, (cols, rows)),
        false => (PACK_BYTES / size_of::<T>(), (rows, cols)),
    };
    let to_pitch = to.1.next_multiple_of(unit);
    let (step, to_step) = (rows * pitch + 3, to.0 * to_pitch);
    let last = (matrices - 1) * step + (rows - 1) * pitch + cols;
    let mut memory = vec![Sixteen([0; 16]); (start + last).div_ceil(unit)];
    // SAFETY: the 16-byte units have room for this many elements, for which every bit pattern is
    // valid.
    let from =
        unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<T>().add(start), last) };
    from.iter_mut().enumerate().for_each(|(i, element)| *element = T::of(i));
    let mut copies = vec![Sixteen([0xff; 16]); matrices * to_step / unit];
    // SAFETY: as above.
    let copied = unsafe {
        std::slice::from_raw_parts_mut(copies.as_mut_ptr().cast::<T>(), matrices * to_step)
    };
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
    let context = format!("{rows} x {cols}, {matrices} of them from {start}, turned: {turned}");
    assert!(report.is_clean(), "{context}: {report}");
    for (at, value) in copied.iter().enumerate() {
        let (i, row, col) = (at / to_step, at / to_pitch % to.0, at % to_pitch);
        let (from_row, from_col) = if turned { (col, row) } else { (row, col) };
        let expected = from.get(i * step + from_row * pitch + from_col).filter(|_| col < to.1);
        // The padding of a row may be anything.
        let right = expected.is_none_or(|expected| value == expected);
        assert!(right, "{context}: element ({row}, {col}) of matrix {i} is {value:?}");
    }
    report.profile
}

#[test]
fn copies_are_clean_and_right() {
    use gpu::checked::kernels::{
        pack::{pack_rows, pack_rows_f64, pack_rows_u8, pack_rows_u16},
        transpose::{transpose_rows, transpose_rows_u16},
        transpose_bytes::transpose_rows_u8,
    };
    for case in CASES {
        for (start, order) in [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)]
            .into_iter()
            .cycle()
            .enumerate()
            .take(8)
        {
            let mut options = Options::default();
            options.order = order;
            copy(&pack_rows, case, start % 4, false, &options);
            copy(&pack_rows_u16, case, start, false, &options);
            copy(&pack_rows_u8, case, 2 * start + 1, false, &options);
            copy(&pack_rows_f64, case, start % 2, false, &options);
            copy(&transpose_rows, case, start % 4, true, &options);
            copy(&transpose_rows_u16, case, start, true, &options);
            copy(&transpose_rows_u8, case, start, true, &options);
        }
    }
}

/// A warp's 2048 bytes are read by five accesses and written by four, for every misalignment. (The
/// ends of the operand are copied element by element. So are those of each row, if there are gaps
/// between rows, and it does not start and end at a multiple of sixteen bytes.)
#[test]
fn padding_moves_sixteen_bytes_an_access() {
    use gpu::checked::kernels::pack::pack_rows_u16;
    let mut options = Options::default();
    options.profile = NonZeroU32::new(1);
    let (rows, cols) = (64, 1024);
    for (pitch, start) in [(1024, 0), (1024, 3), (1032, 0)] {
        let case = (rows, cols, pitch, 1, 4);
        let profile = copy(&pack_rows_u16, case, start, false, &options).expect("it was asked for");
        let requests = |operation| {
            let lines = profile.lines.iter().filter(|line| line.operation == operation);
            lines.map(|line| line.requests).sum::<u64>()
        };
        // Except for the operand's first and last row: 32 elements at a time.
        let (warps, at_ends) = (rows as u64 - 2, 2 * cols as u64 / 32);
        assert_eq!(requests(Operation::GlobalStore), 4 * warps + at_ends);
        assert_eq!(requests(Operation::GlobalLoad), 5 * warps + at_ends);
    }
}

/// Reads and writes have whole sectors, and 32 banks at a time.
#[test]
fn turning_over_is_coalesced_and_without_bank_conflicts() {
    use Operation::{GlobalLoad, GlobalStore, SharedLoad, SharedStore};
    use gpu::checked::kernels::{transpose::transpose_rows, transpose_bytes::transpose_rows_u8};
    let mut options = Options::default();
    options.profile = NonZeroU32::new(1);
    let words = copy(&transpose_rows, (64, 96, 96, 1, 2), 0, true, &options);
    // Bytes by sixteen, and in shared memory stored as words.
    let bytes = copy(&transpose_rows_u8, (256, 384, 384, 1, 2), 0, true, &options);
    let of_words =
        [(GlobalLoad, 32, 4), (GlobalStore, 32, 4), (SharedStore, 32, 1), (SharedLoad, 32, 1)];
    let of_bytes = [
        (GlobalLoad, 512, 16),
        (GlobalStore, 512, 16),
        (SharedStore, 128, 1),
        (SharedLoad, 512, 4),
    ];
    for (profile, elements, expected) in [(words, 64 * 96, of_words), (bytes, 256 * 384, of_bytes)]
    {
        let profile = profile.expect("it was asked for");
        for (operation, of_request, units) in expected {
            let lines = profile.lines.iter().filter(|line| line.operation == operation);
            let counts = lines.fold((0, 0), |(r, u), line| (r + line.requests, u + line.units));
            let requests = elements / of_request;
            assert_eq!(counts, (requests, requests * units), "{operation:?}");
        }
    }
}
