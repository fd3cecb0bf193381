//! NVIDIA's assembler, if there is one. It reports what PTX does not show: registers, spills, and
//! warnings about slow instructions.

mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context, Result, bail, ensure};

use specialise::Constant;

pub use self::report::Usage;
use self::report::{MACHINE_CODE, usage_problems, usages, warnings};
use crate::{
    builder::{BUILD_FOLDER, Ptx},
    check, cubin,
    declaration::Declaration,
    ptx::Function,
    target::Target,
    tool::{Program, Tool, Wheel},
};

/// The packages that have it.
pub(crate) const TOOL: Tool = Tool {
    name: "ptxas",
    package: "nvidia-cuda-nvcc",
    version: "13.0.88",
    megabytes: 37,
    wheels: [
        Wheel {
            arch: "x86_64",
            address: "71/8b/a546c12881fffeba927d810598987df25d74b8b241788c7db8dfc93b0173/\
             nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
            digest: "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
            program: "daba837a68265cae38c832d13399b61dab811891de9b8914defddef143b849f2",
        },
        Wheel {
            arch: "aarch64",
            address: "9f/06/996d5cdc5ea45fb4a6111a1be4f0caf6556c0cb1bf9684a7252d8771797a/\
             nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl",
            digest: "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
            program: "a1941a04ca4fd233b2fbe50c625b1e72b3d5f79ebe80209a272c85482dfbb487",
        },
    ],
};

/// An assembler that can run.
#[derive(Clone, Debug)]
pub struct Ptxas(Program);

impl Ptxas {
    /// The first one found: `$PTXAS`, the one on `PATH`, a CUDA toolkit's, one that was
    /// [fetched](Ptxas::fetch) for the workspace in `root`. One that is too old is skipped.
    pub fn find(root: &Path) -> Option<Ptxas> {
        TOOL.find(root).map(Ptxas)
    }

    /// Downloads the assembler from PyPI into the target folder of the workspace in `root`.
    pub fn fetch(root: &Path) -> Result<Ptxas> {
        TOOL.fetch(root).map(Ptxas)
    }

