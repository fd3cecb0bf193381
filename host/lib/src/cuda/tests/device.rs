//! The layer on a real device: what only NVIDIA's driver and a GPU can answer. Without a device
//! each of these says that it was skipped; with `REQUIRE_GPU=1` that is a failure.

use super::{
    boxes::{SHAPE, bind, words},
    *,
};
use crate::product::{find, multiply};
use fake::on_machine;
use simt::device::TensorDescription;

/// A kernel with the interface of the tests' own: `fill(address, value, count)`.
const FILL: &str = "
.version 7.1
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry fill(.param .u64 address, .param .u32 value, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %value, %count, %i, %block, %thread;
    .reg .b64 %address, %offset;
    ld.param.u64 %address, [address];
    ld.param.u32 %value, [value];
    ld.param.u32 %count, [count];
    mov.u32 %i, %ctaid.x;
    mov.u32 %block, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %i, %i, %block, %thread;
    setp.ge.u32 %p, %i, %count;
    @%p ret;
    cvta.to.global.u64 %address, %address;
    mul.wide.u32 %offset, %i, 4;
    add.u64 %address, %address, %offset;
    st.global.u32 [%address], %value;
    ret;
}
";

/// A kernel of the same interface that writes each block's rank in its cluster.
const RANKS: &str = "
.version 7.8
.target sm_90
.address_size 64
.visible .entry fill(.param .u64 address, .param .u32 value, .param .u32 count)
{
    .reg .b32 %rank, %block;
    .reg .b64 %address, %offset;
    ld.param.u64 %address, [address];
    cvta.to.global.u64 %address, %address;
    mov.u32 %block, %ctaid.x;
    mov.u32 %rank, %cluster_ctarank;
    mul.wide.u32 %offset, %block, 4;
    add.u64 %address, %address, %offset;
    st.global.u32 [%address], %rank;
    ret;
}
";

/// The specimen `one_more`, as the builder writes it.
const ONE_MORE: &str = "
.version 8.3
.target sm_90
.address_size 64
.visible .entry one_more(
    .param .u32 one_more_param_0,
    .param .u64 .ptr .align 1 one_more_param_1,
    .param .u64 .ptr .align 1 one_more_param_2
)
.reqntid 64, 1, 1
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<16>;
    ld.param.b32 %r1, [one_more_param_0];
    ld.param.b64 %rd6, [one_more_param_1];
    cvta.to.global.u64 %rd1, %rd6;
    ld.param.b64 %rd7, [one_more_param_2];
    cvta.to.global.u64 %rd2, %rd7;
    // simt.kernel name=one_more block=64,1,1 barriers=1 arch=90 dependent=true params=u32,in.f32,out.f32
    mov.u32 %r2, %tid.x;
    cvt.u64.u32 %rd8, %r2;
    mov.u32 %r3, %ctaid.x;
    mul.wide.u32 %rd9, %r3, 64;
    add.s64 %rd3, %rd9, %rd8;
    griddepcontrol.launch_dependents;
    setp.ne.b32 %p1, %r2, 0;
    @%p1 bra $L2;
    griddepcontrol.wait;
$L2:
    bar.sync 0;
    cvt.u64.u32 %rd10, %r1;
    setp.lt.u64 %p2, %rd3, %rd10;
    @%p2 bra $L4;
    bra.uni $L3;
$L4:
    not.b64 %rd11, %rd3;
    shl.b64 %rd12, %rd11, 2;
    add.s64 %rd13, %rd1, %rd12;
    mul.wide.u32 %rd14, %r1, 4;
    add.s64 %rd4, %rd13, %rd14;
    shl.b64 %rd15, %rd3, 2;
    add.s64 %rd5, %rd2, %rd15;
    ld.global.b32 %r4, [%rd4];
    add.rn.f32 %r5, %r4, 0f3F800000;
    st.global.b32 [%rd5], %r5;
$L3:
    ret;
}
";

/// Device 0, where there is one.
pub(super) fn device() -> Option<Arc<Context>> {
    match device_count() {
        Ok(count) if count > 0 => Some(Context::open(0).unwrap()),
        _ if std::env::var("REQUIRE_GPU").is_ok_and(|value| value == "1") => {
            panic!("REQUIRE_GPU=1, and there is no CUDA device")
        }
        _ => {
            eprintln!("skipped: no CUDA device");
            None
        }
    }
}

