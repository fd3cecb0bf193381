//! `ladder`: every rung of the course, its speed and its counts, what changed and why.

mod baseline;
mod candidate;
mod chart;
pub(super) mod count;
mod line;
mod measure;
mod roofline;
mod table;

use std::{
    io::{self, Write},
    path::Path,
};

use host::{Device, Error, NewFile};

use self::line::Line;
pub(super) use self::line::{Counted, FitLine};
use super::{
    Failure,
    args::{Format, Ladder, Picture},
    list::json,
    note, spare_inputs,
    steps::Steps,
};

/// Measures the ladder, or reads a recorded one, and prints it.
pub(super) fn ladder(args: &Ladder, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    // The files are created before anything is measured.
    let chart = args.plot.as_ref().map(|picture| create("--plot", picture, args)).transpose()?;
    let roofline = args.roofline.as_ref();
    let roofline = roofline.map(|picture| create("--roofline", picture, args)).transpose()?;
    if let (Some((chart, _)), Some((roofline, _))) = (&chart, &roofline)
        && chart.path() == roofline.path()
    {
        let value = roofline.named().display();
        return Err(Error::argument("--roofline", value, "is the file of --plot too").into());
    }
    let lines = match &args.from {
        Some(path) => read(path)?,
        None if args.is_plain() && !Device::best().device.is_cuda() => {
            // If the driver does not start, the note says why.
            if let Err(error) = Device::cuda_version()
                && !matches!(error, Error::NoDriver { .. })
            {
                note(format_args!("note: {error}"));
            }
            recorded(args.json)?
        }
        None => measure::measure(args, steps)?,
    };
    // Everything is drawn before anything is written, and written before any file is renamed.
    let mut pictures = Vec::new();
    if let Some((file, format)) = chart {
        pictures.push((file, chart::draw(&lines, format)?));
    }
    if let Some((file, format)) = roofline {
        pictures.push((file, roofline::draw(&lines, format)?));
    }
    match args.json {
        true => lines.iter().try_for_each(|line| json(out, line))?,
        false => table::print(out, &lines)?,
    }
    for (file, bytes) in &pictures {
        file.file().write_all(bytes).map_err(|error| file.unwritten(&error))?;
    }
    for (file, _) in pictures {
        let drawn = file.named().display().to_string();
        file.finish()?;
        note(format_args!("drawn: {drawn}"));
    }
    // cuBLAS may add partial sums of bf16 in bf16. It is shown as wrong and not timed, but is no
    // kernel of ours.
    let mut rungs = lines.iter().filter(|line| line.rung.is_some());
    if rungs.all(|line| line.verified) { Ok(()) } else { Err(Failure::Wrong) }
}

/// The file of a picture.
fn create(flag: &str, picture: &Picture, args: &Ladder) -> Result<(NewFile, Format), Error> {
    let inputs = args.from.iter().map(|from| ("--from", &**from)).collect::<Vec<_>>();
    spare_inputs(args.force, (flag, &picture.path), &inputs)?;
    Ok((NewFile::create(flag, &picture.path)?, picture.format))
}

/// The output of `ladder --json` on an H200, and its file.
const RECORD: (&str, &str) =
    ("docs/results/ladder-h200.json", include_str!("../../../../docs/results/ladder-h200.json"));

/// The figures of a GPU, for a machine without one. The CPU device would show another order of the
/// rungs.
fn recorded(is_json: bool) -> Result<Vec<Line>, Failure> {
    let (file, text) = RECORD;
    let mut lines = parse(Path::new(file), text)?;
    let device = lines.first().map_or_else(String::new, |line| line.description.clone());
    lines.iter_mut().for_each(|line| line.recorded = Some(file.to_owned()));
    // A table has the note on a line of its own.
    if is_json {
        note(format_args!("note: recorded on an {device}, in {file}; --device cpu measures here"));
    }
    Ok(lines)
}

/// The most rungs of a picture.
const MOST_LINES: usize = 100;

/// What contradicts itself in a recorded line: a wrong kernel that was timed, a speed of another
/// time.
fn contradiction(line: &Line) -> Option<String> {
    let (name, flop) = (&line.kernel, 2.0 * line.m as f64 * line.n as f64 * line.k as f64);
    let Some(median) = line.median_us else {
        let speed = line.gflops.map(|gflops| format!("gflops = {gflops:e} without median_us"));
        return speed.map(|what| format!("kernel {name}: {what}"));
    };
    if !line.verified {
        return Some(format!("kernel {name}: verified = false, and median_us = {median:e}"));
    }
    let right = flop / median * 1e-3;
    // Figures have six digits.
    match line.gflops {
        Some(gflops) if (gflops / right - 1.0).abs() < 1e-3 => None,
        Some(gflops) => {
            Some(format!("kernel {name}: gflops = {gflops:e}, and flop / median_us = {right:e}"))
        }
        None => Some(format!("kernel {name}: median_us without gflops")),
    }
}