    /// Its release: `13.0`.
    pub fn release(&self) -> &str {
        &self.0.release
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Assembles PTX for a GPU, in files with that name in the workspace's build folder. Returns
    /// the assembler's output, and the file with the machine code.
    fn run(
        &self,
        ptx: &str,
        (cpu, level): (&str, Option<u32>),
        root: &Path,
        name: &str,
    ) -> Result<(String, PathBuf)> {
        let folder = root.join(BUILD_FOLDER);
        let source = folder.join(format!("{name}.{cpu}.ptx"));
        let result = source.with_extension("cubin");
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&source, ptx))
            .with_context(|| format!("cannot write {}", source.display()))?;
        let mut command = Command::new(self.path());
        command.arg(format!("-arch={cpu}"));
        command.args(level.map(|level| format!("-O{level}")));
        command.args(["-v", "--warn-on-spills", "--warn-on-local-memory-usage", "-o"]).arg(&result);
        command.arg(&source);
        let done =
            command.output().with_context(|| format!("cannot run {}", self.path().display()))?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "ptxas refuses the PTX for {cpu}:\n{}", said.trim_end());
        Ok((said.into_owned(), result))
    }

    /// Assembles PTX at that level of optimisation. Returns the resources of each kernel, and the
    /// file with the machine code.
    pub(crate) fn assemble(
        &self,
        ptx: &str,
        cpu: &str,
        level: Option<u32>,
        root: &Path,
    ) -> Result<(Vec<Usage>, PathBuf)> {
        let (said, result) = self.run(ptx, (cpu, level), root, "inspect")?;
        Ok((usages(&said), result))
    }

    /// The assembler's output for PTX, and a line on the machine code of each kernel. It is kept
    /// in the build folder, so that no text is assembled twice. `CACHE=0` assembles everything
    /// anew.
    fn said(&self, ptx: &str, on: (&str, Option<u32>), root: &Path, name: &str) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        let program = fs::metadata(self.path()).map(|program| program.len()).ok();
        (ptx, on, self.release(), program, MACHINE_CODE).hash(&mut hasher);
        let folder = root.join(BUILD_FOLDER).join("assembled");
        let kept = folder.join(format!("{:016x}.txt", hasher.finish()));
        if env::var_os("CACHE").is_none_or(|value| value != "0")
            && let Ok(said) = fs::read_to_string(&kept)
        {
            return Ok(said);
        }
        let (mut said, result) = self.run(ptx, on, root, name)?;
        let machine_code =
            fs::read(&result).with_context(|| format!("cannot read {}", result.display()))?;
        for Usage { kernel, .. } in usages(&said) {
            let (count, code) = cubin::machine_code(&machine_code, &kernel)?;
            let mut digest = DefaultHasher::new();
            code.hash(&mut digest);
            said += &format!("\n{MACHINE_CODE}{kernel} {count} {:016x}\n", digest.finish());
        }
        // In one step: an existing file is complete.
        let partial = result.with_extension(format!("{}.txt", std::process::id()));
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&partial, &said))
            .and_then(|()| fs::rename(&partial, &kept))
            .with_context(|| format!("cannot write {}", kept.display()))?;
        Ok(said)
    }

    /// Assembles PTX for its own target or a newer one. Each kernel has its own level, and each
    /// specialisation is assembled. Returns their resources, and a sentence for every error.
    pub fn check(
        &self,
        ptx: &Ptx,
        target: Target,
        root: &Path,
    ) -> Result<(Vec<Usage>, Vec<String>)> {
        let mut all = self.check_all(&[(ptx, target)], root)?;
        all.pop().context("nothing was assembled")
    }

    /// Checks several, each for its target, in parallel.
    pub(crate) fn check_all(
        &self,
        texts: &[(&Ptx, Target)],
        root: &Path,
    ) -> Result<Vec<(Vec<Usage>, Vec<String>)>> {
        // ptxas uses one core, so the work is split for all cores.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut jobs = Vec::new();
        for (number, (ptx, _)) in texts.iter().enumerate() {
            jobs.extend(self::jobs(ptx, cores).into_iter().map(|job| (number, job)));
        }
        // The longest first, so that none is left at the end.
        jobs.sort_by_key(|(number, job)| std::cmp::Reverse(job.length(texts[*number].0)));
        let next = AtomicUsize::new(0);
        let assembled = |core: usize| -> Result<Vec<(usize, String)>> {
            let mut said = Vec::new();
            while let Some((number, job)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (ptx, target) = texts[*number];
                let (on, name) = ((target.cpu(), job.level), format!("ptxas-{core}"));
                said.push((*number, self.said(&job.text(ptx), on, root, &name)?));
            }
            Ok(said)
        };
        let said = thread::scope(|scope| {
            let assembled = &assembled;
            let workers = (0..cores).map(|core| scope.spawn(move || assembled(core)));
            let workers = workers.collect::<Vec<_>>().into_iter();
            let said = workers.map(|worker| match worker.join() {
                Ok(said) => said,
                Err(_) => bail!("a thread that runs ptxas has panicked"),
            });
            said.collect::<Result<Vec<_>>>()
        })?;
        let results = texts.iter().enumerate().map(|(number, (ptx, _))| {
            let of_it = said.iter().flatten().filter(|(of, _)| *of == number);
            let of_it = of_it.map(|(_, said)| said.as_str()).collect::<Vec<_>>();
            findings(ptx, &of_it)
        });
        Ok(results.collect())
    }
}

/// The resources of a text's kernels, from the assembler's output, and a sentence for every error.
fn findings(ptx: &Ptx, said: &[&str]) -> (Vec<Usage>, Vec<String>) {
    let (mut usages, mut problems) = (Vec::new(), Vec::new());
    for said in said {
        usages.extend(report::usages(said));
        problems.extend(warnings(said));
    }
    for kernel in ptx.module().kernels() {
        let arrays = check::shared_arrays(ptx.module(), kernel);
        let declared = arrays.iter().filter_map(|array| array.bytes).sum::<u64>();
        // Arrays start at multiples of their alignment.
        let most = declared + arrays.iter().map(|array| array.align).sum::<u64>();
        for constants in specialisations(kernel) {
            let name = specialise::name(&kernel.name, &constants);
            match usages.iter().find(|usage| usage.kernel == name) {
                Some(usage) => problems.extend(usage_problems(usage, declared..=most)),
                None => problems.push(format!("kernel `{name}`: ptxas did not report on it")),
            }
        }
    }
    (usages, problems)
}

/// The combinations of a kernel's constants. Without constants there is one empty combination.
fn specialisations(kernel: &Function) -> Vec<Vec<Constant>> {
    check::declaration(kernel).map_or(vec![Vec::new()], Declaration::specialisations)
}

/// Kernels that are assembled together.
struct Job<'a> {
    kernels: BTreeSet<&'a str>,
    /// For a kernel that is alone.
    constants: Vec<Constant>,
    level: Option<u32>,
}

