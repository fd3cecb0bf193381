//! Graphs: what is prepared, captured, launched and refused.

use super::*;
use crate::{
    Device, Gemm, Graph, GraphOperand, Lines, Matrix, MatrixView, MatrixViewMut, PlannedGemm,
    Shape, gemm::Request, product,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The operands of a graph of one product.
fn operands<'a>(
    a: MatrixView<'a, f32>,
    b: MatrixView<'a, f32>,
    c: MatrixViewMut<'a, f32>,
) -> [GraphOperand<'a>; 3] {
    [a.into(), b.into(), c.into()]
}

/// A product by a kernel that the tests' driver computes.
pub(super) fn simple() -> Gemm<'static, f32> {
    Gemm::new().kernel("gemm_f32_64x64x16").unwrap()
}

/// A product of partial products: it has a workspace.
pub(super) fn of_partials() -> Gemm<'static, f32> {
    simple().partials(4).unwrap()
}

/// Prepares and captures a product.
pub(super) fn graph(
    gemm: &Gemm<f32>,
    stream: &crate::Stream,
    [a, b, c]: &mut [Matrix<f32>; 3],
) -> Result<Graph> {
    gemm.prepare(stream, a.view(), b.view(), c.view_mut())?;
    stream.capture(|stream| gemm.launch(stream, a.view(), b.view(), c.view_mut()))
}

pub(super) fn launch(
    graph: &Graph,
    stream: &crate::Stream,
    [a, b, c]: &mut [Matrix<f32>; 3],
) -> Result<()> {
    graph.launch(stream, operands(a.view(), b.view(), c.view_mut()))
}

/// Runs `run` while another library captures the stream.
pub(super) fn in_capture_of_others<R>(
    device: &Device,
    raw: *mut c_void,
    run: impl FnOnce() -> R,
) -> R {
    device.make_current().unwrap();
    let mode = cuda_dyn::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: the callers' streams exist.
    unsafe { cuda_dyn::cuStreamBeginCapture_v2(raw.cast(), mode) }.unwrap();
    let outcome = run();
    let mut graph = std::ptr::null_mut();
    // SAFETY: as above. One handle is written.
    unsafe { cuda_dyn::cuStreamEndCapture(raw.cast(), &mut graph) }.unwrap();
    outcome
}

pub(super) fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Capture { .. }), "{error}");
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

/// The calls that say whether work is loaded, captured or done.
fn of_graphs() -> Vec<String> {
    calls_of("launch cuGraph cuStreamBegin cuStreamEnd cuModuleLoad cuMemAlloc cuStreamWait")
}

