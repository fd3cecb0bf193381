//! `cargo xtask mutants`: are mistakes in kernels found?
//!
//! Every kernel that uses shared memory gets one mistake at a time: a barrier left out, a comparison off by
//! one, an index transposed, and so on, wherever it can be made. Each such mutant is run in check mode, which
//! knows no expected result, and, apart from that, has its result compared with the exact one. Two rates come
//! out: of the mistakes that anything finds, and of those that the checker finds.
//!
//! A general product is one text that several kernels are made of, in a folder of files: a mistake in it is one mutant of
//! `gemm`, `gemm_tma`, `gemm_wgmma` or another, and run with [those kernels](entries) that may show it.
//!
//! | module | its one idea |
//! |---|---|
//! | `source` | kernel files, and which functions a kernel is made of |
//! | `operators` | where each kind of mistake can be made |
//! | `mutant` | one mistake: what is edited, and what it is called |
//! | `program` | mutants compiled into one program, but for those that do not compile |
//! | `driver.rs` | that program's own part: launches a mutant and looks at what comes out |
//! | `general.rs` | its part for the general product: strides, batches, what is done to C at the end |
//! | `tensor.rs` | its part for general products by tensor copies, on tensor cores and not |
//! | `sliced.rs` | its part for products of slices, and for the kernels that make the slices |
//! | `process` | one mutant, run in a process of its own |
//! | `equivalent` | mutants that are no mistakes, each with the reason |
//! | `report` | who found what, and the rates |

mod equivalent;
mod mutant;
mod operators;
mod process;
mod program;
mod report;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fmt, fs,
    path::{Path, PathBuf},
    slice,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use self::{
    equivalent::EQUIVALENT,
    process::Findings,
    program::{ORIGINAL, Program, Subject},
    source::{Kernel, KernelModule, Params},
};
pub use self::{
    equivalent::Equivalent,
    mutant::{Mutant, Operator},
    report::{End, Outcome},
};
use crate::environment::say;

/// Which mutants, and how they are shown.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A JSON object a line instead of text; the table then goes to standard error.
    pub json: bool,
    /// Those of this kernel alone.
    pub kernel: Option<String>,
    /// Those alone whose name has this in it.
    pub only: Option<String>,
    /// How many run at once; as many as there are cores where `None`.
    pub jobs: Option<usize>,
}

/// A kernel without shared memory, one of several that are one text, or one that there is not: the caller's mistake.
#[derive(Debug)]
pub struct UnknownKernel {
    name: String,
    known: Vec<String>,
}

impl std::error::Error for UnknownKernel {}

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let UnknownKernel { name, known } = self;
        write!(f, "no mutants of a kernel `{name}`: there are those of {}", known.join(", "))
    }
}

/// Runs the mutants of the workspace in `root` and reports on them.
///
/// # Errors
/// [`UnknownKernel`]; a kernel that fails as it is; an entry of the list of equivalent mutants that is wrong;
/// too few mistakes that were found.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let name = |kernel: &str, mutant: &Mutant| format!("{kernel}/{}", mutant.name);
    let wanted = |kernel: &str, mutant: &Mutant| {
        options.kernel.as_ref().is_none_or(|wanted| wanted == kernel)
            && options.only.as_ref().is_none_or(|part| name(kernel, mutant).contains(part))
    };
    let print = |outcome: &Outcome| match (options.json, outcome.json()) {
        (true, Some(line)) => say(&format!("{line}\n")),
        (true, None) => {
            eprint!("{}", outcome.text());
            Ok(())
        }
        (false, _) => say(&outcome.text()),
    };
    if let Some(name) = &options.kernel {
        let known = kernels(root)?;
        if !known.contains(name) {
            return Err(UnknownKernel { name: name.clone(), known }.into());
        }
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let outcomes = outcomes(root, &target.join("mutants"), options.jobs, wanted, print)?;
    let summary = report::summary(&outcomes);
    match options.json {
        true => eprint!("{summary}"),
        false => say(&summary)?,
    }
    report::rightly_listed(&outcomes)?;
    ensure!(report::enough(&outcomes), "too few of the mistakes are found");
    Ok(())
}

/// The products that use shared memory.
fn kernels(root: &Path) -> Result<Vec<String>> {
    let modules = KernelModule::all(&root.join("gpu/src/kernels"))?;
    let registry = registry(root)?;
    let mut kernels = Vec::new();
    for module in &modules {
        kernels.extend(products(module, &registry)?.into_iter().map(|kernel| kernel.name));
    }
    Ok(kernels)
}

