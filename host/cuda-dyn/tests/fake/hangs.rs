//! With `hangs=N` what device N launches never ends, nor what waits for it.

use std::ffi::c_int;
use std::sync::Mutex;

use crate::copies::catch_up;
use crate::settings::{Handle, called, configured};
use crate::{FIRST_CONTEXT, current};

/// Streams and events whose work never ends, each with its context.
static HUNG: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

fn is_hung(handle: Handle) -> bool {
    HUNG.lock().unwrap().iter().any(|(hung, _)| *hung == handle as usize)
}

/// What comes after `before` in the current context.
pub(crate) fn follow(handle: Handle, before: Handle) {
    if is_hung(before) {
        HUNG.lock().unwrap().push((handle as usize, current()));
    }
}

/// A launch on a stream.
pub(crate) fn launched(stream: Handle) {
    if configured("hangs").is_some_and(|device| FIRST_CONTEXT + device as usize == current()) {
        HUNG.lock().unwrap().push((stream as usize, current()));
    }
}

/// A call that waits for all work of a context. It would never return.
pub(crate) fn waits_for_all(context: usize) {
    let hung = HUNG.lock().unwrap().iter().any(|(_, its)| *its == context);
    assert!(!hung, "context {context:x} is waited for, which never ends");
}

driver! {
    @context fn cuStreamQuery(stream: Handle) { if is_hung(stream) { 600 } else { catch_up() } }
    @context fn cuEventQuery(event: Handle) { if is_hung(event) { 600 } else { catch_up() } }
}
