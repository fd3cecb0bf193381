//! `tour`: what is here, in two minutes and without a GPU.

use std::{io::Write, num::NonZeroU32};

use host::{
    Shape,
    check::{self, Data},
    product,
    profile::{self, Counts},
};
use simt::{
    LaunchConfig,
    check::{Options, Order, Place, Report},
    checked::{In, Out},
    cpu::LIMITS,
};

use super::{Failure, findings, ladder::count::count, steps::Steps};

/// The rungs of the last part. Each has an idea that the one before lacks.
const CLIMBED: [&str; 3] = ["basic", "tiled16", "register_blocked"];

/// The sizes of the first part: no tile divides them.
const SIZES: [u64; 3] = [100, 70, 51];

/// A kernel that lacks a barrier, unless it is told to have it.
mod planted {
    use simt::checked::*;

    /// Threads of a block.
    pub(super) const BLOCK: usize = 256;

    /// y is x, each 256 numbers of it in reverse.
    #[kernel(block = (BLOCK), shared = BLOCK * 4, len(x = 512, y = 512))]
    pub fn reverse(has_barrier: u32, x: In<f32>, mut y: Out<f32>) {
        let (i, first) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize * BLOCK);
        let mut tile = shared![f32; BLOCK];
        tile[i] = x[first + i];
        if has_barrier != 0 {
            thread::sync_threads();
        }
        y[first + i] = tile[BLOCK - 1 - i];
    }
}

/// Shows all parts.
pub(super) fn tour(steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    first_kernel(steps, out)?;
    sectors(steps, out)?;
    race(steps, out)?;
    rungs(steps, out)?;
    write!(
        out,
        "\n\
         Go on with one of\n  \
           cargo run -p host -- explain tiled16 --html page.html    a block's accesses, step by step, in a browser\n  \
           EXERCISE=guard_the_tail cargo run -p exercises           a kernel to mend, graded on this machine\n  \
           cargo xtask new ../mykernels                             a crate with a kernel of your own, and its test\n"
    )?;
    Ok(())
}

/// Runs the simplest kernel.
fn first_kernel(steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let entry = product::find("basic")?;
    let [m, n, k] = SIZES;
    let shape = Shape::new(m, n, k)?;
    writeln!(out, "1 of 4: a kernel. {}: {}\n", entry.name(), entry.summary)?;
    let [x, y, z] = entry.product.as_ref().map_or([1; 3], |product| product.block);
    writeln!(
        out,
        "Its source is gpu/src/lessons/basic.rs. Each element of C has a thread of its own, in blocks of {x} x {y} x {z}.\n\
         {shape}   f32, on this machine's cores"
    )?;
    let checked = steps.step("basic: run and checked", || {
        check::product(entry, shape, Data::Integers, Order::Forward, 1)
    })?;
    let seen = check::merge(checked.findings.iter().map(|finding| (Order::Forward, finding)));
    findings::print(out, &seen, &[Order::Forward])?;
    if checked.comparison.wrong > 0 || !checked.findings.is_empty() {
        return Err(Failure::Wrong);
    }
    writeln!(
        out,
        "verified  exact on integers; every access of every thread was watched, nothing found"
    )?;
    Ok(())
}

/// Counts what it does to memory.
fn sectors(steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let entry = product::find("basic")?;
    let shape = Shape::new(64, 64, 64)?;
    let profiled =
        steps.step("basic: counted", || profile::product(entry, shape, NonZeroU32::MIN, 1))?;
    write!(
        out,
        "\n2 of 4: what it does to memory. A warp is 32 threads. What they ask for at once is one request, and memory\n\
         answers in sectors of 32 bytes. Counted for each line of the source, at 64 x 64 x 64:\n\n{}",
        profiled.profile.table(findings::source)
    )?;
    let launches = product::launches(entry, shape, &LIMITS)?;
    let config = launches.first().map_or(LaunchConfig::new([0; 3], [0; 3]), |first| first.config);
    let counts = Counts::of(&profiled.profile, &config, shape);
    let figure = |value: Option<f64>| value.unwrap_or_default();
    writeln!(
        out,
        "\nideal: the fewest sectors that hold the bytes asked for. The loads take {:.1} sectors on average, and {:.1} would\n\
         do. For each byte that is asked for there are {:.2} FLOP.",
        figure(counts.sectors_per_request),
        figure(counts.sectors_per_request_ideal),
        figure(counts.flop_per_byte)
    )?;
    Ok(())
}

/// Plants a race, finds it, and mends it.
fn race(steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    write!(
        out,
        "\n3 of 4: a race. This kernel reverses each {} numbers by way of shared memory, and lacks a barrier. On a GPU\n\
         it is right most of the time:\n",
        planted::BLOCK
    )?;
    let report = steps.step("reverse: checked", || launch(false))?;
    let Some(first) = report.findings.first() else { return Err(Failure::Wrong) };
    writeln!(out, "\n{}", first.with_source(source))?;
    let others = report.findings.len() - 1;
    let mended = steps.step("reverse: checked with a barrier", || launch(true))?;
    if !mended.findings.is_empty() {
        return Err(Failure::Wrong);
    }
    writeln!(
        out,
        "\nOther findings: {others}. With `thread::sync_threads();` between the two lines: nothing found."
    )?;
    Ok(())
}

/// Runs the kernel with every access watched.
fn launch(has_barrier: bool) -> host::Result<Report> {
    let (x, mut y) = ([1.0; 2 * planted::BLOCK], [0.0; 2 * planted::BLOCK]);
    let config = LaunchConfig::new([2, 1, 1], [planted::BLOCK as u32, 1, 1]);
    // SAFETY: the arrays outlive the launch, and nothing else uses them. The kernel takes no raw
    // pointers, holds no references, and has no destructors.
    let report = unsafe {
        let views = (In::new(x.as_ptr(), x.len()), Out::new(y.as_mut_ptr(), y.len()));
        let params = (u32::from(has_barrier), views.0, views.1);
        simt::check::launch(&planted::reverse, &config, params, &Options::default())
    };
    report.map_err(|stop| host::Error::Launch { kernel: "reverse", what: stop.to_string() })
}

/// A line of this file.
fn source(place: &Place) -> Option<&'static str> {
    let number = (place.line as usize).checked_sub(1)?;
    include_str!("tour.rs").lines().nth(number).filter(|_| place.file == file!())
}

/// Compares rungs of the course by their counts.
fn rungs(steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    write!(
        out,
        "\n4 of 4: three rungs of the course. The product is the same, the accesses are fewer. Loads of a warp for each 100\n\
         multiply-adds:\n\n{:<18}{:>14}{:>14}{:>14}\n",
        "", "global memory", "shared memory", "FLOP a byte"
    )?;
    for name in CLIMBED {
        let entry = product::find(name)?;
        let counted = steps.step(&format!("{name}: counted"), || count(entry))?;
        let counts = counted.counts;
        let each = |loads: f64| 100.0 * loads / counts.fma_per_warp;
        writeln!(
            out,
            "{name:<18}{:>14.1}{:>14.1}{:>14.2}",
            each(counts.global_loads_per_warp),
            each(counts.shared_loads_per_warp),
            counts.flop_per_byte.unwrap_or_default()
        )?;
    }
    writeln!(out)?;
    for name in CLIMBED {
        let idea = product::find(name)?.rung.as_ref().map_or("", |rung| rung.idea);
        writeln!(out, "{name:<18}{idea}")?;
    }
    Ok(())
}
