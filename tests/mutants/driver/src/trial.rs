//! A trial: a case in an order of the threads.

use std::{fmt::Debug, rc::Rc};

use simt::{
    Kernel, LaunchConfig,
    check::{self, CheckableParams, Options, Order},
};

pub struct Trial {
    /// The case and the order, in words.
    pub what: String,
    pub run: Box<dyn Fn() -> Outcome>,
}

pub struct Outcome {
    /// Kinds of findings, each once.
    pub found: Vec<&'static str>,
    /// Of all that the kernel may write, and of what is around it.
    pub hash: u64,
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

/// One worker, so that a report is the same each time.
pub fn options(order: Order) -> Options<'static> {
    let mut options = Options::default();
    options.order = order;
    options.workers = Some(1);
    options
}

/// What the checker finds.
///
/// # Safety
/// As for [`check::launch`], but for what mutations do: that is refused, and found.
pub unsafe fn launch<P: CheckableParams>(
    kernel: &Kernel<P>,
    config: &LaunchConfig,
    params: P,
    options: &Options,
) -> Vec<&'static str> {
    // SAFETY: the caller's.
    let Ok(report) = (unsafe { check::launch(kernel, config, params, options) }) else {
        return vec!["stop"];
    };
    let mut kinds = Vec::new();
    for finding in &report.findings {
        if !kinds.contains(&finding.kind.name()) {
            kinds.push(finding.kind.name());
        }
    }
    kinds
}
