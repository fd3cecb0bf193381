//! How many calls of the driver a product takes once all is loaded: the host's time is spent there.

use super::{
    graphs::{of_partials, simple},
    *,
};
use crate::{Compute, Device, Gemm, interchange::scope};
use fake::all_calls;
use std::ptr::null_mut;

/// The calls of the second of two launches: of the thread's context, of whether the stream is
/// captured, and others.
fn of_second(gemm: &Gemm<f32>, stream: &crate::Stream) -> [usize; 3] {
    let [a, b, mut c] = square_matrices(stream.device(), 256);
    gemm.launch(stream, a.view(), b.view(), c.view_mut()).unwrap();
    all_calls();
    gemm.launch(stream, a.view(), b.view(), c.view_mut()).unwrap();
    let calls = all_calls();
    let count = |is: &dyn Fn(&str) -> bool| calls.iter().filter(|name| is(name)).count();
    let (is_switch, is_question) =
        (|name: &str| name.starts_with("cuCtx"), |name: &str| name == "cuStreamIsCapturing");
    let is_other = |name: &str| name.starts_with("cu") && !is_switch(name) && !is_question(name);
    [count(&is_switch), count(&is_question), count(&is_other)]
}

with_driver! {
    fn a_product_makes_no_call_besides("kernels=1 foreign=1") {
        let device = Device::cuda(0).unwrap();
        let emulated = Gemm::new().compute(Compute::Fp32Bf16x6).kernel("wgmma_bf16x6_64x128x64_nn").unwrap();
        // Questions on a stream of our own, on one of another library, and in a scope; launches and
        // tensor maps.
        let [own, foreign, lent] = [0, 1, 1];
        for (gemm, others) in [
            (simple(), 1),
            // Two kernels, a workspace.
            (of_partials(), 2),
            // Two kernels, a workspace, the stream's counters, two tensor maps.
            (emulated, 4),
        ] {
            let stream = device.stream().unwrap();
            // The context is asked for, pushed and popped once for all launches.
            assert_eq!(of_second(&gemm, &stream), [3, own, others]);
            // SAFETY: the default stream always exists.
            let of_others = unsafe { device.foreign_stream(null_mut()) }.unwrap();
            assert_eq!(of_second(&gemm, &of_others), [3, foreign, others]);
            scope(&device, |scope| {
                // SAFETY: as above.
                assert_eq!(of_second(&gemm, &*unsafe { scope.raw_stream(null_mut()) }?), [3, lent, others]);
                Ok(())
            })
            .unwrap();
            // A stream of ours whose handle others have is as one of theirs.
            stream.raw_cuda_stream();
            assert_eq!(of_second(&gemm, &stream), [3, foreign, others]);
        }
    }

    fn the_context_that_is_current_is_not_pushed("kernels=1") {
        let device = Device::cuda(0).unwrap();
        device.make_current().unwrap();
        assert_eq!(of_second(&simple(), &device.stream().unwrap()), [1, 0, 1]);
        assert_eq!(of_second(&of_partials(), &device.stream().unwrap()), [1, 0, 2]);
    }
}
