//! `cargo xtask sass COMMIT`: whether the committed PTX is assembled to the machine code of that
//! commit.
//!
//! A change of structure may change PTX (a register's number, the order of two lines) and should
//! leave the machine code as it was. Every kernel whose PTX differs is assembled in both versions,
//! for each combination of its constants and each target that loads it. A line for a kernel says
//! how many of these differ, and how the first does.

use std::{collections::BTreeMap, fmt::Write, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{
    build_ptx::{self, FOLDER, TARGETS},
    builder::Ptx,
    environment::{output, say},
    ptxas::{Ptxas, Usage},
};

/// Compares the PTX in the workspace in `root` with that of a commit.
///
/// # Errors
/// A kernel with other machine code, or one that only one of both has; no assembler; git's.
pub fn run(root: &Path, commit: &str) -> Result<()> {
    let ptxas = Ptxas::find(root)
        .context("there is no ptxas: `cargo xtask build-ptx --check --fetch-ptxas` downloads it")?;
    let (old, new) = (of_commit(root, commit)?, build_ptx::committed(&root.join(FOLDER))?);
    let (mut changed, mut one_sided, mut same) = (Vec::new(), Vec::new(), 0);
    for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) if old == new => same += 1,
            (Some(old), Some(new)) => changed.push((name, [old, new])),
            (is_old, _) => one_sided.push(if is_old.is_some() {
                format!("{name} is not there any more")
            } else {
                format!("{name} is new")
            }),
        }
    }
    say(&format!("{same} files of PTX as in {commit}, {} with other text\n", changed.len()))?;
    let (mut named, mut texts) = (Vec::new(), Vec::new());
    for (name, versions) in &changed {
        let (cpu, _) = name.split_once('/').unwrap_or_default();
        // An older target's PTX is loaded on newer ones, too.
        let on = TARGETS.into_iter().skip_while(|target| target.cpu() != cpu);
        for target in on {
            named.push(*name);
            for text in versions {
                texts.push((Ptx::written(text, target)?, target));
            }
        }
    }
    let pairs = texts.iter().map(|(ptx, target)| (ptx, *target)).collect::<Vec<_>>();
    let assembled = ptxas.check_all(&pairs, root)?;
    let (mut report, mut equal, mut others) = (String::new(), 0, 0);
    for (name, (both, on)) in named.iter().zip(assembled.chunks(2).zip(pairs.chunks(2))) {
        let [(old, _), (new, _)] = both else { continue };
        let differing = differences(old, new);
        equal += new.len().saturating_sub(differing.len());
        others += differing.len();
        if let Some(first) = differing.first() {
            let cpu = on[0].1.cpu();
            writeln!(report, "{name} on {cpu}, {} of {}: {first}", differing.len(), new.len())?;
        }
    }
    say(&report)?;
    say(&format!("{equal} assembled to the same machine code, {others} to another\n"))?;
    one_sided.iter().try_for_each(|what| say(&format!("{what}\n")))?;
    ensure!(others == 0 && one_sided.is_empty(), "the machine code is not that of {commit}");
    Ok(())
}

/// A line for each specialisation whose machine code differs, or that only one side has.
fn differences(old: &[Usage], new: &[Usage]) -> Vec<String> {
    let by_name = |usages: &[Usage]| {
        let named = usages.iter().map(|usage| (usage.kernel.clone(), usage.clone()));
        named.collect::<BTreeMap<_, _>>()
    };
    let (mut old, new) = (by_name(old), by_name(new));
    let mut lines = Vec::new();
    for (name, now) in &new {
        match old.remove(name) {
            None => lines.push(format!("{name} is new")),
            Some(before) if before.digest.is_some() && before.digest == now.digest => {}
            Some(before) => {
                let count = |usage: &Usage| usage.instructions.unwrap_or_default();
                let spills = |usage: &Usage| usage.spill_stores + usage.spill_loads;
                lines.push(format!(
                    "{name}: registers {} -> {}, instructions {} -> {}, spills {} -> {}",
                    before.registers,
                    now.registers,
                    count(&before),
                    count(now),
                    spills(&before),
                    spills(now)
                ));
            }
        }
    }
    lines.extend(old.keys().map(|name| format!("{name} is not there any more")));
    lines
}

/// The PTX of a commit: paths below the folder, and texts.
fn of_commit(root: &Path, commit: &str) -> Result<BTreeMap<String, String>> {
    let git = |args: &[&str]| output(Command::new("git").current_dir(root).args(args));
    let listed = git(&["ls-tree", "-r", "--name-only", "-z", commit, "--", FOLDER])?;
    let mut texts = BTreeMap::new();
    for path in listed.split('\0').filter(|path| path.ends_with(".ptx")) {
        let name = path.strip_prefix(FOLDER).unwrap_or(path).trim_start_matches('/');
        texts.insert(name.to_owned(), git(&["show", &format!("{commit}:{path}")])?);
    }
    ensure!(!texts.is_empty(), "{commit} has no PTX in {FOLDER}");
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(kernel: &str, registers: u64, digest: Option<u64>) -> Usage {
        Usage { kernel: kernel.into(), registers, digest, ..Usage::default() }
    }

    #[test]
    fn only_known_code_is_the_same() {
        let old = [usage("a", 40, Some(1)), usage("b", 40, Some(2)), usage("c", 40, None)];
        let new = [usage("a", 40, Some(1)), usage("b", 41, Some(3)), usage("c", 40, None)];
        let lines = differences(&old, &new);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("b: registers 40 -> 41, "), "{lines:?}");
        assert!(lines[1].starts_with("c: "), "{lines:?}");
        let lines = differences(&old[..1], &new[1..2]);
        assert_eq!(lines, ["b is new", "a is not there any more"]);
    }
}
