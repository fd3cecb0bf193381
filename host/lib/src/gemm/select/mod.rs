//! Which kernel computes a product: [`candidates`] lists all, [`choose`] takes one. Both are pure
//! functions of a [`Request`] and a [`Target`]; `--plan` prints them without a device.
//!
//! * [`fit`] evaluates a candidate: how a kernel computes the request, and in what time.
//! * [`rules`] reject kernels that cannot compute the request. A general kernel and one whose
//!   threads split k take every product. A lesson's kernel takes `A B` of dense row-major matrices,
//!   one at a time. A TMA kernel needs Hopper (or the CPU device), operands that its [`layout`]
//!   rules can bring into its form, and workspace for their copies.
//! * [`work`] gives each remaining kernel a time by part ([`dot`] if its threads split k), from its
//!   row's figures, for the rates of the device ([`scale`]); [`times`] adds the host's and other
//!   launches'. The shortest wins.
//! * [`invariant`] says in which [`order`] an invariant product is added.
//! * [`cache`] remembers a thread's last choices.
//! * [`shortlist`] has the candidates that a tuned product times.

mod cache;
mod choice;
mod choose;
mod dot;
#[cfg(test)]
mod extremes;
mod fit;
mod invariant;
pub(super) mod layout;
mod order;
pub(super) mod partials;
mod request;
mod rules;
mod scale;
mod shortlist;
mod times;
mod work;

#[cfg(feature = "cpu")]
pub(super) use self::choose::choice_of;
pub(super) use self::{
    cache::choose_cached,
    choose::{candidates_of, choose_kernel},
    request::{MOST_PARTIALS, MOST_SPLITS},
    shortlist::shortlist,
};
pub use self::{
    choice::{Candidate, Choice, Reason},
    choose::{candidates, choose, predict},
    order::Invariant,
    request::{DEFAULT_WORKSPACE_LIMIT, Request, SLICES_WORKSPACE_LIMIT},
    rules::{Ineligible, runs_on},
    times::Times,
};
