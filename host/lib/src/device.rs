//! Devices: a GPU with its driver, or the CPU.

#[cfg(feature = "cpu")]
mod cpu;

#[cfg(feature = "cuda")]
use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};
use std::{fmt, sync::Arc};

use simt::{Constants, Declaration, Limits, count_of};

#[cfg(feature = "cpu")]
pub use self::cpu::Best;
#[cfg(feature = "cpu")]
pub(crate) use self::cpu::Cpu;

#[cfg(feature = "cuda")]
use crate::{
    cuda,
    ptx::{Index, Ptx, split},
};
use crate::{
    error::{Error, Result},
    ptx::Resources,
};

/// A GPU, or the CPU. Kernels run on it, and buffers are in its memory.
///
/// A `Device` is a handle: it is cheap to clone, and whatever is made on it keeps it alive.
///
/// ```
/// use gpu_gemm::Device;
///
/// let best = Device::best();
/// match &best.why_no_gpu {
///     None => println!("on {}", best.device),
///     Some(reason) => println!("on the CPU: {reason}"),
/// }
/// let cpu = Device::cpu();
/// assert_eq!((cpu.name().as_str(), cpu.is_cuda()), ("cpu", false));
/// ```
#[derive(Clone, Debug)]
pub struct Device(pub(crate) Arc<Kind>);

#[derive(Debug)]
pub(crate) enum Kind {
    Cpu(Cpu),
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
}

/// There is no CPU device.
#[cfg(not(feature = "cpu"))]
#[derive(Debug)]
pub(crate) enum Cpu {}

/// A GPU and the kernels loaded on it.
#[cfg(feature = "cuda")]
#[derive(Debug)]
pub(crate) struct Cuda {
    pub(crate) context: Arc<cuda::Context>,
    pub(crate) ptx: Ptx,
    /// The module of the kernels that share variables. It is loaded when the first of them, or a
    /// variable, is used. Every other kernel has a module of its own.
    variables: OnceLock<cuda::Module>,
    /// PTX of other crates, in the order in which it was loaded. The driver compiles it then.
    loaded: Mutex<Vec<Loaded>>,
    functions: Mutex<Vec<Known>>,
}

/// A kernel that was launched.
#[cfg(feature = "cuda")]
#[derive(Debug)]
struct Known {
    /// The one that was compared with the PTX's.
    declaration: Declaration,
    /// The constants of the launch, and all of the kernel's.
    constants: [Constants; 2],
    function: cuda::Function,
}

/// PTX of another crate on a GPU.
#[cfg(feature = "cuda")]
#[derive(Debug)]
struct Loaded {
    name: String,
    /// The declarations of its kernels, by name.
    declarations: HashMap<String, String>,
    /// The PTX, to be specialised for kernels with other constants.
    text: String,
    module: cuda::Module,
}

impl Device {
    /// The GPU with an index, in the driver's order, from 0.
    ///
    /// # Errors
    /// [`Error::NoDriver`](crate::Error::NoDriver), [`Error::NoDevice`](crate::Error::NoDevice),
    /// and [`Error::Architecture`](crate::Error::Architecture) for a GPU older than compute
    /// capability 8.0.
    #[cfg(feature = "cuda")]
    pub fn cuda(index: usize) -> Result<Self> {
        let context = cuda::Context::open(index)?;
        let properties = context.properties();
        let ptx = Ptx::for_device(&properties.name, properties.capability)?;
        let (variables, loaded, functions) = Default::default();
        Ok(Device(Arc::new(Kind::Cuda(Cuda { context, ptx, variables, loaded, functions }))))
    }

    /// No GPU: the feature `cuda` is off.
    ///
    /// # Errors
    /// Always [`Error::NoDriver`](crate::Error::NoDriver).
    #[cfg(not(feature = "cuda"))]
    pub fn cuda(_index: usize) -> Result<Self> {
        let reason = "not looked for: gpu-gemm was built without its feature `cuda`".to_owned();
        Err(Error::NoDriver { reason })
    }

    /// The number of GPUs. A driver that finds none is no error: 0.
    ///
    /// # Errors
    /// [`Error::NoDriver`](crate::Error::NoDriver) without a driver.
    pub fn cuda_count() -> Result<usize> {
        #[cfg(feature = "cuda")]
        return cuda::device_count();
        #[cfg(not(feature = "cuda"))]
        return Device::cuda(0).map(|_| 0);
    }

