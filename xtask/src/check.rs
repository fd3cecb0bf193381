//! Rules for every PTX file. The compiler breaks some of them without a warning: it copies barriers
//! into branches, moves arrays to local memory, and loses the address space of shared pointers.

mod barriers;
mod constant_memory;
mod constants;
mod kernel;

use self::kernel::{Kernel, line};
use crate::{
    declaration::Declaration,
    ptx::{Array, Function, Module, Statement},
    target::Target,
};

/// Every rule that a module breaks: one sentence for each, with the kernel and what to do.
pub fn check(module: &Module, target: &Target) -> Vec<String> {
    let mut problems = target_and_version(module, target);
    problems.extend(constant_memory::constant_memory(module));
    if module.kernels().next().is_none() {
        problems.push("there is no kernel in it: is there a public `#[kernel]` function?".into());
    }
    for kernel in module.kernels() {
        let kernel_problems = Kernel::new(module, kernel).problems(target);
        problems
            .extend(kernel_problems.into_iter().map(|p| format!("kernel `{}`: {p}", kernel.name)));
    }
    problems
}

fn target_and_version(module: &Module, target: &Target) -> Vec<String> {
    let mut problems = Vec::new();
    let (cpu, version) = (target.cpu(), target.ptx_version());
    // If the flags get lost, the build succeeds for an old GPU. So they are compared.
    for (directive, found, asked) in
        [(".target", &module.target, cpu), (".version", &module.version, version.as_str())]
    {
        if found != asked {
            problems.push(format!(
                "{directive} is `{found}`, `{asked}` was asked for: the compiler did not get the flags"
            ));
        }
    }
    problems
}

/// The declaration of a kernel: the one in its body with its own name.
pub fn declaration(kernel: &Function) -> Option<&Declaration> {
    kernel.declarations.iter().map(|(_, d)| d).find(|d| d.name == kernel.name)
}

/// The static shared arrays of a kernel and of the functions that it calls, and its dynamic array.
pub fn shared_arrays(module: &Module, kernel: &Function) -> Vec<Array> {
    Kernel::new(module, kernel).shared
}

/// The block barriers of a kernel and of the functions that it calls.
pub fn barriers(module: &Module, kernel: &Function) -> usize {
    Kernel::new(module, kernel).barriers
}

