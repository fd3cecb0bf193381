//! Panics in kernels: silent, and remembered with their message and place.

use std::{any::Any, cell::RefCell, fmt::Display, panic, sync::Once, thread};

use super::fault::{FaultKind, place_name};

/// A panic: its message, its place, and whether a barrier was used wrongly.
type Remembered = (String, String, bool);

thread_local! {
    /// The panic that is unwinding a fiber of this operating-system thread.
    static LAST: RefCell<Option<Remembered>> = const { RefCell::new(None) };
}

/// What a panic carries where a barrier is used wrongly.
struct Misuse(String);

/// Ends the running thread: it uses a barrier wrongly, at its caller's place.
#[cold]
#[track_caller]
pub(super) fn misuse(reason: impl Display) -> ! {
    panic::panic_any(Misuse(reason.to_string()))
}

/// Installs a panic hook, once. Where `in_kernel` holds, it remembers the panic's place, which the
/// payload does not have, and prints nothing. Other panics go to the hook that was installed
/// before.
///
/// A thread that panics cannot install it: in a destructor while it unwinds, or in a panic hook.
/// Then a later launch does. Until then a kernel's panic has no place, and is printed.
pub(super) fn install_hook(in_kernel: fn() -> bool) {
    static ONCE: Once = Once::new();
    // Before `ONCE`: another thread in there waits for the end of a hook that is running.
    if thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !in_kernel() {
                return previous(info);
            }
            let misuse = info.payload().downcast_ref::<Misuse>();
            let message = misuse.map(|misuse| &*misuse.0).or(info.payload_as_str());
            let message = message.unwrap_or("panicked").to_owned();
            let location = info.location().map(place_name).unwrap_or_default();
            LAST.set(Some((message, location, misuse.is_some())));
        }));
    });
}

/// Remembers a caught panic's message in case the program has replaced our hook.
pub(super) fn remember(payload: &(dyn Any + Send)) {
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let misuse = payload.downcast_ref::<Misuse>().map(|misuse| misuse.0.clone());
    let (is_misuse, text) = (misuse.is_some(), misuse.or(text));
    LAST.with_borrow_mut(|last| {
        if let (None, Some(text)) = (&last, text) {
            *last = Some((text, "an unknown place".to_owned(), is_misuse));
        }
    });
}

/// The panic that was last caught on this operating-system thread.
pub(super) fn last() -> FaultKind {
    let unknown = || ("panicked".to_owned(), "an unknown place".to_owned(), false);
    match LAST.take().unwrap_or_else(unknown) {
        (message, location, true) => FaultKind::BarrierMisuse { message, location },
        (message, location, false) => FaultKind::Panic { message, location },
    }
}
