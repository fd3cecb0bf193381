//! Each specimen is wrong in one way, and that is found. Correct specimens have no findings.

use std::collections::BTreeSet;

use simt::{
    check::{self, Kind, Order, Report},
    checked, cpu,
};
use specimens::{
    checked::kernels::clean::overlapping_reads,
    list::{SPECIMENS, Specimen, Versions, find},
};

/// Orders in which every specimen is run.
pub(super) fn orders() -> impl Iterator<Item = Order> {
    [Order::Forward, Order::Reverse].into_iter().chain((1..=10).map(Order::Random))
}

pub(super) fn run_checked(specimen: &Specimen, order: Order) -> (Report, Vec<f32>) {
    let mut y = specimen.y();
    let mut options = check::Options::default();
    options.order = order;
    options.complete = !specimen.zeroed;
    // Blocks that wait for each other: which of two accesses comes first is then a matter of order
    // alone.
    options.workers = matches!(specimen.kernel, Versions::Words(..)).then_some(1);
    let report = specimen.check(&specimen.x(), &mut y, &options);
    (report.expect("not cancelled"), y)
}

fn run_fast(specimen: &Specimen) -> Vec<f32> {
    let mut y = specimen.y();
    // SAFETY: this specimen is clean, as the test has checked.
    unsafe { specimen.run(&specimen.x(), &mut y) }.expect("a clean kernel runs");
    y
}

#[test]
fn each_specimen_has_what_is_wrong_with_it_and_nothing_else() {
    for specimen in SPECIMENS {
        let name = specimen.name();
        let expected: BTreeSet<Kind> = specimen.finds.iter().copied().collect();
        let mut found = BTreeSet::new();
        for order in orders() {
            let (report, _) = run_checked(specimen, order);
            assert_eq!(report.is_clean(), expected.is_empty(), "{name}, {order}: {report}");
            let kinds = report.findings.iter().map(|finding| finding.kind);
            let unexpected: Vec<_> =
                kinds.clone().filter(|kind| !expected.contains(kind)).collect();
            assert!(unexpected.is_empty(), "{name}, {order}: {unexpected:?} in {report}");
            found.extend(kinds);
        }
        assert_eq!(found, expected, "{name}: all that is expected is found in some order");
    }
}

#[test]
fn a_clean_specimen_gives_the_same_in_every_order_and_in_the_fast_version() {
    for specimen in SPECIMENS.iter().filter(|specimen| specimen.finds.is_empty()) {
        let expected = run_fast(specimen);
        for order in orders() {
            let (_, y) = run_checked(specimen, order);
            assert_eq!(y, expected, "{}, {order}", specimen.name());
        }
    }
}

#[test]
fn shuffles_and_votes_give_what_they_should() {
    let specimen = find("warp_sum").expect("it is in the list");
    let (x, y) = (specimen.x(), run_fast(specimen));
    let warp = |w: usize| &x[32 * w..x.len().min(32 * w + 32)];
    for (i, y) in y.iter().enumerate() {
        let lanes = warp(i / 32);
        assert_eq!(*y, lanes.iter().sum::<f32>() + lanes.len() as f32 + 1.0, "element {i}");
    }
}

#[test]
fn votes_and_reductions_give_what_they_should() {
    let specimen = find("votes_of_the_block").expect("it is in the list");
    let (x, y) = (specimen.x(), run_fast(specimen));
    for (i, y) in y.iter().enumerate() {
        // A block's threads take x in turns of its length.
        let of = |t: usize| x[(i / 64 * 64 + t) % x.len()] as u32;
        let even = (0..64).filter(|&t| of(t) % 2 == 0).count() as u32;
        let last = u32::from((0..64).any(|t| of(t) == 19));
        assert_eq!(*y, (even + 100 * (1 - last) + 1000 * last) as f32, "element {i}");
    }
    let specimen = find("reductions_of_the_warp").expect("it is in the list");
    let (x, y) = (specimen.x(), run_fast(specimen));
    for (i, y) in y.iter().enumerate() {
        let of = |lane: usize| x[(i / 32 * 32 + lane) % x.len()] as u32;
        let all = (0..32).map(of).collect::<Vec<_>>();
        let same = all.iter().filter(|&&other| other % 4 == of(i % 32) % 4).count() as u32;
        let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
        let sum = all.iter().sum::<u32>() + 2 * (least + 3);
        let by = |f: fn(u32, u32) -> u32| all.iter().copied().reduce(f).unwrap();
        let bits = by(|a, b| a | b) ^ (by(|a, b| (a | 32) & (b | 32)) | 32);
        assert_eq!(*y, (same + sum + bits + by(|a, b| a ^ b) + most) as f32, "element {i}");
    }
    let specimen = find("added_by_those_who_are_here").expect("it is in the list");
    let count = specimen.x().iter().filter(|&&x| x > 3.0).count();
    assert_eq!(run_fast(specimen)[0], count as f32);
    let y = run_fast(find("operations_of_integers").expect("it is in the list"));
    let parity = (0..128).fold(0, |all, number: u32| all ^ ((1 << (number % 64 % 31)) + number));
    let all = [127, 0, (1 << 31) - 1, 0, parity, 7, 9];
    assert_eq!(y[..7], all.map(|of| of as f32));
}

