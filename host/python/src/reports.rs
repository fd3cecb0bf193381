//! What the checker says of a kernel, for a notebook.

use std::{num::NonZeroU32, sync::atomic::AtomicBool};

use gpu_gemm::{
    gpu::registry::{Entry, source},
    simt::check::{Line, Order, Profile as Counts},
};
use pyo3::{prelude::*, types::PyDict};

use crate::{
    interrupt::interruptible,
    laboratory::{check_cancel, findings_of, profile_of, watch},
};

/// A kernel's findings in some orders of blocks, warps and lanes.
#[pyclass(frozen, module = "gpu_gemm")]
pub(crate) struct Check {
    kernel: &'static str,
    sizes: [u64; 3],
    orders: u32,
    findings: Vec<String>,
    wrong: usize,
}

impl Check {
    /// Runs a kernel in as many orders: ascending, descending, and random ones.
    ///
    /// # Errors
    /// Those of the launch.
    pub(crate) fn new(
        py: Python,
        kernel: &'static Entry,
        sizes: [u64; 3],
        orders: u32,
    ) -> PyResult<Self> {
        let run = |cancel: &AtomicBool| {
            let (mut findings, mut wrong) = (Vec::new(), 0);
            for index in 0..orders {
                check_cancel(cancel)?;
                let order = match index {
                    0 => Order::Forward,
                    1 => Order::Reverse,
                    seed => Order::Random(u64::from(seed)),
                };
                let watched = watch(kernel, sizes, order, None, cancel)?;
                for finding in findings_of(&watched.reports) {
                    if !findings.contains(&finding) {
                        findings.push(finding);
                    }
                }
                wrong = wrong.max(watched.wrong);
            }
            Ok((findings, wrong))
        };
        let (findings, wrong) = interruptible(py, run)?;
        Ok(Check { kernel: kernel.name(), sizes, orders, findings, wrong })
    }
}

#[pymethods]
impl Check {
    /// Whether nothing was found and C was right.
    #[getter]
    fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.wrong == 0
    }

    /// What was found, as text with the lines of the source.
    #[getter]
    fn findings(&self) -> Vec<String> {
        self.findings.clone()
    }

    /// The number of wrong elements of C, in the order with the most.
    #[getter]
    fn wrong(&self) -> usize {
        self.wrong
    }

    fn __repr__(&self) -> String {
        let Check { kernel, sizes: [m, n, k], orders, findings, wrong } = self;
        let found = match findings.len() {
            0 => "nothing found".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let right = match wrong {
            0 => "C is right".to_owned(),
            wrong => format!("{wrong} elements of C are wrong"),
        };
        let head = format!("{kernel} {m}x{n}x{k}, {orders} orders: {found}; {right}");
        [&[head], &**findings].concat().join("\n")
    }

    fn _repr_html_(&self) -> String {
        let text = self.__repr__();
        let (head, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let mark = if self.is_clean() { "&#10003;" } else { "&#10007;" };
        let rest =
            if rest.is_empty() { String::new() } else { format!("<pre>{}</pre>", escaped(rest)) };
        format!("<div><b>{mark} {}</b>{rest}</div>", escaped(head))
    }
}

/// The accesses of a kernel, counted for each line of its source.
#[pyclass(frozen, module = "gpu_gemm")]
pub(crate) struct Profile {
    kernel: &'static str,
    sizes: [u64; 3],
    counts: Counts,
}

impl Profile {
    /// Counts the accesses of one block in `every`.
    ///
    /// # Errors
    /// Those of the launch.
    pub(crate) fn new(
        py: Python,
        kernel: &'static Entry,
        sizes: [u64; 3],
        every: u32,
    ) -> PyResult<Self> {
        let every = NonZeroU32::new(every);
        let watched =
            interruptible(py, |cancel| watch(kernel, sizes, Order::Forward, every, cancel))?;
        let counts = profile_of(watched.reports);
        Ok(Profile { kernel: kernel.name(), sizes, counts })
    }
}

/// What a line costs: units beyond one for each ideal one.
fn over_ideal(line: &Line) -> f64 {
    if line.ideal == 0 { 1.0 } else { line.units as f64 / line.ideal as f64 }
}

#[pymethods]
impl Profile {
    /// A dictionary for each line of the source, operation and width. Counts are of the whole grid.
    #[getter]
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let scale = self.counts.scale();
        let row = |line: &Line| {
            let dict = PyDict::new(py);
            dict.set_item("file", &line.place.file)?;
            dict.set_item("line", line.place.line)?;
            dict.set_item("source", source(&line.place.file, line.place.line).map(str::trim))?;
            dict.set_item("operation", line.operation.name())?;
            dict.set_item("width", line.width)?;
            for (name, count) in [
                ("requests", line.requests),
                ("lanes", line.lanes),
                ("units", line.units),
                ("ideal", line.ideal),
            ] {
                dict.set_item(name, count as f64 * scale)?;
            }
            Ok(dict)
        };
        self.counts.lines.iter().map(row).collect()
    }

    fn __repr__(&self) -> String {
        let Profile { kernel, sizes: [m, n, k], counts } = self;
        let counts = counts.with_source(|at| source(&at.file, at.line));
        format!("{kernel} {m}x{n}x{k}\n{counts}")
    }

    /// A table with a bar for the units of each line. What is beyond the ideal is red.
    fn _repr_html_(&self) -> String {
        let Profile { kernel, sizes: [m, n, k], counts } = self;
        let scale = counts.scale();
        let most = counts.lines.iter().map(|line| line.units.max(line.requests)).max();
        let most = most.unwrap_or(1).max(1) as f64;
        let rows = counts.lines.iter().map(|line| {
            let text = source(&line.place.file, line.place.line).unwrap_or_default().trim();
            // What is no access has no units: its bar is of requests.
            let units = if line.units > 0 { line.units } else { line.requests };
            let ideal = if line.units > 0 { line.ideal.min(units) } else { units };
            let width = |count: u64| 160.0 * count as f64 / most;
            format!(
                "<tr><td>{}:{}</td><td><code>{}</code></td><td>{}</td><td>{:.0}</td><td>{:.2}</td><td>\
                 <svg width=\"160\" height=\"10\"><rect width=\"{:.1}\" height=\"10\" fill=\"#4a7\"/>\
                 <rect x=\"{:.1}\" width=\"{:.1}\" height=\"10\" fill=\"#d44\"/></svg></td></tr>",
                escaped(&line.place.file),
                line.place.line,
                escaped(text),
                line.operation.name(),
                line.requests as f64 * scale,
                over_ideal(line),
                width(ideal),
                width(ideal),
                width(units - ideal),
            )
        });
        let rows = rows.collect::<String>();
        format!(
            "<div><b>{} {m}x{n}x{k}</b><table><tr><th>line</th><th>source</th><th>operation</th><th>warp \
             requests</th><th>of the ideal</th><th>units; red: beyond the ideal</th></tr>{rows}</table></div>",
            escaped(kernel)
        )
    }
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
