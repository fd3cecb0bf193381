//! Pipelines, mbarriers and clusters that are wrong in one way each: the error is found in every
//! order, with its source lines.

use simt::check::{Finding, Kind, Place};
use specimens::list::{SOURCES, find};

use super::findings::{orders, run_checked};

/// The text of a line of the specimens.
fn text(place: Option<&Place>) -> &'static str {
    let Some(place) = place else { return "" };
    let of_place = SOURCES.iter().find(|(file, _)| place.file.ends_with(file));
    let (_, source) = of_place.unwrap_or_else(|| panic!("{place} is in no specimen"));
    source.lines().nth(place.line as usize - 1).expect("the line is there").trim()
}

/// Checks that in every order a specimen has a finding for which `is_it` is true.
fn every_order_finds(name: &str, is_it: impl Fn(&Finding) -> bool) {
    let specimen = find(name).expect(name);
    for order in orders() {
        let (report, _) = run_checked(specimen, order);
        assert!(report.findings.iter().any(&is_it), "{name}: {report}");
    }
}

const LOAD: &str = "tiles.load_box(stage * BOX, &boxes, (0, number * ROWS, 0), producer.full());";
const READ: &str = "y[number * BOX + t] = tiles[stage * BOX + 63 - t];";

#[test]
fn races_are_found_in_every_order_and_name_both_lines() {
    for (name, one, other) in [
        // The order decides which of the two is first. A stage that is read before it was ever
        // filled has one line.
        ("waits_for_another_stage", LOAD, READ),
        ("released_before_the_read", LOAD, READ),
        ("released_for_the_warp", LOAD, READ),
        (
            "filled_without_a_wait",
            "tiles.load_box(stage * BOX, &boxes, (0, (first + round) * ROWS, 0), full.at(stage));",
            "y[(first + round) as usize * BOX + t] = tiles[stage * BOX + 63 - t];",
        ),
        ("one_reader_too_few", LOAD, "sum += tiles[stage * BOX + i];"),
        ("one_addition_too_few", "sum.atomic_add(0, 1);", "y[i] = sum[0] as f32;"),
        (
            "arrives_before_the_init",
            "told.at(0).init(64);",
            "told.at(0).arrive_remote(1 - cluster::block_rank());",
        ),
        (
            "bytes_of_one_box",
            "tiles.load_box(i * BOX, &boxes, (0, (first + i as u32) * ROWS, 0), full.at(0));",
            "y[(first as usize + i) * BOX + t] = tiles[i * BOX + 63 - t];",
        ),
        (
            "parity_not_turned",
            "tile.load_box(0, &boxes, (0, number * ROWS, 0), full.at(0));",
            "y[number as usize * BOX + t] = tile[63 - t];",
        ),
        (
            "no_fence_after_init",
            "tile.load_box(0, &boxes, (0, first * ROWS, col), full.at(0));",
            "full.at(0).init(1);",
        ),
        (
            "overlapping_stages",
            "tiles.load_box(stage * BOX / 2, &boxes, (0, number * ROWS, 0), producer.full());",
            "y[number as usize * BOX + t] = tiles[stage * BOX / 2 + 63 - t];",
        ),
        ("written_before_all_reads", "tile[t] = value + 1.0;", "let value = tile[63 - t];"),
        (
            "written_before_the_copy",
            "tile[t] = 0.0;",
            "tile.load_box(0, &boxes, (0, first * ROWS, col), full.at(0));",
        ),
        (
            "remote_read_too_early",
            "line[t] = x[i % n as usize];",
            "let four: [f32; 4] = other.load128(t / 4 * 4);",
        ),
        (
            "barrier_of_the_block_alone",
            "line[t] = x[i % n as usize];",
            "let four: [f32; 4] = other.load128(t / 4 * 4);",
        ),
    ] {
        every_order_finds(name, |finding| {
            let lines = [text(finding.place.as_ref()), text(finding.other_place.as_ref())];
            lines == [one, other] || lines == [other, one]
        });
    }
}

/// The line of a copy to both blocks.
const SEND: &str =
    "tiles.load_box_multicast(at, &boxes, (0, number * ROWS, 0), producer.full(), BOTH);";

#[test]
fn a_copy_to_a_block_that_is_not_ready_names_both_lines() {
    let read = "y[number as usize * BOX + t] = tiles[other + 63 - t] + 100.0 * tiles[own + t];";
    every_order_finds("released_to_its_block_alone", |finding| {
        let lines = [&finding.place, &finding.other_place].map(|place| text(place.as_ref()));
        finding.kind == Kind::ReadAfterWrite && lines == [read, SEND]
    });
    every_order_finds("sent_before_the_init", |finding| {
        let lines = [&finding.place, &finding.other_place].map(|place| text(place.as_ref()));
        finding.kind == Kind::ReadAfterWrite && lines == [SEND, "pipeline.init(64);"]
    });
}

