//! The command: `host --m 1000 --n 700 --k 513`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
