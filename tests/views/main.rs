//! Nothing outside a view's elements is read or written: by every kernel of the registry, and by
//! those that prepare its operands, on the CPU device. The rows of a view may have gaps between
//! them, and somebody else's data there.
//!
//! | module | what is tested |
//! |---|---|
//! | `cases` | the views: layouts, misalignments, gaps, batches, strides |
//! | `memory` | a view in memory of its own, where pages without an element cannot be accessed |
//! | `pages` | every kernel, with such memory |
//! | `gaps` | kernels of every family, with every access checked: also those to a gap within a page |

mod cases;
mod gaps;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod pages;
