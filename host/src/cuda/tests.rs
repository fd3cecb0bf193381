//! The whole layer against the driver of `cuda-dyn`'s tests: what it returns and in which order it is
//! called.

mod count;
mod device;
#[path = "../../cuda-dyn/tests/fake/mod.rs"]
mod fake;

use super::*;
use crate::launch::Unbound;
use fake::{calls, with_driver};
use simt::device::{Out, TensorMap};
use simt::{LaunchConfig, Params};
use std::{ffi::c_void, sync::Arc};

/// PTX as far as the tests' driver reads it.
const PTX: &str = ".version 7.1";

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

/// The calls of two launches of that kernel, the second in clusters, if there are such.
fn launch_dependent() -> Vec<Vec<String>> {
    let device = crate::Device::cuda(0).unwrap();
    let stream = device.stream().unwrap();
    let mut c = device.zeros::<f32>(32).unwrap();
    let ptx = format!("// {}", begins_early.declaration.to_ptx_comment());
    // SAFETY: the tests' driver runs no kernels.
    unsafe { device.load_ptx("early.ptx", &ptx) }.unwrap();
    let clusters = (1..=device.limits().cluster.min(2)).map(|blocks| [blocks, 1, 1]);
    let launches = clusters.map(|cluster| {
        calls();
        let config = LaunchConfig { cluster, ..LaunchConfig::new([4, 1, 1], [32, 1, 1]) };
        // SAFETY: as above.
        unsafe { stream.launch(&begins_early, &config, (&mut c,)) }.unwrap();
        let looked_up = |call: &String| call.starts_with("cuModule") || call.starts_with("cuFunc");
        calls().into_iter().filter(|call| !looked_up(call)).collect()
    });
    launches.collect()
}

const SHAPE: crate::BoxShape = crate::BoxShape { rows: 8, cols: 16, swizzle: 64 };

/// A kernel that the tests' driver does not run.
#[simt::device::kernel(block = (32))]
fn takes_boxes(map: TensorMap<f32>, mut c: Out<f32>) {
    let _ = map;
    c[0] = 1.0;
}

fn bind(
    boxes: crate::Boxes<f32>,
    stream: &crate::Stream,
) -> std::result::Result<TensorMap<f32>, Unbound> {
    // SAFETY: nobody looks at what the map is of.
    unsafe { crate::Argument::bind(boxes, stream, "map") }
}

/// Launches that kernel.
fn launch_boxes(
    stream: &crate::Stream,
    boxes: crate::Boxes<f32>,
    c: &mut crate::Buffer<f32>,
) -> Result<()> {
    let ptx = format!("// {}", takes_boxes.declaration.to_ptx_comment());
    // SAFETY: the tests' driver runs no kernels.
    unsafe { stream.device().load_ptx("boxes.ptx", &ptx) }?;
    // SAFETY: as above; on the CPU nothing is launched.
    unsafe { stream.launch(&takes_boxes, &LaunchConfig::new([1; 3], [32, 1, 1]), (boxes, c)) }
}

