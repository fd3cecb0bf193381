//! `bench`: kernels and other libraries compared at several sizes.
//!
//! | module | its one idea |
//! |---|---|
//! | `added` | the numbers of epilogues: the bias, and the old C |
//! | `case` | a product that is timed, and its operands |
//! | `ready` | the trait of a library, and of a product that it has prepared |
//! | `library` | the libraries that kernels are compared with |
//! | `cpu` | two of them, on the CPU |
//! | `candidates` | the candidates at a size |
//! | `timed` | the candidates of a size judged and timed, whatever their types |
//! | `every` | all kernels at a random shape, with each split of k |
//! | `verdict` | whether C is right, and how accurate it is |
//! | `measure` | one size: every candidate verified, then timed |
//! | `once` | a candidate launched once, and its C compared |
//! | `sizes` | named sizes, one after another |
//! | `random` | random shapes |
//! | `measured` | the results of a run |
//! | `summary` | the summary of random shapes: means, shares, the worst |
//! | `row` | the results of a kernel at a size |
//! | `table` | rows printed for people |
//! | `record` | rows written to files, and read back |
//! | `consistent` | whether the figures of a recorded row agree |
//! | `whole` | whether recorded rows are one run |
//! | `report` | the file about a card that is attached to an issue |
//! | `machine` | the machine of a measurement |
//! | `plot` | pictures of rows |
//! | `compare` | changes since an older run |

mod added;
mod candidates;
pub(super) mod case;
mod compare;
mod consistent;
#[cfg(feature = "baselines")]
mod cpu;
mod every;
pub(super) mod library;
mod machine;
mod measure;
mod measured;
mod once;
mod plot;
mod random;
mod ready;
mod record;
mod report;
mod row;
mod sizes;
mod summary;
mod table;
mod timed;
mod verdict;
mod whole;

use std::io::Write;

use host::{Error, simt::with_types};

pub(super) use self::report::report;
use self::{library::Compared, measured::Measured, record::Folder, row::Row};
use super::{
    Failure,
    args::Bench,
    note,
    steps::Steps,
    types::{Value, not_multiplied},
};

/// Times every kernel asked for at every size asked for, or reads an older run, and prints the
/// rows.
pub(super) fn bench(args: &Bench, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let old = args.compare.as_deref().map(|path| record::read("--compare", path)).transpose()?;
    let folder = args.out.as_deref().map(|path| Folder::create(args, path)).transpose()?;
    let Measured { rows, machine, cut } = match &args.from[..] {
        [] => {
            let types = args.types.types()?;
            with_types!(types, |T, O| measure::<T, O>(args, steps, out))
                .unwrap_or_else(|| Err(not_multiplied(types.0, types.1)))?
        }
        paths => {
            let (rows, machine) = record::read_all("--from", paths)?;
            table::all(args.json, out, &rows)?;
            Measured { rows, machine, cut: None }
        }
    };
    if let Some(cut) = &cut {
        // The results so far are still written.
        if matches!(cut.why, Failure::Error(Error::Interrupted, _)) {
            host::resume();
        }
        note(format_args!("error: {cut}"));
    }
    if let Some(folder) = folder.filter(|_| cut.is_none() || !rows.is_empty()) {
        folder.write(&rows, machine.as_ref())?;
    }
    // With `--json`, standard output has objects only.
    let mut stderr = std::io::stderr();
    let words: &mut dyn Write = if args.json { &mut stderr } else { out };
    let cut_short = cut.as_ref().map(ToString::to_string);
    let cut_short = cut_short.or_else(|| machine.and_then(|machine| machine.cut_short));
    summary::print(words, &rows, cut_short.as_deref())?;
    if let Some(old) = old {
        compare::print(words, &old, &rows)?;
    }
    match cut {
        Some(cut) => Err(cut.why),
        None if rows.iter().any(Row::is_wrong) => Err(Failure::Wrong),
        None => Ok(()),
    }
}

fn measure<T: Compared<O>, O: Value>(
    args: &Bench,
    steps: Steps,
    out: &mut impl Write,
) -> Result<Measured, Failure> {
    match args.random.shapes(args.verify)? {
        Some(count) => random::measure::<T, O>(args, count, steps, out),
        None => sizes::measure::<T, O>(args, steps, out, None),
    }
}
