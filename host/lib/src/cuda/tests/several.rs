//! A product over several GPUs: what each stream is given, and which waits for which.

use super::fake::{self, calls, with_driver};
use super::uniform;
use crate::gemm::Algorithm;
use crate::{Devices, Gemm, Matrix, ShardLayout, Sharded};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const SIZE: [usize; 3] = [130, 700, 70];

/// A by rows, B by columns, C by rows. A third place has no rows.
fn product(devices: &Devices) -> crate::Result<Vec<f32>> {
    let ([m, n, k], places) = (SIZE, devices.len());
    let mut bounds = vec![0, 64, m];
    bounds.resize(places + 1, m);
    let (rows, cols) = (ShardLayout::Rows(bounds), ShardLayout::cols(n, places));
    let a = Sharded::from_row_major(devices, m, k, rows.clone(), &uniform(1, m * k))?;
    let b = Sharded::from_row_major(devices, k, n, cols, &uniform(2, k * n))?;
    let mut c = Sharded::zeros(devices, m, n, rows)?;
    calls();
    Gemm::new().alpha(2.0).run_sharded_by(Algorithm::AllGather, devices, &a, &b, &mut c)?;
    c.gather()
}

/// The product on the first GPU alone.
fn of_one() -> Vec<f32> {
    let (device, [m, n, k]) = (crate::Device::cuda(0).unwrap(), SIZE);
    let of = |seed, rows, cols| {
        Matrix::from_row_major(&device, rows, cols, &uniform(seed, rows * cols)).unwrap()
    };
    let (a, b, mut c) = (of(1, m, k), of(2, k, n), Matrix::zeros(&device, m, n).unwrap());
    Gemm::new()
        .alpha(2.0)
        .run(&device.stream().unwrap(), a.view(), b.view(), c.view_mut())
        .unwrap();
    c.to_row_major().unwrap()
}

/// When each kernel and each copy of a stream begins and ends, if each takes one unit and each
/// stream waits for what it is told.
fn timeline(trace: &[String]) -> HashMap<(usize, &'static str), Vec<[u64; 2]>> {
    let (mut streams, mut events) = (HashMap::<usize, u64>::new(), HashMap::<usize, u64>::new());
    let mut times = HashMap::<(usize, &'static str), Vec<[u64; 2]>>::new();
    let number = |text: &str| usize::from_str_radix(text, 16).unwrap();
    for line in trace {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["record", "on", stream, "as", event] => {
                events.insert(number(event), *streams.entry(number(stream)).or_default());
            }
            ["wait", "on", stream, "for", event] => {
                let end = streams.entry(number(stream)).or_default();
                *end = (*end).max(events[&number(event)]);
            }
            [what @ ("copy" | "kernel"), "on", stream] => {
                let end = streams.entry(number(stream)).or_default();
                let what = if what == "copy" { "copy" } else { "kernel" };
                times.entry((number(stream), what)).or_default().push([*end, *end + 1]);
                *end += 1;
            }
            _ => {}
        }
    }
    times
}

