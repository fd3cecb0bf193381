//! Specialisation constants in PTX: finds their uses and writes values there.
//!
//! A comment marks each use of a constant. After it follows a number, a word of an instruction with
//! its dot, or a register with the word as its name:
//!
//! ```text
//!   mov.u32 %r7, /* simt.constant a_mn_major */ 0;
//!   cvt.rn/* simt.constant half */.bf16x2.f32 %r1, %r2, %r3;
//!   mov.f32 %f1, /* simt.constant half */ bf16;
//! ```
//!
//! Another comment marks a number that a function takes, by the constant's value: here that of
//! `smooth_2`, if the value is 2. Its instructions are written in place of the line, because ptxas
//! does not inline functions.
//!
//! ```text
//!   mov.b32 %r5, /* simt.function smooth */ %r6;
//! ```
//!
//! The text is valid PTX as it is. The kernel's declaration has the allowed values of a constant;
//! the caller checks them.

use std::ops::Range;

/// The beginning of a mark, up to the constant's name, and its end.
const MARK: &str = "/* simt.constant ";
const END: &str = " */";

/// The beginning of the mark of a number that a function takes.
const FUNCTION: &str = "/* simt.function ";

/// A use of a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The constant's name.
    pub constant: &'a str,
    /// The text there.
    pub value: &'a str,
    /// The byte range of that text.
    pub range: Range<usize>,
}

/// The uses of constants in a text, in order.
pub fn places(text: &str) -> impl Iterator<Item = Place<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let name = from + text[from..].find(MARK)? + MARK.len();
        let end = name + text[name..].find(END)?;
        let behind = end + END.len();
        let value = behind + text[behind..].find(|c| c != ' ' && c != '.')?;
        let length = text[value..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let range = value..length.map_or(text.len(), |length| value + length);
        from = range.end;
        Some(Place { constant: &text[name..end], value: &text[range.clone()], range })
    })
}

/// The text with these values. A word that is longer than the constant's default, as `bf16x2` for
/// `bf16`, keeps its suffix.
pub fn specialise(text: &str, constants: &[Constant]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for Place { constant, value, range } in places(text) {
        let Some(known) = constants.iter().find(|known| known.name == constant) else { continue };
        let rest = value.strip_prefix(&known.default).unwrap_or_default();
        result += &text[done..range.start];
        result += &known.value;
        result += rest;
        done = range.end;
    }
    inlined(result + &text[done..], constants)
}

/// The constants that choose a function somewhere in a text, in order, with the places of their
/// marks.
pub fn functions(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.match_indices(FUNCTION).filter_map(|(at, mark)| {
        let name = &text[at + mark.len()..];
        Some((&name[..name.find(END)?], at))
    })
}

/// The name of the function that a constant's value chooses.
pub fn function_name(constant: &str, value: &str) -> String {
    format!("{constant}_{value}")
}

/// The text with the chosen functions' instructions in place of the marked lines. Where there is no
/// function of that name, the number stays as it is.
fn inlined(text: String, constants: &[Constant]) -> String {
    let bodies = constants.iter().filter(|constant| constant.value != constant.default);
    let bodies = bodies.filter_map(|constant| {
        let name = function_name(&constant.name, &constant.value);
        Some((format!("{FUNCTION}{}{END} ", constant.name), body(&text, &name)?))
    });
    let bodies = bodies.collect::<Vec<_>>();
    if bodies.is_empty() {
        return text;
    }
    let with_body = |line: &str| {
        let (mark, body) = bodies.iter().find(|(mark, _)| line.contains(mark.as_str()))?;
        let (before, source) = line.split_once(mark.as_str())?;
        let to = before.trim().strip_prefix("mov.b32 ")?.trim().strip_suffix(',')?;
        let source = source.trim().strip_suffix(';')?;
        Some(body.replace(RESULT, to).replace(ARGUMENT, source))
    };
    let mut result = String::with_capacity(text.len() * 2);
    for line in text.split_inclusive('\n') {
        match with_body(line) {
            Some(body) => result += &body,
            None => result += line,
        }
    }
    result
}

/// What stands for the argument and the result in a [body].
const ARGUMENT: &str = "{argument}";
const RESULT: &str = "{result}";

/// The instructions of a function of a number, as a block with registers of its own.
fn body(text: &str, name: &str) -> Option<String> {
    let head = text.find(&format!(" {name}("))?;
    let (_, code) = text[head..].split_once("\n{\n")?;
    let (code, _) = code.split_once("\n}\n")?;
    let parameter = format!("[{name}_param_0]");
    let mut result = "\t{\n".to_owned();
    for line in code.lines().map(str::trim) {
        // Other names than those of the registers around it.
        let line = line.replace('%', "%of_function_");
        if line == "ret;" {
            continue;
        }
        let operands = line.split_once(' ').map(|(_, operands)| operands);
        let line = match operands.and_then(|of| of.strip_suffix(';')?.split_once(", ")) {
            Some((to, from)) if from == parameter => format!("mov.b32 {to}, {ARGUMENT};"),
            Some((_, from)) if line.starts_with("st.param") => format!("mov.b32 {RESULT}, {from};"),
            _ => line,
        };
        result += &format!("\t{line}\n");
    }
    Some(result + "\t}\n")
}

