//! The settings that tests pass to the stand-in, and the log of its calls.

use std::ffi::{c_int, c_void};
use std::io::Write;

pub(crate) type Handle = *mut c_void;

/// The value of `key` in `FAKE_CUDA`.
pub(crate) fn configured(key: &str) -> Option<c_int> {
    let text = std::env::var("FAKE_CUDA").unwrap_or_default();
    text.split_whitespace().filter_map(|entry| entry.split_once('=')).find_map(|(name, value)| {
        (name == key).then(|| value.parse().expect("FAKE_CUDA: a number"))
    })
}

/// Logs a call. Returns the code to return in place of doing its work.
pub(crate) fn called(name: &str) -> Option<c_int> {
    if let Some(path) = std::env::var_os("FAKE_CUDA_LOG") {
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        // One write for a line: `writeln!` makes two, and another thread may write between them.
        log.write_all(format!("{name}\n").as_bytes()).unwrap();
    }
    configured(name)
}

/// With `trace=1` logs what a stream is given, with the handles.
pub(crate) fn traced(line: impl FnOnce() -> String) {
    if configured("trace").is_some() {
        called(&line());
    }
}
