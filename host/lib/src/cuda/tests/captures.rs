//! What is dropped in a capture, and what a capture of another library is told by: both leave the
//! graph whole.

use super::{
    device::on_gpu,
    graphs::{graph, in_capture_of_others, launch, message, of_partials, simple},
    *,
};
use crate::{
    Device, Gemm, Graph, Lines, Matrix, Pinned,
    gemm::Scalar,
    interchange::{
        dlpack::{self, Tensor},
        scope,
    },
};
use fake::{all_calls, on_machine};
use simt::Bf16;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a program may drop in a capture: each of them frees memory, waits, or unloads.
struct Owned {
    _matrix: Matrix<f32>,
    _pinned: Pinned<f32>,
    _tensor: Tensor<f32>,
    _graph: Graph,
}

impl Owned {
    /// With work that uses them.
    fn new(device: &Device) -> Self {
        let stream = device.stream().unwrap();
        let mut matrix = Matrix::zeros(device, 8, 8).unwrap();
        let mut pinned = device.pinned::<f32>(8).unwrap();
        let line = Lines { count: 1, len: 8, stride: 8 };
        stream.upload(&mut pinned, matrix.buffer_mut(), line).unwrap();
        let given = dlpack::export(Matrix::<f32>::zeros(device, 8, 8).unwrap(), None).unwrap();
        // SAFETY: nobody else has it.
        let mut tensor = unsafe { Tensor::<f32>::import(device, given) }.unwrap();
        let a = matrix.view();
        simple().launch(&stream, a, a, tensor.matrix_mut().unwrap()).unwrap();
        let mut all = square_matrices(device, 256);
        let graph = graph(&of_partials(), &stream, &mut all).unwrap();
        launch(&graph, &stream, &mut all).unwrap();
        Owned { _matrix: matrix, _pinned: pinned, _tensor: tensor, _graph: graph }
    }
}

/// The calls that free something or wait for something, and those that begin and end a capture,
/// each name once.
fn of_releases() -> Vec<String> {
    let parts = ["Free", "Synchronize", "ExecDestroy", "Unload", "BeginCapture", "EndCapture"];
    let mut names = Vec::new();
    for call in calls() {
        if parts.iter().any(|part| call.contains(part)) && !names.contains(&call) {
            names.push(call);
        }
    }
    names
}

/// Checks that a product queues nothing on a lent stream while its library captures it. Returns the
/// number of copies that it queues otherwise.
fn refused_while_lent<T: Scalar>(
    gemm: &Gemm<T>,
    stream: &crate::Stream,
    raw: *mut c_void,
) -> usize {
    let device = stream.device();
    let [a, b, mut c] = [0; 3].map(|_| Matrix::<T>::zeros(device, 101, 101).unwrap());
    // What is queued on the stream.
    let of_stream = |calls: Vec<String>| {
        let parts = ["cuLaunch", "cuMemcpy", "cuMemset", "cuStreamWait", "cuEventRecord"];
        let is = |call: &String| parts.iter().any(|part| call.starts_with(part));
        calls.into_iter().filter(is).collect::<Vec<_>>()
    };
    gemm.launch(stream, a.view(), b.view(), c.view_mut()).unwrap();
    calls();
    gemm.launch(stream, a.view(), b.view(), c.view_mut()).unwrap();
    let queued = of_stream(calls());
    assert!(!queued.is_empty());
    in_capture_of_others(device, raw, || {
        calls();
        let refused = gemm.launch(stream, a.view(), b.view(), c.view_mut());
        assert!(message(refused).contains("lent to a scope, and captured by its library"));
        assert_eq!(of_stream(calls()), [""; 0]);
    });
    queued.iter().filter(|call| call.starts_with("cuMemcpy")).count()
}

/// The order in which a capture drops [`Owned`].
const AFTERWARDS: [&str; 7] = [
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuMemFree_v2",
    "cuEventSynchronize",
    "cuMemFreeHost",
    "cuStreamSynchronize",
    "cuGraphExecDestroy",
];

thread_local! {
    /// Dropped when its thread ends.
    static LAST: std::cell::RefCell<Option<AtEnd>> = const { std::cell::RefCell::new(None) };
}