/// Why a recorded line cannot be drawn.
fn cannot_be_drawn(line: &Line) -> Option<String> {
    let name = &line.kernel;
    if name.chars().chain(line.description.chars()).any(char::is_control) {
        return Some(format!("kernel {name:?}: its names must be without control characters"));
    }
    let figures = [
        ("gflops", line.gflops),
        ("roof_gflops", line.roof_gflops),
        ("roof_memory_gb_per_s", line.roof_memory_gb_per_s),
        ("flop_per_byte_derived", line.flop_per_byte_derived),
    ];
    let most = 1e12;
    figures.into_iter().find_map(|(figure, value)| {
        let value = value.filter(|value| !(*value > 1e-12 && *value < most))?;
        Some(format!("kernel {name}: {figure} = {value:e}: must be above 1e-12 and below {most:e}"))
    })
}

/// Why recorded lines are not one run: a table has one heading, and a bar for each rung.
fn is_not_one_run(lines: &[Line]) -> Option<String> {
    let head = |line: &Line| {
        let Line { device, description, m, n, k, dtype, seed, .. } = line;
        format!("{m}x{n}x{k} {dtype} of seed {seed} on {device}: {description}")
    };
    let first = lines.first()?;
    lines.iter().enumerate().find_map(|(place, line)| {
        let name = &line.kernel;
        if head(line) != head(first) {
            let (own, other) = (head(line), head(first));
            return Some(format!("kernel {name}: {own}, and others {other}: not one run"));
        }
        let is_same =
            |other: &Line| other.kernel == *name || line.rung.is_some() && other.rung == line.rung;
        let other = lines[..place].iter().find(|other| is_same(other))?;
        Some(match other.kernel == *name {
            true => format!("kernel {name} is there twice: not one run"),
            false => format!("kernels {} and {name} are one rung: not one run", other.kernel),
        })
    })
}

/// Reads the output of `ladder --json`.
fn read(path: &Path) -> Result<Vec<Line>, Failure> {
    let text = io::read_to_string(host::open_input("--from", path)?).map_err(|error| {
        Error::argument("--from", path.display(), format!("the file cannot be read: {error}"))
    })?;
    parse(path, &text)
}

/// The lines of such a file.
fn parse(path: &Path, text: &str) -> Result<Vec<Line>, Failure> {
    let refuse = |limit: String| Error::argument("--from", path.display(), limit);
    let numbered = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let lines = numbered.map(|(number, line)| {
        serde_json::from_str(line).map_err(|error| {
            refuse(format!("line {number} is not what `ladder --json` prints: {error}"))
        })
    });
    let lines = lines.collect::<Result<Vec<Line>, _>>()?;
    if lines.len() > MOST_LINES {
        return Err(
            refuse(format!("has {} lines: must have at most {MOST_LINES}", lines.len())).into()
        );
    }
    let wrong = lines.iter().find_map(|line| cannot_be_drawn(line).or_else(|| contradiction(line)));
    if let Some(what) = wrong.or_else(|| is_not_one_run(&lines)) {
        return Err(refuse(what).into());
    }
    match lines.is_empty() {
        true => {
            Err(refuse("must have a line for each rung, as `ladder --json` prints".into()).into())
        }
        false => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use host::gpu::registry;

    use super::*;

    #[test]
    fn the_record_has_every_rung() {
        let lines = recorded(false).unwrap();
        let names = lines.iter().filter(|line| line.rung.is_some()).map(|line| &*line.kernel);
        let rungs = registry::ladder().map(|(entry, _)| entry.name()).collect::<Vec<_>>();
        assert_eq!(names.collect::<Vec<_>>(), rungs, "another one is to be recorded");
        assert!(lines.iter().all(|line| line.device.starts_with("cuda") && line.gflops.is_some()));
    }

    #[test]
    fn lines_of_two_runs_are_refused() {
        let lines = recorded(false).unwrap();
        assert_eq!(is_not_one_run(&lines), None);
        let with = |change: &dyn Fn(&mut Line)| {
            let mut other = lines[1].clone();
            change(&mut other);
            is_not_one_run(&[&lines[..], &[other]].concat()).unwrap_or_default()
        };
        let named = |line: &mut Line| line.kernel = "another".to_owned();
        for (change, words) in [
            (&(|_: &mut Line| ()) as &dyn Fn(&mut Line), "is there twice"),
            (&|line| named(line), "are one rung"),
            (
                &|line| line.description = "another GPU".to_owned(),
                "on cuda:0: another GPU, and others",
            ),
            (&|line| line.k += 1, "4096x4096x4097"),
            (&|line| line.seed += 1, "not one run"),
            (&|line| line.dtype = "bf16".to_owned(), "4096x4096x4096 bf16 of seed"),
        ] {
            let said = with(change);
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
