//! Which kernel computes a product: [`candidates`] lists all, [`choose`] takes one. Both are pure
//! functions of a [`Request`] and a [`Target`]; `--plan` prints them without a device.
//!
//! * [`rules`] reject kernels that cannot compute the request. A general kernel and one whose
//!   threads split k take every product. A lesson's kernel takes `A B` of dense row-major matrices,
//!   one at a time. A TMA kernel needs Hopper (or the CPU device), operands that its [`layout`]
//!   rules can bring into its form, and workspace for their copies.
//! * [`predict`] gives each remaining kernel a time ([`cuda_cores`] if it reads any strides). The
//!   shortest wins.
//! * [`cache`] remembers a thread's last choices.

mod cache;
mod choice;
mod choose;
mod cuda_cores;
mod dot;
#[cfg(test)]
mod extremes;
pub(super) mod layout;
pub(super) mod partials;
mod predict;
mod request;
mod rules;

#[cfg(feature = "cpu")]
pub(super) use self::choose::choice_of;
pub(super) use self::{
    cache::choose_cached,
    choose::{candidates_of, choose_kernel},
    partials::MOST_PARTIALS,
    request::MOST_SPLITS,
};
pub use self::{
    choice::{Candidate, Choice, Reason},
    choose::{candidates, choose},
    request::{DEFAULT_WORKSPACE_LIMIT, Request, SLICES_WORKSPACE_LIMIT},
    rules::Ineligible,
};
