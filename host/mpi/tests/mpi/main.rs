//! What `mpirun` starts: the program, ScaLAPACK's own tests of its products, random descriptors.
//!
//! | test | what must hold |
//! |---|---|
//! | `products_are_right` | the program's C is within the bound, for grids, types and memories |
//! | `wrong_arguments_are_told_once` | one message that names the argument, and its exit code |
//! | `a_killed_rank_ends_all` | within ten seconds, with one message |
//! | `an_error_of_one_rank_is_that_of_all` | the ranks agree, name it, and go on |
//! | `scalapack_s_tests_pass` | Debian's testers, with every call of `p?gemm_` counted |
//! | `random_descriptors` | 100 products beside sums of integers, on grids of 1 to 6 ranks |

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use gpu_gemm_mpi::{Distributed, Grid, product};
use mpi::{topology::Color, traits::Communicator};

mod descriptors;

/// The folder of Debian's testers, and of the files that they read.
const TESTERS: &str = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests/PBLAS";

fn mpirun(ranks: usize) -> Command {
    let mut command = Command::new("mpirun");
    // A rank that fails alone leaves the others waiting.
    command.args(["--allow-run-as-root", "--oversubscribe", "--timeout", "300"]);
    command.args(["-n", &ranks.to_string()]);
    // Containers forbid a rank to read another's memory.
    command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    command
}

fn output(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("mpirun is there: Debian's openmpi-bin has it");
    let both = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let said = both.concat();
    (output, said)
}

fn program(ranks: usize, options: &str) -> Command {
    let mut command = mpirun(ranks);
    command.arg(env!("CARGO_BIN_EXE_gpu-gemm-mpi")).args(options.split_whitespace());
    command
}

/// A folder for a test's files.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn products_are_right() {
    for (ranks, options, way) in [
        (4, "--m 100 --n 70 --k 513 --block 16", "4 panels of 129; A by broadcasts"),
        (3, "--m 33 --n 65 --k 130 --block 7 --grid 3x1 --type f64", "3 ranks as 3 x 1"),
        (2, "--m 1 --n 40 --k 0 --block 3", "0 panels"),
        (1, "--m 20 --n 30 --k 40 --repeat 2", "1 ranks as 1 x 1"),
    ] {
        let (output, said) = output(&mut program(ranks, options));
        assert!(output.status.success(), "{options}: {said}");
        for part in [way, "\nright: max |c - ref|", "0 of", "ranks on a GPU; rank 0: "] {
            assert!(said.contains(part), "{options}: {part}: {said}");
        }
    }
    let mut staged = program(4, "--m 50 --n 60 --k 400 --block 9 --type f64");
    let (output, said) = output(staged.env("GPU_GEMM_MPI_STAGED", "1"));
    assert!(output.status.success() && said.contains("through host memory"), "{said}");
}

#[test]
fn wrong_arguments_are_told_once() {
    for (options, what) in [
        ("--grid 3x2", "the grid = 3 x 2: must have as many places as there are ranks, 2"),
        ("--type f16", "--type = f16: must be f32 or f64"),
    ] {
        let (output, said) = output(&mut program(2, options));
        assert_eq!(output.status.code(), Some(2), "{options}: {said}");
        assert_eq!(said.matches("gpu-gemm-mpi:").count(), 1, "{options}: {said}");
        assert!(said.contains(what), "{options}: {said}");
    }
}

