//! A kernel as the host sees it: its declaration, its parameter types, and its code.

use std::{fmt, marker::PhantomData};

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
    #[cfg_attr(not(feature = "cpu"), allow(dead_code, reason = "nothing runs it"))]
    pub(crate) code: Code<P>,
}

/// What the CPU device runs of a kernel.
#[doc(hidden)]
#[derive(Debug)]
pub struct Code<P: 'static> {
    #[cfg(feature = "cpu")]
    pub thread: ThreadFn<P>,
    /// The same function for a checked launch, in which the body's accesses through raw pointers
    /// are reported.
    #[cfg(feature = "cpu")]
    pub checked: ThreadFn<P>,
    pub params: PhantomData<fn(P)>,
}

/// Makes a [`Code`] of a `#[kernel]`'s functions. They are left out where nothing runs them.
#[cfg(feature = "cpu")]
#[doc(hidden)]
#[macro_export]
macro_rules! __code {
    ($($code:tt)*) => {{ $($code)* }};
}

/// Makes a [`Code`] of a `#[kernel]`'s functions. They are left out where nothing runs them.
#[cfg(not(feature = "cpu"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __code {
    ($($code:tt)*) => {
        $crate::Code { params: ::core::marker::PhantomData }
    };
}

impl<P> Kernel<P> {
    /// For [`kernel`](crate::device::kernel) only: a launch relies on these.
    ///
    /// # Safety
    /// 1. All three are of one kernel: `lengths` refuses buffers that are shorter than the kernel's
    ///    declaration says, and the code's functions are its body, the tuned ones compiled for
    ///    processors with AVX2 and FMA.
    #[doc(hidden)]
    pub const unsafe fn new(
        declaration: Declaration,
        lengths: fn(&P) -> Result<(), Shortfall>,
        code: Code<P>,
    ) -> Self {
        Kernel { declaration, lengths, code }
    }
}

#[cfg(feature = "cpu")]
impl<P> Kernel<P> {
    /// The kernel that a processor without AVX2 runs, for tests.
    ///
    /// # Safety
    /// 1. It is launched unchanged: nobody changes its declaration.
    #[doc(hidden)]
    pub unsafe fn portable(&self) -> Self {
        let version = |of: &ThreadFn<P>| ThreadFn { portable: of.portable, tuned: of.portable };
        let (thread, checked) = (version(&self.code.thread), version(&self.code.checked));
        let code = Code { thread, checked, params: PhantomData };
        Kernel { declaration: self.declaration, lengths: self.lengths, code }
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
#[cfg(feature = "cpu")]
#[doc(hidden)]
#[derive(Debug)]
pub struct ThreadFn<P: 'static> {
    /// For any processor. A fused multiply-add may be a library call.
    pub portable: unsafe fn(&P),
    /// For processors with the instructions that [`ThreadFn::select`] requires. For a checked
    /// launch it is the portable one.
    pub tuned: unsafe fn(&P),
}

#[cfg(feature = "cpu")]
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
