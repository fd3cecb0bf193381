//! Irregular code, after the patterns of the Indigo suite (Liu, Azami, Walters, Burtscher, "The
//! Indigo program-verification microbenchmark suite of irregular parallel code patterns", ISPASS
//! 2022): loops over the neighbours of a graph's vertices, right and with one bug each.
//!
//! A case is a pattern, a bug, who takes a vertex, the order of its neighbours, and a type. Every
//! wrong case is found, in every order of the threads, on each graph on which the bug matters; no
//! right one is called wrong, and its result is right.

use std::{ops::Add, sync::LazyLock};

use simt::{
    Atomic, Kernel, LaunchConfig,
    check::{self, Kind},
    checked::{In, Out},
};
use tests::{Turns, everything};

use crate::findings::orders;

use self::{Bug::*, Pattern::*, Unit::*, Way::*};

macro_rules! choices {
    ($($name:ident: $($choice:ident),*;)*) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum $name {
            $($choice),*
        }

        impl $name {
            const ALL: &[$name] = &[$($name::$choice),*];
        }
    )*};
}

choices! {
    Pattern: ByVertex, ByEdge, Pull, Push, Worklist, Compress;
    // Who takes a vertex.
    Unit: Thread, Warp, Block;
    Way: Forward, Reverse, Until, ReverseUntil;
    // An operation that is not atomic; a vertex too many; a plain read before an atomic operation;
    // a missing barrier behind the reads, or memory that others write meanwhile; a missing barrier
    // before the reads; a list that is too short.
    Bug: Right, NotAtomic, Bounds, Guard, Race, NoSync, Overflow;
}

/// Threads of a block, and blocks.
const THREADS: usize = 64;
const BLOCKS: usize = 2;
/// A vertex counts if the sum of its neighbours' values is greater. A walk `Until` ends behind a
/// neighbour whose value is greater.
const MOST: u8 = 3;
/// The most neighbours of a vertex.
const DEGREE: usize = 64;

/// What a kernel does, and how.
#[derive(Clone, Copy, Debug)]
struct Case {
    pattern: Pattern,
    bug: Bug,
    unit: Unit,
    way: Way,
}

impl Case {
    /// Whether the lanes of a unit add their sums.
    fn reduces(self) -> bool {
        matches!(self.pattern, ByVertex | Pull | Worklist)
    }

    fn exists(self) -> bool {
        let in_parts = self.reduces() && self.unit != Thread;
        let has_bug = match self.bug {
            Right | Bounds => true,
            NotAtomic | Guard => self.pattern != Pull,
            Race => in_parts || self.pattern == Pull,
            NoSync => in_parts,
            Overflow => self.pattern == Worklist,
        };
        has_bug && (self.pattern != Compress || self.way == Forward)
    }

    /// The first vertex of a thread, the distance to its next one, its lane, and the lanes.
    fn part(self, block: usize, t: usize) -> [usize; 4] {
        match self.unit {
            Thread => [block * THREADS + t, BLOCKS * THREADS, 0, 1],
            Warp => [(block * THREADS + t) / 32, BLOCKS * THREADS / 32, t % 32, 32],
            Block => [block, BLOCKS, t, THREADS],
        }
    }

    /// The places of a lane's neighbours, in the order in which it looks at them.
    fn places(self, [begin, end, lane, lanes]: [usize; 4]) -> impl Iterator<Item = usize> {
        let count = end.saturating_sub(begin + lane).div_ceil(lanes);
        let is_reverse = matches!(self.way, Reverse | ReverseUntil);
        let place = move |k: usize| if is_reverse { count - 1 - k } else { k };
        (0..count).map(move |k| begin + lane + lanes * place(k))
    }

    fn stops(self) -> bool {
        matches!(self.way, Until | ReverseUntil)
    }
}

trait Value: Atomic + From<u8> + Add<Output = Self> + PartialOrd {}

impl<T: Atomic + From<u8> + Add<Output = T> + PartialOrd> Value for T {}

/// Adds to an element.
fn add<T: Value>(bug: Bug, data: &mut Out<T>, at: usize, value: T) -> T {
    match bug {
        NotAtomic => {
            let old = data[at];
            data[at] = old + value;
            old
        }
        Guard if data[at] >= T::from(u8::MAX) => value,
        _ => data.atomic(at).add(value),
    }
}

