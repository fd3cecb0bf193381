//! A checked launch as its workers share it: its settings, and what the workers found.

use std::{
    sync::{Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use super::{
    finding::{Example, Finding},
    findings::{Findings, MemoryId},
    flags::FlagReleases,
    global::Buffer,
    limits::Limits,
    place::Place,
    profile::Profile,
    profiler::Profiler,
    trace::{Trace, Tracer},
};
use crate::{
    Declaration,
    cpu::{limits::WARP, watchdog::Watchdog},
};

/// What is said of a race whose writes do not differ.
const SAME_VALUE: &str = "each of these writes seems to have written the value that was there already: then one thread can write for all";

/// A checked launch as its workers share it.
pub(in crate::cpu) struct CheckedLaunch<'a> {
    pub(super) kernel: &'static str,
    /// Whether the kernel may begin before the one before it in the stream has ended.
    pub(super) dependent: bool,
    pub(super) buffers: &'a [Buffer],
    /// Threads of a block, and the same rounded up to whole warps.
    pub(super) threads: usize,
    pub(super) block_stride: usize,
    /// Blocks of a cluster.
    pub(super) cluster: usize,
    /// Samples one block in that number for the profile.
    pub(super) profile: Option<u64>,
    /// The index of the block that is traced.
    pub(super) trace: Option<[u32; 3]>,
    /// Whether a thread has called `sync_warp`. Then two readers of one warp do not stand for all
    /// of the block.
    pub(super) lanes_ordered: AtomicBool,
    /// Whether one has called it for a part of its warp. Then two readers that are lanes of one
    /// warp do not stand for the warp.
    pub(super) halves_ordered: AtomicBool,
    /// Whether threads of a block were ordered one by one: by an mbarrier, a named barrier, a proxy
    /// fence or a flag. Later blocks count for that from their start.
    pub(super) threads_ordered: AtomicBool,
    /// What could not be seen.
    pub(super) limits: Limits,
    collected: Mutex<Vec<Collected>>,
    pub(super) flags: FlagReleases,
    /// The most accesses of a thread before it waits.
    pub(super) most_accesses: u64,
    /// The most rounds of a cluster. In each, threads go on to their next waits.
    pub(super) most_waits: u64,
    pub(in crate::cpu) watchdog: Watchdog,
}

/// What the checker of a slot has collected.
pub(super) struct Collected {
    pub(super) slot: u32,
    pub(super) findings: Findings,
    pub(super) profiler: Profiler,
    pub(super) tracer: Option<Tracer>,
    /// For each of its clusters the slot's clock at its start, and the indices of its blocks.
    pub(super) blocks: Vec<(u32, Vec<[u32; 3]>)>,
}

impl<'a> CheckedLaunch<'a> {
    pub(super) fn new(
        declaration: &Declaration,
        buffers: &'a [Buffer],
        (block, cluster): ([u32; 3], usize),
        profile: Option<u64>,
        trace: Option<[u32; 3]>,
        (most_accesses, most_waits, patience): (u64, u64, Duration),
    ) -> Self {
        let threads = block.iter().product::<u32>() as usize;
        CheckedLaunch {
            kernel: declaration.name,
            dependent: declaration.dependent,
            buffers,
            threads,
            block_stride: threads.next_multiple_of(WARP as usize),
            cluster,
            profile,
            trace,
            lanes_ordered: AtomicBool::new(false),
            halves_ordered: AtomicBool::new(false),
            threads_ordered: AtomicBool::new(false),
            limits: Limits::default(),
            collected: Mutex::default(),
            flags: FlagReleases::default(),
            most_accesses,
            most_waits,
            watchdog: Watchdog::new(patience),
        }
    }

    /// Takes what the checker of a slot has collected.
    pub(super) fn collect(&self, collected: Collected) {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner).push(collected);
    }

    /// The profile, for a grid of that number of blocks. `None` where none was asked for.
    pub(super) fn take_profile(&self, blocks: u64) -> Option<Profile> {
        self.profile?;
        let mut slots = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Profile { blocks, ..Profile::default() };
        for slot in &mut *slots {
            all.add(std::mem::take(&mut slot.profiler).into_profile());
        }
        Some(all)
    }

    /// The trace, if there is one.
    pub(super) fn take_trace(&self, memory_name: impl Fn(MemoryId) -> String) -> Option<Trace> {
        let mut slots = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let tracer = slots.iter_mut().find_map(|slot| slot.tracer.take())?;
        let element = |buffer: &Buffer| buffer.regions.first().map_or(1, |region| region.element);
        let buffers = self.buffers.iter().map(|buffer| (element(buffer).max(1), buffer.bytes));
        Some(tracer.into_trace(memory_name, &buffers.collect::<Vec<_>>()))
    }

    /// The findings, sorted by kind and place.
    pub(super) fn take_findings(
        &self,
        memory_name: impl Fn(MemoryId) -> String,
        thread_index: impl Fn(u32) -> [u32; 3],
    ) -> Vec<Finding> {
        let mut slots = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        // The order in which the slots ended depends on timing.
        slots.sort_by_key(|slot| slot.slot);
        let mut findings = Findings::default();
        for slot in &mut *slots {
            findings.merge(std::mem::take(&mut slot.findings));
        }
        let block_of = |slot: u32, clock: u32, rank: usize| {
            let collected = slots.iter().find(|collected| collected.slot == slot)?;
            let next = collected.blocks.partition_point(|(start, _)| *start <= clock);
            collected.blocks[next.checked_sub(1)?].1.get(rank).copied()
        };
        let mut groups: Vec<_> = findings.0.into_iter().collect();
        groups.sort_by(|(one, _), (other, _)| one.cmp(other));
        groups
            .into_iter()
            .map(|(key, group)| Finding {
                kind: key.kind,
                kernel: self.kernel,
                memory: key.memory.map(&memory_name),
                columns: match key.memory {
                    Some(MemoryId::Shared(_, _, (_, columns))) if columns > 1 => Some(columns),
                    _ => None,
                },
                place: key.place.map(Place::new).or_else(|| key.fault_place.parse().ok()),
                other_place: key.other_place.map(Place::new),
                untouched: None,
                same_value: group.is_same_value(),
                detail: match group.is_same_value() {
                    true if group.detail.is_empty() => SAME_VALUE.to_owned(),
                    true => format!("{}. {SAME_VALUE}", group.detail),
                    false => group.detail,
                },
                count: group.count,
                examples: group
                    .examples
                    .iter()
                    .map(|seen| Example {
                        block: seen.block,
                        thread: seen.thread,
                        element: seen.element,
                        in_flight: seen.other.is_some_and(|record| record.is_in_flight()),
                        other: seen.other.filter(|record| !record.is_engine()).and_then(|record| {
                            let number = record.thread() as usize;
                            let (rank, linear) =
                                (number / self.block_stride, number % self.block_stride);
                            let block = block_of(record.slot(), record.clock, rank)?;
                            Some((block, thread_index(linear as u32)))
                        }),
                    })
                    .collect(),
            })
            .collect()
    }
}
