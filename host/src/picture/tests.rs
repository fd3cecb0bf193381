use std::{collections::BTreeMap, num::NonZeroU32};

use super::*;
use crate::profile;

fn shape([m, n, k]: [u64; 3]) -> Shape {
    Shape::new(m, n, k).unwrap()
}

fn picture(kernel: &str, sizes: [u64; 3], block: [u32; 2]) -> Picture {
    let entry = registry::find(kernel).unwrap();
    let picture = of_block(entry, shape(sizes), block, 1).unwrap();
    assert!(picture.clean && picture.findings.is_empty(), "{:?}", picture.findings);
    assert_eq!(picture.left_out, 0);
    picture
}

/// For each operation: requests, units, and the fewest units.
type Sums = BTreeMap<&'static str, [u64; 3]>;

/// What a profile counts over all blocks.
fn counted(kernel: &str, sizes: [u64; 3]) -> Sums {
    let entry = registry::find(kernel).unwrap();
    let profiled = profile::product(entry, shape(sizes), NonZeroU32::MIN, 1).unwrap();
    let mut sums = Sums::new();
    for line in &profiled.profile.lines {
        let sum = sums.entry(line.operation.name()).or_default();
        *sum = [sum[0] + line.requests, sum[1] + line.units, sum[2] + line.ideal];
    }
    // A picture has barriers as numbers.
    sums.remove("barrier");
    sums
}

/// What the pictures of these blocks show.
fn shown(kernel: &str, sizes: [u64; 3], blocks: &[[u32; 2]]) -> Sums {
    let mut sums = Sums::new();
    for block in blocks {
        for total in picture(kernel, sizes, *block).totals {
            let sum = sums.entry(total.operation).or_default();
            *sum = [sum[0] + total.requests, sum[1] + total.units, sum[2] + total.ideal];
        }
    }
    sums
}

/// Every sector and every wavefront that a profile counts is in the pictures of the grid's blocks.
#[test]
fn the_sums_of_pictures_are_the_counts_of_the_profile() {
    let one: &[[u32; 2]] = &[[0, 0]];
    for (kernel, sizes, blocks) in [
        ("basic", [16, 16, 8], one),
        // The last row and the last column of blocks stick out: lanes take different branches.
        ("basic", [19, 21, 5], &[[0, 0], [1, 0], [0, 1], [1, 1]]),
        ("tiled_uncoalesced", [16, 16, 32], one),
        ("tiled_conflicts", [16, 16, 32], one),
        ("tiled16", [16, 32, 24], &[[0, 0], [1, 0]]),
        ("unrolled", [16, 64, 32], one),
        ("register_blocked", [128, 128, 16], one),
        ("async_copy", [128, 256, 24], one),
        ("tensor_mma", [16, 16, 32], one),
        ("tensor_ldmatrix", [128, 128, 64], one),
        ("tensor_cp_async", [128, 128, 128], one),
        ("tensor_wgmma", [64, 256, 128], one),
        ("tensor_producer", [64, 256, 128], one),
        ("tensor_wide", [128, 256, 128], one),
        ("tensor_cluster", [256, 256, 64], &[[0, 0], [1, 0]]),
        ("tensor_tma_store", [256, 256, 64], &[[0, 0], [1, 0]]),
    ] {
        assert_eq!(shown(kernel, sizes, blocks), counted(kernel, sizes), "{kernel} {sizes:?}");
    }
}

#[test]
fn lanes_are_where_the_source_says() {
    let picture = picture("tiled_conflicts", [16, 16, 16], [0, 0]);
    let of = |name: &str| picture.memories.iter().position(|memory| memory.name == name).unwrap();
    let store = picture.requests.iter().find(|one| one.memory == Some(of("tile_b"))).unwrap();
    // tile_b[(tx, ty)]: neighbouring lanes are sixteen words apart, in two banks.
    let memory = &picture.memories[of("tile_b")];
    assert_eq!((memory.space, memory.offset, memory.columns), ("shared", 1024, Some(16)));
    assert_eq!(store.lanes, [[0, 16, 1024, 64], [16, 16, 1028, 64]]);
    assert_eq!((store.units, store.ideal, store.phase), (8, 1, 0));
    let line = &picture.lines[store.line];
    assert!(line.text.starts_with("tile_b[(tx, ty)] = "), "{line:?}");
    let lanes = store.addresses().collect::<Vec<_>>();
    assert_eq!((lanes.len(), lanes[17]), (32, (17, 1028 + 64)));
    assert_eq!((picture.phases, picture.barriers), (1, 2));
    let place = picture.rung.unwrap();
    assert_eq!((place.number, place.before.unwrap()[0]), (3, "tiled_uncoalesced"));
}

