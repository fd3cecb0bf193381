//! The PTX of the kernels, as committed.

#[cfg(feature = "cuda")]
mod index;
#[cfg(feature = "cuda")]
pub(crate) mod split;

use std::ops::Range;

use simt::{Constants, Declaration};

use crate::error::{Error, Result};
#[cfg(feature = "cuda")]
pub(crate) use index::Index;

/// The kernels that are compiled for one target.
#[derive(Clone, Copy, Debug)]
pub struct Ptx {
    /// The target, and the folder in `gpu/ptx/`: `sm_80`, `sm_90a`.
    pub target: &'static str,
    files: &'static [File],
}

/// A packed file. It has one kernel, or several that share variables.
#[derive(Debug)]
struct File {
    /// Their names and declarations.
    kernels: &'static [(&'static str, &'static str)],
    /// Its bytes in [`PACKED`].
    packed: Range<usize>,
    /// Bytes of the text.
    len: usize,
}

/// All packed files, written by `build.rs`.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptx.lz4"));

/// The index of [`PACKED`].
mod files {
    use super::File;

    include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
}

/// The kernels that need instructions of compute capability 9.0, for Hopper.
pub static SM_90A: Ptx = Ptx { target: "sm_90a", files: files::SM_90A };

/// The kernels for Ampere and later.
pub static SM_80: Ptx = Ptx { target: "sm_80", files: files::SM_80 };

/// Registers and shared memory by ptxas, as `cargo xtask build-ptx` has written them.
static RESOURCES: &str = include_str!("../../ptx/resources.tsv");

/// The resources of an SM that a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
}

/// The release of the ptxas that [`Ptx::resources`] are from: `13.0`. The driver's compiler may use
/// another number of registers.
pub fn ptxas_release() -> &'static str {
    let header = RESOURCES.lines().next().unwrap_or_default();
    header.rsplit_once("ptxas ").map_or("", |(_, release)| release)
}

/// The constants of a kernel, with the values in the text and the new values. `None` if the kernel
/// has no such constants.
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

impl Ptx {
    /// The resources of a kernel with these constants, compiled by ptxas for this target. `None` if
    /// they were not recorded, or the kernel has no such constants.
    pub fn resources(&self, declaration: &Declaration, constants: &Constants) -> Option<Resources> {
        let kernel = &specialise::name(declaration.name, &values(declaration, constants)?);
        let mut rows = RESOURCES.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        rows.find_map(|row| match row[..] {
            [of, name, registers, shared, ..] if (of, name) == (self.target, kernel) => {
                Some(Resources { registers: registers.parse().ok()?, shared: shared.parse().ok()? })
            }
            _ => None,
        })
    }

    /// The kernels for a device: `sm_90a` for compute capability 9.0, `sm_80` for any other
    /// from 8.0 on.
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

    /// The target that a device loads a kernel from: this one, or [`SM_80`] if only that one has
    /// the kernel.
    pub fn with(self, kernel: &str) -> Ptx {
        match self.file(kernel).is_none() && SM_80.file(kernel).is_some() {
            true => SM_80,
            false => self,
        }
    }

    /// The PTX version (major, minor).
    pub fn version(&self) -> Option<(u32, u32)> {
        version_of(&self.files.first()?.text())
    }

    /// The oldest CUDA version (major, minor) whose drivers accept the PTX. Known for PTX 7.0
    /// to 9.1.
    pub fn cuda_needed(&self) -> Option<(u32, u32)> {
        cuda_of(self.version()?)
    }