/// The same, for those that need no more of it than others have.
pub(super) fn on_gpu() -> Option<crate::Device> {
    device()?;
    Some(crate::Device::cuda(0).unwrap())
}

/// Launches `FILL` over `count` words at `address` in blocks of 256, and waits.
fn fill(context: &Arc<Context>, address: u64, value: u32, count: u32, shared: u32) -> Result<f64> {
    let function = Module::load(context, "fill.ptx", FILL)?.function("fill")?;
    let stream = Stream::new(context)?;
    let (start, end) = (Event::new(context)?, Event::new(context)?);
    if shared > context.properties().max_shared_static {
        function.set_max_dynamic_shared(shared)?;
    }
    let (mut address, mut value, mut count) = (address, value, count);
    let mut params: [*mut c_void; 3] =
        [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut count).cast()];
    let shape = LaunchConfig::new([count.div_ceil(256), 1, 1], [256, 1, 1]);
    let config = LaunchConfig { dynamic_shared: shared, ..shape };
    start.record(&stream)?;
    // SAFETY: the parameters are the kernel's. All is waited for here, and a wrong address is what
    // one of the tests is after.
    unsafe { function.launch(&stream, &config, &mut params) }?;
    end.record(&stream)?;
    Event::elapsed_us(&start, &end)
}

