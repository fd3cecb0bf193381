//! Memory and streams of the crates `cust` and `cudarc`, and DLPack on a GPU.

use super::{device::device, graphs::simple, *};
use crate::{
    Device, Matrix, MatrixView, MatrixViewMut,
    interchange::{
        dlpack::{self, Tensor},
        scope,
    },
};
use fake::on_machine;

const N: usize = 64;
const LEN: usize = N * N;

fn is_there() -> bool {
    device().is_some()
}

/// The product, by memory and streams of our own.
fn expected(device: &Device, [a, b]: &[Vec<f32>; 2]) -> Vec<f32> {
    let stream = device.stream().unwrap();
    let of = |values: &[f32]| Matrix::from_row_major(device, N, N, values).unwrap();
    let mut c = Matrix::zeros(device, N, N).unwrap();
    simple().run(&stream, of(a).view(), of(b).view(), c.view_mut()).unwrap();
    c.to_row_major().unwrap()
}

fn operands() -> [Vec<f32>; 2] {
    [uniform(1, LEN), uniform(2, LEN)]
}

/// C = A B on one stream, and again on another, with addresses compared.
fn multiply(
    stream: &crate::Stream,
    [a, b]: [crate::BufferView<f32>; 2],
    c: crate::BufferViewMut<f32>,
    addresses: [u64; 3],
) -> Result<()> {
    let found = [a.address() as u64, b.address() as u64, c.as_view().address() as u64];
    assert_eq!(found, addresses, "nothing is copied");
    let (a, b) = (MatrixView::new(a, N, N, [N, 1])?, MatrixView::new(b, N, N, [N, 1])?);
    simple().launch(stream, a, b, MatrixViewMut::new(c, N, N, [N, 1])?).map(drop)
}

#[cfg(feature = "cust")]
fn with_cust() {
    use cust::memory::{CopyDestination, DeviceBuffer};
    let device = Device::cuda(0).unwrap();
    let all = operands();
    let expected = expected(&device, &all);
    cust::init(cust::CudaFlags::empty()).unwrap();
    // `cust` uses the thread's current context: it is the device's primary one, as `cust`'s own is.
    device.make_current().unwrap();
    let stream = cust::stream::Stream::new(cust::stream::StreamFlags::NON_BLOCKING, None).unwrap();
    let [a, b] = all.map(|values| DeviceBuffer::from_slice(&values).unwrap());
    let own = device.stream().unwrap();
    for on_its_stream in [false, true] {
        let mut c = DeviceBuffer::<f32>::zeroed(LEN).unwrap();
        // What `cust` copies and clears is on the default stream, for which no other stream waits.
        cust::context::CurrentContext::synchronize().unwrap();
        let addresses = [&a, &b, &c].map(|buffer| buffer.as_device_ptr().as_raw());
        scope(&device, |scope| {
            let (a, b) = (scope.cust(&a, &stream)?, scope.cust(&b, &stream)?);
            let mut c = scope.cust_mut(&mut c, &stream)?;
            let its = scope.cust_stream(&stream)?;
            assert_eq!(its.raw_cuda_stream(), Some(stream.as_inner().cast()));
            let stream = if on_its_stream { &its } else { &own };
            multiply(stream, [a.view(), b.view()], c.view_mut(), addresses)
        })
        .unwrap();
        // As after any launch by cust.
        stream.synchronize().unwrap();
        let mut values = vec![0.0; LEN];
        c.copy_to(&mut values).unwrap();
        assert_eq!(values, expected);
    }
}

#[cfg(feature = "cudarc")]
fn with_cudarc() {
    use cudarc::driver::{CudaContext, DevicePtr};
    let device = Device::cuda(0).unwrap();
    let all = operands();
    let expected = expected(&device, &all);
    let context = CudaContext::new(0).unwrap();
    let own = device.stream().unwrap();
    for stream in [context.default_stream(), context.new_stream().unwrap()] {
        let [a, b] = [0, 1].map(|index| stream.clone_htod(&all[index]).unwrap());
        for on_its_stream in [false, true] {
            let mut c = stream.alloc_zeros::<f32>(LEN).unwrap();
            let addresses = [&a, &b, &c].map(|slice| slice.device_ptr(&stream).0);
            scope(&device, |scope| {
                let (a, b, mut c) =
                    (scope.cudarc(&a)?, scope.cudarc(&b)?, scope.cudarc_mut(&mut c)?);
                let its = scope.cudarc_stream(&stream)?;
                assert_eq!(its.raw_cuda_stream(), Some(stream.cu_stream().cast()));
                let stream = if on_its_stream { &its } else { &own };
                multiply(stream, [a.view(), b.view()], c.view_mut(), addresses)
            })
            .unwrap();
            // The stream of C waits for the scope's work, and a copy on it, too.
            assert_eq!(stream.clone_dtoh(&c).unwrap(), expected);
            // Freed while our stream may still run.
            drop(c);
        }
    }
    // bf16 and f16 are those of the crate `half`.
    let stream = context.default_stream();
    let halves = stream.clone_htod(&[half::bf16::from_f32(1.5); 4]).unwrap();
    scope(&device, |scope| {
        let halves = scope.cudarc(&halves)?.view().to_vec()?;
        assert_eq!(halves, [crate::Bf16::from_f32(1.5); 4]);
        Ok(())
    })
    .unwrap();
}