#[test]
fn a_killed_rank_ends_all() {
    // Rank 2 is killed while all of them multiply: it takes the CPU minutes.
    let folder = folder("killed");
    let pid = folder.join("pid");
    let script = r#"[ "$OMPI_COMM_WORLD_RANK" = 2 ] && echo $$ > "$0"; exec "$@""#;
    let mut command = mpirun(4);
    command.args(["sh", "-c", script]).arg(&pid).arg(env!("CARGO_BIN_EXE_gpu-gemm-mpi"));
    let log = folder.join("said");
    let file = fs::File::create(&log).unwrap();
    command.args("--m 4000 --n 4000 --k 4000 --device cpu".split(' '));
    command.stdout(file.try_clone().unwrap()).stderr(file);
    let mut all = command.spawn().unwrap();
    let start = Instant::now();
    while !pid.exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    // Time to draw the matrices, and to begin.
    std::thread::sleep(Duration::from_secs(2));
    assert!(all.try_wait().unwrap().is_none(), "{}", fs::read_to_string(&log).unwrap());
    let pid = fs::read_to_string(&pid).unwrap();
    let killed = Instant::now();
    assert!(Command::new("sh").args(["-c", "kill -9 $0", pid.trim()]).status().unwrap().success());
    let status = all.wait().unwrap();
    let said = fs::read_to_string(&log).unwrap();
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}: {said}", killed.elapsed());
    assert!(!status.success(), "{said}");
    assert_eq!(said.matches("exited on signal 9").count(), 1, "{said}");
    assert!(!said.contains("right"), "{said}");
}

#[test]
fn scalapack_s_tests_pass() {
    let built = Path::new(env!("CARGO_BIN_EXE_gpu-gemm-mpi")).parent().unwrap();
    let library = ["", "deps"].map(|folder| built.join(folder).join("libgpu_gemm_mpi.so"));
    let library = library.into_iter().find(|path| path.exists()).expect("the library is built");
    let folder = folder("scalapack");
    for (letter, tester) in [("D", "dpb3tst"), ("S", "spb3tst")] {
        // Debian's input has eight problems, of which it takes four: without products of two
        // transposes.
        let name = format!("P{letter}BLAS3TST.dat");
        let input = fs::read_to_string(Path::new(TESTERS).join(&name)).unwrap();
        let eight = input.replace("4\t\tnumber of tests problems", "8\t\tnumber of tests problems");
        assert_ne!(input, eight);
        fs::write(folder.join(&name), eight).unwrap();
        let log = folder.join(letter);
        let mut command = mpirun(4);
        command.arg("-x").arg(format!("LD_PRELOAD={}", library.display()));
        command.arg(Path::new(TESTERS).join(tester)).current_dir(&folder);
        let (output, said) = output(command.env("GPU_GEMM_MPI_LOG", &log));
        assert!(output.status.success(), "{said}");
        // Eight problems on four grids: passed, failed, skipped.
        let row = format!("P{letter}GEMM 32 32 0 0");
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&row), "{said}");
        assert!(!said.contains("*** ERROR ***") && !said.contains("FAILED  ****"), "{said}");
        assert_eq!(said.matches(&format!("check: P{letter}GEMM")).count(), 2 * 32, "{said}");
        // The grids have 4, 2, 2 and 4 ranks.
        let calls = fs::read_to_string(&log).unwrap();
        let own = format!("P{letter}GEMM");
        assert_eq!(calls.lines().filter(|line| line.starts_with(&own)).count(), 8 * 12, "{calls}");
    }
}

/// Whether this test is run by a rank: it starts itself by mpirun.
fn is_rank() -> bool {
    env::var_os("OMPI_COMM_WORLD_RANK").is_some()
}

/// That test, on ranks.
fn ranks(count: usize, test: &str) -> Command {
    let mut command = mpirun(count);
    command.arg(env::current_exe().unwrap());
    command.args(["--exact", test, "--test-threads", "1", "--nocapture"]);
    command
}

