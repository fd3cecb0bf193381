//! A kernel's declaration, and the PTX directives that follow from it.
//!
//! In Rust a kernel cannot declare its number of threads, and rustc passes on no such information.
//! So `#[kernel]` leaves a line in the kernel's body:
//!
//! ```text
//! // simt.kernel name=tiled16 block=16,16,1 shared=2048 barriers=2 params=u32,u32,u32,in.f32,in.f32,out.f32
//! ```
//!
//! The builder compares it with the code, and writes the directives after the parameter list, as
//! PTX requires.

use std::str::FromStr;

use anyhow::{Context, Error, Result, bail, ensure};
use specialise::Constant;

/// The start of the line, after `//` and spaces.
pub const MARK: &str = "simt.kernel";

/// The most threads of a block, on every GPU.
const MAX_BLOCK_THREADS: u64 = 1024;

/// The most combinations of a kernel's constants, as in `simt`. Each is compiled separately.
const MOST_SPECIALISATIONS: usize = 32;

/// A kernel's declaration. `None`: not declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The name of the kernel, and of its entry.
    pub name: String,
    /// Threads of a block along x, y, z. `.reqntid`.
    pub block: Option<[u32; 3]>,
    /// Bytes of static shared memory.
    pub shared: Option<u64>,
    /// Block barriers in the code (their number, not how often they are reached).
    pub barriers: Option<u32>,
    /// Blocks that must fit on an SM at once. `.minnctapersm`.
    pub min_blocks: Option<u32>,
    /// Blocks of a cluster along x, y, z. `.reqnctapercluster`.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory of a launch.
    pub dynamic_shared: Option<u64>,
    /// The necessary compute capability, without its dot.
    pub arch: Option<u32>,
    /// ptxas's level of optimisation.
    pub opt_level: Option<u32>,
    /// Whether it may start before the previous kernel of its stream has ended.
    pub dependent: bool,
    /// The constants and their possible values. The first value is the one in the code.
    pub constants: Vec<(String, Vec<String>)>,
    /// The parameters' types in order: `u32`, `in.f32`, `out.f32`.
    pub params: Vec<String>,
}

impl FromStr for Declaration {
    type Err = Error;

    /// Parses the line after [`MARK`].
    fn from_str(line: &str) -> Result<Self> {
        let mut declaration = Declaration::default();
        let mut seen = Vec::new();
        for word in line.split_whitespace() {
            let (key, value) =
                word.split_once('=').with_context(|| format!("`{word}` is not `key=value`"))?;
            ensure!(!seen.contains(&key), "`{key}` is declared twice");
            seen.push(key);
            match key {
                "name" => declaration.name = value.into(),
                "block" => declaration.block = Some(triple(key, value)?),
                "shared" => declaration.shared = Some(number(key, value)?),
                "barriers" => declaration.barriers = Some(number(key, value)?),
                "min_blocks" => declaration.min_blocks = Some(number(key, value)?),
                "cluster" => declaration.cluster = Some(triple(key, value)?),
                "dynamic_shared" => declaration.dynamic_shared = Some(number(key, value)?),
                "arch" => declaration.arch = Some(number(key, value)?),
                "opt_level" => declaration.opt_level = Some(number(key, value)?),
                "dependent" => declaration.dependent = flag(key, value)?,
                "constants" => declaration.constants = constants(value)?,
                "params" if value.is_empty() => {}
                "params" => declaration.params = value.split(',').map(Into::into).collect(),
                _ => bail!(
                    "unknown key `{key}`: this builder knows name, block, shared, barriers, min_blocks, \
                     cluster, dynamic_shared, arch, opt_level, dependent, constants and params"
                ),
            }
        }
        for key in ["name", "params"] {
            ensure!(seen.contains(&key), "`{key}` is missing");
        }
        declaration.validate()?;
        Ok(declaration)
    }
}

impl Declaration {
    fn validate(&self) -> Result<()> {
        if let Some(block) = self.block {
            let threads: u64 = block.iter().fold(1, |n, &d| n.saturating_mul(d.into()));
            ensure!(
                (1..=MAX_BLOCK_THREADS).contains(&threads),
                "block={block:?} has {threads} threads: a block has 1 to {MAX_BLOCK_THREADS}"
            );
        }
        if let Some(min_blocks) = self.min_blocks {
            ensure!(min_blocks > 0, "min_blocks=0: at least one block must fit");
            // ptxas ignores `.minnctapersm` without `.reqntid`, with a warning.
            ensure!(
                self.block.is_some(),
                "min_blocks={min_blocks} counts only together with `block`"
            );
        }
        for (number, (name, values)) in self.constants.iter().enumerate() {
            let is_again = self.constants[..number].iter().any(|(other, _)| other == name);
            ensure!(!is_again, "the constant `{name}` is declared twice");
            let is_again = (1..values.len()).find(|at| values[..*at].contains(&values[*at]));
            ensure!(is_again.is_none(), "the constant `{name}` has a value twice");
        }
        let specialisations = self
            .constants
            .iter()
            .fold(1_usize, |all, (_, values)| all.saturating_mul(values.len()));
        ensure!(
            specialisations <= MOST_SPECIALISATIONS,
            "{specialisations} combinations of constants: {MOST_SPECIALISATIONS} at most, as each is compiled by \
             itself"
        );
        if let Some(level) = self.opt_level {
            ensure!(level <= 4, "opt_level={level}: the levels are 0 to 4");
        }
        if let Some(cluster) = self.cluster {
            ensure!(!cluster.contains(&0), "cluster={cluster:?}: at least 1 along each axis");
        }
        Ok(())
    }

