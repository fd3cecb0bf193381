//! Timing of launches, and comparisons between candidates.
//!
//! The candidates run in turn, A B C A B C ..., so that a drift of clock, temperature or power
//! affects all alike. Ratios are taken within a round. A measurement is a *batch* of consecutive
//! launches between two events. It has enough launches to be long compared with the resolution of
//! an event. Consecutive launches use different operand sets, together larger than twice the L2, so
//! that no launch finds its operands there. Measuring starts when times have settled.
//!
//! Clocks are read, never set ([`telemetry`]).

mod rounds;
mod statistics;
pub mod telemetry;

use std::time::{Duration, Instant};

pub use rounds::{Rounds, rounds};
pub use statistics::{Interval, Summary, interval_of_median, quantile};

use crate::operands;
use gpu_gemm::{Device, Matrix, Result, Shape, Stream};

/// The length of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The total time of all measured launches. The number of rounds follows from it.
    pub duration: Duration,
    /// The shortest warm-up. It ends later if times have not settled.
    pub warmup_at_least: Duration,
    /// The longest warm-up, even if times have not settled. A single round may exceed it.
    pub warmup_at_most: Duration,
    /// The shortest batch, unless one launch is longer.
    pub batch: Duration,
    /// Before each batch the candidate runs alone for this time, not timed, so that clocks and
    /// power are its own.
    pub settle: Duration,
}

/// The fewest rounds. Fewer have no useful 95 % interval.
const LEAST_ROUNDS: usize = 7;
/// The most rounds. More give no further information.
const MOST_ROUNDS: usize = 1001;

impl Options {
    /// One second for each candidate, after the time that the device's clocks need to settle.
    pub fn new(device: &Device, candidates: usize) -> Self {
        let seconds = |cuda: f64, cpu: f64| {
            Duration::from_secs_f64(if device.is_cuda() { cuda } else { cpu })
        };
        Options {
            duration: Duration::from_secs(candidates as u64),
            warmup_at_least: seconds(0.3, 0.0),
            warmup_at_most: seconds(3.0, 1.0),
            batch: seconds(1e-3, 0.0),
            settle: Duration::ZERO,
        }
    }

    /// Each candidate runs alone for this time, after half of it untimed: its sustained speed. If
    /// launches alternate every millisecond, they share the card's power budget, and a candidate
    /// that draws more power profits from the others.
    pub fn sustained(device: &Device, batch: Duration) -> Self {
        let settle = batch / 2;
        Options { duration: Duration::ZERO, batch, settle, ..Options::new(device, 1) }
    }
}

/// A candidate: launches once, on the operand set with that number.
pub type Candidate<'a> = Box<dyn FnMut(usize) -> Result<()> + 'a>;

/// The measurement of one candidate.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The time of a launch in microseconds: for every round, the mean over a batch.
    pub times_us: Vec<f64>,
    /// Launches of a batch.
    pub batch: usize,
}

impl Measurement {
    /// Median, minimum and spread.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.times_us)
    }

    /// The speed relative to `baseline`, with a 95 % interval: round by round the baseline's time
    /// over this one.
    pub fn speed_over(&self, baseline: &Measurement) -> Interval {
        let pairs = baseline.times_us.iter().zip(&self.times_us);
        interval_of_median(&pairs.map(|(base, own)| base / own).collect::<Vec<_>>())
    }
}