/// The line of a copy to global memory.
const STORE: &str = "tile.store_box(0, &boxes, (0, number * ROWS, 0));";

#[test]
fn a_copy_to_global_memory_that_is_not_waited_for_names_both_lines() {
    let write = "tile[63 - t] = x[number as usize * BOX + t];";
    let (in_turns, write_in_turns) = (
        "tiles.store_box(tile, &boxes, (0, number * ROWS, 0));",
        "tiles[tile + 63 - t] = x[number as usize * BOX + t];",
    );
    let (first, again) = (
        "tile.store_box(0, &boxes, (0, first * ROWS, col));",
        "tile.store_box(0, &boxes, (0, first * ROWS, 0));",
    );
    for (name, kind, line, other) in [
        ("written_under_a_store", Kind::WriteAfterRead, write, STORE),
        ("waited_behind_the_barrier", Kind::WriteAfterRead, write, STORE),
        ("one_store_too_few", Kind::WriteAfterRead, write_in_turns, in_turns),
        (
            "stored_without_a_fence",
            Kind::ProxyFence,
            first,
            "tile[63 - t] = x[first as usize * BOX + t];",
        ),
        ("two_blocks_store", Kind::WriteAfterWrite, STORE, STORE),
        ("stored_again_too_early", Kind::WriteAfterWrite, again, again),
    ] {
        every_order_finds(name, |finding| {
            let lines = [&finding.place, &finding.other_place].map(|place| text(place.as_ref()));
            finding.kind == kind && lines == [line, other]
        });
    }
    // The conflict is in the output.
    every_order_finds("two_blocks_store", |finding| finding.memory.as_deref() == Some("buffer y"));
}

#[test]
fn a_stage_that_nobody_waits_for_is_a_race_or_has_never_been_filled() {
    every_order_finds("read_without_a_wait", |finding| match finding.kind {
        Kind::Uninitialised => text(finding.place.as_ref()) == READ,
        Kind::ReadAfterWrite => text(finding.other_place.as_ref()) == LOAD,
        _ => false,
    });
    // The order decides whether the mbarrier has been initialised by then.
    every_order_finds("no_barrier_after_init", |finding| match finding.kind {
        Kind::Uninitialised => text(finding.place.as_ref()) == "full.at(0).wait(0);",
        Kind::ReadAfterWrite => text(finding.other_place.as_ref()) == "full.at(0).init(1);",
        _ => false,
    });
}

#[test]
fn what_is_waited_for_in_vain_says_what_is_missing() {
    for (name, missing) in [
        ("one_reader_too_many", "for the end of a phase of parity 1"),
        ("bytes_that_never_come", "its phase 0 waits for 0 of 1 arrivals and 64 bytes"),
    ] {
        every_order_finds(name, |finding| {
            finding.kind == Kind::Deadlock
                && finding.detail.contains(missing)
                && finding.detail.contains("wait for an mbarrier at tests/specimens/src/kernels/")
        });
    }
    // The producer's message: one reader has not arrived.
    every_order_finds("one_reader_too_many", |finding| {
        finding.detail.contains("1 of 65 arrivals and 0 bytes")
    });
}

#[test]
fn a_box_that_begins_at_no_multiple_of_sixteen_bytes_names_its_column() {
    every_order_finds("stored_inside_sixteen_bytes", |finding| {
        finding.kind == Kind::Misaligned
            && finding.memory.as_deref() == Some("buffer y")
            && finding.detail.starts_with("write: a box that begins at column 6 of elements")
    });
    every_order_finds("begins_inside_sixteen_bytes", |finding| {
        let detail = "read: a box that begins at column 6 of elements of 4 bytes: it must begin at a multiple of \
                      sixteen bytes of the row";
        finding.kind == Kind::Misaligned
            && finding.memory.as_deref() == Some("buffer x")
            && text(finding.place.as_ref())
                == "tile.load_box(0, &boxes, (0, first * ROWS, col), full.at(0));"
            && finding.detail == detail
    });
}

#[test]
fn bytes_that_do_not_add_up_name_the_copy() {
    for (name, bytes) in [("bytes_not_announced", 64), ("bytes_of_one_box", 256)] {
        let wrong = format!("{bytes} more bytes were copied than announced");
        every_order_finds(name, |finding| {
            finding.kind == Kind::Transaction
                && finding
                    .detail
                    .starts_with("the copy begun at tests/specimens/src/kernels/tma.rs")
                && finding.detail.contains(&wrong)
        });
    }
}

