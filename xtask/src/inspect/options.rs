//! What to inspect, and how.

use crate::Target;

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kernel; with constants also as `gpu/ptx/resources.tsv` names its specialisations, or `host kernels` its variants.
    pub kernel: String,
    /// What constants of it are, by their names; the others are what it declares first.
    pub constants: Vec<(String, String)>,
    /// The GPU, as the files in `gpu/ptx` are named.
    pub target: Target,
    /// Show its PTX.
    pub ptx: bool,
    /// Show its machine code.
    pub sass: bool,
    /// One JSON object instead of text.
    pub json: bool,
    /// Download NVIDIA's assembler and disassembler where they are not there.
    pub fetch: bool,
}

impl Default for Options {
    /// Figures of a kernel on Hopper; which kernel is yet to be said.
    fn default() -> Self {
        Options {
            kernel: String::new(),
            constants: Vec::new(),
            target: Target::SM_90A,
            ptx: false,
            sass: false,
            json: false,
            fetch: false,
        }
    }
}
