//! `check`: a kernel with every access checked, and the findings.

use std::{io::Write, time::Instant};

use host::{
    Device, Shape,
    check::{self, Checked, Data, Seen},
    gpu::registry::{Entry, Type},
    simt::{
        check::{Order, order_names},
        count_of,
    },
    verify::Comparison,
};
use serde::Serialize;

use super::{
    Failure,
    args::{Check, Layouts},
    findings::{self, FindingLine},
    list::{in_six_digits, json},
    memory::check_memory,
    note,
    steps::Steps,
    types::{rounded, words},
    verification::{Verification, off},
};

/// The report on a kernel, also the object of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kernel: &'static str,
    m: usize,
    n: usize,
    k: usize,
    /// The types of A and B, and of C.
    dtype: &'static str,
    out_dtype: &'static str,
    /// The layouts of A and B: `n` row-major, `t` column-major.
    trans: String,
    /// What the scales of A and B are of. `null`: there are none.
    scales: Option<String>,
    seed: u64,
    orders: Vec<String>,
    /// Whether there are no findings. `null` if nothing was launched.
    clean: Option<bool>,
    findings: Vec<FindingLine<'a>>,
    /// What the checker could not see, since a limit of its own was reached.
    limits: Vec<&'static str>,
    /// On real numbers, against the product in float64. `null` for NaN.
    max_abs_err: Option<f64>,
    max_err_over_bound: Option<f64>,
    /// Whether C was exact on integers, in every order. `null` if not tried.
    exact_on_integers: Option<bool>,
    /// Whether C is right in every order, also on integers. `null` if nothing was compared.
    verified: Option<bool>,
    #[serde(serialize_with = "in_six_digits")]
    seconds: f64,
}

/// Checks the kernels asked for, one after another.
pub(super) fn check(args: &Check, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let shape = args.sizes.shape()?;
    check_memory(shape, check::bytes(shape), true, &Device::cpu())?;
    let (orders, entries) = (args.orders(), args.entries(shape)?);
    entries.iter().try_for_each(|entry| check::must_take(entry, args.scales))?;
    if !args.json {
        let [operands, c] = args.types().map(Type::name);
        // With several kernels all operands are row-major.
        let lie = match &entries[..] {
            [entry] => match entry.by_columns() {
                [false, false] => "row-major",
                [true, false] => "A column-major",
                [false, true] => "B column-major",
                [true, true] => "A and B column-major",
            },
            _ => "row-major",
        };
        let scales = args.scales.map_or(String::new(), |kind| format!(", scales {kind}"));
        writeln!(out, "{shape}   {}, {lie}, seed {}{scales}", words(operands, c), args.seed)?;
        let (orders, names) = (count_of(orders.len(), "order"), order_names(&orders));
        writeln!(out, "checked   every access, on the CPU, in {orders}: {names}")?;
    }
    let mut all_well = true;
    for (number, entry) in entries.into_iter().enumerate() {
        if number > 0 && !args.json {
            writeln!(out)?;
        }
        all_well &= check_kernel(args, steps, entry, shape, &orders, out)?;
    }
    if all_well { Ok(()) } else { Err(Failure::Wrong) }
}

/// Checks a kernel. Returns whether it is clean and C is right.
fn check_kernel(
    args: &Check,
    steps: Steps,
    entry: &'static Entry,
    shape: Shape,
    orders: &[Order],
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let begin = Instant::now();
    let mut products = Vec::new();
    for (data, order) in check::products(shape, args.scales, orders) {
        let step = format!("{}: {data}, order {order}", entry.name());
        let product = || check::scaled(entry, shape, args.scales, data, order, args.seed);
        products.push(steps.step(&step, product)?);
    }
    let seen = products.iter().flat_map(|p| p.findings.iter().map(|finding| (p.order, finding)));
    let seen = check::merge(seen);
    let [real, exact] = [Data::Uniform, Data::Integers].map(|data| worst(&products, data));
    let right = products.iter().all(|product| product.comparison.wrong == 0);
    let [dtype, out_dtype] = args.types().map(Type::name);
    let something = shape.c_len() > 0;
    let line = Line {
        kernel: entry.name(),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        dtype,
        out_dtype,
        trans: Layouts(entry.by_columns()).to_string(),
        scales: args.scales.map(|kind| kind.to_string()),
        seed: args.seed,
        orders: orders.iter().map(Order::to_string).collect(),
        clean: something.then_some(seen.is_empty()),
        findings: seen.iter().map(FindingLine::new).collect(),
        limits: limits_of(&products),
        max_abs_err: real.filter(|_| something).map(|real| real.max_abs_err),
        max_err_over_bound: real.filter(|_| something).map(|real| real.max_err_over_bound),
        exact_on_integers: exact.filter(|_| something).map(|exact| exact.wrong == 0),
        verified: something.then_some(right && exact.is_some()),
        seconds: begin.elapsed().as_secs_f64(),
    };
    match args.json {
        true => json(out, &line)?,
        false => print(out, &line, &seen, right, orders, entry)?,
    }
    complain(args, &products, entry);
    Ok(seen.is_empty() && right)
}

/// The limits that any of these products has reached, each once.
fn limits_of(products: &[Checked]) -> Vec<&'static str> {
    let mut limits = Vec::new();
    for limit in products.iter().flat_map(|product| &product.limits).map(|limit| limit.says()) {
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    limits
}

