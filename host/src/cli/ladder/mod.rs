//! `ladder`: every rung of the course, its speed and its counts, what changed and why.

mod baseline;
mod chart;
pub(super) mod count;
mod line;
mod measure;
mod roofline;
mod table;

use std::{fs, io::Write, path::Path};

use host::{
    Error,
    gpu::registry::{Entry, Rung},
};

use self::line::Line;
pub(super) use self::line::{Counted, FitLine, derived};
use super::{
    Failure,
    args::{Ladder, Picture},
    list::json,
    note,
    steps::Steps,
};

/// Something that is timed: a rung, or the baseline.
struct Candidate {
    /// A rung's place, from 1.
    number: Option<usize>,
    rung: Option<&'static Rung>,
    /// `None`: cuBLAS.
    entry: Option<&'static Entry>,
}

impl Candidate {
    fn name(&self) -> &'static str {
        self.entry.map_or("cuBLAS", |entry| entry.name())
    }
}

/// Measures the ladder, or reads a recorded one, and shows it.
pub(super) fn ladder(args: &Ladder, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let lines = match &args.from {
        Some(path) => read(path)?,
        None => measure::measure(args, steps)?,
    };
    // Everything is drawn before anything is written.
    let chart = args.plot.as_ref().map(|file| Ok((file, chart::draw(&lines, file.format)?)));
    let roofline =
        args.roofline.as_ref().map(|file| Ok((file, roofline::draw(&lines, file.format)?)));
    let pictures = [chart, roofline].into_iter().flatten();
    let pictures = pictures.collect::<Result<Vec<_>, Failure>>()?;
    match args.json {
        true => lines.iter().try_for_each(|line| json(out, line))?,
        false => table::print(out, &lines)?,
    }
    for (Picture { path, .. }, bytes) in pictures {
        fs::write(path, bytes).map_err(|error| {
            let limit = format!("the picture cannot be written: {error}");
            Error::argument("--plot, --roofline", path.display(), limit)
        })?;
        note(format_args!("drawn: {}", path.display()));
    }
    if lines.iter().all(|line| line.verified) { Ok(()) } else { Err(Failure::Wrong) }
}

/// More rungs than a picture has room for.
const MOST_LINES: usize = 100;

/// What is wrong with a recorded line that a picture could not be made of.
fn cannot_be_drawn(line: &Line) -> Option<String> {
    let name = &line.kernel;
    if name.chars().chain(line.description.chars()).any(char::is_control) {
        return Some(format!("kernel {name:?}: its names must be without control characters"));
    }
    let figures = [
        ("gflops", line.gflops),
        ("roof_gflops", line.roof_gflops),
        ("roof_memory_gb_per_s", line.roof_memory_gb_per_s),
        ("bytes_per_flop_derived", line.bytes_per_flop_derived),
    ];
    let most = 1e12;
    figures.into_iter().find_map(|(figure, value)| {
        let value = value.filter(|value| !(*value > 1e-12 && *value < most))?;
        Some(format!("kernel {name}: {figure} = {value}: must be above 1e-12 and below {most:e}"))
    })
}

/// What `ladder --json` printed once.
fn read(path: &Path) -> Result<Vec<Line>, Failure> {
    let refuse = |limit: String| Error::argument("--from", path.display(), limit);
    let text = fs::read_to_string(path)
        .map_err(|error| refuse(format!("the file cannot be read: {error}")))?;
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
    if let Some(what) = lines.iter().find_map(cannot_be_drawn) {
        return Err(refuse(what).into());
    }
    match lines.is_empty() {
        true => {
            Err(refuse("must have a line for each rung, as `ladder --json` prints".into()).into())
        }
        false => Ok(lines),
    }
}