    /// The combinations of its constants' values.
    pub fn specialisations(&self) -> Vec<Vec<Constant>> {
        self.constants.iter().fold(vec![Vec::new()], |before, (name, values)| {
            let with = |so_far: Vec<Constant>| {
                values.iter().map(move |value| {
                    let (name, default) = (name.clone(), values[0].clone());
                    let one = Constant { name, default, value: value.clone() };
                    so_far.iter().cloned().chain([one]).collect()
                })
            };
            before.into_iter().flat_map(with).collect()
        })
    }

    /// The directives for an entry, one on a line, as they follow its parameter list.
    pub fn directives(&self) -> String {
        let mut text = String::new();
        if let Some([x, y, z]) = self.block {
            text += &format!("\n.reqntid {x}, {y}, {z}");
        }
        if let Some(blocks) = self.min_blocks {
            text += &format!("\n.minnctapersm {blocks}");
        }
        if let Some([x, y, z]) = self.cluster {
            // As LLVM writes it: the launch must have clusters of this size.
            text += &format!("\n.explicitcluster\n.reqnctapercluster {x}, {y}, {z}");
        }
        text
    }
}

/// Parses `a_mn_major:0|1,half:bf16|f16`.
fn constants(value: &str) -> Result<Vec<(String, Vec<String>)>> {
    let constant = |text: &str| {
        let (name, values) = text.split_once(':')?;
        let values = values.split('|').map(str::to_owned).collect::<Vec<_>>();
        let is_word =
            |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        (is_word(name) && values.iter().all(|value| is_word(value)))
            .then(|| (name.to_owned(), values))
    };
    let all = value.split(',').map(constant).collect::<Option<Vec<_>>>();
    all.with_context(|| format!("constants={value}: not `name:value|value,..`"))
}

fn number<T: FromStr>(key: &str, value: &str) -> Result<T> {
    value.parse().ok().with_context(|| format!("{key}={value}: not a number"))
}

fn flag(key: &str, value: &str) -> Result<bool> {
    value.parse().ok().with_context(|| format!("{key}={value}: neither true nor false"))
}

fn triple(key: &str, value: &str) -> Result<[u32; 3]> {
    let numbers: Vec<u32> = value.split(',').map(|v| number(key, v)).collect::<Result<_>>()?;
    numbers
        .try_into()
        .ok()
        .with_context(|| format!("{key}={value}: three numbers, x,y,z, are needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_said() {
        let said = "name=wide block=128,2,1 shared=2048 barriers=2 min_blocks=2 cluster=2,1,1 \
                    dynamic_shared=4096 arch=90 opt_level=1 dependent=true constants=a:0|1,b:x|y \
                    params=u32,in.f32";
        let declaration: Declaration = said.parse().unwrap();
        assert_eq!(
            declaration,
            Declaration {
                name: "wide".into(),
                block: Some([128, 2, 1]),
                shared: Some(2048),
                barriers: Some(2),
                min_blocks: Some(2),
                cluster: Some([2, 1, 1]),
                dynamic_shared: Some(4096),
                arch: Some(90),
                opt_level: Some(1),
                dependent: true,
                constants: vec![
                    ("a".into(), vec!["0".into(), "1".into()]),
                    ("b".into(), vec!["x".into(), "y".into()]),
                ],
                params: vec!["u32".into(), "in.f32".into()],
            }
        );
        assert_eq!(
            declaration.directives(),
            "\n.reqntid 128, 2, 1\n.minnctapersm 2\n.explicitcluster\n.reqnctapercluster 2, 1, 1"
        );
    }

    #[test]
    fn the_least_that_must_be_said() {
        let declaration: Declaration = "name=empty params=".parse().unwrap();
        assert_eq!(declaration.params, Vec::<String>::new());
        assert_eq!(declaration.directives(), "");
    }

    #[test]
    fn what_is_refused_and_with_which_words() {
        for (said, complaint) in [
            ("name=k params= colour=red", "unknown key `colour`"),
            ("name=k", "`params` is missing"),
            ("params=u32", "`name` is missing"),
            ("name=k params= name=k", "`name` is declared twice"),
            ("name=k params= block=16,16", "three numbers"),
            ("name=k params= block=16,x,1", "not a number"),
            ("name=k params= block=64,32,1", "2048 threads"),
            ("name=k params= block=0,1,1", "0 threads"),
            ("name=k params= min_blocks=2", "only together with `block`"),
            ("name=k params= cluster=2,0,1", "at least 1"),
            ("name=k params= barriers=-1", "not a number"),
            ("name=k params= dependent=1", "neither true nor false"),
            ("name=k params= constants=a", "not `name:value|value,..`"),
            ("name=k params= constants=a:0|", "not `name:value|value,..`"),
            ("name=k params= constants=a:0|1,a:2|3", "`a` is declared twice"),
            ("name=k params= constants=a:0|1|0", "`a` has a value twice"),
            (
                "name=k params= constants=a:0|1,b:0|1|2,c:0|1|2,d:0|1",
                "36 combinations of constants: 32 at",
            ),
            ("name=k params= loud", "not `key=value`"),
        ] {
            let error = said.parse::<Declaration>().expect_err(said).to_string();
            assert!(error.contains(complaint), "{said}: {error}");
        }
        let most = "name=k params= constants=a:0|1,b:0|1,c:0|1,d:0|1,e:0|1";
        assert_eq!(most.parse::<Declaration>().unwrap().specialisations().len(), 32);
    }
}
