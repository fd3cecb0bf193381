//! The 3 x 3 example with tiles of 2 x 2. Some threads compute no element of C and still must load.
//! Others compute one and must not load everything.
//!
//! A thread is written (row, column) here, as on the slides. CUDA's index has x, the column, first.

use exercises::{attempt::attempt, problem::Launch, solutions::toy_table::toy_table};
use simt::{
    LaunchConfig,
    check::{self, Finding, Kind, Operation, Options, Order},
    checked::*,
};

const TILE: usize = 2;

/// Every thread loads its element of B, also where there is none.
const B_UNCHECKED: u32 = 1;
/// Threads of block (1, 1) whose element of C does not exist load nothing.
const OUTSIDE_IDLE: u32 = 2;

/// The tiled kernel with one of its boundary checks wrong, or none.
#[kernel(
    block = (TILE, TILE),
    shared = 2 * TILE * TILE * size_of::<f32>(),
    barriers = 2,
    len(a = n * n, b = n * n, c = n * n),
)]
fn toy(n: u32, slip: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let n = n as usize;
    let mut tile_a = shared![f32; TILE, TILE];
    let mut tile_b = shared![f32; TILE, TILE];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + ty;
    let col = thread::block_idx_x() as usize * TILE + tx;
    let inside = row < n && col < n;
    let idle = slip == OUTSIDE_IDLE && !inside && row >= TILE && col >= TILE;
    let mut sum = 0.0;
    for phase in 0..n.div_ceil(TILE) {
        let (a_col, b_row) = (phase * TILE + tx, phase * TILE + ty);
        if !idle {
            tile_a[(ty, tx)] = if row < n && a_col < n { a[row * n + a_col] } else { 0.0 };
            let exists = slip == B_UNCHECKED || b_row < n && col < n;
            tile_b[(ty, tx)] = if exists { b[b_row * n + col] } else { 0.0 };
        }
        thread::sync_threads();
        for i in 0..TILE {
            sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
        }
        thread::sync_threads();
    }
    if inside {
        c[row * n + col] = sum;
    }
}

/// The findings of a checked launch of the 3 x 3 example, and C.
fn run(slip: u32, order: Order) -> (Vec<Finding>, [f32; 9]) {
    let a: [f32; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let b: [f32; 9] = [1.0, 0.0, 2.0, 0.0, 3.0, 1.0, 1.0, 1.0, 1.0];
    let mut c = [f32::NAN; 9];
    let mut options = Options::default();
    options.order = order;
    options.workers = Some(1);
    let config = LaunchConfig::new([2, 2, 1], [2, 2, 1]);
    // SAFETY: the arrays outlive the launch, nobody else uses them, and accesses outside are not
    // carried out.
    let report = unsafe {
        let (a, b) = (In::new(a.as_ptr(), a.len()), In::new(b.as_ptr(), b.len()));
        let c = Out::uninit(c.as_mut_ptr(), c.len());
        check::launch(&toy, &config, (3, slip, a, b, c), &options)
    };
    (report.expect("not cancelled").findings, c)
}

const PRODUCT: [f32; 9] = [4.0, 9.0, 7.0, 10.0, 21.0, 19.0, 16.0, 33.0, 31.0];

#[test]
fn zeros_outside_leave_the_product_as_it_is() {
    for order in [Order::Forward, Order::Reverse, Order::Random(1)] {
        let (findings, c) = run(0, order);
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(c, PRODUCT);
    }
}

/// Thread (1, 0) of block (0, 0) computes C(1, 0), which exists. It would load B(3, 0), which does
/// not exist, in phase 1. (The slides say phase 0.) In phase 0 it loads B(1, 0).
#[test]
fn a_thread_inside_c_may_load_from_outside_b() {
    let (findings, _) = run(B_UNCHECKED, Order::Forward);
    let outside = findings.iter().find(|finding| finding.kind == Kind::OutOfBounds);
    let outside = outside.unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(outside.memory.as_deref(), Some("buffer b"));
    let first = &outside.examples[0];
    assert_eq!((first.block, first.thread), ([0, 0, 0], [0, 1, 0]));
    // B(3, 0): row 2 * phase + 1 is 3 in phase 1.
    assert_eq!(first.element, Some(3 * 3));
}

/// Thread (1, 0) of block (1, 1) would compute C(3, 2), which does not exist. It must load B(1, 2)
/// in phase 0: otherwise thread (0, 0) reads an element of the tile that was not written.
#[test]
fn a_thread_outside_c_must_load() {
    let (findings, c) = run(OUTSIDE_IDLE, Order::Forward);
    let unwritten = findings.iter().filter(|finding| finding.kind == Kind::Uninitialised);
    let examples = unwritten.flat_map(|finding| &finding.examples).collect::<Vec<_>>();
    let missed = examples.iter().any(|example| {
        // Element (1, 0) of the tile, read by thread (0, 0).
        (example.block, example.thread, example.element) == ([1, 1, 0], [0, 0, 0], Some(TILE))
    });
    assert!(missed, "{findings:#?}");
    assert_ne!(c[8], PRODUCT[8]);
}

/// The exercises' kernel is the same with right checks: of 64 elements in the tiles 36 exist.
#[test]
fn what_does_not_exist_is_not_loaded() {
    let (launch, shape) = (Launch::product(2, 2), [3; 3]);
    let data = launch.problem.data(shape);
    let attempt = attempt(&toy_table, &launch, shape, &data, Order::Forward, true).unwrap();
    assert!(attempt.is_right(), "{:?}", attempt.findings);
    let threads = |operation| attempt.profile.total(operation, |line| line.lanes);
    assert_eq!(threads(Operation::SharedStore), 64.0);
    assert_eq!(threads(Operation::GlobalLoad), 36.0);
}