/// The root of a vertex's tree. On the way, vertices are hung up higher.
fn root(bug: Bug, parents: &mut Out<u32>, mut vertex: u32) -> u32 {
    let load = |parents: &Out<u32>, of: u32| match bug {
        NotAtomic | Guard => parents[of as usize],
        _ => parents.atomic(of as usize).load(),
    };
    loop {
        let parent = load(parents, vertex);
        if parent == vertex {
            return vertex;
        }
        let higher = load(parents, parent);
        match bug {
            NotAtomic => parents[vertex as usize] = higher,
            _ => _ = parents.atomic(vertex as usize).compare_exchange(parent, higher),
        }
        vertex = higher;
    }
}

/// Joins the trees of two vertices.
fn join(bug: Bug, parents: &mut Out<u32>, one: u32, other: u32) {
    loop {
        let (one, other) = (root(bug, parents, one), root(bug, parents, other));
        let (root, hung) = (one.min(other), one.max(other));
        if root == hung {
            return;
        }
        match bug {
            NotAtomic => parents[hung as usize] = root,
            _ if parents.atomic(hung as usize).compare_exchange(hung, root) != hung => continue,
            _ => {}
        }
        return;
    }
}

fn walk<T: Value>((spec, rows, cols, input, mut output, mut words): Params<T>) {
    use simt::checked::*;
    let mut parts = shared![T; THREADS];
    let case = CASES[(spec & 0xffff) as usize];
    let Case { pattern, bug, unit, .. } = case;
    let t = thread::thread_idx_x() as usize;
    let [first, step, lane, lanes] = case.part(thread::block_idx_x() as usize, t);
    let sync = || match unit {
        Thread => {}
        Warp => warp::sync_warp(warp::ALL),
        Block => thread::sync_threads(),
    };
    let vertices = (spec >> 16) as usize + if bug == Bounds { 1 } else { 0 };
    for i in (first..vertices).step_by(step) {
        let begin = rows[i] as usize;
        let end = (rows[i + 1] as usize).min(begin + DEGREE);
        let mut sum = T::from(0);
        for place in case.places([begin, end, lane, lanes]) {
            let neighbour = cols[place] as usize;
            let value = match pattern == Pull && bug == Race && unit == Thread {
                true => output[neighbour],
                false => input[neighbour],
            };
            match pattern {
                ByEdge if i < neighbour => _ = add(bug, &mut output, 0, T::from(1)),
                Push => _ = add(bug, &mut output, neighbour, input[i]),
                Compress => join(bug, &mut words, i as u32, neighbour as u32),
                _ => sum = sum + value,
            }
            if case.stops() && value > T::from(MOST) {
                break;
            }
        }
        if !case.reduces() {
            continue;
        }
        if lanes > 1 {
            parts[t] = sum;
            if bug != NoSync {
                sync();
            }
            if lane == 0 {
                sum = (t + 1..t + lanes).fold(sum, |sum, other| sum + parts[other]);
            }
            if bug != Race {
                sync();
            }
        }
        match pattern {
            _ if lane > 0 => {}
            Pull => output[i] = sum,
            _ if sum <= T::from(MOST) => {}
            ByVertex => _ = add(bug, &mut output, 0, T::from(1)),
            _ => {
                let at = add(bug, &mut words, 0, 1) as usize;
                words[1 + at] = i as u32;
            }
        }
    }
}

type Params<T> = (u32, In<u32>, In<u32>, In<T>, Out<T>, Out<u32>);

macro_rules! kernels {
    ($($ty:ident)*) => {
        mod kernels {
            use simt::checked::*;

            $(#[kernel(block = (64))]
            pub fn $ty(
                spec: u32,
                rows: In<u32>,
                cols: In<u32>,
                input: In<$ty>,
                output: Out<$ty>,
                words: Out<u32>,
            ) {
                super::walk((spec, rows, cols, input, output, words));
            })*
        }

        /// What is wrong with a case's run, by the type's number.
        fn try_case(ty: usize, case: usize, graph: &Graph, run: Run) -> Option<String> {
            let all: &[fn(usize, &Graph, Run) -> Option<String>] =
                &[$(|case, graph, run| run_case(&kernels::$ty, case, graph, run)),*];
            all[ty](case, graph, run)
        }

        const TYPES: &[&str] = &[$(stringify!($ty)),*];
    };
}

kernels! { u32 i32 f32 f64 i64 }

/// All cases. A kernel is told the number of its case.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for &pattern in Pattern::ALL {
        for &bug in Bug::ALL {
            for &unit in Unit::ALL {
                let cases = Way::ALL.iter().map(|&way| Case { pattern, bug, unit, way });
                all.extend(cases.filter(|case| case.exists()));
            }
        }
    }
    all
});

