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
//! The text is valid PTX as it is. The kernel's declaration has the allowed values of a constant;
//! the caller checks them.

use std::ops::Range;

/// The beginning of a mark, up to the constant's name, and its end.
const MARK: &str = "/* simt.constant ";
const END: &str = " */";

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
    result + &text[done..]
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