with_driver! {
    fn a_graph_does_what_was_captured("kernels=2 major=8") {
        let (device, stream, [a, b, _]) = opened_with(8);
        let other = square_matrices(&device, 8)[1].to_row_major().unwrap();
        let mut all = [a, b, Matrix::zeros(&device, 8, 8).unwrap()];
        calls();
        let gemm = simple();
        let [a, b, c] = &mut all;
        gemm.prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        assert_eq!(of_graphs(), ["cuModuleLoadDataEx"]);
        // A second time all is there.
        gemm.prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        assert_eq!(of_graphs(), [""; 0]);
        let graph = stream.capture(|stream| gemm.launch(stream, a.view(), b.view(), c.view_mut())).unwrap();
        let made = ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphDestroy"];
        assert_eq!(of_graphs(), made);
        assert_eq!((graph.device(), graph.workspace_bytes()), (&device, 0));
        // Nothing was computed until here.
        assert_eq!(c.to_row_major().unwrap(), [0.0; 64]);
        launch(&graph, &stream, &mut all).unwrap();
        assert_eq!(of_graphs(), ["cuGraphLaunch", "launch gemm_f32_64x64x16"]);
        let expected = |all: &mut [Matrix<f32>; 3]| {
            let mut c = Matrix::zeros(&device, 8, 8).unwrap();
            simple().run(&stream, all[0].view(), all[1].view(), c.view_mut()).unwrap();
            c.to_row_major().unwrap()
        };
        let first = expected(&mut all);
        assert_eq!(all[2].to_row_major().unwrap(), first);
        // Operands that were changed are seen, on another stream, too.
        all[0].write_row_major(&other).unwrap();
        launch(&graph, &device.stream().unwrap(), &mut all).unwrap();
        let second = expected(&mut all);
        assert_eq!(all[2].to_row_major().unwrap(), second);
        assert_ne!(first, second);
        calls();
        drop(graph);
        assert_eq!(of_graphs(), ["cuGraphExecDestroy"]);
    }

    fn a_planned_product_is_captured("kernels=2 major=8") {
        let (device, stream, [a, b, mut c]) = opened_with(16);
        let request = Request::dense(Shape::new(16, 16, 16).unwrap());
        let product: PlannedGemm<f32> = simple().plan_on(&device, &request).unwrap();
        product.prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        let graph = stream.capture(|stream| product.launch(stream, a.view(), b.view(), c.view_mut())).unwrap();
        graph.launch(&stream, operands(a.view(), b.view(), c.view_mut())).unwrap();
        let mut expected = Matrix::zeros(&device, 16, 16).unwrap();
        simple().run(&stream, a.view(), b.view(), expected.view_mut()).unwrap();
        assert_eq!(c.to_row_major().unwrap(), expected.to_row_major().unwrap());
    }

    fn what_is_not_prepared_is_refused("kernels=1") {
        let (_device, stream, mut all) = opened_with(256);
        let [a, b, c] = &mut all;
        let mut capture = |gemm: &Gemm<f32>| {
            stream.capture(|stream| gemm.launch(stream, a.view(), b.view(), c.view_mut()))
        };
        calls();
        let error = message(capture(&simple()));
        assert!(error.contains("kernel gemm_f32_64x64x16 is not loaded"), "{error}");
        assert!(error.contains("Gemm::prepare"), "{error}");
        assert!(!of_graphs().contains(&"cuModuleLoadDataEx".to_owned()));
        // Loaded by a launch, and with the stream's own workspace, of which a graph takes nothing.
        let [a, b, c] = &mut all;
        of_partials().launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        let mut capture = |gemm: &Gemm<f32>| {
            stream.capture(|stream| gemm.launch(stream, a.view(), b.view(), c.view_mut()))
        };
        calls();
        let error = message(capture(&of_partials()));
        let bytes = 4 * 256 * 256 * 4;
        assert!(error.contains(&format!("{bytes} bytes of workspace are not reserved")), "{error}");
        assert!(!of_graphs().iter().any(|call| call.starts_with("cuMemAlloc")));
        // Without a workspace it was loaded already.
        drop(capture(&simple()).unwrap());
        // The failed captures have ended. What is prepared can be captured.
        let graph = graph(&of_partials(), &stream, &mut all).unwrap();
        assert_eq!(graph.workspace_bytes(), bytes);
        calls();
        launch(&graph, &stream, &mut all).unwrap();
        let calls = of_graphs();
        let launches = calls.iter().filter(|call| call.starts_with("launch ")).collect::<Vec<_>>();
        assert!(launches.len() >= 2 && launches[0] == "launch gemm_f32_64x64x16", "{calls:?}");
    }

    fn in_a_capture_nothing_is_waited_for_or_copied("kernels=1 major=8") {
        let (device, stream, mut all) = opened_with(8);
        let mut pinned = device.pinned::<f32>(8).unwrap();
        let event = stream.record().unwrap();
        let graph = graph(&simple(), &stream, &mut all).unwrap();
        let line = Lines { count: 1, len: 8, stride: 8 };
        let [a, b, c] = &mut all;
        stream.capture(|captured| {
            assert!(message(captured.synchronize()).contains("a wait for the stream"));
            assert!(message(captured.record()).contains("an event"));
            assert!(message(captured.wait_for(&event)).contains("a wait for an event"));
            assert!(message(captured.capture(|_| Ok(()))).contains("another capture"));
            assert!(message(captured.prepare(|_| Ok(()))).contains("a preparation"));
            let up = captured.upload(&mut pinned, a.buffer_mut(), line);
            assert!(message(up).contains("pinned memory"));
            let down = captured.download(a.buffer().all(), &mut pinned, line);
            assert!(message(down).contains("pinned memory"));
            let replayed = graph.launch(captured, operands(a.view(), b.view(), c.view_mut()));
            assert!(message(replayed).contains("the launch of a graph"));
            let run = simple().run(captured, a.view(), b.view(), c.view_mut());
            assert!(message(run).contains("a wait for the stream"));
            let slices = crate::gemm::PreparedMatrix::new(captured, a.view());
            assert!(message(slices).contains("the slices of a matrix"));
            Ok(())
        })
        .unwrap();
        // The same in a preparation.
        let prepared = stream.prepare(|stream| simple().run(stream, a.view(), b.view(), c.view_mut()));
        assert!(message(prepared).contains("a wait for the stream"));
        let prepared = stream.prepare(|stream| crate::gemm::PreparedMatrix::new(stream, a.view()).map(drop));
        assert!(message(prepared).contains("the slices of a matrix"));
        // What only the driver sees, it refuses, and the capture with it.
        let error = stream.capture(|stream| {
            let read = c.to_row_major().unwrap_err();
            assert!(read.to_string().contains("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"), "{read}");
            simple().launch(stream, a.view(), b.view(), c.view_mut())
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("cuStreamEndCapture") && error.contains("INVALIDATED"), "{error}");
        // All the streams go on.
        stream.synchronize().unwrap();
        graph.launch(&stream, operands(a.view(), b.view(), c.view_mut())).unwrap();
    }

    fn a_part_of_the_columns_is_no_operand("kernels=1 major=8") {
        let (_device, stream, [a, b, mut c]) = opened_with(8);
        // Rows 0 to 2, whose elements the left seven columns of all rows enclose.
        let gemm = simple();
        let rows = a.view().sub(0..3, 0..8).unwrap();
        gemm.prepare(&stream, rows, b.view(), c.view_mut().sub(0..3, 0..8).unwrap()).unwrap();
        let graph = stream
            .capture(|stream| gemm.launch(stream, rows, b.view(), c.view_mut().sub(0..3, 0..8).unwrap()))
            .unwrap();
        let (left, _right) = c.view_mut().split_cols_at(7).unwrap();
        let refused = graph.launch(&stream, [a.view().into(), b.view().into(), left.into()]);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("must have no gaps"), "{error}");
        graph.launch(&stream, [a.view().into(), b.view().into(), c.view_mut().into()]).unwrap();
    }

    fn a_capture_ends_with_a_panic("kernels=1 major=8") {
        let (device, stream) = opened();
        let panics = || stream.capture(|_| -> Result<()> { panic!("in a capture") });
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let mut all = square_matrices(&device, 8);
        let graph = graph(&simple(), &stream, &mut all).unwrap();
        launch(&graph, &stream, &mut all).unwrap();
    }

    fn operands_are_compared_at_each_launch("kernels=1 major=8 devices=2") {
        let (device, stream, mut all) = opened_with(8);
        let graph = graph(&simple(), &stream, &mut all).unwrap();
        let mut others = square_matrices(&device, 8);
        let elsewhere = Device::cuda(1).unwrap();
        let mut far = square_matrices(&elsewhere, 8);
        calls();
        let refuses = |operands: Vec<GraphOperand>, words: &[&str]| {
            let error = graph.launch(&stream, operands).unwrap_err();
            assert!(matches!(error, Error::Argument { .. }), "{error}");
            for word in words {
                assert!(error.to_string().contains(word), "{word}: {error}");
            }
        };
        let [a, b, c] = &mut all;
        let of_b = format!("operands = none of 256 bytes at {:#x}: the graph reads these", b.view().elements().address().addr());
        refuses(vec![a.view().into(), c.view_mut().into()], &[&of_b]);
        refuses(vec![a.view().into(), others[1].view().into(), c.view_mut().into()], &[&of_b]);
        refuses(vec![a.view().into(), b.view().into(), c.view().into()], &["the graph writes these"]);
        let part = b.view().sub(0..7, 0..8).unwrap();
        refuses(vec![a.view().into(), part.into(), c.view_mut().into()], &[&of_b]);
        // SAFETY: b's memory, which nobody writes meanwhile.
        let of_words = unsafe { device.foreign::<u32>(b.buffer().address(), 64) }.unwrap();
        let other_type = format!("operands = u32 at {:#x}: must be of f32, as captured", b.buffer().address());
        refuses(vec![a.view().into(), of_words.all().into(), c.view_mut().into()], &[&other_type]);
        let of_device = "must be on the graph's device, cuda:0";
        refuses(vec![a.view().into(), b.view().into(), c.view_mut().into(), far[0].view().into()], &[of_device]);
        let error = launch(&graph, &elsewhere.stream().unwrap(), &mut far).unwrap_err();
        assert!(error.to_string().contains(of_device), "{error}");
        let error = launch(&graph, &Device::cpu().stream().unwrap(), &mut others).unwrap_err();
        assert!(error.to_string().starts_with("stream = cpu"), "{error}");
        assert_eq!(of_graphs(), [""; 0]);
        // More than the graph uses, in any order, written where it is read, buffers in place of
        // matrices.
        let [a, b, c] = &mut all;
        let [x, ..] = &mut others;
        let more: [GraphOperand; 4] =
            [c.buffer_mut().into(), x.view_mut().into(), b.buffer().all().into(), a.view_mut().into()];
        graph.launch(&stream, more).unwrap();
        assert_eq!(of_graphs(), ["cuGraphLaunch", "launch gemm_f32_64x64x16"]);
    }

    fn two_graphs_share_no_workspace("kernels=1") {
        let (_device, stream, mut all) = opened_with(256);
        let bytes = 4 * 256 * 256 * 4;
        let counts = || {
            let counts = crate::testing::counts();
            (counts.allocations, counts.frees)
        };
        let start = counts();
        let gemm = of_partials();
        let one = graph(&gemm, &stream, &mut all).unwrap();
        let two = graph(&gemm, &stream, &mut all).unwrap();
        let [a, b, c] = &mut all;
        gemm.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        // Each graph has a workspace of its own, and so has the stream.
        assert_eq!(counts(), (start.0 + 3, start.1));
        assert_eq!((one.workspace_bytes(), two.workspace_bytes()), (bytes, bytes));
        for graph in [&one, &two, &one] {
            launch(graph, &stream, &mut all).unwrap();
        }
        // A launch allocates nothing.
        assert_eq!(counts(), (start.0 + 3, start.1));
        calls();
        drop(one);
        assert_eq!(counts(), (start.0 + 3, start.1 + 1));
        // The workspace outlives the graph.
        let ends = calls().into_iter().filter(|call| call.contains("Destroy") || call.contains("Free"));
        assert_eq!(ends.collect::<Vec<_>>(), ["cuGraphExecDestroy", "cuMemFree_v2"]);
        launch(&two, &stream, &mut all).unwrap();
        // What is reserved and not captured goes with the stream.
        let [a, b, c] = &mut all;
        gemm.prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        assert_eq!(counts(), (start.0 + 4, start.1 + 1));
        drop(stream);
        assert_eq!(counts(), (start.0 + 4, start.1 + 3));
    }

    fn a_graph_keeps_its_kernels_loaded("kernels=1 major=8") {
        let (device, stream, mut all) = opened_with(8);
        let graph = graph(&simple(), &stream, &mut all).unwrap();
        calls();
        // The library forgets its kernels. Others may have their names now.
        // SAFETY: the tests' driver runs no kernels.
        unsafe { device.load_ptx("other.ptx", PTX) }.unwrap();
        assert!(!calls().contains(&"cuModuleUnload".to_owned()));
        launch(&graph, &stream, &mut all).unwrap();
        calls();
        drop(graph);
        let ends = calls().into_iter().filter(|call| call.starts_with("cuGraph") || call.starts_with("cuModule"));
        assert_eq!(ends.collect::<Vec<_>>(), ["cuGraphExecDestroy", "cuModuleUnload"]);
    }

    fn other_streams_are_waited_for_at_the_launch("kernels=1 major=8") {
        let device = Device::cuda(0).unwrap();
        let [stream, other] = [0; 2].map(|_| device.stream().unwrap());
        let mut all = square_matrices(&device, 8);
        let tiled16 = product::find("tiled16").unwrap();
        let mut target = Matrix::zeros(&device, 8, 8).unwrap();
        let write_a = |a: &mut Matrix<f32>, b: &Matrix<f32>| product::multiply(&other, tiled16, b, b, a).unwrap();
        // Another stream writes A and reads B, before and within the capture. Neither becomes a
        // part of it.
        let [a, b, c] = &mut all;
        write_a(a, b);
        simple().prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        calls();
        let graph = stream
            .capture(|captured| {
                simple().launch(captured, a.view(), b.view(), c.view_mut())?;
                product::multiply(&other, tiled16, b, b, &mut target)
            })
            .unwrap();
        let calls_of_capture = calls();
        assert!(!calls_of_capture.iter().any(|call| call.starts_with("cuEvent") || call.starts_with("cuStreamWait")));
        assert!(calls_of_capture.contains(&"launch tiled16".to_owned()), "{calls_of_capture:?}");
        launch(&graph, &stream, &mut all).unwrap();
        // For A, which the other stream has written. C is this stream's.
        assert_eq!(of_graphs(), ["cuStreamWaitEvent", "cuGraphLaunch", "launch gemm_f32_64x64x16"]);
        // The next writer of A waits for the graph.
        let [a, b, _] = &mut all;
        write_a(a, b);
        assert_eq!(of_graphs(), ["cuStreamWaitEvent", "launch tiled16"]);
    }

    fn somebody_elses_capture_is_seen("kernels=1") {
        let (device, stream, [a, b, mut c]) = opened_with(100);
        let mut launch = |gemm: &Gemm<f32>| gemm.launch(&stream, a.view(), b.view(), c.view_mut());
        let raw = stream.raw_cuda_stream().unwrap();
        let refused = in_capture_of_others(&device, raw, || launch(&simple()));
        assert!(message(refused).contains("is not loaded"));
        launch(&simple()).unwrap();
        in_capture_of_others(&device, raw, || {
            assert!(message(launch(&of_partials())).contains("needs workspace"));
            launch(&simple()).unwrap();
        });
        // The stream's workspace is not for a graph that it does not know, though it is large
        // enough.
        launch(&of_partials()).unwrap();
        let refused = in_capture_of_others(&device, raw, || launch(&of_partials()));
        assert!(message(refused).contains("needs workspace"));
    }

    fn dependents_in_graphs("version=12030 kernels=1") {
        assert_eq!(attributes_of_a_captured_dependent(), ["dependent"]);
    }

    fn no_dependents_in_graphs_of_older_drivers("version=12020 kernels=1") {
        assert_eq!(attributes_of_a_captured_dependent(), [""; 0]);
    }

    fn a_driver_without_graphs("kernels=1 major=8 cuStreamBeginCapture_v2=302") {
        let (device, stream) = opened();
        let error = graph(&simple(), &stream, &mut square_matrices(&device, 8)).unwrap_err();
        assert!(error.to_string().contains("cuStreamBeginCapture_v2"), "{error}");
    }
}

