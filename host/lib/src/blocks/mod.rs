//! Out-of-core products: matrices that need not fit in memory are read, multiplied and written in
//! blocks.
//!
//! ```
//! use gpu_gemm::{
//!     Device, Layout, Shape,
//!     blocks::{BlockPlan, Dense, Job, Product},
//! };
//!
//! // A source of blocks: slices here, or files (`npy::Reader`).
//! let (a, b) = (vec![1f32; 300 * 200], vec![2f32; 200 * 100]);
//! let a = Dense::new(300, 200, Layout::RowMajor, a.as_slice())?;
//! let b = Dense::new(200, 100, Layout::ColMajor, b.as_slice())?;
//!
//! // Elements of four bytes, tiles of 64 x 64, and 200000 bytes of device memory. A, B and C have 440000.
//! let mut job = Job::new(Shape::new(300, 100, 200)?, 4, [64, 64], 200_000);
//! job.layouts[1] = Layout::ColMajor;
//! let plan = BlockPlan::new(&job)?;
//! assert!(plan.device_bytes() <= 200_000 && !plan.is_one_piece());
//!
//! let mut values = vec![0f32; 300 * 100];
//! let mut c = Dense::new(300, 100, Layout::RowMajor, values.as_mut_slice())?;
//! Product::new("gemm_f32_64x64x16", &a, &b).run(&Device::cpu(), &plan, &mut c)?;
//! assert!(values.iter().all(|&x| x == 400.0));
//! # Ok::<(), gpu_gemm::Error>(())
//! ```

mod job;
mod partner;
mod parts;
mod pipeline;
mod place;
mod plan;
mod product;
mod schedule;
mod several;
mod source;
#[cfg(test)]
mod tests;

pub use job::Job;
pub use plan::{BlockPlan, Stays, Step, Why};
pub use product::Product;
pub use source::{Dense, Sink, Source, Transposed};
