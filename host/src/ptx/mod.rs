//! The kernels' PTX, as committed, and which of it a device takes.

#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "kernels are taken out for GPUs alone")
)]
mod index;
#[cfg(feature = "cuda")]
pub(crate) mod split;

use std::{fmt, sync::OnceLock};

use simt::{Constants, Declaration};

use crate::error::{Error, Result};
pub(crate) use index::Index;

/// The kernels compiled for one kind of device.
#[derive(Clone, Copy)]
pub struct Ptx {
    /// The file's name in `gpu/ptx/`.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// What is where in the text, once somebody has asked.
    index: &'static OnceLock<Index<'static>>,
}

/// The file of that name in `gpu/ptx/`.
macro_rules! file {
    ($name:literal) => {{
        static INDEX: OnceLock<Index<'static>> = OnceLock::new();
        Ptx { file: $name, text: include_str!(concat!("../../../gpu/ptx/", $name)), index: &INDEX }
    }};
}

/// For Hopper, with the instructions that only compute capability 9.0 has.
pub static SM_90A: Ptx = file!("gpu.sm_90a.ptx");

/// For Ampere and everything after it.
pub static SM_80: Ptx = file!("gpu.sm_80.ptx");

/// What ptxas made of these files, as `cargo xtask build-ptx` wrote it down.
static RESOURCES: &str = include_str!("../../../gpu/ptx/resources.tsv");

/// What a kernel takes of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
}

/// The release of the ptxas that [`Ptx::resources`] are of: `13.0`. The driver has a compiler of its own,
/// which may allot other registers.
pub fn ptxas_release() -> &'static str {
    let header = RESOURCES.lines().next().unwrap_or_default();
    header.rsplit_once("ptxas ").map_or("", |(_, release)| release)
}

/// What stands in a kernel's text, and what is to stand there; `None` where it has no such constants.
pub(crate) fn values(
    declaration: &Declaration,
    constants: &Constants,
) -> Option<Vec<specialise::Constant>> {
    let default = declaration.resolve(&Constants::NONE).ok()?;
    let constant = |((name, value), (_, default)): ((&str, simt::Value), (_, simt::Value))| {
        let (value, default) = (value.to_string(), default.to_string());
        specialise::Constant { name: name.to_owned(), default, value }
    };
    Some(declaration.resolve(constants).ok()?.iter().zip(default.iter()).map(constant).collect())
}

impl fmt::Debug for Ptx {
    /// Its name: the text has tens of megabytes.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Ptx").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Ptx {
    /// What a kernel of this file takes with these constants; `None` where ptxas was not there to say so when the file was made, or
    /// where it has no such constants.
    pub fn resources(&self, declaration: &Declaration, constants: &Constants) -> Option<Resources> {
        let kernel = &specialise::name(declaration.name, &values(declaration, constants)?);
        let target = self.file.split('.').nth(1)?;
        let mut rows = RESOURCES.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        rows.find_map(|row| match row[..] {
            [of, name, registers, shared] if (of, name) == (target, kernel) => {
                Some(Resources { registers: registers.parse().ok()?, shared: shared.parse().ok()? })
            }
            _ => None,
        })
    }

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

    /// Where a device that takes this file has a kernel from: this file or, where only the other has it, that for every device.
    pub fn with(self, kernel: &str) -> Ptx {
        match self.declaration(kernel).is_none() && SM_80.declaration(kernel).is_some() {
            true => SM_80,
            false => self,
        }
    }

    /// The PTX version that it is written in (major, minor).
    pub fn version(&self) -> Option<(u32, u32)> {
        let version = self.text.lines().find_map(|line| line.strip_prefix(".version "))?;
        let (major, minor) = version.trim().split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    /// The oldest CUDA version (major, minor) whose drivers take that PTX, for versions from 7.0 to 9.1.
    ///
    /// After NVIDIA, *Parallel Thread Execution ISA*, "PTX Release History": CUDA brings one with each
    /// release, but 12.6 brought none.
    pub fn cuda_needed(&self) -> Option<(u32, u32)> {
        match self.version()? {
            (7, minor @ 0..=8) => Some((11, minor)),
            (8, minor @ 0..=5) => Some((12, minor)),
            (8, minor @ 6..=8) => Some((12, minor + 1)),
            (9, minor @ 0..=1) => Some((13, minor)),
            _ => None,
        }
    }

    /// The line with which a kernel in this file declares itself; `None` where the file does not have it.
    pub fn declaration(&self, kernel: &str) -> Option<&'static str> {
        self.index().declaration(kernel)
    }