/// Among the comparisons of this data, the one with the largest error. NaN is the largest.
fn worst(products: &[Checked], data: Data) -> Option<&Comparison> {
    let off = |a: &&Comparison, b: &&Comparison| {
        (a.wrong > 0)
            .cmp(&(b.wrong > 0))
            .then(a.max_err_over_bound.total_cmp(&b.max_err_over_bound))
    };
    products.iter().filter(|p| p.data == data).map(|p| &p.comparison).max_by(off)
}

/// Reports on standard error in which orders C is wrong, and how to reproduce it.
fn complain(args: &Check, products: &[Checked], entry: &Entry) {
    for data in [Data::Uniform, Data::Integers] {
        let is_wrong = |p: &&Checked| p.data == data && p.comparison.wrong > 0;
        let mut wrong = products.iter().filter(is_wrong);
        let Some(first) = wrong.next() else { continue };
        let more = match wrong.count() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let what = format!("{data}, with {}, in order {}{more},", entry.name(), first.order);
        Verification::Full(first.comparison.clone()).complain(&what);
    }
    let found = products.iter().find(|product| !product.findings.is_empty());
    let wrong = products.iter().find(|product| product.comparison.wrong > 0);
    let mut orders = found.into_iter().chain(wrong).map(|p| p.order).collect::<Vec<_>>();
    orders.dedup();
    for order in orders {
        note(format_args!("reproduce: {}", args.to_command(entry.name(), order)));
    }
}

fn print(
    out: &mut impl Write,
    line: &Line,
    seen: &[Seen],
    right: bool,
    orders: &[Order],
    entry: &Entry,
) -> Result<(), Failure> {
    writeln!(out, "kernel    {}: {}", entry.name(), entry.summary)?;
    let Some(clean) = line.clean else {
        writeln!(out, "C is empty: nothing was launched, there is nothing to check")?;
        return Ok(());
    };
    match clean {
        true => writeln!(out, "clean     nothing found in {:.2} s", line.seconds)?,
        false => {
            let found = count_of(seen.len(), "finding");
            writeln!(out, "FOUND     {found} in {:.2} s", line.seconds)?;
        }
    }
    for limit in &line.limits {
        writeln!(out, "limit     {limit}")?;
    }
    // C may be right in spite of findings, and wrong without any.
    let word = match (right, line.exact_on_integers) {
        (false, _) => "WRONG    ",
        (true, None) => "unsettled",
        (true, Some(_)) if !clean => "C right  ",
        (true, Some(_)) => "verified ",
    };
    let exact = match line.exact_on_integers {
        Some(true) if orders.len() > 1 => "exact on integers in each order",
        Some(true) => "exact on integers",
        Some(false) => "not exact on integers",
        None => "k is too large for an exact run on integers",
    };
    let (abs, over) = (line.max_abs_err, line.max_err_over_bound);
    let [abs, over] = [abs, over].map(|error| error.unwrap_or(f64::NAN));
    writeln!(out, "{word} {}; {exact}", off(abs, over, rounded(line.out_dtype)))?;
    findings::print(out, seen, orders)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use host::simt::check::Limit;

    use super::*;

    /// The lines about a kernel: whether it has findings, the limits that were reached, and whether
    /// C is right.
    fn printed(clean: bool, limits: &[Limit], right: bool, exact: Option<bool>) -> Vec<String> {
        let line = Line {
            kernel: "basic",
            m: 5,
            n: 5,
            k: 5,
            dtype: "f32",
            out_dtype: "f32",
            trans: "nn".to_owned(),
            scales: None,
            seed: 1,
            orders: vec![],
            clean: Some(clean),
            findings: vec![],
            limits: limits.iter().map(|limit| limit.says()).collect(),
            max_abs_err: Some(1e-6),
            max_err_over_bound: Some(0.5),
            exact_on_integers: exact,
            verified: Some(right),
            seconds: 0.25,
        };
        let mut out = Vec::new();
        let entry = host::product::find("basic").unwrap();
        print(&mut out, &line, &[], right, &[Order::Forward], entry).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().skip(1).map(str::to_owned).collect()
    }

    fn lines(clean: bool, right: bool, exact: Option<bool>) -> [String; 2] {
        let mut lines = printed(clean, &[], right, exact).into_iter();
        [(); 2].map(|()| lines.next().unwrap())
    }

    #[test]
    fn a_limit_that_was_reached_is_said() {
        let lines = printed(true, &[Limit::Clock], true, Some(true));
        assert!(lines[0].starts_with("clean "), "{lines:?}");
        assert!(lines[1].starts_with("limit     a thread has arrived, or waited,"), "{lines:?}");
        assert!(lines[2].starts_with("verified "), "{lines:?}");
    }

    #[test]
    fn which_of_the_two_is_wrong_is_said() {
        let error = "max |error| 1.00e-6 against float64, 0.5000 of the bound;";
        let expected = |line: &str, exact: &str| format!("{line} {error} {exact}");
        let [found, c] = lines(true, true, Some(true));
        assert_eq!(found, "clean     nothing found in 0.25 s");
        assert_eq!(c, expected("verified ", "exact on integers"));
        let [found, c] = lines(false, true, Some(true));
        assert_eq!(found, "FOUND     0 findings in 0.25 s");
        assert_eq!(c, expected("C right  ", "exact on integers"));
        let [found, c] = lines(true, false, Some(false));
        assert!(found.starts_with("clean "), "{found}");
        assert_eq!(c, expected("WRONG    ", "not exact on integers"));
        let [_, c] = lines(true, true, None);
        assert_eq!(c, expected("unsettled", "k is too large for an exact run on integers"));
    }
}