/// Checks that a stage does one thing at a time, in order. Returns the rounds of all stages.
fn rounds(stages: &Stages) -> usize {
    for (stage, _) in stages.starts.iter().enumerate() {
        let own = stages.spans.iter().filter(|span| span.stage == stage).collect::<Vec<_>>();
        assert!(own.windows(2).all(|pair| pair[0].to <= pair[1].from), "{own:?}");
        let states = own.iter().map(|span| span.state).collect::<Vec<_>>();
        for round in states.chunks(3) {
            assert_eq!(round, [State::Filling, State::Full, State::Read], "stage {stage}");
        }
    }
    assert_eq!(stages.in_flight.len(), stages.ticks.len());
    assert_eq!(stages.in_flight.last(), Some(&0), "all stages have been read");
    stages.spans.len() / 3
}

#[test]
fn a_ring_of_stages_is_filled_and_read_in_rounds() {
    // Six stages of 64 k-steps each.
    for (kernel, sizes, ring, filled_by) in [
        ("tensor_cp_async", [128, 128, 384], 3, "cp.async"),
        ("tensor_wgmma", [64, 256, 384], 4, "cp.async"),
        ("tensor_tma", [64, 256, 384], 4, "tma"),
        ("tensor_producer", [64, 256, 384], 4, "tma"),
        ("tensor_wide", [128, 256, 384], 4, "tma"),
        ("tensor_cluster", [256, 256, 384], 4, "tma"),
    ] {
        let stages = picture(kernel, sizes, [0, 0]).stages.unwrap();
        assert_eq!((stages.filled_by, stages.starts.len()), (filled_by, ring), "{kernel}");
        assert_eq!(rounds(&stages), 6, "{kernel}");
        let most = stages.in_flight.iter().max().copied();
        // Before the first wait all stages are filled; by cp.async one less.
        assert!(most == Some(ring) || most == Some(ring - 1), "{kernel}: {most:?}");
    }
    assert_eq!(picture("tiled16", [16, 16, 16], [0, 0]).stages, None);
}

#[test]
fn a_producer_keeps_more_stages_in_flight_than_a_barrier_allows() {
    let reading = |kernel| {
        let stages = picture(kernel, [64, 256, 384], [0, 0]).stages.unwrap();
        let reads = stages.spans.iter().filter(|span| span.state == State::Read);
        let reads = reads.collect::<Vec<_>>();
        let at = |tick| reads.iter().filter(|span| (span.from..span.to).contains(&tick)).count();
        (0..stages.ticks.len()).map(at).max()
    };
    // MMAs of two stages are queued; with a barrier after each stage, of one.
    assert_eq!((reading("tensor_tma"), reading("tensor_producer")), (Some(1), Some(2)));
}