with_driver! {
    fn the_next_panel_travels_while_one_is_multiplied("devices=2 kernels=2 major=8 minor=0 late=1 trace=1") {
        let devices = Devices::of(&[0, 1]).unwrap();
        let result = product(&devices).unwrap();
        let trace = calls();
        let times = timeline(&trace);
        let first = times.keys().map(|(stream, _)| *stream).min().unwrap();
        for place in 0..2 {
            // Each place opens three streams: products, panels, and parts of C.
            let products = &times[&(first + 3 * place, "kernel")];
            let panels = &times[&(first + 3 * place + 1, "copy")];
            assert!(panels.len() >= 4 && products.len() == panels.len() + 1, "{trace:?}");
            // Nothing waits for what it does not need: no stream stands still.
            assert_eq!(products[0], [0, 1]);
            for (index, panel) in panels.iter().enumerate() {
                assert!(panel[1] <= products[index + 1][0], "{panels:?} {products:?}");
                assert!(panel[0] < products[index][1], "{panels:?} {products:?}");
            }
            assert_eq!(products[panels.len()], [panels.len() as u64, panels.len() as u64 + 1]);
        }
        assert_eq!(result, of_one());
    }

    fn one_gpu_twice("kernels=2 major=8 minor=0") {
        let devices = Devices::of(&[0, 0]).unwrap();
        assert_eq!((devices.len(), devices.to_string()), (2, "cuda:0, cuda:0".to_owned()));
        let result = product(&devices).unwrap();
        // A GPU needs no access to itself.
        assert!(!calls().iter().any(|call| call.contains("EnablePeerAccess")));
        assert_eq!(result, of_one());
    }

    fn all_gpus("devices=3") {
        calls();
        let devices = Devices::all().unwrap();
        assert_eq!(devices.to_string(), "cuda:0, cuda:1, cuda:2");
        let enabled = calls().iter().filter(|call| *call == "cuCtxEnablePeerAccess").count();
        assert_eq!(enabled, 6);
        // It was enabled before.
        assert_eq!(Devices::of(&[2, 1]).unwrap().len(), 2);
        assert_eq!(Devices::of(&[]).unwrap_err().to_string(), "devices = 0: must be at least one, and at most 256");
        assert!(Devices::of(&[0, 3]).unwrap_err().to_string().starts_with("cuda:3"));
    }

    fn a_gpu_without_access_to_another_is_named("devices=2 no_peer=1") {
        let error = Devices::of(&[0, 1]).unwrap_err().to_string();
        assert_eq!(
            error,
            "devices = cuda:1 (Fake GPU): must be able to access the memory of cuda:0 (Fake GPU)"
        );
        Devices::of(&[1]).unwrap();
    }

    fn a_gpu_that_fails_is_named("devices=2 kernels=2 major=8 minor=0 cuMemcpy3DPeerAsync=700") {
        let error = product(&Devices::of(&[0, 1]).unwrap()).unwrap_err();
        let words = error.to_string();
        assert!(words.starts_with("on place 0, cuda:0: cuMemcpy3DPeerAsync failed"), "{words}");
        assert_eq!(error.exit_code(), 4);
        // All streams were waited for.
        let waits = calls().iter().filter(|call| *call == "cuStreamQuery").count();
        assert_eq!(waits, 6);
    }

    fn a_gpu_that_fails_late_is_named("devices=2 kernels=2 major=8 minor=0 cuStreamQuery@1=700") {
        let words = product(&Devices::of(&[0, 1]).unwrap()).unwrap_err().to_string();
        assert!(words.starts_with("on place 1, cuda:1: cuStreamQuery failed"), "{words}");
        // The other one is as before.
        of_one();
    }

    fn a_gpu_that_hangs_is_an_error_in_time("devices=3 kernels=2 major=8 minor=0 hangs=1") {
        let devices = Devices::of(&[0, 1, 2]).unwrap().time_limit(Duration::from_millis(1500));
        // Another value for the same GPU.
        let other = crate::Device::cuda(1).unwrap();
        let memory = other.zeros::<f32>(64).unwrap();
        let start = Instant::now();
        let error = product(&devices).unwrap_err();
        let words = "on place 1, cuda:1: the work on cuda:1 had not ended after 1.5";
        assert!(error.to_string().starts_with(words), "{error}");
        assert_eq!(error.exit_code(), 4);
        assert!((Duration::from_secs(1)..Duration::from_secs(10)).contains(&start.elapsed()));
        // Nothing of it is waited for or freed: the driver of the tests would say so.
        for refused in [Devices::of(&[1]).map(drop), product(&devices).map(drop)] {
            let words = refused.unwrap_err().to_string();
            assert!(words.contains("had not ended after 1.5"), "{words}");
        }
        assert!(other.zeros::<f32>(64).unwrap_err().to_string().contains("had not ended"));
        drop((devices, memory, other));
        // The others can be used.
        let two = Devices::of(&[0, 2]).unwrap();
        assert_eq!(product(&two).unwrap(), of_one());
    }
}
