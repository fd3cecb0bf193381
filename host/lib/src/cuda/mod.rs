//! The private layer over the CUDA driver: contexts, memory, streams, events, modules, functions.
//!
//! `cuda-dyn` loads the driver at run time, so programs build, link and start on a machine without
//! one. With the feature `cust` the driver is called through that crate: [`binding`].
//!
//! Rules in every file here:
//! * Each operation makes its device's primary context current on the calling thread while it lasts
//!   ([`Context::enter`]). So every type works on any thread, several devices can be used at once,
//!   and the thread has the context that it had before.
//! * Every object on a device keeps its [`Context`] alive. Dropping never fails or panics. After a
//!   fault in a kernel the driver frees nothing; the end of the process does.
//! * While a thread captures a stream, what it drops is freed, waited for or unloaded when the
//!   capture has ended: [`release`]. Streams and events are destroyed at once, which the driver
//!   allows in a capture.
//! * Streams do not synchronise with the default stream. A call whose effect must be complete when
//!   it returns waits for it.

mod binding;
mod context;
mod driver;
mod event;
mod failure;
mod foreign;
mod function;
mod global;
mod graph;
mod memory;
mod module;
mod peer;
mod pinned;
mod release;
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
pub(crate) use foreign::check_address;
pub(crate) use function::Function;
pub(crate) use global::Global;
pub(crate) use graph::Graph;
pub(crate) use memory::Memory;
pub(crate) use module::Module;
pub(crate) use pinned::{PinnedMemory, Pitched, Way};
pub(crate) use release::{Releases, is_capturing, release};
pub(crate) use rows::copy_rows;
pub(crate) use stream::Stream;
pub(crate) use tensor_map::encode;
pub(crate) use uses::Uses;
