//! Symbols: variables of kernels that the host reads and writes.

#[cfg(feature = "cpu")]
use simt::symbol;
use simt::{Element, count_of, device::GlobalPointer};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{Buffer, Pod},
    device::{Device, Kind},
    error::{Error, Result},
    memory,
};

/// A variable of a kernel crate on a device. The macros [`simt::global`] and [`simt::constant`]
/// declare one.
///
/// Each [`Device`] handle of a GPU has its own variables, in the PTX that it has loaded. The CPU
/// device has one set for the process. There the host's accesses wait until no launch runs.
///
/// ```
/// use gpu_gemm::{Device, gpu::lessons::memories::COEFFICIENTS};
///
/// let variable = Device::best().device.symbol(&COEFFICIENTS)?;
/// let values = variable.read()?;
/// variable.write(&values)?;
/// assert_eq!(variable.bytes(), values.len() * size_of::<f32>());
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct Symbol<S: 'static> {
    symbol: &'static S,
    place: Place,
}

/// A pointer variable of a kernel crate on a device. The macro [`simt::global_pointer`] declares
/// one.
#[derive(Debug)]
pub struct PointerSymbol<T: 'static> {
    symbol: &'static GlobalPointer<T>,
    device: Device,
    place: Place,
}

/// The memory of a variable.
#[derive(Debug)]
enum Place {
    #[cfg(feature = "cpu")]
    Host { address: u64, bytes: usize },
    #[cfg(feature = "cuda")]
    Cuda(cuda::Global),
}

impl Place {
    fn address(&self) -> u64 {
        match self {
            #[cfg(feature = "cpu")]
            Place::Host { address, .. } => *address,
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.address(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            #[cfg(feature = "cpu")]
            Place::Host { bytes, .. } => *bytes,
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.len(),
        }
    }
}

impl Device {
    /// A variable of a kernel crate on this device.
    ///
    /// # Errors
    /// [`Error::Argument`] if the device's PTX does not have the variable, or has it with another
    /// size; [`Error::Ptx`] if the driver refuses the PTX.
    pub fn symbol<S: simt::Symbol<Element: Pod>>(&self, symbol: &'static S) -> Result<Symbol<S>> {
        let bytes = symbol.len() * size_of::<S::Element>();
        let place = self.place(symbol.name(), symbol.place() as u64, bytes, bytes)?;
        Ok(Symbol { symbol, place })
    }

    /// A pointer variable of a kernel crate on this device.
    ///
    /// # Errors
    /// As [`Device::symbol`].
    pub fn pointer_symbol<T: Element>(
        &self,
        symbol: &'static GlobalPointer<T>,
    ) -> Result<PointerSymbol<T>> {
        let (address, bytes) = (symbol.place() as u64, size_of::<(*mut T, usize)>());
        // The name in the PTX.
        let name = format!("pointer${}", symbol.name());
        let place = self.place(&name, address, bytes, size_of::<u64>())?;
        Ok(PointerSymbol { symbol, device: self.clone(), place })
    }

    /// The memory of a variable. It has `bytes` bytes in this process, and `on_gpu` on a GPU.
    fn place(&self, name: &str, address: u64, bytes: usize, on_gpu: usize) -> Result<Place> {
        match &*self.0 {
            #[cfg(feature = "cpu")]
            Kind::Cpu(_) => {
                let _ = (name, on_gpu);
                Ok(Place::Host { address, bytes })
            }
            #[cfg(not(feature = "cpu"))]
            Kind::Cpu(cpu) => {
                let _ = (address, bytes);
                match *cpu {}
            }
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let (file, global) = gpu.global(name)?;
                if global.len() != on_gpu {
                    let what = format!("{name} of {} bytes in {file}", global.len());
                    let limit = format!("the source has {on_gpu} bytes: build the PTX anew");
                    return Err(Error::argument("symbol", what, limit));
                }
                Ok(Place::Cuda(global))
            }
        }
    }
}

impl<S: simt::Symbol<Element: Pod>> Symbol<S> {
    /// The device address, as from CUDA's `cudaGetSymbolAddress`.
    pub fn address(&self) -> u64 {
        self.place.address()
    }

    /// The size in bytes, as from CUDA's `cudaGetSymbolSize`.
    pub fn bytes(&self) -> usize {
        self.place.bytes()
    }

    /// Writes all elements. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of elements than the variable has: nothing is
    /// written. Errors of kernels launched before.
    pub fn write(&self, values: &[S::Element]) -> Result<()> {
        let (name, len) = (self.symbol.name(), self.symbol.len());
        if values.len() != len {
            let limit = format!("the variable {name} has {}", count_of(len, "element"));
            return Err(Error::argument("values.len()", values.len(), limit));
        }
        match &self.place {
            #[cfg(feature = "cpu")]
            Place::Host { .. } => {
                symbol::write(self.symbol, values);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.write(bytemuck::cast_slice(values)),
        }
    }

    /// A copy of all elements. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host; errors of kernels launched before.
    pub fn read(&self) -> Result<Vec<S::Element>> {
        let mut values = memory::filled(bytemuck::Zeroable::zeroed(), self.symbol.len())?;
        match &self.place {
            #[cfg(feature = "cpu")]
            Place::Host { .. } => symbol::read(self.symbol, &mut values),
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.read(bytemuck::cast_slice_mut(&mut values))?,
        }
        Ok(values)
    }
}

impl<T: Pod> PointerSymbol<T> {
    /// The device address of the variable itself.
    pub fn address(&self) -> u64 {
        self.place.address()
    }

    /// The size in bytes. On the CPU device the variable holds the buffer's length, too.
    pub fn bytes(&self) -> usize {
        self.place.bytes()
    }

    /// Makes the variable point to a buffer. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for a buffer on another device: nothing is written. Errors of kernels
    /// launched before.
    ///
    /// # Safety
    /// 1. The buffer exists, and nobody else uses it, while kernels use the variable.
    /// 2. No other part of the program launches kernels that use the variable and needs the buffer
    ///    that it pointed to.
    pub unsafe fn point_to(&self, buffer: &mut Buffer<T>) -> Result<()> {
        if *buffer.device() != self.device {
            let limit = format!("{} is on {}", self.symbol.name(), self.device.name());
            return Err(Error::argument("buffer", buffer.device().name(), limit));
        }
        let address = buffer.address();
        match &self.place {
            #[cfg(feature = "cpu")]
            Place::Host { .. } => {
                // SAFETY: the address is of the buffer's elements, which the caller keeps.
                unsafe { self.symbol.point_to(address as *mut T, buffer.len()) };
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.write(&address.to_ne_bytes()),
        }
    }
}