on_machine! {
    fn the_current_context_is_left_as_found() {
        if device().is_none() {
            return;
        }
        current::use_everything(0);
        let device = crate::Device::cuda(0).unwrap();
        device.make_current().unwrap();
        current::use_everything(0);
        drop(device);
    }

    fn a_kernel_writes_what_is_read() {
        let Some(context) = device() else { return };
        println!("{:?}, CUDA {:?}", context.properties(), driver_version().unwrap());
        let mut memory = Memory::alloc(&context, 4 << 20).unwrap();
        memory.fill_u8(0, 7, 4 << 20).unwrap();
        let count = (1 << 20) - 3;
        let time = fill(&context, memory.address(), 9, count, 0).unwrap();
        assert!(time > 0.0 && time < 1e6, "{time}");
        let mut bytes = vec![0; 4 << 20];
        memory.read(0, &mut bytes).unwrap();
        let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        assert!(words.enumerate().all(|(i, word)| word == if i < count as usize { 9 } else { 0x0707_0707 }));
        let (free, total) = context.memory_info().unwrap();
        assert!(free < total);
    }

    fn the_compilers_log_is_in_the_error() {
        let Some(context) = device() else { return };
        let broken = FILL.replace("mul.wide.u32", "mul.narrow.u32");
        let error = Module::load(&context, "broken.ptx", &broken).unwrap_err();
        println!("{error}");
        assert!(matches!(&error, Error::Ptx { log, .. } if log.contains("ptxas")), "{error}");
        let future = FILL.replace(".version 7.1", ".version 99.0");
        let error = Module::load(&context, "future.ptx", &future).unwrap_err();
        println!("{error}");
        assert!(matches!(error, Error::Ptx { .. }), "{error}");
        let module = Module::load(&context, "fill.ptx", FILL).unwrap();
        assert!(matches!(module.function("full"), Err(Error::Ptx { .. })));
    }

    fn all_shared_memory_can_be_had_and_no_more() {
        let Some(context) = device() else { return };
        let memory = Memory::alloc(&context, 1024).unwrap();
        let most = context.properties().max_shared_optin;
        fill(&context, memory.address(), 1, 256, most).unwrap();
        let error = fill(&context, memory.address(), 1, 256, most + 1).unwrap_err();
        println!("{error}");
        assert!(matches!(error, Error::Launch { kernel: "fill", .. }), "{error}");
    }

    fn blocks_are_launched_in_clusters() {
        let Some(context) = device() else { return };
        if context.properties().capability < (9, 0) {
            eprintln!("skipped: {} has no clusters", context.label());
            return;
        }
        let function = Module::load(&context, "ranks.ptx", RANKS).unwrap().function("fill").unwrap();
        let stream = Stream::new(&context).unwrap();
        let mut memory = Memory::alloc(&context, 24 * 4).unwrap();
        let (mut address, mut value, mut count) = (memory.address(), 0u32, 24u32);
        let mut params: [*mut c_void; 3] =
            [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut count).cast()];
        for (cluster, size) in [([1, 1, 1], 1), ([2, 1, 1], 2), ([8, 1, 1], 8)] {
            memory.fill_u8(0, 0xff, 24 * 4).unwrap();
            let config = LaunchConfig { cluster, ..LaunchConfig::new([24, 1, 1], [32, 1, 1]) };
            // SAFETY: the parameters are the kernel's, with a word for each block, and all is
            // waited for.
            unsafe { function.launch(&stream, &config, &mut params) }.unwrap();
            stream.synchronize().unwrap();
            let mut bytes = [0; 24 * 4];
            memory.read(0, &mut bytes).unwrap();
            let ranks = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            assert!(ranks.enumerate().all(|(block, rank)| rank as usize == block % size), "{bytes:?}");
        }
        for cluster in [[5, 1, 1], [1, 2, 1], [24, 1, 1]] {
            let config = LaunchConfig { cluster, ..LaunchConfig::new([24, 1, 1], [32, 1, 1]) };
            // SAFETY: as above.
            let error = unsafe { function.launch(&stream, &config, &mut params) }.unwrap_err();
            println!("{error}");
            assert!(matches!(error, Error::Launch { kernel: "fill", .. }), "{error}");
        }
    }

    fn launches_that_may_begin_early_see_what_the_one_before_wrote() {
        use specimens::kernels::grids::one_more;
        let Some(context) = device() else { return };
        if context.properties().capability < (9, 0) {
            eprintln!("skipped: {} has no dependent launches", context.label());
            return;
        }
        let device = crate::Device::cuda(0).unwrap();
        // SAFETY: the kernel there is compiled of the source of the one that is launched.
        unsafe { device.load_ptx("one_more.ptx", ONE_MORE) }.unwrap();
        let stream = device.stream().unwrap();
        // More blocks than run at once, and few, which all find a place beside those of the launch
        // before.
        for n in [1u32 << 21, 10_000, 64] {
            let [mut x, mut y] = [0; 2].map(|_| device.zeros::<f32>(n as usize).unwrap());
            let config = LaunchConfig::new([n.div_ceil(64), 1, 1], [64, 1, 1]);
            for _ in 0..100 {
                // SAFETY: `n` elements each; what a launch reads the one before has written, in the
                // same stream.
                unsafe {
                    stream.launch(&one_more, &config, (n, &x, &mut y)).unwrap();
                    stream.launch(&one_more, &config, (n, &y, &mut x)).unwrap();
                }
            }
            assert!(x.to_vec().unwrap().iter().all(|&count| count == 200.0), "{n}");
        }
    }

    fn matrices_are_encoded_and_what_the_accelerator_cannot_copy_is_not() {
        const FLOAT32: cuda_dyn::CUtensorMapDataType = cuda_dyn::CUtensorMapDataType::FLOAT32;
        let Some(context) = device() else { return };
        if context.properties().capability < (9, 0) {
            eprintln!("skipped: {} has no TMA", context.label());
            return;
        }
        let (device, stream) = opened();
        let buffer = device.zeros::<f32>(1 << 20).unwrap();
        let map = |start: usize, extents, strides| {
            let boxes = crate::Boxes::new(buffer.view(start..).unwrap(), extents, strides, SHAPE).unwrap();
            bind(boxes, &stream).unwrap_or_else(|error| panic!("{extents:?} {strides:?}: {error:?}"))
        };
        // The same gives the same, and each difference shows.
        let first = words(map(0, [3, 10, 18], [640, 64]));
        assert_ne!(first, [0; 16]);
        assert_eq!(first, words(map(0, [3, 10, 18], [640, 64])));
        for (start, extents, strides) in [
            (4, [3, 10, 18], [640, 64]),
            (0, [3, 10, 17], [640, 64]),
            (0, [3, 9, 18], [640, 64]),
            (0, [2, 10, 18], [640, 64]),
            (0, [3, 10, 18], [644, 64]),
            (0, [3, 10, 18], [640, 60]),
        ] {
            assert_ne!(first, words(map(start, extents, strides)), "{start} {extents:?} {strides:?}");
        }
        // Smaller than a box, a single row, column or element; matrices no whole number of rows
        // apart, interleaved, or all one; rows that overlap.
        let odd = [
            ([1, 1, 1], [0, 0]),
            ([1, 1, 18], [1, 1]),
            ([1, 10, 1], [0, 4]),
            ([7, 1, 1], [4, 0]),
            ([2, 10, 18], [644, 64]),
            ([2, 10, 18], [20, 64]),
            ([5, 10, 18], [0, 64]),
            ([1, 100, 18], [0, 4]),
        ];
        let refused = odd.into_iter().filter(|&(extents, strides)| {
            let boxes = crate::Boxes::new(buffer.view(..).unwrap(), extents, strides, SHAPE).unwrap();
            bind(boxes, &stream).is_err()
        });
        assert_eq!(refused.collect::<Vec<_>>(), []);
        // What `TensorMap` would refuse before, the driver refuses, too.
        let right = map(0, [3, 10, 18], [640, 64]).description();
        let address = buffer.address();
        assert_eq!(encode(&context, address, FLOAT32, &right).unwrap().map(|map| map == first), Some(true));
        assert_eq!(encode(&context, address + 4, FLOAT32, &right).unwrap(), None);
        let wrong = |change: fn(&mut TensorDescription)| {
            let mut description = right;
            change(&mut description);
            encode(&context, address, FLOAT32, &description).unwrap()
        };
        assert_eq!(wrong(|right| right.extents[1] = 0), None);
        assert_eq!(wrong(|right| right.extents[0] = (1 << 32) + 1), None);
        assert_eq!(wrong(|right| right.strides[0] += 8), None);
        assert_eq!(wrong(|right| right.strides[1] = 1 << 40), None);
        assert_eq!(wrong(|right| right.box_extents[1] = 257), None);
        assert_eq!(wrong(|right| right.box_extents[0] = 15), None, "60 bytes");
        assert_eq!(wrong(|right| right.swizzle = 32), None, "a row of 64 bytes");
        assert_eq!(wrong(|right| right.swizzle = 16), None);
    }

    fn copies_go_on_while_the_host_does() {
        let Some(device) = on_gpu() else { return };
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let (count, len, stride) = (1000, 4099, 4128);
        let lines = crate::Lines { count, len, stride };
        let mut buffer = device.zeros::<f32>(count * stride).unwrap();
        let [mut there, mut back] = [0; 2].map(|_| device.pinned::<f32>(count * len).unwrap());
        for round in 0..20 {
            // A copy that did not wait for the one before would mix the rounds.
            let value = |i: usize| (round * 7 + i % 1013) as f32;
            there.as_mut_slice().unwrap().iter_mut().enumerate().for_each(|(i, x)| *x = value(i));
            streams[0].upload(&mut there, buffer.view_mut(..).unwrap(), lines).unwrap();
            streams[1].wait_for(&streams[0].record().unwrap()).unwrap();
            streams[1].download(buffer.view(..).unwrap(), &mut back, lines).unwrap();
            let back = back.as_slice().unwrap();
            assert!(back.iter().enumerate().all(|(i, &x)| x == value(i)), "{round}");
            streams[0].wait_for(&streams[1].record().unwrap()).unwrap();
        }
        let stored = buffer.to_vec().unwrap();
        assert!(stored.chunks(stride).all(|line| line[len..].iter().all(|&x| x == 0.0)));
    }

    fn blocks_give_the_bits_of_the_cpu() {
        use crate::{
            Device, Layout, Shape,
            blocks::{BlockPlan, Dense, Job, Product, Transposed},
        };
        let Some(gpu) = on_gpu() else { return };
        let (m, n, k) = (1200, 1100, 700);
        let [a, b, c] = [(1, k * m), (2, k * n), (3, m * n)].map(|(seed, len)| uniform(seed, len));
        let a = Dense::new(k, m, Layout::RowMajor, &a[..]).unwrap();
        let b = Dense::new(k, n, Layout::ColMajor, &b[..]).unwrap();
        let c = Dense::new(m, n, Layout::ColMajor, &c[..]).unwrap();
        let a = Transposed(&a);
        let run = |device: &Device, limit, depth, chunk: Option<usize>| {
            let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
            let (tile, layouts) = ([64, 64], [Layout::ColMajor, Layout::ColMajor, Layout::RowMajor]);
            let job = Job { shape, element_bytes: 4, tile, layouts, reads_c: true, device_limit: limit, depth, devices: 1 };
            let plan = BlockPlan::new(&job).unwrap();
            let plan = plan.with_chunk(chunk.unwrap_or(plan.chunk()));
            let mut values = vec![f32::NAN; m * n];
            let mut out = Dense::new(m, n, Layout::RowMajor, &mut values[..]).unwrap();
            let (alpha, beta) = (0.7, -0.3);
            let product = Product { alpha, beta, c: Some(&c), ..Product::new("gemm_f32_64x64x16", &a, &b) };
            product.run(device, &plan, &mut out).unwrap();
            values.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let cpu = Device::cpu();
        for depth in [None, Some(130)] {
            let wanted = run(&cpu, 1 << 40, depth, None);
            for (limit, chunk) in [(1 << 40, None), (5 << 20, None), (3 << 20, Some(10_007)), (1 << 21, Some(999))] {
                // Again and again: a copy that came too early, or too late, would not always be
                // seen.
                for _ in 0..5 {
                    assert!(run(&gpu, limit, depth, chunk) == wanted, "{limit} {depth:?} {chunk:?}");
                }
            }
        }
    }

    fn more_memory_than_there_is() {
        let Some(context) = device() else { return };
        let total = context.memory_info().unwrap().1 as usize;
        for bytes in [total + 1, 1 << 50, usize::MAX] {
            let error = Memory::alloc(&context, bytes).unwrap_err();
            println!("{error}");
            assert!(matches!(error, Error::OutOfMemory { free: 1.., .. }), "{error}");
        }
    }

    fn a_product_costs_the_host_little_more_than_a_raw_launch() {
        let Some(device) = on_gpu() else { return };
        let crate::device::Kind::Cuda(gpu) = &*device.0 else { panic!("not a GPU") };
        let entry = find("tiled16").unwrap();
        let [a_matrix, b_matrix, mut c_matrix] = square_matrices(&device, 64);
        let stream = device.stream().unwrap();
        multiply(&stream, entry, &a_matrix, &b_matrix, &mut c_matrix).unwrap();

        // The same launch with its arguments at hand: the context made current, and cuLaunchKernel.
        let function = gpu.function(entry.declaration(), &entry.constants, || Ok(())).unwrap();
        let raw_stream = Stream::new(&gpu.context).unwrap();
        let [mut m, mut n, mut k] = [64u32; 3];
        let matrices = [&a_matrix, &b_matrix, &c_matrix];
        let [mut a, mut b, mut c] = matrices.map(|matrix| matrix.buffer().address());
        let mut params: [*mut c_void; 6] = [
            (&raw mut m).cast(),
            (&raw mut n).cast(),
            (&raw mut k).cast(),
            (&raw mut a).cast(),
            (&raw mut b).cast(),
            (&raw mut c).cast(),
        ];
        let config = LaunchConfig::new([4, 4, 1], [16, 16, 1]);
        // A few launches at a time, so that the driver's queue never fills up and makes the host
        // wait.
        let time = |launch: &mut dyn FnMut()| {
            let begin = std::time::Instant::now();
            (0..100).for_each(|_| launch());
            let time = begin.elapsed();
            gpu.context.synchronize().unwrap();
            time.as_secs_f64() * 1e6 / 100.0
        };
        let (mut raw, mut product, mut general) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..50 {
            raw.push(time(&mut || {
                // SAFETY: the parameters are the kernel's, whose buffers live until the end of the
                // test.
                unsafe { function.launch(&raw_stream, &config, &mut params) }.unwrap();
            }));
            product.push(time(&mut || {
                multiply(&stream, entry, &a_matrix, &b_matrix, &mut c_matrix).unwrap();
            }));
            // With the choice of a kernel, scalars, and the matrices' other streams looked at.
            general.push(time(&mut || {
                let (a, b, c) = (a_matrix.view(), b_matrix.view(), c_matrix.view_mut());
                crate::Gemm::new().alpha(2.0).launch(&stream, a, b.t(), c).unwrap();
            }));
        }
        let [raw, product, general] = [raw, product, general].map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!(
            "\nhost time at 64x64x64: raw launch {raw:.2} us, product::multiply {product:.2} us, \
             Gemm {general:.2} us"
        );
        for library in [product, general] {
            assert!(library - raw <= 10.0, "{library} us against {raw} us");
        }
    }

    fn a_fault_is_reported_and_dropping_survives_it() {
        let Some(context) = device() else { return };
        let memory = Memory::alloc(&context, 1024).unwrap();
        let error = fill(&context, 64, 1, 256, 0).unwrap_err();
        println!("{error}");
        assert!(matches!(error, Error::Driver { code: 700, .. }), "{error}");
        let error = memory.read(0, &mut [0]).unwrap_err();
        assert!(matches!(error, Error::Driver { .. }), "{error}");
        assert!(Memory::alloc(&context, 1024).is_err());
    }
}
