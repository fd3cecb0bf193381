//! `explain`: one kernel's idea, its figures, its source with the effect of each line, its phases.

use std::{collections::BTreeMap, io::Write, num::NonZeroU32};

use host::{
    Device, Shape,
    check::merge,
    gpu::registry::{self, Entry, Product, Rung, TOY},
    phases::{self, Phases, Thread},
    picture,
    product::counted,
    profile,
    simt::{
        check::{Operation, Order},
        count_of,
    },
};

use super::{
    Failure,
    args::Explain,
    findings,
    ladder::{
        Counted, FitLine,
        count::{COUNTED, count, fit},
    },
    list::json,
    note, page,
    steps::Steps,
};

/// Explains a kernel.
pub(super) fn explain(args: &Explain, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let entry = args.kernel.0;
    if args.json || args.html.is_some() {
        return draw(args, steps, entry, out);
    }
    if args.trace {
        return trace(args, steps, entry, out);
    }
    let counted = match counted(entry) {
        Ok(_) => Some(steps.step(&format!("{}: counted", entry.name()), || count(entry))?),
        Err(_) => None,
    };
    // No driver has compiled `tiled2`.
    let device = if std::ptr::eq(entry, &*TOY) { Device::cpu() } else { Device::best().device };
    let fit = fit(entry, &device)?;
    let text = registry::text(entry.declaration().file).unwrap_or_default();
    let module = module_of(entry.declaration().file);

    headline(out, entry)?;
    writeln!(out)?;
    for line in module.unwrap_or(text).lines().map_while(|line| line.strip_prefix("//!")) {
        writeln!(out, "{}", line.strip_prefix(' ').unwrap_or(line))?;
    }
    writeln!(out)?;
    figures(out, entry, counted.as_ref(), &fit)?;
    writeln!(out)?;
    match module {
        Some(_) => row_of_table(out, entry, text)?,
        None => {
            let name = format!("{}: counted by line", entry.name());
            let margin = steps.step(&name, || margin(entry))?;
            source(out, entry, text, &margin)?;
        }
    }
    if counted.is_none_or(|counted| counted.clean) { Ok(()) } else { Err(Failure::Wrong) }
}

/// The family's own text, if the kernel's file is a table of its family's kernels.
fn module_of(file: &str) -> Option<&'static str> {
    registry::text(&format!("{}mod.rs", file.strip_suffix("table.rs")?))
}

/// The rung's number and idea.
fn headline(out: &mut impl Write, entry: &Entry) -> Result<(), Failure> {
    writeln!(out, "kernel    {}: {}", entry.name(), entry.summary)?;
    let Some(product) = &entry.product else { return Ok(()) };
    let rungs = registry::ladder_of(product.variant.operands).map(|(entry, _)| entry.name());
    let rungs = rungs.collect::<Vec<_>>();
    let place = rungs.iter().position(|name| *name == entry.name());
    if let (Some(place), Some(Rung { idea, .. })) = (place, &entry.rung) {
        writeln!(out, "rung      {} of {}: {idea}", place + 1, rungs.len())?;
    }
    Ok(())
}

fn figures(
    out: &mut impl Write,
    entry: &Entry,
    counted: Option<&Counted>,
    fit: &FitLine,
) -> Result<(), Failure> {
    let whole = |value: f64, thing: &str| count_of(format!("{value:.0}"), thing);
    let shown = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.3}"));
    let Some(product) = &entry.product else {
        return Ok(());
    };
    let ([rows, cols], [x, y, z]) = (product.tile(), product.block);
    writeln!(out, "block     {x} x {y} x {z} threads compute {rows} x {cols} elements of C")?;
    match (fit.registers, fit.shared_bytes) {
        (Some(registers), Some(shared)) => writeln!(
            out,
            "takes     {registers} registers a thread, {shared} bytes of shared memory a block ({})",
            fit.source
        )?,
        _ => writeln!(out, "takes     not known: no GPU's compiler has seen this kernel")?,
    }
    if let (Some(percent), Some(limit)) = (fit.occupancy_percent, &fit.limited_by) {
        writeln!(out, "occupancy {percent:.0} % on {}, limited by {limit}", fit.gpu)?;
    }
    if let Some(rung) = &entry.rung {
        writeln!(out, "on paper  {:.2} FLOP a byte", rung.flop_per_byte)?;
    }
    let Some(Counted { m, n, k, counts, clean }) = counted else {
        let whose = "lessons, and kernels of f32 or f64 on CUDA cores without TMA";
        writeln!(out, "counted   not: the accesses of {whose} are")?;
        return Ok(());
    };
    writeln!(
        out,
        "counted   {} FLOP for each byte asked for, {} for each moved in sectors (on the CPU at m = {m}, n = {n}, k = {k})",
        shown(counts.flop_per_byte),
        shown(counts.flop_per_sector_byte)
    )?;
    writeln!(
        out,
        "          {} sectors a load from global memory (ideal {})",
        shown(counts.sectors_per_request),
        shown(counts.sectors_per_request_ideal)
    )?;
    if counts.wavefronts_per_request.is_some() {
        writeln!(
            out,
            "          {} wavefronts an access to shared memory (ideal {})",
            shown(counts.wavefronts_per_request),
            shown(counts.wavefronts_per_request_ideal)
        )?;
    }
    writeln!(
        out,
        "a warp    {}, {}; global memory: {}, {}; shared memory: {}, {}",
        whole(counts.fma_per_warp, "multiply-add"),
        whole(counts.barriers_per_warp, "barrier"),
        whole(counts.global_loads_per_warp, "load"),
        whole(counts.global_stores_per_warp, "store"),
        whole(counts.shared_loads_per_warp, "load"),
        whole(counts.shared_stores_per_warp, "store")
    )?;
    if let Some(ops) = counts.tensor_ops_per_warp {
        let [load, store] =
            [counts.tma_load_bytes, counts.tma_store_bytes].map(|bytes| bytes.unwrap_or_default());
        writeln!(
            out,
            "          {ops:.1} instructions of tensor cores; TMA copies {load:.0} bytes in and {store:.0} out in all"
        )?;
    }
    if !clean {
        writeln!(out, "FOUND     something is wrong: see `check --kernel {}`", entry.name())?;
    }
    Ok(())
}