/// The error of such a launch, and the address of the matrix.
fn refuse_boxes() -> (Error, u64) {
    let device = crate::Device::cuda(0).unwrap();
    let (a, mut c) = (device.zeros::<f32>(2000).unwrap(), device.zeros::<f32>(32).unwrap());
    let boxes = crate::Boxes::new(a.view(..).unwrap(), [1, 10, 18], [0, 64], SHAPE).unwrap();
    calls();
    (launch_boxes(&device.stream().unwrap(), boxes, &mut c).unwrap_err(), a.address())
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

    fn bytes_come_back_and_every_change_is_waited_for("") {
        let context = open();
        let mut memory = Memory::alloc(&context, 64).unwrap();
        assert_eq!(calls(), ["cuMemAlloc_v2"]);
        memory.fill_u8(0, 0xff, 64).unwrap();
        assert_eq!(calls(), ["cuCtxSynchronize", "cuMemsetD8_v2", "cuCtxSynchronize"]);
        memory.fill_u8(4, 4, 8).unwrap();
        memory.write(13, &[7, 8, 9]).unwrap();
        calls();
        let mut bytes = [0; 14];
        memory.read(3, &mut bytes).unwrap();
        assert_eq!(calls(), ["cuCtxSynchronize", "cuMemcpyDtoH_v2"]);
        assert_eq!(bytes, [255, 4, 4, 4, 4, 4, 4, 4, 4, 255, 7, 8, 9, 255]);
        drop(memory);
        drop(context);
        assert_eq!(calls(), ["cuMemFree_v2", "cuDevicePrimaryCtxRelease_v2"]);
    }

    fn rows_are_spaced_by_the_driver_and_copied_by_it("") {
        let device = crate::Device::cuda(0).unwrap();
        calls();
        let mut flat = device.pitched::<f32>(3, 2).unwrap();
        assert_eq!(flat.pitch(), 512);
        let cleared = ["cuCtxSynchronize", "cuMemsetD8_v2", "cuCtxSynchronize"];
        assert_eq!(calls(), [&["cuMemAllocPitch_v2"], &cleared[..]].concat());
        flat.write(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(calls(), ["cuCtxSynchronize", "cuMemcpy2D_v2", "cuCtxSynchronize"]);
        assert_eq!(flat.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        calls();
        let mut deep = device.pitched_3d::<f32>(200, 3, 2).unwrap();
        let values: Vec<_> = (0..1200).map(|i| i as f32).collect();
        deep.write(&values).unwrap();
        assert!(calls().contains(&"cuMemcpy3D_v2".into()));
        assert_eq!((deep.pitch(), deep.to_vec().unwrap()), (1024, values));
        let region = crate::Region { origin: [199, 1, 0], extent: [1, 2, 2] };
        let mut column = [0.0; 4];
        deep.read_region(region, &mut column).unwrap();
        assert_eq!(column, [399.0, 599.0, 999.0, 1199.0]);
        flat.copy_from([2, 0, 0], &deep, crate::Region { extent: [1, 2, 1], ..region }).unwrap();
        assert_eq!(flat.to_vec().unwrap(), [1.0, 2.0, 399.0, 4.0, 5.0, 599.0]);
        calls();
        drop((flat, deep));
        assert_eq!(calls(), ["cuMemFree_v2", "cuMemFree_v2"]);
    }

    fn rows_for_which_there_is_no_memory("") {
        let device = crate::Device::cuda(0).unwrap();
        for rows in [1 << 25, 1 << 40] {
            let error = device.pitched::<u8>(64, rows).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
            let needed = format!("{} bytes needed", 64 * rows);
            assert!(error.to_string().contains(&needed), "{error}");
        }
    }

    fn copies_are_on_their_way_until_somebody_looks("late=1") {
        let device = crate::Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let mut pinned = device.pinned::<f32>(6).unwrap();
        let mut buffer = device.zeros::<f32>(12).unwrap();
        pinned.as_mut_slice().unwrap().copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        calls();
        let lines = crate::Lines { count: 3, len: 2, stride: 4 };
        stream.upload(&mut pinned, buffer.view_mut(1..).unwrap(), lines).unwrap();
        assert_eq!(calls(), ["cuEventCreate", "cuMemcpy2DAsync_v2", "cuEventRecord"]);
        // What is written now was not there when the copy began.
        pinned.as_mut_slice().unwrap().fill(9.0);
        assert_eq!(calls(), ["cuEventSynchronize", "cuEventDestroy_v2"]);
        let values = [0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 5.0, 6.0, 0.0];
        assert_eq!(buffer.to_vec().unwrap(), values);
        calls();
        let lines = crate::Lines { count: 1, len: 6, stride: 0 };
        stream.download(buffer.view(..).unwrap(), &mut pinned, lines).unwrap();
        assert_eq!(calls(), ["cuEventCreate", "cuMemcpyDtoHAsync_v2", "cuEventRecord"]);
        assert_eq!(pinned.as_slice().unwrap(), &values[..6]);
        // Of rows without gaps there is one copy; and one copy waits for the one before.
        let lines = crate::Lines { count: 2, len: 3, stride: 3 };
        calls();
        stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap();
        stream.upload(&mut pinned, buffer.view_mut(6..).unwrap(), lines).unwrap();
        let upload = ["cuEventCreate", "cuMemcpyHtoDAsync_v2", "cuEventRecord"];
        let waited = [&["cuEventSynchronize", "cuEventDestroy_v2"], &upload[..]].concat();
        assert_eq!(calls(), [&upload[..], &waited].concat());
        // Not freed before (the driver of the tests would mind), and then it is.
        drop(pinned);
        assert_eq!(calls(), ["cuEventSynchronize", "cuEventDestroy_v2", "cuMemFreeHost"]);
        stream.wait_for(&stream.record().unwrap()).unwrap();
        assert!(calls().contains(&"cuStreamWaitEvent".into()));
    }

    fn a_copy_that_fails_is_waited_for("late=1 cuEventRecord=700") {
        let device = crate::Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let (mut pinned, mut buffer) = (device.pinned(2).unwrap(), device.zeros::<f32>(2).unwrap());
        calls();
        let lines = crate::Lines { count: 1, len: 2, stride: 0 };
        let error = stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap_err();
        assert!(matches!(error, Error::Driver { code: 700, .. }), "{error}");
        assert!(calls().contains(&"cuStreamSynchronize".into()));
        drop(pinned);
        assert_eq!(calls(), ["cuMemFreeHost"]);
    }

    fn what_may_be_on_its_way_is_never_freed("late=1 cuEventSynchronize=700") {
        let device = crate::Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let (mut pinned, mut buffer) = (device.pinned(2).unwrap(), device.zeros::<f32>(2).unwrap());
        let lines = crate::Lines { count: 1, len: 2, stride: 0 };
        stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap();
        let error = pinned.as_slice().unwrap_err();
        assert!(matches!(error, Error::Driver { code: 700, .. }), "{error}");
        assert!(pinned.as_slice().unwrap_err().to_string().contains("the driver has lost"));
        assert!(stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).is_err());
        calls();
        drop(pinned);
        assert!(!calls().contains(&"cuMemFreeHost".into()));
    }

    fn host_memory_that_cannot_be_locked("cuMemAllocHost_v2=2") {
        let error = crate::Device::cuda(0).unwrap().pinned::<f32>(2).unwrap_err();
        let expected = "out of memory on this machine, page-locked: 8 bytes needed, ";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    fn a_stream_waits_for_another_that_uses_the_same_memory("") {
        let device = crate::Device::cuda(0).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let mut buffer = device.zeros::<f32>(8).unwrap();
        let mut pinned = [0; 2].map(|_| device.pinned::<f32>(8).unwrap());
        let lines = crate::Lines { count: 1, len: 8, stride: 8 };
        let waits = || calls().iter().filter(|call| **call == "cuStreamWaitEvent").count();
        waits();
        let [first, second] = &mut pinned;
        streams[0].upload(first, buffer.view_mut(..).unwrap(), lines).unwrap();
        assert_eq!(waits(), 0, "nobody has used it");
        streams[1].download(buffer.view(..).unwrap(), second, lines).unwrap();
        assert_eq!(waits(), 1, "what is read was written on another stream");
        streams[1].download(buffer.view(..).unwrap(), second, lines).unwrap();
        assert_eq!(waits(), 0, "this stream has waited");
        streams[0].upload(first, buffer.view_mut(..).unwrap(), lines).unwrap();
        assert_eq!(waits(), 1, "what is written is read on another stream");
        streams[0].upload(first, buffer.view_mut(..).unwrap(), lines).unwrap();
        assert_eq!(waits(), 0, "one stream keeps its own order");
        // Whoever writes from here has waited for all.
        buffer.write(0, &[1.0; 8]).unwrap();
        waits();
        streams[1].download(buffer.view(..).unwrap(), second, lines).unwrap();
        assert_eq!(waits(), 0, "all has ended");
    }

    fn a_reader_that_may_still_queue_is_not_forgotten("") {
        let context = open();
        let uses = Uses::default();
        let stream = || Arc::new(Stream::new(&context).unwrap());
        let readers = (0..12).map(|_| stream()).collect::<Vec<_>>();
        readers.iter().for_each(|reader| uses.read_by(reader).unwrap());
        calls();
        uses.written_by(&stream()).unwrap();
        let waits = |calls: &[String]| calls.iter().filter(|call| *call == "cuStreamWaitEvent").count();
        assert_eq!(waits(&calls()), 12);
        // Those that are closed are waited for by those that come after, and forgotten.
        for reader in &readers {
            uses.read_by(reader).unwrap();
            reader.close();
        }
        calls();
        uses.written_by(&stream()).unwrap();
        // Eight, and the one that wrote before.
        assert_eq!(waits(&calls()), 9);
    }

    fn a_wait_that_the_driver_refuses_is_its_error("cuStreamWaitEvent=700") {
        let device = crate::Device::cuda(0).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let mut buffer = device.zeros::<f32>(8).unwrap();
        let mut pinned = device.pinned::<f32>(8).unwrap();
        let lines = crate::Lines { count: 1, len: 8, stride: 8 };
        streams[0].upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap();
        let (kernel, config) = (&gpu::lessons::vec_add::vec_add, LaunchConfig::new([1, 1, 1], [256, 1, 1]));
        let (a, mut c) = (device.zeros::<f32>(8).unwrap(), device.zeros::<f32>(8).unwrap());
        // SAFETY: eight elements of each; nothing is launched.
        let error = unsafe { streams[1].launch(kernel, &config, (8, &buffer, &a, &mut c)) };
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Driver { code: 700, .. }), "{error}");
        assert_eq!(error.exit_code(), 4);
    }

    fn a_variable_is_found_written_and_read("") {
        use simt::device::*;
        global! { static TABLE: [u32; 2]; }
        constant! { static MISSING: [u32; 2]; }
        let device = crate::Device::cuda(0).unwrap();
        let symbol = device.symbol(&TABLE).unwrap();
        assert_eq!(symbol.bytes(), 8);
        calls();
        symbol.write(&[3, 4]).unwrap();
        assert_eq!(calls(), ["cuCtxSynchronize", "cuMemcpyHtoD_v2", "cuCtxSynchronize"]);
        assert!(symbol.write(&[1]).is_err());
        assert_eq!(calls(), [""; 0], "nothing is written");
        assert_eq!(device.symbol(&TABLE).unwrap().read().unwrap(), [3, 4]);
        let error = device.symbol(&MISSING).unwrap_err().to_string();
        assert!(error.starts_with("symbol = MISSING: sm_80/variables.ptx has no such variable"), "{error}");
    }

    fn a_variable_of_another_size("table=12") {
        use simt::device::*;
        global! { static TABLE: [u32; 2]; }
        let error = crate::Device::cuda(0).unwrap().symbol(&TABLE).unwrap_err().to_string();
        let expected = "symbol = TABLE of 12 bytes in sm_80/variables.ptx: the source has 8 bytes";
        assert!(error.starts_with(expected), "{error}");
    }

    fn a_buffer_is_cleared_where_zeros_are_asked_for_alone("") {
        let device = crate::Device::cuda(0).unwrap();
        calls();
        let cleared = |buffer: crate::Buffer<f32>| {
            assert_eq!(buffer.len(), 16);
            calls().iter().any(|name| name.starts_with("cuMemset"))
        };
        assert!(!cleared(device.uninit(16).unwrap()));
        assert!(cleared(device.zeros(16).unwrap()));
    }

    fn from_another_thread("") {
        let context = open();
        let mut memory = Memory::alloc(&context, 4).unwrap();
        drop(context);
        std::thread::spawn(move || {
            memory.write(0, &[1, 2, 3, 4]).unwrap();
            drop(memory);
        })
        .join()
        .unwrap();
        assert_eq!(calls().last().unwrap(), "cuDevicePrimaryCtxRelease_v2");
    }

    fn no_bytes_need_no_driver("") {
        let context = open();
        let mut memory = Memory::alloc(&context, 0).unwrap();
        assert_eq!((memory.address(), memory.len()), (0, 0));
        memory.write(0, &[]).unwrap();
        memory.read(0, &mut []).unwrap();
        memory.fill_u8(0, 1, 0).unwrap();
        drop(memory);
        assert!(calls().is_empty());
    }

    fn outside_the_memory("") {
        let context = open();
        let mut memory = Memory::alloc(&context, 8).unwrap();
        calls();
        for error in [
            memory.write(6, &[0; 3]).unwrap_err(),
            memory.read(9, &mut []).unwrap_err(),
            memory.read(usize::MAX, &mut [0]).unwrap_err(),
            memory.fill_u8(0, 0, 9).unwrap_err(),
            memory.fill_u8(4, 0, usize::MAX).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Argument { .. }), "{error}");
        }
        assert!(calls().is_empty());
    }

    fn out_of_memory_names_both_amounts("") {
        let context = open();
        let _taken = Memory::alloc(&context, 1 << 29).unwrap();
        // The second amount is beyond what the driver takes for a size at all.
        for bytes in [(1 << 29) + 1, usize::MAX] {
            match Memory::alloc(&context, bytes).unwrap_err() {
                Error::OutOfMemory { device, needed, free } => {
                    assert_eq!(device, "cuda:0 (Fake GPU)");
                    assert_eq!((needed, free), (bytes as u64, 1 << 29));
                }
                other => panic!("{other}"),
            }
        }
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
        use crate::{Device, Shape, gpu::registry, product, timing::Operands};
        let device = Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let mut operands = Operands::new(&device, Shape::new(5, 4, 3).unwrap(), 1).unwrap();
        calls();
        // Twice: the second time they are looked up no more.
        for time in 0..2 {
            for (entry, _) in registry::products() {
                let Operands { a, b, c } = &mut operands;
                product::multiply(&stream, entry, a, b, c).unwrap();
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
        let device = crate::Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let [a, b] = [0; 2].map(|_| device.zeros::<f32>(512).unwrap());
        let mut c = device.zeros::<f32>(512).unwrap();
        let kernel = &gpu::lessons::vec_add::vec_add;
        let mut launch = |cluster| {
            let config = LaunchConfig { cluster, ..LaunchConfig::new([2, 1, 1], [256, 1, 1]) };
            calls();
            // SAFETY: as many elements as threads.
            unsafe { stream.launch(kernel, &config, (512, &a, &b, &mut c)) }.unwrap();
            let looked_up = |call: &String| call.starts_with("cuModule") || call.starts_with("cuFunc");
            calls().into_iter().filter(|call| !looked_up(call)).collect::<Vec<_>>()
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

    fn matrices_are_encoded_for_a_kernel("kernels=1") {
        let device = crate::Device::cuda(0).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let (mut a, mut c) = (device.zeros::<f32>(2000).unwrap(), device.zeros::<f32>(32).unwrap());
        let start = a.address() + 16;
        calls();
        let boxes = || crate::Boxes::new(a.view(4..).unwrap(), [3, 10, 18], [640, 64], SHAPE).unwrap();
        let mut slots = (bind(boxes(), &streams[0]).unwrap(),).slots();
        assert_eq!(calls(), ["cuTensorMapEncodeTiled"]);
        // SAFETY: a map is sixteen words.
        let words = unsafe { *slots.pointers().next().unwrap().cast::<[u64; 16]>() };
        // Extents, strides, the box; a float32, spans of 64 bytes, 256 bytes for the L2 cache.
        assert_eq!(words, [start, 18, 10, 3, 256, 2560, 16, 8, 1, 7, 2, 3, 0, 0, 0, 0]);
        // A launch reads them, as it reads a buffer.
        launch_boxes(&streams[0], boxes(), &mut c).unwrap();
        let launched = calls();
        assert!(launched.contains(&"launch takes_boxes".to_owned()), "{launched:?}");
        let mut pinned = device.pinned::<f32>(8).unwrap();
        let lines = crate::Lines { count: 1, len: 8, stride: 8 };
        streams[1].upload(&mut pinned, a.view_mut(..).unwrap(), lines).unwrap();
        assert!(calls().contains(&"cuStreamWaitEvent".into()), "what is written was read");
        let boxes = crate::Boxes::new(a.view(..).unwrap(), [1, 10, 18], [0, 64], SHAPE).unwrap();
        launch_boxes(&streams[0], boxes, &mut c).unwrap();
        assert!(calls().contains(&"cuStreamWaitEvent".into()), "what is read was written");
    }

    fn boxes_that_the_driver_refuses("kernels=1 cuTensorMapEncodeTiled=1") {
        let (error, address) = refuse_boxes();
        assert!(matches!(error, Error::Launch { .. }), "{error}");
        let expected = format!("kernel takes_boxes: map: at {address:#x}, the driver takes no TensorDescription {{");
        let text = error.to_string();
        assert!(text.starts_with(&expected) && text.contains("extents: [18, 10, 1]"), "{text}");
        assert!(!calls().iter().any(|call| call.starts_with("cuLaunch")));
    }

    fn boxes_on_a_device_without_the_accelerator("major=8 minor=9 kernels=1") {
        let expected = "kernel takes_boxes: map: cuda:0 (Fake GPU) has compute capability 8.9, a tensor map needs 9.0";
        assert_eq!(refuse_boxes().0.to_string(), expected);
        assert!(!calls().contains(&"cuTensorMapEncodeTiled".into()));
    }

    fn a_driver_older_than_tensor_maps("kernels=1 cuTensorMapEncodeTiled=302") {
        let expected = "no NVIDIA driver: libcuda.so.1 has no function cuTensorMapEncodeTiled: the driver is too old, \
                        update it to one of CUDA 12.0 or newer";
        assert_eq!(refuse_boxes().0.to_string(), expected);
    }

    fn boxes_elsewhere("kernels=1") {
        let (gpu, cpu) = (crate::Device::cuda(0).unwrap(), crate::Device::cpu());
        for (here, there) in [(&gpu, &cpu), (&cpu, &gpu)] {
            let (a, mut c) = (there.zeros::<f32>(2000).unwrap(), here.zeros::<f32>(32).unwrap());
            let boxes = crate::Boxes::new(a.view(..).unwrap(), [1, 10, 18], [0, 64], SHAPE).unwrap();
            let error = launch_boxes(&here.stream().unwrap(), boxes, &mut c).unwrap_err();
            let (here, there) = (here.name(), there.name());
            let expected = format!("kernel takes_boxes: map lies on {there}, the launch is on {here}");
            assert_eq!(error.to_string(), expected);
        }
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
