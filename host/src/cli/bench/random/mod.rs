//! Random shapes: nobody can tune kernels for them.
//!
//! | module | its one idea |
//! |---|---|
//! | `shapes` | which shapes there are, and how they are drawn |
//! | `pool` | random operands, drawn once for all shapes |
//! | `spots` | some elements of C, compared |
//! | `measure` | one shape: every candidate verified, then timed |

#[cfg(test)]
mod invariant;
mod measure;
mod pool;
mod shapes;
mod spots;

use std::{io::Write, time::Instant};

use host::{Device, Error, baseline::Epilogue, timing::telemetry::Watch};

use self::{
    pool::{Needed, Places, Pool},
    shapes::{Drawn, Sizes},
    spots::Spots,
};
use super::{
    candidates::Bencher,
    case::{Case, Draw},
    library::{self, Compared},
    machine::Machine,
    measured::{Cut, Measured},
    row::Row,
    table,
    timed::Run,
};
use crate::cli::{
    Failure,
    args::{Bench, Verify},
    memory::check_bytes,
    note, open,
    steps::Steps,
    types::Value,
};

/// The shapes of a run, and the places of their operands.
type Cases = Vec<(Case, Places)>;

/// Measures random shapes, and prints each when it is done. If the run ends early, the results so
/// far are returned with the reason.
pub(super) fn measure<T: Compared<O>, O: Value>(
    args: &Bench,
    count: usize,
    steps: Steps,
    out: &mut impl Write,
) -> Result<Measured, Failure> {
    let begin = Instant::now();
    let device = open(args.device)?;
    let stream = device.stream()?;
    let mut cases = cases::<T, O>(args, count, &device)?;
    let needed = Needed::for_all(cases.iter().map(|(_, places)| *places));
    let compared = args.verify != Verify::None;
    check_memory::<T, O>(&cases, needed, &device)?;
    let Some(vs) = args.vs else {
        return Err(Error::argument("--random", count, "needs --vs cublas to compare with").into());
    };
    let libraries = library::open::<T, O>(vs, args.types.compute(), &stream)?;
    let mut machine = Machine::of(args, &device, &libraries)?;
    if !args.json {
        table::head(out, [T::NAME, O::NAME], &device.name(), &device.description(), true)?;
    }
    let mut pool = steps.step("operands for all shapes", || {
        Pool::<T, O>::new(&device, needed, args.seed, compared)
    })?;
    let run = Run { args, steps, stream: &stream, watch: false };
    let bencher = Bencher { run, libraries: &libraries };
    // Shapes of one kernel follow each other, so each kernel is loaded once.
    cases.sort_by_cached_key(|(case, _)| bencher.kernel_of(case));
    let watch = Watch::start(&device);
    let mut measure =
        |name: &str, case: &Case, places| measure::measure(&bencher, name, case, places, &mut pool);
    let (mut rows, cut) = each(args.json, &cases, out, &mut measure)?;
    match watch.finish() {
        Ok(seen) => rows.iter_mut().for_each(|row| row.watched(&seen)),
        Err(why) if device.is_cuda() => note(format_args!("note: no clocks or power: {why}")),
        Err(_) => {}
    }
    machine.took(begin.elapsed());
    machine.cut_short = cut.as_ref().map(Cut::to_string);
    Ok(Measured { rows, machine: Some(machine), cut })
}

/// Measures a shape of this name, with its operands in these places.
type Measure<'m> = dyn FnMut(&str, &Case, Places) -> Result<Vec<Row>, Failure> + 'm;

/// Measures each shape by `measure`, and prints its rows.
fn each(
    is_json: bool,
    cases: &Cases,
    out: &mut impl Write,
    measure: &mut Measure,
) -> Result<(Vec<Row>, Option<Cut>), Failure> {
    let mut rows = Vec::<Row>::new();
    let (mut ran, of, mut why) = (0, cases.len(), None);
    for (number, (case, places)) in (1..).zip(cases) {
        let name = format!("{} ({number} of {of})", case.name());
        match measure(&name, case, *places) {
            Ok(found) => {
                table::size(is_json, out, &found, true)?;
                rows.extend(found);
                ran += 1;
            }
            // An error of one shape does not end the others.
            Err(Failure::Error(
                error @ (Error::Argument { .. } | Error::OutOfMemory { .. }),
                _,
            )) => {
                note(format_args!("error: {name}: {error}"));
                why.get_or_insert(error.into());
            }
            Err(output @ Failure::Output(_)) => return Err(output),
            Err(failure) => {
                why = Some(failure);
                break;
            }
        }
    }
    Ok((rows, why.map(|why| Cut { ran, of, what: "shapes", why })))
}

/// The shapes of this part, in the order of drawing.
fn cases<T: Value, O: Value>(
    args: &Bench,
    count: usize,
    device: &Device,
) -> Result<Cases, Failure> {
    // The CPU takes hours for the shapes of a GPU.
    let small = args.random.small || !device.is_cuda();
    let mut sizes = Sizes::new(size_of::<T>(), small);
    sizes.is_float = T::FORMAT.is_float();
    let drawn = shapes::draw(args.seed, count, sizes)?;
    let part = args.random.part.map_or(0..count, |part| part.of(count));
    let case = |drawn: &Drawn| -> host::Result<(Case, Places)> {
        let Drawn { number, class, aligned, product, epilogue } = *drawn;
        let (draw, epilogues) = (Some(Draw { number, of: count, aligned }), vec![epilogue]);
        let case = Case { group: Some(class.name().to_owned()), draw, product, epilogues };
        let places = Places::new::<T, O>(&case, device)?;
        Ok((case, places))
    };
    Ok(drawn[part].iter().map(case).collect::<host::Result<_>>()?)
}

/// Refuses a run that does not fit into memory, before it begins.
fn check_memory<T, O>(cases: &Cases, needed: Needed, device: &Device) -> Result<(), Failure> {
    // cublasLt's, and this library's.
    const WORKSPACES: u64 = (32 << 20) + (256 << 20);
    let [here, on_device] = needed.bytes::<T, O>();
    let spots = cases.iter().map(|(case, _)| Spots::bytes::<T>(&case.product)).max().unwrap_or(0);
    // What a library copies C to, if it lacks an epilogue.
    let copied = |(case, _): &(Case, Places)| match case.epilogues == [Epilogue::PLAIN] {
        true => 0,
        false => case.product.bytes_of::<T, O>(),
    };
    let copy = cases.iter().map(copied).max().unwrap_or(0);
    let workspaces = if device.is_cuda() { WORKSPACES + copy } else { 0 };
    Ok(check_bytes(here + spots, on_device + workspaces, device)?)
}
