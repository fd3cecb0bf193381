//! xtask
