//! The whole layer against the driver of `cuda-dyn`'s tests: what it returns and in which order it
//! is called.

mod boxes;
mod calls_of_a_launch;
mod captures;
mod count;
mod current;
mod device;
mod device_graphs;
#[path = "../../../cuda-dyn/tests/fake/mod.rs"]
mod fake;
mod graphs;
mod interchange;
mod interchange_crates;
mod memory;
mod several;
mod tuned;

use super::*;
use crate::error::{Error, Result};
use crate::launch::Unbound;
use fake::{calls, with_driver};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use simt::LaunchConfig;
use simt::device::{Out, TensorMap};
use std::{ffi::c_void, sync::Arc};

/// PTX as far as the tests' driver reads it.
const PTX: &str = ".version 7.1";

/// Numbers from [-1, 1).
fn uniform(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// Matrices of n rows and columns: two of random numbers, one of zeros.
fn square_matrices(device: &crate::Device, n: usize) -> [crate::Matrix<f32>; 3] {
    let random = |seed| crate::Matrix::from_row_major(device, n, n, &uniform(seed, n * n)).unwrap();
    [random(1), random(2), crate::Matrix::zeros(device, n, n).unwrap()]
}

/// The driver's calls since the last look that start as one of `starts`, which spaces divide.
fn calls_of(starts: &str) -> Vec<String> {
    let wanted = |call: &String| starts.split(' ').any(|start| call.starts_with(start));
    calls().into_iter().filter(wanted).collect()
}

/// The first GPU, and a stream of it.
fn opened() -> (crate::Device, crate::Stream) {
    let device = crate::Device::cuda(0).unwrap();
    let stream = device.stream().unwrap();
    (device, stream)
}

/// The same, with [`square_matrices`].
fn opened_with(n: usize) -> (crate::Device, crate::Stream, [crate::Matrix<f32>; 3]) {
    let (device, stream) = opened();
    let matrices = square_matrices(&device, n);
    (device, stream, matrices)
}

fn open() -> Arc<Context> {
    let context = Context::open(0).unwrap();
    calls();
    context
}

/// Launches the one kernel there is: `count` words of `value` to the start of `memory`.
fn fill(
    context: &Arc<Context>,
    memory: &Memory,
    value: u32,
    count: u32,
    config: LaunchConfig,
) -> Result<()> {
    let module = Module::load(context, "test.ptx", PTX)?;
    let stream = Stream::new(context)?;
    let (mut address, mut value, mut count) = (memory.address(), value, count);
    let mut params: [*mut c_void; 3] =
        [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut count).cast()];
    // SAFETY: the parameters are the kernel's, and it has written when this returns.
    unsafe { module.function("fill")?.launch(&stream, &config, &mut params) }?;
    stream.synchronize()
}

/// Launches two blocks of a kernel that declares no cluster as one.
fn launch_a_cluster() -> Result<()> {
    let device = crate::Device::cuda(0)?;
    let [a, b] = [0; 2].map(|_| device.zeros::<f32>(512).unwrap());
    let mut c = device.zeros::<f32>(512)?;
    let shape = LaunchConfig::new([2, 1, 1], [256, 1, 1]);
    let config = LaunchConfig { cluster: [2, 1, 1], ..shape };
    let kernel = &gpu::lessons::vec_add::vec_add;
    // SAFETY: as many elements as threads.
    unsafe { device.stream()?.launch(kernel, &config, (512, &a, &b, &mut c)) }
}

/// A kernel that the tests' driver does not run.
#[simt::device::kernel(block = (32), dependent)]
fn begins_early(mut c: Out<f32>) {
    c[0] = 1.0;
}

/// The first GPU with that kernel, a stream, and room for what it writes.
fn with_begins_early() -> (crate::Device, crate::Stream, crate::Buffer<f32>) {
    let (device, stream) = opened();
    let c = device.zeros::<f32>(32).unwrap();
    let declaration = begins_early.declaration.to_ptx_comment();
    let ptx = format!(
        "// {declaration}\n.visible .entry begins_early(\n\t.param .u64 p\n)\n{{\n\tgriddepcontrol.wait;\n\tret;\n}}\n"
    );
    // SAFETY: the tests' driver runs no kernels.
    unsafe { device.load_ptx("early.ptx", &ptx) }.unwrap();
    (device, stream, c)
}

