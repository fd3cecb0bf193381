//! Work on all cores, by threads that end with it. If the system gives fewer threads, these do all
//! the work.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
    thread::{self, Scope, ScopedJoinHandle},
};

#[cfg(feature = "cpu")]
use simt::cpu::gives_a_thread;

use crate::error::Result;

/// Without the CPU device nothing asks: under a limit of the address space no GPU's driver starts.
#[cfg(not(feature = "cpu"))]
fn gives_a_thread() -> bool {
    true
}

/// The number of cores that this process may use.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Starts a thread in the scope. `None` if the system gives no thread.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    gives_a_thread().then(|| thread::Builder::new().spawn_scoped(scope, work).ok()).flatten()
}

/// Does the work for every item, on at most one thread for each core. The caller is one of them.
/// After an error no more items are begun.
///
/// # Errors
/// The first error.
pub fn for_each<T: Send>(
    items: impl ExactSizeIterator<Item = T> + Send,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let helpers = threads().min(items.len()).saturating_sub(1);
    let items = Mutex::new(items);
    let outcome = Mutex::new(Ok(()));
    let lock = || outcome.lock().unwrap_or_else(PoisonError::into_inner);
    let serve = || {
        loop {
            let item = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = item.filter(|_| lock().is_ok()) else { return };
            if let Err(error) = work(item) {
                let mut outcome = lock();
                if outcome.is_ok() {
                    *outcome = Err(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            if start(scope, serve).is_none() {
                break;
            }
        }
        serve();
    });
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::Error;

    #[test]
    fn every_item_is_worked_on_once() {
        for len in [0, 1, 2, 1000] {
            let mut values = vec![0; len];
            for_each(values.iter_mut().enumerate(), |(index, value)| {
                *value += index + 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(values, (1..=len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn after_an_error_little_is_begun() {
        let begun = AtomicUsize::new(0);
        let outcome = for_each(0..1_000_000, |number| {
            begun.fetch_add(1, Ordering::Relaxed);
            if number == 3 { Err(Error::Interrupted) } else { Ok(()) }
        });
        assert!(matches!(outcome, Err(Error::Interrupted)));
        assert!(begun.into_inner() < 1_000_000);
    }
}
