//! What is decided before a product: on the way of every launch, or once for files.

use host::{
    Layout, Shape,
    blocks::{BlockPlan, Job},
    gemm::{Request, Target, candidates, choose},
};

fn request() -> Request {
    Request::dense(Shape::new(1000, 700, 513).unwrap())
}

/// The kernel of a product.
#[divan::bench]
fn choice() {
    choose::<f32>(divan::black_box(&request()), &Target::H200, None).unwrap();
}

/// The kernel of a product of transposed operands: the lessons' kernels are out.
#[divan::bench]
fn choice_transposed() {
    let request = Request { strides: [[1, 1000], [700, 1], [700, 1]], ..request() };
    choose::<f32>(divan::black_box(&request), &Target::H200, None).unwrap();
}

/// What `--plan` shows.
#[divan::bench]
fn all_candidates() -> usize {
    candidates::<f32>(divan::black_box(&request()), &Target::H200).len()
}

/// How a product of files is cut for a device that holds a tenth of it.
#[divan::bench]
fn blocks() -> BlockPlan {
    let job = Job {
        shape: Shape::new(100_000, 80_000, 60_000).unwrap(),
        element_bytes: 4,
        tile: [128, 128],
        layouts: [Layout::RowMajor; 3],
        reads_c: false,
        device_limit: 6 << 30,
        depth: None,
    };
    BlockPlan::new(divan::black_box(&job)).unwrap()
}