/// The text of the registry.
fn registry(root: &Path) -> Result<String> {
    let path = root.join("gpu/src/registry.rs");
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The modules of general products, and the kernels that mutants of each are run with. What the others differ in, sizes and
/// types, is the same text in all of them: no mistake that an operator makes there is found by another kernel alone.
const GENERAL: [(&str, &[&str]); 6] = [
    // A small one; one that has two stages where the first has four; and one whose elements are not stored as what they are
    // computed in.
    ("gemm", &["gemm_32", "gemm_f64_64", "gemm_bf16_64"]),
    // A along m; two with producers, of which one has rows that begin anywhere; one whose warps and blocks share k; and one
    // whose warps write what they have computed.
    (
        "gemm_tma",
        &[
            "gemm_tma_64_tn",
            "gemm_tma_72x80_on",
            "gemm_tma_72x80_nn",
            "gemm_tma_64_nn",
            "gemm_tma_128_nn",
        ],
    ),
    // One whose rows may begin anywhere and whose C is of the operands' type; one that copies pieces, of another tile; and one of
    // f32, whose elements are as long as the narrowest copy.
    ("gemm_mma", &["gemm_mma_64x64", "gemm_mma_128x128", "gemm_mma_tf32_64x64"]),
    // A narrow tile; blocks that may split k, of two tiles; of the other text one block a tile, also with a C of the operands'
    // type, and two of a cluster, which copy halves of boxes, or whole ones; B across k, and along it; an A whose rows begin anywhere, by
    // either number of classes; and operands that are gathered, each along k and across it.
    (
        "gemm_wgmma",
        &[
            "gemm_wgmma_f32_64x16_nn",
            "gemm_wgmma_f32_128x128_nn",
            "gemm_wgmma_f32_64x128_nn",
            "gemm_wgmma_128x256_nn",
            "gemm_wgmma_f32_128x256_nn",
            "gemm_wgmma_256x192_nn",
            "gemm_wgmma_f32_256x256_nt",
            "gemm_wgmma_f32_256x256_on",
            "gemm_wgmma_f32_256x256_sn",
            "gemm_wgmma_any_f32_64x64_nn",
            "gemm_wgmma_any_f32_64x64_tt",
        ],
    ),
    // Of either text the least tile; and of rows that begin anywhere a block alone, and two of a cluster.
    (
        "gemm_wgmma_tf32",
        &[
            "gemm_wgmma_tf32_32x32_nn",
            "gemm_wgmma_tf32_128x64_nn",
            "gemm_wgmma_tf32_128x64_on",
            "gemm_wgmma_tf32_256x256_on",
        ],
    ),
    // Of either kind of slices the pass that makes them, a block alone, and two of a cluster, which are two warpgroups each that
    // multiply in turn, and have tiles of two widths. Of both kinds A lies along k in one kernel, and across k in the other.
    (
        "gemm_sliced",
        &[
            "cut_bf16x3",
            "gemm_sliced_bf16x6_256x192_tt",
            "gemm_sliced_bf16x6_64x128_nn",
            "gemm_sliced_f16x3_64x128_tt",
            "gemm_sliced_f16x3_256x192_nn",
            "cut_f16x2",
        ],
    ),
];

/// Those that a mistake in this function of this file is run with, one after another until the checker finds it.
fn entries<'a>(kernel: &'a Kernel, file: &str, function: usize) -> &'a [String] {
    // Where that is one kernel alone, the others are as they were.
    let mut own = (0..kernel.own.len()).filter(|&entry| kernel.own[entry] == function);
    if let (Some(only), None) = (own.next(), own.next()) {
        return &kernel.entries[only..=only];
    }
    match (&*kernel.name, file) {
        // Stages are told apart in the kernels' own file alone, and types in another, which makes no mistakes with those
        // that are stored as they are computed in: their text is a macro's.
        ("gemm", "mod.rs") => &kernel.entries[..2],
        ("gemm", "stored.rs") => &kernel.entries[2..],
        ("gemm", _) => &kernel.entries[..1],
        // Each of the two arrangements is a file, and they share the others: what a thread holds, and the parts of a sum.
        ("gemm_tma", "rings.rs") => &kernel.entries[1..3],
        ("gemm_tma", "mod.rs") => &kernel.entries[3..],
        ("gemm_tma", "parts.rs") => &kernel.entries[2..],
        ("gemm_tma", _) => &kernel.entries[..3],
        ("gemm_wgmma", "parts.rs") => &kernel.entries[1..3],
        ("gemm_wgmma", "output.rs" | "words.rs") => &kernel.entries[3..6],
        ("gemm_wgmma_tf32", "narrow.rs") => &kernel.entries[..1],
        ("gemm_wgmma_tf32", "mod.rs" | "output.rs") => &kernel.entries[1..],
        ("gemm_wgmma_tf32", "rows.rs") => &kernel.entries[2..],
        ("gemm_wgmma", "gather.rs" | "gathered.rs") => &kernel.entries[9..],
        ("gemm_wgmma", "beside.rs" | "entries.rs") => &kernel.entries[7..8],
        ("gemm_wgmma", "shifted.rs") => &kernel.entries[7..9],
        ("gemm_wgmma", "mod.rs" | "turns.rs" | "walk.rs") => &kernel.entries[4..8],
        ("gemm_wgmma", _) => &kernel.entries[..7],
        ("gemm_sliced", "slices.rs") => &kernel.entries[..1],
        ("gemm_sliced", "range.rs") => &kernel.entries[..3],
        ("gemm_sliced", "mod.rs") => &kernel.entries[1..3],
        // A warp's elements of two widths, with what is known of their zeros and without.
        ("gemm_sliced", "exceptions.rs") => &kernel.entries[2..5],
        ("gemm_sliced", "halves.rs") => &kernel.entries[3..],
        ("gemm_sliced", "f16x3.rs" | "widths.rs") => &kernel.entries[3..5],
        _ => &kernel.entries,
    }
}

