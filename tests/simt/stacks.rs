//! A kernel thread that overflows its stack gives an error that names it, and the next launch
//! works. Only on Linux.

use std::hint::black_box;

use simt::{
    check::{self, Kind},
    cpu::FaultKind,
};

use super::*;

/// Bytes of a stack if a kernel declares nothing.
const USUAL: usize = 256 * 1024;

/// A recursion with an array of numbers at each depth.
#[inline(never)]
fn sum<const N: usize>(depth: u32) -> u32 {
    let numbers = black_box([depth; N]);
    match depth {
        0 => numbers[0],
        _ => sum::<N>(depth - 1) + black_box(&numbers)[N / 2],
    }
}

macro_rules! kernels {
    ($module:ident: $device:ident) => {
        #[allow(dead_code, reason = "some run fast alone")]
        mod $module {
            use simt::$device::*;

            /// Thread 5 of block 2 needs more stack than there is.
            #[kernel(block = (32), barriers = 1)]
            pub fn too_deep(depth: u32, mut c: Out<u32>) {
                thread::sync_threads();
                let (block, lane) = (thread::block_idx_x(), thread::thread_idx_x());
                let is_the_one = block == 2 && lane == 5;
                c[(block * 32 + lane) as usize] =
                    super::sum::<512>(if is_the_one { depth } else { 0 });
            }

            /// A single frame of 1 MiB, which ends far beyond the guard page.
            #[kernel(block = (32))]
            pub fn too_wide(depth: u32, mut c: Out<u32>) {
                let at = (thread::block_idx_x() * 32 + thread::thread_idx_x()) as usize;
                c[at] = super::sum::<{ 1 << 18 }>(depth);
            }

            /// The same, with a declared stack size.
            #[kernel(block = (32), stack = 8 << 20)]
            pub fn wide(depth: u32, mut c: Out<u32>) {
                let at = (thread::block_idx_x() * 32 + thread::thread_idx_x()) as usize;
                c[at] = super::sum::<{ 1 << 18 }>(depth);
            }
        }
    };
}

kernels! { fast: device }
kernels! { watched: checked }

const GRID: [u32; 3] = [4, 1, 1];
const BLOCK: [u32; 3] = [32, 1, 1];

fn run(kernel: &Kernel<(u32, Out<u32>)>, depth: u32) -> Result<Vec<u32>, Stop> {
    let mut c = vec![7; 128];
    launch(kernel, GRID, BLOCK, (depth, write(&mut c))).map(|()| c)
}

#[test]
fn a_stack_that_is_too_small_is_an_error() {
    for _ in 0..3 {
        let Stop::Fault(fault) = run(&fast::too_deep, 300).unwrap_err() else { panic!("a fault") };
        assert_eq!((fault.block, fault.thread), ([2, 0, 0], [5, 0, 0]));
        assert_eq!(fault.kind, FaultKind::StackOverflow { bytes: USUAL });
        let text = fault.to_string();
        assert!(text.contains("262144 bytes") && text.contains("kernel(stack = ..)"), "{text}");
        assert_eq!(run(&fast::too_deep, 10).unwrap()[69], (0..=10).sum::<u32>(), "the next launch");
        let Stop::Fault(fault) = run(&fast::too_wide, 0).unwrap_err() else { panic!("a fault") };
        assert_eq!((fault.block, fault.kind), ([0; 3], FaultKind::StackOverflow { bytes: USUAL }));
    }
}

#[test]
fn a_kernel_that_declares_its_stack_has_it() {
    assert_eq!(run(&fast::wide, 0).unwrap(), [0; 128]);
    let Stop::Fault(fault) = run(&fast::wide, 9).unwrap_err() else { panic!("a fault") };
    assert_eq!(fault.kind, FaultKind::StackOverflow { bytes: 8 << 20 });
    assert_eq!(run(&fast::too_deep, 10).unwrap()[69], 55);
}

#[test]
fn a_checked_launch_reports_it_with_what_it_found() {
    let mut c = vec![7; 128];
    let check = |kernel, depth, c: &mut Vec<u32>| {
        let config = LaunchConfig::new(GRID, BLOCK);
        // SAFETY: the vector outlives the launch, and nobody else uses it.
        unsafe {
            let c = simt::checked::Out::new(c.as_mut_ptr(), c.len());
            check::launch(kernel, &config, (depth, c), &check::Options::default()).unwrap()
        }
    };
    let report = check(&watched::too_deep, 300, &mut c);
    let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
    assert_eq!((finding.kind, finding.kind.name()), (Kind::StackOverflow, "stack-overflow"));
    assert_eq!((finding.examples[0].block, finding.examples[0].thread), ([2, 0, 0], [5, 0, 0]));
    assert!(check(&watched::wide, 0, &mut c).is_clean());
}

/// A segmentation fault outside a kernel ends the process, as without a launch.
#[test]
fn other_faults_are_left_alone() {
    run(&fast::too_deep, 0).unwrap();
    // SAFETY: the child only reads unmapped memory, and ends by that.
    let status = unsafe {
        let child = libc::fork();
        assert!(child >= 0, "a process");
        if child == 0 {
            black_box(black_box(8 as *const u8).read_volatile());
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        status
    };
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status:#x}");
}