    /// A kernel's declaration in the PTX. `None` for an unknown kernel.
    pub fn declaration(&self, kernel: &str) -> Option<&'static str> {
        let mut kernels = self.file(kernel)?.kernels.iter();
        kernels.find(|(name, _)| *name == kernel).map(|(_, declaration)| *declaration)
    }

    /// The text of a kernel's file, to be loaded by the driver. `None` for an unknown kernel.
    pub fn text(&self, kernel: &str) -> Option<String> {
        self.file(kernel).map(File::text)
    }

    /// The file in `gpu/ptx/` with the kernels that share variables.
    #[cfg(feature = "cuda")]
    pub(crate) const VARIABLES: &str = "sm_80/variables.ptx";

    /// A kernel's file, in `gpu/ptx/`, for messages.
    #[cfg(feature = "cuda")]
    pub(crate) fn path(&self, kernel: &str) -> String {
        match self.shares_variables(kernel) {
            true => Self::VARIABLES.to_owned(),
            false => format!("{}/{kernel}.ptx", self.target),
        }
    }

    /// Whether a kernel shares variables with others, and so a file.
    #[cfg(feature = "cuda")]
    pub(crate) fn shares_variables(&self, kernel: &str) -> bool {
        self.file(kernel).is_some_and(|file| file.kernels.len() > 1)
    }

    /// The text of the kernels that share variables.
    #[cfg(feature = "cuda")]
    pub(crate) fn variables() -> Option<String> {
        SM_80.files.iter().find(|file| file.kernels.len() > 1).map(File::text)
    }

    fn file(&self, kernel: &str) -> Option<&'static File> {
        self.files.iter().find(|file| file.kernels.iter().any(|(name, _)| *name == kernel))
    }
}

impl File {
    fn text(&self) -> String {
        let text = lz4_flex::block::decompress(&PACKED[self.packed.clone()], self.len);
        let text = text.ok().and_then(|text| String::from_utf8(text).ok());
        text.expect("this program's build has packed it")
    }
}

/// The PTX version (major, minor) of a text.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let version = text.lines().find_map(|line| line.strip_prefix(".version "))?;
    let (major, minor) = version.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The oldest CUDA version whose drivers accept a PTX version.
