//! The bytes of shared memory that a copy, a product or another block accesses, and no others:
//! boxes that do not fill their last line, operands that do not fill their boxes, arrays that start
//! at different places in the blocks of a cluster.

use simt::{
    Bf16, Kernel, LaunchConfig,
    check::{self, CheckableParams, Kind, Options, Report},
    checked::*,
    device::BoxShape,
};

use super::findings::orders;

const LEN: usize = 64;

#[repr(align(128))]
struct Aligned([f32; LEN]);

fn numbers() -> Aligned {
    Aligned(std::array::from_fn(|i| i as f32))
}

/// Runs a cluster in each order. `params`: of 64 elements, which are zeros at first. `look` checks
/// them and the report.
fn each<P: CheckableParams>(
    kernel: &Kernel<P>,
    params: impl Fn(*mut f32) -> P,
    look: impl Fn(&Report, &[f32; LEN]),
) {
    for order in orders() {
        let mut y = Aligned([0.0; LEN]);
        let mut options = Options::default();
        options.order = order;
        let declaration = &kernel.declaration;
        let config = LaunchConfig {
            dynamic_shared: declaration.dynamic_shared.unwrap_or(0),
            ..LaunchConfig::new(
                declaration.cluster.unwrap_or([1; 3]),
                declaration.block.expect("it declares that"),
            )
        };
        // SAFETY: the elements outlive the launch, and nobody else uses them.
        let report = unsafe { check::launch(kernel, &config, params(y.0.as_mut_ptr()), &options) };
        look(&report.expect("a report"), &y.0);
    }
}

/// The order decides which of the two accesses is first.
fn has_a_race(report: &Report) {
    let is_race = |kind| matches!(kind, Kind::ReadAfterWrite | Kind::WriteAfterRead);
    assert!(report.findings.iter().any(|finding| is_race(finding.kind)), "{report}");
}

/// A row of sixteen f32, swizzled over 128 bytes.
const ROW: BoxShape = BoxShape { rows: 1, cols: 16, swizzle: 128 };

/// In the fifth line the swizzle moves the row to the second half. The first half is not written by
/// the copy.
#[kernel(block = (32), dynamic_shared = 1024)]
fn half_a_line(waits: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], x.boxes::<1, 16, 128>());
    let full = mbarriers![1];
    let t = thread::thread_idx_x() as usize;
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
        full.at(0).arrive_expect(64);
        tile.load_box(128, &boxes, (0, 0, 0), full.at(0));
    }
    thread::sync_threads();
    if t < 16 {
        tile[128 + t] = 1.0;
    }
    if waits == 1 {
        full.at(0).wait(0);
    }
    if t < 16 {
        y[t] = tile[128 + 16 + t] + tile[128 + t];
    }
}

#[test]
fn a_copy_has_to_do_with_its_own_half_of_a_line() {
    let x = numbers();
    for waits in [1, 0] {
        let params = |y: *mut f32| {
            // SAFETY: the elements outlive the launch, and nobody else uses them.
            unsafe {
                let x = TensorMap::new(x.0.as_ptr(), [1, 4, 16], [0, 16], ROW).expect("a map");
                (waits, x, Out::new(y, LEN))
            }
        };
        each(&half_a_line, params, |report, y| match waits {
            1 => {
                assert!(report.is_clean(), "{report}");
                assert!((0..16).all(|i| y[i] == i as f32 + 1.0), "{y:?}");
            }
            _ => has_a_race(report),
        });
    }
}

/// The other half of the line is not written, and a copy to global memory does not read it.
#[kernel(block = (32), dynamic_shared = 1024)]
fn half_a_line_stored(half: u32, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<1, 16, 128>());
    let t = thread::thread_idx_x() as usize;
    if t < 16 {
        tile[128 + half as usize * 16 + t] = t as f32;
    }
    fence_proxy_async();
    thread::sync_threads();
    if t == 0 {
        tile.store_box(128, &boxes, (0, 0, 0));
        bulk::commit_group();
        bulk::wait_group::<0>();
    }
}

#[test]
fn a_copy_to_global_memory_reads_its_own_half_of_a_line() {
    for (half, kind) in [(1, None), (0, Some(Kind::Uninitialised))] {
        let params = |y| {
            // SAFETY: as above.
            (half, unsafe { TensorMapMut::new(y, [1, 4, 16], [0, 16], ROW) }.expect("a map"))
        };
        each(&half_a_line_stored, params, |report, y| {
            let kinds = report.findings.iter().map(|finding| finding.kind);
            assert!(kinds.eq(kind), "{report}");
            assert!(kind.is_some() || (0..16).all(|i| y[i] == i as f32), "{y:?}");
        });
    }
}

