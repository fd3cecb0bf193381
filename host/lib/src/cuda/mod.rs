//! The private layer over the CUDA driver: contexts, memory, streams, events, modules, functions.
//!
//! The driver is called through `cust`: through its safe types if they fit, otherwise through `cust::sys` (streams that do not wait for the
//! default stream, the compiler's log, more than 48 KiB of dynamic shared memory). `cuda-dyn` loads the driver at run time, so programs
//! build, link and start on a machine without one.
//!
//! Rules in every file here:
//! * Each operation first makes its device's context current on the calling thread. So every type works on any thread, and several devices
//!   can be used at once.
//! * Every object on a device keeps its [`Context`] alive. Dropping never fails or panics. After a fault in a kernel the driver frees
//!   nothing; the end of the process does.
//! * Streams do not synchronise with the default stream. A call whose effect must be complete when it returns waits for it.

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
