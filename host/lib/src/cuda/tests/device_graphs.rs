//! Graphs on a real device: the bits of a hundred launches, changed operands, two graphs at once.

use super::{
    device::on_gpu,
    graphs::{graph, launch, message, simple},
    *,
};
use crate::{
    Bf16, Compute, Device, F16, Gemm, Matrix, Shape,
    gemm::{Request, Scalar, Target},
};
use fake::on_machine;

/// Products of every kind of launch: copies, slices, partial products, words that are zero, tails
/// in the background.
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

/// Captures the product by every kernel that computes it, and compares three launches of each graph
/// with a launch without one. How many kernels there were.
fn each_kernel<T: Scalar>(stream: &crate::Stream, gemm: Gemm<T>, from: fn(f32) -> T) -> usize {
    let device = stream.device();
    let mut count = 0;
    for [m, n, k] in [[256, 256, 512], [300, 200, 136]] {
        let random = |seed, rows, cols| {
            let values = uniform(seed, rows * cols).into_iter().map(from).collect::<Vec<_>>();
            Matrix::from_row_major(device, rows, cols, &values).unwrap()
        };
        let (a, b) = (random(1, m, k), random(2, k, n));
        let [mut c, mut expected] = [0; 2].map(|_| Matrix::<T>::zeros(device, m, n).unwrap());
        let request = Request::dense(Shape::new(m as u64, n as u64, k as u64).unwrap());
        for candidate in gemm.candidates(&request, &Target::of(device)) {
            let name = candidate.entry.name();
            let gemm = gemm.kernel(name).unwrap();
            // Some kernels compute other products.
            if gemm.prepare(stream, a.view(), b.view(), c.view_mut()).is_err() {
                continue;
            }
            let captured =
                stream.capture(|stream| gemm.launch(stream, a.view(), b.view(), c.view_mut()));
            let graph = captured.unwrap_or_else(|error| panic!("{name}: {error}"));
            gemm.run(stream, a.view(), b.view(), expected.view_mut()).unwrap();
            let expected = expected.buffer().to_vec().unwrap();
            for _ in 0..3 {
                c.buffer_mut().fill_bytes(0xff).unwrap();
                graph
                    .launch(stream, [a.view().into(), b.view().into(), c.view_mut().into()])
                    .unwrap();
                let found = c.buffer().to_vec().unwrap();
                let bytes = bytemuck::cast_slice::<T, u8>;
                assert!(bytes(&found) == bytes(&expected), "{name}, {m}x{n}x{k}");
            }
            count += 1;
        }
    }
    count
}

on_machine! {
    fn every_kernel_in_a_graph() {
        let Some(device) = on_gpu() else { return };
        let stream = device.stream().unwrap();
        let f32s = [Compute::Native, Compute::Tf32, Compute::Fp32Bf16x6, Compute::Fp32F16x3];
        let f32s = f32s.map(|compute| each_kernel(&stream, Gemm::<f32>::new().compute(compute), |it| it));
        let others = [each_kernel(&stream, Gemm::<Bf16>::new(), Bf16::from_f32), each_kernel(&stream, Gemm::<F16>::new(), F16::from_f32)];
        println!("kernels and sizes: {f32s:?} of f32, {others:?} of 16 bits");
        assert!(f32s[0] >= 10 && others[0] >= 4 && others[1] >= 4);
    }

    fn a_hundred_launches_of_a_graph_give_the_same_bits() {
        let Some(device) = on_gpu() else { return };
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
        let Some(device) = on_gpu() else { return };
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
        let Some(device) = on_gpu() else { return };
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
        let Some(device) = on_gpu() else { return };
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
        let Some(device) = on_gpu() else { return };
        let stream = device.stream().unwrap();
        let [a, b, mut c] = matrices(&device, [64, 64, 64], 1);
        let error = message(stream.capture(|stream| simple().launch(stream, a.view(), b.view(), c.view_mut())));
        assert!(error.contains("kernel gemm_f32_64x64x16 is not loaded"), "{error}");
        // The device is as it was.
        simple().run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
    }
}