    /// The newest CUDA version (major, minor) that the driver supports. It limits the version of
    /// PTX. It is known even if the driver does not start.
    ///
    /// # Errors
    /// [`Error::NoDriver`](crate::Error::NoDriver) without a driver.
    pub fn cuda_version() -> Result<(u32, u32)> {
        #[cfg(feature = "cuda")]
        return cuda::driver_version();
        #[cfg(not(feature = "cuda"))]
        return Device::cuda(0).map(|_| (0, 0));
    }

    /// Loads the PTX of another kernel crate, as `xtask::PtxBuilder` builds it. Then its kernels
    /// can be launched on this GPU. A kernel replaces one of the same name that was loaded before.
    /// Messages call the PTX `name`. On the CPU this does nothing.
    ///
    /// # Errors
    /// [`Error::Ptx`](crate::Error::Ptx), with the compiler's log, if the driver refuses the PTX.
    ///
    /// # Safety
    /// 1. A kernel in it with the declaration of a kernel in the source does what that one does.
    ///    From now on safe functions launch it, too.
    pub unsafe fn load_ptx(&self, name: &str, ptx: &str) -> Result<()> {
        match &*self.0 {
            Kind::Cpu(_) => {
                let _ = (name, ptx);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let module = cuda::Module::load(&gpu.context, name, ptx)?;
                // A launch takes the locks in this order.
                let mut functions = gpu.functions.lock().unwrap_or_else(PoisonError::into_inner);
                let mut loaded = gpu.loaded.lock().unwrap_or_else(PoisonError::into_inner);
                let declarations = Index::new(ptx).declarations();
                let (name, text) = (name.to_owned(), ptx.to_owned());
                loaded.push(Loaded { name, declarations, text, module });
                // A name that was launched before may be another kernel now.
                functions.clear();
                Ok(())
            }
        }
    }

    /// The name on the command line: `cuda:0`, `cpu`. Of several CPU devices: `cpu:1`.
    pub fn name(&self) -> String {
        match &*self.0 {
            #[cfg(feature = "cpu")]
            Kind::Cpu(Cpu { number: Some(number), .. }) => format!("cpu:{number}"),
            Kind::Cpu(_) => "cpu".to_owned(),
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => format!("cuda:{}", gpu.context.index()),
        }
    }

