//! A sample of mutants: mistakes of every kind, each found, and by whom. `cargo xtask mutants` runs them all.

use std::path::Path;

use tests::scratch::workspace;
use xtask::mutants::{self, End, Mutant, Outcome};

/// Mutants of one kernel and operator that replace one text, and how they are found.
struct Sample {
    kernel: &'static str,
    operator: &'static str,
    from: &'static str,
    /// How many there are.
    count: usize,
    /// `check`, `verification` or `both`.
    caught_by: &'static str,
    /// One of what the checker finds in each; nothing where it finds nothing.
    finding: &'static str,
}

const fn sample(
    kernel: &'static str,
    operator: &'static str,
    from: &'static str,
    count: usize,
    (caught_by, finding): (&'static str, &'static str),
) -> Sample {
    Sample { kernel, operator, from, count, caught_by, finding }
}

const BARRIER: &str = "thread::sync_threads()";
const POINTERS: &str = "rust_cuda_tiled16";

const SAMPLES: [Sample; 41] = [
    // The first barrier and the second.
    sample("tiled16", "remove-barrier", BARRIER, 2, ("both", "write-after-read")),
    sample("tiled32", "remove-barrier", BARRIER, 2, ("both", "write-after-read")),
    sample(POINTERS, "remove-barrier", BARRIER, 2, ("both", "write-after-read")),
    // Each in a branch, for the first column, and for four conditions.
    sample("tiled16", "branch-barrier", BARRIER, 10, ("both", "barrier-skipped")),
    sample(POINTERS, "branch-barrier", BARRIER, 10, ("both", "barrier-skipped")),
    sample(POINTERS, "weaken-comparison", "b_row < k", 1, ("both", "out-of-bounds")),
    sample("tiled16", "weaken-comparison", "a_col < k", 1, ("both", "out-of-bounds")),
    sample("tiled32", "strengthen-comparison", "b_row < k", 1, ("both", "never-read")),
    sample(POINTERS, "drop-operand", "b_row < k &&", 1, ("both", "out-of-bounds")),
    sample("tiled16", "drop-operand", "&& a_col < k", 1, ("both", "out-of-bounds")),
    sample("tiled16", "index-plus-one", "row * k + a_col", 1, ("both", "out-of-bounds")),
    sample(POINTERS, "index-minus-one", "b_row * n + col", 1, ("both", "out-of-bounds")),
    sample("tiled32", "halve-index", "row * n + col", 1, ("both", "write-after-write")),
    sample(POINTERS, "halve-index", "row * n + col", 1, ("both", "write-after-write")),
    // Every element of the tile is still read, by one thread or another, after a barrier.
    sample("tiled16", "transpose-index", "(ty, i)", 1, ("verification", "")),
    sample(POINTERS, "transpose-index", "i * 16 + tx", 1, ("verification", "")),
    sample("tiled16", "transpose-index", "row * k + a_col", 1, ("both", "out-of-bounds")),
    sample("tiled16", "shorten-shared", "TILE", 2, ("both", "out-of-bounds")),
    // What lies behind the array is nobody's, so the result is right: here.
    sample(POINTERS, "shorten-shared", "256", 2, ("check", "out-of-bounds")),
    sample(
        "tiled16",
        "halve-block-index",
        "thread::block_idx_y()",
        1,
        ("both", "write-after-write"),
    ),
    sample(
        POINTERS,
        "halve-block-index",
        "thread::block_idx_x()",
        1,
        ("both", "write-after-write"),
    ),
    // Asynchronous copies. On the CPU device they come at once, whoever waits for them.
    sample(
        "async_copy",
        "remove-wait",
        "copies::wait_group::<{ STAGES as u32 - 2 }>()",
        1,
        ("check", "read-after-write"),
    ),
    sample(
        "async_copy",
        "wait-for-less",
        "{ STAGES as u32 - 2 }",
        1,
        ("check", "read-after-write"),
    ),
    sample("async_copy", "wrong-stage", "free", 1, ("both", "read-after-write")),
    sample(
        "async_copy",
        "index-plus-one",
        "p_b * n + first_col + col",
        1,
        ("both", "out-of-bounds"),
    ),
    // The general product: its stages, of which one kernel has four and one has two,
    sample("gemm", "remove-barrier", BARRIER, 1, ("both", "read-after-write")),
    sample("gemm", "wait-for-less", "0", 1, ("both", "read-after-write")),
    sample("gemm", "wait-for-less", "2", 1, ("both", "read-after-write")),
    sample("gemm", "remove-commit", "copies::commit_group()", 2, ("both", "read-after-write")),
    sample("gemm", "wrong-stage", "free", 2, ("both", "read-after-write")),
    // where its operands lie,
    sample("gemm", "drop-operand", "&& matrix.is_aligned128()", 1, ("both", "misaligned")),
    sample("gemm", "index-plus-one", "first + self.to", 1, ("both", "uninitialised")),
    sample("gemm", "weaken-comparison", "strides.0 == 1", 1, ("both", "out-of-bounds")),
    // and what is done to C at the end.
    sample("gemm", "weaken-comparison", "self.beta != T::Real::ZERO", 1, ("both", "uninitialised")),
    sample("gemm", "halve-index", "self.rows.0 + row * self.rows.1", 1, ("verification", "")),
    sample("gemm", "drop-operand", "erf < -1.0 ||", 1, ("verification", "")),
    // Tensor copies and tensor cores: what orders them,
    sample("gemm_wgmma", "remove-barrier", BARRIER, 3, ("check", "read-after-write")),
    sample("gemm_wgmma", "remove-wait", "wait::<1>()", 1, ("both", "write-after-read")),
    sample("gemm_wgmma", "wait-for-less", "1", 1, ("both", "write-after-read")),
    // of whole stages, and of the last one that is less,
    sample("gemm_wgmma", "remove-commit", "commit()", 2, ("both", "write-after-read")),
    // and which tile a block takes.
    sample(
        "gemm_wgmma",
        "halve-block-index",
        "thread::block_idx_x()",
        1,
        ("both", "write-after-write"),
    ),
];

