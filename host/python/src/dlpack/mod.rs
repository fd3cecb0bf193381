//! DLPack: the structures, arrays of other libraries, and arrays of this one.

pub(crate) mod abi;
pub(crate) mod borrowed;
pub(crate) mod export;
