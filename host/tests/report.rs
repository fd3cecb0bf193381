//! The built command's `report`: what the file has, and what it says of what was left out.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;
#[path = "common/folder.rs"]
mod folder;

use std::fs;

use host::gpu::registry::KERNELS;

use self::{
    common::{fails, host, shows},
    folder::Folder,
};

#[test]
fn a_report_of_the_cpu_in_little_time() {
    let folder = Folder::new();
    let at = folder.text("new/report");
    let args = ["report", &at, "--device", "cpu", "--seconds", "5", "--commit", "abc123"];
    shows(host(&args), &[" 0 wrong, ", " 0 failures"]);
    let report = fs::read_to_string(folder.path("new/report/report.md")).unwrap();
    let has = |line: &str| assert!(report.contains(line), "`{line}` is missing: {report}");
    has("# Report: ");
    has("| commit | abc123 |");
    has(&format!("| program | {}, ", env!("CARGO_PKG_VERSION")));
    // The first family is verified, with an error below its bound.
    let row = |start: &str| {
        let line = report.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no line `{start}`: {report}"));
        line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    let gemm = row("| gemm | f32 |");
    assert!(gemm[4] != "0" && gemm[5] == "0", "{gemm:?}");
    let [err, over] = [&gemm[6], &gemm[7]].map(|cell| cell.parse::<f64>().unwrap());
    assert!(err > 0.0 && err < 1e-6 && over > 0.0 && over < 1.0, "{gemm:?}");
    // A size is timed.
    has("## Times: f32");
    let timed = row("| 32x32x32 | gemm_f32_");
    assert!(timed[3].ends_with('s') && timed[4].contains("FLOP/s"), "{timed:?}");
    let table = fs::read_to_string(folder.path("new/report/results.csv")).unwrap();
    assert!(table.starts_with("device,") && table.lines().count() > 1, "{table}");
}

#[test]
fn what_there_is_no_time_for_is_named() {
    let folder = Folder::new();
    // Less than it takes to begin.
    let args = ["report", &folder.text("new"), "--device", "cpu", "--seconds", "0.001"];
    shows(host(&args), &[" 0 products verified, 0 wrong, 0 sizes timed, "]);
    let report = fs::read_to_string(folder.path("new/report.md")).unwrap();
    let kernels = report.lines().filter_map(|line| {
        let of = line.strip_prefix("- verification of ")?;
        let (_, of) = of.strip_suffix(" kernels, for want of time")?.rsplit_once(": ")?;
        let (without, all) = of.split_once(" of ")?;
        assert_eq!(without, all, "{line}");
        all.parse::<usize>().ok()
    });
    let products = KERNELS.iter().filter_map(|entry| entry.product.as_ref());
    let products = products.filter(|product| !product.is_lesson());
    assert_eq!(kernels.sum::<usize>(), products.count(), "{report}");
    assert!(report.contains("\n- times of f32, for want of time: 32x32x32, "), "{report}");
}

#[test]
fn without_a_gpu_there_is_no_report_of_one() {
    let folder = Folder::new();
    fails(host(&["report", &folder.text("new")]), 3, &["no NVIDIA driver"]);
    assert_eq!(folder.files(), Vec::<String>::new());
    let args = ["report", &folder.text("new"), "--device", "cpu", "--seconds", "0"];
    fails(host(&args), 2, &["--seconds", "0.001 to 3600"]);
}
