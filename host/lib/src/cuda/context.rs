//! A GPU's context and properties.

use super::binding::{
    self, CUcontext, CUdevice, CUdevice_attribute as Attribute, CUuuid, PrimaryContext,
    cuCtxGetCurrent, cuCtxPopCurrent_v2, cuCtxPushCurrent_v2, cuCtxSetCurrent, cuDeviceGet,
    cuDeviceGetAttribute, cuDeviceGetName, cuDeviceGetUuid, cuDeviceTotalMem_v2,
};
use super::driver::{device_count, driver_version};
use super::failure::{OUT_OF_MEMORY, Outcome, Raw, check};
use crate::error::{Error, Result};
use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A device's primary context, which all libraries in the process share.
///
/// It is retained while this value lives. Two values for one device are the same context.
#[derive(Debug)]
pub(crate) struct Context {
    context: ManuallyDrop<PrimaryContext>,
    index: usize,
    properties: Properties,
}

/// Devices whose work was waited for in vain, and for how long.
static HUNG: Mutex<Vec<(usize, Duration)>> = Mutex::new(Vec::new());
/// Whether there are any: this is asked at each call.
static ANY_HUNG: AtomicBool = AtomicBool::new(false);

/// The properties of a GPU, as the driver reports them. Sizes are in bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Properties {
    /// The product's name: `NVIDIA H200`.
    pub name: String,
    /// `GPU-` and the UUID. Empty if the driver does not say.
    pub uuid: String,
    /// The compute capability (major, minor).
    pub capability: (u32, u32),
    /// The newest CUDA version that the driver supports (major, minor).
    pub driver: (u32, u32),
    /// The number of SMs.
    pub sms: u32,
    /// The device's memory.
    pub memory: u64,
    /// The L2.
    pub l2: u32,
    /// The most shared memory of a block without an attribute of the kernel, static and dynamic
    /// together.
    pub max_shared_static: u32,
    /// The most shared memory of a block, static and dynamic together.
    pub max_shared_optin: u32,
    /// Shared memory of an SM.
    pub shared_per_multiprocessor: u32,
    /// 32-bit registers of an SM.
    pub registers_per_multiprocessor: u32,
    /// The most resident threads of an SM.
    pub threads_per_multiprocessor: u32,
    /// The most threads of a block.
    pub max_threads_per_block: u32,
    /// The most threads of a block in each dimension.
    pub max_block_dim: [u32; 3],
    /// The most blocks of a grid in each dimension.
    pub max_grid_dim: [u32; 3],
    /// The highest SM clock in kHz, if the driver says it.
    pub clock_khz: Option<u32>,
    /// The highest memory clock in kHz, if the driver says it.
    pub memory_clock_khz: Option<u32>,
    /// The width of the memory bus in bits, if the driver says it.
    pub memory_bus_bits: Option<u32>,
}

impl Context {
    /// Opens the device with an index, in the driver's order.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], and [`Error::Driver`] for a device that this
    /// process may not use.
    pub(crate) fn open(index: usize) -> Result<Arc<Self>> {
        let count = device_count()?;
        let ordinal = u32::try_from(index).ok().filter(|_| index < count);
        let ordinal = ordinal.ok_or(Error::NoDevice { index, count })?;
        let mut device = 0;
        // SAFETY: one handle is written.
        check(unsafe { cuDeviceGet(&mut device, ordinal as i32) })?;
        let properties = Properties::of(device)?;
        if let Some(hung) = hung(index) {
            return Err(hung);
        }
        let context = ManuallyDrop::new(check(PrimaryContext::retain(ordinal, device))?);
        Ok(Arc::new(Context { context, index, properties }))
    }

    /// The device's properties.
    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The device's index in the driver's order.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The device's name in messages: `cuda:0 (NVIDIA H200)`.
    pub(crate) fn label(&self) -> String {
        format!("cuda:{} ({})", self.index, self.properties.name)
    }

    /// Device memory in bytes: (free, total).
    pub(crate) fn memory_info(&self) -> Result<(u64, u64)> {
        let _current = self.enter()?;
        let (free, total) = check(binding::mem_get_info())?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all work on the device, in every stream.
    ///
    /// # Errors
    /// Those of kernels, too: a call that waits is the first to see a fault.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _current = self.enter()?;
        self.check(binding::synchronize())
    }

    /// Calls nothing for this device any more, by any value for it: the driver would wait for work
    /// that does not end.
    pub(crate) fn give_up(&self, after: Duration) {
        HUNG.lock().unwrap_or_else(PoisonError::into_inner).push((self.index, after));
        ANY_HUNG.store(true, Ordering::Release);
    }

    /// The error of a device that was given up. Its memory is never freed.
    pub(crate) fn hung(&self) -> Option<Error> {
        hung(self.index)
    }

    /// Whether that handle is this context's.
    pub(super) fn is(&self, raw: CUcontext) -> bool {
        self.context.raw() == raw
    }

    /// The driver's handle, valid while this value lives.
    pub(crate) fn raw(&self) -> CUcontext {
        self.context.raw()
    }

