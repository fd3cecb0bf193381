//! Symbols: variables of kernels, written and read by the host.

use simt::{Element, device::GlobalPointer, symbol};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{Buffer, Pod},
    device::{Device, Kind},
    error::{Error, Result},
    memory,
};

/// A variable of a kernel crate on a device, made by [`simt::global`] or [`simt::constant`].
///
/// Each [`Device`] of a GPU has variables of its own, those of the PTX that it has loaded; the CPU has one set a
/// process, whatever handle it is seen through. There the host's accesses wait until no launch runs.
#[derive(Debug)]
pub struct Symbol<S: 'static> {
    symbol: &'static S,
    place: Place,
}

/// A pointer variable of a kernel crate on a device, made by [`simt::global_pointer`].
#[derive(Debug)]
pub struct PointerSymbol<T: 'static> {
    symbol: &'static GlobalPointer<T>,
    device: Device,
    place: Place,
}

/// Where a variable is.
#[derive(Debug)]
enum Place {
    Host {
        address: u64,
        bytes: usize,
    },
    #[cfg(feature = "cuda")]
    Cuda(cuda::Global),
}

impl Place {
    fn address(&self) -> u64 {
        match self {
            Place::Host { address, .. } => *address,
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.address(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Place::Host { bytes, .. } => *bytes,
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.len(),
        }
    }
}

impl Device {
    /// The variable of a kernel crate: `device.symbol(&COEFFICIENTS)`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a variable that the device's PTX does not have, or has in another size;
    /// [`Error::Ptx`] where the driver refuses the PTX.
    pub fn symbol<S: simt::Symbol<Element: Pod>>(&self, symbol: &'static S) -> Result<Symbol<S>> {
        let bytes = symbol.len() * size_of::<S::Element>();
        let place = self.place(symbol.name(), symbol.place() as u64, bytes, bytes)?;
        Ok(Symbol { symbol, place })
    }

    /// The pointer variable of a kernel crate.
    ///
    /// # Errors
    /// As [`Device::symbol`].
    pub fn pointer_symbol<T: Element>(
        &self,
        symbol: &'static GlobalPointer<T>,
    ) -> Result<PointerSymbol<T>> {
        let (address, bytes) = (symbol.place() as u64, size_of::<(*mut T, usize)>());
        // Its name in the PTX.
        let name = format!("pointer${}", symbol.name());
        let place = self.place(&name, address, bytes, size_of::<u64>())?;
        Ok(PointerSymbol { symbol, device: self.clone(), place })
    }

    /// Where a variable is that has `bytes` in this process and `on_gpu` on a GPU.
    fn place(&self, name: &str, address: u64, bytes: usize, on_gpu: usize) -> Result<Place> {
        match &*self.0 {
            Kind::Cpu(_) => {
                let _ = (name, on_gpu);
                Ok(Place::Host { address, bytes })
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
    /// Its address on the device: what CUDA's `cudaGetSymbolAddress` gives.
    pub fn address(&self) -> u64 {
        self.place.address()
    }

    /// Its size in bytes: what CUDA's `cudaGetSymbolSize` gives.
    pub fn bytes(&self) -> usize {
        self.place.bytes()
    }

    /// Writes all of it, after all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of elements than the variable has: nothing is written; those of
    /// kernels launched before.
    pub fn write(&self, values: &[S::Element]) -> Result<()> {
        let (name, len) = (self.symbol.name(), self.symbol.len());
        if values.len() != len {
            let limit = format!("the variable {name} has {len} elements");
            return Err(Error::argument("values.len()", values.len(), limit));
        }
        match &self.place {
            Place::Host { .. } => {
                symbol::write(self.symbol, values);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.write(bytemuck::cast_slice(values)),
        }
    }

    /// All its elements, after all work on the device.
    ///
    /// # Errors
    /// Those of kernels launched before.
    pub fn read(&self) -> Result<Vec<S::Element>> {
        let mut values = memory::filled(bytemuck::Zeroable::zeroed(), self.symbol.len())?;
        match &self.place {
            Place::Host { .. } => symbol::read(self.symbol, &mut values),
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.read(bytemuck::cast_slice_mut(&mut values))?,
        }
        Ok(values)
    }
}

impl<T: Pod> PointerSymbol<T> {
    /// Its own address on the device, not the one that it holds.
    pub fn address(&self) -> u64 {
        self.place.address()
    }

    /// Its size in bytes. On the CPU it holds the buffer's length as well.
    pub fn bytes(&self) -> usize {
        self.place.bytes()
    }

    /// Makes it point to a buffer, after all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for a buffer on another device: nothing is written; those of kernels launched before.
    ///
    /// # Safety
    /// 1. The buffer is there, and nobody else uses it, as long as kernels use the variable.
    /// 2. No other part of the program launches kernels that use the variable and counts on what it pointed to.
    pub unsafe fn point_to(&self, buffer: &mut Buffer<T>) -> Result<()> {
        if *buffer.device() != self.device {
            let limit = format!("{} is on {}", self.symbol.name(), self.device.name());
            return Err(Error::argument("buffer", buffer.device().name(), limit));
        }
        let address = buffer.address();
        match &self.place {
            Place::Host { .. } => {
                // SAFETY: the buffer's elements, which the caller keeps.
                unsafe { self.symbol.point_to(address as *mut T, buffer.len()) };
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(global) => global.write(&address.to_ne_bytes()),
        }
    }
}