/// The operation, phase and tick of a warp's requests, each with the number of equal ones in a row.
fn moments(picture: &Picture, warp: u32) -> Vec<(&'static str, usize, usize, usize)> {
    let mut moments = Vec::<(&'static str, usize, usize, usize)>::new();
    for one in picture.requests.iter().filter(|one| one.warp == warp) {
        let tick = one.tick.expect("there are stages");
        match moments.last_mut() {
            Some((operation, phase, at, count))
                if (*operation, *phase, *at) == (one.operation, one.phase, tick) =>
            {
                *count += 1;
            }
            _ => moments.push((one.operation, one.phase, tick, 1)),
        }
    }
    moments
}

/// Five boxes a stage, a product for each, and the stores of C in the last phase.
#[test]
fn a_phase_is_a_stage_of_a_producer_and_of_a_consumer() {
    let picture = picture("tensor_producer", [64, 256, 384], [0, 0]);
    assert_eq!(picture.phases, 6);
    let of = |warp, operation: &str| {
        let own = moments(&picture, warp).into_iter().filter(|(of, ..)| *of == operation);
        own.map(|(_, phase, _, count)| (phase, count)).collect::<Vec<_>>()
    };
    let each = |count: usize| (0..6).map(|phase| (phase, count)).collect::<Vec<_>>();
    assert_eq!((of(4, "tma-load"), of(0, "wgmma")), (each(5), each(1)));
    assert_eq!(of(0, "global-store"), [(5, 64)]);
    // A request is where its stage is filled or read.
    let stages = picture.stages.as_ref().unwrap();
    for (warp, operation, what) in [(4, "tma-load", "40960 bytes"), (0, "wgmma", "read by")] {
        for (of, phase, tick, _) in moments(&picture, warp) {
            let event = &stages.ticks[tick];
            assert!(of != operation || event.what.starts_with(what), "phase {phase}: {event:?}");
            assert!(of != operation || event.stage == phase % 4, "phase {phase}: {event:?}");
        }
    }
}

/// Copies to a later stage are part of the phase in which they begin.
#[test]
fn a_phase_is_what_stands_between_two_waits() {
    for (kernel, sizes, phases) in [
        ("async_copy", [128, 256, 32], 4),
        ("tensor_cp_async", [128, 128, 384], 6),
        ("tensor_wgmma", [64, 256, 384], 6),
        ("tensor_tma", [64, 256, 384], 6),
        ("tensor_persistent", [256, 256, 256], 8),
        ("tensor_cluster", [512, 256, 256], 8),
        ("tensor_tma_store", [512, 256, 256], 8),
    ] {
        let picture = picture(kernel, sizes, [0, 0]);
        assert_eq!(picture.phases, phases, "{kernel}");
        let ticks = picture.stages.as_ref().unwrap().ticks.len();
        for warp in [0, 3] {
            let moments = moments(&picture, warp);
            let sorted = moments.is_sorted_by_key(|(_, phase, tick, _)| (*phase, *tick));
            assert!(sorted && moments.iter().all(|(_, _, tick, _)| *tick < ticks), "{kernel}");
            let of = moments.iter().map(|(_, phase, ..)| *phase);
            let of = of.collect::<std::collections::BTreeSet<_>>();
            assert!(of.into_iter().eq(0..phases), "{kernel}, warp {warp}: {moments:?}");
        }
    }
    // In phase 1 thread 0 fills the stage of phase 0 again, and all warps multiply.
    let picture = picture("tensor_tma", [64, 256, 384], [0, 0]);
    let own = moments(&picture, 0).into_iter().filter(|(_, phase, ..)| *phase == 1);
    let own = own.map(|(operation, .., count)| (operation, count)).collect::<Vec<_>>();
    assert_eq!(own, [("tma-load", 5), ("wgmma", 1)]);
    // Without asynchronous copies there are no events.
    let tiled = self::picture("tensor_ldmatrix", [128, 128, 384], [0, 0]);
    assert_eq!((tiled.phases, tiled.requests[0].tick), (6, None));
}

/// The stages are 40 KiB apart, in each A before B.
#[test]
fn a_product_of_a_warpgroup_reads_its_stage() {
    let picture = picture("tensor_producer", [64, 256, 384], [0, 0]);
    for warp in 0..4 {
        let of = picture.requests.iter().filter(|one| one.warp == warp && one.operation == "wgmma");
        let operands = of.map(|one| one.operands.clone()).collect::<Vec<_>>();
        let stage = |stage: usize| vec![(stage * 40960, 8192), (stage * 40960 + 8192, 32768)];
        assert_eq!(operands, [0, 1, 2, 3, 0, 1].map(stage), "warp {warp}");
    }
}

/// A block with more steps than a trace of threads keeps.
#[test]
fn no_request_of_a_large_block_is_left_out() {
    let picture = picture("async_copy", [128, 256, 32], [0, 0]);
    let fma = picture.totals.iter().find(|total| total.operation == "fma").unwrap();
    assert_eq!(fma.requests, 128 * 256 * 32);
}

/// A kernel that no registry knows: its trace is enough, and its source is read from its file.
#[test]
fn a_kernel_of_one_s_own_is_drawn_by_its_trace() {
    let specimen = specimens::list::find("padded_transpose").unwrap();
    let n = specimen.n as usize;
    let (x, mut y) = (vec![1.0; n], vec![0.0; n]);
    let mut options = simt::check::Options::default();
    options.trace = Some([1, 0, 0]);
    let trace = specimen.check(&x, &mut y, &options).unwrap().trace.unwrap();
    let picture = of_trace(specimen.name(), &specimen.config(), &trace);
    assert_eq!((&*picture.kernel, picture.at, picture.m), ("padded_transpose", [1, 0], None));
    let names = picture.memories.iter().map(|memory| &*memory.name).collect::<Vec<_>>();
    // The test's folder is the package's, and the compiler was given paths from the workspace's.
    assert_eq!(names.len(), 3);
    assert_eq!(names[..2], ["x", "y"]);
    let tile = &picture.memories[2];
    assert_eq!((tile.space, tile.columns, tile.bytes), ("shared", Some(33), 32 * 33 * 4));
    let total = |operation| picture.totals.iter().find(|total| total.operation == operation);
    // 8 warps, 4 rows each: a row is four sectors, and neither a row nor a column of the tile has a
    // conflict.
    let [load, store] = ["global-load", "shared-store"].map(|name| total(name).unwrap().clone());
    assert_eq!((load.requests, load.units, store.units), (32, 128, 32));
    assert_eq!(total("shared-load").unwrap().ideal, total("shared-load").unwrap().units);
}

/// Of one stage the fills have no other stage between them: the barriers tell them apart.
#[test]
fn a_single_stage_is_filled_and_read_in_every_phase() {
    use exercises::{attempt::attempt, list::find};
    let exercise = find("wait_for_copies").unwrap();
    let (kernel, order) = (exercise.solution.kernel, simt::check::Order::Forward);
    let data = exercise.launch.problem.data([16, 16, 64]);
    let launch = &exercise.launch;
    let attempt = attempt(kernel, launch, [16, 16, 64], &data, order, true).unwrap();
    assert!(attempt.is_right());
    let config = LaunchConfig::new([1; 3], kernel.declaration().block.unwrap());
    let picture = of_trace(exercise.name, &config, &attempt.trace);
    assert_eq!(picture.phases, 4);
    let stages = picture.stages.as_ref().unwrap();
    // The stage is A's tile. B's is another array.
    assert_eq!((stages.starts.len(), stages.bytes), (1, 16 * 16 * 4));
    assert_eq!(rounds(stages), 4);
    for warp in 0..8 {
        let own = picture.requests.iter().filter(|one| one.warp == warp);
        let own = own.map(|one| (one.phase, one.tick.unwrap())).collect::<Vec<_>>();
        assert!(own.is_sorted(), "{own:?}");
        let mut phases = own.iter().map(|(phase, _)| *phase).collect::<Vec<_>>();
        phases.dedup();
        assert_eq!(phases, [0, 1, 2, 3], "warp {warp}");
    }
    // The ticks at which copies to the stage begin, and at which it is read.
    let tile_a = picture.memories.iter().position(|one| one.space == "shared" && one.offset == 0);
    for (operation, what) in [("shared-copy", "bytes on their way"), ("shared-load", "read by")] {
        let of = |one: &&Drawn| one.operation == operation && one.memory == tile_a;
        let mut ticks = picture.requests.iter().filter(of).map(|one| one.tick.unwrap());
        assert!(ticks.all(|tick| stages.ticks[tick].what.contains(what)), "{operation}");
    }
}

#[test]
fn a_block_outside_the_grid_is_refused() {
    let entry = registry::find("tiled16").unwrap();
    let error = of_block(entry, shape([16, 16, 16]), [1, 0], 1).unwrap_err().to_string();
    assert_eq!(error, "block = 1,0: the grid has 1 x 1 blocks, counted from 0,0");
}