#[test]
fn an_error_of_one_rank_is_that_of_all() {
    if !is_rank() {
        let (output, said) = output(&mut ranks(3, "an_error_of_one_rank_is_that_of_all"));
        return assert!(output.status.success(), "{said}");
    }
    let universe = mpi::initialize().expect("MPI starts");
    let (grid, rank) = (Grid::square(&universe.world()).unwrap(), universe.world().rank());
    let own = || match rank {
        2 => Err(gpu_gemm::Error::argument("x", 1, "must be 2").into()),
        _ => Ok(()),
    };
    let error = grid.agree(own()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let said = error.to_string();
    assert_eq!(said, ["rank 2: ", "rank 2: ", ""][rank as usize].to_owned() + "x = 1: must be 2");

    // The ranks go on: a product of whole numbers, and two calls that are refused.
    let stream = grid.device().unwrap().stream().unwrap();
    let whole = |row: usize, col: usize| ((row * 5 + col * 3) % 7) as f64 - 3.0;
    let matrix = |size| Distributed::from_fn(&grid, stream.device(), size, [4, 3], whole).unwrap();
    let (a, b) = (matrix([23, 31]), matrix([31, 17]));
    let (c, _) = product(&grid, &stream, &a, &b).unwrap();
    if let Some(all) = c.gather(&grid, 1).unwrap() {
        assert_eq!((rank, all.len()), (1, 23 * 17));
        for (place, got) in all.into_iter().enumerate() {
            let (row, col) = (place / 17, place % 17);
            assert_eq!(got, (0..31).map(|i| whole(row, i) * whole(i, col)).sum::<f64>());
        }
    }
    let said = c.gather(&grid, 3).unwrap_err().to_string();
    assert!(said.ends_with("root = 3: must be below 3, the number of ranks"), "{said}");
    let empty = Distributed::from_fn(&grid, stream.device(), [2, 2], [0, 3], whole);
    let said = empty.err().unwrap().to_string();
    assert!(said.ends_with("block = 0 x 3: must have rows and columns"), "{said}");
    let said = product(&grid, &stream, &b, &a).err().unwrap().to_string();
    assert!(said.ends_with("b = 23 x 31: must be 17 x 31"), "{said}");

    // In another order, rank 1 has its place again, and the same error.
    let order = Color::with_value(0);
    let reversed = universe.world().split_by_color_with_key(order, -rank).unwrap();
    let reversed = Grid::square(&reversed).unwrap();
    let said = product(&reversed, &stream, &a, &b).err().unwrap().to_string();
    assert!(said.ends_with("must be of this grid, 1 x 3, and of the stream's device"), "{said}");
    let said = c.gather(&reversed, 0).unwrap_err().to_string();
    assert!(said.ends_with("must be the matrix's"), "{said}");

    // And so if the function of one rank panics, here that of column 3, which rank 1 has.
    let element = |_, col| if col == 3 { panic!("as the test wants") } else { 1.0 };
    let error = Distributed::from_fn(&grid, stream.device(), [4, 9], [4, 3], element).err();
    let said = error.unwrap().to_string();
    assert!(said.ends_with("element = a function that panicked: must return"), "{said}");
}

#[test]
fn random_descriptors() {
    if is_rank() {
        return descriptors::compare();
    }
    let folder = folder("descriptors");
    for staged in ["0", "1"] {
        let log = folder.join(staged);
        let mut command = ranks(6, "random_descriptors");
        command.env("GPU_GEMM_MPI_LOG", &log).env("GPU_GEMM_MPI_STAGED", staged);
        let (output, said) = output(&mut command);
        assert!(output.status.success(), "{said}");
        // Both ways were taken, and the memory that was asked for.
        let calls = fs::read_to_string(&log).unwrap();
        let parts =
            ["A by broadcasts", "A from the owners", "B by broadcasts", "B from the owners"];
        assert!(parts.iter().all(|part| calls.contains(part)), "{calls}");
        // MPI uses a GPU's memory if it knows it, and the CPU device's always.
        let is_direct = |line: &str| line.contains("between devices' memories");
        match staged {
            "1" => assert!(!calls.lines().any(is_direct), "{calls}"),
            _ => {
                let mut on_cpu = calls.lines().filter(|line| line.contains(" on cpu"));
                assert!(on_cpu.all(is_direct), "{calls}");
            }
        }
    }
}
