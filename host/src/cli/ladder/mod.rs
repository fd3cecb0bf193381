//! `ladder`: every rung of the course, its speed and its counts, what changed and why.

mod baseline;
mod chart;
pub(super) mod count;
mod line;
mod measure;
mod pen;
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
    match lines.is_empty() {
        true => {
            Err(refuse("must have a line for each rung, as `ladder --json` prints".into()).into())
        }
        false => Ok(lines),
    }
}
