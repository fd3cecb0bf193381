//! Signals that end the command.
//!
//! | signal | effect |
//! |---|---|
//! | SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGXCPU | the first one ends the work in order, a second one at once |
//! | SIGQUIT, and others that end a process | end at once |
//! | SIGXFSZ | none: the failed write is an error |
//!
//! In every case no incomplete file is left. After SIGINT the command exits with 130. After another
//! signal it ends by that signal, as its sender expects. A signal that is ignored (`nohup`) or
//! handled (by a profiler) when the command starts stays so. SIGINT is the exception: shells ignore
//! it for background processes, and it can still be sent by hand.
//!
//! Signals of a fault of the process itself (SIGSEGV, SIGBUS, SIGILL, SIGFPE) are not caught here.

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

/// The signal that ends the command in order. 0: none.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// Set if a file would exceed the process's limit. Nobody reads it.
static TOO_LONG: AtomicBool = AtomicBool::new(false);

/// From now on a thread waits for signals.
pub(super) fn watch() -> io::Result<()> {
    // With a handler the signal ends nothing: the write fails.
    flag::register(SIGXFSZ, &TOO_LONG)?;
    let all = IN_ORDER.into_iter().chain(AT_ONCE);
    let ours = all.filter(|&signal| signal == SIGINT || ends_a_process(signal));
    if !gives_a_thread() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // The thread comes first. If it cannot start, signals keep their old effect. (Handlers cannot
    // be removed.)
    let (send, receive) = mpsc::channel::<Signals>();
    let watch = move || {
        if let Ok(mut signals) = receive.recv() {
            signals.forever().for_each(received);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
    // The thread waits for them, so this succeeds.
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

/// Ends the process as the signal would.
fn end_by(signal: i32) {
    if signal != SIGINT {
        let _ = emulate_default_handler(signal);
    }
    exit(if signal == SIGINT { INTERRUPTED } else { 128 + signal });
}

/// The work has ended in order because of a signal. Now the process ends by that signal. After
/// SIGINT it has an exit code instead.
pub(super) fn ended_in_order() {
    match FIRST.load(Ordering::Relaxed) {
        0 | SIGINT => {}
        signal => end_by(signal),
    }
}

/// Whether the signal has its default effect.
fn ends_a_process(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action `sigaction` changes nothing. If it returns 0, it has written the
    // whole old action.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_DFL
    }
}
