//! A kernel that fails gives an error that names the kernel, the block, the thread and the source
//! line. The next launch works.

use std::{
    env, panic,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use simt::cpu::FaultKind;

use super::{
    barriers::{exchange, exchange_by_hand},
    *,
};

fn check_next_launch() {
    let mut c = vec![0; 4 * 96];
    launch(&exchange, [4, 1, 1], [96, 1, 1], (4, 5, write(&mut c))).unwrap();
    assert!(c == exchange_by_hand(4, 5), "the launch after a fault");
}

/// Makes one mistake for each case. Before, it stores the number of the next line.
#[kernel(shared = 256 * 4)]
fn goes_wrong(case: u32, from: In<f32>, mut to: Out<f32>, mut line: Out<u32>) {
    let mut tile = shared![f32; 16, 16];
    let mut dynamic = dynamic_shared![f32];
    match case {
        0 => {
            line[0] = line!() + 1;
            to[0] = from[8];
        }
        1 => {
            line[0] = line!() + 1;
            to[8] = 1.0;
        }
        2 => {
            line[0] = line!() + 1;
            to[0] = from[usize::MAX];
        }
        3 => {
            line[0] = line!() + 1;
            to[0] = tile[256];
        }
        4 => {
            // An element of the array, but in the next row.
            line[0] = line!() + 1;
            to[0] = tile[(0, 16)];
        }
        5 => {
            line[0] = line!() + 1;
            tile[(16, 0)] = 1.0;
        }
        6 => {
            line[0] = line!() + 1;
            dynamic[4] = 1.0;
        }
        7 => {
            line[0] = line!() + 1;
            let _: [f32; 4] = from.load128(5);
        }
        8 => {
            line[0] = line!() + 1;
            to.store128(8, [0.0; 4]);
        }
        9 => {
            line[0] = line!() + 1;
            let _: [f32; 4] = from.load128(1);
        }
        10 => {
            line[0] = line!() + 1;
            tile.store128(6, [0.0; 4]);
        }
        11 => {
            line[0] = line!() + 1;
            let _: [f32; 4] = dynamic.load128(1 << 40);
        }
        12 => {
            line[0] = line!() + 1;
            assert!(case == 0, "the kernel's own words: {case}");
        }
        13 => {
            line[0] = line!() + 1;
            to[0] = (7 / case.wrapping_sub(13)) as f32;
        }
        _ => {
            line[0] = line!() + 1;
            panic::panic_any(5);
        }
    }
}

/// What a process is told in which the first launch is made by a thread that panics.
const FIRST: &str = "TESTS_FIRST_LAUNCH";

/// Launches a kernel that works, and one that panics with words of its own.
fn check_launches(place_is_known: bool) {
    check_next_launch();
    let (from, mut to, mut line) = ([1.0; 8], [2.0; 8], [0]);
    let params = (12, read(&from), write(&mut to), write(&mut line));
    let config = LaunchConfig { dynamic_shared: 16, ..LaunchConfig::new([1; 3], [1; 3]) };
    let fault = fault(launch_with(&goes_wrong, config, params, &Options::default()));
    let FaultKind::Panic { message, location } = &fault.kind else { panic!("{fault}") };
    assert_eq!(message, "the kernel's own words: 12");
    assert_eq!(location.contains("faults.rs"), place_is_known, "{location}");
}

struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        check_launches(false);
        print!("launched, ");
    }
}

/// It would end the process: the hook of panics cannot be replaced then.
#[test]
fn the_first_launch_may_be_in_a_panic() {
    let Ok(of) = env::var(FIRST) else {
        for of in ["unwinding", "hook"] {
            let mut child = Command::new(env::current_exe().unwrap());
            child.args(["--exact", "--nocapture", "faults::the_first_launch_may_be_in_a_panic"]);
            let output = child.env(FIRST, of).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{of}: {said}{errors}");
            assert!(said.contains("launched, and again"), "{of}: {said}");
        }
        return;
    };
    if of == "hook" {
        // The kernel's own panic comes here, too, as this library's hook is not there yet.
        static BEGUN: AtomicBool = AtomicBool::new(false);
        panic::set_hook(Box::new(|_| {
            if !BEGUN.swap(true, Ordering::Relaxed) {
                drop(Dropped);
            }
        }));
        panic::catch_unwind(|| panic!("of the program")).unwrap_err();
    } else {
        let dropped = || {
            let _dropped = Dropped;
            panic!("of the program");
        };
        panic::catch_unwind(dropped).unwrap_err();
    }
    check_launches(true);
    println!("and again");
}

