//! Every kernel, with pages around its operands and between their rows that cannot be accessed.
//!
//! A process of its own runs the cases: an access to such a page ends it. It tells each case before
//! it runs it, so that the last one is the one that failed. Then another process runs the others.

use std::{
    env,
    process::{Command, Output},
};

use host::{
    Batch, BatchMut, Device, Result,
    gemm::{Kernel, Scalar},
};
use simt::{Bf16, F16};
use tests::{
    Turns,
    gemm::{Case, Number, Want},
};

use crate::{
    cases::{self, Way},
    memory::{Edge, Memory, same},
};

/// Says that a process is one that runs the cases, from that one on.
const FROM: &str = "VIEWS_FROM";

/// What stands before the number of a case, before it runs.
const BEGINS: &str = "case ";

/// Runs a case.
fn run<T: Number + Scalar<O>, O: Number>(
    kernel: Kernel,
    case: &Case<T, O>,
    want: &Want,
    edge: Edge,
) -> Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let (a, b, c) =
        (Memory::of(&case.a, edge), Memory::of(&case.b, edge), Memory::of(&case.c, edge));
    let bias = case.bias.as_ref().map_or(&[][..], |(_, bias)| bias);
    let bias = Memory::dense(bias, edge);
    let before = [a.values(), b.values()];
    // SAFETY: the memory outlives the product, and nobody else uses it meanwhile. What is between
    // the elements is not initialised, or cannot be accessed: that nobody does is what is tested.
    let (of_a, of_b, mut of_c, of_bias) = unsafe {
        let [(a, a_len), (b, b_len)] = [a.place(), b.place()];
        let [(c, c_len), (bias, bias_len)] = [c.place(), bias.place()];
        let (c, bias) = (device.foreign::<O>(c, c_len)?, device.foreign::<O>(bias, bias_len)?);
        (device.foreign::<T>(a, a_len)?, device.foreign::<T>(b, b_len)?, c, bias)
    };
    let gemm = cases::gemm(kernel.entry, case, of_bias.view(..)?)?;
    let batch =
        |of: &tests::gemm::Operand<T>| (of.size, of.place.strides, of.count(), of.place.step);
    let (size, strides, count, step) = batch(&case.a);
    let of_a = Batch::new(of_a.view(..)?, size, strides, count, step)?;
    let (size, strides, count, step) = batch(&case.b);
    let of_b = Batch::new(of_b.view(..)?, size, strides, count, step)?;
    let (place, count) = (case.c.place, case.c.count());
    let of_c = BatchMut::new(of_c.view_mut(..)?, case.c.size, place.strides, count, place.step)?;
    gemm.launch_batch(&stream, of_a, of_b, of_c)?;
    stream.synchronize()?;
    cases::check(want, c.values()).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(same(&before[0], &a.values()) && same(&before[1], &b.values()), "A or B has changed");
    for (name, kept) in
        [("A", a.is_kept_between()), ("B", b.is_kept_between()), ("C", c.is_kept_between())]
    {
        assert!(kept, "something between {name}'s elements was written");
    }
    Ok(())
}

/// Runs the cases of all kernels for these types, from the `from`th one on. Returns the number of
/// all, and those of which a kernel has had none.
fn all<T: Number + Scalar<O>, O: Number>(
    of: fn(Case<T>) -> Case<T, O>,
    numbers: &mut usize,
    from: usize,
) {
    for (before, kernel) in <T as Scalar<O>>::kernels().enumerate() {
        let (mut taken, mut edges) = (0, Turns::of(2));
        let is_all = edges.is_all();
        // A kernel has every second way, the next one the others, and each way one edge in turn.
        let is_its = |number: usize| is_all || (number + before).is_multiple_of(2);
        let ways = cases::ways(kernel.product, before).into_iter().enumerate();
        for (way, edge) in
            ways.filter(|(number, _)| is_its(*number)).flat_map(|(_, way): (_, Way)| {
                edges
                    .next_case()
                    .into_iter()
                    .map(move |edge| (way, Edge::BOTH[(before + edge) % 2]))
            })
        {
            *numbers += 1;
            if *numbers <= from {
                continue;
            }
            let name = kernel.entry.name();
            println!(
                "{BEGINS}{numbers}: {name} for {}, the {edge:?} element at a page's edge, {way:?}",
                <T as Scalar<O>>::name()
            );
            let (case, want) = cases::case::<T>(way, kernel.entry.is_emulated());
            match run(kernel, &of(case), &want, edge) {
                Ok(()) => taken += 1,
                Err(error) if cases::is_refused(&error) => {}
                Err(error) => panic!("{error}"),
            }
        }
        // Of a kernel whose first cases another process has run, nothing is known.
        let is_whole = from == 0;
        assert!(taken > 0 || !is_whole, "{} takes no case", kernel.entry.name());
    }
}

/// Runs the cases from that one on.
fn child(from: usize) {
    let mut numbers = 0;
    all::<f32, f32>(|case| case, &mut numbers, from);
    all::<f64, f64>(|case| case, &mut numbers, from);
    all::<Bf16, Bf16>(|case| case, &mut numbers, from);
    all::<Bf16, f32>(|case| case.widened(), &mut numbers, from);
    all::<F16, F16>(|case| case, &mut numbers, from);
    all::<F16, f32>(|case| case.widened(), &mut numbers, from);
    println!("{BEGINS}{numbers}: all have run");
}

/// The last case that a process has told, and its number.
fn last(output: &Output) -> Option<(usize, String)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rev().find_map(|line| line.split_once(BEGINS))?.1;
    let (number, _) = line.split_once(':')?;
    Some((number.parse().ok()?, line.to_owned()))
}

#[test]
fn every_kernel_keeps_to_the_elements_of_its_views() {
    const MOST: usize = 40;
    if let Some(from) = env::var(FROM).ok().and_then(|from| from.parse().ok()) {
        return child(from);
    }
    let (mut from, mut failed) = (0, Vec::new());
    loop {
        let mut run = Command::new(env::current_exe().unwrap());
        run.args([
            "--exact",
            "--nocapture",
            "pages::every_kernel_keeps_to_the_elements_of_its_views",
        ]);
        let output = run.env(FROM, from.to_string()).output().unwrap();
        let (number, case) = last(&output).expect("a case that was told");
        if output.status.success() {
            break;
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let why = errors.lines().filter(|line| !line.trim().is_empty()).take(3).collect::<Vec<_>>();
        failed.push(format!("{case}\n    {}: {}", output.status, why.join("\n    ")));
        from = number;
        if failed.len() == MOST {
            break;
        }
    }
    assert!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n"));
}