/// B has 64 columns in a box, of which sixteen are multiplied. Meanwhile the kernel writes other
/// columns, or the same ones.
#[kernel(block = (128), dynamic_shared = 16_384)]
fn sixteen_of_64_columns(chunk: u32, mut y: Out<f32>) {
    let mut tile = dynamic_shared![Bf16];
    let t = thread::thread_idx_x() as usize;
    for i in 0..32 {
        tile[i * 128 + t] = Bf16::from_f32(1.0);
    }
    // Eight columns of a k-step.
    let place = |chunk: usize| 4096 + t / 2 * 64 + ((chunk + t % 2) ^ (t / 2 % 8)) * 8;
    for i in 0..8 {
        tile[place(0) + i] = Bf16::from_f32(2.0);
    }
    fence_proxy_async();
    thread::sync_threads();
    let mut sums = warpgroup::Accumulators::<16>::zeroed();
    let a = tile.operand::<warpgroup::KMajor<64>>(0);
    let b = tile.operand::<warpgroup::MnMajor<64>>(4096);
    sums.multiply_add(a, b);
    warpgroup::commit();
    for i in 0..8 {
        tile[place(chunk as usize) + i] = Bf16::from_f32(2.0);
    }
    sums.wait::<0>().for_each_pair(|row, col, sums| {
        if row == 0 {
            y[col as usize] = sums[0];
            y[col as usize + 1] = sums[1];
        }
    });
}

#[test]
fn a_product_reads_the_columns_that_it_multiplies() {
    for chunk in [2, 6, 0] {
        // SAFETY: as above.
        let params = |y| (chunk, unsafe { Out::new(y, LEN) });
        each(&sixteen_of_64_columns, params, |report, y| {
            match chunk {
                0 => has_a_race(report),
                _ => assert!(report.is_clean(), "{report}"),
            }
            assert_eq!(y[..16], [128.0; 16]);
        });
    }
}

/// One block has two arrays. The other block has one.
#[kernel(block = (32), cluster = (2))]
fn two_arrays_and_one(writes_all: u32, mut y: Out<f32>) {
    let t = thread::thread_idx_x() as usize;
    if cluster::block_rank() == 0 {
        let (_before, tile) = (shared![f32; 32], shared![f32; 32]);
        cluster::sync();
        let four: [f32; 4] = tile.remote(1).load128(t / 4 * 4);
        y[t] = four[t % 4];
        cluster::sync();
    } else {
        let mut both = shared![f32; 64];
        both[32 + t] = t as f32;
        cluster::sync();
        if writes_all == 1 {
            both[t] = 0.0;
        }
        cluster::sync();
    }
}

#[test]
fn what_another_block_has_there_may_begin_elsewhere() {
    for writes_all in [0, 1] {
        // SAFETY: as above.
        let params = |y| (writes_all, unsafe { Out::new(y, LEN) });
        each(&two_arrays_and_one, params, |report, y| {
            assert!(report.is_clean(), "{report}");
            assert!((0..32).all(|i| y[i] == i as f32), "{y:?}");
        });
    }
}

/// A block is sent a box before it declares the memory for it. Then it declares an array of its own
/// after that memory.
#[kernel(block = (32), cluster = (2), dynamic_shared = 512)]
fn sent_to_both(x: TensorMap<f32>, mut y: Out<f32>) {
    let (full, boxes) = (mbarriers![1], x.boxes::<1, 16, 0>());
    let (t, rank) = (thread::thread_idx_x() as usize, cluster::block_rank());
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
        full.at(0).arrive_expect(64);
    }
    cluster::sync();
    if rank == 0 {
        let mut tile = dynamic_shared![f32];
        if t == 0 {
            tile.load_box_multicast(32, &boxes, (0, 1, 0), full.at(0), 0b11);
        }
    } else {
        let mut own = shared![f32; 32];
        own[t] = 1.0;
    }
    full.at(0).wait(0);
    let tile = dynamic_shared![f32];
    if t < 16 {
        y[rank as usize * 16 + t] = tile[32 + t];
    }
    cluster::sync();
}

#[test]
fn a_box_comes_to_the_same_place_of_each_block() {
    let x = numbers();
    let params = |y: *mut f32| {
        let shape = BoxShape { swizzle: 0, ..ROW };
        // SAFETY: as above.
        unsafe {
            let x = TensorMap::new(x.0.as_ptr(), [1, 4, 16], [0, 16], shape).expect("a map");
            (x, Out::new(y, LEN))
        }
    };
    each(&sent_to_both, params, |report, y| {
        assert!(report.is_clean(), "{report}");
        assert!((0..32).all(|i| y[i] == (16 + i % 16) as f32), "{y:?}");
    });
}
