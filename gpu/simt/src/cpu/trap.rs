//! Leaving a thread of a kernel where it cannot go on by itself, or never ends: from the handler of the signal that its stack's end
//! raises, or that the [watchdog](super::watchdog) sends. The fiber then returns, as if the kernel had.
//!
//! On Linux, on x86-64 and on 64-bit ARM. Elsewhere such a signal ends the process, as it does wherever it is not ours.

use std::{cell::Cell, ops::Range};

use corosensei::trap::CoroutineTrapHandler;

/// How a fiber is left: made with it, and read by a signal handler while one of its threads runs.
pub(super) type Exit = Cell<Option<Way>>;

#[derive(Clone)]
pub(super) struct Way {
    pub(super) handler: CoroutineTrapHandler<()>,
    /// The addresses that a stack too small runs into.
    pub(super) guard: Range<usize>,
    /// Was it the watchdog?
    pub(super) endless: bool,
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use linux::prepare_thread;

/// What the watchdog sends: a signal that is ignored where nobody handles it.
#[cfg(target_os = "linux")]
pub(super) const SIGNAL: libc::c_int = libc::SIGURG;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn prepare_thread() {}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    use std::{
        mem::{MaybeUninit, transmute, zeroed},
        ptr::{null, null_mut},
        sync::{Once, OnceLock},
    };

    use corosensei::trap::TrapHandlerRegs;
    use libc::{SA_ONSTACK, SA_RESTART, SA_SIGINFO, SIG_DFL, SIG_IGN, SIGSEGV, SS_DISABLE};
    use libc::{c_int, c_void, sigaction, siginfo_t, stack_t, ucontext_t};

    use super::{SIGNAL, Way};
    use crate::cpu::{
        block,
        watchdog::{self, Beat},
    };

    /// Bytes of the stack that a handler runs on. (The thread's own is at its end.)
    const HANDLER_STACK: usize = 64 * 1024;

    /// What was to be done before about the signals.
    static BEFORE: [OnceLock<sigaction>; 2] = [OnceLock::new(), OnceLock::new()];

    const SIGNALS: [c_int; 2] = [SIGSEGV, SIGNAL];

    thread_local! {
        static STACK: AlternateStack = AlternateStack::install();
    }

