//! Requests of warps, short enough for a page.

use std::collections::BTreeMap;

use serde::Serialize;
use simt::check::{Operation, Place, Request};

use super::{moments::Moments, parts::Line};
use crate::phases::statement;

/// A request of a warp, or what it does between two of them: multiply-adds, instructions of tensor
/// cores, TMA copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Drawn {
    /// The number of the warp in its block.
    pub warp: u32,
    /// The number of barriers that the block had passed.
    pub barriers: u32,
    /// The phase.
    pub phase: usize,
    /// If there are stages: the one of their [ticks](super::Stages::ticks) at which it happens. It
    /// never decreases within a warp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<usize>,
    /// The operation's name, such as `global-load`.
    pub operation: &'static str,
    /// Which of [`Picture::lines`](super::Picture::lines) it is.
    pub line: usize,
    /// Which of [`Picture::memories`](super::Picture::memories) it accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
    /// Bytes of each lane. 0 if it is no access of lanes.
    pub width: u32,
    /// Runs of lanes: the first lane, the number of lanes, the first lane's byte address, and the
    /// bytes from one lane to the next. Addresses count from the start of the buffer, or of the
    /// block's shared memory. If it is no access of lanes, each lane's number of instructions
    /// stands for its address.
    pub lanes: Vec<[i64; 4]>,
    /// Sectors, or wavefronts. For a TMA copy bytes inside the matrix.
    pub units: u64,
    /// The fewest possible.
    pub ideal: u64,
    /// For a TMA copy: the first element of its box, its columns and rows, as far as they are
    /// inside the matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub area: Option<[usize; 3]>,
    /// For `wgmma`: the start and the bytes of each operand in the block's shared memory. For a TMA
    /// copy: those of the box.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operands: Vec<(usize, usize)>,
}

/// The sums of an operation's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Total {
    /// The operation's name.
    pub operation: &'static str,
    /// The number of requests. For what is no access of lanes, of instructions: of a thread for
    /// `fma`, otherwise of a warp.
    pub requests: u64,
    /// Sectors, wavefronts, or bytes of TMA copies.
    pub units: u64,
    /// The fewest possible.
    pub ideal: u64,
}

impl Drawn {
    /// Adds the request's line to `lines`, unless it is there. `at`: the request's number in the
    /// trace.
    pub(super) fn new(
        request: &Request,
        (moments, at): (&Moments, usize),
        lines: &mut Vec<Line>,
    ) -> Self {
        let place = &request.place;
        let known =
            lines.iter().position(|line| line.line == place.line && line.file == place.file);
        let line = known.unwrap_or_else(|| {
            let text = text(place);
            lines.push(Line { file: place.file.clone(), line: place.line, text });
            lines.len() - 1
        });
        Drawn {
            warp: request.warp,
            barriers: request.barriers,
            phase: moments.phase[at],
            tick: moments.tick[at],
            operation: request.operation.name(),
            line,
            memory: request.memory,
            width: request.width,
            lanes: runs(&request.lanes),
            units: request.units,
            ideal: request.ideal,
            area: request.area,
            operands: request.operands.clone(),
        }
    }

    /// Lanes and their addresses.
    pub fn addresses(&self) -> impl Iterator<Item = (u32, u64)> {
        self.lanes.iter().flat_map(|&[first, count, address, step]| {
            (0..count).map(move |i| ((first + i) as u32, (address + i * step) as u64))
        })
    }
}

/// The text of a place: its line, or its call as a whole, if that goes on in the next ones.
fn text(place: &Place) -> String {
    let statement = statement(place);
    let first = statement.lines().next().unwrap_or_default().trim();
    match first.ends_with('(') {
        true => statement
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace("( ", "(")
            .replace(", )", ")"),
        false => first.to_owned(),
    }
}

/// Lanes whose addresses are evenly spaced become one run.
fn runs(lanes: &[(u32, u64)]) -> Vec<[i64; 4]> {
    let mut runs = Vec::<[i64; 4]>::new();
    for &(lane, address) in lanes {
        let (lane, address) = (i64::from(lane), address as i64);
        if let Some([first, count, start, step]) = runs.last_mut()
            && lane == *first + *count
            && (*count == 1 || address == *start + *count * *step)
        {
            *step = if *count == 1 { address - *start } else { *step };
            *count += 1;
            continue;
        }
        runs.push([lane, 1, address, 0]);
    }
    runs
}

/// The sums for each operation, by name.
pub(super) fn totals(requests: &[Drawn]) -> Vec<Total> {
    let mut totals = BTreeMap::<&'static str, Total>::new();
    for request in requests {
        let operation = request.operation;
        let new = || Total { operation, requests: 0, units: 0, ideal: 0 };
        let total = totals.entry(operation).or_insert_with(new);
        let times = request.addresses().map(|(_, times)| times);
        total.requests += match request.width {
            0 if operation == Operation::Fma.name() => times.sum(),
            // All lanes execute one instruction.
            0 => times.max().unwrap_or(0),
            _ => 1,
        };
        total.units += request.units;
        total.ideal += request.ideal;
    }
    totals.into_values().collect()
}
