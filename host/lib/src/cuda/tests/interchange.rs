//! Memory and streams of other libraries: used as they are, and given back.

use super::{device::on_gpu, graphs::in_capture_of_others, graphs::simple, *};
use crate::{
    Device, Matrix, MatrixView, MatrixViewMut,
    buffer::AnyView,
    interchange::{
        Scope,
        dlpack::{self, Tensor},
        scope,
    },
};
use fake::on_machine;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// Another library: a stream and memory of its own, by the driver's functions.
struct Other {
    device: Device,
    stream: *mut c_void,
    memory: Vec<u64>,
}

const N: usize = 8;
const LEN: usize = N * N;

impl Other {
    /// With three matrices of N x N.
    fn new(device: &Device) -> Self {
        device.make_current().unwrap();
        let (mut stream, mut memory) = (null_mut(), vec![0; 3]);
        for address in &mut memory {
            // SAFETY: one address is written.
            unsafe { cuda_dyn::cuMemAlloc_v2(address, LEN * 4) }.unwrap();
            // SAFETY: the bytes are there.
            unsafe { cuda_dyn::cuMemsetD8_v2(*address, 0, LEN * 4) }.unwrap();
        }
        // SAFETY: one handle is written.
        unsafe { cuda_dyn::cuStreamCreateWithPriority(&mut stream, 1, 0) }.unwrap();
        Other { device: device.clone(), stream: stream.cast(), memory }
    }

    fn write(&self, index: usize, values: &[f32]) {
        assert_eq!(values.len(), LEN);
        // SAFETY: as many bytes on both sides.
        unsafe { cuda_dyn::cuMemcpyHtoD_v2(self.memory[index], values.as_ptr().cast(), LEN * 4) }
            .unwrap();
        // No other stream waits for it.
        // SAFETY: it takes nothing.
        unsafe { cuda_dyn::cuCtxSynchronize() }.unwrap();
    }

    fn read(&self, index: usize) -> Vec<f32> {
        let mut values = vec![0.0f32; LEN];
        // SAFETY: as many bytes on both sides.
        unsafe {
            cuda_dyn::cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), self.memory[index], LEN * 4)
        }
        .unwrap();
        values
    }

    /// Destroys the stream. The tests' driver refuses a later use.
    fn destroy_stream(&mut self) {
        // SAFETY: nobody uses it after this.
        unsafe { cuda_dyn::cuStreamDestroy_v2(self.stream.cast()) }.unwrap();
        self.stream = null_mut();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.device.make_current().unwrap();
        for &address in &self.memory {
            // SAFETY: nobody uses the memory after this.
            unsafe { cuda_dyn::cuMemFree_v2(address) }.unwrap();
        }
        if !self.stream.is_null() {
            self.destroy_stream();
        }
    }
}

/// C = A B of the other library's matrices, in a scope.
fn multiply<'s>(other: &Other, scope: &'s Scope<'s, '_>, stream: &crate::Stream) -> Result<()> {
    // SAFETY: the tests keep memory and stream until the scope has ended.
    let (a, b, mut c) = unsafe {
        let a = scope.raw::<f32>(other.memory[0], LEN, other.stream)?;
        let b = scope.raw::<f32>(other.memory[1], LEN, other.stream)?;
        (a, b, scope.raw_mut::<f32>(other.memory[2], LEN, other.stream)?)
    };
    let (a, b) =
        (MatrixView::new(a.view(), N, N, [N, 1])?, MatrixView::new(b.view(), N, N, [N, 1])?);
    // Nothing is copied: the addresses are the other library's.
    assert_eq!([a, b].map(|it| it.elements().address().addr() as u64), other.memory[..2]);
    assert_eq!(c.view().address().addr() as u64, other.memory[2]);
    let c = MatrixViewMut::new(c.view_mut(), N, N, [N, 1])?;
    simple().launch(stream, a, b, c).map(drop)
}

