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

/// What ptxas made of these files, as `cargo xtask build-ptx` wrote it down.
const RESOURCES: &str = include_str!("../../gpu/ptx/resources.tsv");

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

impl Ptx {
    /// What a kernel of this file takes; `None` where ptxas was not there to say so when the file was made.
    pub fn resources(&self, kernel: &str) -> Option<Resources> {
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
        declaration(self.text, kernel)
    }
}

/// PTX without the kernels but this: what the driver has to compile for it.
pub(crate) fn for_kernel(ptx: &str, kernel: &str) -> String {
    with_kernels(ptx, |name, _| name == kernel)
}

/// PTX with the variables, and without the kernels but those that use them: those share them, so they are compiled
/// together.
pub(crate) fn with_variables(ptx: &str) -> String {
    let variables = variables(ptx);
    with_kernels(ptx, |_, text| uses(text, &variables))
}

/// Does a kernel use a variable of the file?
pub(crate) fn shares_variables(ptx: &str, kernel: &str) -> bool {
    let variables = variables(ptx);
    kernels(ptx).iter().any(|(name, text)| *name == kernel && uses(text, &variables))
}

/// PTX without the kernels but those that are to stay, by name or text.
fn with_kernels(ptx: &str, stays: impl Fn(&str, &str) -> bool) -> String {
    let kernels = kernels(ptx);
    let mut result = String::new();
    for (outside, kernel) in
        outside(ptx, &kernels).iter().zip(kernels.iter().map(Some).chain([None]))
    {
        result += outside;
        if let Some((name, text)) = kernel
            && stays(name, text)
        {
            result += text;
        }
    }
    result
}

/// The names of a file's variables.
fn variables(ptx: &str) -> Vec<&str> {
    let outside = outside(ptx, &kernels(ptx));
    outside.into_iter().flat_map(str::lines).filter_map(variable).collect()
}

fn uses(text: &str, variables: &[&str]) -> bool {
    variables.iter().any(|variable| has_word(text, variable))
}

/// The kernels of a file, from the line with the name to the one that closes the body.
fn kernels(ptx: &str) -> Vec<(&str, &str)> {
    const ENTRY: &str = "\n.visible .entry ";
    let starts = ptx.match_indices(ENTRY).map(|(start, _)| start + 1);
    let kernel = |start: usize| {
        let text = &ptx[start..];
        let name = text[ENTRY.len() - 1..].split('(').next()?;
        let end = text.find("\n}\n")? + "\n}\n".len();
        Some((name, &text[..end]))
    };
    starts.filter_map(kernel).collect()
}

/// What stands before, between and after the kernels.
fn outside<'a>(ptx: &'a str, kernels: &[(&str, &'a str)]) -> Vec<&'a str> {
    let mut rest = ptx;
    let mut parts = Vec::new();
    for (_, text) in kernels {
        // The kernels are parts of the text, in order.
        let Some((before, after)) = rest.split_once(text) else { continue };
        parts.push(before);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// The name of the variable that a line of a file declares.
fn variable(line: &str) -> Option<&str> {
    let words = line.split_whitespace().collect::<Vec<_>>();
    let of_file = words.iter().any(|word| matches!(*word, ".global" | ".const"));
    let name = words.iter().find(|word| word.contains('['))?;
    if of_file { name.split('[').next() } else { None }
}

/// Does the name stand in the text, and not as a part of another?
fn has_word(text: &str, name: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.match_indices(name).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + name.len()..].chars().next();
        !before.is_some_and(in_name) && !after.is_some_and(in_name)
    })
}

/// The line with which a kernel declares itself in PTX.
pub(crate) fn declaration<'a>(ptx: &'a str, kernel: &str) -> Option<&'a str> {
    let start = format!("simt.kernel name={kernel} ");
    let mut lines = ptx.lines().filter_map(|line| line.trim().strip_prefix("// "));
    lines.find(|line| line.starts_with(&start))
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
    fn a_file_says_which_driver_it_needs() {
        assert_eq!((SM_80.version(), SM_80.cuda_needed()), (Some((7, 1)), Some((11, 1))));
        assert_eq!((SM_90A.version(), SM_90A.cuda_needed()), (Some((8, 3)), Some((12, 3))));
        let needed = |text| Ptx { file: "k.ptx", text }.cuda_needed();
        assert_eq!(needed("// by hand\n.version 8.6\n.target sm_90a"), Some((12, 7)));
        assert_eq!(needed(".version 9.0"), Some((13, 0)));
        for text in ["", ".version 8", ".version x.1", ".version 6.5", ".version 8.9"] {
            assert_eq!(needed(text), None, "{text}");
        }
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

    #[test]
    fn a_kernel_is_compiled_without_the_others() {
        fn names(ptx: &str) -> Vec<&str> {
            kernels(ptx).into_iter().map(|(name, _)| name).collect()
        }
        let sharing = ["constant_polynomial", "global_counter", "pointed_negation"];
        for ptx in [SM_80, SM_90A] {
            let all = names(ptx.text);
            assert_eq!(all.len(), gpu::registry::KERNELS.len());
            assert_eq!(names(&with_variables(ptx.text)), sharing);
            for kernel in all {
                let text = for_kernel(ptx.text, kernel);
                assert_eq!(names(&text), [kernel]);
                assert_eq!(declaration(&text, kernel), ptx.declaration(kernel));
                assert_eq!(shares_variables(ptx.text, kernel), sharing.contains(&kernel));
                // What they all need is there.
                let head = ptx.text.split(".visible .entry").next().unwrap();
                assert!(text.starts_with(head), "{kernel}");
                let tail = ptx.text.rsplit("\n}\n").next().unwrap();
                assert!(text.ends_with(tail), "{kernel}");
            }
        }
    }

    #[test]
    fn the_resources_of_every_kernel_are_known_for_every_target() {
        assert!(ptxas_release().split_once('.').is_some(), "{}", ptxas_release());
        for entry in gpu::registry::KERNELS {
            for ptx in [SM_80, SM_90A] {
                let what = format!(
                    "{} for {}: run cargo xtask build-ptx --fetch-ptxas",
                    entry.name(),
                    ptx.file
                );
                let Resources { registers, shared } = ptx.resources(entry.name()).expect(&what);
                assert!((1..=255).contains(&registers), "{what}");
                if let Some(declared) = entry.declaration().shared {
                    assert_eq!(shared as usize, declared, "{what}");
                }
            }
        }
        assert_eq!(SM_80.resources("no_such_kernel"), None);
    }
}
