//! A file of many kernels, one at a time: the driver's compiler takes seconds for all of them.

use simt::{Constants, Declaration};

use super::{Index, values};


/// PTX without the kernels but this: what the driver has to compile for it.
pub(crate) fn for_kernel(ptx: &Index, kernel: &str) -> String {
    without_dynamic_shared(with_kernels(ptx, |name, _| name == kernel))
}

/// [`for_kernel`] with its constants set, and the name that it has there.
pub(crate) fn specialised(
    ptx: &Index,
    declaration: &Declaration,
    constants: &Constants,
) -> (String, &'static str) {
    let (kernel, text) = (declaration.name, for_kernel(ptx, declaration.name));
    match values(declaration, constants) {
        None => (text, kernel),
        Some(values) if values.is_empty() => (text, kernel),
        Some(values) => {
            let text = specialise::specialise(&text, &values);
            // (A name for each that is loaded, of which a process has few.)
            let unnamed = || String::leak(specialise::name(kernel, &values));
            let name = constants.variant().unwrap_or_else(|| unnamed());
            (specialise::rename(&text, kernel, name), name)
        }
    }
}

/// PTX without the declaration of dynamic shared memory, where no kernel has any: its alignment would be that of every
/// kernel's shared memory.
fn without_dynamic_shared(ptx: String) -> String {
    let declaration = |line: &&str| line.starts_with(".extern .shared ");
    let Some(line) = ptx.lines().find(declaration) else { return ptx };
    let name = line.split_whitespace().last().and_then(|word| word.split('[').next());
    // There, and elsewhere.
    match name.is_some_and(|name| ptx.match_indices(name).nth(1).is_some()) {
        true => ptx,
        false => ptx.replacen(line, "", 1),
    }
}

/// PTX with the variables, and without the kernels but those that use them: those share them, so they are compiled
/// together.
pub(crate) fn with_variables(ptx: &Index) -> String {
    let variables = variables(ptx);
    with_kernels(ptx, |_, text| uses(text, &variables))
}

/// Does a kernel use a variable of the file?
pub(crate) fn shares_variables(ptx: &Index, kernel: &str) -> bool {
    let variables = variables(ptx);
    ptx.kernels().any(|(name, text)| name == kernel && uses(text, &variables))
}

/// PTX without the kernels but those that are to stay, by name or text.
fn with_kernels(ptx: &Index, stays: impl Fn(&str, &str) -> bool) -> String {
    let mut result = String::new();
    for (outside, kernel) in ptx.outside().zip(ptx.kernels().map(Some).chain([None])) {
        result += outside;
        if let Some((name, text)) = kernel
            && stays(name, text)
        {
            result += text;
        }
    }
    result
}

/// The names of a file's variables.
fn variables<'a>(ptx: &Index<'a>) -> Vec<&'a str> {
    ptx.outside().flat_map(str::lines).filter_map(variable).collect()
}

fn uses(text: &str, variables: &[&str]) -> bool {
    variables.iter().any(|variable| has_word(text, variable))
}

/// The name of the variable that a line of a file declares.
fn variable(line: &str) -> Option<&str> {
    let words = line.split_whitespace().collect::<Vec<_>>();
    let of_file = words.iter().any(|word| matches!(*word, ".global" | ".const"));
    // `NAME[8];`, `NAME;`, or `NAME = 1;`
    let name = match words.iter().position(|word| *word == "=") {
        Some(equals) => words[..equals].last(),
        None => words.last(),
    };
    if of_file { name?.split(['[', ';']).next() } else { None }
}

/// Does the name stand in the text, and not as a part of another?
fn has_word(text: &str, name: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.match_indices(name).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + name.len()..].chars().next();
        !before.is_some_and(in_name) && !after.is_some_and(in_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::{SM_80, SM_90A, tests::is_in};

    #[test]
    fn a_kernel_is_compiled_without_the_others() {
        fn names<'a>(ptx: &Index<'a>) -> Vec<&'a str> {
            ptx.kernels().map(|(name, _)| name).collect()
        }
        let sharing = ["constant_polynomial", "global_counter", "pointed_negation"];
        for (ptx, arch) in [(SM_80, 80), (SM_90A, 90)] {
            let index = ptx.index();
            let all = names(index);
            let there = |design: &&gpu::registry::Design| is_in(design.declaration(), arch);
            assert_eq!(all.len(), gpu::registry::DESIGNS.iter().filter(there).count());
            assert_eq!(names(&Index::new(&with_variables(index))), sharing);
            let head = ptx.text.split(".visible .entry").next().unwrap();
            let dynamic = head.lines().find(|line| line.starts_with(".extern .shared"));
            let tail = ptx.text.rsplit("\n}\n").next().unwrap();
            for kernel in all {
                let text = for_kernel(index, kernel);
                let only = Index::new(&text);
                assert_eq!(names(&only), [kernel]);
                assert_eq!(only.declaration(kernel), ptx.declaration(kernel));
                assert_eq!(shares_variables(index, kernel), sharing.contains(&kernel));
                // What they all need is there; dynamic shared memory only with those that have some.
                let has_it = text[head.len() / 2..].contains("simt_dynamic_shared;");
                let head = match dynamic {
                    Some(line) if !has_it => head.replace(line, ""),
                    _ => head.to_owned(),
                };
                assert!(text.starts_with(&head), "{kernel}");
                let mut designs = gpu::registry::DESIGNS.iter().map(|design| design.declaration());
                let declaration = designs.find(|declaration| declaration.name == kernel).unwrap();
                assert_eq!(has_it, declaration.dynamic_shared.is_some(), "{kernel}");
                assert!(text.ends_with(tail), "{kernel}");
            }
        }
    }
}
