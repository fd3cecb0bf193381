//! NVIDIA's assembler, where there is one. It sees what PTX does not show: registers, spills, and what it
//! had to do to an instruction to make it run at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context, Result, bail, ensure};

use specialise::Constant;

use crate::{
    builder::{BUILD_FOLDER, Ptx, Target},
    check,
    declaration::Declaration,
    ptx::Function,
    tool::{Program, Tool},
};

/// Where it comes from.
pub(crate) const TOOL: Tool = Tool {
    name: "ptxas",
    package: "nvidia-cuda-nvcc",
    version: "13.0.88",
    megabytes: 37,
    wheels: [
        (
            "x86_64",
            "71/8b/a546c12881fffeba927d810598987df25d74b8b241788c7db8dfc93b0173/\
             nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
            "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
        ),
        (
            "aarch64",
            "9f/06/996d5cdc5ea45fb4a6111a1be4f0caf6556c0cb1bf9684a7252d8771797a/\
             nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl",
            "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
        ),
    ],
};

/// An assembler that can be run.
#[derive(Clone, Debug)]
pub struct Ptxas(Program);

/// What a kernel comes to, as the assembler has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The kernel.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u64,
    /// Bytes of a thread's stack, in local memory.
    pub stack: u64,
    /// Bytes of registers written to local memory.
    pub spill_stores: u64,
    /// Bytes of registers read back from local memory.
    pub spill_loads: u64,
    /// Bytes of static shared memory of a block.
    pub shared: u64,
    /// Barriers of a block: how many of the sixteen are in use, not how many instructions there are.
    pub barriers: u64,
}

impl Ptxas {
    /// The first that is there of: `$PTXAS`, the one on `PATH`, a CUDA toolkit's, one that was
    /// [fetched](Ptxas::fetch) for the workspace in `root`. One that is too old counts as not there.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Assembles PTX for a GPU, in files that are called `name` and lie in the workspace's build folder.
    /// What the assembler said, and the file with the machine code.
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

    /// Assembles PTX, at that level of optimisation. What each kernel comes to, and the file with the machine code.
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

    /// Assembles PTX for a target, its own or a newer one, each kernel at its level, and of one with constants each specialisation.
    /// What each comes to, and a sentence for everything that is wrong.
    pub fn check(
        &self,
        ptx: &Ptx,
        target: Target,
        root: &Path,
    ) -> Result<(Vec<Usage>, Vec<String>)> {
        // ptxas uses one core, so there is work for each.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (jobs, next) = (jobs(ptx, cores), AtomicUsize::new(0));
        let assembled = |core: usize| -> Result<Vec<String>> {
            let mut said = Vec::new();
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let on = (target.cpu(), job.level);
                said.push(self.run(&job.text(ptx), on, root, &format!("ptxas-{core}"))?.0);
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
        let (mut usages, mut problems) = (Vec::new(), Vec::new());
        for said in said.iter().flatten() {
            usages.extend(self::usages(said));
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
        Ok((usages, problems))
    }
}

/// The combinations of a kernel's constants; of a kernel without any the one of none.
fn specialisations(kernel: &Function) -> Vec<Vec<Constant>> {
    check::declaration(kernel).map_or(vec![Vec::new()], Declaration::specialisations)
}

/// Kernels that ptxas is given together.
struct Job<'a> {
    kernels: BTreeSet<&'a str>,
    /// Of a kernel that is alone.
    constants: Vec<Constant>,
    level: Option<u32>,
}

impl Job<'_> {
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

/// What there is to assemble, for so many cores.
fn jobs(ptx: &Ptx, cores: usize) -> Vec<Job<'_>> {
    let mut jobs = Vec::new();
    // Those without constants together, but none with dynamic shared memory beside others: ptxas would round the others' up to its
    // alignment.
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
    // The longest first.
    let together = parts.into_iter().map(|((_, level, _), kernels)| Job {
        kernels,
        constants: Vec::new(),
        level,
    });
    together.chain(jobs).collect()
}

/// Reads what `ptxas -v` says of each kernel.
fn usages(said: &str) -> Vec<Usage> {
    let mut usages: Vec<Usage> = Vec::new();
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().into();
            usages.push(Usage { kernel, ..Usage::default() });
        }
        let Some(usage) = usages.last_mut() else { continue };
        // `0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`
        // `ptxas info    : Used 46 registers, used 1 barriers, 2048 bytes smem`
        for part in line.rsplit(" : ").next().unwrap_or_default().split(',') {
            let part = part.trim().trim_start_matches("Used ").trim_start_matches("used ");
            let Some((number, what)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse() else { continue };
            match what {
                "registers" => usage.registers = number,
                "barriers" => usage.barriers = number,
                "bytes smem" => usage.shared = number,
                // Functions that are called have a stack of their own, on top of the kernel's.
                "bytes stack frame" => usage.stack += number,
                "bytes spill stores" => usage.spill_stores += number,
                "bytes spill loads" => usage.spill_loads += number,
                "bytes cumulative stack size" => usage.stack = usage.stack.max(number),
                _ => {}
            }
        }
    }
    usages
}

