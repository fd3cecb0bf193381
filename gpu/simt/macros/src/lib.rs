//! simt-macros
