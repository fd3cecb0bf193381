//! Variables of a module.

use super::binding::{cuMemcpyDtoH_v2, cuMemcpyHtoD_v2, cuModuleGetGlobal_v2};
use super::failure::{NOT_FOUND, Outcome, check};
use super::{Context, Module};
use crate::error::Result;
use std::ffi::CString;
use std::sync::Arc;

/// A variable in a module's global or constant memory. It keeps its module loaded.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    address: u64,
    bytes: usize,
    module: Module,
}

impl Module {
    /// The variable with a name. `None` if the module has none.
    pub(crate) fn global(&self, name: &str) -> Result<Option<Global>> {
        let Ok(text) = CString::new(name) else { return Ok(None) };
        let _current = self.context().enter()?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module lives as long as `self`, the name ends with NUL, two numbers are
        // written.
        let result =
            unsafe { cuModuleGetGlobal_v2(&mut address, &mut bytes, self.raw(), text.as_ptr()) };
        match result.outcome() {
            Ok(()) => Ok(Some(Global { address, bytes, module: self.clone() })),
            Err(raw) if raw.code == NOT_FOUND => Ok(None),
            Err(raw) => Err(self.context().error(raw)),
        }
    }
}

impl Global {
    /// The device address.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The number of bytes, as the driver reports it.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    fn context(&self) -> &Arc<Context> {
        self.module.context()
    }

    /// Writes all bytes. Waits for all work on the device. `source` has the variable's length.
    pub(crate) fn write(&self, source: &[u8]) -> Result<()> {
        assert_eq!(source.len(), self.bytes, "the caller compares them");
        let _current = self.context().enter()?;
        self.context().synchronize()?;
        // SAFETY: the variable lives as long as its module, and has `source.len()` bytes.
        self.context().check(unsafe {
            cuMemcpyHtoD_v2(self.address, source.as_ptr().cast(), source.len())
        })?;
        self.context().synchronize()
    }

    /// Reads all bytes. Waits for all work on the device. `target` has the variable's length.
    pub(crate) fn read(&self, target: &mut [u8]) -> Result<()> {
        assert_eq!(target.len(), self.bytes, "the caller compares them");
        let _current = self.context().enter()?;
        self.context().synchronize()?;
        // SAFETY: as in `write`.
        check(unsafe { cuMemcpyDtoH_v2(target.as_mut_ptr().cast(), self.address, target.len()) })
    }
}