impl Kernel<'_> {
    fn problems(&self, target: &Target) -> Vec<String> {
        let mut problems = self.code_problems();
        match declaration(self.entry) {
            Some(declaration) => problems.extend(self.declaration_problems(declaration, target)),
            None => problems.push(
                "it declares nothing about itself: make it with `#[kernel]`, which leaves a \
                 `simt.kernel` comment in the body"
                    .into(),
            ),
        }
        for (line, other) in &self.entry.declarations {
            if Some(other) != declaration(self.entry) {
                problems.push(format!(
                    "it contains another kernel's declaration, `{}` (line {line}): a kernel's name and \
                     its entry's must be the same, and no kernel may call another",
                    other.name
                ));
            }
        }
        problems
    }

    /// The rules that need no declaration.
    fn code_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for callee in &self.unknown_callees {
            problems.push(match callee.as_str() {
                "" => {
                    "it calls through a pointer: use a function that the compiler can inline".into()
                }
                name => {
                    format!("it calls `{name}`, which nothing defines: no such code on the GPU")
                }
            });
        }
        for function in &self.reached {
            if let Some(local) = function.body.iter().find(|statement| is_local(statement)) {
                problems.push(format!(
                    "it uses local memory, which is as slow as global ({}): index arrays of a thread \
                     with constants only, in unrolled loops",
                    place(function, local)
                ));
            }
            let generic = function.instructions().find(|instruction| is_generic(instruction));
            if let Some(generic) = generic
                && !self.shared.is_empty()
            {
                problems.push(format!(
                    "a generic access beside shared memory, slower than one whose address space is \
                     known ({}): reach shared memory only through the view that declared it",
                    place(function, generic)
                ));
            }
        }
        let ends = |s: &Statement| matches!(s.opcode().next(), Some("ret" | "exit" | "trap"));
        if !self.entry.instructions().any(ends) {
            problems.push(
                "it never returns: the compiler found undefined behaviour on every path, or an endless \
                 loop"
                    .into(),
            );
        }
        problems
    }

    /// The rules that compare the code with the kernel's declaration.
    fn declaration_problems(&self, declaration: &Declaration, target: &Target) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(declared) = declaration.barriers
            && declared as usize != self.barriers
        {
            problems.push(format!(
                "{0} barriers in the code, {declared} declared: the compiler has copied or removed one \
                 (or the declaration is old); a copy in a branch that not every thread takes deadlocks. If every thread \
                 reaches each copy, as of an unrolled loop, write `barriers = {0}` in `#[kernel(..)]`",
                self.barriers
            ));
        }
        if declaration.params.len() != self.entry.params {
            problems.push(format!(
                "{} parameters in the entry, {} declared ({}): each must pass as one value or one pointer",
                self.entry.params,
                declaration.params.len(),
                declaration.params.join(",")
            ));
        }
        problems.extend(self.constant_problems(declaration));
        problems.extend(self.constants_barriers());
        let bytes: u64 = self.shared.iter().filter_map(|array| array.bytes).sum();
        if let Some(declared) = declaration.shared
            && declared != bytes
        {
            problems.push(format!(
                "{bytes} bytes of static shared memory in the code, {declared} declared: the compiler \
                 has copied or removed an array (or the declaration is old)"
            ));
        }
        if declaration.cluster.is_some() && target.compute_capability() < Some(90) {
            problems.push(format!(
                "it declares a cluster, which {} does not have: keep it out of this build with \
                 `cfg(target_feature = \"sm_90\")`",
                target.cpu()
            ));
        }
        // Its launch lets it start early, so it could read data that is not written yet. Before
        // Hopper none does.
        if declaration.dependent
            && target.compute_capability() >= Some(90)
            && !self.reached.iter().any(|f| f.instructions().any(waits_for_earlier))
        {
            problems.push(
                "it declares `dependent` and never waits for the kernel before it: call \
                 `grid::wait_for_earlier` before it touches global memory"
                    .into(),
            );
        }
        if target.compute_capability() < declaration.arch {
            problems.push(format!(
                "it declares arch={}, and this is the build for {}: keep it out with \
                 `cfg(target_feature = \"sm_90a\")`",
                declaration.arch.unwrap_or_default(),
                target.cpu()
            ));
        }
        for written in [".reqntid", ".maxntid", ".minnctapersm", ".reqnctapercluster"] {
            let directives = [declaration.directives(), self.entry.directives.clone()];
            if directives.iter().all(|text| text.split_whitespace().any(|word| word == written)) {
                problems.push(format!("the compiler has already written {written}: say it once"));
            }
        }
        problems
    }
}

fn place(function: &Function, statement: &Statement) -> String {
    format!("{}: `{}`", line(function, statement), statement.text)
}

/// Whether an instruction waits for earlier kernels.
fn waits_for_earlier(statement: &Statement) -> bool {
    statement.opcode().eq(["griddepcontrol", "wait"])
}

/// Whether a statement declares or uses local memory.
fn is_local(statement: &Statement) -> bool {
    statement.text.starts_with(".local")
        || (is_memory_access(statement) && statement.opcode().any(|part| part == "local"))
}

/// Whether an instruction accesses memory without its address space.
fn is_generic(instruction: &Statement) -> bool {
    const SPACES: [&str; 5] = ["global", "shared", "const", "param", "local"];
    // `shared::cluster` and the like are split further.
    let mut parts = instruction.opcode().map(|part| part.split(':').next().unwrap_or_default());
    is_memory_access(instruction) && !parts.any(|part| SPACES.contains(&part))
}

