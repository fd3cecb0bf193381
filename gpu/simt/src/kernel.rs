//! A kernel as the host sees it: what it declares, its parameter types, what a launch must keep to.

use std::fmt;

use crate::{
    Params, Shortfall,
    constants::{self, ConstantDeclaration, Constants},
};

/// A kernel: made by [`kernel`](crate::device::kernel), launched by a device of the host's.
///
/// `P` is the tuple of its parameter types, for example `(u32, u32, u32, In<f32>, In<f32>, Out<f32>)`, so
/// that the compiler checks what a launch passes.
pub struct Kernel<P: 'static> {
    /// What the kernel says of itself.
    pub declaration: Declaration,
    lengths: fn(&P) -> Result<(), Shortfall>,
    pub(crate) thread: ThreadFn<P>,
    /// The same, for a checked launch: what its body does through raw pointers is reported.
    pub(crate) checked: ThreadFn<P>,
}

impl<P> Kernel<P> {
    /// For [`kernel`](crate::device::kernel) alone: a launch has no condition for what these say.
    ///
    /// # Safety
    /// 1. All four are of one kernel: `lengths` refuses buffers that are shorter than the kernel's declaration says, and the functions are its
    ///    body, the tuned ones compiled for processors with AVX2 and FMA.
    #[doc(hidden)]
    pub const unsafe fn new(
        declaration: Declaration,
        lengths: fn(&P) -> Result<(), Shortfall>,
        thread: ThreadFn<P>,
        checked: ThreadFn<P>,
    ) -> Self {
        Kernel { declaration, lengths, thread, checked }
    }

    /// The kernel that a processor without AVX2 runs, for tests.
    ///
    /// # Safety
    /// 1. It is launched as it is: its declaration is not changed.
    #[doc(hidden)]
    pub unsafe fn portable(&self) -> Self {
        let version = |of: &ThreadFn<P>| ThreadFn { portable: of.portable, tuned: of.portable };
        let (thread, checked) = (version(&self.thread), version(&self.checked));
        Kernel { declaration: self.declaration, lengths: self.lengths, thread, checked }
    }
}

// Not derived: a tuple of more than twelve parameters is no `Debug`.
impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Kernel").field("declaration", &self.declaration).finish_non_exhaustive()
    }
}

/// The function that one fiber runs, compiled twice; once for a checked launch, whose time is the checks'.
#[doc(hidden)]
#[derive(Debug)]
pub struct ThreadFn<P: 'static> {
    /// For any processor; a fused multiply-add may be a library call.
    pub portable: unsafe fn(&P),
    /// For processors with the instructions that [`ThreadFn::select`] asks for. Of a checked kernel it is the portable one.
    pub tuned: unsafe fn(&P),
}

impl<P> ThreadFn<P> {
    /// The version for this processor. Both give the same bits: a fused multiply-add is rounded once
    /// in either.
    pub(crate) fn select(&self) -> unsafe fn(&P) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            return self.tuned;
        }
        self.portable
    }
}

/// What a kernel says of itself. `None` where it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Declaration {
    /// The kernel's name, and its entry point's in the PTX.
    pub name: &'static str,
    /// Threads of a block along x, y, z; a launch must use these.
    pub block: Option<[u32; 3]>,
    /// Bytes of its static shared arrays.
    pub shared: Option<usize>,
    /// Barriers in its code (not how often they are reached).
    pub barriers: Option<u32>,
    /// Blocks that must fit on a multiprocessor at once, which caps the registers of a thread.
    pub min_blocks: Option<u32>,
    /// Blocks of a cluster along x, y, z.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory; a launch must give so many.
    pub dynamic_shared: Option<u32>,
    /// The compute capability that it needs, without its dot: 90 for Hopper. Any where it says nothing.
    pub arch: Option<u32>,
    /// The level at which the driver's compiler is to optimise it, 0 to 4; its highest where it says nothing.
    pub opt_level: Option<u32>,
    /// Bytes of a thread's stack on the CPU, where its local arrays need more than usual. (A GPU's driver sees to that by itself.)
    pub stack: Option<usize>,
    /// May it begin before the kernel before it in its stream has ended? Then it calls
    /// [`wait_for_earlier`](crate::device::grid::wait_for_earlier).
    pub dependent: bool,
    /// Its specialisation constants.
    pub constants: &'static [ConstantDeclaration],
    /// Its parameters, in order.
    pub params: &'static [ParamDeclaration],
    /// The file that it stands in, as the compiler was given it.
    pub file: &'static str,
    /// Its line there.
    pub line: u32,
}

impl Declaration {
    #[doc(hidden)]
    #[allow(missing_docs)]
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

    /// The line that the kernel's PTX carries, after `// `: the builder and the host compare it.
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
    /// Its type as the PTX comment has it: `u32`, `in.f32`, `out.f32`.
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
    /// Blocks of a cluster along x, y, z: they run at the same time and reach each other's shared memory. A kernel that
    /// declares its cluster is given that one.
    pub cluster: [u32; 3],
    /// Values of the kernel's [constants](Constants).
    pub constants: Constants,
}

impl LaunchConfig {
    /// A launch without dynamic shared memory and clusters, each constant as its kernel declares it first.
    pub const fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        LaunchConfig { grid, block, dynamic_shared: 0, cluster: [1; 3], constants: Constants::NONE }
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        // Saturating: a grid over the device's limits is refused before anything counts on this.
        self.grid.iter().fold(1u64, |n, &d| n.saturating_mul(d.into()))
    }

    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        self.block.iter().fold(1u64, |n, &d| n.saturating_mul(d.into()))
    }
}

/// What a device allows of a launch.
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

impl<P: Params> Kernel<P> {
    /// Checks a launch against what the kernel declares and what the device allows. The error names the
    /// part of the launch, its value and the limit.
    pub fn check(&self, config: &LaunchConfig, limits: &Limits, params: &P) -> Result<(), String> {
        self.declaration.check(config, limits)?;
        (self.lengths)(params).map_err(|shortfall| shortfall.to_string())
    }
}

impl Declaration {
    /// Every constant with its value: those that were said, else the first ones that it declares.
    ///
    /// # Errors
    /// A sentence that names a constant that it does not have, or a value that it may not have.
    pub fn resolve(&self, said: &Constants) -> Result<Constants, String> {
        constants::resolve(self.constants, said)
    }

    /// The values that its constants may have, each combination.
    pub fn specialisations(&self) -> Vec<Constants> {
        constants::specialisations(self.constants)
    }

    fn check(&self, config: &LaunchConfig, limits: &Limits) -> Result<(), String> {
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
