//! Modules: PTX that the driver has compiled.

use super::binding::{CUjit_option, CUmodule, cuModuleLoadDataEx, cuModuleUnload};
use super::failure::Outcome;
use super::{Context, release};
use crate::error::Result;
use std::ffi::{CStr, CString, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// PTX that the driver has compiled for one device.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    loaded: Arc<Loaded>,
}

/// A loaded module. The module and its functions share it; the last of them unloads it.
#[derive(Debug)]
struct Loaded {
    raw: CUmodule,
    name: String,
    context: Arc<Context>,
    /// Whether it stays loaded until the context ends.
    stays: AtomicBool,
}

// SAFETY: a module's handle belongs to its context, not to a thread, and the driver locks what it
// shares.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module {
    /// Compiles `ptx`. Messages call it `name`. The driver caches the result on disk, so it is fast
    /// in the next process.
    ///
    /// # Errors
    /// [`Error::Ptx`](crate::error::Error::Ptx), with the compiler's log, if the driver refuses it.
    pub(crate) fn load(context: &Arc<Context>, name: &str, ptx: &str) -> Result<Self> {
        Module::load_at(context, name, ptx, None)
    }

    /// As [`load`](Self::load), with an optimisation level from 0 to 4. `None`: the highest.
    pub(crate) fn load_at(
        context: &Arc<Context>,
        name: &str,
        ptx: &str,
        level: Option<u32>,
    ) -> Result<Self> {
        let text = CString::new(ptx).map_err(|nul| {
            context.refusal(name, format!("it has a NUL byte at {}", nul.nul_position()))
        })?;
        let _current = context.enter()?;
        let (mut errors, mut infos) = (Log::new(), Log::new());
        let mut options = vec![
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        ];
        // A number is passed as the pointer itself.
        let size = Log::BYTES as *mut c_void;
        let mut values = vec![errors.start(), size, infos.start(), size];
        if let Some(level) = level {
            options.push(CUjit_option::CU_JIT_OPTIMIZATION_LEVEL);
            values.push(level as usize as *mut c_void);
        }
        let mut raw = null_mut();
        // SAFETY: the text ends with NUL. Each option has its value: two buffers, which outlive the
        // call, their sizes, and a number. The driver writes one handle, of the current context.
        let result = unsafe {
            cuModuleLoadDataEx(
                &mut raw,
                text.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match result.outcome() {
            Ok(()) => {
                let (name, context, stays) = (name.into(), context.clone(), AtomicBool::new(false));
                Ok(Module { loaded: Arc::new(Loaded { raw, name, context, stays }) })
            }
            Err(raw) if refuses_ptx(raw.code) => {
                let log = [errors.text(), infos.text()].join("\n").trim().to_string();
                let log = if log.is_empty() { raw.words() } else { log };
                Err(context.refusal(name, log + advice(raw.code)))
            }
            Err(raw) => Err(context.error(raw)),
        }
    }

    /// Keeps it loaded until the context ends.
    pub(super) fn keep_loaded(&self) {
        self.loaded.stays.store(true, Ordering::Relaxed);
    }

    /// The driver's handle, valid while this value lives.
    pub(super) fn raw(&self) -> CUmodule {
        self.loaded.raw
    }

    /// The name in messages.
    pub(super) fn name(&self) -> &str {
        &self.loaded.name
    }

    /// The device that the module is loaded on.
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.loaded.context
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.stays.load(Ordering::Relaxed) || self.context.hung().is_some() {
            return;
        }
        let (raw, context) = (self.raw, self.context.clone());
        release(move || {
            let _current = context.enter();
            // SAFETY: with the module and its functions gone, nothing uses the handle after this.
            let _ = unsafe { cuModuleUnload(raw) };
        });
    }
}

/// Whether a code says that the driver refuses the PTX.
fn refuses_ptx(code: i32) -> bool {
    // Invalid image, no binary for this GPU, invalid PTX, no compiler, unsupported version,
    // compiler switched off, invalid source.
    matches!(code, 200 | 209 | 218 | 221 | 222 | 223 | 300)
}

/// What to do about a refusal that is not the PTX's fault.
fn advice(code: i32) -> &'static str {
    match code {
        221 => "; libnvidia-ptxjitcompiler.so.1 is part of the driver's installation",
        222 => "; update the driver",
        223 => "; unset CUDA_DISABLE_PTX_JIT",
        _ => "",
    }
}

/// A buffer for the log of the driver's compiler.
struct Log(Vec<u8>);

impl Log {
    /// Enough for the first errors. The driver cuts off the rest.
    const BYTES: usize = 16 << 10;

    fn new() -> Self {
        Log(vec![0; Self::BYTES])
    }

    fn start(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    fn text(&self) -> String {
        let written = CStr::from_bytes_until_nul(&self.0).map_or(&self.0[..], CStr::to_bytes);
        String::from_utf8_lossy(written).trim().into()
    }
}