    /// Makes this the calling thread's current context until the value is dropped. Within such a
    /// value the driver is not called again.
    pub(crate) fn enter(&self) -> Result<Current> {
        if let Some(hung) = self.hung() {
            return Err(hung);
        }
        let entered = ENTERED.get();
        if entered == self.context.raw() {
            return Ok(Current { pushed: false, entered, thread: PhantomData });
        }
        let mut before = null_mut();
        // SAFETY: one handle is written.
        check(unsafe { cuCtxGetCurrent(&mut before) })?;
        let pushed = before != self.context.raw();
        if pushed {
            // SAFETY: the context lives as long as `self`.
            check(unsafe { cuCtxPushCurrent_v2(self.context.raw()) })?;
        }
        ENTERED.set(self.context.raw());
        Ok(Current { pushed, entered, thread: PhantomData })
    }

    /// Makes this the calling thread's current context, for the caller's own calls of the driver.
    pub(crate) fn make_current(&self) -> Result<()> {
        // SAFETY: the context lives as long as `self`. Where it is released later, the driver
        // refuses calls in it.
        check(unsafe { cuCtxSetCurrent(self.context.raw()) })
    }

    /// The result of a call that allocates memory whose size only the driver knows.
    pub(super) fn check<O: Outcome>(&self, result: O) -> Result<O::Value> {
        result.outcome().map_err(|raw| self.error(raw))
    }

    /// The error for `raw`. If the driver had not enough memory for something whose size only it
    /// knows (a module's code, a kernel's stack), the error has the free memory.
    pub(super) fn error(&self, raw: Raw) -> Error {
        let mut error = raw.error();
        if let Error::Driver { code: OUT_OF_MEMORY, text, .. } = &mut error
            && let Ok((free, total)) = self.memory_info()
        {
            *text += &format!(" on {}: {free} of {total} bytes are free", self.label());
        }
        error
    }

    /// The error for a PTX file that the driver refuses. `log`: the driver's words.
    pub(super) fn refusal(&self, module: &str, log: String) -> Error {
        Error::Ptx { module: module.into(), driver: self.properties.driver, log }
    }
}

/// The error of the device with that index, if it was given up.
fn hung(index: usize) -> Option<Error> {
    if !ANY_HUNG.load(Ordering::Acquire) {
        return None;
    }
    let hung = HUNG.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, after) = *hung.iter().find(|(other, _)| *other == index)?;
    Some(Error::Hung { device: format!("cuda:{index}"), after })
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.hung().is_none() {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.context) };
        }
    }
}

thread_local! {
    /// The context of this thread's innermost [`Current`], or null. Nobody else's code runs while
    /// there is one, so it is the current one.
    static ENTERED: Cell<CUcontext> = const { Cell::new(null_mut()) };
}

/// While this value lives, a context is the current one of the thread. The one before comes back
/// when it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Current {
    pushed: bool,
    /// That of the value around this one, or null.
    entered: CUcontext,
    /// It stays on its thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Current {
    fn drop(&mut self) {
        ENTERED.set(self.entered);
        if self.pushed {
            let mut own = null_mut();
            // SAFETY: one handle is written. Values of this type are dropped in reverse order, so
            // the last pushed is this one's.
            let _ = unsafe { cuCtxPopCurrent_v2(&mut own) };
        }
    }
}

impl Properties {
    fn of(device: CUdevice) -> Result<Self> {
        let attribute = |which| attribute(device, which);
        // The driver may not know these, or say 0.
        let maybe = |which| attribute(which).ok().filter(|&value| value > 0);
        Ok(Properties {
            name: name(device)?,
            uuid: uuid(device).unwrap_or_default(),
            capability: (
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            driver: driver_version()?,
            sms: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory: memory(device)?,
            l2: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            max_shared_static: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
            )?,
            max_shared_optin: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            shared_per_multiprocessor: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            registers_per_multiprocessor: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
            )?,
            threads_per_multiprocessor: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            )?,
            max_threads_per_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_block_dim: [
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            max_grid_dim: [
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            clock_khz: maybe(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            memory_clock_khz: maybe(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
            memory_bus_bits: maybe(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
        })
    }
}

fn attribute(device: CUdevice, which: Attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the driver writes one int, and the handle comes from the driver.
    check(unsafe { cuDeviceGetAttribute(&mut value, which, device) })?;
    Ok(value.unsigned_abs())
}

fn name(device: CUdevice) -> Result<String> {
    let mut bytes = [0u8; 256];
    let start = bytes.as_mut_ptr().cast::<c_char>();
    // SAFETY: the driver writes at most as many bytes, and the handle comes from the driver.
    check(unsafe { cuDeviceGetName(start, bytes.len() as i32, device) })?;
    let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    Ok(name.to_string_lossy().into())
}

fn memory(device: CUdevice) -> Result<u64> {
    let mut bytes = 0;
    // SAFETY: the driver writes one size, and the handle comes from the driver.
    check(unsafe { cuDeviceTotalMem_v2(&mut bytes, device) })?;
    Ok(bytes as u64)
}

/// `GPU-8c1e4e3a-...`, as NVIDIA's tools write it.
fn uuid(device: CUdevice) -> Result<String> {
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: the driver writes sixteen bytes, and the handle comes from the driver.
    check(unsafe { cuDeviceGetUuid(&mut uuid, device) })?;
    let digits = uuid.bytes.map(|byte| format!("{:02x}", byte as u8)).concat();
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Ok(format!("GPU-{}", parts.join("-")))
}