impl Job<'_> {
    /// Bytes of the kernels' text: about proportional to the time.
    fn length(&self, ptx: &Ptx) -> usize {
        let kernels = ptx.module().kernels();
        let own = kernels.filter(|kernel| self.kernels.contains(kernel.name.as_str()));
        own.map(|kernel| kernel.text.len()).sum()
    }

    fn text(&self, ptx: &Ptx) -> String {
        let text = ptx.with_kernels(|kernel| self.kernels.contains(kernel));
        match self.kernels.first() {
            Some(kernel) if !self.constants.is_empty() => {
                let name = specialise::name(kernel, &self.constants);
                let text = specialise::specialise(&text, &self.constants);
                specialise::rename(&text, kernel, &name)
            }
            _ => text,
        }
    }
}

/// The texts to assemble, for this number of cores.
fn jobs(ptx: &Ptx, cores: usize) -> Vec<Job<'_>> {
    let mut jobs = Vec::new();
    // Kernels without constants are assembled together. Those with dynamic shared memory are
    // separate: ptxas would round the others' shared memory up to its alignment.
    let mut parts = BTreeMap::<_, BTreeSet<&str>>::new();
    for (number, kernel) in ptx.module().kernels().enumerate() {
        let declared = check::declaration(kernel);
        let level = declared.and_then(|declared| declared.opt_level);
        match specialisations(kernel) {
            all if all.iter().any(|constants| !constants.is_empty()) => {
                jobs.extend(all.into_iter().map(|constants| {
                    let kernels = BTreeSet::from([kernel.name.as_str()]);
                    Job { kernels, constants, level }
                }));
            }
            _ => {
                let is_dynamic = declared.is_some_and(|d| d.dynamic_shared.is_some());
                let part = (is_dynamic, level, number % cores);
                parts.entry(part).or_default().insert(&kernel.name);
            }
        }
    }
    jobs.extend(parts.into_iter().map(|((_, level, _), kernels)| Job {
        kernels,
        constants: Vec::new(),
        level,
    }));
    jobs
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const RAW: &str = "\
.version 7.1
.target sm_80
.address_size 64
.visible .entry k()
{
	// simt.kernel name=k constants=a:0|1 params=
	mov.u32 %r1, /* simt.constant a */ 0;
	ret;
}
";

    /// An assembler of [`RAW`] in that folder, which writes its calls to a file there.
    #[cfg(unix)]
    pub(crate) fn stand_in(root: &Path) -> Ptxas {
        use std::os::unix::fs::PermissionsExt;

        fs::create_dir_all(root).unwrap();
        let path = root.join("ptxas");
        // The kernel's name is that of its entry, and its machine code is next to the program.
        let script = "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\n\
                      name=$(sed -n 's/.*entry \\([a-z0-9_]*\\)(.*/\\1/p' \"$3\")\n\
                      here=$(dirname \"$0\")\ncp \"$here/$name.cubin\" \"$2\"\necho $name >> \"$here/calls\"\n\
                      echo \"ptxas info : Compiling entry function '$name' for 'sm_80'\" >&2\n\
                      echo 'ptxas info : Used 40 registers, 8 bytes smem' >&2\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        for (name, operations) in [("k__a_0", &[0x94d, 0x918][..]), ("k__a_1", &[0x223, 0x94d])] {
            let file = cubin::tests::file(name, &cubin::tests::code(operations));
            fs::write(root.join(format!("{name}.cubin")), file).unwrap();
        }
        Ptxas(Program { path, release: "13.0".into() })
    }

    #[test]
    #[cfg(unix)]
    fn each_specialisation_is_assembled_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let ptxas = stand_in(root);
        let ptx = Ptx::finish(RAW, Target::SM_80, "").unwrap();
        for _ in 0..2 {
            let (mut usages, problems) = ptxas.check(&ptx, Target::SM_80, root).unwrap();
            usages.sort_by(|a, b| a.kernel.cmp(&b.kernel));
            let found = usages.iter().map(|usage| (usage.kernel.as_str(), usage.instructions));
            assert_eq!(found.collect::<Vec<_>>(), [("k__a_0", Some(1)), ("k__a_1", Some(2))]);
            assert!(
                problems.len() == 2 && problems[0].contains("8 bytes of shared"),
                "{problems:?}"
            );
        }
        let calls = fs::read_to_string(root.join("calls")).unwrap();
        let times = if env::var_os("CACHE").is_some_and(|value| value == "0") { 2 } else { 1 };
        assert_eq!(calls.lines().count(), 2 * times, "{calls}");
    }
}
