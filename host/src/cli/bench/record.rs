//! Results as files, which are written together and can be read back.

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
};

use host::{Error, NewSet};
use serde_json::Value;

use super::{
    consistent::contradiction,
    machine::Machine,
    plot,
    row::Row,
    whole::{self, Run},
};
use crate::cli::{Failure, args::Bench, list::json, note, spare_inputs};

/// The file of a folder with the rows.
const ROWS: &str = "results.jsonl";
pub(super) const TABLE: &str = "results.csv";
const MACHINE: &str = "machine.json";

/// The most rows that are read: more than a measurement has, even of all candidates.
const MOST_ROWS: usize = 100_000;

/// The files of a folder. They are created before anything is measured.
pub(super) struct Folder {
    files: NewSet,
    path: PathBuf,
}

impl Folder {
    /// Checks that the files can be written. Files that are also read are replaced with `--force`
    /// only.
    pub(super) fn create(args: &Bench, path: &Path) -> Result<Self, Failure> {
        let from = args.from.iter().map(|path| ("--from", rows_of(path)));
        let compare = args.compare.iter().map(|path| ("--compare", rows_of(path)));
        let read = from.chain(compare).collect::<Vec<_>>();
        let read = read.iter().map(|(flag, path)| (*flag, &**path)).collect::<Vec<_>>();
        let names = [&[ROWS, TABLE, MACHINE], plot::FILES.as_flattened()].concat();
        for name in &names {
            spare_inputs(args.force, ("--out", &path.join(name)), &read)?;
        }
        Ok(Folder { files: NewSet::create("--out", path, &names)?, path: path.to_owned() })
    }

    /// Writes the rows as JSON lines and as CSV, their pictures, and the machine.
    pub(super) fn write(self, rows: &[Row], machine: Option<&Machine>) -> Result<(), Failure> {
        let mut lines = Vec::new();
        rows.iter().try_for_each(|row| json(&mut lines, row))?;
        let mut files = vec![(ROWS, lines), (TABLE, csv(rows).into_bytes())];
        files.extend(plot::all(rows)?);
        if let Some(machine) = machine {
            let mut text = serde_json::to_vec_pretty(machine).map_err(io::Error::from)?;
            text.push(b'\n');
            files.push((MACHINE, text));
        }
        self.files.finish(&files)?;
        note(format_args!("written: {}", self.path.display()));
        Ok(())
    }
}

/// The columns of results.csv: the fields of a row, in order, with spaces between them.
const COLUMNS: &str = "\
    device description group aligned drawn drawn_of m n k batch trans dtype out_dtype compute \
    epilogue kernel role seed time_us tflops err instead plain_time_us over_plain over_plain_low \
    over_plain_high baseline baseline_instead baseline_time_us baseline_tflops baseline_err \
    baseline_is_fp32 ratio ratio_low ratio_high verify verified exact_on_integers max_abs_err \
    max_err_over_bound rounds launches_per_round sustained_s operand_sets min_us spread \
    first_launch_us upload_us download_us algorithm sm_mhz sm_mhz_low power_w power_w_high \
    temperature_c limited_by roof_tflops roof_memory_gb_per_s predicted_us predicted_host_us \
    predicted_copies_us predicted_fixed_us predicted_multiply_us predicted_l2_us \
    predicted_epilogue_us predicted_memory_us predicted_sum_us";

