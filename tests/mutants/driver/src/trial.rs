//! A trial: a case in an order of the threads, launched under the checker.

use std::{fmt::Debug, hash::DefaultHasher, rc::Rc};

use simt::{
    Kernel, LaunchConfig,
    check::{self, CheckableParams, Options, Order},
};

use crate::memory::{Matrix, Number};

pub struct Trial {
    /// The case and the order, in words.
    pub what: String,
    pub run: Box<dyn Fn() -> Outcome>,
}

pub struct Outcome {
    /// Kinds of findings, each once.
    pub found: Vec<&'static str>,
    /// Has hashed all that the kernel may write, and what is around it.
    pub hasher: DefaultHasher,
}

impl Outcome {
    pub fn and<T: Number>(mut self, written: &mut Matrix<T>) -> Self {
        written.hash(&mut self.hasher);
        self
    }
}

const ORDERS: [Order; 4] = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];

/// The first so many cases in every order, the others in one each.
pub fn trials<C: Debug + 'static>(
    cases: Vec<C>,
    in_all_orders: usize,
    run: impl Fn(&C, Order) -> Outcome + 'static,
) -> Vec<Trial> {
    let run = Rc::new(run);
    let mut trials = Vec::new();
    for (number, case) in cases.into_iter().map(Rc::new).enumerate() {
        let orders = if number < in_all_orders { &ORDERS[..] } else { &ORDERS[number % 4..][..1] };
        for &order in orders {
            let (run, case) = (run.clone(), case.clone());
            let what = format!("{case:?}, {order}");
            trials.push(Trial { what, run: Box::new(move || run(&case, order)) });
        }
    }
    trials
}

/// With one worker: then a report is the same each time.
pub fn options(order: Order) -> Options<'static> {
    let mut options = Options::default();
    options.order = order;
    options.workers = Some(1);
    options
}

/// # Safety
/// As for [`check::launch`], but for what mutations do: that is refused, and found.
pub unsafe fn launch<P: CheckableParams>(
    kernel: &Kernel<P>,
    config: &LaunchConfig,
    params: P,
    options: &Options,
) -> Outcome {
    // SAFETY: the caller's.
    let mut found = match unsafe { check::launch(kernel, config, params, options) } {
        Ok(report) => report.findings.iter().map(|finding| finding.kind.name()).collect(),
        Err(_) => vec!["stop"],
    };
    found.sort_unstable();
    found.dedup();
    Outcome { found, hasher: DefaultHasher::new() }
}
