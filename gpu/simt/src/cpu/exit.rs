//! How a signal handler leaves a fiber: by making the fiber's coroutine return.

use std::{cell::Cell, ops::Range};

use corosensei::trap::CoroutineTrapHandler;

/// A fiber's [`Exit`]. It is set when the coroutine is made, and taken by the signal handler. The
/// worker finds it empty, or changed, when the coroutine has returned.
pub(super) type ExitCell = Cell<Option<Exit>>;

/// What the signal handler needs to leave a fiber.
#[derive(Clone)]
pub(super) struct Exit {
    pub(super) handler: CoroutineTrapHandler<()>,
    /// The addresses of the guard page below the stack: an access there is a stack overflow.
    pub(super) guard: Range<usize>,
    /// Whether the watchdog, and not a stack overflow, made the handler leave the fiber.
    pub(super) endless: bool,
}
