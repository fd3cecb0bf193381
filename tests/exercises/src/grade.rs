//! Grades a kernel: findings, result and counters, at every shape and in every order of its
//! threads.

use std::fmt;

use simt::check::{Finding, Kind, Order, Place};

use crate::{
    attempt::{Attempt, Wrong, attempt},
    counter::{Counter, Measured, number},
    exercise::{Exercise, Gate, Side},
};

/// Orders in which a kernel is run. CUDA promises none.
pub const ORDERS: [Order; 4] = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];

/// A text without the whole paths that the compiler was given: of files of this package, where one
/// exercise alone is compiled, and of files that the build script wrote.
fn shorter(text: &str) -> String {
    let text = text.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/"), "tests/exercises/");
    text.replace(concat!(env!("OUT_DIR"), "/"), "")
}

/// Why a gate was not passed.
#[derive(Clone, Debug)]
pub enum Failure {
    /// What the checker found.
    Findings(Vec<Finding>),
    /// What is wrong with the result.
    Result(Wrong),
    /// A counter's number in the list, the counter, and its value. `None`: nothing was counted.
    Counter(usize, Counter, Option<Measured>),
}

/// A kernel's grade.
#[derive(Clone, Debug)]
pub struct Grade {
    /// The exercise.
    pub exercise: &'static Exercise,
    /// The kernel's file.
    pub file: String,
    source: &'static str,
    /// The shape and the order in which a gate was not passed, or the last ones.
    pub shape: [usize; 3],
    /// As `shape`.
    pub order: Order,
    /// The gates that were not passed there. Counters are measured if findings and result pass.
    pub failures: Vec<Failure>,
    /// The counters that were measured and are within their limits.
    pub passed: Vec<(Counter, f64)>,
}

/// Grades one side of an exercise: the kernel that the student edits, or the solution.
///
/// # Errors
/// Why the kernel could not be launched.
pub fn grade(exercise: &'static Exercise, side: &'static Side) -> Result<Grade, String> {
    let mut grade = Grade {
        exercise,
        file: side.file(exercise.name),
        source: side.source,
        shape: [0; 3],
        order: Order::Forward,
        failures: Vec::new(),
        passed: Vec::new(),
    };
    for &shape in exercise.shapes {
        let data = exercise.launch.problem.data(shape);
        for order in ORDERS {
            // Counters are measured once.
            let counted = order == ORDERS[0] && shape == exercise.shapes[0];
            let launch = &exercise.launch;
            let attempt = attempt(side.kernel, launch, shape, &data, order, counted)?;
            (grade.shape, grade.order) = (shape, order);
            grade.judge(&attempt, side, counted);
            if !grade.solved() {
                return Ok(grade);
            }
        }
    }
    Ok(grade)
}

impl Failure {
    /// The gate.
    pub fn gate(&self) -> Gate {
        match self {
            Failure::Findings(_) => Gate::Findings,
            Failure::Result(_) => Gate::Result,
            Failure::Counter(number, ..) => Gate::Counter(*number),
        }
    }
}

impl Grade {
    /// Whether every gate was passed.
    pub fn solved(&self) -> bool {
        self.failures.is_empty()
    }

    /// The kinds of the findings.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for failure in &self.failures {
            if let Failure::Findings(findings) = failure {
                kinds.extend(findings.iter().map(|finding| finding.kind));
            }
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Whether it is solved, or the gates that were not passed.
    pub fn in_a_line(&self) -> String {
        let words = self.failures.iter().map(|failure| match failure {
            Failure::Findings(_) => {
                self.kinds().iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
            }
            Failure::Result(_) => "wrong result".to_owned(),
            Failure::Counter(_, counter, measured) => match measured {
                Some(Measured { value, .. }) => counter.measure.of(*value),
                None => counter.measure.to_string(),
            },
        });
        match self.solved() {
            true => "solved".to_owned(),
            false => words.collect::<Vec<_>>().join("; "),
        }
    }

