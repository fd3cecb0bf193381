//! Tuning: the fastest of a few kernels, timed once and remembered.
//!
//! * [`cache`] has the answers, and [`file`] is the format in which a file keeps them.
//! * [`question`] has all that an answer depends on, as a value, and as text for the file.
//! * [`measure`] times the candidates of a product.
//! * [`ask`] looks for the answer of a product, and has it measured if there is none.

pub(super) mod ask;
mod cache;
mod file;
mod measure;
mod question;
#[cfg(test)]
mod tests;

pub use self::cache::TuningCache;
