//! The private layer over the CUDA driver: contexts, memory, streams, events, modules, functions.
//!
//! Everything reaches the driver through `cust`: by its safe types where they fit, by `cust::sys` where
//! they do not (streams that do not wait for the default stream, the compiler's log, more than 48 KiB of
//! dynamic shared memory). The driver itself is loaded at run time by `cuda-dyn`, so all this compiles,
//! links and starts on a machine without one.
//!
//! Rules that hold in every file here:
//! * Each operation first makes its device's context current on the calling thread, so every type can be
//!   used from any thread and several devices can be mixed.
//! * Whatever lives on a device keeps its [`Context`] alive. Dropping never fails and never panics: after
//!   a fault in a kernel the driver refuses to release anything, and the process's end does it.
//! * Streams do not synchronise with the default stream. What must be finished when a call returns is
//!   waited for in that call.

mod context;
mod driver;
mod event;
mod failure;
mod function;
mod global;
mod memory;
mod module;
mod pinned;
mod rows;
mod stream;
mod tensor_map;
#[cfg(test)]
mod tests;
mod uses;

pub(crate) use context::Context;
pub use context::Properties;
pub(crate) use driver::{device_count, driver_version};
pub(crate) use event::Event;
pub(crate) use function::Function;
pub(crate) use global::Global;
pub(crate) use memory::Memory;
pub(crate) use module::Module;
pub(crate) use pinned::{PinnedMemory, Pitched, Way};
pub(crate) use rows::copy_rows;
pub(crate) use stream::Stream;
pub(crate) use tensor_map::encode;
pub(crate) use uses::Uses;
