//! Streams and memory of other libraries that are taken back.

use super::binding::{CUcontext, CUdevice};
use super::failure::check;
use super::{Context, Event, Stream};
use crate::error::{Error, Result};
use cuda_dyn::{CUpointer_attribute, cuPointerGetAttribute};
use std::ptr::null_mut;
use std::sync::Arc;

impl Stream {
    /// Gives a foreign stream back. Whatever waits for its work from now on waits for a stream of
    /// our own, which follows that work.
    ///
    /// # Errors
    /// Those of the driver. The stream is given back all the same; then all work has been waited
    /// for, if that was possible.
    pub(crate) fn give_back(&self) -> Result<()> {
        if !self.is_lent() {
            return Ok(());
        }
        let own = Stream::new(self.context());
        let follows = own.and_then(|own| {
            let event = Event::new(self.context())?;
            event.record(self)?;
            own.wait_for(&event)?;
            Ok(Arc::new(own))
        });
        match follows {
            Ok(own) => {
                self.replace(Some(own));
                Ok(())
            }
            Err(error) => {
                let _ = self.context().synchronize();
                self.replace(None);
                Err(error)
            }
        }
    }
}

/// Refuses an address that is not in the memory of the device, or that was allocated in another
/// context. Null is of any.
///
/// # Errors
/// [`Error::Argument`].
pub(crate) fn check_address(context: &Context, address: u64) -> Result<()> {
    if address == 0 {
        return Ok(());
    }
    let _current = context.enter()?;
    let mut ordinal: CUdevice = -1;
    let data = (&raw mut ordinal).cast();
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    // SAFETY: one number is written. An address that the driver does not know is an error.
    let known = check(unsafe { cuPointerGetAttribute(data, attribute, address) });
    if known.is_err() || usize::try_from(ordinal) != Ok(context.index()) {
        let limit = format!("must be memory of {}", context.label());
        return Err(Error::argument("address", format!("{address:#x}"), limit));
    }
    let mut its: CUcontext = null_mut();
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
    // SAFETY: one handle is written.
    let known = unsafe { cuPointerGetAttribute((&raw mut its).cast(), attribute, address) };
    // Memory of the driver's pools, and memory that was mapped by addresses, is of no context.
    if known.is_ok() && !its.is_null() && !context.is(its) {
        let limit = format!("must be memory of the primary context of {}", context.label());
        return Err(Error::argument("address", format!("{address:#x}, of another context"), limit));
    }
    Ok(())
}
