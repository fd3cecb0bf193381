//! What a kernel declares, and the shape of a launch, which must agree with it.

use crate::constants::{self, ConstantDeclaration, Constants};

/// A kernel's declaration. Fields are `None` where the kernel declares nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Declaration {
    /// The kernel's name, and its entry point's in the PTX.
    pub name: &'static str,
    /// Threads of a block along x, y, z. A launch must use these.
    pub block: Option<[u32; 3]>,
    /// Bytes of its static shared arrays.
    pub shared: Option<usize>,
    /// The number of barriers in its code (not of their executions).
    pub barriers: Option<u32>,
    /// Blocks that must fit on an SM at once, which limits the registers of a thread.
    pub min_blocks: Option<u32>,
    /// Blocks of a cluster along x, y, z.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory. A launch must give at least these.
    pub dynamic_shared: Option<u32>,
    /// The compute capability that it needs, without the dot: 90 for Hopper.
    pub arch: Option<u32>,
    /// The optimisation level of the driver's compiler, 0 to 4; by default its highest.
    pub opt_level: Option<u32>,
    /// Bytes of a thread's stack on the CPU, if its local arrays need more than 256 KiB. (A GPU's
    /// driver determines that by itself.)
    pub stack: Option<usize>,
    /// Whether it may begin before the previous kernel of its stream has ended. Then it must call
    /// [`wait_for_earlier`](crate::device::grid::wait_for_earlier).
    pub dependent: bool,
    /// Its specialisation constants.
    pub constants: &'static [ConstantDeclaration],
    /// Its parameters, in order.
    pub params: &'static [ParamDeclaration],
    /// The path of its source file, as the compiler was given it.
    pub file: &'static str,
    /// Its line in the file.
    pub line: u32,
}

impl Declaration {
    /// A declaration of a kernel's name, parameters and place in the source, and of nothing else.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        params: &'static [ParamDeclaration],
        (file, line): (&'static str, u32),
    ) -> Self {
        Declaration {
            name,
            block: None,
            shared: None,
            barriers: None,
            min_blocks: None,
            cluster: None,
            dynamic_shared: None,
            arch: None,
            opt_level: None,
            stack: None,
            dependent: false,
            constants: &[],
            params,
            file,
            line,
        }
    }

    /// The comment in the kernel's PTX after `// `, which the builder and the host compare.
    pub fn to_ptx_comment(&self) -> String {
        let mut text = format!("simt.kernel name={}", self.name);
        let mut word = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                text += &format!(" {key}={value}");
            }
        };
        let triple = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
        word("block", self.block.map(triple));
        word("shared", self.shared.map(|n| n.to_string()));
        word("barriers", self.barriers.map(|n| n.to_string()));
        word("min_blocks", self.min_blocks.map(|n| n.to_string()));
        word("cluster", self.cluster.map(triple));
        word("dynamic_shared", self.dynamic_shared.map(|n| n.to_string()));
        word("arch", self.arch.map(|n| n.to_string()));
        word("opt_level", self.opt_level.map(|n| n.to_string()));
        word("dependent", self.dependent.then(|| true.to_string()));
        let constants = self.constants.iter().map(ToString::to_string).collect::<Vec<_>>();
        word("constants", (!constants.is_empty()).then(|| constants.join(",")));
        word("params", Some(self.params.iter().map(|p| p.ty).collect::<Vec<_>>().join(",")));
        text
    }
}

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamDeclaration {
    /// Its name in the source.
    pub name: &'static str,
    /// Its type as in the PTX comment: `u32`, `in.f32`, `out.f32`.
    pub ty: &'static str,
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory for each block.
    pub dynamic_shared: u32,
    /// Blocks of a cluster along x, y, z: they run at the same time and can access each other's
    /// shared memory. A kernel's declared cluster takes precedence.
    pub cluster: [u32; 3],
    /// Values of the kernel's [constants](Constants).
    pub constants: Constants,
}

impl LaunchConfig {
    /// A launch without dynamic shared memory and clusters, with the defaults of all constants.
    pub const fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        LaunchConfig { grid, block, dynamic_shared: 0, cluster: [1; 3], constants: Constants::NONE }
    }

    /// The number of blocks of the grid.
    pub fn blocks(&self) -> u64 {
        // Saturating: a grid beyond the device's limits is refused before this number is used.
        self.grid.iter().fold(1u64, |n, &d| n.saturating_mul(d.into()))
    }

    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        self.block.iter().fold(1u64, |n, &d| n.saturating_mul(d.into()))
    }
}

/// The limits of a device for a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads of a block.
    pub block_threads: u32,
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Blocks of the grid along x, y, z.
    pub grid: [u32; 3],
    /// Bytes of shared memory of a block, static and dynamic together.
    pub shared: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
}

impl Declaration {
    /// Every constant with its value: the given one, or the default.
    ///
    /// # Errors
    /// A message that names a constant that the kernel does not have, or a value that is not
    /// allowed.
    pub fn resolve(&self, said: &Constants) -> Result<Constants, String> {
        constants::resolve(self.constants, said)
    }

    /// All combinations of its constants' values.
    pub fn specialisations(&self) -> Vec<Constants> {
        constants::specialisations(self.constants)
    }

    /// Checks a launch against the declaration and the device's limits. The error names the part of
    /// the launch, its value and the limit.
    pub(crate) fn check(&self, config: &LaunchConfig, limits: &Limits) -> Result<(), String> {
        let LaunchConfig { grid, block, dynamic_shared, cluster, constants } = *config;
        self.resolve(&constants)?;
        if let Some(declared) = self.block
            && declared != block
        {
            return Err(format!("block = {block:?}: the kernel declares {declared:?}"));
        }
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            for (what, value, limit) in [
                ("block", block[axis], limits.block[axis]),
                ("grid", grid[axis], limits.grid[axis]),
            ] {
                if !(1..=limit).contains(&value) {
                    return Err(format!("{what}.{name} = {value}: must be 1 to {limit}"));
                }
            }
        }
        if config.threads() > limits.block_threads.into() {
            let (threads, limit) = (config.threads(), limits.block_threads);
            return Err(format!("block = {block:?} has {threads} threads: at most {limit}"));
        }
        if let Some(declared) = self.dynamic_shared
            && declared > dynamic_shared
        {
            return Err(format!(
                "dynamic shared memory = {dynamic_shared} bytes: the kernel needs {declared}"
            ));
        }
        let shared = self.shared.unwrap_or(0) as u64 + u64::from(dynamic_shared);
        if shared > limits.shared.into() {
            return Err(format!(
                "shared memory = {shared} bytes ({} static, {dynamic_shared} dynamic): at most {}",
                shared - u64::from(dynamic_shared),
                limits.shared
            ));
        }
        if let Some(declared) = self.cluster
            && cluster != [1; 3]
            && cluster != declared
        {
            return Err(format!("cluster = {cluster:?}: the kernel declares {declared:?}"));
        }
        let cluster = self.cluster.unwrap_or(cluster);
        let blocks = cluster.iter().fold(1u64, |n, &d| n.saturating_mul(d.into()));
        if !(1..=u64::from(limits.cluster)).contains(&blocks) {
            let limit = limits.cluster;
            return Err(format!("cluster = {cluster:?} has {blocks} blocks: must be 1 to {limit}"));
        }
        if let Some(axis) = (0..3).find(|&axis| !grid[axis].is_multiple_of(cluster[axis])) {
            return Err(format!(
                "grid = {grid:?}: axis {axis} is no multiple of cluster {cluster:?}"
            ));
        }
        Ok(())
    }
}
