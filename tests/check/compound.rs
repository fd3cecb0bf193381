//! `x[i] += v` in a kernel: the element is read, and written.

use std::num::NonZeroU32;

use simt::{
    LaunchConfig,
    check::{self, Kind, Operation, Order, Report},
    checked, cpu, device,
};

#[allow(clippy::duplicate_mod, dead_code, reason = "compiled a second time, and one kernel runs")]
#[path = "compound"]
mod fast {
    use simt::device;

    pub mod kernels;
}

#[path = "compound"]
mod watched {
    use simt::checked as device;

    pub mod kernels;
}

const N: usize = 32;

fn x() -> Vec<f32> {
    (0..N).map(|i| i as f32).collect()
}

fn run(
    kernel: &simt::Kernel<(u32, checked::In<f32>, checked::Out<f32>)>,
    is_zero: bool,
    order: Order,
) -> (Report, Vec<f32>) {
    let (x, mut y) = (x(), vec![0.0; N]);
    let mut options = check::Options::default();
    options.order = order;
    options.profile = Some(NonZeroU32::MIN);
    // SAFETY: both outlive the launch and nobody else uses them. The kernels take views.
    let report = unsafe {
        let to = match is_zero {
            true => checked::Out::new(y.as_mut_ptr(), N),
            false => checked::Out::uninit(y.as_mut_ptr(), N),
        };
        let params = (N as u32, checked::In::new(x.as_ptr(), N), to);
        check::launch(kernel, &LaunchConfig::new([1; 3], [32, 1, 1]), params, &options)
    };
    (report.expect("not cancelled"), y)
}

#[test]
fn any_place_compiles_and_its_element_is_read_and_written() {
    let (report, y) = run(&watched::kernels::all_sorts_of_places, true, Order::Forward);
    assert!(report.is_clean(), "{report}");
    // 1 + x, less 4 - (1 + x), then own (1 + 1) and of_own (2), then row (13 + 1).
    let expected = x().iter().map(|x| 2.0 * (1.0 + x) - 4.0 + 4.0 + 14.0).collect::<Vec<_>>();
    assert_eq!(y, expected);
    let mut fast = vec![0.0; N];
    let from = x();
    // SAFETY: as above; the checked launch found nothing.
    unsafe {
        let to = device::Out::new(fast.as_mut_ptr(), N);
        let params = (N as u32, device::In::new(from.as_ptr(), N), to);
        let config = LaunchConfig::new([1; 3], [32, 1, 1]);
        let kernel = &fast::kernels::all_sorts_of_places;
        cpu::launch(kernel, &config, params, &cpu::Options::default())
            .expect("a clean kernel runs");
    }
    assert_eq!(fast, expected);
    let profile = report.profile.expect("asked for");
    let lanes = |operation| profile.total(operation, |line| line.lanes);
    // x once. Of y four compound assignments, and y[t] once more.
    assert_eq!(lanes(Operation::GlobalLoad), 32.0 * (1.0 + 4.0 + 1.0));
    assert_eq!(lanes(Operation::GlobalStore), 32.0 * 4.0);
    // Three first values, and five compound assignments; rows twice, and row once.
    assert_eq!(lanes(Operation::SharedLoad), 32.0 * (5.0 + 3.0));
    assert_eq!(lanes(Operation::SharedStore), 32.0 * (3.0 + 5.0));
}

#[test]
fn a_sum_of_what_nobody_has_written_is_found() {
    for order in [Order::Forward, Order::Reverse, Order::Random(1)] {
        let (report, _) = run(&watched::kernels::by_a_function, false, order);
        let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
        // What the function reads is not seen: 16 threads call it.
        assert_eq!((finding.kind, finding.count), (Kind::Uninitialised, 16), "{report}");
        let place = finding.place.as_ref().expect("it has a place");
        let line =
            include_str!("compound/kernels.rs").lines().nth(place.line as usize - 1).unwrap();
        assert_eq!(line.trim(), "y[t] += x[t];");
        assert_eq!(line.chars().nth(place.column as usize - 1), Some('['));
    }
}

#[test]
fn a_matrix_has_a_capital() {
    let (report, _) = run(&watched::kernels::in_capitals, false, Order::Forward);
    let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
    assert_eq!((finding.kind, finding.count), (Kind::Uninitialised, 32), "{report}");
}

#[test]
fn two_threads_that_add_to_one_element_are_in_a_race_both_ways() {
    for order in [Order::Forward, Order::Reverse, Order::Random(1)] {
        let (report, _) = run(&watched::kernels::two_add, false, order);
        let kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
        assert_eq!(kinds, [Kind::ReadAfterWrite, Kind::WriteAfterWrite], "{report}");
    }
}