/// A matrix goes out and comes in again, at the same address. How many times the memory was freed.
fn with_dlpack() -> u64 {
    let device = Device::cuda(0).unwrap();
    let all = operands();
    let expected = expected(&device, &all);
    let stream = device.stream().unwrap();
    let [a, b] = all.map(|values| Matrix::from_row_major(&device, N, N, &values).unwrap());
    let address = a.view().elements().address();
    let given = dlpack::export(a, Some(&stream)).unwrap();
    // SAFETY: nobody else has the tensor, and it is used on the stream that waits.
    let tensor = unsafe { Tensor::<f32>::import(&device, given) }.unwrap();
    assert_eq!(tensor.matrix().unwrap().elements().address(), address);
    let mut c = Matrix::zeros(&device, N, N).unwrap();
    simple().launch(&stream, tensor.matrix().unwrap(), b.view(), c.view_mut()).unwrap();
    let before = crate::testing::counts().frees;
    // This waits for the product, and frees A.
    drop(tensor);
    let freed = crate::testing::counts().frees - before;
    assert_eq!(c.to_row_major().unwrap(), expected);
    let wrong = Device::cpu();
    let given = dlpack::export(b, None).unwrap();
    // SAFETY: as above.
    let error = unsafe { Tensor::<f32>::import(&wrong, given) }.unwrap_err();
    assert!(
        error.to_string().contains("tensor's device = type 2, index 0: must be cpu"),
        "{error}"
    );
    // SAFETY: it is still ours.
    let back = unsafe { Tensor::<f32>::import(&device, given) }.unwrap();
    assert_eq!(back.shape(), [N, N]);
    freed
}

with_driver! {
    #[cfg(feature = "cust")]
    fn buffers_and_streams_of_cust("kernels=2 major=8 streams_of_others=1") {
        with_cust();
    }

    #[cfg(feature = "cudarc")]
    fn slices_and_streams_of_cudarc("kernels=2 major=8 streams_of_others=1") {
        with_cudarc();
    }

    fn a_tensor_is_deleted_after_the_work_on_it("kernels=2 major=8") {
        let (device, stream, [a, b, mut c]) = opened_with(8);
        let given = dlpack::export(a, Some(&stream)).unwrap();
        // SAFETY: nobody else has the tensor.
        let tensor = unsafe { Tensor::<f32>::import(&device, given) }.unwrap();
        simple().launch(&stream, tensor.matrix().unwrap(), b.view(), c.view_mut()).unwrap();
        calls();
        drop(tensor);
        let ends = calls().into_iter().filter(|call| call != "cuCtxSynchronize");
        assert_eq!(ends.collect::<Vec<_>>(), ["cuStreamSynchronize", "cuMemFree_v2"]);
        assert_eq!(with_dlpack(), 1);
    }

    fn a_tensor_whose_work_cannot_be_waited_for_is_leaked("kernels=2 major=8 cuStreamSynchronize=700") {
        let (device, stream, [a, b, mut c]) = opened_with(8);
        let given = dlpack::export_versioned(a, Some(&stream)).unwrap();
        // SAFETY: nobody else has the tensor.
        let tensor = unsafe { Tensor::<f32>::import_versioned(&device, given) }.unwrap();
        simple().launch(&stream, tensor.matrix().unwrap(), b.view(), c.view_mut()).unwrap();
        calls();
        drop(tensor);
        assert!(!calls().contains(&"cuMemFree_v2".to_owned()));
    }
}

/// Memory of a second context of the device, of the driver's pool, and of host and GPU.
#[cfg(feature = "cudarc")]
fn with_another_context() {
    use cudarc::driver::sys::{self, CUmemAttach_flags};
    use std::ptr::null_mut;
    let device = Device::cuda(0).unwrap();
    let (mut context, mut addresses) = (null_mut(), [0; 3]);
    // SAFETY: one handle or address is written; each is given back below. The second context is
    // current for its memory alone.
    unsafe {
        sys::cuCtxCreate_v4(&mut context, null_mut(), 0, 0).result().unwrap();
        sys::cuMemAlloc_v2(&mut addresses[0], 256).result().unwrap();
        device.make_current().unwrap();
        sys::cuMemAllocAsync(&mut addresses[1], 256, null_mut()).result().unwrap();
        let flag = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
        sys::cuMemAllocManaged(&mut addresses[2], 256, flag).result().unwrap();
        sys::cuCtxSynchronize().result().unwrap();
    }
    let outcomes = addresses.map(|address| {
        // SAFETY: nobody reads the elements.
        scope(&device, |scope| unsafe { scope.raw::<f32>(address, 64, null_mut()) }.map(drop))
    });
    let [other, pooled, managed] = outcomes;
    let error = other.unwrap_err().to_string();
    assert!(error.contains("of another context: must be memory of the primary context"), "{error}");
    pooled.unwrap();
    managed.unwrap();
    // SAFETY: nobody uses the memory or the context after this.
    unsafe {
        sys::cuMemFreeAsync(addresses[1], null_mut()).result().unwrap();
        sys::cuMemFree_v2(addresses[2]).result().unwrap();
        sys::cuCtxDestroy_v2(context).result().unwrap();
    }
}

on_machine! {
    #[cfg(feature = "cust")]
    fn buffers_and_streams_of_cust_on_a_gpu() {
        if is_there() {
            with_cust();
        }
    }

    #[cfg(feature = "cudarc")]
    fn slices_and_streams_of_cudarc_on_a_gpu() {
        if is_there() {
            with_cudarc();
        }
    }

    #[cfg(feature = "cudarc")]
    fn memory_of_another_context_on_a_gpu() {
        if is_there() {
            with_another_context();
        }
    }

    fn tensors_of_dlpack_on_a_gpu() {
        if is_there() {
            assert_eq!(with_dlpack(), 1);
        }
    }
}