/// Another library with A and B, and their product.
fn with_matrices(device: &Device) -> (Other, Vec<f32>) {
    let other = Other::new(device);
    let [a, b, mut c] = square_matrices(device, N);
    other.write(0, &a.to_row_major().unwrap());
    other.write(1, &b.to_row_major().unwrap());
    let stream = device.stream().unwrap();
    simple().run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
    (other, c.to_row_major().unwrap())
}

/// The calls by which streams wait for each other, and launches.
fn of_streams() -> Vec<String> {
    calls_of("launch cuStreamWait cuStreamCreate cuStreamDestroy cuMemcpy cuCtxSync cuStreamSync")
}

with_driver! {
    fn memory_of_another_library_is_used_and_given_back("kernels=2 major=8") {
        let device = Device::cuda(0).unwrap();
        let (mut other, expected) = with_matrices(&device);
        let stream = device.stream().unwrap();
        calls();
        scope(&device, |scope| {
            multiply(&other, scope, &stream)?;
            // Our stream waits for that of A's, B's and C's owner.
            let wait = "cuStreamWaitEvent";
            assert_eq!(of_streams(), [wait, wait, wait, "launch gemm_f32_64x64x16"]);
            Ok(())
        })
        .unwrap();
        // For each of the three the owner's stream waits for ours. Then a stream that follows it
        // takes its place here.
        let wait = "cuStreamWaitEvent";
        assert_eq!(of_streams(), [wait, wait, wait, "cuStreamCreateWithPriority", wait, "cuStreamDestroy_v2"]);
        assert_eq!(other.read(2), expected);
        other.destroy_stream();
    }

    fn a_stream_of_another_library_is_used_and_given_back("kernels=2 major=8") {
        let device = Device::cuda(0).unwrap();
        let (mut other, expected) = with_matrices(&device);
        let [a, b, mut c] = square_matrices(&device, N);
        calls();
        scope(&device, |scope| {
            // SAFETY: the stream exists until the scope has ended.
            let stream = unsafe { scope.raw_stream(other.stream) }?;
            assert_eq!(stream.raw_cuda_stream(), Some(other.stream));
            multiply(&other, scope, &stream)?;
            simple().launch(&stream, a.view(), b.view(), c.view_mut())?;
            // The memory's owner uses the same stream: nothing waits.
            assert_eq!(of_streams(), ["launch gemm_f32_64x64x16"; 2]);
            Ok(())
        })
        .unwrap();
        assert_eq!(other.read(2), expected);
        assert_eq!(c.to_row_major().unwrap(), expected);
        // C was written on a stream that is no more. Its next user waits for the stream that has
        // taken its place.
        simple().launch(&device.stream().unwrap(), a.view(), b.view(), c.view_mut()).unwrap();
        other.destroy_stream();
        calls();
        let stream = device.stream().unwrap();
        simple().launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        assert!(of_streams().contains(&"cuStreamWaitEvent".to_owned()));
    }

    fn a_foreign_stream_is_given_back_when_it_is_dropped("kernels=2 major=8") {
        let device = Device::cuda(0).unwrap();
        let mut other = Other::new(&device);
        let [a, b, mut c] = square_matrices(&device, N);
        // SAFETY: the stream exists until this is dropped.
        let foreign = unsafe { device.foreign_stream(other.stream) }.unwrap();
        assert_eq!(foreign.raw_cuda_stream(), Some(other.stream));
        simple().launch(&foreign, a.view(), b.view(), c.view_mut()).unwrap();
        drop(foreign);
        other.destroy_stream();
        let stream = device.stream().unwrap();
        calls();
        simple().launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        // For C alone: A and B were only read there.
        assert_eq!(of_streams(), ["cuStreamWaitEvent", "launch gemm_f32_64x64x16"]);
        // The default stream is one of the device's context.
        // SAFETY: it always exists.
        let foreign = unsafe { device.foreign_stream(null_mut()) }.unwrap();
        simple().run(&foreign, a.view(), b.view(), c.view_mut()).unwrap();
    }

    fn after_an_error_a_panic_and_a_leak_all_is_given_back("kernels=2 major=8") {
        let (device, stream) = opened();
        for expected_end in ["error", "panic", "done"] {
            let end = || match expected_end {
                "error" => Err(Error::Interrupted),
                "panic" => panic!("in a scope"),
                _ => Ok(()),
            };
            let (mut other, expected) = with_matrices(&device);
            let mut c = Matrix::zeros(&device, N, N).unwrap();
            let run = || {
                scope(&device, |scope| {
                    multiply(&other, scope, &stream)?;
                    // SAFETY: memory and stream exist until the scope has ended.
                    let (foreign, a) = unsafe {
                        let a = scope.raw::<f32>(other.memory[0], LEN, other.stream)?;
                        (scope.raw_stream(other.stream)?, a)
                    };
                    let view = MatrixView::new(a.view(), N, N, [N, 1])?;
                    simple().launch(&foreign, view, view, c.view_mut())?;
                    forget((foreign, a));
                    end()
                })
            };
            let ended = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Ok(())) => "done",
                Ok(Err(_)) => "error",
                Err(_) => "panic",
            };
            assert_eq!(ended, expected_end);
            // The tests' driver refuses the destroyed stream.
            other.destroy_stream();
            let mut square = Matrix::zeros(&device, N, N).unwrap();
            simple().run(&stream, c.view(), c.view(), square.view_mut()).unwrap();
            assert_eq!(other.read(2), expected);
        }
    }

    fn streams_that_their_library_captures_are_refused("kernels=2 major=8") {
        let device = Device::cuda(0).unwrap();
        let (other, expected) = with_matrices(&device);
        let [a, b, mut c] = square_matrices(&device, N);
        let refused = |result: Result<()>| {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Capture { .. }), "{error}");
        };
        // Before the scope, and within.
        in_capture_of_others(&device, other.stream, || {
            // SAFETY: the stream exists.
            refused(scope(&device, |scope| unsafe { scope.raw_stream(other.stream) }.map(drop)));
        });
        scope(&device, |scope| {
            // SAFETY: as above.
            let stream = unsafe { scope.raw_stream(other.stream) }?;
            in_capture_of_others(&device, other.stream, || {
                refused(simple().launch(&stream, a.view(), b.view(), c.view_mut()).map(drop));
                refused(stream.record().map(drop));
            });
            simple().launch(&stream, a.view(), b.view(), c.view_mut()).map(drop)
        })
        .unwrap();
        assert_eq!(c.to_row_major().unwrap(), expected);
    }

    fn streams_of_other_contexts_are_refused("kernels=2 major=8 stream_of=1 devices=2") {
        let device = Device::cuda(0).unwrap();
        let other = Other::new(&device);
        // SAFETY: the stream exists.
        let error = unsafe { device.foreign_stream(other.stream) }.unwrap_err().to_string();
        assert!(error.contains("of another context") && error.contains("primary context of cuda:0"), "{error}");
        let error = scope(&device, |scope| multiply(&other, scope, &device.stream()?)).unwrap_err();
        assert!(error.to_string().contains("primary context of cuda:0"), "{error}");
        assert_eq!(device.raw_cuda_context(), Some(0x1000 as *mut c_void));
        assert_eq!(Device::cuda(1).unwrap().raw_cuda_context(), Some(0x1001 as *mut c_void));
    }

    fn memory_of_other_devices_is_refused("memory_of=1") {
        let device = Device::cuda(0).unwrap();
        let other = Other::new(&device);
        let error = scope(&device, |scope| multiply(&other, scope, &device.stream()?)).unwrap_err();
        assert!(error.to_string().contains("must be memory of cuda:0"), "{error}");
    }

    fn memory_of_other_contexts_is_refused("memory_in=4097") {
        let device = Device::cuda(0).unwrap();
        let other = Other::new(&device);
        let error = scope(&device, |scope| multiply(&other, scope, &device.stream()?)).unwrap_err();
        assert!(error.to_string().ends_with("of another context: must be memory of the primary context of cuda:0 (Fake GPU)"), "{error}");
        // As DLPack says nothing of contexts.
        let given = dlpack::export(Matrix::<f32>::zeros(&device, 2, 2).unwrap(), None).unwrap();
        // SAFETY: it is refused, and given back as it is.
        let error = unsafe { Tensor::<f32>::import(&device, given) }.unwrap_err();
        assert!(error.to_string().contains("of another context"), "{error}");
        // SAFETY: it is the caller's still, and is not used after this.
        unsafe { (given.as_ref().deleter.unwrap())(given.as_ptr()) };
    }

    fn memory_of_no_context_is_taken("kernels=2 major=8 memory_in=0") {
        let device = Device::cuda(0).unwrap();
        let (other, expected) = with_matrices(&device);
        scope(&device, |scope| multiply(&other, scope, &device.stream()?)).unwrap();
        // SAFETY: it takes nothing.
        unsafe { cuda_dyn::cuCtxSynchronize() }.unwrap();
        assert_eq!(other.read(2), expected);
    }

    fn addresses_that_the_driver_does_not_know_are_refused("") {
        let device = Device::cuda(0).unwrap();
        scope(&device, |scope| {
            // SAFETY: it is refused.
            let error = unsafe { scope.raw::<f32>(0x40, 4, null_mut()) }.unwrap_err();
            assert!(error.to_string().contains("0x40: must be memory of cuda:0"), "{error}");
            // SAFETY: there are no elements.
            assert!(unsafe { scope.raw::<f32>(0, 0, null_mut()) }?.view().is_empty());
            Ok(())
        })
        .unwrap();
    }
}