/// A module's kernels that use shared memory, without those that the registry lists as programs: the driver
/// launches products, at any size. Those of a general product are one, with the programs that make what it takes.
fn products(module: &KernelModule, registry: &str) -> Result<Vec<Kernel>> {
    let all = module.kernels();
    let (general, mut kernels) =
        all.iter().cloned().partition::<Vec<_>, _>(|k| k.params.are_general());
    kernels.retain(|kernel| {
        // Of the module itself, or of a file in its folder.
        let (place, name) = (format!("program!({}::", module.name), format!("::{}", kernel.name));
        let mut programs = registry.match_indices(&place).map(|(at, _)| &registry[at..]);
        !programs.any(|rest| rest.split(')').next().is_some_and(|path| path.ends_with(&name)))
    });
    if let Some(first) = general.first() {
        let known = GENERAL.iter().find(|(name, _)| *name == module.name);
        let (_, names) = known.with_context(|| format!("which kernels of `{}`?", module.name))?;
        let (mut own, mut functions) = (Vec::new(), BTreeSet::new());
        for name in *names {
            let kernel = all.iter().find(|kernel| kernel.name == *name);
            let kernel = kernel.with_context(|| format!("no `{name}` in `{}`", module.name))?;
            own.extend(&kernel.own);
            functions.extend(&kernel.functions);
        }
        kernels.push(Kernel {
            name: module.name.clone(),
            params: first.params,
            entries: names.iter().map(ToString::to_string).collect(),
            own,
            functions: functions.into_iter().collect(),
        });
    }
    Ok(kernels)
}

/// Mutants of a general product that are one program. The compiler stops at the first size that a kernel refuses, of which
/// many mistakes make one, and each time begins anew; so a program had better be small.
const TOGETHER: usize = 16;

/// Makes those mutants that are `wanted` of a kernel, compiles them in `folder` and runs them. Each is shown
/// as soon as it and all before it have been run.
///
/// # Errors
/// A kernel that fails as it is; whatever keeps the mutants from being compiled and run.
pub fn outcomes(
    root: &Path,
    folder: &Path,
    jobs: Option<usize>,
    wanted: impl Fn(&str, &Mutant) -> bool,
    show: impl Fn(&Outcome) -> Result<()> + Sync,
) -> Result<Vec<Outcome>> {
    let mut all = Vec::new();
    let registry = registry(root)?;
    for module in KernelModule::all(&root.join("gpu/src/kernels"))? {
        let kernels = products(&module, &registry)?;
        let mut mutants = operators::mutants(&module);
        mutants.retain(|mutant| {
            let mut of = kernels.iter().filter(|k| k.functions.contains(&mutant.function));
            of.any(|kernel| wanted(&kernel.name, mutant))
        });
        if !mutants.is_empty() {
            all.push((module, kernels, mutants));
        }
    }
    // All lessons are one program.
    let mut programs = vec![Vec::new()];
    for (module, kernels, mutants) in &all {
        if kernels.iter().all(|kernel| kernel.params.are_general()) {
            let parts = mutants.chunks(TOGETHER);
            programs.extend(parts.map(|mutants| vec![Subject { module, kernels, mutants }]));
        } else {
            programs[0].push(Subject { module, kernels, mutants });
        }
    }
    let (mut outcomes, mut originals) = (Vec::new(), Originals::new());
    for subjects in programs.iter().filter(|subjects| !subjects.is_empty()) {
        let program = Program::build(root, folder, subjects)?;
        originals_pass(&program, subjects, &mut originals)?;
        outcomes.extend(of_program(&program, subjects, jobs, &originals, &wanted, &show)?);
    }
    Ok(outcomes)
}