    fn judge(&mut self, attempt: &Attempt, side: &Side, counted: bool) {
        if !attempt.findings.is_empty() {
            self.failures.push(Failure::Findings(attempt.findings.clone()));
        }
        self.failures.extend(attempt.wrong.clone().map(Failure::Result));
        // The counts of a wrong kernel say little.
        if !self.failures.is_empty() || !counted {
            return;
        }
        let (rows, cols) = self.exercise.launch.problem.result(self.shape);
        for (number, counter) in self.exercise.counters.iter().enumerate() {
            let declaration = side.kernel.declaration();
            let measured = counter.measure(declaration, attempt, self.shape, rows * cols);
            match measured {
                Some(Measured { value, .. }) if counter.holds(value) => {
                    self.passed.push((*counter, value));
                }
                _ => self.failures.push(Failure::Counter(number, *counter, measured)),
            }
        }
    }

    /// The line of the kernel's file at a place.
    fn line(&self, place: &Place) -> Option<&'static str> {
        match place.file.ends_with(&self.file) {
            true => self.source.lines().nth((place.line as usize).checked_sub(1)?),
            false => None,
        }
    }

    fn write_failure(&self, f: &mut fmt::Formatter, failure: &Failure) -> fmt::Result {
        match failure {
            Failure::Findings(findings) => {
                write!(f, "  findings   FAILED: {} by the checker, at most 0", findings.len())?;
                for finding in findings {
                    let text = finding.with_source(|place| self.line(place)).to_string();
                    let text = shorter(&text);
                    // What to write is the exercise.
                    let mut lines = text.lines().filter(|line| !line.starts_with("    help: "));
                    lines.try_for_each(|line| write!(f, "\n    {line}"))?;
                }
                Ok(())
            }
            Failure::Result(wrong) => write!(f, "  result     FAILED: {wrong}"),
            Failure::Counter(_, counter, None) => {
                write!(f, "  counter    FAILED: {counter}; there is nothing to count")
            }
            Failure::Counter(_, counter, Some(Measured { value, at })) => {
                write!(f, "  counter    FAILED: {}, measured {}", counter, number(*value))?;
                let Some((place, operation)) = at else { return Ok(()) };
                write!(f, "\n    {} at {}", operation.name(), shorter(&place.to_string()))?;
                let text = self.line(place).unwrap_or_default();
                write!(f, "\n        {}", text.trim())
            }
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Grade { exercise, file, failures, .. } = self;
        writeln!(f, "{}: {}", exercise.name, exercise.idea)?;
        write!(f, "  {file}: ")?;
        if self.solved() {
            let shapes = exercise.shapes.len();
            write!(f, "solved. Clean and right at {shapes} shapes in {} orders", ORDERS.len())?;
        } else {
            let shape = exercise.launch.problem.shown(self.shape);
            write!(f, "not yet. At {shape}, order {}:", self.order)?;
        }
        for failure in failures {
            writeln!(f)?;
            self.write_failure(f, failure)?;
        }
        let has = |gate: Gate| failures.iter().any(|failure| failure.gate() == gate);
        if !self.solved() && !has(Gate::Findings) {
            write!(f, "\n  findings   ok: none")?;
        }
        if !self.solved() && !has(Gate::Result) {
            write!(f, "\n  result     ok: all elements are right")?;
        }
        for (counter, value) in &self.passed {
            write!(f, "\n  counter    ok: {counter}, measured {}", number(*value))?;
        }
        if has(Gate::Findings) || has(Gate::Result) {
            // The first size may have been counted before a later one failed.
            let counted =
                |shown: &str| self.passed.iter().any(|(passed, _)| passed.to_string() == shown);
            let left = exercise.counters.iter().map(ToString::to_string);
            for counter in left.filter(|shown| !counted(shown)) {
                write!(f, "\n  counter    not measured yet: {counter}")?;
            }
        }
        Ok(())
    }
}
