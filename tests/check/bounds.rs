//! A checked launch reads for the hardware only what the kernel may read: operands of whole boxes,
//! arrays of other blocks, swizzled boxes. And gaps between the elements of a view are outside.

use simt::{
    Kernel, LaunchConfig,
    check::{self, CheckableParams, Kind, Memory, Options, Report},
    checked::{Bf16, In, Out, TensorMap, TensorMapMut},
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

    /// Each block copies the elements from `first` on, `wide`: eight neighbours at once.
    #[kernel(block = (32), arch = 90)]
    pub fn copies_elements(first: u32, wide: u32, x: In<Bf16>, mut y: Out<Bf16>) {
        let at = first as usize + thread::thread_idx_x() as usize;
        if thread::block_idx_x() < 3 && wide > 0 {
            let eight: [Bf16; 8] = x.load128(first as usize);
            y[at] = eight[0];
        } else if at < 16 {
            y[at] = x[at];
        }
    }

    /// Two rows of four elements, of a map that skips the first column.
    #[kernel(block = (32), dynamic_shared = 256, barriers = 1, shared = 16, arch = 90)]
    pub fn loads_a_box(map: TensorMap<f32>, mut y: Out<f32>) {
        let mut tile = dynamic_shared![f32];
        let ring = pipeline![1];
        if thread::thread_idx_x() == 0 {
            ring.init(1);
        }
        thread::sync_threads();
        let t = thread::thread_idx_x() as usize;
        let full = ring.producer().full();
        if t == 0 {
            ring.producer().announce(32);
            tile.load_box(0, &map.boxes::<2, 4, 0>(), (0, 0, 0), full);
        }
        ring.consumer().wait();
        if t < 8 {
            y[t] = tile[t];
        }
    }

    /// A tile of 8 x 16 elements, numbered from 0. Group t % 4 of row t / 4 is at its swizzled
    /// place.
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

/// The findings of `copies_elements` with gaps at these elements of `x` or `y`.
fn with_gaps(first: u32, wide: bool, gaps: [&[usize]; 2]) -> Report {
    #[repr(align(16))]
    struct Aligned([Bf16; 16]);
    let (x, mut y) = (Aligned([Bf16::from_bits(0); 16]), Aligned([Bf16::from_bits(0); 16]));
    let of = |elements: &[Bf16; 16], gaps: &[usize]| {
        gaps.iter().map(|&at| Memory::new(&elements[at], 1, true)).collect::<Vec<_>>()
    };
    let mut options = Options::default();
    options.gaps = [of(&x.0, gaps[0]), of(&y.0, gaps[1])].concat();
    options.complete = true;
    options.workers = Some(1);
    let config = LaunchConfig::new([1; 3], [32, 1, 1]);
    // SAFETY: as in `run`.
    unsafe {
        let params =
            (first, u32::from(wide), In::new(x.0.as_ptr(), 16), Out::new(y.0.as_mut_ptr(), 16));
        check::launch(&kernels::copies_elements, &config, params, &options).expect("a report")
    }
}

#[test]
fn an_access_to_a_gap_is_out_of_bounds() {
    assert!(with_gaps(0, false, [&[]; 2]).is_clean());
    // Elements before the first one that is copied are in gaps, so nobody has to read or write
    // them.
    let before: &[usize] = &[0, 1, 2];
    let clean = with_gaps(3, false, [before; 2]);
    assert!(clean.is_clean(), "{clean}");
    for (gaps, memory) in [([&[5][..], &[]], "buffer x"), ([&[], &[5]], "buffer y")] {
        let report = with_gaps(0, false, gaps);
        let [finding] = &report.findings[..] else { panic!("{report}") };
        assert_eq!((finding.kind, finding.memory.as_deref()), (Kind::OutOfBounds, Some(memory)));
        assert_eq!(finding.detail, "between the elements of the view");
        assert_eq!(finding.examples[0].element, Some(5), "{report}");
    }
    // A wide access that has one of eight in a gap.
    let report = with_gaps(8, true, [&[15], &[]]);
    let is_of_x = |memory: &str| memory == "buffer x";
    let found = report.findings.iter().find(|finding| {
        finding.kind == Kind::OutOfBounds && finding.memory.as_deref().is_some_and(is_of_x)
    });
    assert_eq!(found.expect("a finding").examples[0].element, Some(15), "{report}");
}

#[test]
fn what_a_map_skips_is_not_read() {
    #[repr(align(16))]
    struct Aligned([f32; 8]);
    let (matrix, mut y) = (Aligned(std::array::from_fn(|i| i as f32)), [0f32; 8]);
    let shape = BoxShape { rows: 2, cols: 4, swizzle: 0 };
    let mut options = Options::default();
    options.gaps = [0, 4].map(|at| Memory::new(&matrix.0[at], 1, true)).to_vec();
    for (skipped, clean) in [(1, true), (0, false)] {
        let config = LaunchConfig { dynamic_shared: 256, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
        // SAFETY: as in `run`.
        let report = unsafe {
            let map = TensorMap::new(matrix.0.as_ptr(), [1, 2, 4], [8, 4], shape);
            let params = (map.unwrap().skipping(skipped), Out::new(y.as_mut_ptr(), y.len()));
            check::launch(&kernels::loads_a_box, &config, params, &options).expect("a report")
        };
        assert_eq!(report.is_clean(), clean, "{report}");
        assert_eq!(y[1..4], [1.0, 2.0, 3.0]);
        assert!(if clean { y[4].is_nan() } else { y[4] == 4.0 }, "{y:?}");
    }
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
