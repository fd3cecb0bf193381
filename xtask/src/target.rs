//! The GPUs and the versions of PTX that kernels are built for.

/// A generation of GPUs and a version of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    cpu: &'static str,
    ptx: (u32, u32),
}

impl Target {
    /// Ampere, and by the driver's compiler every later GPU.
    pub const SM_80: Target = Target::new("sm_80", (7, 1));
    /// Hopper only, with TMA and `wgmma`.
    pub const SM_90A: Target = Target::new("sm_90a", (8, 3));

    /// A GPU in the form of rustc's `-Ctarget-cpu`, and the PTX version of its instructions.
    pub const fn new(cpu: &'static str, ptx: (u32, u32)) -> Self {
        Target { cpu, ptx }
    }

    /// The GPU: `sm_90a`.
    pub fn cpu(&self) -> &'static str {
        self.cpu
    }

    /// The PTX version: `8.3`.
    pub fn ptx_version(&self) -> String {
        format!("{}.{}", self.ptx.0, self.ptx.1)
    }

    /// The GPU's compute capability without its dot: 90 for `sm_90a`.
    pub fn compute_capability(&self) -> Option<u32> {
        let digits = self.cpu.strip_prefix("sm_")?;
        digits.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    }

    pub(crate) fn rustflags(&self) -> String {
        let (major, minor) = self.ptx;
        // JumpThreading copies barriers into branches that not every thread takes.
        format!(
            "-Ctarget-cpu={} -Ctarget-feature=+ptx{major}{minor} -Zmir-enable-passes=-JumpThreading",
            self.cpu
        )
    }
}
