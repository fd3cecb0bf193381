//! What is released at once, or after a capture: in a capture the driver refuses to free memory, and the capture is spoilt.

use std::cell::RefCell;
use std::marker::PhantomData;

/// What is to be released after a capture.
type Waiting = Vec<Box<dyn FnOnce()>>;

thread_local! {
    /// What this thread releases when its capture has ended. `None`: it captures nothing.
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

/// Runs `what`, which waits for work or frees something. While this thread captures, it runs after that.
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

/// While this value lives, what this thread drops is not released. It is made when a capture has begun, and dropped when it has ended.
#[derive(Debug)]
pub(crate) struct Releases {
    /// Whether there is no other around this one.
    is_outermost: bool,
    /// It stays on its thread.
    thread: PhantomData<*const ()>,
}

impl Releases {
    /// From now on.
    pub(crate) fn deferred() -> Self {
        let is_outermost = WAITING.with_borrow_mut(|waiting| match waiting {
            Some(_) => false,
            none => {
                *none = Some(Waiting::new());
                true
            }
        });
        Releases { is_outermost, thread: PhantomData }
    }
}

impl Drop for Releases {
    fn drop(&mut self) {
        if !self.is_outermost {
            return;
        }
        let waiting = WAITING.try_with(|waiting| waiting.borrow_mut().take());
        // In the order in which they were dropped. One of them may drop more, which is released at once.
        for what in waiting.ok().flatten().into_iter().flatten() {
            what();
        }
    }
}
