//! The kernels' PTX, as committed, and which of it a device takes.

use crate::error::{Error, Result};

/// The kernels compiled for one kind of device.
#[derive(Clone, Copy, Debug)]
pub struct Ptx {
    /// The file's name in `gpu/ptx/`.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// For Hopper, with the instructions that only compute capability 9.0 has.
pub const SM_90A: Ptx =
    Ptx { file: "gpu.sm_90a.ptx", text: include_str!("../../gpu/ptx/gpu.sm_90a.ptx") };

/// For Ampere and everything after it.
pub const SM_80: Ptx =
    Ptx { file: "gpu.sm_80.ptx", text: include_str!("../../gpu/ptx/gpu.sm_80.ptx") };

impl Ptx {
    /// The file for a device: the `sm_90a` one runs on 9.0 alone, the `sm_80` one from 8.0 on.
    ///
    /// # Errors
    /// [`Error::Architecture`] for a device below 8.0.
    pub fn for_device(name: &str, capability: (u32, u32)) -> Result<Ptx> {
        match capability {
            (9, 0) => Ok(SM_90A),
            (8.., _) => Ok(SM_80),
            _ => Err(Error::Architecture { device: name.to_owned(), capability }),
        }
    }

    /// The line with which a kernel in this file declares itself; `None` where the file does not have it.
    pub fn declaration(&self, kernel: &str) -> Option<&'static str> {
        let start = format!("simt.kernel name={kernel} ");
        let lines = self.text.lines().filter_map(|line| line.trim().strip_prefix("// "));
        { lines }.find(|line| line.starts_with(&start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_the_file_that_runs_on_it() {
        let file = |capability| Ptx::for_device("a GPU", capability).map(|ptx| ptx.file);
        assert_eq!(file((9, 0)).unwrap(), "gpu.sm_90a.ptx");
        for capability in [(8, 0), (8, 9), (9, 1), (10, 0), (12, 0)] {
            assert_eq!(file(capability).unwrap(), "gpu.sm_80.ptx", "{capability:?}");
        }
        let error = file((7, 5)).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("7.5 is below 8.0"), "{error}");
    }

    #[test]
    fn the_committed_files_declare_every_kernel_as_the_source_does() {
        for entry in gpu::registry::KERNELS {
            let wanted = entry.declaration().to_ptx_comment();
            for ptx in [SM_80, SM_90A] {
                let found = ptx.declaration(entry.name());
                let file = ptx.file;
                assert_eq!(found, Some(&*wanted), "{file}: run cargo xtask build-ptx");
            }
        }
    }
}
