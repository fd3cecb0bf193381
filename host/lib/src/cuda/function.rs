//! Kernels and their launch.

use super::binding::{
    CUfunction, CUfunction_attribute as Attribute, cuFuncGetAttribute, cuFuncSetAttribute,
    cuLaunchKernel, cuModuleGetFunction,
};
use super::failure::{
    INVALID_CLUSTER_SIZE, INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES, NOT_FOUND, Outcome, Raw,
};
use super::{Module, Stream};
use crate::error::{Error, Result};
use crate::ptx::Resources;
use cuda_dyn::{CUlaunchAttribute, CUlaunchConfig, cuLaunchKernelEx};
use simt::LaunchConfig;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// The resources of a compiled kernel. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
struct Attributes {
    /// 32-bit registers of a thread.
    registers: u32,
    /// Static shared memory of a block.
    static_shared: u32,
    /// The largest block that can be launched.
    max_threads: u32,
}

/// A kernel, ready to be launched. It keeps its module loaded.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    raw: CUfunction,
    name: &'static str,
    attributes: Attributes,
    dependent: bool,
    /// The dynamic shared memory that is allowed already. Asking the driver takes longer than a
    /// launch.
    allowed: Arc<AtomicU32>,
    module: Module,
}

// SAFETY: a function's handle belongs to its context, not to a thread, and the driver locks what it
// shares.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    /// The kernel with a name.
    ///
    /// # Errors
    /// [`Error::Ptx`] if the module has none.
    pub(crate) fn function(&self, name: &'static str) -> Result<Function> {
        let context = self.context();
        let missing = || context.refusal(self.name(), format!("there is no kernel {name} in it"));
        let text = CString::new(name).map_err(|_| missing())?;
        let _current = context.enter()?;
        let mut raw = null_mut();
        // SAFETY: the module lives as long as `self`, the name ends with NUL, one handle is
        // written.
        unsafe { cuModuleGetFunction(&mut raw, self.raw(), text.as_ptr()) }
            .outcome()
            .map_err(|raw| if raw.code == NOT_FOUND { missing() } else { context.error(raw) })?;
        // SAFETY: the handle is of this module, which the function keeps.
        unsafe { Function::new(raw, name, self.clone()) }
    }
}

