//! The library's own time on the CPU: `cargo bench -p host`. The command's `bench` times kernels.
//!
//! | module | what is timed |
//! |---|---|
//! | `fibers` | a barrier, the start of a block, a product on the CPU device |
//! | `planning` | the selection of a kernel, the plan of a product of files |
//! | `packing` | copies of matrices in any layout |
//! | `verification` | the comparison with float64 |

mod fibers;
mod packing;
mod planning;
mod verification;

fn main() {
    divan::main();
}
