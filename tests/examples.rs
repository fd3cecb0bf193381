//! The library's examples. Their functions run here as in the examples.

use host::{Matrix, operands};
use tests::{devices, streams};

#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../host/lib/examples/first_product.rs"]
mod first_product;
#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../host/lib/examples/graph.rs"]
mod graph;
#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../host/lib/examples/inference.rs"]
mod inference;
#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../host/lib/examples/nalgebra.rs"]
mod of_nalgebra;
#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../host/lib/examples/views.rs"]
mod views;

#[test]
fn first_products() {
    for device in devices() {
        let [c, sum] = first_product::products(&device).unwrap();
        assert_eq!((&c[..], &sum[..]), (&[4.0, 5.0, 10.0, 11.0][..], &[6.0, 7.5, 15.0, 16.5][..]));
    }
}

#[test]
fn a_gram_matrix_in_blocks() {
    for device in devices() {
        let a = operands::integers(1, 50 * 37, 8).unwrap();
        let element = |i: usize, j: usize| (0..50).map(|p| a[p * 37 + i] * a[p * 37 + j]).sum();
        let wanted = (0..37 * 37).map(|at| element(at / 37, at % 37)).collect::<Vec<f32>>();
        let a = Matrix::from_row_major(&device, 50, 37, &a).unwrap();
        for block in [1, 10, 37, 64] {
            let gram = views::gram(&device, &a, block).unwrap();
            assert_eq!(gram.to_row_major().unwrap(), wanted, "{block}");
        }
    }
}

#[test]
fn a_batch_by_one_launch() {
    for device in devices() {
        let draw = |seed| operands::integers(seed, 64 * 5, 8).unwrap();
        let (a, b) = (draw(1), draw(2));
        let c = views::batch(&device, &a, &b, 5).unwrap();
        for (at, &c) in c.iter().enumerate() {
            let (start, i, j) = (at / 64 * 64, at / 8 % 8, at % 8);
            let sum: f32 = (0..8).map(|p| a[start + i * 8 + p] * b[start + p * 8 + j]).sum();
            assert_eq!(c, sum, "element {at}");
        }
        assert!(c.iter().any(|&x| x != 0.0));
    }
}

#[test]
fn a_feed_forward_network() {
    for device in devices() {
        for sizes in [[1, 1, 8], [3, 7, 20], [4, 32, 64]] {
            let error = inference::run(&device, sizes).unwrap();
            assert!(error <= 1e-5 * (sizes[2] as f64).sqrt(), "{sizes:?}: {error:e}");
        }
    }
}

#[test]
fn matrices_of_nalgebra() {
    for device in devices() {
        let a = nalgebra::DMatrix::from_fn(30, 20, |row, col| ((row * 7 + col) % 5) as f32 - 2.0);
        let b = nalgebra::DMatrix::from_fn(20, 10, |row, col| ((row + col * 3) % 7) as f32 - 3.0);
        let (c, gram) = of_nalgebra::products(&device, &a, &b).unwrap();
        assert_eq!((c, gram), (&a * &b, a.transpose() * &a));
    }
}

#[test]
fn a_network_as_a_graph() {
    for (device, stream) in streams() {
        let mut network = graph::Network::new(&device, 3, 4, 64).unwrap();
        let graph = match network.graph(&stream) {
            Ok(graph) => graph,
            Err(error) => {
                assert!(!device.is_cuda(), "{error}");
                assert_eq!(error.to_string(), "stream = cpu: must be on a GPU to be captured");
                continue;
            }
        };
        for seed in 0..5 {
            network.set_input(&operands::integers(seed, 4 * 64, 8).unwrap()).unwrap();
            network.replay(&graph, &stream).unwrap();
            let replayed = network.output().unwrap();
            network.launch(&stream).unwrap();
            assert_eq!(network.output().unwrap(), replayed, "input {seed}");
        }
    }
}