#[test]
fn a_panic_names_its_place() {
    for (case, message) in [
        "index 8 is outside: there are 8 elements",
        "index 8 is outside: there are 8 elements",
        "index 18446744073709551615 is outside: there are 8 elements",
        "index 256 is outside: there are 256 elements",
        "index (0, 16) is outside: the shared array has (16, 16) rows and columns",
        "index (16, 0) is outside: the shared array has (16, 16) rows and columns",
        "index 4 is outside: there are 4 elements",
        "4 elements from index 5 on are outside: there are 8 elements",
        "4 elements from index 8 on are outside: there are 8 elements",
        "128-bit access at index 1: not 16-byte aligned",
        "128-bit access at index 6: not 16-byte aligned",
        "4 elements from index 1099511627776 on are outside: there are 4 elements",
        "the kernel's own words: 12",
        "attempt to divide by zero",
        "panicked",
    ]
    .into_iter()
    .enumerate()
    {
        let (from, mut to) = (Aligned([1.0; 8]), Aligned([2.0; 8]));
        let mut line = [0];
        let config = LaunchConfig { dynamic_shared: 16, ..LaunchConfig::new([1; 3], [1; 3]) };
        let params = (case as u32, read(&from.0), write(&mut to.0), write(&mut line));
        let outcome = launch_with(&goes_wrong, config, params, &Options::default());
        let text = fault(outcome).to_string();
        let whose = "kernel goes_wrong, block [0, 0, 0], thread [0, 0, 0]: ";
        let start = format!("{whose}{message} (at {}:{}:", file!(), line[0]);
        assert!(text.starts_with(&start), "case {case}: {text}\nnot {start}");
        assert_eq!(to.0, [2.0; 8], "case {case}");
        check_next_launch();
    }
}

/// Fails in some threads of some blocks, before or after a barrier.
#[kernel(block = (8, 4))]
fn fails_here_and_there(mut c: Out<u32>) {
    let block = thread::block_idx_y() * thread::grid_dim_x() + thread::block_idx_x();
    let t = thread::thread_idx_y() * 8 + thread::thread_idx_x();
    assert!(block != 23 || t < 30, "before");
    thread::sync_threads();
    assert!(block < 17 || t < 13, "after");
    c[block as usize * 32 + t as usize] = 1;
}

#[test]
fn of_several_faults_the_lowest_blocks_is_told() {
    for workers in [None, Some(1), Some(2)] {
        for _ in 0..20 {
            let mut c = vec![0; 100 * 32];
            let mut options = Options::default();
            options.workers = workers;
            let config = LaunchConfig::new([10, 10, 1], [8, 4, 1]);
            let params = (write(&mut c),);
            let found = fault(launch_with(&fails_here_and_there, config, params, &options));
            assert_eq!((found.block, found.thread), ([7, 1, 0], [5, 1, 0]), "{found}");
            assert_eq!(found.kernel, "fails_here_and_there");
            assert!(found.to_string().contains(": after (at "), "{found}");
            // Blocks start in order, and a block that has started ends.
            assert!(c[..17 * 32].iter().all(|&x| x == 1), "a block below the fault did not run");
        }
    }
    check_next_launch();
}

/// The first block fails long after the others.
#[kernel(block = (8))]
fn fails_late_in_the_first(mut c: Out<u32>) {
    let block = thread::block_idx_x();
    for _ in 0..if block == 0 { 10_000 } else { 0 } {
        thread::sync_threads();
    }
    c[usize::MAX] = block;
}

#[test]
fn the_lowest_block_is_told_though_it_fails_last() {
    for _ in 0..5 {
        let mut c = vec![0; 1];
        let found = fault(launch(&fails_late_in_the_first, [9, 1, 1], [8, 1, 1], (write(&mut c),)));
        assert_eq!(found.block, [0; 3], "{found}");
    }
    check_next_launch();
}