with_driver! {
    fn a_stream_of_another_device_waits_for_nobody_and_is_refused("kernels=1 major=8 devices=2") {
        let (device, elsewhere, cpu) = (Device::cuda(0).unwrap(), Device::cuda(1).unwrap(), Device::cpu());
        let streams = [cpu.stream().unwrap(), elsewhere.stream().unwrap()];
        for stream in &streams {
            let limit = format!("stream = {}: must be of cuda:0, as the memory", stream.device().name());
            let matrix = || square_matrices(&device, N)[0].to_row_major().and_then(|all| Matrix::from_row_major(&device, N, N, &all)).unwrap();
            let refused = [
                dlpack::export(matrix(), Some(stream)).map(drop),
                dlpack::export_versioned(matrix(), Some(stream)).map(drop),
                dlpack::export_shared(Arc::new(matrix()), Some(stream)).map(drop),
                matrix().buffer().all().address_on(stream).map(drop),
                matrix().buffer_mut().address_on(stream).map(drop),
            ];
            for refused in refused {
                assert_eq!(refused.unwrap_err().to_string(), limit);
            }
        }
        // The other way round.
        let here = device.stream().unwrap();
        let matrix = Matrix::<f32>::zeros(&cpu, N, N).unwrap();
        assert!(matrix.buffer().all().address_on(&here).is_err());
        assert!(dlpack::export(matrix, Some(&here)).is_err());
        // An event is waited for on the host, by a stream that has no later time for it.
        let event = here.record().unwrap();
        calls();
        streams[0].wait_for(&event).unwrap();
        assert!(calls().contains(&"cuEventSynchronize".to_owned()));
    }

    fn a_wait_on_the_host_forgets_no_stream("kernels=1 major=8") {
        let device = Device::cuda(0).unwrap();
        let [first, second] = [0; 2].map(|_| device.stream().unwrap());
        let [a, b, mut c] = square_matrices(&device, N);
        simple().launch(&first, a.view(), b.view(), c.view_mut()).unwrap();
        // The wait of an export. What is launched elsewhere in the middle of it has to wait, too.
        c.view().elements().buffer().wait_for_uses().unwrap();
        calls();
        simple().launch(&second, a.view(), b.view(), c.view_mut()).unwrap();
        assert!(calls().contains(&"cuStreamWaitEvent".to_owned()));
    }

    fn a_wait_that_fails_forgets_no_stream("kernels=1 major=8 cuStreamSynchronize=700") {
        let device = Device::cuda(0).unwrap();
        let streams = [0; 3].map(|_| device.stream().unwrap());
        let [a, b, mut c] = square_matrices(&device, N);
        let mut others = [0; 2].map(|_| Matrix::zeros(&device, N, N).unwrap());
        simple().launch(&streams[0], a.view(), b.view(), c.view_mut()).unwrap();
        for (stream, other) in streams.iter().zip(&mut others) {
            simple().launch(stream, c.view(), c.view(), other.view_mut()).unwrap();
        }
        calls();
        let error = c.view().elements().buffer().wait_for_uses().unwrap_err();
        assert!(matches!(error, Error::Driver { .. }), "{error}");
        // All were waited for, also after the first had failed.
        let count = |name: &str| calls().iter().filter(|call| *call == name).count();
        assert_eq!(count("cuStreamSynchronize"), 3);
        // And all are known.
        AnyView::from(c.view_mut().into_elements()).address_on(&streams[2]).unwrap();
        assert_eq!(count("cuStreamWaitEvent"), 3);
    }
}