///
/// By NVIDIA, *Parallel Thread Execution ISA*, "PTX Release History": each release of CUDA but 12.6
/// has a new version.
fn cuda_of(version: (u32, u32)) -> Option<(u32, u32)> {
    match version {
        (7, minor @ 0..=8) => Some((11, minor)),
        (8, minor @ 0..=5) => Some((12, minor)),
        (8, minor @ 6..=8) => Some((12, minor + 1)),
        (9, minor @ 0..=1) => Some((13, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a kernel is: what needs no Hopper serves every device.
    fn of(declaration: &Declaration) -> Ptx {
        match declaration.arch {
            None => SM_80,
            Some(90) => SM_90A,
            Some(arch) => panic!("there is nothing for {arch}"),
        }
    }

    #[test]
    fn a_device_gets_what_runs_on_it() {
        let target = |capability| Ptx::for_device("a GPU", capability).map(|ptx| ptx.target);
        assert_eq!(target((9, 0)).unwrap(), "sm_90a");
        for capability in [(8, 0), (8, 9), (9, 1), (10, 0), (12, 0)] {
            assert_eq!(target(capability).unwrap(), "sm_80", "{capability:?}");
        }
        let error = target((7, 5)).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("7.5 is below 8.0"), "{error}");
    }

    /// A block has at most 99 KiB of shared memory on 8.6, 8.9 and 12, and an SM 48 warps. Kernels
    /// that need more memory are not selected there.
    #[test]
    fn products_for_all_gpus_fit_on_the_smallest() {
        let on_89 = Ptx { target: "sm_89", ..SM_80 };
        let mut most = 0;
        for entry in gpu::registry::KERNELS.iter() {
            let declaration = entry.declaration();
            let Some(product) = entry.product.as_ref().filter(|_| declaration.arch.is_none())
            else {
                continue;
            };
            for constants in entry.specialisations() {
                let needed = on_89.resources(declaration, &constants);
                let Resources { registers, shared } = needed.expect("its row for sm_89");
                let shared = shared + declaration.dynamic_shared.unwrap_or(0);
                if shared > 99 << 10 {
                    continue;
                }
                most = most.max(shared);
                let threads = product.block.iter().product();
                let block = occupancy::Block { threads, registers, shared };
                for sm in [occupancy::Sm::SM_86, occupancy::Sm::SM_89] {
                    let blocks = occupancy::occupancy(&sm, &block).blocks;
                    assert!(blocks > 0, "{}: {block:?} on {sm:?}", entry.name());
                }
            }
        }
        assert!(most > 48 << 10, "{most}: no kernel of tensor cores was seen");
    }

    #[test]
    fn a_text_says_which_driver_it_needs() {
        assert_eq!((SM_80.version(), SM_80.cuda_needed()), (Some((7, 1)), Some((11, 1))));
        assert_eq!((SM_90A.version(), SM_90A.cuda_needed()), (Some((8, 3)), Some((12, 3))));
        let needed = |text| version_of(text).and_then(cuda_of);
        assert_eq!(needed("// by hand\n.version 8.6\n.target sm_90a"), Some((12, 7)));
        assert_eq!(needed(".version 9.0"), Some((13, 0)));
        for text in ["", ".version 8", ".version x.1", ".version 6.5", ".version 8.9"] {
            assert_eq!(needed(text), None, "{text}");
        }
    }

    #[test]
    fn the_committed_files_declare_every_kernel_as_the_source_does() {
        let mut both = 0;
        for design in gpu::registry::designs() {
            let declaration = design.declaration();
            let wanted = declaration.to_ptx_comment();
            for ptx in [SM_80, SM_90A] {
                let is_of_both = design.is_for_each_target();
                let is_there = is_of_both || ptx.target == of(declaration).target;
                let wanted = is_there.then_some(&*wanted);
                let found = ptx.declaration(declaration.name);
                assert_eq!(found, wanted, "{}: run cargo xtask build-ptx", ptx.target);
                both += usize::from(is_of_both && ptx.target == "sm_90a");
            }
        }
        let files = [SM_80, SM_90A].into_iter().flat_map(|ptx| ptx.files);
        let kernels = files.map(|file| file.kernels.len()).sum::<usize>();
        assert_eq!(
            kernels,
            gpu::registry::designs().count() + both,
            "files of kernels that are gone"
        );
    }

    #[test]
    fn a_file_is_all_of_a_kernel() {
        let sharing = ["constant_polynomial", "global_counter", "pointed_negation"];
        for design in gpu::registry::designs() {
            let declaration = design.declaration();
            let (ptx, name) = (of(declaration), declaration.name);
            let text = ptx.text(name).unwrap();
            let entries = text.matches(".visible .entry ").count();
            assert_eq!(entries, if sharing.contains(&name) { 3 } else { 1 }, "{name}");
            assert!(text.contains(&format!(".visible .entry {name}(")), "{name}");
            assert_eq!(version_of(&text), ptx.version(), "{name}");
            // Dynamic shared memory has an alignment that would be all kernels'.
            let is_dynamic = text.contains(".extern .shared ");
            assert_eq!(is_dynamic, declaration.dynamic_shared.is_some(), "{name}");
        }
        assert_eq!(SM_90A.text("no_such_kernel"), None);
    }

    #[test]
    fn a_kernel_that_needs_no_hopper_is_taken_from_what_is_for_every_device() {
        let target = |ptx: Ptx, kernel| ptx.with(kernel).target;
        assert_eq!(target(SM_90A, "mma_half_64x64x64"), "sm_80");
        assert_eq!(target(SM_80, "gemm_f32_64x64x16"), "sm_80");
        assert_eq!(target(SM_90A, "gemm_f32_64x64x16"), "sm_80");
        assert_eq!(target(SM_90A, "wgmma_half_64x64x64"), "sm_90a");
        // What is in none is missed in the device's own.
        assert_eq!(target(SM_90A, "no_such_kernel"), "sm_90a");
        assert_eq!(target(SM_80, "wgmma_half_64x64x64"), "sm_80");
    }

    #[test]
    fn the_resources_of_every_kernel_are_known() {
        assert!(ptxas_release().split_once('.').is_some(), "{}", ptxas_release());
        for entry in gpu::registry::KERNELS.iter() {
            let (declaration, constants) = (entry.declaration(), entry.constants);
            for ptx in [SM_90A, of(declaration)] {
                let what = format!(
                    "{} for {}: run cargo xtask build-ptx --fetch-ptxas",
                    entry.name(),
                    ptx.target
                );
                let resources = ptx.resources(declaration, &constants);
                let Resources { registers, shared } = resources.expect(&what);
                assert!((1..=255).contains(&registers), "{what}");
                let declared = declaration.shared;
                match declaration.dynamic_shared {
                    None => assert!(declared.is_none_or(|declared| declared == shared as usize)),
                    // What is before dynamic shared memory, which begins at a multiple of that, is
                    // left free.
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
        assert_eq!(of("wgmma_bf16_64x64x64_nn", Constants::NONE), None);
        assert_eq!(of("basic", Constants::NONE.with("steps", 4)), None);
    }
}
