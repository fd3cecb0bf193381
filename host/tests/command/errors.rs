//! `errors`: the errors of a product over kinds of numbers and inner sizes.

use crate::common::{fails, finish, host, objects};

#[test]
fn on_the_cpu_only_inner_sizes_that_take_seconds_are_the_default() {
    let few = ["errors", "--numbers", "normal", "--outer", "8", "--rows", "4", "--seeds", "1"];
    let few = [&few[..], &["--device", "cpu", "--json"]].concat();
    let sizes = |more: &[&str]| {
        let (code, stdout, stderr) = finish(host(&[&few[..], more].concat()));
        assert_eq!(code, 0, "{stderr}");
        (objects(&stdout).iter().map(|line| line["k"].to_string()).collect::<Vec<_>>(), stderr)
    };
    let (inner, stderr) = sizes(&[]);
    assert_eq!(inner, ["64", "256", "1024"]);
    let left_out = "note: inner sizes of 4096,16384 take minutes on the CPU, and are left out: \
                    --inner 4096,16384 takes them\n";
    assert_eq!(stderr, left_out);
    // If asked for, all sizes run.
    let (inner, stderr) = sizes(&["--inner", "64,4096"]);
    assert_eq!((&inner[..], &*stderr), (&["64".to_owned(), "4096".to_owned()][..], ""));
}

#[test]
fn numbers_name_their_limits() {
    for (flag, value, limit) in [
        ("--inner", "x", "a whole number from 1 to 1048576"),
        ("--outer", "0", "a whole number from 1 to 16384"),
        ("--rows", "-", "a whole number from 1 to 4294967295"),
        ("--seeds", "101", "a whole number from 1 to 100"),
    ] {
        fails(host(&["errors", flag, value]), 2, &[flag, &format!("'{value}'"), limit]);
    }
}