on_machine! {
    fn memory_and_streams_by_raw_handles_on_a_gpu() {
        let Some(device) = on_gpu() else { return };
        let (mut other, expected) = with_matrices(&device);
        let own = device.stream().unwrap();
        for _ in 0..20 {
            other.write(2, &[0.0; LEN]);
            scope(&device, |scope| {
                multiply(&other, scope, &own)?;
                // SAFETY: the stream exists until the scope has ended.
                let its = unsafe { scope.raw_stream(other.stream) }?;
                multiply(&other, scope, &its)
            })
            .unwrap();
            // The owner waits for its own stream alone.
            // SAFETY: the stream exists.
            unsafe { cuda_dyn::cuStreamSynchronize(other.stream.cast()) }.unwrap();
            assert_eq!(other.read(2), expected);
        }
        let [a, b, mut c] = square_matrices(&device, N);
        // SAFETY: the stream exists until this is dropped.
        let foreign = unsafe { device.foreign_stream(other.stream) }.unwrap();
        simple().launch(&foreign, a.view(), b.view(), c.view_mut()).unwrap();
        drop(foreign);
        // SAFETY: the stream exists while work is queued on it, and is abandoned after that.
        let abandoned = unsafe { device.foreign_stream(other.stream) }.unwrap();
        simple().launch(&abandoned, a.view(), b.view(), c.view_mut()).unwrap();
        other.destroy_stream();
        abandoned.abandon().unwrap();
        // C is remembered as written by a stream that is no more.
        let mut square = Matrix::zeros(&device, N, N).unwrap();
        simple().run(&own, c.view(), c.view(), square.view_mut()).unwrap();
        assert_eq!(c.to_row_major().unwrap(), expected);
    }
}

/// The CPU device has no streams to share.
#[test]
fn on_the_cpu_there_is_no_scope_for_a_gpus_memory() {
    let device = Device::cpu();
    // SAFETY: it is refused.
    let stream = unsafe { device.foreign_stream(null_mut()) };
    assert!(stream.unwrap_err().to_string().starts_with("device = cpu: must be a GPU"));
    let run = scope(&device, |scope| {
        // SAFETY: it is refused.
        unsafe { scope.raw::<f32>(0, 0, null_mut()) }.map(drop)
    });
    assert!(run.unwrap_err().to_string().starts_with("device = cpu: must be a GPU"));
    assert_eq!(device.raw_cuda_context(), None);
}
