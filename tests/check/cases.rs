//! `#[check]`: a function whose launches are tests, and what it says of a kernel that is wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};

use simt::{
    LaunchConfig, check,
    check::{Options, Report},
    checked::*,
    cpu::Stop,
};
use specimens::list;

/// y = a x, a thread an element.
#[kernel(block = (32), len(x = n, y = n))]
fn scaled(n: u32, a: f32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 32 + thread::thread_idx_x()) as usize;
    if i < n as usize {
        y[i] = a * x[i];
    }
}

/// A case of several values is a tuple.
#[check((1, 2.0), (33, -1.0))]
fn scaled_is_right(n: usize, a: f32, mut options: Options) -> Result<(), Stop> {
    options.complete = true;
    let (x, mut y) = (vec![3.0; n], vec![0.0; n]);
    let config = LaunchConfig::new([n.div_ceil(32) as u32, 1, 1], [32, 1, 1]);
    // SAFETY: the vectors outlive the launch, and nothing else uses them.
    unsafe {
        let (x, y) = (In::new(x.as_ptr(), n), Out::uninit(y.as_mut_ptr(), n));
        check::launch(&scaled, &config, (n as u32, a, x, y), &options)?;
    }
    assert!(y.iter().all(|&y| y == 3.0 * a));
    Ok(())
}

fn specimen(name: &str, options: &Options) -> Report {
    let specimen = list::find(name).unwrap();
    let (x, mut y) = (specimen.x(), specimen.y());
    specimen.check(&x, &mut y, options).unwrap()
}

#[check]
fn a_case_may_have_no_values(options: Options) {
    specimen("double_buffer", &options);
}

/// The panic's message of a function of these cases.
fn says<R: check::Outcome>(cases: &[&str], run: impl Fn(usize, Options) -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| check::run_cases("tests::f", cases, run)));
    *panic.unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn a_finding_of_several_cases_is_told_once() {
    let said = says(&["1", "2", "(3, 4)", "5"], |case, options| match case {
        0 => specimen("double_buffer", &options),
        _ => specimen("two_writers", &options),
    });
    let title = "1 finding in f:\n\nerror[write-after-write]: race: a write after a write, in the shared array";
    assert!(said.starts_with(title), "{said}");
    for part in [
        "  --> tests/specimens/src/kernels/races.rs:38:9\n",
        "note: wrote here\n",
        "  = note: in f(2), f(3, 4), f(5); in each of 10 orders\n",
        "  = help: let one thread write each element",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

/// What a kernel with a race computes may be wrong: its race is told, and not the comparison.
#[test]
fn a_race_comes_before_a_wrong_result() {
    let said = says(&["1"], |_, options| -> Report {
        specimen("two_writers", &options);
        panic!("a wrong result");
    });
    assert!(said.starts_with("1 finding in f:"), "{said}");
}

#[test]
fn what_is_no_finding_names_its_case() {
    let said = says(&["7"], |_, _| {});
    assert_eq!(said, "f(7), order forward: it makes no checked launch with its `options`");
    let said = says(&[""], |_, options| {
        specimen("double_buffer", &options);
        Err::<(), _>("no input")
    });
    assert_eq!(said, "f, order forward: \"no input\"");
    let said = says(&["7"], |_, options| -> Report {
        let report = specimen("double_buffer", &options);
        panic!("a wrong result of {}", report.kernel);
    });
    assert_eq!(said, "a wrong result of double_buffer");
}
