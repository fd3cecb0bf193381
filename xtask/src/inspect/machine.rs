//! What NVIDIA's tools report.

use std::path::Path;

use anyhow::{Context, Result};

use super::{options::Options, view::View};
use crate::{
    check,
    listing::sass::Nvdisasm,
    ptx::Function,
    ptxas::{Ptxas, Usage},
    resources::Recorded,
};

/// What NVIDIA's tools report about a kernel, if they are there.
pub(super) struct Machine {
    /// The assembler's release, and its report.
    pub(super) usage: Option<(String, Usage)>,
    /// The figures in the committed file, if there is no assembler.
    pub(super) recorded: Option<Recorded>,
    /// The disassembler's release, and its output.
    pub(super) sass: Option<(String, View)>,
    /// Why something is unknown, and what to do.
    pub(super) missing: Option<String>,
}

impl Machine {
    pub(super) fn of(
        root: &Path,
        ptx: &str,
        kernel: &Function,
        options: &Options,
    ) -> Result<Machine> {
        let mut machine = Machine { usage: None, recorded: None, sass: None, missing: None };
        let ptxas = match Ptxas::find(root) {
            None if options.fetch => Some(Ptxas::fetch(root)?),
            found => found,
        };
        let nvdisasm = match Nvdisasm::find(root) {
            None if options.fetch => Some(Nvdisasm::fetch(root)?),
            found => found,
        };
        let Some(ptxas) = ptxas else {
            machine.missing = Some(
                "there is no ptxas, so registers and occupancy are those of gpu/ptx/resources.tsv, where it has the kernel, and \
                 machine code is not shown (--fetch downloads it; $PTXAS names one)"
                    .into(),
            );
            return Ok(machine);
        };
        let level = check::declaration(kernel).and_then(|declared| declared.opt_level);
        let (usages, cubin) = ptxas.assemble(ptx, options.target.cpu(), level, root)?;
        let usage = usages.into_iter().find(|usage| usage.kernel == kernel.name);
        let usage = usage.context("ptxas did not report on the kernel")?;
        machine.usage = Some((ptxas.release().into(), usage));
        match nvdisasm {
            Some(nvdisasm) => {
                let sass = nvdisasm.disassemble(&cubin, &kernel.name)?;
                machine.sass = Some((nvdisasm.release().into(), View::of_sass(sass)));
            }
            None => {
                machine.missing = Some(
                    "there is no nvdisasm, so machine code is not shown (--fetch downloads it; \
                     $NVDISASM names one)"
                        .into(),
                );
            }
        }
        Ok(machine)
    }
}
