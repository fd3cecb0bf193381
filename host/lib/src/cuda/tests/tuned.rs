//! Tuned products on a GPU: what is timed, and when nothing may be.

use super::{graphs::in_capture_of_others, *};
use crate::{Gemm, Matrix, TuningCache, gemm::Reason};

/// The names of the kernels that were launched.
fn launched() -> Vec<String> {
    let name = |call: &String| call.strip_prefix("launch ").map(str::to_owned);
    calls().iter().filter_map(name).collect()
}

with_driver! {
    fn a_product_is_timed_once_on_a_gpu("kernels=2 major=8") {
        let (device, stream, [a, b, mut c]) = opened_with(16);
        let cache = TuningCache::new();
        let gemm = Gemm::new().tuned(&cache);
        calls();
        let first = gemm.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        let Reason::Tuned { timed, .. } = first.reason else { panic!("{}", first.reason) };
        let mut names = launched();
        // The product itself is the last one.
        assert_eq!(names.pop().as_deref(), Some(first.entry.name()));
        assert!(names.len() >= 2 * timed as usize, "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), timed as usize);
        let again = gemm.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        assert_eq!(launched(), [first.entry.name()]);
        assert_eq!(format!("{again:?}"), format!("{first:?}"));
        let mut expected = Matrix::zeros(&device, 16, 16).unwrap();
        let plain = Gemm::new().kernel(first.entry.name()).unwrap();
        plain.run(&stream, a.view(), b.view(), expected.view_mut()).unwrap();
        assert_eq!(c.to_row_major().unwrap(), expected.to_row_major().unwrap());
    }

    fn nothing_is_timed_in_a_capture("kernels=1 major=8") {
        let (device, stream, [a, b, mut c]) = opened_with(16);
        let cache = TuningCache::new();
        let gemm = Gemm::new().tuned(&cache);
        let graph = |c: &mut Matrix<f32>| {
            gemm.prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
            let launch = |stream: &crate::Stream| gemm.launch(stream, a.view(), b.view(), c.view_mut());
            stream.capture(launch).unwrap()
        };
        calls();
        drop(graph(&mut c));
        assert_eq!((launched().len(), cache.timed()), (0, 0));
        // Another library's.
        let raw = stream.raw_cuda_stream().unwrap();
        in_capture_of_others(&device, raw, || {
            calls();
            let choice = gemm.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
            assert!(!matches!(choice.reason, Reason::Tuned { .. }), "{}", choice.reason);
            assert!(!calls().iter().any(|call| call.contains("Synchronize")));
        });
        assert_eq!(cache.timed(), 0);
        // Once there is an answer, it is captured.
        gemm.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        drop(graph(&mut c));
        assert_eq!(cache.timed(), 1);
    }
}