fn usage_problems(usage: &Usage, shared: std::ops::RangeInclusive<u64>) -> Vec<String> {
    let Usage { kernel, stack, spill_stores, spill_loads, .. } = usage;
    let mut problems = Vec::new();
    if *spill_stores + *spill_loads > 0 {
        problems.push(format!(
            "kernel `{kernel}`: registers spill to local memory ({spill_stores} bytes of stores, \
             {spill_loads} of loads): keep less in registers, or let a thread have more of them"
        ));
    } else if *stack > 0 {
        problems.push(format!(
            "kernel `{kernel}`: a stack of {stack} bytes, in local memory: index arrays of a thread with \
             constants only"
        ));
    }
    if !shared.contains(&usage.shared) {
        problems.push(format!(
            "kernel `{kernel}`: {} bytes of shared memory, its arrays have {}",
            usage.shared,
            shared.start()
        ));
    }
    problems
}

/// The warnings, and the advisory messages numbered C75xx: each of these says that an instruction was
/// ignored or made slow.
fn warnings(said: &str) -> Vec<String> {
    let is_warning = |line: &&str| {
        line.contains("warning") || line.contains("(C75") || line.contains("Performance Loss")
    };
    // Spills and stacks are told with their numbers, from what each kernel uses.
    let is_told =
        |line: &&str| line.contains("Registers are spilled") || line.contains("Local memory used");
    let told = said.lines().filter(is_warning).filter(|line| !is_told(line));
    told.map(|line| format!("ptxas: {}", line.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'wide' for 'sm_90a'
ptxas info    : Function properties for wide
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 9 barriers
ptxas info    : Compile time = 100 ms
ptxas info    : Compiling entry function 'tiled16' for 'sm_90a'
ptxas info    : Function properties for tiled16
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 46 registers, used 1 barriers, 2048 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 7.020 ms
";

    #[test]
    fn the_report_is_read() {
        let [wide, tiled] = usages(GOOD).try_into().unwrap();
        assert_eq!((wide.registers, wide.barriers, wide.shared), (168, 9, 0));
        let tiled16 = Usage {
            kernel: "tiled16".into(),
            registers: 46,
            shared: 2048,
            barriers: 1,
            ..Usage::default()
        };
        assert_eq!(tiled, tiled16);
        assert_eq!(usage_problems(&tiled, 2048..=2080), Vec::<String>::new());
        assert_eq!(warnings(GOOD), Vec::<String>::new());
    }

    const BAD: &str = "\
ptxas warning : Local memory used for function 'l', size of stack frame: 64 bytes
ptxas warning : Local memory used for function 'k', size of stack frame: 248 bytes
ptxas warning : Registers are spilled to local memory in function 'k', 244 bytes spill stores, 240 bytes spill loads
ptxas info    : Compiling entry function 'l' for 'sm_90a'
ptxas info    : Function properties for l
    64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 64 bytes cumulative stack size
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    248 bytes stack frame, 244 bytes spill stores, 240 bytes spill loads
ptxas info    : Used 64 registers, used 0 barriers, 248 bytes cumulative stack size
";

    #[test]
    fn spills_and_stacks_are_problems_told_once() {
        let [l, k] = usages(BAD).try_into().unwrap();
        let problems = usage_problems(&l, 0..=0);
        assert!(
            problems.len() == 1 && problems[0].contains("`l`: a stack of 64 bytes"),
            "{problems:?}"
        );
        let problems = usage_problems(&k, 0..=0);
        assert!(
            problems.len() == 1 && problems[0].contains("(244 bytes of stores, 240"),
            "{problems:?}"
        );
        assert_eq!(warnings(BAD), Vec::<String>::new());
    }

    #[test]
    fn doubled_shared_memory_is_a_problem() {
        let problems = usage_problems(&usages(GOOD)[1], 1024..=1040);
        assert!(
            problems.len() == 1 && problems[0].contains("2048 bytes of shared memory"),
            "{problems:?}"
        );
    }

    #[test]
    fn warnings_are_problems() {
        for line in [
            "ptxas k.ptx, line 182; warning : .minnctapersm is ignored when neither .maxntid nor .reqntid is specified.",
            "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.",
            "ptxas warning : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized",
        ] {
            assert_eq!(warnings(&format!("{GOOD}{line}\n")).len(), 1, "{line}");
        }
    }
}
