//! A race with a copy that is not waited for says which copy it is, and what waits for it. (More
//! with products of warpgroups are in the exercises' tests.)

use simt::{
    LaunchConfig,
    check::{self, Example, Finding, Kind},
    checked,
};
use specimens::list::{SPECIMENS, find};

use crate::findings::{orders, run_checked};

const CP_ASYNC: &str = "(cp.async) is not waited for. Its thread must call copies::wait_group::<0> before this access; other threads need \
                        a barrier, or an mbarrier, after the wait";
const NO_GROUP: &str = "(cp.async) is not waited for. Its thread must call copies::commit_group and copies::wait_group::<0> before this \
                        access; other threads need a barrier, or an mbarrier, after the wait";
const LOAD: &str = "(TMA) is not waited for: no Mbarrier::wait (in a pipeline Consumer::wait) before this access tells of its end";
const STORE: &str = "(TMA), which may still read, is not waited for. Its thread must call bulk::wait_group_read::<0> before this access; \
                     other threads need a barrier, or an mbarrier, after the wait";
const SECOND_STORE: &str = "(TMA), which may still read, is not waited for. Its thread must call bulk::wait_group_read::<1> (or a smaller \
                            number) before this access; other threads need a barrier, or an mbarrier, after the wait";
const STORED: &str = "(TMA), which may still write, is not waited for. Its thread must call bulk::wait_group::<0> before this access; \
                      other threads need a barrier, or an mbarrier, after the wait";

/// Those findings of a specimen of that kind, in every order.
fn found(name: &str, kind: Kind) -> Vec<Finding> {
    let of_order = |order| run_checked(find(name).expect(name), order).0.findings;
    orders().flat_map(of_order).filter(|finding| finding.kind == kind).collect()
}

#[test]
fn a_race_with_a_copy_says_which_copy_and_what_waits_for_it() {
    for (name, kind, what) in [
        ("copy_not_waited_for", Kind::ReadAfterWrite, CP_ASYNC),
        ("copy_in_no_group", Kind::ReadAfterWrite, NO_GROUP),
        ("one_group_too_few", Kind::ReadAfterWrite, CP_ASYNC),
        ("one_buffer_for_two_copies", Kind::WriteAfterWrite, CP_ASYNC),
        ("written_under_a_copy", Kind::WriteAfterWrite, CP_ASYNC),
        ("copy_and_sync_warp", Kind::WriteAfterWrite, CP_ASYNC),
        ("waits_for_another_stage", Kind::ReadAfterWrite, LOAD),
        ("parity_not_turned", Kind::ReadAfterWrite, LOAD),
        ("bytes_of_one_box", Kind::ReadAfterWrite, LOAD),
        ("written_under_a_store", Kind::WriteAfterRead, STORE),
        ("waited_behind_the_barrier", Kind::WriteAfterRead, STORE),
        ("one_store_too_few", Kind::WriteAfterRead, SECOND_STORE),
        ("stored_again_too_early", Kind::WriteAfterWrite, STORED),
    ] {
        let findings = found(name, kind);
        assert!(!findings.is_empty(), "{name}");
        for finding in findings {
            let place = finding.other_place.as_ref().expect("a race has two places");
            assert_eq!(
                finding.detail,
                format!("the copy begun at {place} {what}"),
                "{name}: {finding}"
            );
            assert!(finding.to_string().contains(what), "{finding}");
        }
    }
}

mod products {
    use simt::checked::*;

    /// Two products in groups of their own, and a wait for neither; then the operands of one are
    /// overwritten.
    #[kernel(block = (128), dynamic_shared = 32_768, arch = 90)]
    pub fn overwritten_too_early(product: u32, mut y: Out<f32>) {
        let mut tile = dynamic_shared![Bf16];
        let t = thread::thread_idx_x() as usize;
        for i in 0..128 {
            tile[i * 128 + t] = Bf16::from_f32(1.0);
        }
        fence_proxy_async();
        thread::sync_threads();
        let mut sums = warpgroup::Accumulators::<16>::zeroed();
        for stage in 0..2 {
            let a = tile.operand::<warpgroup::KMajor<64>>(stage * 8192);
            let b = tile.operand::<warpgroup::MnMajor<64>>(stage * 8192 + 4096);
            sums.multiply_add(a, b);
            warpgroup::commit();
        }
        thread::sync_threads();
        if t == 0 {
            tile[product as usize * 8192] = Bf16::from_f32(2.0);
        }
        sums.wait::<0>().for_each(|_, _, value| y[t] = value);
    }
}

