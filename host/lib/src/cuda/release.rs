//! What is released at once, or after a capture: in a capture the driver refuses to free memory,
//! and the capture is spoilt.

use crate::error::{Error, Result};
use std::cell::RefCell;
use std::marker::PhantomData;

/// What is to be released after a capture.
type Waiting = Vec<Box<dyn FnOnce()>>;

thread_local! {
    /// What this thread releases when its capture has ended. `None`: it captures nothing.
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

/// Runs `what`, which waits for work or frees something. While this thread captures, it runs after
/// that.
pub(crate) fn release(what: impl FnOnce() + 'static) {
    let mut what = Some(what);
    // A thread that ends has no capture.
    let _ = WAITING.try_with(|waiting| {
        if let Some(waiting) = &mut *waiting.borrow_mut()
            && let Some(what) = what.take()
        {
            waiting.push(Box::new(what));
        }
    });
    if let Some(what) = what {
        what();
    }
}

/// Whether this thread captures a stream.
pub(crate) fn is_capturing() -> bool {
    // A thread that ends has no capture: a destructor of one of its variables may ask.
    WAITING.try_with(|waiting| waiting.borrow().is_some()).unwrap_or(false)
}

/// While this value lives, what this thread drops is not released. It is made before a capture
/// begins, and dropped when it has ended.
#[derive(Debug)]
pub(crate) struct Releases {
    /// It stays on its thread.
    thread: PhantomData<*const ()>,
}

impl Releases {
    /// From now on. There is one at a time on a thread.
    ///
    /// # Errors
    /// [`Error::Capture`] on a thread that ends: nothing can be kept there.
    pub(crate) fn deferred() -> Result<Self> {
        let begun = WAITING.try_with(|waiting| *waiting.borrow_mut() = Some(Waiting::new()));
        begun.map_err(|_| Error::capture("a capture on a thread that ends"))?;
        Ok(Releases { thread: PhantomData })
    }
}

impl Drop for Releases {
    fn drop(&mut self) {
        let waiting = WAITING.try_with(|waiting| waiting.borrow_mut().take());
        // In the order in which they were dropped. One of them may drop more, which is released at
        // once.
        for what in waiting.ok().flatten().into_iter().flatten() {
            what();
        }
    }
}