#[kernel(block = (32))]
fn skips_a_barrier(rounds: u32, mut c: Out<u32>) {
    let t = thread::thread_idx_x();
    for round in 0..rounds {
        if t == 7 && round == 2 {
            return;
        }
        thread::sync_threads();
    }
    c[t as usize] = 1;
}
/// The line of the barrier above.
const BARRIER_LINE: u32 = line!() - 5;

#[test]
fn a_barrier_that_a_thread_never_comes_to() {
    let mut c = vec![0; 32];
    launch(&skips_a_barrier, [1; 3], [32, 1, 1], (2, write(&mut c))).unwrap();
    assert_eq!(c, [1; 32]);

    let mut c = vec![0; 32];
    for _ in 0..3 {
        let outcome = launch(&skips_a_barrier, [2, 1, 1], [32, 1, 1], (9, write(&mut c)));
        let found = fault(outcome);
        let FaultKind::BarrierSkipped { exited: [7, 0, 0], location } = &found.kind else {
            panic!("{found}")
        };
        assert!(location.starts_with(&format!("{}:{BARRIER_LINE}:", file!())), "{location}");
        assert_eq!(found.block, [0; 3]);
        assert_ne!(found.thread, [7, 0, 0], "the one that waits is named, not the one that left");
        let words = format!(
            "waits at the barrier at {location}, but thread [7, 0, 0] of its block has ended"
        );
        assert!(found.to_string().ends_with(&words), "{found}");
        check_next_launch();
    }
    assert_eq!(c, [0; 32]);
}

/// Only one thread waits.
#[kernel(block = (32))]
fn waits_alone(mut c: Out<u32>) {
    if thread::thread_idx_x() == 31 {
        thread::sync_threads();
    }
    c[0] = 1;
}

#[test]
fn a_barrier_that_only_one_thread_comes_to() {
    let mut c = vec![0; 1];
    let found = fault(launch(&waits_alone, [1; 3], [32, 1, 1], (write(&mut c),)));
    assert_eq!(found.thread, [31, 0, 0]);
    assert!(matches!(found.kind, FaultKind::BarrierSkipped { exited: [0, 0, 0], .. }), "{found}");
    check_next_launch();
}

#[kernel(shared = 128)]
fn declares_too_little(mut c: Out<f32>) {
    let mut tile = shared![f32; 64];
    tile[0] = 1.0;
    c[0] = tile[0];
}

#[kernel(shared = 128, block = (4))]
fn declares_for_some(mut c: Out<f32>) {
    if thread::thread_idx_x() == 2 {
        return;
    }
    let mut tile = shared![f32; 32];
    tile[0] = 1.0;
    c[0] = tile[0];
}

#[kernel]
fn declares_in_a_loop(mut c: Out<f32>) {
    for round in 0..8 {
        let mut tile = shared![f32; 16384];
        tile[0] = 1.0;
        c[round] = tile[0];
    }
}

#[test]
fn shared_arrays_that_are_not_as_declared() {
    let mut c = vec![0.0; 8];
    let found = fault(launch(&declares_too_little, [1; 3], [1; 3], (write(&mut c),)));
    assert_eq!(found.kind, FaultKind::SharedMismatch { declared: 128, used: 256 });
    check_next_launch();

    let found = fault(launch(&declares_for_some, [1; 3], [4, 1, 1], (write(&mut c),)));
    assert_eq!(found.kind, FaultKind::SharedMismatch { declared: 128, used: 0 });
    assert_eq!(found.thread, [2, 0, 0]);
    check_next_launch();

    let found = fault(launch(&declares_in_a_loop, [1; 3], [1; 3], (write(&mut c),))).to_string();
    assert!(found.contains("is one declared in a loop?"), "{found}");
    check_next_launch();
}

/// A panic outside a kernel is reported as usual.
#[test]
fn panics_elsewhere_are_left_alone() {
    let mut c = vec![0.0; 1];
    fault(launch(&declares_too_little, [1; 3], [1; 3], (write(&mut c),)));
    let panic = panic::catch_unwind(|| panic!("elsewhere")).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"elsewhere"));
    check_next_launch();
}