/// A value to be written for a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its default, which is in the text.
    pub default: String,
    /// The value to be written.
    pub value: String,
}

/// The default name of a kernel's specialisation, which is the name of its entry point in PTX.
pub fn name(kernel: &str, constants: &[Constant]) -> String {
    let parts = constants.iter().map(|one| format!("__{}_{}", one.name, one.value));
    format!("{kernel}{}", parts.collect::<String>())
}

/// A kernel's text, from the line of its entry point on, with another name for the entry point and
/// its parameters.
pub fn rename(text: &str, from: &str, to: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (start, _) in text.match_indices(from) {
        let (before, after) = (&text[..start], &text[start + from.len()..]);
        let is_longer = |rest: &str| rest.starts_with(is_part) && !rest.starts_with("_param_");
        // The kernel's declaration is kept.
        if before.ends_with(is_part) || is_longer(after) || before.ends_with("name=") {
            continue;
        }
        result += &text[done..start];
        result += to;
        done = start + from.len();
    }
    result + &text[done..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
.visible .entry wide(
	.param .u64 wide_param_0
)
{
	// simt.kernel name=wide constants=major:0|1,half:bf16|f16 params=in.half
	mov.u32 %r1, /* simt.constant major */ 0;
	ld.param.b64 	%rd1, [wide_param_0];
	wgmma.f32/* simt.constant half */.bf16/* simt.constant half */.bf16 {%f1}, %rd1, 1, /* simt.constant major */ 0;
	cvt.rn/* simt.constant half */.bf16x2.f32 %r2, %f1, %f1; // wider, not wide2
	mov.f32 %f2, /* simt.constant half */ bf16;
}
";

    fn constant(name: &str, default: &str, value: &str) -> Constant {
        Constant { name: name.into(), default: default.into(), value: value.into() }
    }

    #[test]
    fn places_are_found_in_order() {
        let found = places(TEXT).map(|place| (place.constant, place.value)).collect::<Vec<_>>();
        let half = ("half", "bf16");
        let all = [("major", "0"), half, half, ("major", "0"), ("half", "bf16x2"), half];
        assert_eq!(found, all);
        assert_eq!(places("/* simt.constant open").count(), 0);
        assert_eq!(
            places("/* simt.constant last */ 1").map(|p| p.value).collect::<Vec<_>>(),
            ["1"]
        );
    }

    #[test]
    fn values_take_the_places_and_nothing_else_changes() {
        let text =
            specialise(TEXT, &[constant("major", "0", "1"), constant("half", "bf16", "f16")]);
        let wanted = TEXT
            .replace("major */ 0", "major */ 1")
            .replace("half */.bf16", "half */.f16")
            .replace("half */ bf16", "half */ f16");
        assert_eq!(text, wanted);
        assert!(text.contains("half */.f16x2.f32"), "{text}");
        assert_eq!(specialise(TEXT, &[constant("other", "0", "1")]), TEXT);
        assert_eq!(specialise(TEXT, &[]), TEXT);
    }

    #[test]
    fn a_chosen_function_stands_where_its_number_is_marked() {
        let text = "\
.visible .func  (.param .b32 func_retval0) smooth_2(
	.param .b32 smooth_2_param_0
)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [smooth_2_param_0];
	fma.rn.f32 %r2, %r1, %r1, 0f3F800000;
	st.param.b32 [func_retval0], %r2;
	ret;
}
.visible .entry k()
{
	mov.b32 %r1, /* simt.function smooth */ %r2;
	// begin inline asm
	mov.b32 %r7, /* simt.function other */ %r8;
	ret;
}
";
        assert_eq!(functions(text).map(|(name, _)| name).collect::<Vec<_>>(), ["smooth", "other"]);
        for value in ["0", "3"] {
            assert_eq!(specialise(text, &[constant("smooth", "0", value)]), text, "no function");
        }
        let wanted = "\t{
	.reg .b32 %of_function_r<3>;
	mov.b32 %of_function_r1, %r2;
	fma.rn.f32 %of_function_r2, %of_function_r1, %of_function_r1, 0f3F800000;
	mov.b32 %r1, %of_function_r2;
	}
";
        let marked = "\tmov.b32 %r1, /* simt.function smooth */ %r2;\n";
        let found = specialise(text, &[constant("smooth", "0", "2")]);
        assert_eq!(found, text.replace(marked, wanted));
    }

    #[test]
    fn an_entry_is_renamed_with_its_parameters() {
        let name = name("wide", &[constant("major", "0", "1"), constant("half", "bf16", "f16")]);
        assert_eq!(name, "wide__major_1__half_f16");
        let text = rename(TEXT, "wide", &name);
        let lines = text.lines().collect::<Vec<_>>();
        assert_eq!(lines[0], ".visible .entry wide__major_1__half_f16(");
        assert_eq!(lines[1], "\t.param .u64 wide__major_1__half_f16_param_0");
        assert!(lines[6].contains("[wide__major_1__half_f16_param_0]"), "{}", lines[6]);
        // Neither what it says of itself nor other words.
        assert_eq!(lines[4], TEXT.lines().nth(4).unwrap());
        assert_eq!(lines[8], TEXT.lines().nth(8).unwrap());
    }
}
