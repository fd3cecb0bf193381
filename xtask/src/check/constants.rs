//! The rules for constants, whose values the host writes when it loads a kernel.

use std::collections::HashSet;

use super::{Kernel, line};
use crate::{
    declaration::Declaration,
    ptx::{Function, Place, Statement},
};

impl Kernel<'_> {
    /// The rules that a kernel breaks.
    pub(super) fn constant_problems(&self, declaration: &Declaration) -> Vec<String> {
        let mut problems = Vec::new();
        let places = || {
            let reached = self.reached.iter().copied();
            reached.flat_map(|of| of.constants.iter().map(move |place| (of, place)))
        };
        // The first of several places with the same text.
        let mut seen = HashSet::new();
        for (function, Place { constant, value, statement }) in places() {
            if !seen.insert((constant, value)) {
                continue;
            }
            let at = line(function, &function.body[*statement]);
            let declared = declaration.constants.iter().find(|(known, _)| known == constant);
            match declared {
                None => problems.push(format!(
                    "an instruction is told by the constant `{constant}`, which is not declared ({at}): add \
                     it to `constants(..)`"
                )),
                Some((_, values)) if !stands_for(value, values) => problems.push(format!(
                    "`{value}` stands in a place of the constant `{constant}`, whose first value is `{}` \
                     ({at}): the code is valid as it stands where that is so",
                    values[0]
                )),
                Some(_) => {}
            }
        }
        problems.extend(self.chosen_problems(declaration));
        let declared = self.entry.declarations.iter().find(|(_, other)| other == declaration);
        let declared = declared.map(|(line, _)| format!("line {line}")).unwrap_or_default();
        for (name, values) in &declaration.constants {
            if !places().any(|(_, place)| place.constant == *name) {
                problems.push(format!(
                    "it declares the constant `{name}`, by which no instruction is told ({declared}): take it out"
                ));
            } else if is_number(values) && !self.entry_moves(name) {
                problems.push(format!(
                    "no `mov` brings the constant `{name}` to a register ({declared}): that is what `#[kernel]` \
                     writes for a number, and it must not be lost"
                ));
            }
        }
        // Each specialisation is a module of its own, and would have its own variables.
        let variables = self.module.constant.iter().chain(&self.module.global);
        let statements = || self.reached.iter().flat_map(|of| of.body.iter().map(move |s| (of, s)));
        let mut used = variables.filter_map(|array| {
            let uses =
                |(_, statement): &(_, &Statement)| statement.names().any(|word| word == array.name);
            statements().find(uses).map(|at| (&array.name, at))
        });
        if let (Some((name, (function, statement))), false) =
            (used.next(), declaration.constants.is_empty())
        {
            problems.push(format!(
                "it has constants and uses the variable `{name}` ({}): kernels that share variables are \
                 loaded together, as they are",
                line(function, statement)
            ));
        }
        problems
    }

    /// The rules for functions that a constant chooses.
    fn chosen_problems(&self, declaration: &Declaration) -> Vec<String> {
        let mut problems = Vec::new();
        let marks = self.reached.iter().flat_map(|of| of.chosen.iter().map(move |mark| (of, mark)));
        // The first of several marks of a constant.
        let mut seen = HashSet::new();
        for (function, (constant, statement)) in marks {
            if !seen.insert(constant) {
                continue;
            }
            let at = line(function, &function.body[*statement]);
            let declared = declaration.constants.iter().find(|(known, _)| known == constant);
            let Some((_, values)) = declared else {
                problems.push(format!(
                    "a function is chosen by the constant `{constant}`, which is not declared ({at}): add it to \
                     `constants(..)`"
                ));
                continue;
            };
            for name in values[1..].iter().map(|value| specialise::function_name(constant, value)) {
                let can_be_inlined = |of: &Function| {
                    let is_plain = |s: &Statement| s.callee().is_none() && s.predicate.is_empty();
                    let ends = of.instructions().filter(|s| s.text == "ret").count();
                    of.labels.is_empty() && ends == 1 && of.instructions().all(is_plain)
                };
                match self.module.function(&name) {
                    None => problems.push(format!(
                        "a number is given to the function `{name}`, which nothing defines ({at})"
                    )),
                    Some(of) if !can_be_inlined(of) => problems.push(format!(
                        "the function `{name}` has a branch or a call ({at}): it is inlined when the kernel is \
                         loaded, as it stands"
                    )),
                    Some(_) => {}
                }
            }
        }
        problems
    }

    /// Whether its value is moved to a register in the kernel itself. There may be several such
    /// places: each is written when the kernel is loaded.
    fn entry_moves(&self, name: &str) -> bool {
        let places = self.entry.constants.iter().filter(|place| place.constant == name);
        let mut opcodes = places.map(|place| self.entry.body[place.statement].opcode().next());
        opcodes.any(|opcode| opcode == Some("mov"))
    }
}

