//! Graphs on a real device: the bits of a hundred launches, changed operands, two graphs at once.

use super::{
    device::device,
    graphs::{graph, launch, message, simple},
    *,
};
use crate::{Compute, Device, Gemm, Matrix};
use fake::on_machine;

/// Products of every kind of launch: copies, slices, partial products, words that are zero, tails in the background.
fn products(device: &Device) -> Vec<(Gemm<'static, f32>, [usize; 3])> {
    let gemm = Gemm::<f32>::new();
    let mut all = vec![
        (gemm, [256, 512, 1024]),
        (gemm, [300, 200, 131]),
        (gemm, [3, 1000, 5000]),
        (gemm.compute(Compute::Tf32), [256, 256, 512]),
        (gemm.compute(Compute::Tf32), [301, 203, 131]),
    ];
    if device.cuda_properties().is_some_and(|properties| properties.capability == (9, 0)) {
        all.push((gemm.partials(4).unwrap(), [64, 64, 8192]));
        for compute in [Compute::Fp32Bf16x6, Compute::Fp32F16x3] {
            let gemm = gemm.compute(compute);
            all.extend([
                (gemm, [512, 512, 256]),
                (gemm, [300, 190, 77]),
                (gemm.partials(2).unwrap(), [256, 256, 4096]),
            ]);
        }
    }
    all
}

fn matrices(device: &Device, [m, n, k]: [usize; 3], seed: u64) -> [Matrix<f32>; 3] {
    let random = |seed, rows, cols| {
        Matrix::from_row_major(device, rows, cols, &uniform(seed, rows * cols)).unwrap()
    };
    [random(seed, m, k), random(seed + 1, k, n), Matrix::zeros(device, m, n).unwrap()]
}

fn bits(matrix: &Matrix<f32>) -> Vec<u32> {
    matrix.to_row_major().unwrap().into_iter().map(f32::to_bits).collect()
}

/// What a launch without a graph computes.
fn launched(gemm: &Gemm<f32>, stream: &crate::Stream, [a, b, c]: &[Matrix<f32>; 3]) -> Vec<u32> {
    let mut own = Matrix::zeros(stream.device(), c.rows(), c.cols()).unwrap();
    gemm.run(stream, a.view(), b.view(), own.view_mut()).unwrap();
    bits(&own)
}

on_machine! {
    fn a_hundred_launches_of_a_graph_give_the_same_bits() {
        if device().is_none() {
            return;
        }
        let device = Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        for (gemm, size) in products(&device) {
            let mut all = matrices(&device, size, 1);
            let graph = graph(&gemm, &stream, &mut all).unwrap();
            let expected = launched(&gemm, &stream, &all);
            for number in 0..100 {
                all[2].buffer_mut().fill_bytes(0xff).unwrap();
                launch(&graph, &stream, &mut all).unwrap();
                assert!(bits(&all[2]) == expected, "{size:?}, launch {number}");
            }
            // Queued one behind the other, without a wait.
            all[2].buffer_mut().fill_bytes(0xff).unwrap();
            for _ in 0..100 {
                launch(&graph, &stream, &mut all).unwrap();
            }
            assert!(bits(&all[2]) == expected, "{size:?}");
            println!("{size:?}: {} bytes of workspace", graph.workspace_bytes());
        }
    }

    fn changed_operands_are_seen() {
        if device().is_none() {
            return;
        }
        let device = Device::cuda(0).unwrap();
        let [stream, other] = [0; 2].map(|_| device.stream().unwrap());
        for (gemm, size) in products(&device) {
            let mut all = matrices(&device, size, 1);
            let graph = graph(&gemm, &stream, &mut all).unwrap();
            for seed in 10..15 {
                let [a, b, _] = matrices(&device, size, seed);
                all[0].write_row_major(&a.to_row_major().unwrap()).unwrap();
                all[1].write_row_major(&b.to_row_major().unwrap()).unwrap();
                launch(&graph, if seed % 2 == 0 { &stream } else { &other }, &mut all).unwrap();
                assert!(bits(&all[2]) == launched(&gemm, &stream, &all), "{size:?}, seed {seed}");
            }
        }
    }

    fn two_graphs_run_at_once() {
        if device().is_none() {
            return;
        }
        let device = Device::cuda(0).unwrap();
        let streams = [0; 2].map(|_| device.stream().unwrap());
        for (gemm, size) in products(&device) {
            // One stream captures both.
            let mut all = [matrices(&device, size, 1), matrices(&device, size, 50)];
            let [first, second] = &mut all;
            let graphs = [graph(&gemm, &streams[0], first).unwrap(), graph(&gemm, &streams[0], second).unwrap()];
            let expected = [0, 1].map(|index| launched(&gemm, &streams[0], &all[index]));
            for _ in 0..50 {
                for index in [0, 1] {
                    launch(&graphs[index], &streams[index], &mut all[index]).unwrap();
                }
            }
            for index in [0, 1] {
                assert!(bits(&all[index][2]) == expected[index], "{size:?}, graph {index}");
            }
        }
    }

    fn a_graph_of_several_products() {
        if device().is_none() {
            return;
        }
        let device = Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let gemm = Gemm::<f32>::new();
        let [x, w, mut y] = matrices(&device, [128, 128, 128], 1);
        let mut z = Matrix::zeros(&device, 128, 128).unwrap();
        let layers = |stream: &crate::Stream, y: &mut Matrix<f32>, z: &mut Matrix<f32>| {
            gemm.launch(stream, x.view(), w.view(), y.view_mut())?;
            gemm.launch(stream, y.view(), w.view(), z.view_mut())
        };
        stream.prepare(|stream| layers(stream, &mut y, &mut z)).unwrap();
        let graph = stream.capture(|stream| layers(stream, &mut y, &mut z)).unwrap();
        for _ in 0..10 {
            y.buffer_mut().fill_bytes(0xff).unwrap();
            let operands = [x.view().into(), w.view().into(), y.view_mut().into(), z.view_mut().into()];
            graph.launch(&stream, operands).unwrap();
        }
        let replayed = bits(&z);
        layers(&stream, &mut y, &mut z).unwrap();
        assert!(bits(&z) == replayed);
    }

    fn a_launch_that_was_not_prepared_is_refused_by_name() {
        if device().is_none() {
            return;
        }
        let device = Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let [a, b, mut c] = matrices(&device, [64, 64, 64], 1);
        let error = message(stream.capture(|stream| simple().launch(stream, a.view(), b.view(), c.view_mut())));
        assert!(error.contains("kernel gemm_f32_64x64x16 is not loaded"), "{error}");
        // The device is as it was.
        simple().run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
    }
}
