//! What the library spends on the CPU: `cargo bench -p host`. How fast kernels are, `bench` of the command says.
//!
//! | module | what is timed |
//! |---|---|
//! | `fibers` | a barrier, the start of a block, a product on the CPU device |
//! | `planning` | the choice of a kernel, the plan of a product of files |
//! | `packing` | copies of matrices that lie anyhow |
//! | `verification` | the comparison with float64 |

mod fibers;
mod packing;
mod planning;
mod verification;

fn main() {
    divan::main();
}