/// Kernels that have passed as they are, and how long they took.
type Originals = BTreeMap<String, Duration>;

/// The outcomes of a program's mutants.
fn of_program(
    program: &Program,
    subjects: &[Subject],
    jobs: Option<usize>,
    originals: &Originals,
    wanted: &impl Fn(&str, &Mutant) -> bool,
    show: &(impl Fn(&Outcome) -> Result<()> + Sync),
) -> Result<Vec<Outcome>> {
    let mut trials = Vec::new();
    for subject in subjects {
        for kernel in subject.kernels {
            for (number, mutant) in subject.mutants.iter().enumerate() {
                if kernel.functions.contains(&mutant.function) && wanted(&kernel.name, mutant) {
                    let file = &subject.module.files[mutant.file].name;
                    let entries = entries(kernel, file, mutant.function);
                    trials.push((subject.module(number), kernel, entries, mutant.clone()));
                }
            }
        }
    }
    type Trial<'a> = (String, &'a Kernel, &'a [String], Mutant);
    let run = |(module, kernel, entries, mutant): &Trial| -> Result<Outcome> {
        let name = &kernel.name;
        let end = match program.broken.get(module) {
            Some(message) => End::DoesNotCompile(message.clone()),
            None => {
                let took = entries.iter().filter_map(|entry| originals.get(entry)).sum();
                let Findings { check, verification } =
                    found(process::limit(took), program, module, kernel.params, entries)?;
                let equivalent = EQUIVALENT.iter().find(|known| known.is(name, mutant));
                End::Ran { check, verification, equivalent }
            }
        };
        let id = format!("{name}/{}", mutant.name);
        Ok(Outcome { id, kernel: name.clone(), mutant: mutant.clone(), end })
    };
    in_parallel(&trials, jobs, run, show)
}

/// What is found in kernels of a module, of which a stage may take so long.
fn found(
    limit: Duration,
    program: &Program,
    module: &str,
    params: Params,
    kernels: &[String],
) -> Result<Findings> {
    // A general product's launches are checked, and what comes out of them compared.
    let stages = match params {
        Params::General | Params::Tensor => &["both"][..],
        Params::Views | Params::Pointers => &["check", "verify"],
    };
    let mut all = Findings::default();
    for stage in stages {
        let found = process::run(limit, &program.path, stage, module, kernels)?;
        all.check.extend(found.check);
        all.verification.extend(found.verification);
    }
    Ok(all)
}

/// A kernel that fails without a mistake would make every mutant count as found. Of those that are in `originals` it is known
/// already.
fn originals_pass(
    program: &Program,
    subjects: &[Subject],
    originals: &mut Originals,
) -> Result<()> {
    for kernel in subjects.iter().flat_map(|subject| subject.kernels) {
        for entry in &kernel.entries {
            if originals.contains_key(entry) {
                continue;
            }
            let start = Instant::now();
            let Findings { check, verification } =
                found(process::LIMIT, program, ORIGINAL, kernel.params, slice::from_ref(entry))?;
            let all = [check, verification].concat();
            ensure!(all.is_empty(), "`{entry}` fails as it is: {}", all.join("; "));
            originals.insert(entry.clone(), start.elapsed());
        }
    }
    Ok(())
}

