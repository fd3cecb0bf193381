//! A kernel as the host sees it: its declaration, its parameter types, and its code.

use std::fmt;

use crate::{
    declaration::{Declaration, LaunchConfig, Limits},
    params::Params,
    shortfall::Shortfall,
};

/// A kernel, made by [`kernel`](crate::device::kernel). The host's devices launch it.
///
/// `P` is the tuple of its parameter types, for example
/// `(u32, u32, u32, In<f32>, In<f32>, Out<f32>)`, so that the compiler checks the arguments of a
/// launch.
pub struct Kernel<P: 'static> {
    /// The kernel's declaration.
    pub declaration: Declaration,
    lengths: fn(&P) -> Result<(), Shortfall>,
    pub(crate) thread: ThreadFn<P>,
    /// The same function for a checked launch, in which the body's accesses through raw pointers
    /// are reported.
    pub(crate) checked: ThreadFn<P>,
}

impl<P> Kernel<P> {
    /// For [`kernel`](crate::device::kernel) only: a launch relies on these.
    ///
    /// # Safety
    /// 1. All four are of one kernel: `lengths` refuses buffers that are shorter than the kernel's
    ///    declaration says, and the functions are its body, the tuned ones compiled for processors
    ///    with AVX2 and FMA.
    #[doc(hidden)]
    pub const unsafe fn new(
        declaration: Declaration,
        lengths: fn(&P) -> Result<(), Shortfall>,
        thread: ThreadFn<P>,
        checked: ThreadFn<P>,
    ) -> Self {
        Kernel { declaration, lengths, thread, checked }
    }

    /// The kernel that a processor without AVX2 runs, for tests.
    ///
    /// # Safety
    /// 1. It is launched unchanged: nobody changes its declaration.
    #[doc(hidden)]
    pub unsafe fn portable(&self) -> Self {
        let version = |of: &ThreadFn<P>| ThreadFn { portable: of.portable, tuned: of.portable };
        let (thread, checked) = (version(&self.thread), version(&self.checked));
        Kernel { declaration: self.declaration, lengths: self.lengths, thread, checked }
    }
}

// Not derived: a tuple of more than twelve parameters is no `Debug`.
impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Kernel").field("declaration", &self.declaration).finish_non_exhaustive()
    }
}

/// The function that a thread runs, compiled twice (once for a checked launch, whose time is spent
/// in the checker).
#[doc(hidden)]
#[derive(Debug)]
pub struct ThreadFn<P: 'static> {
    /// For any processor. A fused multiply-add may be a library call.
    pub portable: unsafe fn(&P),
    /// For processors with the instructions that [`ThreadFn::select`] requires. For a checked
    /// launch it is the portable one.
    pub tuned: unsafe fn(&P),
}

impl<P> ThreadFn<P> {
    /// The version for this processor. Both give the same bits, because a fused multiply-add is
    /// rounded once in either.
    pub(crate) fn select(&self) -> unsafe fn(&P) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            return self.tuned;
        }
        self.portable
    }
}

impl<P: Params> Kernel<P> {
    /// Checks a launch against the kernel's declaration and the device's limits.
    ///
    /// # Errors
    /// A message that names the part of the launch, its value and the limit.
    pub fn check(&self, config: &LaunchConfig, limits: &Limits, params: &P) -> Result<(), String> {
        self.declaration.check(config, limits)?;
        (self.lengths)(params).map_err(|shortfall| shortfall.to_string())
    }
}
