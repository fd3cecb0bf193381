//! The counts of a profile, compared with counts by hand.

use std::num::NonZeroU32;

use simt::{
    LaunchConfig,
    check::{self, Line, Operation, Profile},
    checked,
};
use specimens::list::find;

/// tiled16's profile of an m x n x k product. One block in `every` is counted.
fn tiled16(m: usize, n: usize, k: usize, every: u32) -> Profile {
    let (a, b) = (vec![1.0f32; m * k], vec![1.0f32; k * n]);
    let mut c = vec![f32::NAN; m * n];
    let mut options = check::Options::default();
    options.profile = NonZeroU32::new(every);
    let grid = [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1];
    let config = LaunchConfig::new(grid, [16, 16, 1]);
    // SAFETY: the vectors outlive the launch, and nobody else uses them.
    let report = unsafe {
        let params = (
            m as u32,
            n as u32,
            k as u32,
            checked::In::new(a.as_ptr(), a.len()),
            checked::In::new(b.as_ptr(), b.len()),
            checked::Out::uninit(c.as_mut_ptr(), c.len()),
        );
        check::launch(&gpu::checked::lessons::tiled::tiled16, &config, params, &options)
    };
    let report = report.expect("not cancelled");
    assert!(report.is_clean(), "{report}");
    report.profile.expect("it was asked for")
}

fn lines(profile: &Profile, operation: Operation) -> Vec<&Line> {
    profile.lines.iter().filter(|line| line.operation == operation).collect()
}

#[test]
fn an_aligned_product() {
    let profile = tiled16(64, 64, 32, 1);
    let (blocks, warps, phases) = (16, 8, 2);
    assert_eq!((profile.blocks, profile.sampled), (blocks, blocks));
    let requests = blocks * warps * phases;

    let loads = lines(&profile, Operation::GlobalLoad);
    assert_eq!(loads.len(), 2, "A and B: {loads:?}");
    for load in loads {
        // A warp loads two rows of sixteen floats: two sectors each.
        assert_eq!((load.requests, load.lanes), (requests, requests * 32));
        assert_eq!((load.units, load.ideal, load.width), (requests * 4, requests * 4, 4));
    }
    let [store] = lines(&profile, Operation::GlobalStore)[..] else { panic!("one store") };
    assert_eq!((store.requests, store.units), (blocks * warps, blocks * warps * 4));

    let reads: u64 = lines(&profile, Operation::SharedLoad).iter().map(|l| l.requests).sum();
    let wavefronts: u64 = lines(&profile, Operation::SharedLoad).iter().map(|l| l.units).sum();
    assert_eq!((reads, wavefronts), (requests * 32, requests * 32), "no bank conflicts");
    assert_eq!(profile.total(Operation::SharedStore, |l| l.requests), (requests * 2) as f64);
    assert_eq!(profile.total(Operation::Fma, |l| l.lanes), (64 * 64 * 32) as f64);
    // Two barriers for each phase.
    assert_eq!(profile.total(Operation::Barrier, |l| l.requests), (requests * 2) as f64);
    assert_eq!(profile.divergent_intervals, 0);
}

#[test]
fn a_table_has_each_line_s_whole_path_and_its_text() {
    let profile = tiled16(64, 64, 32, 1);
    let source =
        |place: &check::Place| (place.line == profile.lines[0].place.line).then_some(" text ");
    let table = profile.table(source).to_string();
    let rows = table.lines().collect::<Vec<_>>();
    let file = "gpu/src/lessons/tiled.rs";
    let at = |line: &Line| format!("{file}:{}", line.place.line);
    assert_eq!(
        rows[..4],
        [
            "column  operation     bytes       requests  lanes     units a request  ideal",
            &format!("{}  text", at(&profile.lines[0])),
            "    15  shared-store      4            256   32.0     1.00 wavefronts   1.00",
            "    55  global-load       4            256   32.0     4.00 sectors      4.00",
        ]
    );
    let (barrier, fma) = ("     9  barrier                        256 warps", " 131072 threads");
    assert!(rows.contains(&barrier) && rows.iter().any(|row| row.ends_with(fma)), "{table}");
    // Each line has one heading, and without a text that is its place.
    assert_eq!(rows.iter().filter(|row| row.starts_with(file)).count(), 6, "{table}");
    assert!(rows.contains(&&*at(&profile.lines[profile.lines.len() - 1])), "{table}");
    let end = "0.0 % of the warps' intervals between waits were divergent; 16 of 16 blocks counted";
    assert_eq!(profile.with_source(source).to_string(), format!("{table}{end}"));
}

#[test]
fn a_ragged_product_takes_more_sectors_than_its_bytes_need() {
    // The figures of the first prototype of this profile, which counted words instead of bytes.
    let profile = tiled16(1000, 513, 700, 16);
    let loads = lines(&profile, Operation::GlobalLoad);
    let [a, b] = loads[..] else { panic!("A and B: {loads:?}") };
    let each = |line: &Line| line.units as f64 / line.requests as f64;
    assert!((each(a) - 4.98).abs() < 0.03, "{}", each(a));
    assert!((each(b) - 5.64).abs() < 0.03, "{}", each(b));
    assert!((125..135).contains(&profile.sampled), "{}", profile.sampled);
    // Every thread of the grid multiplies in all 44 phases of sixteen steps, also outside C.
    let fmas = profile.total(Operation::Fma, |line| line.lanes);
    let exact = (profile.blocks * 256 * 44 * 16) as f64;
    assert!((fmas - exact).abs() < 1e-6 * exact, "{fmas} {exact}");
}

#[test]
fn bank_conflicts_and_divergence() {
    let profile_of = |name: &str| {
        let specimen = find(name).expect("listed");
        let mut options = check::Options::default();
        options.profile = NonZeroU32::new(1);
        let report = specimen.check(&specimen.x(), &mut specimen.y(), &options);
        report.expect("not cancelled").profile.expect("asked for")
    };
    let padded = profile_of("padded_transpose");
    let [read] = lines(&padded, Operation::SharedLoad)[..] else { panic!("one read") };
    assert_eq!(read.units, read.requests, "a padded column lies in 32 banks");

    let vectors = profile_of("vectors");
    for line in vectors.lines.iter().filter(|line| line.operation != Operation::Barrier) {
        assert_eq!((line.width, line.units), (16, line.ideal), "{line:?}");
    }

    let skipped = profile_of("early_exit");
    assert!(skipped.divergent_intervals > 0, "some lanes of the last warp leave early");
    assert!(skipped.divergent_intervals < skipped.warp_intervals);
}
