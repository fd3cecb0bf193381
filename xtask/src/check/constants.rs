//! The rules about constants, whose values the host writes when it loads a kernel.

use super::Kernel;
use crate::{declaration::Declaration, ptx::Statement};

impl Kernel<'_> {
    /// Those that a kernel breaks.
    pub(super) fn constant_problems(&self, declaration: &Declaration) -> Vec<String> {
        let mut problems = Vec::new();
        let places = || self.reached.iter().flat_map(|function| &function.constants);
        for (name, value) in places() {
            let declared = declaration.constants.iter().find(|(known, _)| known == name);
            match declared {
                None => problems.push(format!(
                    "an instruction is told by the constant `{name}`, which is not declared: add it to \
                     `constants(..)`"
                )),
                Some((_, values)) if !value.starts_with(&values[0]) => problems.push(format!(
                    "`{value}` stands in a place of the constant `{name}`, whose first value is `{}`: \
                     the code is valid as it stands where that is so",
                    values[0]
                )),
                Some(_) => {}
            }
        }
        for (name, _) in &declaration.constants {
            if !places().any(|(place, _)| place == name) {
                problems.push(format!(
                    "it declares the constant `{name}`, by which no instruction is told: take it out"
                ));
            }
        }
        problems.sort();
        problems.dedup();
        // Each specialisation is a module of its own, and would have variables of its own.
        let variables = self.module.constant.iter().chain(&self.module.global);
        let names = || self.reached.iter().flat_map(|f| &f.body).flat_map(Statement::names);
        let used =
            variables.map(|array| &array.name).find(|name| names().any(|word| word == *name));
        if let (Some(name), false) = (used, declaration.constants.is_empty()) {
            problems.push(format!(
                "it has constants and uses the variable `{name}`: kernels that share variables are \
                 loaded together, as they are"
            ));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{breaks, changed, problems};

    #[test]
    fn constants_are_declared_used_and_as_they_stand() {
        let with = |declared: &str, code: &str| {
            changed("params=", &format!("{declared}params="))
                .replace("bar.warp.sync 	-1;", &format!("bar.warp.sync 	-1; {code}"))
        };
        let place = "mov.u32 %r9, /* simt.constant a */ 0;";
        assert_eq!(problems(&with("constants=a:0|1 ", place)), Vec::<String>::new());
        breaks(&with("", place), "constant `a`, which is not declared");
        breaks(&with("constants=a:0|1 ", ""), "by which no instruction is told");
        breaks(&with("constants=a:1|0 ", place), "whose first value is `1`");
        let word = "cvt.rn/* simt.constant half */.bf16x2.f32 %r1, %r2, %r3;";
        assert_eq!(problems(&with("constants=half:bf16|f16 ", word)), Vec::<String>::new());
        let with_variable = with("constants=a:0|1 ", place)
            .replace("st.global.b32 	[%rd1], %r4;", "st.global.b32 [COUNT], %r4;")
            .replace(
                ".address_size 64",
                ".address_size 64\n.visible .global .align 4 .b8 COUNT[4];",
            );
        breaks(&with_variable, "has constants and uses the variable `COUNT`");
    }
}
