//! Tiling, coalescing and bank conflicts: the counts show the factors that theory gives.
//!
//! Sizes are multiples of every tile, so there are no edges, and rows start at sectors.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
};

use exercises::{
    attempt::{Attempt, Subject, attempt},
    problem::Launch,
    solutions,
};
use gpu::registry::{Entry, find, ladder};
use host::{
    Shape, profile,
    simt::check::{Line, Operation, Order, Profile},
};

const SIZE: u64 = 256;

/// A kernel's profile of a SIZE x SIZE x SIZE product with every block counted. Each is made once
/// for all tests.
fn counted(entry: &'static Entry) -> Profile {
    static KNOWN: Mutex<BTreeMap<&str, Profile>> = Mutex::new(BTreeMap::new());
    // A kernel that cannot be counted fails only its own tests.
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(profile) = known().get(entry.name()) {
        return profile.clone();
    }
    let profile = count(entry);
    known().insert(entry.name(), profile.clone());
    profile
}

fn count(entry: &'static Entry) -> Profile {
    let shape = Shape::new(SIZE, SIZE, SIZE).unwrap();
    let profiled = profile::product(entry, shape, NonZeroU32::MIN, 1).unwrap();
    assert!(profiled.findings.is_empty(), "{}: {:?}", entry.name(), profiled.findings);
    assert_eq!(profiled.profile.blocks, profiled.profile.sampled);
    profiled.profile
}

fn counted_by_name(kernel: &str) -> Profile {
    counted(find(kernel).unwrap_or_else(|| panic!("there is no kernel `{kernel}`")))
}

/// Bytes that threads load from global memory.
fn bytes_loaded(profile: &Profile) -> f64 {
    profile.total(Operation::GlobalLoad, |line| line.lanes * u64::from(line.width))
}

/// For each line with an operation, in the order of the source: the sectors or wavefronts of a
/// warp's access.
fn units(profile: &Profile, operation: Operation) -> Vec<u64> {
    let lines = profile.lines.iter().filter(|line| line.operation == operation);
    let each = |line: &Line| {
        assert_eq!(line.units % line.requests, 0, "all requests of a line take as many: {line:?}");
        line.units / line.requests
    };
    lines.map(each).collect()
}

#[test]
fn every_rung_loads_what_follows_on_paper() {
    let flop = 2.0 * (SIZE as f64).powi(3);
    for (entry, rung) in ladder() {
        let (profile, paper) = (counted(entry), rung.flop_per_byte);
        let ratio = flop / bytes_loaded(&profile);
        assert!((ratio - paper).abs() <= 1e-9 * paper, "{}: {ratio}, not {paper}", entry.name());
    }
}

/// A tile's element is used TILE times. So there are n² / TILE accesses for each n², and not n.
#[test]
fn tiling_divides_loads_by_the_width_of_the_tile() {
    let elements = |kernel: &str| bytes_loaded(&counted_by_name(kernel)) / 4.0;
    let n = SIZE as f64;
    // Each of n rows of A is read for each of n columns of C, and B likewise.
    assert_eq!(elements("basic"), 2.0 * n * n * n);
    assert_eq!(elements("tiled16"), 2.0 * n * n * n / 16.0);
    assert_eq!(elements("tiled32"), 2.0 * n * n * n / 32.0);
}

#[test]
fn a_warp_of_the_basic_kernel_touches_two_rows() {
    let profile = counted_by_name("basic");
    // Sixteen threads read one element of A, and the other sixteen one of the next row. Both halves
    // read the same sixteen elements of B: 64 bytes.
    assert_eq!(units(&profile, Operation::GlobalLoad), [2, 2]);
    assert_eq!(units(&profile, Operation::GlobalStore), [4]);
}

#[test]
fn coalesced_tiles_take_the_fewest_sectors_and_no_bank_conflict() {
    // A warp loads 128 bytes: half a row of each of two tiles for 16, one row for 32.
    for kernel in ["tiled16", "tiled32"] {
        let profile = counted_by_name(kernel);
        assert_eq!(units(&profile, Operation::GlobalLoad), [4, 4], "{kernel}");
        assert_eq!(units(&profile, Operation::GlobalStore), [4], "{kernel}");
        assert_eq!(units(&profile, Operation::SharedStore), [1, 1], "{kernel}");
        assert_eq!(units(&profile, Operation::SharedLoad), [1, 1], "{kernel}");
    }
}

#[test]
fn two_barriers_a_phase_for_every_warp() {
    for (kernel, tile) in [("basic", None), ("tiled16", Some(16)), ("tiled32", Some(32))] {
        let profile = counted_by_name(kernel);
        let expected = tile.map_or(0, |tile| {
            let (blocks, warps, phases) =
                ((SIZE / tile).pow(2), tile * tile / 32, SIZE.div_ceil(tile));
            blocks * warps * phases * 2
        });
        assert_eq!(profile.total(Operation::Barrier, |line| line.requests), expected as f64);
    }
}

/// An exercise's kernel, launched with blocks for a square tile of C.
fn launched(exercise: &dyn Subject, size: u64) -> Attempt {
    let tile = exercise.declaration().block.unwrap()[0] as usize;
    let (launch, shape) = (Launch::product(tile, tile), [size as usize; 3]);
    let data = launch.problem.data(shape);
    let attempt = attempt(exercise, &launch, shape, &data, Order::Forward, true).unwrap();
    assert!(attempt.is_right(), "{:?}, {:?}", attempt.findings, attempt.wrong);
    attempt
}

