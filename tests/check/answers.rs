//! The figures of the answers in `docs/course`, pages 20 to 29, that a run on the CPU gives.

use std::{collections::BTreeMap, num::NonZeroU32};

use gpu::registry::{Entry, Type, ladder_of};
use host::{
    Shape,
    picture::{self, Picture},
    profile,
};
use simt::check::Operation;

fn rung(name: &str) -> &'static Entry {
    let found = ladder_of(Type::BF16).map(|(entry, _)| entry).find(|entry| entry.name() == name);
    found.expect(name)
}

fn picture(name: &str, [m, n, k]: [u64; 3], at: [u32; 2]) -> Picture {
    picture::of_block(rung(name), Shape::new(m, n, k).unwrap(), at, 1).unwrap()
}

/// The lanes of the requests of warp 0 of an operation to a memory, in their order, each with its
/// byte address.
fn requests(picture: &Picture, operation: &str, memory: Option<usize>) -> Vec<BTreeMap<i64, i64>> {
    let all = picture.requests.iter().filter(|request| {
        request.warp == 0
            && request.operation == operation
            && memory.is_none_or(|memory| request.memory == Some(memory))
    });
    let lanes = |runs: &Vec<[i64; 4]>| {
        let of_run = |&[first, count, address, step]: &[i64; 4]| {
            (0..count).map(move |i| (first + i, address + i * step))
        };
        runs.iter().flat_map(of_run).collect()
    };
    all.map(|request| lanes(&request.lanes)).collect()
}

/// Page 20: which lanes share a sector, how often a sector is loaded, and how many of its bytes are
/// used.
#[test]
fn a_k_step_of_fragments_uses_all_of_its_sectors() {
    let picture = picture("tensor_mma", [32, 32, 16], [0, 0]);
    for (memory, loads) in [(0, 4), (1, 2)] {
        let mut sectors = BTreeMap::<i64, (usize, [bool; 32])>::new();
        let of_step = requests(&picture, "global-load", Some(memory));
        assert_eq!(of_step.len(), 8);
        for lanes in &of_step {
            let mut seen = BTreeMap::<i64, Vec<i64>>::new();
            for (&lane, &address) in lanes {
                let (_, used) = sectors.entry(address / 32).or_insert((0, [false; 32]));
                used[address as usize % 32..][..2].fill(true);
                seen.entry(address / 32).or_default().push(lane);
            }
            seen.keys().for_each(|sector| sectors.get_mut(sector).unwrap().0 += 1);
            if memory == 0 {
                let fours = seen.into_values().collect::<Vec<_>>();
                let expected =
                    (0..8).map(|i| (4 * i..4 * i + 4).collect()).collect::<Vec<Vec<_>>>();
                assert_eq!(fours, expected);
            }
        }
        assert_eq!(sectors.len(), 16);
        assert!(
            sectors.values().all(|(times, used)| *times == loads && used.iter().all(|used| *used))
        );
    }
}

/// Page 20: an odd row length.
#[test]
fn rows_that_begin_within_a_sector_take_more() {
    for (n, expected) in [(64, 4.0), (65, 5.56)] {
        let shape = Shape::new(64, n, 64).unwrap();
        let profile =
            profile::product(rung("tensor_mma"), shape, NonZeroU32::MIN, 1).unwrap().profile;
        let loads = profile.lines.iter().filter(|line| line.operation == Operation::GlobalLoad);
        let each = loads.map(|line| line.units as f64 / line.requests as f64).collect::<Vec<_>>();
        let [a, b] = each[..] else { panic!("a line for A and one for B: {each:?}") };
        assert!((a - 8.0).abs() <= 0.0 && (b - expected).abs() <= 0.005, "n = {n}: {each:?}");
    }
}

/// Pages 21 and 29: the banks of lanes under the swizzle.
#[test]
fn the_swizzle_spreads_eight_rows_over_the_banks() {
    let bank = |address: i64| address / 4 % 32;
    let loads = requests(&picture("tensor_ldmatrix", [128, 128, 64], [0, 0]), "shared-load", None);
    let banks = loads[0].values().take(8).map(|address| bank(*address)).collect::<Vec<_>>();
    assert_eq!(banks, [0, 4, 8, 12, 16, 20, 24, 28]);
    let stores =
        requests(&picture("tensor_tma_store", [256, 256, 64], [0, 0]), "shared-store", None);
    let begin = stores[0][&0];
    assert_eq!((bank(begin), bank(stores[0][&4]), stores[0][&4] - begin), (0, 4, 128 + 16));
}

/// Page 24: what TMA loads at the lower edge, and when a stage is filled again.
#[test]
fn tma_loads_the_row_inside_and_fills_a_stage_behind_the_barrier() {
    let edge = picture("tensor_tma", [65, 256, 64], [0, 1]);
    let of_a = edge.requests.iter().find(|request| request.operation == "tma-load").unwrap();
    assert_eq!((of_a.units, of_a.area), (128, Some([64 * 64, 64, 1])));
    assert_eq!(of_a.operands[0].1, 8192);
    let stages = picture("tensor_tma", [64, 256, 384], [0, 0]).stages.unwrap();
    let of_stage = |what: &str| {
        let all =
            stages.ticks.iter().filter(move |tick| tick.stage == 0 && tick.what.ends_with(what));
        all.map(|tick| tick.barriers).collect::<Vec<_>>()
    };
    assert_eq!((of_stage("has been read")[0], of_stage("on their way")[1]), (1, 2));
}

/// Page 27: the first stage of the second tile is filled while the first tile is multiplied.
#[test]
fn a_persistent_block_fills_the_next_tile_s_stage_early() {
    let stages = picture("tensor_persistent", [256, 256, 256], [0, 0]).stages.unwrap();
    let fills = stages.ticks.iter().enumerate();
    let mut fills = fills.filter(|(_, tick)| tick.what.ends_with("on their way"));
    // A tile has four phases, and the ring four stages.
    let (at, next) = fills.nth(4).unwrap();
    assert_eq!(next.stage, 0);
    let begun =
        stages.ticks[..at].iter().filter(|tick| tick.what.contains("read by the tensor cores"));
    let begun = begun.count();
    assert!(begun < 2 * 4, "{begun}: two warpgroups begin four products each");
}

/// Page 28: what a block of a cluster asks for of a stage.
#[test]
fn a_block_of_a_cluster_asks_for_two_thirds_of_its_stage() {
    let picture = picture("tensor_cluster", [256, 256, 256], [0, 0]);
    let loads = picture.requests.iter().filter(|request| request.operation == "tma-load");
    // Four stages.
    assert_eq!(loads.map(|request| request.units).sum::<u64>(), 4 * 32_768);
    assert_eq!(picture.stages.unwrap().bytes, 49_152);
}
