//! The assembler's report on each kernel, and its errors.

/// A kernel's resources, as the assembler reports them.
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
    /// Barriers of a block: how many of the sixteen are used, not how many instructions there are.
    pub barriers: u64,
    /// Its instructions. `None` if the machine code was not read.
    pub instructions: Option<u64>,
    /// A digest of its machine code. `None` if that was not read.
    pub digest: Option<u64>,
}

/// The start of the line with the number of a kernel's instructions and their digest, after the
/// assembler's output.
pub(super) const MACHINE_CODE: &str = "machine code of ";

/// Parses the output of `ptxas -v` for each kernel.
pub(super) fn usages(said: &str) -> Vec<Usage> {
    let mut usages: Vec<Usage> = Vec::new();
    for line in said.lines() {
        if let Some(rest) = line.strip_prefix(MACHINE_CODE) {
            let words = rest.split(' ').collect::<Vec<_>>();
            if let [kernel, count, digest] = words[..]
                && let Some(usage) = usages.iter_mut().find(|usage| usage.kernel == kernel)
            {
                usage.instructions = count.parse().ok();
                usage.digest = u64::from_str_radix(digest, 16).ok();
            }
            continue;
        }
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
                // Called functions have a stack of their own, on top of the kernel's.
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

pub(super) fn usage_problems(usage: &Usage, shared: std::ops::RangeInclusive<u64>) -> Vec<String> {
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

/// The warnings, and the advisory messages C75xx: each says that an instruction was ignored or made
/// slow.
pub(super) fn warnings(said: &str) -> Vec<String> {
    let is_warning = |line: &&str| {
        line.contains("warning") || line.contains("(C75") || line.contains("Performance Loss")
    };
    // Spills and stacks are reported with their numbers, from each kernel's resources.
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
        assert_eq!(wide.instructions, None);
        let tiled16 = Usage {
            kernel: "tiled16".into(),
            registers: 46,
            shared: 2048,
            barriers: 1,
            ..Usage::default()
        };
        assert_eq!(tiled, tiled16);
        let with =
            format!("{GOOD}\nmachine code of tiled16 90 1f\n\nmachine code of wide 7000 2\n");
        let read = usages(&with).into_iter().map(|usage| (usage.instructions, usage.digest));
        assert_eq!(read.collect::<Vec<_>>(), [(Some(7000), Some(2)), (Some(90), Some(31))]);
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