#[test]
fn a_race_names_threads_element_and_both_lines() {
    let (report, _) = run_checked(find("two_writers").expect("listed"), Order::Forward);
    let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
    assert_eq!(finding.kind, Kind::WriteAfterWrite);
    assert_eq!(finding.kernel, "two_writers");
    // 64 threads of 2 blocks. Every second one conflicts with another's write.
    assert_eq!(finding.count, 64);
    assert_eq!(finding.examples.len(), 3);
    let first = &finding.examples[0];
    assert_eq!((first.block, first.thread), ([0, 0, 0], [1, 0, 0]));
    assert_eq!(first.other, Some(([0, 0, 0], [0, 0, 0])));
    assert_eq!(first.element, Some(0));
    let place = finding.place.as_ref().expect("a race has a place");
    assert_eq!(finding.other_place.as_ref(), Some(place));
    assert!(place.file.ends_with("specimens/src/kernels/races.rs"), "{place}");
    let source = include_str!("../specimens/src/kernels/races.rs");
    let line = source.lines().nth(place.line as usize - 1).expect("the line is there");
    assert_eq!(line.trim(), "line[t / 2] = x[i % n as usize];");
    let text = report.to_string();
    assert!(text.contains("32 elements of 4 bytes declared at"), "{text}");
}

/// It is a race all the same, and the finding says so: in its text, and in a field for who allows
/// it.
#[test]
fn a_race_of_equal_values_says_that_they_are_equal() {
    let same = "each of these writes seems to have written the value that was there already";
    for (name, expected) in
        [("all_write_one_value", true), ("two_writers", false), ("two_blocks_write", false)]
    {
        for order in orders() {
            let (report, _) = run_checked(find(name).expect("listed"), order);
            let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
            assert_eq!(finding.same_value, expected, "{report}");
            assert_eq!(finding.detail.starts_with(same), expected, "{report}");
        }
    }
}

#[test]
fn a_finding_shows_the_lines_whose_text_is_known() {
    let (report, _) = run_checked(find("read_too_early").expect("listed"), Order::Forward);
    let source = include_str!("../specimens/src/kernels/races.rs");
    let race = report.findings.iter().find(|f| f.kind == Kind::ReadAfterWrite).expect("a race");
    let text = race.with_source(|place| source.lines().nth(place.line as usize - 1)).to_string();
    let lines = text.lines().collect::<Vec<_>>();
    assert!(lines[1].starts_with("    reads ") && lines[4].starts_with("    wrote "), "{text}");
    assert_eq!(lines[2], "           y[i] = line[63 - t];");
    assert_eq!(lines[3], "                      ^"); // under the index
    assert_eq!(lines[5..7], ["           line[t] = x[i];", "               ^"]);
    // A program that has the sources, as a test does, need not name them.
    assert_eq!(race.to_string(), text);
    assert!(report.to_string().contains(&text));
    assert!(!race.with_source(|_| None).to_string().contains("line[t]"));
}

#[test]
fn an_order_reads_as_it_is_shown() {
    for order in [Order::Forward, Order::Reverse, Order::Random(0), Order::Random(u64::MAX)] {
        assert_eq!(order.to_string().parse(), Ok(order));
    }
    for wrong in ["", "Forward", "random", "random:", "random:-1", "random:18446744073709551616"] {
        assert!(wrong.parse::<Order>().is_err(), "{wrong}");
    }
}

