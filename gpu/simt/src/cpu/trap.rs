//! Leaves a kernel's thread from a signal handler: where its stack overflows, or where the
//! [watchdog](super::watchdog) interrupts it because it does not end. The handler makes the fiber's
//! coroutine return, as if the kernel had returned.
//!
//! This works on Linux, on x86-64 and on 64-bit ARM. On other systems a stack overflow ends the
//! process, as it does everywhere outside a kernel.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use linux::prepare_thread;

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

    use crate::cpu::{
        block,
        exit::Exit,
        watchdog::{self, Heartbeat, SIGNAL},
    };

    /// Bytes of the stack that a handler runs on: the thread's own may have overflowed.
    const HANDLER_STACK: usize = 64 * 1024;

    /// The handlers that were installed before, in the order of [`SIGNALS`].
    static BEFORE: [OnceLock<sigaction>; 2] = [OnceLock::new(), OnceLock::new()];

    const SIGNALS: [c_int; 2] = [SIGSEGV, SIGNAL];

    thread_local! {
        static STACK: AlternateStack = AlternateStack::install();
    }

    /// Installs the handlers, once, and gives this operating-system thread a stack for them.
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
                        // Set before our handler can ask for it.
                        let _ = of_signal.set(before.assume_init());
                        sigaction(signal, &action, null_mut());
                    }
                }
            }
        });
        STACK.with(|_| {});
    }

    /// The stack for signal handlers of a thread that had none.
    struct AlternateStack(#[allow(dead_code, reason = "kept")] Option<Vec<u8>>);

    impl AlternateStack {
        fn install() -> Self {
            // SAFETY: plain C structures; the memory is kept until the thread ends, and taken back
            // before.
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

    /// The handler. Where a kernel's thread has overflowed its stack, or the watchdog has
    /// interrupted it, it makes the fiber return. Otherwise it calls the handler that was installed
    /// before.
    extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel hands both to a handler of `SA_SIGINFO`.
        let (address, context_of) =
            unsafe { ((*info).si_addr().addr(), &mut *context.cast::<ucontext_t>()) };
        // SAFETY: null, or this worker's own, which it has as long as it is watched.
        let heartbeat = unsafe { watchdog::heartbeat().as_ref() };
        let interrupted = signal == SIGNAL && heartbeat.is_some_and(Heartbeat::take_interrupt);
        let address = if interrupted { None } else { Some(address) };
        match (signal == SIGSEGV || interrupted).then(|| leave(address, stack_pointer(context_of)))
        {
            Some(Some(registers)) => set(context_of, &registers),
            // The worker was between two threads of the kernel.
            _ if interrupted => {}
            _ => chain(signal, info, context),
        }
    }

    /// The registers with which the running thread's fiber returns. With an address: only where
    /// that is in the guard page of its stack.
    fn leave(address: Option<usize>, stack_pointer: usize) -> Option<TrapHandlerRegs> {
        // SAFETY: null, or a thread of this worker, whose fiber lives as long as the worker.
        let exit = unsafe { block::current_pointer().as_ref()?.exit()? };
        // A copy, since a `Cell` gives nothing else: of plain words.
        let taken = exit.take()?;
        exit.set(Some(Exit { endless: address.is_none(), ..taken.clone() }));
        let is_its_own = taken.handler.stack_ptr_in_bounds(stack_pointer);
        if !is_its_own || address.is_some_and(|address| !taken.guard.contains(&address)) {
            return None;
        }
        // SAFETY: the stack pointer is within the coroutine, and the caller sets the registers.
        // What the thread was in the middle of is left as it is: the kernel's frames hold nothing
        // that must be dropped (the fifth condition of `launch`).
        Some(unsafe { taken.handler.setup_trap_handler(|| ()) })
    }

    /// Calls the handler that was installed before, or does what the system would do without one.
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
