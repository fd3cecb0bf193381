//! `gpu/ptx/architectures.tsv`: the kernels for `sm_80` also assemble for the later GPUs whose
//! drivers compile them, and spill nothing there.
//!
//! A kernel whose PTX has the digest of the committed row is not assembled again, so that a build
//! assembles changed kernels alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::Path,
};

use anyhow::Result;

use crate::{
    builder::Ptx,
    environment::note,
    ptxas::{Ptxas, Usage},
    resources,
    target::Target,
};

/// The file's name, in the folder of the PTX.
pub(crate) const FILE: &str = "architectures.tsv";

/// The GPU whose registers are recorded, for all that have less shared memory than `sm_80`.
const RECORDED: Target = Target::new("sm_89", (7, 8));

/// The GPUs. Kernels that run on 9.0 are assembled for `sm_90a` with those that are for it alone.
const GPUS: [Target; 7] = [
    Target::new("sm_86", (7, 1)),
    Target::new("sm_87", (7, 4)),
    RECORDED,
    Target::new("sm_100", (8, 6)),
    Target::new("sm_103", (8, 8)),
    Target::new("sm_120", (8, 7)),
    Target::new("sm_121", (8, 8)),
];

/// The end of a warning that is no error. An SM of 8.6 or 8.7 holds 16 blocks, and a kernel may ask
/// for registers few enough for 24.
const IGNORED: &str = "minnctapersm will be ignored";

/// What was found, of the kernels that were assembled and of those that were not.
pub(crate) struct Assembled {
    /// The file's text.
    pub(crate) table: String,
    /// The GPU whose registers are recorded, and those of all kernels.
    pub(crate) recorded: (Target, Vec<Usage>),
    /// A sentence for every error.
    pub(crate) wrong: Vec<String>,
    /// The number of kernels that were assembled.
    pub(crate) kernels: usize,
}

/// Assembles the kernels of `ptx` for all GPUs, except those that the `committed` text of [`FILE`]
/// has. Their registers are those of the `committed` text of [`resources::FILE`].
pub(crate) fn check(
    ptxas: &Ptxas,
    ptx: &Ptx,
    committed: [&str; 2],
    root: &Path,
) -> Result<Assembled> {
    let head = head(ptxas.release());
    let [table, resources] = committed;
    let mut known = rows(table.strip_prefix(&*head).unwrap_or_default());
    if env::var_os("CACHE").is_some_and(|value| value == "0") {
        known.clear();
    }
    let files = ptx.files();
    let digests = files.iter().map(|(file, text)| (&**file, digest(text)));
    let digests = digests.collect::<BTreeMap<_, _>>();
    known.retain(|file, known| digests.get(file).is_some_and(|own| own == known));
    let mut usages = resources::usages(resources, RECORDED);
    let mut unchanged = BTreeSet::new();
    for file in known.keys() {
        let module = Ptx::written(&files[*file], ptx.target())?.module;
        unchanged.extend(module.kernels().map(|kernel| kernel.name.clone()));
    }
    // A specialisation's name is its kernel's, and the constants after two underscores.
    let kernel_of = |usage: &Usage| usage.kernel.split("__").next().unwrap_or_default().to_owned();
    let oldest = resources::usages(resources, ptx.target());
    unchanged.retain(|kernel| {
        let [recorded, all] = [&usages, &oldest]
            .map(|rows| rows.iter().filter(|usage| kernel_of(usage) == *kernel).count());
        recorded > 0 && recorded == all
    });
    usages.retain(|usage| unchanged.contains(&kernel_of(usage)));
    let changed = ptx.without(|kernel| unchanged.contains(kernel))?;
    let kernels = changed.module().kernels().count();
    let mut wrong = Vec::new();
    if kernels > 0 {
        let texts = GPUS.map(|gpu| (&changed, gpu));
        for ((_, gpu), (found, problems)) in texts.iter().zip(ptxas.check_all(&texts, root)?) {
            if *gpu == RECORDED {
                usages.extend(found);
            }
            for problem in problems.iter().map(|problem| format!("{}: {problem}", gpu.cpu())) {
                match problem.ends_with(IGNORED) {
                    true => note(&format!("note: {problem}\n")),
                    false => wrong.push(problem),
                }
            }
        }
    }
    let lines = digests.iter().map(|(file, digest)| format!("{file}\t{digest}\n"));
    Ok(Assembled {
        table: head + &lines.collect::<String>(),
        recorded: (RECORDED, usages),
        wrong,
        kernels,
    })
}

/// The file's first lines. Rows below others are of another assembler, or of other GPUs.
fn head(release: &str) -> String {
    let gpus = GPUS.map(|gpu| format!("{} (PTX {})", gpu.cpu(), gpu.ptx_version())).join(", ");
    format!(
        "{}{release}\n\
         # The kernels of each file assemble, without spills and stacks, for {gpus}.\n\
         # digest: FNV-1a of the file. What has the digest of its row is not assembled again.\n\
         file\tdigest\n",
        resources::RELEASE
    )
}

/// Files and digests.
fn rows(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('\t')).collect()
}

/// FNV-1a, which is the same in every release of Rust.
fn digest(text: &str) -> String {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, add))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ptxas::tests::{RAW, stand_in};

    #[test]
    fn what_has_not_changed_is_not_assembled_again() {
        let root = tempfile::tempdir().unwrap();
        let ptxas = stand_in(root.path());
        let ptx = Ptx::finish(RAW, Target::SM_80, "").unwrap();
        let found = |table: &str, resources: &str| {
            let found = check(&ptxas, &ptx, [table, resources], root.path()).unwrap();
            let usages = [(ptx.target(), found.recorded.1.clone()), found.recorded];
            (found.kernels, found.wrong, found.table, resources::table("13.0", &usages))
        };
        let (kernels, wrong, table, resources) = found("", "");
        // Its two specialisations, on each GPU.
        assert_eq!((kernels, wrong.len()), (1, 2 * GPUS.len()));
        assert!(wrong[0].starts_with("sm_86: kernel `k__a_0`: 8 bytes of shared"), "{wrong:?}");
        assert_eq!(table.lines().last().unwrap().split('\t').next(), Some("k"));
        assert_eq!(resources.matches("sm_89\tk__a_").count(), 2);
        if env::var_os("CACHE").is_none_or(|value| value != "0") {
            let again = found(&table, &resources);
            assert_eq!(again, (0, Vec::new(), table.clone(), resources.clone()));
        }
        // Another text, other GPUs, another PTX version, another assembler; no registers, and those
        // of one specialisation alone.
        let others = ["k\t", "sm_121", "PTX 7", "ptxas 13"];
        let others = others.map(|of| table.replace(of, &format!("{of}0")));
        let fewer = resources.replace("sm_89\tk__a_1", "sm_86\tk__a_1");
        let registers = ["", &fewer].map(|resources| (&table, resources));
        for (table, resources) in others.iter().map(|other| (other, &*resources)).chain(registers) {
            assert_eq!(found(table, resources).0, 1, "{table}");
        }
    }

    #[test]
    fn digests_are_those_of_fnv() {
        assert_eq!(["", "a"].map(digest), ["cbf29ce484222325", "af63dc4c8601ec8c"]);
    }
}
