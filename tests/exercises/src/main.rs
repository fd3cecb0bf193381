//! `cargo run -p exercises`: lists, grades, hints, and questions with their answers.
//!
//! Exit codes: 0 solved or shown, 1 not yet, 2 usage.

use std::{
    env,
    io::{self, ErrorKind, Write},
    process::ExitCode,
};

use exercises::{command::USAGE, command::run};

fn main() -> ExitCode {
    let arguments = env::args().skip(1).collect::<Vec<_>>();
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let mut out = io::stdout().lock();
    match run(&arguments, &mut out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => match error.downcast::<io::Error>() {
            // A closed pipe is no error.
            Ok(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(1),
            Ok(error) => {
                eprintln!("error: standard output cannot be written: {error}");
                ExitCode::from(1)
            }
            Err(message) => {
                let _ = out.flush();
                eprintln!("error: {message}\n{USAGE}");
                ExitCode::from(2)
            }
        },
    }
}