/// Times the candidates in turn, on `sets` operand sets.
///
/// # Errors
/// Those of the candidates, and [`Error::Interrupted`](gpu_gemm::Error::Interrupted).
pub fn compare(
    stream: &Stream,
    candidates: &mut [Candidate],
    sets: usize,
    options: &Options,
) -> Result<Vec<Measurement>> {
    let mut next_set = 0;
    let mut batch = |candidate: &mut Candidate, launches: usize, before: usize| -> Result<f64> {
        let mut launch = |launches: usize| {
            (0..launches).try_for_each(|_| {
                next_set += 1;
                candidate((next_set - 1) % sets.max(1))
            })
        };
        gpu_gemm::check_interrupt()?;
        launch(before)?;
        let start = stream.record()?;
        launch(launches)?;
        Ok(stream.record()?.since(&start)?.as_secs_f64() * 1e6 / launches as f64)
    };

    // Warm-up. The first round has single launches, which determine the size of a batch.
    let begin = Instant::now();
    let mut launches = vec![1; candidates.len()];
    let mut rounds = Vec::new();
    let round_us: f64 = loop {
        let mut times = Vec::new();
        for (number, (candidate, launches)) in candidates.iter_mut().zip(&mut launches).enumerate()
        {
            rounds::turn(Rounds { candidate: number, done: 0, total: 0 });
            let time = batch(candidate, *launches, 0)?;
            let wanted = options.batch.as_secs_f64() * 1e6 / time.max(0.1);
            *launches = (wanted.ceil() as usize).max(1);
            times.push(time);
        }
        rounds.push(times.iter().sum::<f64>());
        let elapsed = begin.elapsed();
        let done = elapsed >= options.warmup_at_least && settled(&rounds);
        if done || elapsed >= options.warmup_at_most {
            // A round has one batch of each candidate.
            break times.iter().zip(&launches).map(|(time, &batch)| time * batch as f64).sum();
        }
    };

    let wanted = options.duration.as_secs_f64() * 1e6 / round_us.max(1.0);
    let count = (wanted.ceil() as usize).clamp(LEAST_ROUNDS, MOST_ROUNDS);
    let mut measurements = launches
        .iter()
        .map(|&batch| Measurement { times_us: Vec::with_capacity(count), batch })
        .collect::<Vec<_>>();
    // The launches that take the part of a batch's time that is asked for.
    let before = |launches: usize| match options.settle.is_zero() {
        true => 0,
        false => (launches as f64 * options.settle.div_duration_f64(options.batch)).ceil() as usize,
    };
    for done in 0..count {
        let pairs = candidates.iter_mut().zip(&mut measurements);
        for (number, (candidate, measurement)) in pairs.enumerate() {
            rounds::turn(Rounds { candidate: number, done, total: count });
            let before = before(measurement.batch);
            measurement.times_us.push(batch(candidate, measurement.batch, before)?);
        }
    }
    Ok(measurements)
}

/// The number of the fastest candidate, from a few batches of each: accurate enough for a choice,
/// but not for publication. A candidate that is much slower than the fastest runs once. `None`
/// without candidates.
///
/// # Errors
/// As [`compare`].
pub fn fastest(
    stream: &Stream,
    candidates: &mut [Candidate],
    sets: usize,
) -> Result<Option<usize>> {
    const BATCH_US: f64 = 500.0;
    const ROUNDS: usize = 5;
    let time = |candidate: &mut Candidate, launches: usize| -> Result<f64> {
        gpu_gemm::check_interrupt()?;
        let start = stream.record()?;
        for launch in 0..launches {
            candidate(launch % sets.max(1))?;
        }
        Ok(stream.record()?.since(&start)?.as_secs_f64() * 1e6 / launches as f64)
    };
    let mut best = f64::INFINITY;
    let mut times = Vec::new();
    for candidate in candidates.iter_mut() {
        // The first launch may load the kernel.
        time(candidate, 1)?;
        let once = time(candidate, 1)?;
        let launches = (BATCH_US / once.max(0.1)).ceil().clamp(1.0, 100.0) as usize;
        let first = if launches > 1 { time(candidate, launches)? } else { once };
        best = best.min(first);
        times.push((launches, vec![first]));
    }
    for _ in 1..ROUNDS {
        for (candidate, (launches, times)) in candidates.iter_mut().zip(&mut times) {
            if times[0] <= 1.25 * best {
                times.push(time(candidate, *launches)?);
            }
        }
    }
    let medians = times.iter().map(|(_, times)| Summary::of(times).median);
    Ok(medians.enumerate().min_by(|one, other| one.1.total_cmp(&other.1)).map(|(number, _)| number))
}

/// Whether times have settled: the medians of the last eight rounds and of the eight before differ
/// by at most one per cent.
fn settled(rounds: &[f64]) -> bool {
    const WINDOW: usize = 8;
    let Some(start) = rounds.len().checked_sub(2 * WINDOW) else { return false };
    let (before, after) = rounds[start..].split_at(WINDOW);
    let (before, after) = (Summary::of(before).median, Summary::of(after).median);
    (after - before).abs() <= 0.01 * before
}

/// A, B and C of a product, on a device.
#[derive(Debug)]
pub struct Operands {
    /// m x k.
    pub a: Matrix<f32>,
    /// k x n.
    pub b: Matrix<f32>,
    /// m x n.
    pub c: Matrix<f32>,
}

impl Operands {
    /// Uniform operands drawn from that seed. C is zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](gpu_gemm::Error::OutOfMemory),
    /// [`Error::Interrupted`](gpu_gemm::Error::Interrupted).
    pub fn new(device: &Device, shape: Shape, seed: u64) -> Result<Self> {
        let a = operands::uniform(seed, shape.a_len())?;
        let b = operands::uniform(operands::seed_of_b(seed), shape.b_len())?;
        Operands::upload(device, shape, &a, &b)
    }

