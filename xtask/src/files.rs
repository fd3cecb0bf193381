//! PTX as it is kept: a file a kernel, without what changes though the code does not.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::builder::Ptx;

impl Ptx {
    /// The text as files of a kernel each, by the kernel's name. Those that use variables are one, [`VARIABLES`]: a module has
    /// its own.
    pub fn files(&self) -> BTreeMap<String, String> {
        let others = &self.module.others;
        let variables = [&self.module.constant, &self.module.global]
            .map(|arrays| arrays.iter().map(|array| array.name.as_str()).collect::<Vec<_>>());
        let mut files = BTreeMap::<String, (BTreeSet<usize>, Vec<&str>)>::new();
        for kernel in self.module.kernels() {
            let text = &self.text[kernel.text.clone()];
            // What it names, and what that names.
            let (mut needed, mut look) = (BTreeSet::new(), vec![text]);
            while let Some(text) = look.pop() {
                let names = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_$".contains(c)));
                let names = names.collect::<HashSet<_>>();
                for (number, other) in others.iter().enumerate() {
                    if names.contains(other.name.as_str()) && needed.insert(number) {
                        look.push(&self.text[other.text.clone()]);
                    }
                }
            }
            let is_variable = |number: &usize| {
                variables.iter().flatten().any(|name| *name == others[*number].name)
            };
            let file = match needed.iter().any(is_variable) {
                true => VARIABLES,
                false => &kernel.name,
            };
            let (of_file, kernels) = files.entry(file.to_owned()).or_default();
            of_file.extend(needed);
            kernels.push(text);
        }
        let first = self.module.others.iter().map(|other| other.text.start);
        let first = first.chain(self.module.kernels().map(|kernel| kernel.text.start)).min();
        let head = self.text[..first.unwrap_or(self.text.len())].trim_end();
        let text = |(name, (needed, kernels)): (String, (BTreeSet<usize>, Vec<&str>))| {
            let others = needed.into_iter().map(|number| &self.text[others[number].text.clone()]);
            let parts = [head].into_iter().chain(others).chain(kernels);
            (name, parts.map(|part| format!("{}\n", part.trim_end())).collect())
        };
        files.into_iter().map(text).collect()
    }
}

/// The file of the kernels that use variables.
pub(crate) const VARIABLES: &str = "variables";

/// The compiler's text without its comments and empty lines, and with labels numbered within their function: what is left changes
/// where the code does.
pub(crate) fn plain(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    for line in raw.split_inclusive('\n') {
        let (code, end) = match line.strip_suffix('\n') {
            Some(code) => (without_comments(code), "\n"),
            None => (without_comments(line), ""),
        };
        let code = code.trim_end();
        if !code.is_empty() {
            text += &short_labels(&code.replace(" \t", " "));
            text += end;
        }
    }
    text
}

/// A line without comments, but for those of `simt`.
fn without_comments(line: &str) -> String {
    let mut code = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest
        .match_indices('/')
        .map(|(at, _)| at)
        .find(|at| matches!(rest.as_bytes().get(at + 1), Some(b'/' | b'*')))
    {
        let (before, comment) = rest.split_at(start);
        code += before;
        let is_ours = comment[2..].trim_start().starts_with("simt.");
        let end = match comment.starts_with("//") {
            true => comment.len(),
            false => comment.find("*/").map_or(comment.len(), |end| end + 2),
        };
        if is_ours {
            code += &comment[..end];
        }
        rest = &comment[end..];
    }
    code + rest
}

/// `$L__BB12_3` is the twelfth function's: `$L_3` in its own.
fn short_labels(line: &str) -> String {
    const LABEL: &str = "$L__BB";
    let mut parts = line.split(LABEL);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += "$L";
        text += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builder::Target, ptx::Module};

    #[test]
    fn only_what_changes_with_the_code_is_kept() {
        let raw = "\t// begin inline asm\n\tmov.u32 \t%r1, /* simt.constant a */ 0; // a register\n\
                   \n\t/* %r1 */\n$L__BB12_3:                 // %for.body\n\t@%p1 bra \t$L__BB12_3;\n\
                   \t// simt.kernel name=k constants=a:0|1 params=\n\tcvt.f32/* simt.constant half */.bf16 %f1, %rs1;";
        let wanted = "\tmov.u32 %r1, /* simt.constant a */ 0;\n$L_3:\n\t@%p1 bra $L_3;\n\
                      \t// simt.kernel name=k constants=a:0|1 params=\n\tcvt.f32/* simt.constant half */.bf16 %f1, %rs1;";
        assert_eq!(plain(raw), wanted);
    }

    #[test]
    fn a_file_has_a_kernel_and_what_that_needs() {
        let raw = "\
.version 8.3
.target sm_90a
.address_size 64
.func panics
(
	.param .b64 panics_param_0
)
.noreturn;
.visible .global .align 4 .b8 COUNT[4];
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry first()
{
	// simt.kernel name=first params=
	mov.u32 %r1, dynamic;
	call panics, (0);
	ret;
}
.visible .entry second()
{
	// simt.kernel name=second params=
	st.global.u32 [COUNT], %r1;
	ret;
}
.visible .entry third()
{
	// simt.kernel name=third params=
	ret;
}
.visible .entry fourth()
{
	// simt.kernel name=fourth params=
	ld.global.u32 %r1, [COUNT];
	ret;
}
.func fails()
{
	trap;
}
.func panics(
	.param .b64 panics_param_0
)
.noreturn
{
	call fails, ();
}
";
        let ptx = Ptx::finish(raw, Target::SM_90A, "rustc 1").unwrap();
        let files = ptx.files();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["first", "third", VARIABLES]);
        let has = |file: &str, parts: [bool; 3]| {
            let text = &files[file];
            assert!(
                text.starts_with("// Generated by") && text.contains("\n.version 8.3\n"),
                "{text}"
            );
            for (part, is_there) in ["dynamic[]", "trap;", "COUNT[4]"].into_iter().zip(parts) {
                assert_eq!(text.contains(part), is_there, "{part}: {text}");
            }
            Module::parse(text)
                .unwrap()
                .kernels()
                .map(|kernel| kernel.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(has("first", [true, true, false]), ["first"]);
        assert_eq!(has("third", [false, false, false]), ["third"]);
        assert_eq!(has(VARIABLES, [false, false, true]), ["second", "fourth"]);
        // A function is declared before the kernel that calls it, and defined.
        assert_eq!(files["first"].matches(".func panics").count(), 2);
        let fewer = ptx.without(|kernel| kernel != "third").unwrap();
        assert_eq!(fewer.files().keys().collect::<Vec<_>>(), ["third"]);
    }
}
