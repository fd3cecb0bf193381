//! cuda-dyn