/// The rows as CSV (RFC 4180). `null` is an empty field.
pub(super) fn csv(rows: &[Row]) -> String {
    let columns = COLUMNS.split(' ').collect::<Vec<_>>();
    let mut text = columns.join(",") + "\n";
    for row in rows {
        let row = serde_json::to_value(row).unwrap_or_default();
        let fields = columns.iter().map(|column| match &row[*column] {
            Value::Null => String::new(),
            Value::String(words) if words.contains([',', '"', '\n']) => {
                format!("\"{}\"", words.replace('"', "\"\""))
            }
            Value::String(words) => words.clone(),
            other => other.to_string(),
        });
        text += &(fields.collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

/// The file that rows are read from.
fn rows_of(path: &Path) -> Cow<'_, Path> {
    if path.is_dir() { path.join(ROWS).into() } else { path.into() }
}

/// The rows that `--out` wrote to a folder, or `--json` printed to a file.
pub(super) fn read(argument: &str, path: &Path) -> Result<Vec<Row>, Failure> {
    let mut run = Run::default();
    read_into(&mut run, argument, path)?;
    Ok(run.rows())
}

/// Reads rows of a run. Those that are none of the run, which would count twice or for another
/// machine, are refused.
fn read_into(run: &mut Run, argument: &str, path: &Path) -> Result<(), Failure> {
    let file = rows_of(path);
    let refuse = |limit: String| Error::argument(argument, file.display(), limit);
    let text = io::read_to_string(host::open_input(argument, &file)?)
        .map_err(|error| refuse(format!("the file cannot be read: {error}")))?;
    let numbered = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let before = run.len();
    for (number, line) in numbered {
        let row: Row = serde_json::from_str(line).map_err(|error| {
            refuse(format!("line {number} is not what `bench --json` prints: {error}"))
        })?;
        if let Some(what) = cannot_be_shown(&row) {
            return Err(refuse(format!("line {number}: {what}")).into());
        }
        if let Some(what) = contradiction(&row) {
            return Err(refuse(format!("line {number} contradicts itself: {what}")).into());
        }
        run.add(row).map_err(|what| refuse(format!("line {number}: {what}: not one run")))?;
        if run.len() - before > MOST_ROWS {
            return Err(refuse(format!("must have at most {MOST_ROWS} lines")).into());
        }
    }
    match run.len() == before {
        true => Err(refuse("must have a line for each kernel and size".to_owned()).into()),
        false => Ok(()),
    }
}

/// The rows of one run, whose parts are in several records, and its machine. Of several parts no
/// record is that of all, so there is none.
pub(super) fn read_all(
    argument: &str,
    paths: &[PathBuf],
) -> Result<(Vec<Row>, Option<Machine>), Failure> {
    let (mut run, mut machines) = (Run::default(), Vec::<Machine>::new());
    for path in paths {
        read_into(&mut run, argument, path)?;
        let Some(machine) = machine(path) else { continue };
        let difference = machines.first().and_then(|first| whole::difference(&machine, first));
        if let Some(what) = difference {
            return Err(Error::argument(argument, path.display(), what + ": not one run").into());
        }
        machines.push(machine);
    }
    let rows = run.rows();
    for machine in &machines {
        if let Some(what) = whole::is_of_others(machine, &rows) {
            return Err(Error::argument(argument, paths[0].display(), what).into());
        }
    }
    Ok((rows, machines.pop().filter(|_| paths.len() == 1)))
}

/// The machine of such a folder, if it is recorded. `path` may also be the folder's file of rows.
fn machine(path: &Path) -> Option<Machine> {
    let rows = rows_of(path);
    let file = rows.with_file_name(MACHINE);
    let file = host::open_input("--from", &file).ok().filter(|_| rows.ends_with(ROWS))?;
    serde_json::from_reader(io::BufReader::new(file)).ok()
}

/// Why a recorded row cannot be shown in a table or a picture.
fn cannot_be_shown(row: &Row) -> Option<String> {
    let types = [Some(&row.dtype), Some(&row.out_dtype)];
    let words = [Some(&row.kernel), Some(&row.description), Some(&row.device), Some(&row.trans)];
    let words = words.into_iter().chain(types);
    let words = words.chain([row.baseline.as_ref(), row.group.as_ref()]);
    let epilogue = [row.epilogue.as_ref(), row.instead.as_ref(), row.baseline_instead.as_ref()];
    let words = words.chain(epilogue).flatten();
    for words in words {
        if words.chars().any(char::is_control) {
            return Some(format!("{words:?}: must be without control characters"));
        }
    }
    if [row.m, row.n, row.k, row.batch].contains(&0) {
        return Some("sizes: each must be at least 1".to_owned());
    }
    let figures = [
        ("time_us", row.time_us),
        ("tflops", row.tflops),
        ("baseline_time_us", row.baseline_time_us),
        ("baseline_tflops", row.baseline_tflops),
        ("plain_time_us", row.plain_time_us),
        ("over_plain", row.over_plain),
        ("over_plain_low", row.over_plain_low),
        ("over_plain_high", row.over_plain_high),
        ("ratio", row.ratio),
        ("ratio_low", row.ratio_low),
        ("ratio_high", row.ratio_high),
        ("roof_tflops", row.roof_tflops),
        ("roof_memory_gb_per_s", row.roof_memory_gb_per_s),
    ];
    figures.into_iter().find_map(|(figure, value)| {
        let value = value.filter(|value| !(*value > 1e-12 && *value < 1e12))?;
        Some(format!("{figure} = {value:e}: must be above 1e-12 and below 1e12"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_fields_of_a_row() {
        let text = serde_json::to_string(&Row::default()).unwrap();
        let object = text.trim_start_matches('{').trim_end_matches('}');
        let fields = object.split(',').map(|field| field.split('"').nth(1).unwrap());
        assert_eq!(fields.collect::<Vec<_>>().join(" "), COLUMNS);
    }

    #[test]
    fn words_with_commas_are_quoted() {
        let row = Row { description: "a \"b\", c".to_owned(), m: 7, ..Row::default() };
        let text = csv(&[row]);
        let mut lines = text.lines();
        assert_eq!(lines.next().unwrap().split(',').count(), COLUMNS.split(' ').count());
        assert!(lines.next().unwrap().starts_with(",\"a \"\"b\"\", c\",,,,,7,0,0,"), "{text}");
    }
}