/// What each line of the kernel's files does, for a warp.
type Margin = BTreeMap<(String, u32), Vec<String>>;

fn margin(entry: &'static Entry) -> host::Result<Margin> {
    let [m, n, k] = COUNTED;
    let shape = Shape::new(m, n, k)?;
    let profiled = profile::product(entry, shape, NonZeroU32::MIN, 1)?;
    let Some(product) = &entry.product else { return Ok(Margin::new()) };
    let threads: u32 = product.block.iter().product();
    let warps = (profiled.profile.blocks * u64::from(threads.div_ceil(32))).max(1) as f64;
    let mut sums = BTreeMap::<(String, u32, Operation), u64>::new();
    for line in profiled.profile.lines {
        // Multiply-adds are counted for each thread, everything else for each warp.
        let times = if line.operation == Operation::Fma { line.lanes / 32 } else { line.requests };
        let site = (line.place.file, line.place.line, line.operation);
        *sums.entry(site).or_default() += times;
    }
    let mut margin = Margin::new();
    for ((file, line, operation), times) in sums {
        let words = format!("{:.0} {}", times as f64 / warps, short(operation));
        margin.entry((file, line)).or_default().push(words);
    }
    Ok(margin)
}

/// Its name in PTX.
fn short(operation: Operation) -> &'static str {
    match operation {
        Operation::GlobalLoad => "ld.global",
        Operation::GlobalStore => "st.global",
        Operation::SharedLoad => "ld.shared",
        Operation::SharedStore => "st.shared",
        Operation::SharedCopy => "cp.async",
        Operation::Fma => "fma",
        Operation::Barrier => "bar.sync",
        other => other.name(),
    }
}

/// The file without its module comment, and the effect of each line next to it.
fn source(out: &mut impl Write, entry: &Entry, text: &str, margin: &Margin) -> Result<(), Failure> {
    writeln!(
        out,
        "{}, and how often a warp does what, in the product above",
        entry.declaration().file
    )?;
    let own = entry.declaration().file;
    let words = |line: u32| {
        margin.get(&(own.to_owned(), line)).map_or(String::new(), |words| words.join(", "))
    };
    let width = margin.values().map(|words| words.join(", ").len()).max().unwrap_or(0);
    let body = (1..).zip(text.lines()).skip_while(|(_, line)| line.starts_with("//!"));
    for (number, line) in body.skip_while(|(_, line)| line.is_empty()) {
        let row = format!("{:>width$} {number:>4} | {line}", words(number));
        writeln!(out, "{}", row.trim_end())?;
    }
    // Lines of files that it shares with other kernels.
    for ((file, number), words) in margin.iter().filter(|((file, _), _)| file != own) {
        let line = registry::source(file, *number).unwrap_or_default().trim();
        writeln!(out, "{:>width$} {file}:{number} | {line}", words.join(", "))?;
    }
    Ok(())
}

/// The kernel's row in the table of its family, whose source all rows share.
fn row_of_table(out: &mut impl Write, entry: &Entry, text: &str) -> Result<(), Failure> {
    let file = entry.declaration().file;
    writeln!(
        out,
        "{file}: its row of the table. The source is its family's, in the files beside it"
    )?;
    let name = format!(" {}:", entry.declaration().name);
    let row = (1..).zip(text.lines()).skip_while(|(_, line)| !line.contains(&name));
    for (number, line) in row {
        writeln!(out, "{number:>4} | {line}")?;
        if line.ends_with(';') {
            break;
        }
    }
    Ok(())
}

