//! A checked launch reads for the hardware only what the kernel may read: operands of whole boxes, arrays of other
//! blocks, swizzled boxes.

use simt::{
    Kernel, LaunchConfig,
    check::{self, CheckableParams, Kind, Options, Report},
    checked::{Bf16, Out, TensorMapMut},
    device::BoxShape,
};

mod kernels {
    use simt::checked::*;

    /// 16 columns of an MN-major B use a box of 64 columns, which ends after the array.
    #[kernel(block = (128), dynamic_shared = 232448, arch = 90)]
    pub fn multiplies_half_a_box(mut y: Out<f32>) {
        let shared = dynamic_shared![Bf16];
        let a = shared.operand::<warpgroup::KMajor<64>>(0);
        let b = shared.operand::<warpgroup::MnMajor<64>>(225 * 1024 / 2);
        let mut sums = warpgroup::Accumulators::<16>::zeroed();
        sums.multiply(a, b);
        warpgroup::commit();
        sums.wait::<0>().for_each(|_, _, value| y[0] = value);
    }

    /// The other block's array at that place is shorter.
    #[kernel(block = (32), cluster = (2), arch = 90)]
    pub fn reads_a_longer_array(mut y: Out<f32>) {
        if cluster::block_rank() == 1 {
            let _small = shared![f32; 4];
            cluster::sync();
        } else {
            let big = shared![f32; 4096];
            cluster::sync();
            y[thread::thread_idx_x() as usize] = big.remote(1).load128::<4>(4092)[0];
        }
        cluster::sync();
    }

    /// A tile of 8 x 16 elements, numbered from 0. Group t % 4 of row t / 4 is at its swizzled place.
    #[kernel(block = (32), dynamic_shared = 512, arch = 90)]
    pub fn stores_a_box(map: TensorMapMut<f32>) {
        let mut tile = dynamic_shared![f32];
        let t = thread::thread_idx_x() as usize;
        let at = t / 4 * 16 + ((t % 4) ^ (t / 8)) * 4;
        tile.store128(at, std::array::from_fn::<f32, 4, _>(|i| (t * 4 + i) as f32));
        fence_proxy_async();
        thread::sync_threads();
        if t == 0 {
            tile.store_box(0, &map.boxes::<8, 16, 64>(), (0, 0, 0));
            bulk::commit_group();
            bulk::wait_group::<0>();
        }
    }
}

fn run<P: CheckableParams>(kernel: &Kernel<P>, config: LaunchConfig, params: P) -> Report {
    // SAFETY: the tests' arguments outlive the launch, and nobody else uses them.
    unsafe { check::launch(kernel, &config, params, &Options::default()) }.expect("a report")
}

/// The detail of the only finding of a kernel that panics.
fn panics(report: &Report) -> String {
    let found = report.findings.iter().find(|finding| finding.kind == Kind::Panic);
    found.unwrap_or_else(|| panic!("no panic: {report}")).to_string()
}

#[test]
fn an_operand_takes_whole_boxes() {
    let mut y = [0f32];
    let config = LaunchConfig { dynamic_shared: 232448, ..LaunchConfig::new([1; 3], [128, 1, 1]) };
    // SAFETY: as in `run`.
    let params = (unsafe { Out::new(y.as_mut_ptr(), 1) },);
    let found = panics(&run(&kernels::multiplies_half_a_box, config, params));
    let expected = format!(
        "an operand of {} bytes from byte 230400 of shared memory on is outside: its array ends at 232448",
        64 * 64 * size_of::<Bf16>()
    );
    assert!(found.contains(&expected), "{found}");
}

#[test]
fn an_array_of_another_block_may_be_shorter() {
    let mut y = [0f32; 32];
    let config = LaunchConfig { cluster: [2, 1, 1], ..LaunchConfig::new([2, 1, 1], [32, 1, 1]) };
    // SAFETY: as in `run`.
    let params = (unsafe { Out::new(y.as_mut_ptr(), y.len()) },);
    let report = run(&kernels::reads_a_longer_array, config, params);
    let said = report.to_string();
    let expected =
        "bytes 16368 to 16384 of a shared array that has 16 in the block of rank 1 of the cluster";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_swizzled_box_is_stored_from_where_it_lay() {
    #[repr(align(16))]
    struct Aligned([f32; 128]);
    // Wherever the checker copies what it has read.
    for round in 0..20 {
        let _elsewhere = vec![0u8; 37 * round];
        let mut matrix = Aligned([-1.0; 128]);
        let shape = BoxShape { rows: 8, cols: 16, swizzle: 64 };
        // SAFETY: the matrix has these sizes, and as in `run`.
        let map = unsafe { TensorMapMut::new(matrix.0.as_mut_ptr(), [1, 8, 16], [128, 16], shape) };
        let config = LaunchConfig { dynamic_shared: 512, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
        let report = run(&kernels::stores_a_box, config, (map.unwrap(),));
        assert!(report.is_clean(), "{report}");
        assert!(matrix.0.iter().enumerate().all(|(i, value)| *value == i as f32), "{:?}", matrix.0);
    }
}
