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
        writeln!(log, "{name}").unwrap();
    }
    configured(name)
}

/// Checks that a stream is the one that the stand-in makes. With `foreign=1` those of other libraries are allowed, and their handles are
/// logged.
pub(crate) fn check_stream(stream: Handle) {
    if stream as usize != 0x4000 {
        assert_eq!(configured("foreign"), Some(1), "stream {stream:?}");
        called(&format!("on stream {}", stream as usize));
    }
}
