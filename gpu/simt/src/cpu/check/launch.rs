//! A checked launch.

use std::{
    num::NonZeroU32,
    panic::Location,
    sync::atomic::{AtomicBool, AtomicU64},
    time::Duration,
};

use super::{
    checked_launch::CheckedLaunch,
    checker::ask_for_fma,
    finding::{Finding, Kind, Untouched},
    findings::MemoryId,
    global::{Buffer, Region},
    params::CheckableParams,
    place::Place,
    record::FIRST_ENGINE,
    recorded::Launches,
    report::Report,
};
use crate::{
    Declaration, Kernel, LaunchConfig,
    cpu::{
        Stop,
        access::Access,
        launch::{LIMITS, bind, run_blocks},
        order::Order,
        symbol::Symbol,
    },
};

/// The least CPU time of a thread before the watchdog leaves it. The checker runs on the same
/// stack. It takes far less for what it does about an access, and must not be left in the middle of
/// that: it may hold a lock, or allocate.
const LEAST_PATIENCE: Duration = Duration::from_millis(20);

/// How a checked launch is carried out.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// The order of blocks, warps and lanes.
    pub order: Order,
    /// Report elements of an `In` that no thread has read, and of an `Out` that none has written.
    pub complete: bool,
    /// The memory that the checker does not know from views: buffers of raw pointers among the
    /// parameters, the kernel's variables in global memory, and the buffers that these point to.
    pub memory: Vec<Memory>,
    /// Memory between the elements of the views: a view reaches from its first element to its last,
    /// and a matrix may have gaps between its rows. An access there is [out of
    /// bounds](Kind::OutOfBounds).
    pub gaps: Vec<Memory>,
    /// Parameters that no earlier launch of the stream writes, such as weights. A `dependent`
    /// kernel may access them before
    /// [`grid::wait_for_earlier`](crate::device::grid::wait_for_earlier).
    pub early: Vec<&'static str>,
    /// Profile one block in that number ([`Report::profile`]).
    pub profile: Option<NonZeroU32>,
    /// Trace every access of the block of that index ([`Report::trace`]).
    pub trace: Option<[u32; 3]>,
    /// The most accesses of a thread before it waits or ends. A thread with more is
    /// [endless](Kind::Endless). `None`: 2^26, which takes some seconds. Reads that add nothing new
    /// are not counted.
    pub most_accesses: Option<u64>,
    /// The most rounds of a block (or cluster). In a round its threads go on to their next waits:
    /// barriers, votes and so on. A block with more is [endless](Kind::Endless), unless another
    /// block has made progress within that number of rounds, or still may. `None`: 2^24, which
    /// takes half a minute for a block of one warp, and longer for a larger one; twice as long if
    /// several blocks do not end.
    pub most_waits: Option<u64>,
    /// The most CPU time of a thread without an access or a wait. A thread that takes more is
    /// endless. `None`: ten seconds. At least 20 ms: less is as that.
    pub patience: Option<Duration>,
    /// The most workers, 1 to 28. `None`: [one for each core](crate::cpu::workers).
    pub workers: Option<usize>,
    /// As in a [fast launch](crate::cpu::Options::resident).
    pub resident: Option<u64>,
    /// A flag that cancels the launch when it is set: the launch ends at the next barrier or block.
    pub cancel: Option<&'a AtomicBool>,
    /// Counts the blocks that have ended, to show progress.
    pub done: Option<&'a AtomicU64>,
    /// What the launches of a `#[check]` case found.
    pub(super) launches: Option<&'a Launches>,
}

impl Options<'_> {
    /// What ends a thread that does not end by itself: accesses, waits, and CPU time without
    /// either.
    fn ends(&self) -> (u64, u64, Duration) {
        (
            self.most_accesses.unwrap_or(1 << 26),
            self.most_waits.unwrap_or(1 << 24),
            self.patience.unwrap_or(Duration::from_secs(10)).max(LEAST_PATIENCE),
        )
    }
}

/// The buffer of a raw pointer, or a variable of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    address: usize,
    bytes: usize,
    element: usize,
    written: bool,
    variable: Option<&'static str>,
}

impl Memory {
    /// `len` elements at `base`. `written`: whether they hold values at the launch. `T` is the
    /// smallest type by which the kernel accesses them.
    pub fn new<T>(base: *const T, len: usize, written: bool) -> Self {
        Memory::of(base.addr(), size_of::<T>(), len, written)
    }

    /// As [`new`](Self::new), for a type that has `element` bytes.
    pub fn of(address: usize, element: usize, len: usize, written: bool) -> Self {
        // Not beyond the end of the address space, whatever the caller says.
        let bytes = len.saturating_mul(element).min(usize::MAX - address);
        Memory { address, bytes, element, written, variable: None }
    }

    /// A variable in global memory. It holds values from the start (zeros).
    pub fn symbol<S: Symbol>(symbol: &S) -> Self {
        let variable = Some(symbol.name());
        Memory { variable, ..Memory::new(symbol.place(), symbol.len(), true) }
    }
}

