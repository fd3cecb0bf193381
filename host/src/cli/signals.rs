//! What ends the command from outside, and what it does then.
//!
//! | signal | what is done |
//! |---|---|
//! | SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGXCPU | the first ends what is running in order, a second at once |
//! | SIGQUIT, and others that end a process | end it at once |
//! | SIGXFSZ | nothing: what cannot be written is told as an error |
//!
//! Either way no file is left that is not finished. After SIGINT the command exits with 130; after another signal it
//! ends by that signal, as whoever sent it expects. What is ignored (`nohup`) or handled (by a profiler) when the command starts
//! stays so, but SIGINT: shells have all that they start in the background ignore it, where it is sent by hand.
//!
//! Signals that a fault of the process itself raises (SIGSEGV, SIGBUS, SIGILL, SIGFPE) are not caught here.

use std::{
    io,
    process::exit,
    sync::{
        atomic::{AtomicBool, AtomicI32, Ordering},
        mpsc,
    },
    thread,
};

use signal_hook::{consts::*, flag, iterator::Signals, low_level::emulate_default_handler};
use simt::cpu::gives_a_thread;

const IN_ORDER: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGXCPU];
const AT_ONCE: [i32; 10] =
    [SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGABRT, SIGTRAP, SIGSYS];

/// The exit code after SIGINT.
const INTERRUPTED: i32 = 130;

/// The signal that ends the command in order; 0 is none.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// Set where a file would have become longer than the process may write; nobody reads it.
static TOO_LONG: AtomicBool = AtomicBool::new(false);

/// Looks out for signals in a thread of its own, from now on.
pub(super) fn watch() -> io::Result<()> {
    // One that is handled ends nothing: the write fails.
    flag::register(SIGXFSZ, &TOO_LONG)?;
    let all = IN_ORDER.into_iter().chain(AT_ONCE);
    let ours = all.filter(|&signal| signal == SIGINT || ends_a_process(signal));
    if !gives_a_thread() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // The thread first: where the system gives none, signals do what they did before. (Handlers cannot be taken back.)
    let (send, receive) = mpsc::channel::<Signals>();
    let watch = move || {
        if let Ok(mut signals) = receive.recv() {
            signals.forever().for_each(received);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
    // It waits, so it receives them.
    let _ = send.send(Signals::new(ours)?);
    Ok(())
}

fn received(signal: i32) {
    let first = || FIRST.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    match IN_ORDER.contains(&signal) && first() {
        true => host::interrupt(),
        false => host::without_unfinished(|| end_by(signal)),
    }
}

/// Ends the process as a signal does.
fn end_by(signal: i32) {
    if signal != SIGINT {
        let _ = emulate_default_handler(signal);
    }
    exit(if signal == SIGINT { INTERRUPTED } else { 128 + signal });
}

/// Everything has ended in order, because of a signal: so does the process, but after SIGINT, which has an exit code.
pub(super) fn ended_in_order() {
    match FIRST.load(Ordering::Relaxed) {
        0 | SIGINT => {}
        signal => end_by(signal),
    }
}

/// Is that what it does, unless somebody has said otherwise?
fn ends_a_process(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action `sigaction` changes nothing, and where it returns 0 it has written the whole old one.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_DFL
    }
}