/// Whether a constant's values are numbers. Otherwise they are words.
fn is_number(values: &[String]) -> bool {
    values.iter().all(|value| value.parse::<u32>().is_ok())
}

/// Whether a text may stand in a constant's place: its first value. After a word more text may
/// follow.
fn stands_for(text: &str, values: &[String]) -> bool {
    match is_number(values) {
        true => text == values[0],
        false => text.starts_with(&values[0]),
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
        breaks(&with("constants=a:0|1 ", ""), "by which no instruction is told (line 9)");
        breaks(&with("constants=a:1|0 ", place), "whose first value is `1`");
        breaks(&with("constants=a:1|0 ", place), "(line 17)");
        let longer = place.replace("*/ 0;", "*/ 0x1;");
        breaks(&with("constants=a:0|1 ", &longer), "`0x1` stands in a place");
        let word = "cvt.rn/* simt.constant half */.bf16x2.f32 %r1, %r2, %r3;";
        assert_eq!(problems(&with("constants=half:bf16|f16 ", word)), Vec::<String>::new());
        let with_variable = with("constants=a:0|1 ", place)
            .replace("st.global.b32 	[%rd1], %r4;", "st.global.b32 [COUNT], %r4;")
            .replace(
                ".address_size 64",
                ".address_size 64\n.visible .global .align 4 .b8 COUNT[4];",
            );
        breaks(&with_variable, "has constants and uses the variable `COUNT` (line 19)");
    }

    #[test]
    fn a_function_is_chosen_by_a_declared_constant_and_can_be_inlined() {
        let mark = "mov.b32 %r1, /* simt.function a */ %r2;";
        let with = |declared: &str, function: &str| {
            let place =
                if declared.is_empty() { "" } else { "mov.u32 %r9, /* simt.constant a */ 0;" };
            let code = format!("{place} {mark}");
            let text = changed("params=", &format!("{declared}params="))
                .replace("bar.warp.sync 	-1;", &format!("bar.warp.sync 	-1; {code}"));
            format!("{text}\n{function}")
        };
        let function = ".func (.param .b32 r) a_1(.param .b32 a_1_param_0)\n{\n\
                        ld.param.b32 %r1, [a_1_param_0];\nst.param.b32 [r], %r1;\nret;\n}\n";
        assert_eq!(problems(&with("constants=a:0|1 ", function)), Vec::<String>::new());
        breaks(
            &with("", function),
            "a function is chosen by the constant `a`, which is not declared",
        );
        breaks(&with("constants=a:0|1 ", ""), "`a_1`, which nothing defines");
        let branches = function.replace("ret;", "@%p1 bra L; L: ret;");
        breaks(&with("constants=a:0|1 ", &branches), "`a_1` has a branch or a call");
    }

    #[test]
    fn a_number_is_moved_to_a_register() {
        let with = |code: &str| {
            changed("params=", "constants=a:0|1 params=")
                .replace("bar.warp.sync 	-1;", &format!("bar.warp.sync 	-1; {code}"))
        };
        let place = "mov.u32 %r9, /* simt.constant a */ 0;";
        assert_eq!(problems(&with(&format!("{place} {place}"))), Vec::<String>::new());
        let lost = with("wgmma.mma_async %f1, %rd1, /* simt.constant a */ 0;");
        breaks(&lost, "no `mov` brings the constant `a` to a register (line 9)");
    }
}