impl Sample {
    fn has(&self, kernel: &str, mutant: &Mutant) -> bool {
        let operator = mutant.operator.name();
        (self.kernel, self.operator, self.from) == (kernel, operator, &*mutant.from)
    }
}

/// A zero fill's text is long, so it has a line of its own here.
fn is_zero_fill(mutant: &Mutant) -> bool {
    mutant.operator.name() == "drop-zero-fill"
}

#[test]
fn a_sample_of_mistakes_is_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    let wanted = |kernel: &str, mutant: &Mutant| {
        is_zero_fill(mutant) || SAMPLES.iter().any(|sample| sample.has(kernel, mutant))
    };
    let outcomes = mutants::outcomes(workspace(), &folder, None, wanted, |_| Ok(()));
    let outcomes = outcomes.unwrap_or_else(|error| panic!("{error:#}"));

    for sample in &SAMPLES {
        let those = outcomes.iter().filter(|o| sample.has(&o.kernel, &o.mutant));
        let those = those.collect::<Vec<_>>();
        let Sample { kernel, operator, from, count, .. } = sample;
        assert_eq!(those.len(), *count, "{kernel}, {operator} of `{from}`");
        for outcome in those {
            assert_found(outcome, sample.caught_by, sample.finding);
        }
    }
    let zero_fills = outcomes.iter().filter(|outcome| is_zero_fill(&outcome.mutant));
    let zero_fills = zero_fills.map(|outcome| assert_found(outcome, "both", "uninitialised"));
    assert!(zero_fills.count() >= 6, "two in each of three kernels");
}

fn assert_found(outcome: &Outcome, by: &str, finding: &str) {
    let End::Ran { check, .. } = &outcome.end else { panic!("{}", outcome.text()) };
    assert_eq!(outcome.caught_by(), Some(by), "{}", outcome.text());
    let found = match finding {
        "" => check.is_empty(),
        kind => check.iter().any(|found| found == kind),
    };
    assert!(found, "{}: {check:?}, without {finding}", outcome.id);
}