/// Prepares and captures a product when it is dropped, and sends what came of it.
struct AtEnd {
    stream: crate::Stream,
    matrices: [Matrix<f32>; 3],
    outcome: std::sync::mpsc::Sender<[Result<()>; 2]>,
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        let AtEnd { stream, matrices: [a, b, c], outcome } = self;
        let prepared = simple().prepare(stream, a.view(), b.view(), c.view_mut());
        let captured =
            stream.capture(|stream| simple().launch(stream, a.view(), b.view(), c.view_mut()));
        outcome.send([prepared.map(drop), captured.map(drop)]).unwrap();
    }
}

with_driver! {
    fn a_thread_that_ends_prepares_and_captures_nothing("kernels=1 major=8") {
        let (send, receive) = std::sync::mpsc::channel();
        let ends = move || {
            let device = Device::cuda(0).unwrap();
            let (stream, matrices) = (device.stream().unwrap(), square_matrices(&device, 8));
            LAST.set(Some(AtEnd { stream, matrices, outcome: send }));
            // The thread learns of what is released after a capture later than of `LAST`. So that
            // is gone first.
            drop(device.zeros::<f32>(1).unwrap());
        };
        std::thread::spawn(ends).join().unwrap();
        let [prepared, captured] = receive.recv().unwrap();
        prepared.unwrap();
        assert!(message(captured).contains("on a thread that ends"));
    }

    fn what_a_capture_drops_is_released_afterwards("kernels=1 late=1") {
        let (device, stream, [a, b, mut c]) = opened_with(8);
        simple().prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        let frees = || crate::testing::counts().frees;
        for end in ["graph", "error", "panic"] {
            let owned = Owned::new(&device);
            calls();
            let before = frees();
            let capture = || {
                stream.capture(|captured| {
                    drop(owned);
                    // Not yet.
                    assert_eq!(frees(), before);
                    simple().launch(captured, a.view(), b.view(), c.view_mut())?;
                    match end {
                        "error" => Err(Error::Interrupted),
                        "panic" => panic!("in a capture"),
                        _ => Ok(()),
                    }
                })
            };
            let ended = catch_unwind(AssertUnwindSafe(capture));
            assert_eq!(of_releases(), AFTERWARDS, "{end}");
            // The matrix, the tensor's memory, the graph's workspace.
            assert_eq!(frees(), before + 3);
            match end {
                "graph" => assert!(ended.unwrap().is_ok()),
                "error" => assert!(matches!(ended.unwrap().unwrap_err(), Error::Interrupted)),
                _ => assert!(ended.is_err()),
            }
            // From now on a drop is a free again.
            drop(Matrix::<f32>::zeros(&device, 8, 8).unwrap());
            assert_eq!(frees(), before + 4);
        }
    }

    fn another_thread_is_not_kept_from_releasing("kernels=1 major=8") {
        let (device, stream) = opened();
        let matrix = Matrix::<f32>::zeros(&device, 8, 8).unwrap();
        let frees = || crate::testing::counts().frees;
        stream
            .capture(|_| {
                let freed = move || {
                    drop(matrix);
                    frees()
                };
                assert_eq!(std::thread::spawn(freed).join().unwrap(), 1);
                Ok(())
            })
            .unwrap();
    }

    fn a_module_is_unloaded_after_a_capture("kernels=1 major=8") {
        let (_device, stream, [a, b, mut c]) = opened_with(8);
        simple().run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        let module = Module::load(&Context::open(0).unwrap(), "test.ptx", PTX).unwrap();
        calls();
        stream
            .capture(|_| {
                drop(module);
                Ok(())
            })
            .unwrap();
        assert_eq!(of_releases(), ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuModuleUnload", "cuGraphExecDestroy"]);
    }

    fn kernels_of_a_foreign_graph_stay_loaded("kernels=1 major=8 foreign=1") {
        let device = Device::cuda(0).unwrap();
        let [a, b, mut c] = square_matrices(&device, 8);
        let own = device.stream().unwrap();
        // Whether the module of a kernel is unloaded that was launched on the stream, and then in a
        // capture of `captured`.
        let mut unloads = |stream: &crate::Stream, captured: Option<*mut c_void>| {
            let mut launch = || {
                simple().launch(stream, a.view(), b.view(), c.view_mut()).unwrap();
            };
            launch();
            if let Some(raw) = captured {
                in_capture_of_others(&device, raw, &mut launch);
                // A later launch, in no capture, changes nothing.
                launch();
            }
            calls();
            // The library forgets its kernels.
            // SAFETY: the tests' driver runs no kernels.
            unsafe { device.load_ptx("other.ptx", PTX) }.unwrap();
            calls().contains(&"cuModuleUnload".to_owned())
        };
        assert!(unloads(&own, None));
        let raw = 0x40 as *mut c_void;
        // SAFETY: with `foreign=1` any handle is a stream.
        let foreign = unsafe { device.foreign_stream(raw) }.unwrap();
        // A stream of ours whose handle others have is as one of theirs.
        let of_own = own.raw_cuda_stream().unwrap();
        for (stream, raw) in [(&foreign, raw), (&own, of_own)] {
            assert!(unloads(stream, None));
            assert!(!unloads(stream, Some(raw)));
            // The next module does not stay.
            assert!(unloads(stream, None));
        }
    }

    fn modules_are_unloaded_with_the_device("kernels=1 major=8 foreign=1") {
        let counts = |captures: bool| {
            calls();
            for _ in 0..5 {
                let device = Device::cuda(0).unwrap();
                let raw = 0x40 as *mut c_void;
                // SAFETY: as above.
                let foreign = unsafe { device.foreign_stream(raw) }.unwrap();
                let [a, b, mut c] = square_matrices(&device, 8);
                let mut launch = || {
                    simple().launch(&foreign, a.view(), b.view(), c.view_mut()).unwrap();
                };
                launch();
                if captures {
                    in_capture_of_others(&device, raw, launch);
                }
            }
            let calls = calls();
            ["cuModuleLoadDataEx", "cuModuleUnload"].map(|name| calls.iter().filter(|&call| call == name).count())
        };
        assert_eq!(counts(false), [5, 5]);
        // A graph of others may outlive the device.
        assert_eq!(counts(true), [5, 0]);
    }

    fn a_lent_stream_that_is_captured_gets_nothing("kernels=1 foreign=1") {
        let device = Device::cuda(0).unwrap();
        let raw = 0x40 as *mut c_void;
        scope(&device, |scope| {
            // SAFETY: with `foreign=1` any handle is a stream. Nobody does anything with it.
            let stream = unsafe { scope.raw_stream(raw) }?;
            for gemm in [simple(), of_partials()] {
                assert_eq!(refused_while_lent(&gemm, &stream, raw), 0);
            }
            // Its last step copies C from the workspace.
            let tma_store = Gemm::<Bf16>::new().kernel("tensor_tma_store").unwrap();
            assert_eq!(refused_while_lent(&tma_store, &stream, raw), 1);
            Ok(())
        })
        .unwrap();
    }

    fn a_capture_within_a_capture_is_refused("kernels=1 major=8") {
        let device = Device::cuda(0).unwrap();
        let [stream, other] = [0; 2].map(|_| device.stream().unwrap());
        let [a, b, mut c] = square_matrices(&device, 8);
        simple().prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        calls();
        let outer = stream.capture(|captured| {
            for stream in [&stream, &other] {
                let refused = stream.capture(|_| Ok(()));
                assert!(message(refused).contains("another capture of the same thread"));
                let refused = stream.prepare(|_| Ok(()));
                assert!(message(refused).contains("prepare before the capture"));
            }
            // Another thread captures what it likes.
            let elsewhere = || other.capture(|_| Ok(())).map(drop);
            std::thread::scope(|threads| threads.spawn(elsewhere).join().unwrap())?;
            simple().launch(captured, a.view(), b.view(), c.view_mut())
        });
        let begun = calls().iter().filter(|call| *call == "cuStreamBeginCapture_v2").count();
        assert_eq!(begun, 2);
        let graph = outer.unwrap();
        graph.launch(&stream, [a.view().into(), b.view().into(), c.view_mut().into()]).unwrap();
        assert!(calls().contains(&"launch gemm_f32_64x64x16".to_owned()));
        // After an error and a panic, too, the thread captures again.
        assert!(stream.capture(|_| -> Result<()> { Err(Error::Interrupted) }).is_err());
        stream.capture(|_| Ok(())).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| stream.capture(|_| -> Result<()> { panic!() }))).is_err());
        stream.capture(|_| Ok(())).unwrap();
    }

    fn a_stream_that_follows_a_foreign_capture_is_asked("kernels=1 foreign=1") {
        let device = Device::cuda(0).unwrap();
        let [own, other] = [0; 2].map(|_| device.stream().unwrap());
        let mut all = square_matrices(&device, 256);
        let asks = |stream: &crate::Stream, [a, b, c]: &mut [Matrix<f32>; 3]| {
            all_calls();
            of_partials().launch(stream, a.view(), b.view(), c.view_mut()).unwrap();
            all_calls().contains(&"cuStreamIsCapturing".to_owned())
        };
        asks(&own, &mut all);
        assert!(!asks(&own, &mut all));
        own.wait_for(&other.record().unwrap()).unwrap();
        assert!(!asks(&own, &mut all));
        let raw = 0x40 as *mut c_void;
        // SAFETY: as above.
        let foreign = unsafe { device.foreign_stream(raw) }.unwrap();
        own.wait_for(&foreign.record().unwrap()).unwrap();
        assert!(!asks(&own, &mut all));
        in_capture_of_others(&device, raw, || {
            own.wait_for(&foreign.record().unwrap()).unwrap();
            // A stream of ours does not follow it by itself.
            let [a, b, c] = &mut all;
            let refused = of_partials().launch(&foreign, a.view(), b.view(), c.view_mut());
            assert!(message(refused).contains("needs workspace"));
        });
        assert!(asks(&own, &mut all));
        // The other one asked for that one, whose work it followed.
        assert!(asks(&other, &mut all) && !asks(&other, &mut all));
    }
}