    /// A description: `NVIDIA H200, compute capability 9.0`;
    /// `2 cores, a fiber for each CUDA thread`.
    pub fn description(&self) -> String {
        match &*self.0 {
            Kind::Cpu(_) => {
                format!("{}, a fiber for each CUDA thread", count_of(self.sms(), "core"))
            }
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let properties = gpu.context.properties();
                let (major, minor) = properties.capability;
                format!("{}, compute capability {major}.{minor}", properties.name)
            }
        }
    }

    /// Whether it is a GPU.
    pub fn is_cuda(&self) -> bool {
        !matches!(&*self.0, Kind::Cpu(_))
    }

    /// The number of SMs of a GPU, or of cores that the CPU device uses.
    pub fn sms(&self) -> u32 {
        match &*self.0 {
            #[cfg(feature = "cpu")]
            Kind::Cpu(cpu) => {
                cpu.workers.unwrap_or(usize::MAX).clamp(1, simt::cpu::workers()) as u32
            }
            #[cfg(not(feature = "cpu"))]
            Kind::Cpu(cpu) => match *cpu {},
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => gpu.context.properties().sms,
        }
    }

    /// The properties of a GPU, as the driver reports them. `None` for the CPU.
    #[cfg(feature = "cuda")]
    pub fn cuda_properties(&self) -> Option<&cuda::Properties> {
        match &*self.0 {
            Kind::Cpu(_) => None,
            Kind::Cuda(gpu) => Some(gpu.context.properties()),
        }
    }

    /// The registers and the shared memory of a kernel with these constants. The driver compiles
    /// the kernel for this. `None` for the CPU.
    ///
    /// # Errors
    /// As [`Stream::launch`](crate::Stream::launch).
    pub fn kernel_resources(
        &self,
        declaration: &Declaration,
        constants: &Constants,
    ) -> Result<Option<Resources>> {
        match &*self.0 {
            Kind::Cpu(_) => {
                let _ = (declaration, constants);
                Ok(None)
            }
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                Ok(Some(gpu.function(declaration, constants, || Ok(()))?.resources()))
            }
        }
    }

    /// The size of a GPU's L2 in bytes. 0 for the CPU.
    pub fn l2_bytes(&self) -> u64 {
        match &*self.0 {
            Kind::Cpu(_) => 0,
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => gpu.context.properties().l2.into(),
        }
    }

    /// Makes a GPU's context current on the calling thread, for the caller's own calls of the
    /// driver or of NVIDIA's libraries. On the CPU this does nothing.
    ///
    /// # Errors
    /// [`Error::Driver`].
    #[cfg(feature = "cuda")]
    pub fn make_current(&self) -> Result<()> {
        match &*self.0 {
            Kind::Cpu(_) => Ok(()),
            Kind::Cuda(gpu) => gpu.context.make_current(),
        }
    }

    /// The UUID of a GPU as NVML writes it: `GPU-8c1e...`. `None` for the CPU.
    #[cfg(feature = "cuda")]
    pub fn uuid(&self) -> Option<String> {
        match &*self.0 {
            Kind::Cpu(_) => None,
            Kind::Cuda(gpu) => Some(gpu.context.properties().uuid.clone()),
        }
    }

    /// The driver's handle of the GPU's primary context, a `CUcontext`, in which all memory and
    /// streams of this device are. It is valid while the device or anything on it lives. `None` for
    /// the CPU.
    #[cfg(feature = "cuda")]
    pub fn raw_cuda_context(&self) -> Option<*mut std::ffi::c_void> {
        match &*self.0 {
            Kind::Cpu(_) => None,
            Kind::Cuda(gpu) => Some(gpu.context.raw().cast()),
        }
    }

    /// The folder in `gpu/ptx` with the kernels that are compiled for this GPU. `None` for the CPU.
    pub fn ptx_file(&self) -> Option<&'static str> {
        match &*self.0 {
            Kind::Cpu(_) => None,
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => Some(gpu.ptx.target),
        }
    }

    /// The limits of a launch.
    pub fn limits(&self) -> Limits {
        match &*self.0 {
            #[cfg(feature = "cpu")]
            Kind::Cpu(_) => simt::cpu::LIMITS,
            #[cfg(not(feature = "cpu"))]
            Kind::Cpu(cpu) => match *cpu {},
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let properties = gpu.context.properties();
                Limits {
                    block_threads: properties.max_threads_per_block,
                    block: properties.max_block_dim,
                    grid: properties.max_grid_dim,
                    shared: properties.max_shared_optin,
                    // CUDA's portable cluster size.
                    cluster: if properties.capability >= (9, 0) { 8 } else { 1 },
                }
            }
        }
    }

    /// The memory in bytes: free, and in all. For the CPU device free memory is what this process
    /// may still take.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn memory(&self) -> Result<(u64, u64)> {
        match &*self.0 {
            Kind::Cpu(_) => Ok(crate::memory::available()),
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => gpu.context.memory_info(),
        }
    }

    /// Checks that this many bytes are free. They are not reserved.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if fewer are free; those of the driver.
    pub fn require_memory(&self, needed: u64) -> Result<()> {
        let (free, _) = self.memory()?;
        match needed <= free {
            true => Ok(()),
            false => Err(Error::OutOfMemory { device: self.name(), needed, free }),
        }
    }
}

