//! Messages about unknown names.

mod hint;

pub use hint::hint;

use gpu::registry::{self, Entry, KERNELS, Program, Variant};

/// The most names in a message.
const ROOM: usize = 24;

/// The most names that follow a question.
const FEW: usize = 8;

/// The limit of an unknown name: the names that were probably meant, or the known names. Of very
/// many names only the first are listed, and beside a question none.
pub fn must_be_one_of(name: &str, known: &[&str]) -> String {
    let (first, more) = known.split_at(known.len().min(ROOM));
    let mut all = first.join(", ");
    if !more.is_empty() {
        all += &format!(" and {} more", more.len());
    }
    match hint(name, known) {
        Some(hint) if known.len() > FEW => {
            format!("{hint} It must be one of {} names", known.len())
        }
        Some(hint) => format!("{hint} It must be one of {all}"),
        None => format!("must be one of {all}"),
    }
}

/// As [`must_be_one_of`], for kernels. If the name is that of another kernel, the message says what
/// that kernel is for.
pub fn must_be_a_kernel_of(name: &str, known: &[&str]) -> String {
    match what_it_is(name) {
        None => must_be_one_of(name, known),
        Some(what) => format!("{what}; it {}", must_be_one_of("", known)),
    }
}

/// What the kernel with a name is for, or what runs the program with a name. `None` for an unknown
/// name.
pub fn what_it_is(name: &str) -> Option<String> {
    let by_kernel = registry::find(name);
    let by_program = || {
        let of_it = |entry: &&Entry| entry.program.and_then(Program::name) == Some(name);
        KERNELS.iter().find(of_it)
    };
    let entry = by_kernel.or_else(by_program)?;
    match (&entry.product, entry.program) {
        (Some(product), _) => {
            let Variant { operands, c, .. } = product.variant;
            let of_c = if c == operands { String::new() } else { format!(", C of {c}") };
            Some(format!("is for A and B of {operands}{of_c}"))
        }
        (None, Some(program)) => Some(format!("is a program, and computes no product: {program}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_there_is_not_is_told_what_there_is() {
        let of = |name| must_be_one_of(name, &["gemm_f32_32x32x8", "gemm_f32_64x64x16"]);
        assert_eq!(
            of("gemm_f32_64x64"),
            "did you mean gemm_f32_64x64x16? It must be one of gemm_f32_32x32x8, gemm_f32_64x64x16"
        );
        let of_kernels = |name| must_be_a_kernel_of(name, &["gemm_f32_32x32x8"]);
        assert_eq!(
            of_kernels("gemm_bf16_f32_64x64x16"),
            "is for A and B of bf16, C of f32; it must be one of gemm_f32_32x32x8"
        );
        for (name, run) in [
            ("vec_add", "`cargo run -p host --example vec_add` runs it"),
            ("padded16", "`cargo run -p host --example padding` runs it"),
            // No kernel is called so.
            ("padding", "`cargo run -p host --example padding` runs it"),
            ("blur_shared", "`cargo run -p host -- blur` runs it"),
            ("pack_rows", "a product that needs it launches it"),
        ] {
            let said = of_kernels(name);
            let wanted = format!("is a program, and computes no product: {run}; it must be one of");
            assert!(said.starts_with(&wanted), "{name}: {said}");
        }
        let slip = "did you mean gemm_f32_32x32x8? It must be one of gemm_f32_32x32x8";
        assert_eq!(of_kernels("gemm_f32_32x32"), slip);
        assert_eq!(of("mine"), "must be one of gemm_f32_32x32x8, gemm_f32_64x64x16");
    }

    #[test]
    fn of_very_many_names_some_are_told() {
        let names = (0..ROOM + 1).map(|i| format!("a{i}")).collect::<Vec<_>>();
        let known = names.iter().map(String::as_str).collect::<Vec<_>>();
        let said = must_be_one_of("mine", &known);
        assert!(said.starts_with("must be one of a0, a1, "), "{said}");
        assert!(said.ends_with(", a22, a23 and 1 more"), "{said}");
        assert!(must_be_one_of("mine", &known[1..]).ends_with(", a24"));
        // A question needs no list.
        assert_eq!(must_be_one_of("a244", &known), "did you mean a24? It must be one of 25 names");
    }
}