/// Runs a kernel on the CPU, waits for its end and reports what its threads did wrong.
///
/// The kernel is one that was compiled against [`checked`](crate::checked), or one that takes raw
/// pointers.
///
/// # Errors
/// [`Stop`] where the launch could not be carried out: cancelled, or no memory. What is wrong with
/// the kernel is in the report.
///
/// # Safety
/// 1. Every view and pointer in `params` is valid until this returns, and nobody else uses what the
///    kernel writes, nor writes what it reads. The same of the kernel's variables
///    ([`global!`](crate::global)), except for the functions of [`symbol`](crate::cpu::symbol), and
///    of the buffers that they point to.
/// 2. A kernel that takes raw pointers stays inside their buffers, except in its own body, and
///    these are given as [`Options::memory`].
/// 3. A thread of the kernel holds no two references into one `Out` or shared array, one of them
///    mutable, and none where it waits for threads that write there. No reference, view, tensor map
///    or shared array outlives the thread.
/// 4. Where a thread waits, or makes an atomic operation, it holds nothing whose destructor must
///    run: one that waits for ever is abandoned there. So is one that does not end, that makes too
///    many accesses out of bounds, or whose stack is too small, wherever it is.
///
/// Races are reported rather than forbidden; the accesses that make one are carried out one after
/// another or, between blocks, by several cores at once, as plain accesses of the processor.
pub unsafe fn launch<P: CheckableParams>(
    kernel: &Kernel<P>,
    config: &LaunchConfig,
    mut params: P,
    options: &Options,
) -> Result<Report, Stop> {
    let declaration = &kernel.declaration;
    let fits = kernel.check(config, &LIMITS, &params);
    let values = Values {
        words: params.slots().first_words().collect(),
        elements: params.elements(),
        regions: params.regions(),
    };
    run(declaration, config, options, fits, values, &mut |buffers| {
        params.attach(buffers);
        // SAFETY: this function's contract.
        Box::new(unsafe { bind(&kernel.code.checked, params) })
    })
}

/// What the checker knows of the values of the parameters.
struct Values {
    /// The first word of each.
    words: Vec<u64>,
    /// The number of elements of each that is a view.
    elements: Vec<Option<usize>>,
    /// The memory of all views.
    regions: Vec<Region>,
}

/// A thread of a kernel, to be run with this thread's index.
type Thread<'a> = Box<dyn Fn() + Sync + 'a>;