on_machine! {
    fn what_a_capture_drops_is_released_on_a_gpu() {
        let Some(device) = on_gpu() else { return };
        let stream = device.stream().unwrap();
        let [a, b, mut c] = square_matrices(&device, 64);
        simple().run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        let expected = c.to_row_major().unwrap();
        simple().prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        for _ in 0..20 {
            let owned = Owned::new(&device);
            let before = crate::testing::counts().frees;
            let graph = stream.capture(|captured| {
                drop(owned);
                simple().launch(captured, a.view(), b.view(), c.view_mut())
            });
            let graph = graph.unwrap();
            assert_eq!(crate::testing::counts().frees, before + 3);
            c.buffer_mut().fill_bytes(0xff).unwrap();
            graph.launch(&stream, [a.view().into(), b.view().into(), c.view_mut().into()]).unwrap();
            assert_eq!(c.to_row_major().unwrap(), expected);
        }
    }

    fn captures_of_others_and_within_captures_on_a_gpu() {
        let Some(device) = on_gpu() else { return };
        let [stream, other] = [0; 2].map(|_| device.stream().unwrap());
        let [a, b, mut c] = square_matrices(&device, 256);
        simple().run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        let expected = c.to_row_major().unwrap();
        // The capture around the refused one is not disturbed.
        let graph = stream.capture(|captured| {
            assert!(message(other.capture(|_| Ok(()))).contains("another capture of the same thread"));
            simple().launch(captured, a.view(), b.view(), c.view_mut())
        });
        let graph = graph.unwrap();
        c.buffer_mut().fill_bytes(0xff).unwrap();
        graph.launch(&stream, [a.view().into(), b.view().into(), c.view_mut().into()]).unwrap();
        assert_eq!(c.to_row_major().unwrap(), expected);
        // A product that needs workspace leaves the capture of others as it is, and one that needs
        // none is captured.
        c.buffer_mut().fill_bytes(0xff).unwrap();
        let raw = other.raw_cuda_stream().unwrap();
        in_capture_of_others(&device, raw, || {
            let refused = of_partials().launch(&other, a.view(), b.view(), c.view_mut());
            assert!(message(refused).contains("needs workspace"));
            simple().launch(&other, a.view(), b.view(), c.view_mut()).unwrap();
        });
        simple().launch(&other, a.view(), b.view(), c.view_mut()).unwrap();
        assert_eq!(c.to_row_major().unwrap(), expected);
    }
}