/// A graph: for each vertex the place of its first neighbour, and the neighbours. An edge goes both
/// ways.
struct Graph {
    name: &'static str,
    rows: Vec<u32>,
    cols: Vec<u32>,
}

impl Graph {
    fn new(name: &'static str, vertices: u32, is_edge: impl Fn(u32, u32) -> bool) -> Self {
        let (mut rows, mut cols) = (vec![0], Vec::new());
        for i in 0..vertices {
            cols.extend((0..vertices).filter(|&j| i != j && (is_edge(i, j) || is_edge(j, i))));
            rows.push(cols.len() as u32);
        }
        Graph { name, rows, cols }
    }

    fn all() -> Vec<Self> {
        let mixed = |seed: u32, i: u32, j: u32| {
            (i * 40 + j + seed).wrapping_mul(0x9e37_79b9).rotate_left(15).wrapping_mul(0x85eb_ca6b)
                >> 20
        };
        vec![
            Graph::new("star", 33, |i, _| i == 0),
            Graph::new("ring", 40, |i, j| j == (i + 1) % 40),
            Graph::new("grid", 36, |i, j| j == i + 6 || (j == i + 1 && j % 6 > 0)),
            Graph::new("random 1", 37, |i, j| mixed(1, i, j).is_multiple_of(12)),
            Graph::new("random 2", 21, |i, j| i % 3 > 0 && mixed(2, i, j).is_multiple_of(5)),
            Graph::new("no edges", 20, |_, _| false),
            Graph::new("one vertex", 1, |_, _| false),
        ]
    }

    fn vertices(&self) -> usize {
        self.rows.len() - 1
    }

    fn value(vertex: usize) -> u8 {
        (vertex * 7 % 5) as u8
    }

    /// What a case computes, by plain loops: the output, the list, and for each element to which
    /// threads add which of them do.
    fn expected(&self, case: Case) -> (Vec<u8>, Vec<u32>, Vec<Vec<usize>>) {
        let mut output = vec![0; self.vertices()];
        let (mut list, mut adders) = (Vec::new(), vec![Vec::new(); self.vertices()]);
        for i in 0..self.vertices() {
            let mut sum = 0;
            let of_vertex = |thread: &usize| {
                let [first, step, ..] = case.part(thread / THREADS, thread % THREADS);
                i >= first && (i - first).is_multiple_of(step)
            };
            let threads = (0..BLOCKS * THREADS).filter(of_vertex).collect::<Vec<_>>();
            let mut add = |at: usize, value: u8, thread: usize| {
                output[at] += value;
                adders[at].push(thread);
            };
            for &thread in &threads {
                let [_, _, lane, lanes] = case.part(thread / THREADS, thread % THREADS);
                let (begin, end) = (self.rows[i] as usize, self.rows[i + 1] as usize);
                for place in case.places([begin, end, lane, lanes]) {
                    let neighbour = self.cols[place] as usize;
                    sum += Graph::value(neighbour);
                    match case.pattern {
                        ByEdge if i < neighbour => add(0, 1, thread),
                        Push => add(neighbour, Graph::value(i), thread),
                        // Either end's thread may be the one that hangs the other up.
                        Compress => [i, neighbour].into_iter().for_each(|at| add(at, 0, thread)),
                        _ => {}
                    }
                    if case.stops() && Graph::value(neighbour) > MOST {
                        break;
                    }
                }
            }
            match case.pattern {
                Pull => output[i] = sum,
                ByVertex if sum > MOST => add(0, 1, threads[0]),
                Worklist if sum > MOST => {
                    adders[0].push(threads[0]);
                    list.push(i as u32);
                }
                _ => {}
            }
        }
        (output, list, adders)
    }

    /// Whether the bug of a case matters.
    fn shows(&self, case: Case) -> bool {
        let (_, list, adders) = self.expected(case);
        match case.bug {
            Right | Bounds | NoSync => true,
            NotAtomic | Guard => adders.iter().any(|of| of.iter().any(|thread| *thread != of[0])),
            Race if case.unit == Thread => !self.cols.is_empty(),
            Race => self.vertices() > case.part(0, 0)[1],
            Overflow => !list.is_empty(),
        }
    }

