//! The command: `host --m 1000 --n 700 --k 513`.

#[cfg(unix)]
mod allocator;
mod cli;

use std::process::ExitCode;

#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> ExitCode {
    cli::main()
}