impl Function {
    /// Asks the driver for the attributes of `raw`.
    ///
    /// # Safety
    /// 1. `raw` is a function of `module`.
    unsafe fn new(raw: CUfunction, name: &'static str, module: Module) -> Result<Self> {
        let _current = module.context().enter()?;
        let attribute = |which| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function lives as long as its module, and one int is written.
            let result = unsafe { cuFuncGetAttribute(&mut value, which, raw) };
            module.context().check(result)?;
            Ok(value.unsigned_abs())
        };
        // This also makes a driver that loads lazily load the kernel now, and not during a
        // measurement.
        let attributes = Attributes {
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            static_shared: attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_threads: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        };
        let allowed = Arc::default();
        Ok(Function { raw, name, attributes, dependent: false, allowed, module })
    }

    /// The kernel, to be launched as a dependent: it may begin before the previous kernel in the
    /// stream has ended, if the device can do that (NVIDIA, *CUDA C++ Programming Guide*,
    /// "Programmatic Dependent Launch and Synchronization").
    ///
    /// Before it accesses global memory the kernel waits for the end of all kernels before it
    /// (`griddepcontrol.wait`; the builder checks this). So it ends after them, and whatever waits
    /// for its end waits for them, too: later work, events, [`super::Uses`], frees. It follows
    /// other work before it, a wait for another stream's event for example, as any launch does.
    pub(crate) fn dependent(self) -> Self {
        let dependent = self.module.context().properties().capability >= (9, 0);
        Function { dependent, ..self }
    }

    /// The kernel, to be captured for a graph. Before CUDA 12.3 a graph has no dependents: there
    /// the kernel begins when those before it have ended.
    pub(crate) fn captured(self) -> Self {
        let dependent = self.dependent && self.module.context().properties().driver >= (12, 3);
        Function { dependent, ..self }
    }

    /// Keeps the kernel's module loaded until the context ends: a graph of another library has the
    /// kernel.
    pub(crate) fn keep_loaded(&self) {
        self.module.keep_loaded();
    }

    /// The kernel's resources, as the driver compiled it.
    pub(crate) fn resources(&self) -> Resources {
        let Attributes { registers, static_shared, .. } = self.attributes;
        Resources { registers, shared: static_shared }
    }

    /// Allows launches with up to `bytes` of dynamic shared memory. This is needed if static and
    /// dynamic shared memory together exceed [`super::Properties::max_shared_static`]. It holds for
    /// the kernel in all values of this type.
    ///
    /// # Errors
    /// [`Error::Launch`] if the device has less.
    pub(crate) fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()> {
        if bytes <= self.allowed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let context = self.module.context();
        let (limit, taken) = (context.properties().max_shared_optin, self.attributes.static_shared);
        let too_much = || Error::Launch {
            kernel: self.name,
            what: format!(
                "{bytes} bytes of dynamic and {taken} of static shared memory: \
                 {} allows {limit} together",
                context.label()
            ),
        };
        let value = i32::try_from(bytes).map_err(|_| too_much())?;
        let _current = context.enter()?;
        let which = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function lives as long as its module, which `self` keeps.
        unsafe { cuFuncSetAttribute(self.raw, which, value) }.outcome().map_err(|raw| {
            if raw.code == INVALID_VALUE { too_much() } else { context.error(raw) }
        })?;
        // Prefer shared memory to L1. For a launch of clusters the driver would set aside the
        // shared memory of one block, and no second block would fit.
        let which = Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        // SAFETY: as above.
        unsafe { cuFuncSetAttribute(self.raw, which, 100) }
            .outcome()
            .map_err(|raw| context.error(raw))?;
        self.allowed.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Queues a launch. A call that waits sees a fault of the kernel. A cluster of one block means
    /// none, or the cluster that the kernel declares.
    ///
    /// # Errors
    /// [`Error::Launch`] for a grid, a block, a cluster or shared memory that the kernel or the
    /// device does not allow.
    ///
    /// # Safety
    /// 1. `params` has a pointer for each of the kernel's parameters, in order, to a value of the
    ///    parameter's size and alignment. The values are copied before this returns.
    /// 2. Every address among them is of memory on this device that stays allocated until the
    ///    kernel has ended. With these values, this grid and this block the kernel accesses no
    ///    other memory.
    /// 3. Until then nothing else writes memory that the kernel reads, or accesses memory that it
    ///    writes, except in the order of the stream.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        config: &LaunchConfig,
        params: &mut [*mut c_void],
    ) -> Result<()> {
        let LaunchConfig { grid, block, dynamic_shared, cluster, .. } = *config;
        let context = self.module.context();
        let _current = context.enter()?;
        // Room for both attributes. The launch gets `attribute_count` of them.
        let mut attributes = [CUlaunchAttribute::programmatic_stream_serialization(); 2];
        let mut attribute_count = usize::from(self.dependent);
        if cluster != [1; 3] {
            attributes[attribute_count] = CUlaunchAttribute::cluster(cluster);
            attribute_count += 1;
        }
        let result = if attribute_count == 0 {
            // SAFETY: function and stream live as long as the borrows; the driver refuses a stream
            // of another device. The parameters are as the caller promises, and no extra options
            // are given.
            unsafe {
                cuLaunchKernel(
                    self.raw,
                    grid[0],
                    grid[1],
                    grid[2],
                    block[0],
                    block[1],
                    block[2],
                    dynamic_shared,
                    *stream.raw(),
                    params.as_mut_ptr(),
                    null_mut(),
                )
            }
            .outcome()
        } else {
            let raw_stream = stream.raw();
            let config = CUlaunchConfig {
                grid,
                block,
                dynamic_shared,
                stream: raw_stream.cast(),
                attributes: attributes.as_mut_ptr(),
                attribute_count: attribute_count as u32, // at most 2
            };
            // SAFETY: as above. The attributes outlive the call, and `attribute_count` of them are
            // valid.
            unsafe { cuLaunchKernelEx(&config, self.raw.cast(), params.as_mut_ptr(), null_mut()) }
                .outcome()
        };
        result.map_err(|raw| match raw.code {
            INVALID_VALUE | LAUNCH_OUT_OF_RESOURCES | INVALID_CLUSTER_SIZE => {
                Error::Launch { kernel: self.name, what: self.refusal(raw, config) }
            }
            _ => context.error(raw),
        })
    }

    /// A launch that the driver refused, with all possible reasons.
    fn refusal(&self, raw: Raw, config: &LaunchConfig) -> String {
        let Attributes { registers, static_shared, max_threads, .. } = self.attributes;
        let LaunchConfig { grid, block, dynamic_shared, cluster, .. } = config;
        let clusters = match cluster {
            [1, 1, 1] => String::new(),
            _ => format!(" in clusters {cluster:?}"),
        };
        format!(
            "grid {grid:?}{clusters}, block {block:?} of at most {max_threads} threads with {registers} \
             registers each, {dynamic_shared} bytes of dynamic and {static_shared} of static shared \
             memory: {}",
            raw.words()
        )
    }
}
