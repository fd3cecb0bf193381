//! A GPU's context and properties.

use super::driver::{device_count, driver_version};
use super::failure::{OUT_OF_MEMORY, Outcome, Raw, check, outcome};
use crate::error::{Error, Result};
use cust::context::CurrentContext;
use cust::device::{Device, DeviceAttribute};
use cust::sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
use std::sync::Arc;

/// A device's primary context, which all libraries in the process share.
///
/// It is retained while this value lives. Two values for one device are the same context.
#[derive(Debug)]
pub(crate) struct Context {
    context: cust::context::Context,
    index: usize,
    properties: Properties,
}

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
    /// The most shared memory of a block without an attribute of the kernel, static and dynamic together.
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
    /// [`Error::NoDriver`], [`Error::NoDevice`], and [`Error::Driver`] for a device that this process may
    /// not use.
    pub(crate) fn open(index: usize) -> Result<Arc<Self>> {
        let count = device_count()?;
        let ordinal = u32::try_from(index).ok().filter(|_| index < count);
        let ordinal = ordinal.ok_or(Error::NoDevice { index, count })?;
        let device = check(Device::get_device(ordinal))?;
        let properties = Properties::of(device)?;
        let context = check(cust::context::Context::new(device))?;
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
        self.make_current()?;
        let (free, total) = check(cust::memory::mem_get_info())?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all work on the device, in every stream.
    ///
    /// # Errors
    /// Those of kernels, too: a call that waits is the first to see a fault.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.make_current()?;
        self.check(CurrentContext::synchronize())
    }

    /// Makes this the context of the calling thread's next driver calls.
    pub(crate) fn make_current(&self) -> Result<()> {
        check(CurrentContext::set_current(&self.context))
    }

    /// The result of a call that allocates memory whose size only the driver knows.
    pub(super) fn check<O: Outcome>(&self, result: O) -> Result<O::Value> {
        outcome(result).map_err(|raw| self.error(raw))
    }

    /// The error for `raw`. If the driver had not enough memory for something whose size only it knows (a module's code, a kernel's stack), the
    /// error has the free memory.
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

impl Properties {
    fn of(device: Device) -> Result<Self> {
        use DeviceAttribute as A;
        let attribute = |which| check(device.get_attribute(which)).map(i32::unsigned_abs);
        // The driver may not know these, or say 0.
        let maybe = |which| attribute(which).ok().filter(|&value| value > 0);
        Ok(Properties {
            name: check(device.name())?,
            uuid: uuid(device).unwrap_or_default(),
            capability: (
                attribute(A::ComputeCapabilityMajor)?,
                attribute(A::ComputeCapabilityMinor)?,
            ),
            driver: driver_version()?,
            sms: attribute(A::MultiprocessorCount)?,
            memory: check(device.total_memory())? as u64,
            l2: attribute(A::L2CacheSize)?,
            max_shared_static: attribute(A::MaxSharedMemoryPerBlock)?,
            max_shared_optin: max_shared_optin(device)?,
            shared_per_multiprocessor: attribute(A::MaxSharedMemoryPerMultiprocessor)?,
            registers_per_multiprocessor: attribute(A::MaxRegistersPerMultiprocessor)?,
            threads_per_multiprocessor: attribute(A::MaxThreadsPerMultiprocessor)?,
            max_threads_per_block: attribute(A::MaxThreadsPerBlock)?,
            max_block_dim: [
                attribute(A::MaxBlockDimX)?,
                attribute(A::MaxBlockDimY)?,
                attribute(A::MaxBlockDimZ)?,
            ],
            max_grid_dim: [
                attribute(A::MaxGridDimX)?,
                attribute(A::MaxGridDimY)?,
                attribute(A::MaxGridDimZ)?,
            ],
            clock_khz: maybe(A::ClockRate),
            memory_clock_khz: maybe(A::MemoryClockRate),
            memory_bus_bits: maybe(A::GlobalMemoryBusWidth),
        })
    }
}

/// `GPU-8c1e4e3a-...`, as NVIDIA's tools write it.
fn uuid(device: Device) -> Result<String> {
    let mut uuid = cust::sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the driver writes sixteen bytes, and the handle comes from the driver.
    check(unsafe { cust::sys::cuDeviceGetUuid(&mut uuid, device.as_raw()) })?;
    let digits = uuid.bytes.map(|byte| format!("{:02x}", byte as u8)).concat();
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Ok(format!("GPU-{}", parts.join("-")))
}

/// An attribute that is missing in `cust`'s list.
fn max_shared_optin(device: Device) -> Result<u32> {
    let mut bytes = 0;
    // SAFETY: the driver writes one int, and the handle comes from the driver.
    check(unsafe {
        cust::sys::cuDeviceGetAttribute(
            &mut bytes,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            device.as_raw(),
        )
    })?;
    Ok(bytes.unsigned_abs())
}
