//! The text of one kernel: taken from a text with many, and with its constants set.

use simt::{Constants, Declaration};

use super::{Index, values};

/// The PTX without all other kernels.
pub(crate) fn for_kernel(ptx: &Index, kernel: &str) -> String {
    without_dynamic_shared(with_kernels(ptx, |name| name == kernel))
}

/// A kernel's text with its constants set, and its name in that text.
pub(crate) fn specialised(
    text: String,
    declaration: &Declaration,
    constants: &Constants,
) -> (String, &'static str) {
    let kernel = declaration.name;
    match values(declaration, constants) {
        Some(values) if !values.is_empty() => {
            let text = specialise::specialise(&text, &values);
            // (The name is leaked. A process loads few kernels.)
            let unnamed = || String::leak(specialise::name(kernel, &values));
            let name = constants.variant().unwrap_or_else(|| unnamed());
            (specialise::rename(&text, kernel, name), name)
        }
        _ => (text, kernel),
    }
}

/// The PTX without the declaration of dynamic shared memory, if no kernel uses it. Its alignment
/// would hold for every kernel's shared memory.
fn without_dynamic_shared(ptx: String) -> String {
    let declaration = |line: &&str| line.starts_with(".extern .shared ");
    let Some(line) = ptx.lines().find(declaration) else { return ptx };
    let name = line.split_whitespace().last().and_then(|word| word.split('[').next());
    // A second match is a use.
    match name.is_some_and(|name| ptx.match_indices(name).nth(1).is_some()) {
        true => ptx,
        false => ptx.replacen(line, "", 1),
    }
}

/// The PTX with those kernels only for which `stays` holds.
fn with_kernels(ptx: &Index, stays: impl Fn(&str) -> bool) -> String {
    let mut result = String::new();
    for (outside, kernel) in ptx.outside().zip(ptx.kernels().map(Some).chain([None])) {
        result += outside;
        if let Some((name, text)) = kernel
            && stays(name)
        {
            result += text;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::SM_90A;

    #[test]
    fn of_a_file_of_many_one_stays() {
        let text = "// head\n.extern .shared .align 16 .b8 dynamic[];\n\
                    .visible .entry one(\n)\n{\n\tret;\n}\n\
                    .visible .entry two(\n)\n{\n\tmov.u32 %r1, dynamic;\n}\n// tail\n";
        let index = Index::new(text);
        let one = for_kernel(&index, "one");
        assert_eq!(one, "// head\n\n.visible .entry one(\n)\n{\n\tret;\n}\n// tail\n");
        let two = for_kernel(&index, "two");
        assert!(two.contains(".extern .shared") && !two.contains("entry one"), "{two}");
    }

    #[test]
    fn each_variant_has_its_name_and_its_words() {
        let text_of = |name: &str| {
            let entry = gpu::registry::find(name).unwrap();
            let declaration = entry.declaration();
            let text = SM_90A.text(declaration.name).unwrap();
            specialised(text, declaration, &entry.constants)
        };
        let (nn, name) = text_of("wgmma_bf16_256x256x64_c2_nn");
        assert_eq!(name, "wgmma_bf16_256x256x64_c2_nn");
        assert!(nn.contains(".visible .entry wgmma_bf16_256x256x64_c2_nn("), "the entry");
        let (tt, _) = text_of("wgmma_f16_256x256x64_c2_tt");
        // A row-major, N-major B; and the other way round, of the other type.
        for (text, half, majors) in [(nn, "bf16", [0, 1]), (tt, "f16", [1, 0])] {
            let multiplies = text.lines().filter(|line| line.contains("wgmma.mma_async"));
            let mut count = 0;
            for line in multiplies {
                let [a, b] = majors;
                let end = format!(
                    "kept, 1, 1, /* simt.constant a_mn_major */ {a}, /* simt.constant b_mn_major */ {b};"
                );
                assert!(line.contains(&end), "{line}");
                let types =
                    format!("f32/* simt.constant half */.{half}/* simt.constant half */.{half} ");
                assert!(line.contains(&types), "{line}");
                count += 1;
            }
            assert!(count > 4, "{count}");
        }
        // A kernel without constants is as it is.
        let basic = gpu::registry::find("basic").unwrap().declaration();
        let text = crate::ptx::SM_80.text("basic").unwrap();
        assert_eq!(specialised(text.clone(), basic, &Constants::NONE), (text, "basic"));
    }
}
