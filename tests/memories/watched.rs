//! Variables under `check`.

use gpu::checked::lessons::{memories, pitched};
use simt::{
    Kernel, LaunchConfig,
    check::{self, CheckableParams, Finding, Kind, Memory, Options},
    checked::{In, Out},
    symbol,
};

use super::{line, variables};

/// The findings of a checked launch.
fn findings<P: CheckableParams>(
    kernel: &Kernel<P>,
    config: LaunchConfig,
    params: P,
    memory: Vec<Memory>,
) -> Vec<Finding> {
    let mut options = Options::default();
    options.memory = memory;
    // With one worker a race of the kernel is no race of this process.
    options.workers = Some(1);
    // SAFETY: the buffers outlive this call, and kernels here access them through views.
    unsafe { check::launch(kernel, &config, params, &options) }.unwrap().findings
}

#[test]
fn the_kernels_of_the_memories_are_clean() {
    let _alone = variables();
    const N: usize = 300;
    let (blocks, n) = (3, N as u32);
    let config = line(blocks, memories::BLOCK);
    let (x, mut y) = (vec![0.5f32; N], vec![0.0f32; N]);
    let mut words = vec![0u32; N];
    let found =
        |name: &str, findings: Vec<Finding>| assert!(findings.is_empty(), "{name}: {findings:#?}");
    // SAFETY: the vectors outlive the launches.
    unsafe {
        let out = |words: &mut Vec<u32>| Out::uninit(words.as_mut_ptr(), N);
        let params = (n, 2, out(&mut words));
        found("registers", findings(&memories::register_counter, config, params, vec![]));
        let params = (blocks, out(&mut words));
        found("shared", findings(&memories::shared_counter, config, params, vec![]));

        symbol::write(&memories::THREADS_SO_FAR, &[5]);
        let count = vec![Memory::symbol(&memories::THREADS_SO_FAR)];
        let params = (n, out(&mut words));
        found("global", findings(&memories::global_counter, config, params, count));
        let mut total = [0];
        symbol::read(&memories::THREADS_SO_FAR, &mut total);
        assert_eq!(total, [5 + n]);

        symbol::write(&memories::COEFFICIENTS, &[1.0; memories::COEFFICIENTS_LEN]);
        let params = (n, In::new(x.as_ptr(), N), Out::uninit(y.as_mut_ptr(), N));
        found("constant", findings(&memories::constant_polynomial, config, params, vec![]));
        // 1 + 1/2 + 1/4 ... eight terms.
        assert!(y.iter().all(|&y| y == 2.0 - 1.0 / 128.0));

        memories::NUMBERS.point_to(y.as_mut_ptr(), N);
        let buffer = vec![Memory::new(y.as_ptr(), N, true)];
        found("pointer", findings(&memories::pointed_negation, config, (n,), buffer));
        assert!(y.iter().all(|&y| y < 0.0));
    }
}

#[test]
fn the_kernels_on_pitched_arrays_are_clean() {
    const WIDTH: usize = 33;
    const HEIGHT: usize = 5;
    const DEPTH: usize = 3;
    /// Elements from one row to the next.
    const PITCH: usize = 48;
    let [width, height, depth] = [WIDTH, HEIGHT, DEPTH].map(|size| size as u32);
    let pitch = (4 * PITCH) as u64;
    let mut data = vec![f32::NAN; PITCH * HEIGHT * DEPTH];
    for row in data.chunks_mut(PITCH) {
        row[..WIDTH].fill(1.0);
    }
    let mut sums = vec![0.0f32; HEIGHT];
    // SAFETY: the vectors outlive the launches.
    let found = unsafe {
        let out = Out::uninit(sums.as_mut_ptr(), HEIGHT);
        let params = (width, height, pitch, In::new(data.as_ptr(), data.len()), out);
        let mut found = findings(&pitched::row_sums, line(1, pitched::ROWS), params, vec![]);
        let view = Out::new(data.as_mut_ptr(), data.len());
        let slice_pitch = pitch * HEIGHT as u64;
        let params = (width, height, depth, pitch, slice_pitch, 2.0, view);
        let [x, y] = pitched::BOX.map(|threads| threads as u32);
        let config = LaunchConfig::new([width.div_ceil(x), height.div_ceil(y), depth], [x, y, 1]);
        found.extend(findings(&pitched::scale_box, config, params, vec![]));
        found
    };
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(sums, [WIDTH as f32; HEIGHT]);
    for row in data.chunks(PITCH) {
        assert!(row[..WIDTH].iter().all(|&x| x == 2.0) && row[WIDTH..].iter().all(|x| x.is_nan()));
    }
}

/// Kernels that are wrong in one way each.
mod wrong {
    use simt::checked::*;

    global! {
        pub static TOTAL: [u32; 2];
    }

    constant! {
        pub static FACTORS: [f32; 4];
    }

    #[kernel]
    pub fn lost_updates(n: u32) {
        if thread::thread_idx_x() < n {
            TOTAL.store(1, TOTAL.load(1) + 1);
        }
    }

    #[kernel]
    pub fn past_the_end(i: u32, mut out: Out<f32>) {
        let total = TOTAL.load(i as usize) as f32;
        out[0] = total + FACTORS[i as usize];
    }
}

#[test]
fn an_addition_that_is_not_atomic_is_a_race() {
    let memory = vec![Memory::symbol(&wrong::TOTAL)];
    let findings = findings(&wrong::lost_updates, line(1, 64), (64,), memory);
    assert!(!findings.is_empty());
    for finding in &findings {
        let races = [Kind::ReadAfterWrite, Kind::WriteAfterRead, Kind::WriteAfterWrite];
        assert!(races.contains(&finding.kind), "{finding}");
        assert!(finding.memory.as_deref().unwrap().contains("TOTAL"), "{finding}");
        assert!(finding.place.as_ref().unwrap().file.ends_with("watched.rs"), "{finding}");
    }
}

#[test]
fn an_index_past_the_end_is_found() {
    let mut out = [0.0f32];
    let memory = || vec![Memory::symbol(&wrong::TOTAL)];
    let mut found = |i: u32| {
        // SAFETY: the array outlives the launch.
        let view = unsafe { Out::uninit(out.as_mut_ptr(), 1) };
        findings(&wrong::past_the_end, line(1, 1), (i, view), memory())
    };
    assert!(found(1).is_empty());
    // Both arrays end at or before 4. Only the shorter one ends before 3.
    for (i, expected) in [(3, 1), (4, 2)] {
        let findings = found(i);
        assert_eq!(findings.len(), expected, "{findings:#?}");
        assert!(findings.iter().all(|finding| finding.kind == Kind::OutOfBounds), "{findings:#?}");
    }
}

/// A variable is no parameter, so the launch must be told about it.
#[test]
fn a_variable_that_is_not_named_is_an_error() {
    let findings = findings(&wrong::lost_updates, line(1, 64), (64,), vec![]);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let (kind, text) = (findings[0].kind, findings[0].to_string());
    assert_eq!(kind, Kind::Panic, "{text}");
    assert!(text.contains("the variable TOTAL") && text.contains("Options::memory"), "{text}");
}