fn is_memory_access(statement: &Statement) -> bool {
    matches!(statement.opcode().next(), Some("ld" | "ldu" | "st" | "atom" | "red"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that breaks no rule.
    pub(super) const GOOD: &str = r#".version 8.3
.target sm_90a
.address_size 64
.visible .entry good(
	.param .u32 good_param_0,
	.param .u64 .ptr .align 1 good_param_1
)
{
	// simt.kernel name=good block=16,16,1 shared=2048 barriers=2 params=u32,out.f32
	{ .shared .align 16 .b8 s[1024]; mov.u32 %r2, s; }
	{ .shared .align 16 .b8 s[1024]; mov.u32 %r3, s; }
	ld.param.b32 	%r1, [good_param_0];
	st.shared.b32 	[%r2], %r1;
	bar.sync 	0;
	ld.shared.b32 	%r4, [%r3];
	barrier.cta.sync.aligned.all 0;
	bar.warp.sync 	-1;
	st.global.b32 	[%rd1], %r4;
	ret;
}
"#;

    pub(super) fn problems(text: &str) -> Vec<String> {
        check(&Module::parse(text).unwrap(), &Target::SM_90A)
    }

    /// Checks that `text` breaks one rule, with this message.
    pub(super) fn breaks(text: &str, complaint: &str) {
        let problems = problems(text);
        assert_eq!(problems.len(), 1, "{complaint}: {problems:#?}\n{text}");
        assert!(problems[0].contains(complaint), "{}\n{text}", problems[0]);
        if !complaint.starts_with('.') {
            assert!(problems[0].starts_with("kernel `good`"), "{}", problems[0]);
        }
    }

    /// `GOOD` with one place changed.
    pub(super) fn changed(from: &str, to: &str) -> String {
        assert_eq!(GOOD.matches(from).count(), 1, "`{from}` must stand once in the good kernel");
        GOOD.replace(from, to)
    }

    #[test]
    fn a_good_kernel_passes() {
        assert_eq!(problems(GOOD), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_in_one_place() {
        for (before_the_end, complaint) in [
            ("bar.sync 0;", "3 barriers in the code, 2 declared"),
            ("barrier.sync 1;", "3 barriers in the code, 2 declared"),
            ("barrier.cta.sync.aligned.all 0;", "3 barriers in the code, 2 declared"),
            ("bar.red.popc.u32 %r5, 0, %p1;", "3 barriers in the code, 2 declared"),
            (".local .align 8 .b8 \t__local_depot0[32];", "local memory"),
            ("ld.local.b32 %r9, [%rd8];", "line 19: `ld.local.b32"),
            ("@%p1 ld.b32 %r9, [%rd8];", "a generic access beside shared memory"),
            (
                "@%p1 st.v4.b32 [%rd8], {%r1, %r1, %r1, %r1};",
                "a generic access beside shared memory",
            ),
            ("@%p1 atom.add.u32 %r9, [%rd8], 1;", "a generic access beside shared memory"),
            (
                "{ .shared .align 16 .b8 s[1024]; mov.u32 %r7, s; }",
                "3072 bytes of static shared memory in the code, 2048 declared",
            ),
            ("// simt.kernel name=other params=", "another kernel's declaration, `other`"),
            ("call %rd4, (a), prototype_0;", "calls through a pointer"),
        ] {
            breaks(&changed("\tret;", &format!("\t{before_the_end}\n\tret;")), complaint);
        }
        for (from, to, complaint) in [
            ("\tbar.sync \t0;\n", "", "1 barriers in the code, 2 declared"),
            (".target sm_90a", ".target sm_30", ".target is `sm_30`, `sm_90a` was asked for"),
            (".version 8.3", ".version 3.2", ".version is `3.2`, `8.3` was asked for"),
            ("// simt.kernel", "// nothing", "declares nothing about itself"),
            ("params=u32,out.f32", "params=u32", "2 parameters in the entry, 1 declared"),
            ("\t.param .u32 good_param_0,\n", "", "1 parameters in the entry, 2 declared"),
            ("\tret;\n", "", "never returns"),
            ("good_param_1\n)", "good_param_1\n)\n.reqntid 16, 16, 1", "already written .reqntid"),
        ] {
            breaks(&changed(from, to), complaint);
        }
    }

    #[test]
    fn a_barrier_for_some_of_the_warps_is_not_counted() {
        for barrier in ["bar.sync 1, 64", "barrier.cta.arrive.aligned %r5, 64"] {
            let text = changed("\tret;", &format!("\t{barrier};\n\tret;"));
            assert_eq!(problems(&text), Vec::<String>::new(), "{barrier}");
        }
    }

    #[test]
    fn a_barrier_in_a_called_function_counts() {
        let text = changed("\tret;", "\tcall.uni wait, ();\n\tret;");
        breaks(
            &(text + ".func wait()\n{ bar.sync 0; ret; }"),
            "3 barriers in the code, 2 declared",
        );
    }

    #[test]
    fn a_dependent_kernel_that_does_not_wait() {
        let text = changed(" params=", " dependent=true params=");
        breaks(&text, "never waits for the kernel before it");
        let other = text.replace("\tret;", "\tgriddepcontrol.launch_dependents;\n\tret;");
        breaks(&other, "never waits for the kernel before it");
        let waits = text.replace("\tret;", "\tgriddepcontrol.wait;\n\tret;");
        assert_eq!(problems(&waits), Vec::<String>::new());
    }

    #[test]
    fn undeclared_barriers_are_not_compared() {
        assert_eq!(problems(&changed(" barriers=2", "")), Vec::<String>::new());
    }

    #[test]
    fn a_generic_access_beside_dynamic_shared_memory() {
        let text = GOOD.replace("\t{ .shared .align 16 .b8 s[1024]; mov.u32 %r2, s; }\n", "");
        let text = text.replace(
            "\t{ .shared .align 16 .b8 s[1024]; mov.u32 %r3, s; }\n",
            "\tld.b32 %r9, [%rd8];\n",
        );
        let text = text.replace(" shared=2048", "");
        assert_eq!(problems(&text), Vec::<String>::new(), "no shared memory, so generic is fine");
        let text = text.replace("ld.shared.b32 \t%r4, [%r3]", "ld.shared.b32 \t%r4, [pool+16]");
        let text = text
            .replace(".address_size 64", ".address_size 64\n.extern .shared .align 16 .b8 pool[];");
        breaks(&text, "a generic access beside shared memory");
    }

    #[test]
    fn shared_memory_of_the_module_counts_where_it_is_used() {
        let module =
            changed(".address_size 64", ".address_size 64\n.shared .align 4 .b8 pool[512];");
        assert_eq!(problems(&module), Vec::<String>::new());
        let used = module.replace("\tret;", "\tmov.u32 %r7, pool;\n\tret;");
        breaks(&used, "2560 bytes of static shared memory in the code, 2048 declared");
    }

    #[test]
    fn constant_memory_is_read_and_has_an_end() {
        let with = |arrays: &str| {
            changed(".address_size 64", &format!(".address_size 64\n{arrays}"))
                .replace("\tret;", "\tmov.u64 %rd9, table;\n\tld.const.b32 %r9, [%rd9];\n\tret;")
        };
        let half = ".visible .const .align 16 .b8 table[32768];";
        assert_eq!(problems(&with(half)), Vec::<String>::new());
        let full = format!("{half}\n.const .align 4 .f32 other[8192];");
        assert_eq!(problems(&with(&full)), Vec::<String>::new());
        let problems = problems(&with(&format!("{full}\n.const .u8 one;")));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("65537 bytes of constant memory"), "{problems:?}");
    }

    #[test]
    fn another_kernels_declaration() {
        let problems = problems(&changed("name=good", "name=other"));
        assert!(
            problems.iter().any(|p| p.contains("declares nothing about itself")),
            "{problems:?}"
        );
        assert!(problems.iter().any(|p| p.contains("declaration, `other`")), "{problems:?}");
    }

    #[test]
    fn a_declaration_that_is_there_twice_is_one() {
        let line =
            "\t// simt.kernel name=good block=16,16,1 shared=2048 barriers=2 params=u32,out.f32\n";
        assert_eq!(problems(&changed(line, &line.repeat(2))), Vec::<String>::new());
    }

    #[test]
    fn calls_that_lead_nowhere() {
        let text = changed("\tret;", "\tcall.uni (r), vprintf, (a, b);\n\tret;");
        let text = text.replace(
            ".address_size 64",
            ".address_size 64\n.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b)\n;",
        );
        breaks(&text, "calls `vprintf`, which nothing defines");
    }

    #[test]
    fn a_cluster_before_hopper() {
        let text = changed("barriers=2", "barriers=2 cluster=2,1,1");
        assert_eq!(problems(&text), Vec::<String>::new());
        let text = text.replace("sm_90a", "sm_80").replace("8.3", "7.1");
        let problems = check(&Module::parse(&text).unwrap(), &Target::SM_80);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].contains("declares a cluster, which sm_80 does not have"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_file_without_kernels() {
        let problems = problems(".version 8.3\n.target sm_90a\n.address_size 64\n");
        assert!(problems.len() == 1 && problems[0].contains("no kernel"), "{problems:?}");
    }
}