    /// Makes this thread one that runs fibers.
    pub(in crate::cpu) fn prepare_thread() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: plain C structures; the handler is one for `SA_SIGINFO`.
            unsafe {
                let mut action: sigaction = zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
                for (signal, of_signal) in SIGNALS.into_iter().zip(&BEFORE) {
                    let mut before = MaybeUninit::uninit();
                    if sigaction(signal, null(), before.as_mut_ptr()) == 0 {
                        // Set before it can be asked for.
                        let _ = of_signal.set(before.assume_init());
                        sigaction(signal, &action, null_mut());
                    }
                }
            }
        });
        STACK.with(|_| {});
    }

    /// A stack for signal handlers, of a thread that had none.
    struct AlternateStack(#[allow(dead_code, reason = "kept")] Option<Vec<u8>>);

    impl AlternateStack {
        fn install() -> Self {
            // SAFETY: plain C structures; the memory is kept until the thread ends, and taken back before.
            unsafe {
                let mut there: stack_t = zeroed();
                if libc::sigaltstack(null(), &mut there) != 0 || there.ss_flags & SS_DISABLE == 0 {
                    return AlternateStack(None);
                }
                let mut memory = vec![0u8; HANDLER_STACK];
                let stack = stack_t {
                    ss_sp: memory.as_mut_ptr().cast(),
                    ss_flags: 0,
                    ss_size: HANDLER_STACK,
                };
                let done = libc::sigaltstack(&stack, null_mut()) == 0;
                AlternateStack(done.then_some(memory))
            }
        }
    }

    impl Drop for AlternateStack {
        fn drop(&mut self) {
            if self.0.is_some() {
                let none =
                    stack_t { ss_sp: null_mut(), ss_flags: SS_DISABLE, ss_size: HANDLER_STACK };
                // SAFETY: no handler runs on it: this thread runs this.
                unsafe { libc::sigaltstack(&none, null_mut()) };
            }
        }
    }

    /// Of a thread of a kernel at the end of its stack, or that is to be left, lets the fiber return; else does what was done before.
    extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel hands both to a handler of `SA_SIGINFO`.
        let (address, context_of) =
            unsafe { ((*info).si_addr().addr(), &mut *context.cast::<ucontext_t>()) };
        // SAFETY: null, or this worker's own, which it has as long as it works.
        let beat = unsafe { watchdog::beat().as_ref() };
        let asked = signal == SIGNAL && beat.is_some_and(Beat::take_asked);
        let address = if asked { None } else { Some(address) };
        match (signal == SIGSEGV || asked).then(|| leave(address, stack_pointer(context_of))) {
            Some(Some(registers)) => set(context_of, &registers),
            // Between two threads of the kernel.
            _ if asked => {}
            _ => chain(signal, info, context),
        }
    }

    /// Where the fiber of the running thread goes on to return, if that address is its stack's end; without one, wherever it is.
    fn leave(address: Option<usize>, stack_pointer: usize) -> Option<TrapHandlerRegs> {
        // SAFETY: null, or a thread of this worker, whose fiber lives as long as the worker.
        let exit = unsafe { block::current_pointer().as_ref()?.exit()? };
        // A copy, since a `Cell` gives nothing else: of plain words.
        let way = exit.take()?;
        exit.set(Some(Way { endless: address.is_none(), ..way.clone() }));
        let is_its_own = way.handler.stack_ptr_in_bounds(stack_pointer);
        if !is_its_own || address.is_some_and(|address| !way.guard.contains(&address)) {
            return None;
        }
        // SAFETY: the stack pointer is within the coroutine, and the caller sets the registers. What the thread was in the middle of is
        // left as it is: the kernel's frames hold nothing that must be dropped (the fifth condition of `launch`).
        Some(unsafe { way.handler.setup_trap_handler(|| ()) })
    }

    /// What was done about the signal before.
    fn chain(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: what was installed before is called as it would have been.
        unsafe {
            let before = SIGNALS.iter().position(|known| *known == signal);
            match before.and_then(|number| BEFORE[number].get()) {
                Some(before) if ![SIG_DFL, SIG_IGN].contains(&before.sa_sigaction) => {
                    if before.sa_flags & SA_SIGINFO != 0 {
                        type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                        transmute::<usize, Handler>(before.sa_sigaction)(signal, info, context);
                    } else {
                        transmute::<usize, extern "C" fn(c_int)>(before.sa_sigaction)(signal);
                    }
                }
                _ if signal == SIGNAL => {}
                _ => {
                    // Raised again when this returns, and ends the process.
                    let mut default: sigaction = zeroed();
                    default.sa_sigaction = SIG_DFL;
                    sigaction(signal, &default, null_mut());
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }

    #[cfg(target_arch = "x86_64")]
    fn set(context: &mut ucontext_t, registers: &TrapHandlerRegs) {
        let TrapHandlerRegs { rip, rsp, rbp, rdi, rsi } = *registers;
        for (register, value) in [
            (libc::REG_RIP, rip),
            (libc::REG_RSP, rsp),
            (libc::REG_RBP, rbp),
            (libc::REG_RDI, rdi),
            (libc::REG_RSI, rsi),
        ] {
            context.uc_mcontext.gregs[register as usize] = value as i64;
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.sp as usize
    }

    #[cfg(target_arch = "aarch64")]
    fn set(context: &mut ucontext_t, registers: &TrapHandlerRegs) {
        let TrapHandlerRegs { pc, sp, x0, x1, x29, lr } = *registers;
        (context.uc_mcontext.pc, context.uc_mcontext.sp) = (pc, sp);
        for (register, value) in [(0, x0), (1, x1), (29, x29), (30, lr)] {
            context.uc_mcontext.regs[register] = value;
        }
    }
}
