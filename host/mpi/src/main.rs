//! `gpu-gemm-mpi`: multiplies random matrices over the ranks that `mpirun` starts, and verifies C.

use std::{
    ffi::OsString,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    str::FromStr,
};

use gpu_gemm::{Device, Shape, memory};
use gpu_gemm_mpi::{Distributed, Element, Grid, multiply};
use host::verify::{Compared, Criterion, compare};
use lexopt::{Arg, Parser};
use mpi::{
    Threading,
    collective::SystemOperation,
    traits::{Communicator, CommunicatorCollectives},
};

const HELP: &str = "\
C = A B over the ranks of MPI: A is m x k, B is k x n, of random numbers.

Usage: mpirun -n 4 gpu-gemm-mpi [options]
  --m, --n, --k SIZE    the sizes [1000, 700, 513]
  --type f32|f64        the type [f32]
  --grid ROWSxCOLS      the grid of the ranks [as square as it gets]
  --block SIZE          rows and columns of a block [256]
  --repeat COUNT        products, of which the shortest time is printed [1]
  --seed NUMBER         of the random numbers [1]
  --device auto|cpu     auto: the machine's GPUs in turn, without one the CPU [auto]
  --verify full|none    full: rank 0 compares C with the product in float64 [full]

Exit codes: 0 right; 1 wrong; 2 an argument; others as of the command `host`.
";

struct Options {
    sizes: [usize; 3],
    is_double: bool,
    grid: Option<[usize; 2]>,
    block: usize,
    repeat: usize,
    seed: u64,
    on_cpu: bool,
    verify: bool,
}

/// The exit code of a program that panics.
const PANICKED: i32 = 101;

/// An error, and the exit code for it.
type Failure = (String, u8);

fn main() -> ExitCode {
    // Threads of the CPU device call no MPI.
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        eprintln!("gpu-gemm-mpi: MPI has been initialised before");
        return ExitCode::from(3);
    };
    let world = universe.world();
    let is_first = world.rank() == 0;
    let run = or_abort(&world, || match parse(std::env::args_os()) {
        Ok(Some(options)) if options.is_double => run(&world, &options, |value| value),
        Ok(Some(options)) => run(&world, &options, |value| value as f32),
        Ok(None) => Ok((HELP.to_owned(), true)),
        Err(what) => Err((what, 2)),
    });
    // All ranks have the same error. One tells it.
    let code = match &run {
        Ok((said, is_right)) => {
            if is_first {
                print!("{said}");
            }
            u8::from(!is_right)
        }
        Err((what, code)) => {
            if is_first {
                eprintln!("gpu-gemm-mpi: {what}");
            }
            *code
        }
    };
    ExitCode::from(code)
}

/// Ends all ranks if this one panics, which has printed why. To unwind through MPI's end would make
/// it wait for the others, and them for it.
fn or_abort<R>(ranks: &impl Communicator, run: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| ranks.abort(PANICKED))
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, String> {
    let mut options = Options {
        sizes: [1000, 700, 513],
        is_double: false,
        grid: None,
        block: 256,
        repeat: 1,
        seed: 1,
        on_cpu: false,
        verify: true,
    };
    let mut parser = Parser::from_iter(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        let Arg::Long(name) = arg else { return Err(arg.unexpected().to_string()) };
        let name = name.to_owned();
        if name == "help" {
            return Ok(None);
        }
        let value = parser.value().map_err(|error| error.to_string())?;
        let value = value.to_string_lossy();
        let wrong = |limit: &str| format!("--{name} = {value}: {limit}");
        let one_of = |names: [&str; 2]| match names.iter().position(|name| *name == value) {
            Some(at) => Ok(at == 1),
            None => Err(wrong(&format!("must be {} or {}", names[0], names[1]))),
        };
        match name.as_str() {
            "m" | "n" | "k" => {
                let at = ["m", "n", "k"].iter().position(|size| *size == name).unwrap_or(0);
                options.sizes[at] = number(&value).ok_or(wrong("must be a number"))?;
            }
            "type" => options.is_double = one_of(["f32", "f64"])?,
            "grid" => {
                let sides = value.split_once('x');
                let sides = sides.and_then(|(rows, cols)| Some([number(rows)?, number(cols)?]));
                options.grid = Some(sides.ok_or(wrong("must be as 2x3"))?);
            }
            "block" => options.block = number(&value).ok_or(wrong("must be a number"))?,
            "repeat" => {
                let repeat = number(&value).filter(|repeat| *repeat > 0);
                options.repeat = repeat.ok_or(wrong("must be at least 1"))?;
            }
            "seed" => options.seed = number(&value).ok_or(wrong("must be a number"))?,
            "device" => options.on_cpu = one_of(["auto", "cpu"])?,
            "verify" => options.verify = !one_of(["full", "none"])?,
            _ => return Err(format!("--{name}: there is no such option; --help lists them")),
        }
    }
    Ok(Some(options))
}