/// Writes what a block does: as JSON, and as a page.
fn draw(
    args: &Explain,
    steps: Steps,
    entry: &'static Entry,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let product = product_of(entry)?;
    let file = args.html.as_deref().map(page::create).transpose()?;
    let shape = args.shape_of_picture(product)?;
    let name = format!("{}: traced", entry.name());
    let picture = steps.step(&name, || picture::of_block(entry, shape, args.block.0, 1));
    let picture = picture.map_err(as_flag)?;
    if args.json {
        json(out, &picture)?;
    }
    if let Some(file) = file {
        let title = format!("{}: {}", entry.name(), entry.summary);
        page::write(file, &title, &[picture::page::block(&picture)])?;
    }
    if picture.clean {
        return Ok(());
    }
    note(format_args!("something is wrong: see `check --kernel {}`", entry.name()));
    Err(Failure::Wrong)
}

/// The error for the library's argument `block` as one for the command's flag.
fn as_flag(error: host::Error) -> host::Error {
    match error {
        host::Error::Argument { argument, value, limit } if argument == "block" => {
            host::Error::argument("--block", value, limit)
        }
        error => error,
    }
}

/// The product of a kernel whose accesses can be traced.
fn product_of(entry: &'static Entry) -> Result<&'static Product, Failure> {
    counted(entry).map_err(|error| match error {
        host::Error::Argument { value, limit, .. } => {
            host::Error::argument("NAME", value, limit).into()
        }
        error => error.into(),
    })
}

/// Prints what each thread of a block does, phase by phase, or interval by interval.
fn trace(
    args: &Explain,
    steps: Steps,
    entry: &'static Entry,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let product = product_of(entry)?;
    let shape = args.shape(product.tile())?;
    let name = format!("{}: traced", entry.name());
    let seen = steps.step(&name, || phases::of_block(entry, shape, args.block.0, 1));
    let seen = seen.map_err(as_flag)?;
    headline(out, entry)?;
    writeln!(out, "{shape}   block {} (column, row of the grid)", args.block)?;
    let Phases { phases, asynchronous, barriers, left_out, findings, .. } = &seen;
    // A phase of a pipeline is a stage, which no barrier need begin.
    let (name, meaning) = match asynchronous {
        true => {
            ("interval", "; an interval begins where threads write shared memory after a barrier")
        }
        false => ("phase", ""),
    };
    let (phases_seen, barriers) = (count_of(phases.len(), name), count_of(barriers, "barrier"));
    writeln!(
        out,
        "{phases_seen}, {barriers}{meaning}; a thread is (row, column), an element [row,column], from 0"
    )?;
    for (number, phase) in phases.iter().enumerate() {
        writeln!(out, "\n{name} {number}")?;
        let rows = phase.threads.iter().map(row).collect::<Vec<_>>();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths = [0, 1, 2].map(width);
        let [thread, loads, adds] = widths;
        for [a, b, c, d] in &rows {
            let line = format!("  {a:<thread$}  {b:<loads$}  {c:<adds$}  {d}");
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    if *left_out > 0 {
        writeln!(
            out,
            "\n{left_out} further accesses are left out: the product is too large to be traced"
        )?;
    }
    let seen = merge(findings.iter().map(|finding| (Order::Forward, finding)));
    if seen.is_empty() {
        return Ok(());
    }
    findings::print(out, &seen, &[Order::Forward])?;
    Err(Failure::Wrong)
}

/// A thread, its loads, the products that it adds, its stores.
fn row(thread: &Thread) -> [String; 4] {
    let [row, col] = thread.thread;
    let list = |words: Vec<String>, between: &str| few(words).join(between);
    let loads = thread.loads.iter().map(ToString::to_string).collect();
    let adds = thread.adds.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut adds =
        if adds.is_empty() { String::new() } else { format!("sum += {}", list(adds, " + ")) };
    if thread.tensor_ops > 0 {
        let between = if adds.is_empty() { "" } else { ", and " };
        adds += &format!("{between}{} instructions of tensor cores", thread.tensor_ops);
    }
    if thread.other_adds > 0 {
        let between = if adds.is_empty() { "" } else { ", and " };
        adds += &format!("{between}{} multiply-adds of registers", thread.other_adds);
    }
    let stores = thread.stores.iter().map(|elements| format!("-> {elements}")).collect();
    [format!("({row},{col})"), list(loads, ", "), adds, list(stores, ", ")]
}

/// The ends of a long list.
fn few(mut words: Vec<String>) -> Vec<String> {
    const MOST: usize = 4;
    let count = words.len();
    if count > MOST {
        words.drain(2..count - 1);
        words.insert(2, format!("... ({} more)", count - 3));
    }
    words
}