/// The advice has the number of groups that may stay in flight.
#[test]
fn a_product_that_is_not_waited_for_says_how_many_may_be_in_flight() {
    for (product, waits) in [
        (0u32, "must call Accumulators::wait::<1> (or warpgroup::wait::<1>), or with a smaller"),
        (1, "must call Accumulators::wait::<0> (or warpgroup::wait::<0>) before"),
    ] {
        for order in orders() {
            let mut y = vec![0.0; 128];
            let mut options = check::Options::default();
            options.order = order;
            let mut config = LaunchConfig::new([1, 1, 1], [128, 1, 1]);
            config.dynamic_shared = 32_768;
            // SAFETY: the memory outlives the launch, and nobody else uses it.
            let report = unsafe {
                let params = (product, checked::Out::new(y.as_mut_ptr(), y.len()));
                check::launch(&products::overwritten_too_early, &config, params, &options)
            }
            .expect("a report");
            let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
            assert_eq!(finding.kind, Kind::WriteAfterRead, "{report}");
            assert!(finding.detail.contains(waits), "{report}");
        }
    }
}

/// A copy that has been waited for, and a copy of another block, are in a race like any access.
#[test]
fn a_race_that_no_wait_mends_asks_for_none() {
    for (name, kind) in [
        ("copied_too_early", Kind::ReadAfterWrite),
        ("released_before_the_read", Kind::WriteAfterRead),
        ("two_blocks_store", Kind::WriteAfterWrite),
        ("two_writers", Kind::WriteAfterWrite),
    ] {
        let findings = found(name, kind);
        assert!(!findings.is_empty(), "{name}");
        findings.iter().for_each(|finding| assert_eq!(finding.detail, "", "{name}: {finding}"));
    }
}

#[test]
fn the_end_of_a_block_names_what_waits_for_the_copy() {
    for (name, waits) in [
        (
            "ends_before_its_copy",
            "must wait for it, by Mbarrier::wait (in a pipeline Consumer::wait)",
        ),
        ("ends_under_a_store", "must wait for it, by bulk::wait_group_read::<0>"),
        (
            "stored_in_no_group",
            "must wait for it, by bulk::commit_group and bulk::wait_group_read::<0>",
        ),
        ("ends_before_the_last_read", "must wait for it"),
    ] {
        let findings = found(name, Kind::EndedBlock);
        assert!(!findings.is_empty(), "{name}");
        findings.iter().for_each(|finding| assert!(finding.detail.ends_with(waits), "{finding}"));
    }
}

/// A thread is in a race with itself only where a copy or tensor cores made one of the accesses for
/// it, and its finding says so.
#[test]
fn no_thread_is_against_itself() {
    let (mut copies, mut accesses) = (0, 0);
    for specimen in SPECIMENS {
        for order in orders() {
            let (report, _) = run_checked(specimen, order);
            for finding in &report.findings {
                let text = finding.to_string();
                for Example { block, thread, other, in_flight, .. } in &finding.examples {
                    let own = *other == Some((*block, *thread));
                    let itself = format!("block {block:?} thread {thread:?}, element");
                    let mut lines = text.lines().filter(|line| line.trim().starts_with(&itself));
                    assert!(
                        lines.all(|line| !line.ends_with(&format!("against thread {thread:?}"))),
                        "{text}"
                    );
                    assert!(!own || !finding.detail.is_empty(), "{}: {text}", specimen.name());
                    copies += u32::from(own && *in_flight && text.contains("against its own copy"));
                    accesses +=
                        u32::from(own && !in_flight && text.contains("against its own access"));
                }
            }
        }
    }
    assert!(copies > 0 && accesses > 0, "{copies}, {accesses}");
    let [finding, ..] = &found("copy_not_waited_for", Kind::ReadAfterWrite)[..] else {
        panic!("a race")
    };
    let text = finding.to_string();
    assert!(
        text.contains("block [0, 0, 0] thread [0, 0, 0], element 0, against its own copy"),
        "{text}"
    );
    let [finding, ..] = &found("one_group_too_few", Kind::ReadAfterWrite)[..] else {
        panic!("a race")
    };
    let text = finding.to_string();
    assert!(
        text.contains("thread [0, 0, 0], element (1, 63), against a copy of thread [63, 0, 0]"),
        "{text}"
    );
}
