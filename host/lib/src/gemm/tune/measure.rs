//! Times the candidates of a product.

use std::time::{Duration, Instant};

use super::file::Answer;
use crate::{
    buffer::Buffer,
    device::Device,
    error::{Error, Result},
    gemm::{
        Batch, BatchMut, Choice, Gemm, Output, Plan, Request, Scalar, Target,
        execute::steps::{plan_of, run},
        operands::Operands,
        scalar::Kernel,
        select::shortlist,
    },
    stream::Stream,
};

/// Candidates at most: those with the shortest predicted times.
const MOST: usize = 8;

/// Each candidate is timed in so many rounds, of which its shortest counts.
const ROUNDS: usize = 3;

/// A round launches a candidate until it has taken about this long, once at least.
const ROUND: Duration = Duration::from_millis(1);

/// Launches of a round at most: the host queues them all before it waits.
const MOST_LAUNCHES: u32 = 100;

/// A candidate that took more than so many times the shortest first time has no further rounds.
const BEHIND: u32 = 3;

/// A candidate and its plan.
struct Candidate {
    choice: Choice,
    plan: Plan,
    /// Of one launch: the first after its kernels were loaded, and the shortest of a round.
    first: Duration,
    shortest: Duration,
}

/// The fastest candidate of a product. All are launched on a stream of their own, after what was
/// queued on `stream`, with a C of their own: the product's C is neither read nor written, and the
/// stream's workspace and counters are as they were. Waits for all of it.
///
/// A candidate that cannot be planned, that lacks memory for its workspace, or that the driver does
/// not load, is left out.
///
/// # Errors
/// [`Error::OutOfMemory`] for the second C; if no candidate is left, why the last one was left out.
/// As [`Stream::launch`].
pub(super) fn fastest<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    operands: &Operands<T, O>,
    request: &Request,
) -> Result<Answer> {
    let device = stream.device();
    let listed = shortlist::<T, O>(request, &Target::of(device), MOST)?;
    stream.synchronize()?;
    let own = device.stream()?;
    let mut scratch = Scratch::of(operands, device)?;
    let mut launch = |choice: &Choice, plan: &Plan, times: u32| -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..times {
            run(gemm, &own, choice, plan, scratch.instead(operands)?)?;
        }
        own.synchronize()?;
        Ok(start.elapsed() / times)
    };
    let plan = |(kernel, choice): (Kernel, &Choice)| {
        plan_of(gemm, device, operands, *request, (kernel, choice))
    };
    fastest_of(listed, &plan, &mut launch)
}

/// The same of any types: `plan` plans a candidate, and `launch` launches it so many times, and
/// waits.
fn fastest_of(
    listed: Vec<(Kernel, Choice)>,
    plan: &dyn Fn((Kernel, &Choice)) -> Result<Plan>,
    launch: &mut dyn FnMut(&Choice, &Plan, u32) -> Result<Duration>,
) -> Result<Answer> {
    let (mut candidates, mut refused) = (Vec::new(), None);
    for (kernel, choice) in listed {
        let plan = match plan((kernel, &choice)) {
            Ok(plan) => plan,
            // Others may need fewer launches.
            Err(error) => {
                refused = Some(error);
                continue;
            }
        };
        match launch(&choice, &plan, 1) {
            // The others may be loaded and have memory.
            Err(error @ (Error::OutOfMemory { .. } | Error::Ptx { .. } | Error::Launch { .. })) => {
                refused = Some(error)
            }
            loaded => {
                let [first, shortest] = [loaded?, Duration::MAX];
                candidates.push(Candidate { choice, plan, first, shortest });
            }
        }
    }
    // After all are loaded: a GPU that waits for its driver lowers its clock.
    for Candidate { choice, plan, first, .. } in &mut candidates {
        *first = launch(choice, plan, 1)?;
    }
    let timed = candidates.len() as u32;
    let least = candidates.iter().map(|candidate| candidate.first).min().unwrap_or_default();
    candidates.retain(|candidate| candidate.first <= least * BEHIND);
    for _ in 0..ROUNDS {
        for Candidate { choice, plan, first, shortest } in &mut candidates {
            let times = ROUND.as_nanos() / first.as_nanos().max(1);
            let times = (times as u32).clamp(1, MOST_LAUNCHES);
            *shortest = launch(choice, plan, times)?.min(*shortest);
        }
    }
    // The first of equals: the one with the shortest prediction.
    match candidates.into_iter().min_by_key(|candidate| candidate.shortest) {
        Some(Candidate { choice, shortest, .. }) => Ok(Answer {
            kernel: choice.entry.name().to_owned(),
            split_k: choice.split_k,
            partials: choice.partials,
            us: shortest.as_secs_f64() * 1e6,
            timed,
        }),
        None => Err(refused
            .unwrap_or_else(|| Error::argument("tuned", "a cache", "no candidate could be timed"))),
    }
}

/// A second C, with the strides and the alignment of the product's.
struct Scratch<O> {
    elements: Buffer<O>,
    start: usize,
}

impl<O: Output> Scratch<O> {
    /// Of zeros: what beta multiplies is a number.
    fn of<T>(operands: &Operands<T, O>, device: &Device) -> Result<Self> {
        let c = &operands.c.elements;
        // As many elements as C's first one is behind a multiple of sixteen bytes.
        let start = c.as_view().address().addr() % 16 / size_of::<O>();
        let len = c.len().saturating_add(start);
        Ok(Scratch { elements: device.zeros(len)?, start })
    }

    /// The operands with this C in the place of theirs.
    fn instead<'s, T>(&'s mut self, operands: &Operands<'s, T, O>) -> Result<Operands<'s, T, O>> {
        let Operands { shape, count, a, b, c, bias, scales, is_swapped } = operands;
        let elements = self.elements.view_mut(self.start..)?.into();
        let BatchMut { size, strides, count: c_count, step, .. } = *c;
        Ok(Operands {
            shape: *shape,
            count: *count,
            a: Batch { ..*a },
            b: Batch { ..*b },
            c: BatchMut { elements, size, strides, count: c_count, step },
            bias: *bias,
            scales: *scales,
            is_swapped: *is_swapped,
        })
    }
}