/// The attributes of a dependent kernel's launch in a capture.
fn attributes_of_a_captured_dependent() -> Vec<String> {
    let (_device, stream, mut c) = with_begins_early();
    let config = LaunchConfig::new([4, 1, 1], [32, 1, 1]);
    // SAFETY: the tests' driver runs no kernels.
    let mut run =
        |stream: &crate::Stream| unsafe { stream.launch(&begins_early, &config, (&mut c,)) };
    stream.prepare(&mut run).unwrap();
    calls();
    drop(stream.capture(&mut run).unwrap());
    calls().into_iter().filter(|call| call == "dependent").collect()
}

/// The CPU device has no graphs. A preparation there launches nothing.
#[test]
fn on_the_cpu_there_are_none() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let a = Matrix::from_row_major(&device, 2, 2, &[1.0f32; 4]).unwrap();
    let mut c = Matrix::from_row_major(&device, 2, 2, &[7.0f32; 4]).unwrap();
    let before = crate::testing::counts();
    Gemm::new().prepare(&stream, a.view(), a.view(), c.view_mut()).unwrap();
    assert_eq!(crate::testing::counts().launches, before.launches);
    assert_eq!(c.to_row_major().unwrap(), [7.0; 4]);
    let error =
        stream.capture(|stream| Gemm::new().launch(stream, a.view(), a.view(), c.view_mut()));
    assert_eq!(error.unwrap_err().to_string(), "stream = cpu: must be on a GPU to be captured");
}
