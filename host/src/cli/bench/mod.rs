//! `bench`: kernels side by side, and beside other people's libraries, at several sizes.
//!
//! | module | its one idea |
//! |---|---|
//! | `case` | a product that is timed, and its operands |
//! | `library` | what kernels are held against |
//! | `cpu` | two of those, on the CPU |
//! | `candidates` | what is verified and timed at a size, and the timing |
//! | `verdict` | is C right, and how exact? |
//! | `measure` | one size: every candidate verified, then timed in turn |
//! | `row` | what is said of a kernel at a size |
//! | `table` | rows for people |
//! | `record` | rows as files, and read back |
//! | `machine` | what the figures are of |
//! | `plot` | pictures of them |
//! | `compare` | what has changed since an older run |

mod candidates;
pub(super) mod case;
mod compare;
#[cfg(feature = "baselines")]
mod cpu;
pub(super) mod library;
mod machine;
mod measure;
mod plot;
mod record;
mod row;
mod table;
mod verdict;

use std::{io::Write, time::Instant};

use host::{Bf16, Device, F16};

use self::{
    candidates::Bencher, case::Case, library::Compared, machine::Machine, record::Folder, row::Row,
};
use super::{
    Failure,
    args::{Bench, Types, Verify, product_by},
    list::json,
    note,
    run::{check_bytes, note_a_long_run},
    steps::Steps,
    types::Value,
};

/// Times every kernel asked for at every size asked for, or reads what was timed once, and shows it.
pub(super) fn bench(args: &Bench, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let old = args.compare.as_deref().map(|path| record::read("--compare", path)).transpose()?;
    let folder = args.out.as_deref().map(|path| Folder::create(args, path)).transpose()?;
    let (rows, machine) = match &args.from {
        Some(path) => {
            let rows = record::read("--from", path)?;
            show(args, &rows, out)?;
            (rows, record::machine(path))
        }
        None => {
            let (rows, machine) = match args.types.types()? {
                Types::F32 => measure::<f32, f32>(args, steps, out),
                Types::Bf16 => measure::<Bf16, Bf16>(args, steps, out),
                Types::Bf16F32 => measure::<Bf16, f32>(args, steps, out),
                Types::F16 => measure::<F16, F16>(args, steps, out),
                Types::F16F32 => measure::<F16, f32>(args, steps, out),
            }?;
            (rows, Some(machine))
        }
    };
    if let Some(folder) = folder {
        folder.write(&rows, machine.as_ref())?;
    }
    if let Some(old) = old {
        // Of objects, standard output has nothing else.
        match args.json {
            true => compare::print(&mut std::io::stderr(), &old, &rows)?,
            false => compare::print(out, &old, &rows)?,
        }
    }
    if rows.iter().any(Row::is_wrong) { Err(Failure::Wrong) } else { Ok(()) }
}

/// What was recorded once.
fn show(args: &Bench, rows: &[Row], out: &mut impl Write) -> Result<(), Failure> {
    if args.json {
        return rows.iter().try_for_each(|row| json(out, row));
    }
    if let Some(row) = rows.first() {
        table::head(out, [&row.dtype, &row.out_dtype], &row.device, &row.description)?;
    }
    let mut sizes = rows.chunk_by(|one, other| one.size() == other.size());
    Ok(sizes.try_for_each(|rows| table::rows(out, rows))?)
}

/// Measures, and shows each size when it is done.
fn measure<T: Compared<O>, O: Value>(
    args: &Bench,
    steps: Steps,
    out: &mut impl Write,
) -> Result<(Vec<Row>, Machine), Failure> {
    let begin = Instant::now();
    // Kernels of other types are refused here, those that do not take a product when it comes.
    let named = args.kernels.iter().filter_map(|kernel| kernel.entry);
    let compute = args.types.compute();
    named.map(|entry| product_by::<T, O>(entry, compute)).collect::<Result<Vec<_>, _>>()?;
    let device = super::open(args.device)?;
    let stream = device.stream()?;
    // All sizes are looked at before the first one runs.
    let cases = args.products_on(&device)?.into_iter().map(Case::new).collect::<Vec<_>>();
    cases.iter().try_for_each(|case| check_memory::<T, O>(args, case, &device))?;
    let work = |case: &&Case| {
        let shape = case.product.shape;
        shape.m() as f64 * shape.n() as f64 * shape.k() as f64
    };
    if let Some(largest) = cases.iter().max_by(|a, b| work(a).total_cmp(&work(b))) {
        note_a_long_run(largest.product.shape, &device);
    }
    let libraries = match args.vs {
        Some(vs) => library::open::<T, O>(vs, args.types.compute(), &stream)?,
        None => Vec::new(),
    };
    let mut machine = Machine::of(args, &device, &libraries)?;
    let bencher = Bencher { args, steps, stream: &stream, libraries: &libraries };
    if !args.json {
        table::head(out, [T::TYPE, O::TYPE], &device.name(), &device.description())?;
    }
    let mut all = Vec::new();
    for (number, case) in (1..).zip(&cases) {
        let shape = case.product.shape;
        let size = format!("{}x{}x{}", shape.m(), shape.n(), shape.k());
        let rows = bencher.case(&format!("{size} ({number} of {})", cases.len()), case)?;
        match args.json {
            true => rows.iter().try_for_each(|row| json(out, row))?,
            false => table::rows(out, &rows)?,
        }
        out.flush()?;
        all.extend(rows);
    }
    if all.is_empty() {
        note(format_args!("note: none of the kernels takes any of these products"));
    }
    machine.took(begin.elapsed());
    Ok((all, machine))
}

/// Refuses a size that does not fit, before anything has begun.
fn check_memory<T, O>(args: &Bench, case: &Case, device: &Device) -> Result<(), Failure> {
    let bytes = case.product.bytes_of::<T, O>();
    let verify = args.verify != Verify::None;
    // Uniform operands in sets, and one of integers; and what a library works in.
    let sets = case.sets::<T, O>(device) + u64::from(verify);
    let workspace = if args.vs.is_some() { 32 << 20 } else { 0 };
    let on_device = bytes.saturating_mul(sets).saturating_add(workspace);
    // The operands are drawn here first, real and integers, of f32 whatever they become, a C of each is kept, and
    // verification has B twice in float64.
    let wide = if verify { 16 * case.product.shape.b_len() as u64 } else { 0 };
    let drawn = case.product.bytes_of::<f32, f32>();
    let on_host = drawn.saturating_mul(3).saturating_add(wide);
    Ok(check_bytes(on_host, on_device, device)?)
}