fn number<N: FromStr>(text: &str) -> Option<N> {
    text.parse().ok()
}

/// An element of a matrix, in [-1, 1). It depends on the place and the seed alone: every rank
/// knows it.
fn element(seed: u64, row: usize, col: usize) -> f64 {
    // The generator SplitMix64, started anew for each element.
    let mut bits = seed ^ ((row as u64) << 32 | col as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        bits = (bits ^ bits >> 30).wrapping_mul(factor);
    }
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Multiplies, and says how. The flag: whether C is right.
fn run<T: Element + Compared>(
    world: &impl Communicator,
    options: &Options,
    rounded: fn(f64) -> T,
) -> Result<(String, bool), Failure> {
    let failed = |error: gpu_gemm_mpi::Error| (error.to_string(), error.exit_code());
    let of_lib = |error: gpu_gemm::Error| failed(error.into());
    let [m, n, k] = options.sizes;
    let shape = Shape::new(m as u64, n as u64, k as u64).map_err(of_lib)?;
    let grid = match options.grid {
        Some([rows, cols]) => Grid::new(world, rows, cols),
        None => Grid::square(world),
    };
    let grid = grid.map_err(failed)?;
    let device = if options.on_cpu { Ok(Device::cpu()) } else { grid.device() };
    let stream = grid.agree(device.and_then(|device| Ok(device.stream()?))).map_err(failed)?;
    let drawn = |seed: u64| move |row, col| rounded(element(seed, row, col));
    let (of_a, of_b) =
        (drawn(options.seed.wrapping_mul(2)), drawn(options.seed.wrapping_mul(2) | 1));
    let block = [options.block; 2];
    let device = stream.device();
    let a = Distributed::from_fn(&grid, device, [m, k], block, of_a).map_err(failed)?;
    let b = Distributed::from_fn(&grid, device, [k, n], block, of_b).map_err(failed)?;
    let nan = |_, _| rounded(f64::NAN);
    let mut c = Distributed::from_fn(&grid, device, [m, n], block, nan).map_err(failed)?;

    let (mut seconds, mut report) = (f64::INFINITY, None);
    for _ in 0..options.repeat {
        grid.communicator().barrier();
        let start = mpi::time();
        report = Some(multiply(&grid, &stream, [1.0, 0.0], &a, &b, &mut c).map_err(failed)?);
        seconds = seconds.min(mpi::time() - start);
    }
    let of_ranks = |value: f64, operation: SystemOperation| {
        let mut all = value;
        grid.communicator().all_reduce_into(&value, &mut all, operation);
        all
    };
    let seconds = of_ranks(seconds, SystemOperation::max());
    let gpus = of_ranks(f64::from(u8::from(device.is_cuda())), SystemOperation::sum());
    let all = if options.verify { c.gather(&grid, 0).map_err(failed)? } else { None };

    let ([rows, cols], ranks) = (grid.size(), world.size());
    let Options { seed, block, .. } = options;
    let mut said = format!(
        "C = A B: m {m}, n {n}, k {k}, {}, seed {seed}\n\
         {ranks} ranks as {rows} x {cols}, blocks of {block} x {block}; {gpus} of {ranks} ranks on a GPU; rank 0: {device}\n",
        T::NAME
    );
    if let Some(report) = report {
        said += &format!("{report}\n");
    }
    let rate = 2.0 * m as f64 * n as f64 * k as f64 / seconds / 1e9;
    said += &format!("{:.3} ms, {rate:.1} GFLOP/s, communication included\n", seconds * 1e3);
    let Some(all) = all else {
        said +=
            if options.verify { "" } else { "C was not compared with anything (--verify none)\n" };
        return Ok((said, true));
    };
    let row_major = |rows: usize, cols: usize, of: &dyn Fn(usize, usize) -> T| {
        let mut values = memory::reserved(rows * cols).map_err(of_lib)?;
        values.extend((0..rows).flat_map(|row| (0..cols).map(move |col| of(row, col))));
        Ok(values)
    };
    let (a, b) = (row_major(m, k, &of_a)?, row_major(k, n, &of_b)?);
    let compared = compare(shape, &a, &b, &all, Criterion::Bound).map_err(of_lib)?;
    let verdict = if compared.wrong == 0 { "right" } else { "WRONG" };
    said += &format!(
        "{verdict}: max |c - ref| {:.3e}, at most {:.3} of the bound; {} of {} elements beyond it\n",
        compared.max_abs_err, compared.max_err_over_bound, compared.wrong, compared.elements
    );
    Ok((said, compared.wrong == 0))
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, env, process::Command};

    use super::*;

    fn of(args: &str) -> Result<Option<Options>, String> {
        parse(["gpu-gemm-mpi"].into_iter().chain(args.split_whitespace()).map(Into::into))
    }

    #[test]
    fn options_are_read_and_refused_by_name() {
        let options = of("--m 7 --k=9 --grid 2x3 --type f64 --verify none").unwrap().unwrap();
        assert_eq!((options.sizes, options.grid), ([7, 700, 9], Some([2, 3])));
        assert!(options.is_double && !options.verify && !options.on_cpu);
        assert!(of("--help").unwrap().is_none());
        for (args, what) in [
            ("--m -1", "--m = -1: must be a number"),
            ("--grid 2", "--grid = 2: must be as 2x3"),
            ("--repeat 0", "--repeat = 0: must be at least 1"),
            ("--bogus 1", "--bogus: there is no such option"),
            ("--seed", "missing argument"),
            ("7", "unexpected argument"),
        ] {
            let said = of(args).err().unwrap_or_default();
            assert!(said.contains(what), "{args}: {said}");
        }
    }

    #[test]
    fn a_rank_that_panics_ends_all() {
        if env::var_os("OMPI_COMM_WORLD_RANK").is_some() {
            let universe = mpi::initialize().expect("MPI starts");
            let world = universe.world();
            return or_abort(&world, || {
                let grid = Grid::square(&world).unwrap();
                assert!(world.rank() != 1, "told once");
                grid.communicator().barrier();
            });
        }
        let mut command = Command::new("mpirun");
        command.args("--allow-run-as-root --oversubscribe --timeout 60 -n 2".split(' '));
        command.arg(env::current_exe().unwrap());
        command.args(["--exact", "tests::a_rank_that_panics_ends_all", "--nocapture"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(PANICKED), "{said}");
        assert_eq!(said.matches("told once").count(), 1, "{said}");
    }

    #[test]
    fn elements_differ_and_keep_to_their_range() {
        let all = (0..4000).map(|place| element(1, place / 50, place % 50)).collect::<Vec<_>>();
        assert!(all.iter().all(|value| (-1.0..1.0).contains(value)));
        let mean = all.iter().sum::<f64>() / 4000.0;
        assert!(mean.abs() < 0.05, "{mean}");
        let bits = all.iter().map(|value| value.to_bits()).collect::<HashSet<_>>();
        assert_eq!(bits.len(), 4000);
        assert_ne!(element(1, 3, 4), element(2, 3, 4));
    }
}