    /// Operands with these row-major elements. C is zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](gpu_gemm::Error::OutOfMemory),
    /// [`Error::Interrupted`](gpu_gemm::Error::Interrupted).
    pub fn upload(device: &Device, shape: Shape, a: &[f32], b: &[f32]) -> Result<Self> {
        Ok(Operands {
            a: Matrix::from_row_major(device, shape.m(), shape.k(), a)?,
            b: Matrix::from_row_major(device, shape.k(), shape.n(), b)?,
            c: Matrix::zeros(device, shape.m(), shape.n())?,
        })
    }

    /// The number of operand sets that together exceed twice the device's L2, at least two. On the
    /// CPU one.
    pub fn sets(device: &Device, shape: Shape) -> u64 {
        let bytes = shape.bytes();
        match device.l2_bytes() {
            0 => 1,
            l2 => (2 * l2 / bytes.max(1) + 1).clamp(2, 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_settle_when_they_stop_falling() {
        let falling = (0..40).map(|i| 100.0 / f64::from(i + 1)).collect::<Vec<_>>();
        assert!(!settled(&falling[..20]));
        assert!(!settled(&[5.0; 15]));
        assert!(settled(&[5.0; 16]));
        let jumped = [[5.0; 8], [6.0; 8]].concat();
        assert!(!settled(&jumped));
    }

    #[test]
    fn the_fastest_is_found_in_brief() {
        let stream = Device::cpu().stream().unwrap();
        // The times differ so much that a busy machine does not change their order.
        let mut candidates = [40, 1, 80]
            .map(|ms| -> Candidate {
                Box::new(move |set| {
                    assert!(set < 2);
                    std::thread::sleep(Duration::from_millis(ms));
                    Ok(())
                })
            })
            .into_iter()
            .collect::<Vec<_>>();
        assert_eq!(fastest(&stream, &mut candidates, 2).unwrap(), Some(1));
        assert_eq!(fastest(&stream, &mut [], 2).unwrap(), None);
    }

    #[test]
    fn a_candidate_settles_alone_before_it_is_timed() {
        let stream = Device::cpu().stream().unwrap();
        let log = std::cell::RefCell::new(String::new());
        let mut candidates = ["a", "b"]
            .map(|name| -> Candidate {
                let log = &log;
                Box::new(move |_| {
                    log.borrow_mut().push_str(name);
                    std::thread::sleep(Duration::from_millis(2));
                    Ok(())
                })
            })
            .into_iter()
            .collect::<Vec<_>>();
        let options = Options {
            warmup_at_least: Duration::ZERO,
            warmup_at_most: Duration::ZERO,
            ..Options::sustained(stream.device(), Duration::from_millis(7))
        };
        let measured = compare(&stream, &mut candidates, 1, &options).unwrap();
        drop(candidates);
        // Seven rounds, after one round of single launches.
        let batch = measured[0].batch;
        assert!((1..=4).contains(&batch), "{batch}");
        let [a, b] = [0, 1].map(|i| measured[i].batch + measured[i].batch.div_ceil(2));
        let expected = "ab".to_owned() + &("a".repeat(a) + &"b".repeat(b)).repeat(LEAST_ROUNDS);
        assert_eq!(log.into_inner(), expected);
        assert!(measured.iter().all(|one| one.times_us.len() == LEAST_ROUNDS));
    }

    #[test]
    fn candidates_run_in_turn_on_successive_sets() {
        let stream = Device::cpu().stream().unwrap();
        let log = std::cell::RefCell::new(Vec::new());
        let mut candidates = ["a", "b"]
            .map(|name| -> Candidate {
                let log = &log;
                Box::new(move |set| {
                    log.borrow_mut().push((name, set));
                    // The progress is set before the turn is timed.
                    assert_eq!(["a", "b"][rounds().candidate], name);
                    // `b` takes twice as long.
                    let turns = if name == "b" { 2 } else { 1 };
                    std::thread::sleep(Duration::from_millis(turns));
                    Ok(())
                })
            })
            .into_iter()
            .collect::<Vec<_>>();
        let options = Options {
            duration: Duration::from_millis(20),
            warmup_at_least: Duration::ZERO,
            warmup_at_most: Duration::ZERO,
            batch: Duration::ZERO,
            settle: Duration::ZERO,
        };
        let measured = compare(&stream, &mut candidates, 3, &options).unwrap();
        drop(candidates);
        let log = log.into_inner();
        assert!(
            log.iter()
                .enumerate()
                .all(|(i, &(name, set))| { name == ["a", "b"][i % 2] && set == i % 3 })
        );
        let [a, b] = &measured[..] else { panic!("{measured:?}") };
        assert!(a.times_us.len() >= LEAST_ROUNDS && a.times_us.len() == b.times_us.len());
        let speed = b.speed_over(a);
        assert!(speed.median < 0.9 && speed.low <= speed.median, "{speed:?}");
    }
}
