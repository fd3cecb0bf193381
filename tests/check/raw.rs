//! Kernels with raw pointers: dereferences are checked, and everything else compiles unchanged.

use simt::{
    LaunchConfig,
    check::{self, Kind, Memory, Report},
    device::*,
};

/// Uses of pointers and references that Rust allows. Each thread has its own element.
#[kernel(block = (32))]
pub unsafe fn all_sorts_of_places(n: u32, x: *const f32, y: *mut [f32; 4]) {
    struct Own<'a>(&'a [f32]);
    impl std::ops::Deref for Own<'_> {
        type Target = [f32];
        fn deref(&self) -> &[f32] {
            self.0
        }
    }
    let i = thread::thread_idx_x() as usize;
    if i >= n as usize {
        return;
    }
    // SAFETY: below n, in both buffers.
    unsafe {
        let mut sum = 0.0;
        let reference = &mut sum;
        *reference += *x.add(i);
        *reference += 1.0;
        let locals = [*x.add(i), 2.0, 3.0, 4.0];
        let (slice, own) = (&locals[..], Own(&locals));
        let pointer = locals.as_ptr();
        let count = match *slice {
            [] => 0.0,
            _ => (*slice).len() as f32,
        };
        (*y.add(i))[0] = sum;
        (*y.add(i))[1] = *pointer.add(1) + count + (*own)[0] - *x.add(i);
        let last = &mut (*y.add(i))[2];
        *last = 7.0;
        *last += 1.0;
        (*y.add(i))[3] = 0.5;
        (*y.add(i))[3] += 0.5;
    }
}

/// Writes one element past the end, and reads far away.
#[kernel(block = (32))]
pub unsafe fn outside(n: u32, x: *const f32, y: *mut f32) {
    let i = thread::thread_idx_x() as usize;
    // SAFETY: wrong on purpose. A checked launch does not carry it out.
    unsafe { *y.add(i + 1) = *x.add(i + n as usize) };
}

fn run(memory: bool) -> (Report, Vec<[f32; 4]>) {
    let x: Vec<f32> = (0..20).map(|i| i as f32).collect();
    let mut y = vec![[f32::NAN; 4]; 20];
    let mut options = check::Options::default();
    if memory {
        options.memory = vec![
            Memory::new(x.as_ptr(), x.len(), true),
            Memory::new(y.as_mut_ptr().cast::<f32>(), 4 * y.len(), false),
        ];
    }
    let config = LaunchConfig::new([1, 1, 1], [32, 1, 1]);
    // SAFETY: the vectors outlive the launch, and the kernel stays inside them.
    let report = unsafe {
        let params = (20, x.as_ptr(), y.as_mut_ptr());
        check::launch(&all_sorts_of_places, &config, params, &options)
    };
    (report.expect("not cancelled"), y)
}

#[test]
fn all_that_rust_allows_is_clean_and_right() {
    let (report, y) = run(true);
    assert!(report.is_clean(), "{report}");
    for (i, y) in y.iter().enumerate() {
        assert_eq!(*y, [i as f32 + 1.0, 6.0, 8.0, 1.0]);
    }
}

#[test]
fn a_pointer_of_which_nothing_is_known_is_refused() {
    let (report, _) = run(false);
    let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
    assert_eq!(finding.kind, Kind::Launch);
    assert!(finding.detail.starts_with("x is a raw pointer: say in"), "{}", finding.detail);
}

#[test]
fn nothing_outside_is_touched() {
    let x = [1.0f32; 32];
    // The last element is outside the declared buffer.
    let mut y = vec![5.0f32; 33];
    let mut options = check::Options::default();
    options.memory =
        vec![Memory::new(x.as_ptr(), 32, true), Memory::new(y.as_mut_ptr(), 32, false)];
    let config = LaunchConfig::new([1, 1, 1], [32, 1, 1]);
    // SAFETY: accesses outside are not carried out.
    let report =
        unsafe { check::launch(&outside, &config, (32, x.as_ptr(), y.as_mut_ptr()), &options) };
    let report = report.expect("not cancelled");
    let count =
        |kind| -> u64 { report.findings.iter().filter(|f| f.kind == kind).map(|f| f.count).sum() };
    assert_eq!(count(Kind::OutOfBounds), 32 + 1, "32 reads and a write: {report}");
    assert_eq!(y[32], 5.0);
}

/// Reads memory of no buffer and no variable of the thread: above its stack of 256 KiB.
#[kernel(block = (32))]
pub unsafe fn above(y: *mut f32) {
    let i = thread::thread_idx_x() as usize;
    let local = [0.0f32; 1];
    // SAFETY: wrong on purpose. A checked launch does not carry it out.
    unsafe { *y.add(i) = *local.as_ptr().wrapping_add(252 * 1024 / 4) };
}

#[test]
fn what_lies_above_the_stack_is_outside() {
    let mut y = [5.0f32; 32];
    let mut options = check::Options::default();
    options.memory = vec![Memory::new(y.as_mut_ptr(), 32, false)];
    let config = LaunchConfig::new([1, 1, 1], [32, 1, 1]);
    // SAFETY: accesses outside are not carried out.
    let report = unsafe { check::launch(&above, &config, (y.as_mut_ptr(),), &options) };
    let report = report.expect("not cancelled");
    let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
    assert_eq!((finding.kind, finding.count), (Kind::OutOfBounds, 32), "{report}");
    // A read gives NaN.
    assert!(y.iter().all(|y| y.is_nan()), "{y:?}");
}
