//! Named sizes, one after another.

use std::{io::Write, time::Instant};

use host::{Device, Error};

use super::{
    added::reads,
    candidates::Bencher,
    case::Case,
    library::{self, Compared},
    machine::Machine,
    measured::{Cut, Measured},
    row::Row,
    table,
    timed::Run,
};
use crate::cli::{
    Failure,
    args::{Bench, Verify, product_by},
    memory::check_bytes,
    note, open,
    run::note_a_long_run,
    steps::Steps,
    types::Value,
};

/// The time for sizes. They run by their work, and those that are left out are named.
pub(super) struct Budget {
    until: Instant,
    /// Sizes for which there was no time.
    late: Vec<String>,
    /// Sizes that do not fit into memory, and why.
    large: Vec<String>,
}

impl Budget {
    pub(super) fn new(until: Instant) -> Self {
        Budget { until, late: Vec::new(), large: Vec::new() }
    }

    /// What was left out of `what`, with the reasons.
    pub(super) fn named(self, what: &str) -> Vec<String> {
        let late = Some(self.late.join(", ")).filter(|late| !late.is_empty());
        let late = late.map(|late| format!("{what}, for want of time: {late}"));
        self.large.into_iter().map(|why| format!("{what}: {why}")).chain(late).collect()
    }

    /// Whether there is time for a size of this work. `last`: the work of the size before, and its
    /// seconds. A size takes no more for its work.
    fn has(&self, work: f64, last: Option<(f64, f64)>) -> bool {
        let expected = last.map_or(0.0, |(done, seconds)| seconds * (work / done).max(1.0));
        let left = self.until.saturating_duration_since(Instant::now());
        !left.is_zero() && expected <= left.as_secs_f64()
    }
}

/// The smallest first. For all types at once, since sorting is compiled for each closure.
fn by_work(cases: &mut [Case]) {
    cases.sort_by(|a, b| a.product.flop().total_cmp(&b.product.flop()));
}

/// Measures, and prints each size when it is done. With a budget, sizes may be left out.
pub(super) fn measure<T: Compared<O>, O: Value>(
    args: &Bench,
    steps: Steps,
    mut out: &mut dyn Write,
    mut budget: Option<&mut Budget>,
) -> Result<Measured, Failure> {
    let out = &mut out;
    let begin = Instant::now();
    // Kernels of other types are refused here. Whether a kernel can compute a product is checked at
    // that product.
    let named = args.kernels.iter().filter_map(|kernel| kernel.entry);
    let compute = args.types.compute();
    named.map(|entry| product_by::<T, O>(entry, compute)).collect::<Result<Vec<_>, _>>()?;
    let device = open(args.device)?;
    let stream = device.stream()?;
    // All sizes are checked before the first one runs.
    let epilogues = args.epilogue.all();
    let has_epilogues = epilogues.len() > 1;
    let case = |of| Case { epilogues: epilogues.clone(), ..Case::new(of) };
    let mut cases = args.products_on(&device)?.into_iter().map(case).collect::<Vec<_>>();
    let fits = |case: &Case| check_memory::<T, O>(args, case, &device);
    match &mut budget {
        None => cases.iter().try_for_each(fits)?,
        Some(budget) => {
            by_work(&mut cases);
            cases.retain(|case| {
                let fits = fits(case).map_err(|failure| format!("{}: {failure}", case.name()));
                fits.map_err(|why| budget.large.push(why)).is_ok()
            });
        }
    }
    let work = |case: &&Case| {
        let shape = case.product.shape;
        shape.m() as f64 * shape.n() as f64 * shape.k() as f64
    };
    let largest = cases.iter().max_by(|a, b| work(a).total_cmp(&work(b)));
    if let Some(largest) = largest.filter(|_| budget.is_none()) {
        note_a_long_run(largest.product.shape, &device);
    }
    let libraries = match args.vs {
        Some(vs) => library::open::<T, O>(vs, args.types.compute(), &stream)?,
        None => Vec::new(),
    };
    let mut machine = Machine::of(args, &device, &libraries)?;
    let run = Run { args, steps, stream: &stream, watch: true };
    let bencher = Bencher { run, libraries: &libraries };
    if !args.json {
        let (name, description) = (device.name(), device.description());
        table::head(out, [T::NAME, O::NAME], &name, &description, has_epilogues)?;
    }
    let measure = |name: &str, case: &Case| bencher.case(name, case);
    let (rows, cut) = each(args.json, &cases, out, &measure, budget)?;
    machine.took(begin.elapsed());
    machine.cut_short = cut.as_ref().map(Cut::to_string);
    Ok(Measured { rows, machine: Some(machine), cut })
}

/// Measures a size of this name.
type Measure<'m> = dyn Fn(&str, &Case) -> Result<Vec<Row>, Failure> + 'm;

/// Measures each size by `measure`, and prints its rows.
fn each(
    is_json: bool,
    cases: &[Case],
    out: &mut impl Write,
    measure: &Measure,
    mut budget: Option<&mut Budget>,
) -> Result<(Vec<Row>, Option<Cut>), Failure> {
    let (mut all, mut cut, mut last) = (Vec::new(), None, None);
    for (ran, case) in cases.iter().enumerate() {
        let (work, begin) = (case.product.flop(), Instant::now());
        if let Some(budget) = budget.as_deref_mut().filter(|budget| !budget.has(work, last)) {
            budget.late.push(case.name());
            continue;
        }
        let name = format!("{} ({} of {})", case.name(), ran + 1, cases.len());
        let rows = match measure(&name, case) {
            Ok(rows) => rows,
            // What has been measured is not lost.
            Err(why @ Failure::Error(Error::Interrupted, _)) if !all.is_empty() => {
                cut = Some(Cut { ran, of: cases.len(), what: "sizes", why });
                break;
            }
            Err(failure) => return Err(failure),
        };
        table::size(is_json, out, &rows, case.epilogues.len() > 1)?;
        all.extend(rows);
        last = Some((work, begin.elapsed().as_secs_f64()));
    }
    if all.is_empty() && budget.is_none() {
        note(format_args!("note: none of the kernels takes any of these products"));
    }
    Ok((all, cut))
}

/// Refuses a size that does not fit into memory, before anything runs.
fn check_memory<T, O>(args: &Bench, case: &Case, device: &Device) -> Result<(), Failure> {
    let bytes = case.product.bytes_of::<T, O>();
    let verify = args.verify != Verify::None;
    // Sets of uniform operands, one set of integers, and a library's workspace.
    let sets = case.sets::<T, O>(device) + u64::from(verify);
    let workspace = if args.vs.is_some() { 32 << 20 } else { 0 };
    // What a library copies C to, if it lacks an epilogue.
    let copy = if case.epilogues.len() > 1 { case.product.bytes_of::<T, O>() } else { 0 };
    let on_device = bytes.saturating_mul(sets).saturating_add(workspace).saturating_add(copy);
    // The operands are drawn in host memory, real numbers and integers. A C of each is kept,
    // and verification has B twice in float64.
    let wide = if verify { 16 * case.product.shape.b_len() as u64 } else { 0 };
    let drawn = case.product.bytes_of::<T, O>();
    // The old C, of real numbers and of integers.
    let [_, before] = reads(&case.epilogues);
    let before = if before { 2 * (size_of::<O>() * case.product.lens()?[2]) as u64 } else { 0 };
    let on_host = drawn.saturating_mul(3).saturating_add(wide).saturating_add(before);
    Ok(check_bytes(on_host, on_device, device)?)
}