/// The named rung, if it is in the registry, and the counts of an exercise's kernel.
fn with_rung(exercise: &dyn Subject, rung: &str) -> Vec<(String, Profile)> {
    let attempt = launched(exercise, SIZE);
    let exercise = (exercise.declaration().name.to_owned(), attempt.profile);
    let rung = find(rung).map(|entry| (rung.to_owned(), counted(entry)));
    [exercise].into_iter().chain(rung).collect()
}

/// Down a column of B a warp of a 16 x 16 block reads sixteen rows, two neighbours in each: sixteen
/// sectors instead of four. It stores a column of the tile: sixteen words in two banks, eight in
/// each.
#[test]
fn a_tile_read_down_its_columns_takes_four_times_the_sectors() {
    for (name, profile) in with_rung(&solutions::block_of_b::block_of_b, "tiled_uncoalesced") {
        assert_eq!(units(&profile, Operation::GlobalLoad), [4, 16], "{name}");
        assert_eq!(units(&profile, Operation::SharedStore), [1, 8], "{name}");
        assert_eq!(units(&profile, Operation::SharedLoad), [1, 1], "{name}");
    }
}

/// A column of a TILE x TILE tile is in 32 / TILE banks. TILE words in that many banks take TILE² /
/// 32 wavefronts.
#[test]
fn a_transposed_tile_has_bank_conflicts_and_padding_removes_them() {
    let turned = &exercises::kernels::bank_conflict::bank_conflict;
    for (name, profile) in with_rung(turned, "tiled_conflicts") {
        let tile: u64 = if name == "tiled_conflicts" { 16 } else { 32 };
        let conflict = tile * tile / 32;
        assert_eq!(units(&profile, Operation::GlobalLoad), [4, 4], "{name}");
        assert_eq!(units(&profile, Operation::SharedStore), [1, conflict], "{name}");
        assert_eq!(units(&profile, Operation::SharedLoad), [1, conflict], "{name}");
    }
    let padded = launched(&solutions::bank_conflict::bank_conflict, 64);
    assert_eq!(units(&padded.profile, Operation::SharedStore), [1, 1]);
    assert_eq!(units(&padded.profile, Operation::SharedLoad), [1, 1]);
}

/// Two reads for the inner product, as document 003 finds in the machine code. One for the outer
/// product, whose other operand is in a register. Fewer for a thread that computes several rows and
/// columns.
#[test]
fn operands_read_from_shared_memory_for_each_multiply_add() {
    for (kernel, expected) in [
        ("tiled16", 2.0),
        ("tiled32", 2.0),
        ("outer_product", 1.0),
        ("unrolled", 1.0),
        ("prefetched", 1.0),
        ("register_blocked", (8 + 8) as f64 / (8 * 8) as f64),
        ("vectorised", (8 + 8) as f64 / (8 * 8) as f64),
        ("warp_tiled", (8 + 16) as f64 / (8 * 16) as f64),
        ("async_copy", (8 + 16) as f64 / (8 * 16) as f64),
    ] {
        let profile = counted_by_name(kernel);
        let products = profile.total(Operation::Fma, |line| line.lanes);
        assert_eq!(products, (SIZE * SIZE * SIZE) as f64, "{kernel}");
        let words =
            profile.total(Operation::SharedLoad, |line| line.lanes * u64::from(line.width) / 4);
        assert_eq!(words / products, expected, "{kernel}");
    }
}

#[test]
fn unrolling_changes_no_access() {
    let [looped, unrolled] = ["outer_product", "unrolled"].map(counted_by_name);
    for operation in [
        Operation::GlobalLoad,
        Operation::GlobalStore,
        Operation::SharedLoad,
        Operation::SharedStore,
        Operation::Barrier,
        Operation::Fma,
    ] {
        for count in [|line: &Line| line.requests, |line: &Line| line.units] {
            let [looped, unrolled] = [&looped, &unrolled].map(|p| p.total(operation, count));
            assert_eq!(looped, unrolled, "{operation:?}");
        }
    }
}

/// One barrier for each phase and one before the first, instead of two for each phase.
#[test]
fn with_two_buffers_one_barrier_a_phase_is_enough() {
    let barriers = |kernel: &str| {
        let profile = counted_by_name(kernel);
        let warps = profile.blocks * 64 / 32;
        profile.total(Operation::Barrier, |line| line.requests) / warps as f64
    };
    let phases = (SIZE / 16) as f64;
    assert_eq!(barriers("unrolled"), 2.0 * phases);
    assert_eq!(barriers("prefetched"), phases + 1.0);
}

/// The same bytes, with four elements in each request.
#[test]
fn wide_accesses_are_a_quarter_of_the_requests() {
    let [narrow, wide] = ["register_blocked", "vectorised"].map(counted_by_name);
    for operation in [Operation::GlobalLoad, Operation::GlobalStore, Operation::SharedLoad] {
        let [narrow, wide] = [&narrow, &wide].map(|p| p.total(operation, |line| line.requests));
        assert_eq!(narrow, 4.0 * wide, "{operation:?}");
    }
    assert_eq!(bytes_loaded(&narrow), bytes_loaded(&wide));
}
