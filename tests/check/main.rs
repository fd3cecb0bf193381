//! The checked launch: it finds errors, and reports nothing else.

mod answers;
mod bounds;
mod boxes;
mod compound;
mod cost;
mod dot;
mod endless;
mod findings;
mod flags;
mod gathered;
mod halves;
mod lessons;
mod mma;
mod pad;
mod pipelines;
mod profile;
mod raw;
mod reduce;
mod registry;
mod sliced;
mod tensor;
mod third;
mod told_stores;
mod unfinished;
mod wgmma;
mod wgmma_tf32;