/// The driver's calls since the last look, but those that look kernels up.
fn calls_of_launches() -> Vec<String> {
    let looked_up = |call: &String| call.starts_with("cuModule") || call.starts_with("cuFunc");
    calls().into_iter().filter(|call| !looked_up(call)).collect()
}

/// The calls of two launches of that kernel, the second in clusters, if there are such.
fn launch_dependent() -> Vec<Vec<String>> {
    let (device, stream, mut c) = with_begins_early();
    let clusters = (1..=device.limits().cluster.min(2)).map(|blocks| [blocks, 1, 1]);
    let launches = clusters.map(|cluster| {
        calls();
        let config = LaunchConfig { cluster, ..LaunchConfig::new([4, 1, 1], [32, 1, 1]) };
        // SAFETY: the tests' driver runs no kernels.
        unsafe { stream.launch(&begins_early, &config, (&mut c,)) }.unwrap();
        calls_of_launches()
    });
    launches.collect()
}

with_driver! {
    fn no_library("no driver") {
        for error in [
            device_count().unwrap_err(),
            driver_version().unwrap_err(),
            Context::open(0).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(matches!(error, Error::NoDriver { .. }), "{text}");
            assert!(text.starts_with("no NVIDIA driver: ") && text.contains("libcuda.so.1"), "{text}");
            assert!(text.contains("install"), "{text}");
        }
    }

    fn a_driver_that_does_not_start("cuInit=803") {
        let text = device_count().unwrap_err().to_string();
        let expected = "no NVIDIA driver: cuInit failed, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)";
        assert!(text.starts_with(expected) && text.contains("restart"), "{text}");
        assert_eq!(driver_version().unwrap(), (13, 0));
    }

    fn a_driver_without_devices("cuInit=100") {
        assert_eq!(device_count().unwrap(), 0);
        let error = Context::open(0).unwrap_err();
        assert!(matches!(error, Error::NoDevice { index: 0, count: 0 }), "{error}");
    }

    fn no_device_is_visible("devices=0") {
        assert_eq!(device_count().unwrap(), 0);
        assert!(matches!(Context::open(0), Err(Error::NoDevice { index: 0, count: 0 })));
    }

    fn an_index_out_of_range("devices=2") {
        assert_eq!(device_count().unwrap(), 2);
        assert_eq!(Context::open(1).unwrap().label(), "cuda:1 (Fake GPU)");
        assert!(matches!(Context::open(2), Err(Error::NoDevice { index: 2, count: 2 })));
        assert!(Context::open(usize::MAX).is_err());
    }

    fn a_device_that_another_process_holds("cuDevicePrimaryCtxRetain=46") {
        let text = Context::open(0).unwrap_err().to_string();
        assert!(
            text.starts_with("cuDevicePrimaryCtxRetain failed: CUDA_ERROR_DEVICE_UNAVAILABLE (46): "),
            "{text}"
        );
    }

    fn properties("version=12080") {
        let context = open();
        let properties = context.properties();
        assert_eq!(properties.name, "Fake GPU");
        assert_eq!((properties.capability, properties.driver), ((9, 0), (12, 8)));
        assert_eq!((properties.max_shared_static, properties.max_shared_optin), (49152, 232448));
        assert_eq!((properties.max_block_dim, properties.max_grid_dim), ([1002, 1003, 1004], [1005, 1006, 1007]));
        assert_eq!((properties.clock_khz, properties.memory_bus_bits), (None, Some(1037)));
        assert_eq!(context.memory_info().unwrap(), (1 << 30, 1 << 30));
        assert_eq!(context.index(), 0);
    }

    fn out_of_memory_of_a_size_that_only_the_driver_knows("cuModuleLoadDataEx=2") {
        let text = Module::load(&open(), "test.ptx", PTX).unwrap_err().to_string();
        assert!(text.contains("out of memory on cuda:0 (Fake GPU): 1073741824 of"), "{text}");
    }

    fn refused_ptx("version=11040") {
        let context = open();
        let refusal = |ptx| match Module::load(&context, "test.ptx", ptx).unwrap_err() {
            Error::Ptx { module, driver, log } => {
                assert_eq!((module.as_str(), driver), ("test.ptx", (11, 4)));
                log
            }
            other => panic!("{other}"),
        };
        assert!(refusal("bad instruction").ends_with("line 7; fatal   : Parsing error"));
        let log = refusal(".version 99.0");
        assert!(log.starts_with("CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): "), "{log}");
        assert!(log.ends_with("update the driver"), "{log}");
        assert!(refusal("a\0b").contains("NUL byte at 1"));
    }

    fn a_kernel_is_launched_and_timed("") {
        let context = open();
        let memory = Memory::alloc(&context, 16).unwrap();
        let (start, end) = (Event::new(&context).unwrap(), Event::new(&context).unwrap());
        let stream = Stream::new(&context).unwrap();
        start.record(&stream).unwrap();
        fill(&context, &memory, 9, 2, LaunchConfig::new([1, 1, 1], [2, 1, 1])).unwrap();
        end.record(&stream).unwrap();
        assert_eq!(Event::elapsed_us(&start, &end).unwrap(), 1500.0);
        let mut bytes = [0; 8];
        memory.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [9, 0, 0, 0, 9, 0, 0, 0]);
        drop((stream, start, end));
        let calls = calls();
        for (made, destroyed) in [
            ("cuModuleLoadDataEx", "cuModuleUnload"),
            ("cuStreamCreateWithPriority", "cuStreamDestroy_v2"),
            ("cuEventCreate", "cuEventDestroy_v2"),
        ] {
            let count = |name| calls.iter().filter(|&call| call == name).count();
            assert!(count(made) > 0 && count(made) == count(destroyed), "{calls:?}");
        }
    }

    fn a_function_keeps_its_module("") {
        let context = open();
        let function = Module::load(&context, "test.ptx", PTX).unwrap().function("fill").unwrap();
        assert!(!calls().contains(&"cuModuleUnload".into()));
        drop(function);
        assert_eq!(calls(), ["cuModuleUnload"]);
    }

    fn each_kernel_is_launched_under_its_own_name("kernels=1") {
        use crate::{gpu::registry, product};
        let (_device, stream, [a, b, mut c]) = opened_with(3);
        calls();
        // Twice: the second time they are looked up no more.
        for time in 0..2 {
            for (entry, _) in registry::products() {
                product::multiply(&stream, entry, &a, &b, &mut c).unwrap();
                let calls = calls();
                assert!(calls.contains(&format!("launch {}", entry.name())), "{calls:?}");
                let looked_up = calls.contains(&"cuModuleGetFunction".to_owned());
                assert_eq!(looked_up, time == 0, "{calls:?}");
            }
        }
    }

    fn a_launch_in_clusters("kernels=1") {
        use simt::device::*;
        #[kernel(block = (32), cluster = (2))]
        fn declares_a_cluster(mut c: Out<f32>) {
            c[0] = 1.0;
        }
        const DECLARED: &str =
            "// simt.kernel name=declares_a_cluster block=32,1,1 barriers=0 cluster=2,1,1 params=out.f32";
        let (device, stream) = opened();
        let [a, b] = [0; 2].map(|_| device.zeros::<f32>(512).unwrap());
        let mut c = device.zeros::<f32>(512).unwrap();
        let kernel = &gpu::lessons::vec_add::vec_add;
        let mut launch = |cluster| {
            let config = LaunchConfig { cluster, ..LaunchConfig::new([2, 1, 1], [256, 1, 1]) };
            calls();
            // SAFETY: as many elements as threads.
            unsafe { stream.launch(kernel, &config, (512, &a, &b, &mut c)) }.unwrap();
            calls_of_launches()
        };
        assert_eq!(launch([1, 1, 1]), ["cuLaunchKernel", "launch vec_add"]);
        assert_eq!(launch([2, 1, 1]), ["cuLaunchKernelEx", "cluster [2, 1, 1]", "launch vec_add"]);
        // What the kernel declares stands in its PTX; to say it again changes nothing.
        // SAFETY: the tests' driver runs no kernels.
        unsafe { device.load_ptx("declared.ptx", DECLARED) }.unwrap();
        for cluster in [[1, 1, 1], [2, 1, 1]] {
            let config = LaunchConfig { cluster, ..LaunchConfig::new([4, 1, 1], [32, 1, 1]) };
            // SAFETY: as above.
            unsafe { stream.launch(&declares_a_cluster, &config, (&mut c,)) }.unwrap();
            let calls = calls();
            assert!(calls.contains(&"cuLaunchKernel".to_owned()), "{calls:?}");
            assert!(!calls.contains(&"cuLaunchKernelEx".to_owned()), "{calls:?}");
        }
    }

    fn a_launch_that_may_begin_early("kernels=1") {
        let calls = launch_dependent();
        assert_eq!(calls, [
            vec!["cuLaunchKernelEx", "dependent", "launch begins_early"],
            vec!["cuLaunchKernelEx", "dependent", "cluster [2, 1, 1]", "launch begins_early"],
        ]);
    }

    fn an_older_device_launches_it_plainly("major=8 kernels=1") {
        assert_eq!(launch_dependent(), [["cuLaunchKernel", "launch begins_early"]]);
    }

    fn clusters_that_the_driver_refuses("") {
        let context = open();
        let memory = Memory::alloc(&context, 16).unwrap();
        let shape = LaunchConfig::new([64, 1, 1], [1, 1, 1]);
        for (cluster, code) in [([3, 1, 1], "VALUE (1)"), ([16, 1, 1], "CLUSTER_SIZE (912)")] {
            let config = LaunchConfig { cluster, ..shape };
            let error = fill(&context, &memory, 9, 1, config).unwrap_err();
            assert!(matches!(error, Error::Launch { kernel: "fill", .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(&format!("grid [64, 1, 1] in clusters {cluster:?}, block")), "{text}");
            assert!(text.contains(&format!("CUDA_ERROR_INVALID_{code}")), "{text}");
        }
    }

    fn a_device_without_clusters("major=8 kernels=1") {
        let text = launch_a_cluster().unwrap_err().to_string();
        assert_eq!(text, "kernel vec_add: cluster = [2, 1, 1] has 2 blocks: must be 1 to 1");
        assert!(!calls().iter().any(|call| call.starts_with("cuLaunch")));
    }

    fn a_driver_older_than_clusters("kernels=1 cuLaunchKernelEx=302") {
        let error = launch_a_cluster().unwrap_err();
        let expected = "no NVIDIA driver: libcuda.so.1 has no function cuLaunchKernelEx: the driver is too old, \
                        update it to one of CUDA 11.8 or newer";
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.exit_code(), 3);
    }

    fn a_kernel_that_is_not_there("") {
        let module = Module::load(&open(), "test.ptx", PTX).unwrap();
        let text = module.function("full").unwrap_err().to_string();
        assert!(text.contains("test.ptx: there is no kernel full in it"), "{text}");
    }

    fn more_shared_memory_than_there_is("") {
        let function =
            Module::load(&open(), "test.ptx", PTX).unwrap().function("fill").unwrap();
        function.set_max_dynamic_shared((227 << 10) - 2048).unwrap();
        for bytes in [227 << 10, u32::MAX] {
            let text = function.set_max_dynamic_shared(bytes).unwrap_err().to_string();
            assert!(text.starts_with(&format!("kernel fill: {bytes} bytes")), "{text}");
            assert!(text.contains("2048") && text.contains("232448"), "{text}");
        }
    }

    fn launches_that_the_driver_refuses("") {
        let context = open();
        let memory = Memory::alloc(&context, 16).unwrap();
        for (grid, block) in [([0, 1, 1], [1, 1, 1]), ([1, 1, 1], [64, 32, 1])] {
            let error = fill(&context, &memory, 9, 1, LaunchConfig::new(grid, block)).unwrap_err();
            assert!(matches!(error, Error::Launch { kernel: "fill", .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(&format!("grid {grid:?}, block {block:?}")), "{text}");
        }
    }

    fn a_fault_is_seen_by_who_waits_and_dropping_survives_it(
        "cuStreamSynchronize=700 cuCtxSynchronize=700 cuMemFree_v2=700 cuModuleUnload=700 \
         cuStreamDestroy_v2=700 cuDevicePrimaryCtxRelease_v2=700"
    ) {
        let context = open();
        let mut memory = Memory::alloc(&context, 16).unwrap();
        for error in [
            fill(&context, &memory, 9, 1, LaunchConfig::new([1; 3], [1; 3])).unwrap_err(),
            memory.read(0, &mut [0]).unwrap_err(),
            memory.write(0, &[0]).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(matches!(error, Error::Driver { code: 700, .. }), "{text}");
            assert!(text.contains("ILLEGAL_ADDRESS (700)"), "{text}");
            assert!(text.contains("a kernel launched earlier"), "{text}");
        }
    }

    fn a_function_that_an_old_driver_lacks("cuCtxSynchronize=302") {
        let text = open().synchronize().unwrap_err().to_string();
        assert!(text.contains("libcuda.so.1 has no function cuCtxSynchronize"), "{text}");
        assert!(text.contains("update"), "{text}");
    }
}