#[test]
fn a_second_initialisation_names_its_line() {
    every_order_finds("initialised_again", |finding| {
        finding.kind == Kind::BarrierMisuse
            && finding
                .detail
                .contains("the mbarrier has been initialised before (at tests/specimens/")
    });
}

#[test]
fn the_end_of_a_block_names_what_it_comes_before() {
    for (name, line, what) in [
        (
            "ends_before_its_copy",
            "tiles.load_box(i * BOX, &boxes, (0, (first + i as u32) * ROWS, 0), full.at(i));",
            "a copy that completes, and block",
        ),
        (
            "sent_to_an_ended_block",
            "tile.load_box_multicast(0, &boxes, (0, first * ROWS, 0), full.at(0), BOTH);",
            "a copy that completes, and block",
        ),
        (
            "ends_under_a_store",
            "tile.store_box(0, &boxes, (0, first * ROWS, col));",
            "a copy that reads, and block",
        ),
        (
            "stored_in_no_group",
            "tile.store_box(0, &boxes, (0, first * ROWS, col));",
            "a copy that reads, and block",
        ),
        ("ends_without_a_drain", "consumer.release();", "an arrival, and block"),
        (
            "ends_before_the_last_read",
            "let four: [f32; 4] = other.load128(t / 4 * 4);",
            "a read, and block",
        ),
        (
            "ends_before_the_last_arrival",
            "told.at(0).arrive_remote(1 - cluster::block_rank());",
            "an arrival, and block",
        ),
    ] {
        every_order_finds(name, |finding| {
            finding.kind == Kind::EndedBlock
                && text(finding.place.as_ref()) == line
                && finding.detail.starts_with(what)
        });
    }
}

#[test]
fn lanes_at_two_cluster_barriers() {
    every_order_finds("two_cluster_barriers", |finding| {
        let lines = [&finding.place, &finding.other_place].map(|place| text(place.as_ref()));
        finding.kind == Kind::BarrierMismatch && lines == ["cluster::sync();"; 2]
    });
}

#[test]
fn threads_that_another_barrier_orders_are_in_a_race() {
    for (name, one, other) in [
        (
            "barrier_of_its_half_alone",
            "line[t] = x[i % n as usize];",
            "y[i % n as usize] = line[127 - t];",
        ),
        ("arrives_before_it_writes", "line[t] = x[i];", "y[i] = line[127 - t];"),
        ("arrives_and_does_not_wait", "line[t] = x[i];", "y[i] = line[127 - t];"),
    ] {
        every_order_finds(name, |finding| {
            let lines = [&finding.place, &finding.other_place].map(|place| text(place.as_ref()));
            lines == [one, other] || lines == [other, one]
        });
    }
}

#[test]
fn a_named_barrier_that_is_used_wrongly_says_how() {
    for (name, kind, detail) in [
        (
            "one_barrier_for_both_halves",
            Kind::BarrierMismatch,
            "this thread may arrive before that round",
        ),
        (
            "one_warp_too_many",
            Kind::Deadlock,
            "of id 1: its round 0 waits for 32 of 96 threads; threads of the block: ",
        ),
        (
            "half_a_warp_comes",
            Kind::Deadlock,
            "waits for 32 of 128 threads, and for the other lanes of 16 threads that have arrived",
        ),
        ("arrives_again", Kind::BarrierMisuse, "named barrier 1: a thread arrives again"),
        ("one_id_for_two", Kind::BarrierMisuse, "each id is for one barrier"),
    ] {
        every_order_finds(name, |finding| finding.kind == kind && finding.detail.contains(detail));
    }
    // Its heading does not speak of different barriers: there is one.
    every_order_finds("one_barrier_for_both_halves", |finding| {
        let text = "an arrival that may be counted in a barrier's previous round";
        finding.kind == Kind::BarrierMismatch && finding.to_string().starts_with(text)
    });
}

/// What stops a thread has a place of its own, and not in its text alone.
#[test]
fn what_stops_a_thread_has_its_place() {
    for (name, kind, line) in [
        ("one_reader_too_many", Kind::Deadlock, "consumer.wait()"),
        ("bytes_not_announced", Kind::Transaction, "tile.load_box("),
        ("initialised_again", Kind::BarrierMisuse, ".init("),
        ("waits_for_no_arrival", Kind::BarrierMisuse, "cluster::wait();"),
        ("arrives_again", Kind::BarrierMisuse, "arrive();"),
        ("wrong_mask", Kind::Deadlock, "warp::"),
    ] {
        every_order_finds(name, |finding| {
            finding.kind == kind
                && finding.place.as_ref().is_some_and(|place| text(Some(place)).contains(line))
        });
    }
}
