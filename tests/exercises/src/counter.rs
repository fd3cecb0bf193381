//! Counters: what an exercise measures besides findings and the result, and the limit that it sets.

use std::fmt;

use simt::{
    Declaration,
    check::{
        Line,
        Operation::{self, *},
        Place, Profile, Trace,
    },
    count_of,
};

use crate::{attempt::Attempt, in_flight};

/// A measured quantity with a limit.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The quantity.
    pub measure: Measure,
    /// The limit.
    pub limit: Limit,
}

/// A quantity that must not be greater.
pub const fn at_most(measure: Measure, limit: f64) -> Counter {
    Counter { measure, limit: AtMost(limit) }
}

/// A quantity that must not be less.
pub const fn at_least(measure: Measure, limit: f64) -> Counter {
    Counter { measure, limit: AtLeast(limit) }
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The quantity is not greater.
    AtMost(f64),
    /// The quantity is not less.
    AtLeast(f64),
}

use Limit::{AtLeast, AtMost};

/// Defines [`Measure`] by a row for each quantity: what it is, and its unit.
macro_rules! measures {
    ($($(#[$doc:meta])* $measure:ident $(($of:ty))?: $unit:literal;)*) => {
        /// A quantity of a launch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Measure {
            $($(#[$doc])* $measure $(($of))?),*
        }

        impl fmt::Display for Measure {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(match self {
                    $(Measure::$measure { .. } => $unit),*
                })
            }
        }
    };
}

measures! {
    /// 32-byte sectors for each request of a warp to global memory: of the worst line.
    Sectors: "sectors a request to global memory";
    /// The same of stores alone.
    StoreSectors: "sectors a store to global memory";
    /// Wavefronts for each request to shared memory, divided by the fewest that its bytes can take:
    /// of the worst line.
    Conflicts: "wavefronts of shared memory for each that is needed";
    /// The same of reads alone.
    ReadConflicts: "wavefronts of reads of shared memory for each that is needed";
    /// Barriers that a block executes in a phase of so many k-steps.
    Barriers(usize): "barriers a phase";
    /// Barriers that a block executes.
    BlockBarriers: "barriers a block";
    /// Bytes of a thread's narrowest access to global memory.
    Width: "bytes a thread's access to global memory";
    /// Bytes of a thread's narrowest load from global memory.
    LoadWidth: "bytes a thread's load from global memory";
    /// Bytes of a thread's narrowest store to global memory.
    StoreWidth: "bytes a thread's store to global memory";
    /// Elements of four bytes that threads read from shared memory for each multiply-add.
    SharedReads: "words read from shared memory a multiply-add";
    /// Multiply-adds of threads for each that the product needs, m n k.
    MultiplyAdds: "multiply-adds for each that the product needs";
    /// FLOP for each byte that threads or TMA load from global memory. FLOP are those of the
    /// product, 2 m n k.
    Intensity: "FLOP a byte loaded from global memory";
    /// Bytes of shared memory of a block.
    Shared: "bytes of shared memory a block";
    /// Blocks for which an SM of Hopper has enough shared memory.
    Blocks: "blocks in the shared memory of an SM (Hopper)";
    /// Of the intervals between barriers in which a thread multiplies: the per cent in which it has
    /// begun to load before.
    Ahead: "% of the phases whose loads begin before the products";
    /// Per cent of the warps' intervals between waits in which lanes take different branches.
    Divergent: "% of the warps' intervals divergent";
    /// Instructions of tensor cores of a warp, `mma` and `wgmma`, for each 16 k-steps of a 16 x 16
    /// part of C.
    Mma: "tensor-core instructions of warps for 16 x 16 x 16 products";
    /// Bytes that TMA loads, of the whole launch.
    TmaLoads: "bytes loaded by TMA";
    /// Copies that TMA makes, of the whole launch.
    TmaCopies: "TMA copies";
    /// Bytes that TMA stores, of the whole launch.
    TmaStores: "bytes stored by TMA";
    /// Atomic additions of warps to global memory for each element of the result.
    Atomics: "atomic additions an element of the result";
    /// Requests of warps to shared memory for each element of the result.
    SharedRequests: "requests to shared memory an element of the result";
    /// Stages of so many bytes for which a block has shared memory.
    Stages(u32): "stages in the shared memory of a block";
    /// Groups of `cp.async` that the first thread commits in a phase of so many k-steps, without
    /// empty ones.
    CopyGroups(usize): "groups of `cp.async` a phase";
    /// Of the intervals between barriers in which the first thread waits for its groups of
    /// `cp.async`: the per cent in which each wait leaves a group in flight.
    CopiesLeft: "% of the waits for copies that leave a group in flight";
    /// Of the waits of warpgroups for their products: the per cent that leave a product in flight.
    ProductsLeft: "% of the waits for products that leave one in flight";
    /// Of the products of warpgroups: the per cent that begin while TMA fills a stage.
    TmaAhead: "% of the products that begin while TMA fills another stage";
    /// Of the products of warpgroups after the first TMA copy to global memory: the per cent that
    /// begin while such a copy reads its box.
    StoresBehind: "% of the next tiles' products that begin while TMA reads a box of C";
    /// Of the products of warpgroups of the blocks that share the work: the per cent of the block
    /// that computes most.
    LargestShare: "% of the products by one block";
    /// Of the bytes that these blocks load from global memory: the per cent of the block that loads
    /// most.
    LargestLoad: "% of the bytes from global memory by one block";
    /// Of the bytes that threads load from global memory: the per cent that `cp.async` copies.
    Copied: "% of the bytes from global memory by `cp.async`";
}

/// A measured value, and where it comes from.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// The line of the source that has the worst value, and the operation there.
    pub at: Option<(Place, Operation)>,
}

const GLOBAL: &[Operation] = &[GlobalLoad, GlobalStore, GlobalAtomic];
const SHARED: &[Operation] = &[SharedLoad, SharedStore, SharedCopy];

impl Counter {
    /// Measures it in a launch of that shape. `None`: nothing that could be measured has happened.
    pub fn measure(
        &self,
        declaration: &Declaration,
        attempt: &Attempt,
        shape: [usize; 3],
        elements: usize,
    ) -> Option<Measured> {
        let Attempt { profile, trace, .. } = attempt;
        let worst =
            |of: &[Operation], value: fn(&Line) -> f64| worst(profile, of, value, self.limit);
        let each = |line: &Line| line.units as f64 / line.requests as f64;
        let total = |operations: &[Operation], count: fn(&Line) -> u64| -> f64 {
            operations.iter().map(|&operation| profile.total(operation, count)).sum()
        };
        let static_shared = declaration.shared.unwrap_or(0) as u32;
        let shared = static_shared + declaration.dynamic_shared.unwrap_or(0);
        let threads = declaration.block.unwrap_or([1; 3]).iter().product::<u32>();
        let warps = f64::from(threads.div_ceil(32)) * profile.blocks as f64;
        let barriers = total(&[Barrier], |line| line.requests) / warps;
        let [m, n, k] = shape.map(|size| size as f64);
        let value = match self.measure {
            Measure::Sectors => return worst(GLOBAL, each),
            Measure::StoreSectors => return worst(&[GlobalStore], each),
            Measure::Conflicts => {
                return worst(SHARED, |line| line.units as f64 / line.ideal as f64);
            }
            Measure::ReadConflicts => {
                return worst(&[SharedLoad], |line| line.units as f64 / line.ideal as f64);
            }
            Measure::LoadWidth => return worst(&[GlobalLoad], |line| line.width.into()),
            Measure::Width => return worst(GLOBAL, |line| line.width.into()),
            Measure::StoreWidth => return worst(&[GlobalStore], |line| line.width.into()),
            Measure::Barriers(depth) => barriers / shape[2].div_ceil(depth) as f64,
            Measure::BlockBarriers => barriers,
            Measure::SharedReads => {
                let read = total(&[SharedLoad], |line| line.lanes * u64::from(line.width)) / 4.0;
                read / total(&[Fma], |line| line.lanes)
            }
            Measure::MultiplyAdds => total(&[Fma], |line| line.lanes) / (m * n * k),
            Measure::Intensity => {
                let loaded = total(&[GlobalLoad], |line| line.lanes * u64::from(line.width));
                2.0 * m * n * k / (loaded + total(&[TmaLoad], |line| line.units))
            }
            Measure::Shared => shared.into(),
            Measure::Blocks => {
                let occupancy::Sm { shared: all, shared_reserved, .. } = occupancy::Sm::SM_90;
                (all / (shared + shared_reserved)).into()
            }
            Measure::Ahead => ahead(trace)?,
            Measure::Divergent => {
                100.0 * profile.divergent_intervals as f64 / profile.warp_intervals.max(1) as f64
            }
            Measure::Mma => {
                let multiplied = total(&[Mma, Wgmma], |line| line.requests);
                multiplied / (m / 16.0 * n / 16.0 * k / 16.0)
            }
            Measure::TmaLoads => total(&[TmaLoad], |line| line.units),
            Measure::TmaCopies => total(&[TmaLoad, TmaStore], |line| line.requests),
            Measure::TmaStores => total(&[TmaStore], |line| line.units),
            Measure::Atomics => total(&[GlobalAtomic], |line| line.lanes) / elements as f64,
            Measure::SharedRequests => total(SHARED, |line| line.requests) / elements as f64,
            Measure::Stages(bytes) => (shared / bytes).into(),
            Measure::CopyGroups(depth) => {
                let of_phases = shape[2].div_ceil(depth) as f64;
                in_flight::copy_groups(trace) as f64 / of_phases
            }
            Measure::CopiesLeft => in_flight::copies_left(trace)?,
            Measure::ProductsLeft => in_flight::products_left(trace)?,
            Measure::TmaAhead => in_flight::tma_ahead(trace)?,
            Measure::StoresBehind => in_flight::stores_behind(trace)?,
            Measure::LargestShare => {
                largest(attempt.sharing.iter().map(|trace| in_flight::instructions(trace) as u64))?
            }
            Measure::LargestLoad => largest(attempt.sharing.iter().map(loaded))?,
            Measure::Copied => copied(profile)?,
        };
        Some(Measured { value, at: None })
    }

    /// Whether a value is within the limit.
    pub fn holds(&self, value: f64) -> bool {
        match self.limit {
            AtMost(limit) => value <= limit,
            AtLeast(limit) => value >= limit,
        }
    }
}

/// The line that is furthest from the limit.
fn worst(
    profile: &Profile,
    of: &[Operation],
    value: fn(&Line) -> f64,
    limit: Limit,
) -> Option<Measured> {
    let of_lines = profile.lines.iter().filter(|line| of.contains(&line.operation));
    let measured = of_lines.map(|line| (value(line), line));
    let (value, line) = match limit {
        AtMost(_) => measured.max_by(|one, other| one.0.total_cmp(&other.0)),
        AtLeast(_) => measured.min_by(|one, other| one.0.total_cmp(&other.0)),
    }?;
    Some(Measured { value, at: Some((line.place.clone(), line.operation)) })
}

/// The largest part, in per cent of the sum. `None` of nothing.
fn largest(parts: impl Iterator<Item = u64> + Clone) -> Option<f64> {
    let all = parts.clone().sum::<u64>();
    (all > 0).then(|| 100.0 * parts.max().unwrap_or(0) as f64 / all as f64)
}

/// The bytes that a block's threads and TMA load from global memory.
fn loaded(trace: &Trace) -> u64 {
    let of_request = trace.requests.iter().map(|request| match request.operation {
        GlobalLoad => request.lanes.len() as u64 * u64::from(request.width),
        TmaLoad => request.units,
        _ => 0,
    });
    of_request.sum()
}

/// [`Measure::Copied`]. `cp.async` loads and stores at one place of the source.
fn copied(profile: &Profile) -> Option<f64> {
    let of = |operation| profile.lines.iter().filter(move |line| line.operation == operation);
    let bytes = |line: &Line| line.lanes * u64::from(line.width);
    let copies = |load: &&Line| of(SharedCopy).any(|copy| copy.place == load.place);
    let all = of(GlobalLoad).map(bytes).sum::<u64>();
    let copied = of(GlobalLoad).filter(copies).map(bytes).sum::<u64>();
    (all > 0).then(|| 100.0 * copied as f64 / all as f64)
}

/// [`Measure::Ahead`], of the first thread.
fn ahead(trace: &Trace) -> Option<f64> {
    let products = [Fma, Mma, Wgmma];
    let loads = [GlobalLoad, TmaLoad];
    let (mut intervals, mut ahead) = (0u32, 0u32);
    let mine = trace.steps.iter().filter(|step| step.thread == [0; 3]).collect::<Vec<_>>();
    for interval in mine.chunk_by(|one, other| one.barriers == other.barriers) {
        let first = interval.iter().position(|step| products.contains(&step.operation));
        let Some(first) = first else { continue };
        intervals += 1;
        ahead += u32::from(interval[..first].iter().any(|step| loads.contains(&step.operation)));
    }
    (intervals > 0).then(|| 100.0 * f64::from(ahead) / f64::from(intervals))
}

impl Measure {
    /// A value of it: `1 barrier a phase`, `60 % of the products by one block`.
    pub fn of(self, value: f64) -> String {
        let (value, text) = (number(value), self.to_string());
        match text.split_once("s ") {
            Some((thing, rest)) if !thing.contains(' ') => {
                format!("{} {rest}", count_of(value, thing))
            }
            _ => format!("{value} {text}"),
        }
    }
}

/// `at most` or `at least`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            AtMost(_) => "at most",
            AtLeast(_) => "at least",
        })
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (AtMost(value) | AtLeast(value)) = self.limit;
        write!(f, "{} {}", self.limit, self.measure.of(value))
    }
}

/// A number with at most two decimals.
pub fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