#[test]
fn between_blocks_both_blocks_are_named() {
    let (report, _) = run_checked(find("two_blocks_write").expect("listed"), Order::Forward);
    let race = report.findings.iter().find(|f| f.kind == Kind::WriteAfterWrite).expect("a race");
    assert_eq!(race.memory.as_deref(), Some("buffer y"));
    for example in &race.examples {
        let (other_block, other) = example.other.expect("the other thread is known");
        assert_ne!(other_block, example.block);
        assert_eq!(other_block[0] / 2, example.block[0] / 2, "they share their elements");
        assert_eq!(other, example.thread);
    }
}

#[test]
fn a_race_on_a_byte_is_not_one_on_its_word() {
    let (report, _) = run_checked(find("bytes_read_too_early").expect("listed"), Order::Forward);
    for example in report.findings.iter().flat_map(|finding| &finding.examples) {
        let (thread, element) = (example.thread[0] as usize, example.element.expect("an element"));
        assert_eq!(element / 2, thread / 2, "a thread and its neighbour: {report}");
    }
}

#[test]
fn a_deadlock_says_who_waits_where() {
    let (report, _) = run_checked(find("wrong_mask").expect("listed"), Order::Forward);
    let deadlock = report.findings.iter().find(|f| f.kind == Kind::Deadlock).expect("a deadlock");
    for part in
        ["ballot at", "warps.rs", "lane 16 waits at the block's barrier", "16 at the ballot"]
    {
        assert!(deadlock.detail.contains(part), "{part}: {}", deadlock.detail);
    }
}

/// Weights, which a `dependent` kernel loads before it waits.
#[test]
fn what_no_earlier_launch_writes_may_be_read_before_the_wait() {
    let specimen = find("read_before_the_wait").expect("listed");
    let check = |early| {
        let mut options = check::Options::default();
        options.early = vec![early];
        specimen.check(&specimen.x(), &mut specimen.y(), &options).expect("a report")
    };
    let report = check("x");
    assert!(report.is_clean(), "{report}");
    for (early, kind, says) in
        [("y", Kind::BeforeWait, "Options::early"), ("z", Kind::Launch, "z of")]
    {
        let report = check(early);
        let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
        assert!(finding.kind == kind && finding.detail.contains(says), "{report}");
    }
}

#[test]
fn a_launch_that_breaks_the_declaration_is_a_finding() {
    let specimen = find("overlapping_reads").expect("listed");
    let mut config = specimen.config();
    config.block = [32, 1, 1];
    let (x, mut y) = (specimen.x(), specimen.y());
    // SAFETY: the vectors outlive the launch.
    let report = unsafe {
        let params = (
            specimen.n,
            checked::In::new(x.as_ptr(), x.len()),
            checked::Out::uninit(y.as_mut_ptr(), y.len()),
        );
        check::launch(&overlapping_reads, &config, params, &check::Options::default())
    }
    .expect("a report");
    let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
    assert_eq!(finding.kind, Kind::Launch);
    assert_eq!(finding.detail, "block = [32, 1, 1]: the kernel declares [64, 1, 1]");
}

#[test]
fn the_seed_of_a_report_repeats_it() {
    let specimen = find("written_too_early").expect("listed");
    for order in [Order::Random(3), Order::Random(4)] {
        let (first, _) = run_checked(specimen, order);
        let (second, _) = run_checked(specimen, first.order);
        assert_eq!(first.findings, second.findings);
    }
}

#[test]
fn a_checked_kernel_in_a_fast_launch_says_how_to_launch_it() {
    let specimen = find("overlapping_reads").expect("listed");
    let (x, mut y) = (specimen.x(), specimen.y());
    // SAFETY: the vectors outlive the launch.
    let stop = unsafe {
        let params = (
            specimen.n,
            checked::In::new(x.as_ptr(), x.len()),
            checked::Out::new(y.as_mut_ptr(), y.len()),
        );
        cpu::launch(&overlapping_reads, &specimen.config(), params, &cpu::Options::default())
    };
    let message = stop.expect_err("it cannot run").to_string();
    assert!(message.contains("simt::check::launch"), "{message}");
}