#[cfg(feature = "cuda")]
impl Cuda {
    /// The kernel with that declaration and these constants, ready to be launched. The first time,
    /// the declaration is compared with the PTX's: PTX of another source may have other parameters.
    /// `may_load` refuses to load a kernel now.
    pub(crate) fn function(
        &self,
        declaration: &Declaration,
        constants: &Constants,
        may_load: impl FnOnce() -> Result<()>,
    ) -> Result<cuda::Function> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_this = |known: &Known| known.declaration == *declaration;
        let as_before = |known: &&Known| known.constants[0] == *constants && is_this(known);
        if let Some(known) = functions.iter().find(as_before) {
            return Ok(known.function.clone());
        }
        let name = declaration.name;
        let all = declaration.resolve(constants);
        let all = all.map_err(|what| Error::Launch { kernel: name, what })?;
        let is_loaded = |known: &&Known| known.constants[1] == all && is_this(known);
        let known = functions.iter().find(is_loaded).map(|known| known.function.clone());
        let function = match known {
            Some(function) => function,
            None => {
                may_load()?;
                self.load(declaration, &all)?
            }
        };
        functions.retain(|known| known.declaration.name != name || is_this(known));
        functions.push(Known {
            declaration: *declaration,
            constants: [*constants, all],
            function: function.clone(),
        });
        Ok(function)
    }

    /// The same with all constants, loaded now.
    fn load(&self, declaration: &Declaration, constants: &Constants) -> Result<cuda::Function> {
        let name = declaration.name;
        let wanted = declaration.to_ptx_comment();
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let own = loaded.iter().rev().find(|own| own.declarations.contains_key(name));
        let ptx = self.ptx.with(name);
        let (file, found) = match own {
            Some(own) => (own.name.clone(), own.declarations.get(name).map(String::as_str)),
            None => (ptx.path(name), ptx.declaration(name)),
        };
        if found != Some(&*wanted) {
            let found = found.unwrap_or("no such kernel");
            return Err(Error::Launch {
                kernel: name,
                what: format!(
                    "{file} has \"{found}\", the source \"{wanted}\": build the PTX anew, or load the file that it is in (Device::load_ptx)"
                ),
            });
        }
        let text = match own {
            Some(own) => split::for_kernel(&Index::new(&own.text), name),
            // The PTX has its declaration, so it has the kernel.
            None => ptx.text(name).unwrap_or_default(),
        };
        // PTX for an older target does not wait for the kernels before it.
        let begins_early = declaration.dependent && text.contains("griddepcontrol.wait");
        let function = match own {
            Some(own) if declaration.constants.is_empty() => own.module.function(name),
            None if ptx.shares_variables(name) => self.variables()?.function(name),
            _ => self.compile(&file, text, declaration, constants),
        }?;
        Ok(if begins_early { function.dependent() } else { function })
    }

    /// The variable of that name, and its file. The PTX that was loaded last goes first.
    pub(crate) fn global(&self, name: &str) -> Result<(String, cuda::Global)> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        for own in loaded.iter().rev() {
            if let Some(global) = own.module.global(name)? {
                return Ok((own.name.clone(), global));
            }
        }
        let file = Ptx::VARIABLES;
        match self.variables()?.global(name)? {
            Some(global) => Ok((file.to_owned(), global)),
            None => {
                let limit = format!(
                    "{file} has no such variable: build the PTX anew, or load the file that it is in \
                     (Device::load_ptx)"
                );
                Err(Error::argument("symbol", name, limit))
            }
        }
    }

    /// Lets the driver compile a kernel's text.
    fn compile(
        &self,
        file: &str,
        text: String,
        declaration: &Declaration,
        constants: &Constants,
    ) -> Result<cuda::Function> {
        let (text, name) = split::specialised(text, declaration, constants);
        let level = declaration.opt_level;
        cuda::Module::load_at(&self.context, file, &text, level)?.function(name)
    }

    /// The kernels that share variables, and the variables.
    fn variables(&self) -> Result<&cuda::Module> {
        if let Some(module) = self.variables.get() {
            return Ok(module);
        }
        let text = Ptx::variables().unwrap_or_default();
        let module = cuda::Module::load(&self.context, Ptx::VARIABLES, &text)?;
        Ok(self.variables.get_or_init(|| module))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.description())
    }
}

impl PartialEq for Device {
    /// Whether both have the same memory: all handles of the CPU are one device, but for several
    /// CPU devices, which are known by their numbers as a GPU is by its index.
    fn eq(&self, other: &Self) -> bool {
        // Every launch compares the devices of its operands.
        match (&*self.0, &*other.0) {
            #[cfg(feature = "cpu")]
            (Kind::Cpu(a), Kind::Cpu(b)) => a.number == b.number,
            #[cfg(not(feature = "cpu"))]
            (Kind::Cpu(cpu), _) | (_, Kind::Cpu(cpu)) => match *cpu {},
            #[cfg(feature = "cuda")]
            (Kind::Cuda(a), Kind::Cuda(b)) => a.context.index() == b.context.index(),
            #[cfg(all(feature = "cpu", feature = "cuda"))]
            _ => false,
        }
    }
}