    /// What is where in its text.
    pub(crate) fn index(&self) -> &'static Index<'static> {
        self.index.get_or_init(|| Index::new(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files, and the compute capability that each is for, without its dot.
    const FILES: [(Ptx, u32); 2] = [(SM_80, 80), (SM_90A, 90)];

    /// Is a kernel in the file for that compute capability?
    pub(super) fn is_in(declaration: &Declaration, arch: u32) -> bool {
        // Hopper has faster ones than these, and takes them from the file for every device.
        let is_for_all = arch > 80 && declaration.name.starts_with("gemm_mma_");
        declaration.arch <= Some(arch) && !is_for_all
    }

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
    fn a_file_says_which_driver_it_needs() {
        assert_eq!((SM_80.version(), SM_80.cuda_needed()), (Some((7, 1)), Some((11, 1))));
        assert_eq!((SM_90A.version(), SM_90A.cuda_needed()), (Some((8, 3)), Some((12, 3))));
        let needed = |text| Ptx { text, ..SM_80 }.cuda_needed();
        assert_eq!(needed("// by hand\n.version 8.6\n.target sm_90a"), Some((12, 7)));
        assert_eq!(needed(".version 9.0"), Some((13, 0)));
        for text in ["", ".version 8", ".version x.1", ".version 6.5", ".version 8.9"] {
            assert_eq!(needed(text), None, "{text}");
        }
    }

    #[test]
    fn the_committed_files_declare_every_kernel_as_the_source_does() {
        for entry in gpu::registry::KERNELS.iter() {
            let wanted = entry.declaration().to_ptx_comment();
            for (ptx, arch) in FILES {
                let found = ptx.declaration(entry.declaration().name);
                let wanted = is_in(entry.declaration(), arch).then_some(&*wanted);
                assert_eq!(found, wanted, "{}: run cargo xtask build-ptx", ptx.file);
            }
        }
    }

    #[test]
    fn a_kernel_that_a_file_lacks_is_taken_from_the_one_for_every_device() {
        let file = |ptx: Ptx, kernel| ptx.with(kernel).file;
        assert_eq!(file(SM_90A, "gemm_mma_64x64"), SM_80.file);
        assert_eq!(file(SM_80, "gemm_mma_64x64"), SM_80.file);
        assert_eq!(file(SM_90A, "gemm_64"), SM_90A.file);
        // What is in none is missed in the device's own.
        assert_eq!(file(SM_90A, "no_such_kernel"), SM_90A.file);
        assert_eq!(file(SM_80, "gemm_wgmma_64x64"), SM_80.file);
    }

    #[test]
    fn the_resources_of_every_kernel_are_known_for_every_target() {
        assert!(ptxas_release().split_once('.').is_some(), "{}", ptxas_release());
        for entry in gpu::registry::KERNELS.iter() {
            for (ptx, _) in FILES.iter().filter(|(_, arch)| is_in(entry.declaration(), *arch)) {
                let what = format!(
                    "{} for {}: run cargo xtask build-ptx --fetch-ptxas",
                    entry.name(),
                    ptx.file
                );
                let Resources { registers, shared } = ptx.resources(entry.declaration(), &entry.constants()).expect(&what);
                assert!((1..=255).contains(&registers), "{what}");
                let declared = entry.declaration().shared;
                match entry.declaration().dynamic_shared {
                    None => assert!(declared.is_none_or(|declared| declared == shared as usize)),
                    // What is before dynamic shared memory, which begins at a multiple of that, is left free.
                    Some(_) => {
                        // What is there without having been declared are mbarriers.
                        let undeclared = usize::from(shared > 0);
                        let declared = declared.unwrap_or(undeclared).next_multiple_of(1024);
                        assert_eq!(shared as usize, declared, "{what}");
                    }
                }
            }
        }
        let of = |name, constants: Constants| {
            let declaration = gpu::registry::find(name).unwrap().declaration();
            SM_80.resources(declaration, &constants)
        };
        assert_eq!(of("gemm_wgmma_64x64_nn", Constants::NONE), None);
        assert_eq!(of("basic", Constants::NONE.with("steps", 4)), None);
    }
}
