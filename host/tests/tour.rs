//! The built command's `tour`, and what it says where nothing was asked of it.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;

use self::common::{finish, host, prints};

#[test]
fn the_tour_shows_a_kernel_its_sectors_a_race_and_three_rungs() {
    let stdout = prints(host(&["tour"]));
    let mut rest = &*stdout;
    for part in [
        "1 of 4: a kernel. basic: ",
        "\nverified  exact on integers",
        "\n2 of 4: ",
        "sum = fma(a[row * k + p], b[p * n + col], sum);",
        "The loads take 2.0 sectors on average, and 1.5 would\ndo. For each byte that is asked for there are 0.25 FLOP.\n",
        "\n3 of 4: a race.",
        "\nrace: a read after a write, in the shared array of 256 elements of 4 bytes",
        "host/src/cli/tour.rs",
        "y[first + i] = tile[BLOCK - 1 - i];",
        "tile[i] = x[first + i];",
        "Other findings: 2. With `thread::sync_threads();` between the two lines: nothing found.\n",
        "\n4 of 4: three rungs",
        "\nbasic                      200.0           0.0          0.25\n",
        "tiled16                     12.5         200.0          4.00\n",
        "register_blocked ",
        "\nGo on with one of\n",
        "cargo run -p host -- explain tiled16 --html page.html",
        "cargo run -p exercises",
        "cargo xtask new ",
    ] {
        let place = rest.find(part).unwrap_or_else(|| panic!("{part}: {stdout}"));
        rest = &rest[place + part.len()..];
    }
    let longest = stdout.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest <= 130), "{longest:?}: {stdout}");
}

#[test]
fn without_arguments_three_commands_are_named() {
    let (code, stdout, stderr) = finish(host(&[]));
    assert_eq!((code, &*stdout), (2, ""));
    assert!(stderr.starts_with("error: neither sizes nor a subcommand. "), "{stderr}");
    for call in ["-- --m 1000 --n 700 --k 513 ", "-- tour ", "-- --help "] {
        assert!(stderr.contains(call), "{stderr}");
    }
    assert_eq!(stderr.lines().count(), 4, "{stderr}");
}