/// The outcomes of all trials, in their order, each shown when its turn has come.
fn in_parallel<T: Sync>(
    trials: &[T],
    jobs: Option<usize>,
    run: impl Fn(&T) -> Result<Outcome> + Sync,
    show: impl Fn(&Outcome) -> Result<()> + Sync,
) -> Result<Vec<Outcome>> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    // Results by number, and how many of the first have been shown.
    let state = Mutex::new((Vec::from_iter(trials.iter().map(|_| None)), 0));
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(trial) = trials.get(number) else { return Ok(()) };
            let outcome = run(trial)?;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let (outcomes, shown) = &mut *state;
            outcomes[number] = Some(outcome);
            while let Some(Some(outcome)) = outcomes.get(*shown) {
                show(outcome)?;
                *shown += 1;
            }
        }
    };
    thread::scope(|scope| {
        let workers = (0..jobs.unwrap_or_else(cores).max(1)).map(|_| scope.spawn(work));
        let workers = workers.collect::<Vec<_>>();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a worker has panicked"),
        })
    })?;
    let (outcomes, _) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(outcomes.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The workspace's folder, the text of its registry, and its kernel modules.
    fn ours() -> (&'static Path, String, Vec<KernelModule>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let modules = KernelModule::all(&root.join("gpu/src/kernels")).unwrap();
        (root, registry(root).unwrap(), modules)
    }

    #[test]
    fn programs_are_left_to_their_own_tests() {
        let text = "
            #[kernel] pub fn tiled(a: In<f32>) { let x = shared![f32; 4]; }
            #[kernel] pub fn blur(a: In<u8>) { let x = shared![u8; 4]; }
        ";
        let module = KernelModule::of("k", text);
        let names = |registry: &str| {
            let products = products(&module, registry).unwrap();
            products.into_iter().map(|kernel| kernel.name).collect::<Vec<_>>()
        };
        assert_eq!(names("views!(k::tiled), views!(k::blur)"), ["tiled", "blur"]);
        assert_eq!(names("views!(k::tiled), program!(k::blur)"), ["tiled"]);
        assert_eq!(names("program!(other::blur)"), ["tiled", "blur"]);
    }

    /// The registry is read as text, and so is written as this expects.
    #[test]
    fn the_registry_says_what_is_a_program() {
        let kernels = kernels(ours().0).unwrap();
        for (name, is_product) in [
            ("tiled16", true),
            ("padded16", false),
            ("blur_shared", false),
            ("gemm", true),
            ("gemm_32", false),
            ("gemm_tma", true),
            ("gemm_wgmma", true),
            ("gemm_wgmma_f32_128x128_nn", false),
            ("gemm_sliced", true),
            ("cut_bf16x3", false),
        ] {
            assert_eq!(kernels.contains(&name.to_owned()), is_product, "{name}: {kernels:?}");
        }
    }

    /// Where a mistake is in a file that some kernels alone are made of, those are run.
    #[test]
    fn mistakes_of_a_file_are_run_with_the_kernels_it_is_for() {
        let (_, registry, modules) = ours();
        let of = |module: &str, file: &str| {
            let module = modules.iter().find(|of| of.name == module).unwrap();
            let kernel = products(module, &registry).unwrap().pop().unwrap();
            entries(&kernel, file, usize::MAX).to_vec()
        };
        let any = ["gemm_wgmma_any_f32_64x64_nn", "gemm_wgmma_any_f32_64x64_tt"];
        assert_eq!(of("gemm_wgmma", "gather.rs"), any);
        let on = "gemm_wgmma_f32_256x256_on";
        assert_eq!(of("gemm_wgmma", "shifted.rs"), [on, "gemm_wgmma_f32_256x256_sn"]);
        assert_eq!(of("gemm_wgmma", "beside.rs"), [on]);
        let on = ["gemm_wgmma_tf32_128x64_on", "gemm_wgmma_tf32_256x256_on"];
        assert_eq!(of("gemm_wgmma_tf32", "rows.rs"), on);
        assert_eq!(of("gemm_wgmma_tf32", "narrow.rs"), ["gemm_wgmma_tf32_32x32_nn"]);
    }

    #[test]
    fn equivalents_are_mutants() {
        let (_, registry, modules) = ours();
        let mut listed = EQUIVALENT
            .iter()
            .flat_map(|known| known.kernels.iter().map(move |&kernel| (kernel, known)))
            .collect::<Vec<_>>();
        for module in modules {
            let mutants = operators::mutants(&module);
            for kernel in products(&module, &registry).unwrap() {
                let is_there = |known: &Equivalent| {
                    let mut own = mutants.iter().filter(|m| kernel.functions.contains(&m.function));
                    own.any(|mutant| known.is(&kernel.name, mutant))
                };
                listed.retain(|(name, known)| *name != kernel.name || !is_there(known));
            }
        }
        assert!(listed.is_empty(), "no mutants, or no mutants any more: {listed:#?}");
    }
}