/// The part of a checked launch that is the same for every kernel: compiled once, and not for each
/// list of parameters. `fits`: whether the launch keeps what the kernel declares. `attach` attaches
/// the parameters to the launch's buffers.
fn run<'a>(
    declaration: &Declaration,
    config: &LaunchConfig,
    options: &Options,
    fits: Result<(), String>,
    values: Values,
    attach: &mut dyn FnMut(&[Buffer]) -> Thread<'a>,
) -> Result<Report, Stop> {
    let name = declaration.name;
    let report = |findings: Vec<_>, limits: Vec<_>, profile, trace| {
        if let Some(launches) = options.launches {
            launches.add(declaration, &findings, &limits);
        }
        let order = options.order;
        Report { kernel: name, order, findings, limits, profile, trace }
    };
    let refused = |reason| {
        let finding = Finding::general(Kind::Launch, name, None, reason);
        Ok(report(vec![finding], Vec::new(), None, None))
    };
    if let Err(reason) = fits {
        return refused(reason);
    }

    let raw = options.memory.iter().map(|memory| {
        let Memory { address, bytes, element, written, variable } = *memory;
        let param = values.words.iter().position(|word| *word == address as u64);
        let param = param.unwrap_or(usize::MAX);
        Region { address, bytes, element, written, param, variable }
    });
    let regions: Vec<_> = values.regions.into_iter().chain(raw).collect();
    let unknown = declaration.params.iter().zip(0..).find(|(declared, param)| {
        declared.ty.contains('.')
            && values.elements[*param].is_none()
            && !options.memory.iter().any(|memory| memory.address as u64 == values.words[*param])
    });
    if let Some((declared, _)) = unknown {
        return refused(format!(
            "{} is a raw pointer: say in check::Options::memory what it points to",
            declared.name
        ));
    }
    let is_parameter = |name: &&&str| declaration.params.iter().any(|param| param.name == **name);
    if let Some(name) = options.early.iter().find(|name| !is_parameter(name)) {
        return refused(format!("{name} of check::Options::early is no parameter of the kernel"));
    }
    let is_early = |region: &Region| {
        let param = declaration.params.get(region.param);
        region.variable.is_none() && param.is_some_and(|param| options.early.contains(&param.name))
    };
    // No thread writes it: all are views to read, and raw pointers there are none.
    let is_read_only = |region: &Region| {
        let ty = declaration.params.get(region.param).map_or("", |param| param.ty);
        let reads = ["in.", "tensormap.", "tensormaps."].iter().any(|view| ty.starts_with(view));
        reads && region.variable.is_none() && options.memory.is_empty()
    };
    let mut buffers = Buffer::join(regions)?;
    for buffer in &mut buffers {
        buffer.is_early = buffer.regions.iter().all(is_early);
        buffer.is_read_only = buffer.regions.iter().all(is_read_only);
    }
    for gap in &options.gaps {
        buffers.iter().for_each(|buffer| buffer.set_gap(gap.address, gap.bytes));
    }

    ask_for_fma();
    let thread = attach(&buffers);
    let every = options.profile.map(|every| u64::from(every.get()));
    let cluster = declaration.cluster.unwrap_or(config.cluster);
    let cluster = cluster.iter().product::<u32>() as usize;
    let threads = config.threads() as usize;
    let most = FIRST_ENGINE as usize;
    if threads.next_multiple_of(32) * cluster > most {
        let reason = format!(
            "cluster = {cluster} blocks of {threads} threads: a checked launch has {most} threads at most"
        );
        return refused(reason);
    }
    let checked = CheckedLaunch::new(
        declaration,
        &buffers,
        (config.block, cluster),
        every,
        options.trace,
        options.ends(),
    );
    let run_options = crate::cpu::Options {
        workers: options.workers,
        resident: options.resident,
        cancel: options.cancel,
        done: options.done,
        ..Default::default()
    };
    run_blocks(declaration, config, &*thread, &run_options, options.order, Some(&checked))?;

    let param_name = |param: usize| declaration.params.get(param).map_or("?", |p| p.name);
    let buffer_name = |number: usize| {
        let mut regions: Vec<_> = buffers[number].regions.iter().collect();
        regions.sort_unstable_by_key(|region| region.param);
        let name = |region: &Region| region.variable.unwrap_or_else(|| param_name(region.param));
        let mut names = regions.into_iter().map(name).collect::<Vec<_>>();
        names.dedup();
        names.join(" and ")
    };
    let memory_name = |memory| match memory {
        MemoryId::Global(number) => format!("buffer {}", buffer_name(number)),
        MemoryId::Shared(place, element, shape) => array_name(place, element, shape),
    };
    let trace = checked.take_trace(memory_name);
    let [x, y, _] = config.block;
    let thread_index = |linear: u32| [linear % x, linear / x % y, linear / x / y];
    let mut findings = checked.take_findings(memory_name, thread_index);
    if options.complete {
        for (number, buffer) in buffers.iter().enumerate() {
            for region in &buffer.regions {
                // It outlives the launch, which need not access all of it.
                if region.variable.is_some() {
                    continue;
                }
                let is_written =
                    |ty: &str| ty.starts_with("out.") || ty.starts_with("tensormapmut.");
                let param = declaration.params.get(region.param);
                let output = param.is_some_and(|param| is_written(param.ty));
                let (kind, access) = match output {
                    true => (Kind::NeverWritten, Access::Write),
                    false => (Kind::NeverRead, Access::Read),
                };
                if let Some((count, first)) = buffer.untouched(region, access) {
                    let elements = region.bytes / region.element.max(1);
                    let detail =
                        format!("{count} of {elements} elements; element {first} is the first");
                    let memory = Some(format!("buffer {}", buffer_name(number)));
                    let finding = Finding::general(kind, name, memory, detail);
                    let untouched = Some(Untouched { count, first });
                    findings.push(Finding { untouched, ..finding });
                }
            }
        }
    }
    Ok(report(findings, checked.limits.reached(), checked.take_profile(config.blocks()), trace))
}

/// The name of a shared array: its shape and the place where it is declared.
fn array_name(place: &Location, element: usize, (rows, cols): (usize, usize)) -> String {
    let shape = match cols {
        1 => format!("{rows}"),
        _ => format!("{rows} x {cols}"),
    };
    let place = Place::new(place);
    format!("the shared array of {shape} elements of {element} bytes declared at {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the caller says, the watchdog leaves the checker the time that it needs.
    #[test]
    fn no_thread_is_left_at_once() {
        let patience = |patience| Options { patience, ..Options::default() }.ends().2;
        let said = [None, Some(Duration::ZERO), Some(Duration::MAX)].map(patience);
        assert_eq!(said, [Duration::from_secs(10), LEAST_PATIENCE, Duration::MAX]);
    }

    /// Memory that a caller makes up does not reach beyond the address space.
    #[test]
    fn a_memory_ends_with_the_address_space() {
        let last = std::ptr::without_provenance::<u64>(usize::MAX - 7);
        for len in [1, 2, usize::MAX / 8, usize::MAX] {
            let memory = Memory::new(last, len, true);
            assert_eq!(memory.address.checked_add(memory.bytes), Some(usize::MAX));
        }
        assert_eq!(Memory::new(std::ptr::null::<u64>(), 3, true).bytes, 24);
    }
}