    /// The least vertex of each vertex's component.
    fn roots(&self) -> Vec<u32> {
        let mut roots = (0..self.vertices() as u32).collect::<Vec<_>>();
        for _ in 0..self.vertices() {
            for i in 0..self.vertices() {
                for &neighbour in &self.cols[self.rows[i] as usize..self.rows[i + 1] as usize] {
                    roots[i] = roots[i].min(roots[neighbour as usize]);
                }
            }
        }
        roots
    }
}

/// The order, and the number of workers.
type Run = (check::Order, usize);

fn run_case<T: Value>(
    kernel: &Kernel<Params<T>>,
    number: usize,
    graph: &Graph,
    (order, workers): Run,
) -> Option<String> {
    let case = CASES[number];
    let (expected, list, _) = graph.expected(case);
    let input = (0..graph.vertices()).map(|i| T::from(Graph::value(i))).collect::<Vec<_>>();
    let mut output = vec![T::from(0); graph.vertices()];
    let mut words = match (case.pattern, case.bug) {
        (Compress, _) => (0..graph.vertices() as u32).collect(),
        (_, Overflow) => vec![0; list.len()],
        _ => vec![0; 1 + graph.vertices()],
    };
    let mut options = check::Options::default();
    (options.order, options.workers) = (order, Some(workers));
    let config = LaunchConfig::new([BLOCKS as u32, 1, 1], [THREADS as u32, 1, 1]);
    // SAFETY: the memory outlives the launch, and nobody else uses it.
    let report = unsafe {
        let params = (
            number as u32 | (graph.vertices() as u32) << 16,
            In::new(graph.rows.as_ptr(), graph.rows.len()),
            In::new(graph.cols.as_ptr(), graph.cols.len()),
            In::new(input.as_ptr(), input.len()),
            Out::new(output.as_mut_ptr(), output.len()),
            Out::new(words.as_mut_ptr(), words.len()),
        );
        check::launch(kernel, &config, params, &options).expect("a report")
    };
    let is_wrong = |message: String| Some(format!("{case:?}, {}, {order}: {message}", graph.name));
    let is_found = report.findings.iter().any(|finding| match case.bug {
        Right => true,
        Bounds | Overflow => finding.kind == Kind::OutOfBounds,
        NoSync if finding.kind == Kind::Uninitialised => true,
        _ => matches!(
            finding.kind,
            Kind::ReadAfterWrite | Kind::WriteAfterRead | Kind::WriteAfterWrite
        ),
    });
    if is_found != (case.bug != Right) {
        return is_wrong(report.to_string());
    }
    if case.bug != Right {
        return None;
    }
    let root = |mut v: usize| loop {
        match words[v] as usize {
            parent if parent == v => return v as u32,
            parent => v = parent,
        }
    };
    let is_right = match case.pattern {
        Compress => (0..words.len()).map(root).eq(graph.roots()),
        Worklist => {
            let mut found = words[1..][..list.len()].to_vec();
            found.sort_unstable();
            words[0] as usize == list.len() && found == list
        }
        _ => output.iter().zip(&expected).all(|(x, y)| *x == T::from(*y)),
    };
    if is_right { None } else { is_wrong("a wrong result".to_owned()) }
}

#[test]
fn irregular_code_is_found_wrong_where_it_is() {
    let (graphs, orders) = (Graph::all(), orders().collect::<Vec<_>>());
    let (mut turns, mut in_order) = (Turns::of(graphs.len()), Turns::of(orders.len()));
    let (mut ran, mut wrong) = ([0; 2], Vec::new());
    for (at, &case) in CASES.iter().enumerate() {
        let types = if case.pattern == Compress { 1 } else { TYPES.len() };
        let shown = (0..graphs.len()).filter(|at| graphs[*at].shows(case)).collect::<Vec<_>>();
        for (ty, name) in TYPES.iter().enumerate().take(types) {
            for graph in turns.among(&shown) {
                for number in in_order.next_case() {
                    let run = (orders[number], 1 + (number + ty) % 2);
                    ran[usize::from(case.bug == Right)] += 1;
                    let message = try_case(ty, at, &graphs[graph], run);
                    wrong.extend(message.map(|message| format!("{name}: {message}")));
                }
            }
        }
    }
    let all = wrong.len();
    wrong.truncate(5);
    assert!(wrong.is_empty(), "{all} of {ran:?} wrong and right runs:\n{}", wrong.join("\n"));
    assert!(ran[0] >= 600 && ran[1] >= 200 && (!everything() || ran[0] > 10_000), "{ran:?}");
}
