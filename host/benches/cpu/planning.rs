//! Decisions before a product: at every launch, or once for files.

use host::{
    Shape,
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

/// The kernel of a product of transposed operands: no lesson can compute it.
#[divan::bench]
fn choice_transposed() {
    let request = Request::new(request().shape, [[1, 1000], [700, 1], [700, 1]]);
    choose::<f32>(divan::black_box(&request), &Target::H200, None).unwrap();
}

/// What `--plan` shows.
#[divan::bench]
fn all_candidates() -> usize {
    candidates::<f32>(divan::black_box(&request()), &Target::H200).len()
}

/// The blocks of a product of files, on a device that holds a tenth of it.
#[divan::bench]
fn blocks() -> BlockPlan {
    let shape = Shape::new(100_000, 80_000, 60_000).unwrap();
    let job = Job::new(shape, 4, [128, 128], 6 << 30);
    BlockPlan::new(divan::black_box(&job)).unwrap()
}
