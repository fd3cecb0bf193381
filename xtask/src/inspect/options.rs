//! The options of `inspect`.

use crate::Target;

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kernel. For a specialisation, the name in `gpu/ptx/resources.tsv` or in `host kernels`
    /// is possible, too.
    pub kernel: String,
    /// Values of its constants, by name. The others have their first declared value.
    pub constants: Vec<(String, String)>,
    /// The GPU, as in the file names in `gpu/ptx`.
    pub target: Target,
    /// Show its PTX.
    pub ptx: bool,
    /// Show its machine code.
    pub sass: bool,
    /// One JSON object instead of text.
    pub json: bool,
    /// Download NVIDIA's assembler and disassembler if necessary.
    pub fetch: bool,
}

impl Default for Options {
    /// The figures on Hopper. The kernel is still to be set.
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
