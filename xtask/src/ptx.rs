//! PTX text, parsed as far as the checks need: entries and functions with their parameters and
//! statements, shared arrays, kernel declarations. Operands stay text.

mod body;
mod declared;
mod statement;

use std::ops::Range;

use anyhow::{Context, Result, bail};

use self::{
    body::Body,
    declared::{array, declared_name},
    statement::line_at,
};
pub use self::{
    declared::Array,
    statement::{Label, Statement},
};
use crate::declaration::{Declaration, MARK};

/// A PTX file.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The value of `.version`: `8.3`.
    pub version: String,
    /// The value of `.target`: `sm_90a`.
    pub target: String,
    /// Entries and functions with a body, in the order of the file.
    pub functions: Vec<Function>,
    /// Shared arrays outside of functions.
    pub shared: Vec<Array>,
    /// Arrays in constant memory.
    pub constant: Vec<Array>,
    /// Variables in global memory.
    pub global: Vec<Array>,
    /// Everything but kernels and the file's header: variables, functions, declarations of either.
    pub others: Vec<Other>,
}

/// A variable, a function, or a declaration of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its name.
    pub name: String,
    /// Its range in the text, to its last `;` or closing brace.
    pub text: Range<usize>,
}

/// A kernel (`.entry`) or a function (`.func`) with its body.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// The number of its `.param`s, without a return value.
    pub params: usize,
    /// Its range in the text, from its first word to its closing brace.
    pub text: Range<usize>,
    /// Byte offset in the text after the parameter list, where directives go.
    pub params_end: usize,
    /// The text between the parameter list and the body: `.reqntid 16, 16, 1`.
    pub directives: String,
    /// Its statements in order.
    pub body: Vec<Statement>,
    /// Its labels in order.
    pub labels: Vec<Label>,
    /// The kernel declarations in the body, and their lines.
    pub declarations: Vec<(usize, Declaration)>,
    /// The places of constants, in order.
    pub constants: Vec<Place>,
    /// The constants that choose a function somewhere, in order, each with the statement there, as
    /// an index into the body.
    pub chosen: Vec<(String, usize)>,
}

/// A place of a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The constant's name.
    pub constant: String,
    /// The value in the text.
    pub value: String,
    /// Its statement, as an index into the body.
    pub statement: usize,
}

impl Module {
    /// Parses a PTX file.
    pub fn parse(text: &str) -> Result<Module> {
        let code = blank_comments(text);
        let mut module = Module::default();
        let mut rest = 0..code.len();
        while let Some(item) = next_item(&code, &mut rest)? {
            let head = code[item.head.clone()].trim();
            if item.body.is_none()
                && let Some(name) = declared_name(head)
            {
                module.others.push(Other { name: name.into(), text: item.head.start..rest.start });
            }
            let place = || format!("line {}", line_at(&code, item.head.start));
            if let Some(version) = head.strip_prefix(".version") {
                module.version = version.trim().into();
            } else if let Some(target) = head.strip_prefix(".target") {
                module.target = target.trim().into();
            } else if let Some(body) = item.body {
                let function =
                    function(text, &code, item.head.clone(), body).with_context(place)?;
                if !function.is_kernel {
                    let (name, text) = (function.name.clone(), function.text.clone());
                    module.others.push(Other { name, text });
                }
                module.functions.push(function);
            } else if let Some(array) = array(head, ".shared") {
                module.shared.push(array);
            } else if let Some(array) = array(head, ".const") {
                module.constant.push(array);
            } else if let Some(array) = array(head, ".global") {
                module.global.push(array);
            }
        }
        Ok(module)
    }

    /// The kernels, in the order of the file.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| function.is_kernel)
    }

    /// The function or kernel with that name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

impl Function {
    /// Its instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Statement> {
        self.body.iter().filter(|statement| statement.is_instruction())
    }
}

/// The text with its comments replaced by spaces, so that offsets and lines stay.
fn blank_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    // (Two separate searches would be quadratic: each would run to the end if its mark does not
    // come again.)
    let comment = |text: &str| {
        let begins = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'/' | b'*'));
        text.match_indices('/').map(|(at, _)| at).find(begins)
    };
    while let Some(start) = comment(rest) {
        let (before, comment) = rest.split_at(start);
        let end = match comment.starts_with("//") {
            true => comment.find('\n'),
            false => comment.find("*/").map(|end| end + 2),
        };
        let (comment, after) = comment.split_at(end.unwrap_or(comment.len()));
        code.push_str(before);
        code.extend(comment.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        rest = after;
    }
    code + rest
}

/// A directive, a variable or a function at the top level.
struct Item {
    head: Range<usize>,
    body: Option<Range<usize>>,
}

/// Takes the next item off `rest`.
fn next_item(code: &str, rest: &mut Range<usize>) -> Result<Option<Item>> {
    let text = &code[rest.clone()];
    let start = rest.start + (text.len() - text.trim_start().len());
    let text = &code[start..];
    if text.is_empty() {
        return Ok(None);
    }
    // These end with their line, all others with `;` or a body.
    const LINES: [&str; 4] = [".version", ".target", ".address_size", ".file"];
    let end = match LINES.iter().any(|line| text.starts_with(line)) {
        true => text.find('\n').unwrap_or(text.len()),
        false => text.find([';', '{']).unwrap_or(text.len()),
    };
    let head = start..start + end;
    let is_function = [".entry", ".func"]
        .iter()
        .any(|word| code[head.clone()].split_whitespace().any(|w| w == *word));
    let brace = code[head.end..].starts_with('{');
    if !brace {
        rest.start = (head.end + 1).min(code.len());
        return Ok(Some(Item { head, body: None }));
    }
    let inside = head.end + 1;
    let length = closing_brace(&code[inside..])
        .with_context(|| format!("line {}: `{{` is never closed", line_at(code, head.end)))?;
    let body = inside..inside + length;
    // A variable's initial value is also in braces, and `;` follows.
    rest.start = body.end + 1;
    if !is_function && let Some(semicolon) = code[rest.start..].find(';') {
        rest.start += semicolon + 1;
    }
    Ok(Some(Item { head, body: is_function.then_some(body) }))
}

/// The offset of the `}` that closes a brace opened just before `text`.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(offset);
        }
    }
    None
}

fn function(text: &str, code: &str, head: Range<usize>, body: Range<usize>) -> Result<Function> {
    let header = &code[head.clone()];
    let is_kernel = header.split_whitespace().any(|word| word == ".entry");
    let keyword = if is_kernel { ".entry" } else { ".func" };
    let after_keyword = header.find(keyword).unwrap_or(0) + keyword.len();
    // A function's result is in parentheses before its name.
    let mut name_start = after_keyword;
    if header[name_start..].trim_start().starts_with('(') {
        name_start += header[name_start..].find(')').context("`(` is never closed")? + 1;
    }
    let name_end = name_start + header[name_start..].find('(').unwrap_or(header.len() - name_start);
    let params_end = match header[name_end..].find(')') {
        Some(close) => name_end + close + 1,
        None => name_end,
    };
    let Some(name) = header[name_start..name_end].split_whitespace().next() else {
        bail!("a function without a name: `{}`", header.trim());
    };
    let mut declarations = Vec::new();
    for (index, line) in text[body.clone()].lines().enumerate() {
        let Some((_, comment)) = line.split_once("//") else { continue };
        if let Some(said) = comment.trim_start().strip_prefix(MARK) {
            let line = line_at(code, body.start) + index;
            let declaration = said
                .parse()
                .with_context(|| format!("kernel `{name}`: its declaration (line {line})"))?;
            declarations.push((line, declaration));
        }
    }
    let Body { statements, labels, starts } = Body::read(code, body.clone());
    let before = |at: usize| starts.partition_point(|start| *start <= body.start + at);
    let place = |place: specialise::Place| Place {
        constant: place.constant.to_owned(),
        value: place.value.to_owned(),
        statement: before(place.range.start) - 1,
    };
    let chosen = specialise::functions(&text[body.clone()]);
    let chosen = chosen.map(|(name, at)| (name.to_owned(), before(at).saturating_sub(1)));
    let constants = specialise::places(&text[body.clone()])
        // (A mark before every statement has no effect.)
        .filter(|place| {
            starts.first().is_some_and(|first| *first <= body.start + place.range.start)
        })
        .map(place)
        .collect();
    Ok(Function {
        name: name.into(),
        is_kernel,
        text: head.start..body.end + 1,
        params: header[name_end..params_end].matches(".param").count(),
        params_end: head.start + params_end,
        directives: header[params_end..].split_whitespace().collect::<Vec<_>>().join(" "),
        body: statements,
        labels,
        declarations,
        constants,
        chosen: chosen.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
// by hand
.version 8.3
.target sm_90a
.address_size 64

.extern .shared .align 1024 .b8 dynamic[];
.global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
.func (.param .b32 result) helper(
	.param .b64 helper_param_0
)
;
	// .globl	tiled    // -- Begin function tiled
.visible .entry tiled(
	.param .u32 tiled_param_0,
	.param .u64 .ptr .align 1 tiled_param_1
)
.maxntid 256
{
	.reg .b32 	%r<8>;
	/* several
	   lines */
	// begin inline asm
	// simt.kernel name=tiled barriers=1 params=u32,in.f32
	// end inline asm
	{ .shared .align 16 .b8 s[1024]; mov.u32 %r2, s; }
	ld.global.v4.b32 	{%r3, %r4, %r5, %r6}, [%rd1];
$L__BB0_1:                              // =>This Loop
	@%p1 bra 	$L__BB0_1;
	call.uni (retval0), helper, (param0);
	bar.sync 	0;
	ret;
}
.func (.param .b32 result) helper(
	.param .b64 helper_param_0
)
{
	ret;
}
"#;

    #[test]
    fn a_file_is_taken_apart() {
        let module = Module::parse(TEXT).unwrap();
        assert_eq!((module.version.as_str(), module.target.as_str()), ("8.3", "sm_90a"));
        assert_eq!(module.shared, [Array { name: "dynamic".into(), bytes: None, align: 1024 }]);
        let names: Vec<_> = module.functions.iter().map(|f| (f.name.as_str(), f.params)).collect();
        assert_eq!(names, [("tiled", 2), ("helper", 1)]);
        let tiled = module.function("tiled").unwrap();
        assert_eq!(tiled.directives, ".maxntid 256");
        assert!(TEXT[..tiled.params_end].ends_with("tiled_param_1\n)"));
        let (line, declaration) = &tiled.declarations[0];
        assert_eq!((*line, declaration.barriers), (24, Some(1)));
        let body: Vec<_> = tiled.instructions().map(|s| (s.line, s.text.as_str())).collect();
        assert_eq!(
            body,
            [
                (26, "mov.u32 %r2, s"),
                (27, "ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd1]"),
                (29, "bra $L__BB0_1"),
                (30, "call.uni (retval0), helper, (param0)"),
                (31, "bar.sync 0"),
                (32, "ret"),
            ]
        );
        assert_eq!(tiled.body[1].shared_array().unwrap().bytes, Some(1024));
        assert!(TEXT[tiled.text.clone()].starts_with(".visible .entry tiled("));
        assert!(TEXT[tiled.text.clone()].ends_with("\tret;\n}"));
    }

    #[test]
    fn labels_are_known_between_their_braces() {
        let text = ".entry k()\n{ mov.u32 a, 1; { @p bra L; bar.sync 0; L: }\n\
                    { L: M: ret; } OUTER: @!p bra OUTER; END: }";
        let module = Module::parse(text).unwrap();
        let kernel = module.function("k").unwrap();
        let labels: Vec<_> =
            kernel.labels.iter().map(|l| (l.name.as_str(), l.statement, l.scope.clone())).collect();
        assert_eq!(
            labels,
            [("L", 3, 1..3), ("L", 3, 3..4), ("M", 3, 3..4), ("OUTER", 4, 0..5), ("END", 5, 0..5)]
        );
        assert_eq!(
            kernel.body[4],
            Statement { line: 3, text: "bra OUTER".into(), predicate: "@!p".into() }
        );
    }

    #[test]
    fn shared_arrays_in_every_spelling() {
        let shared_array = |text| array(text, ".shared");
        let bytes = |text| shared_array(text).and_then(|array| array.bytes);
        assert_eq!(bytes(".shared .align 16 .b8 s[1024]"), Some(1024));
        assert_eq!(bytes(".visible .shared .f32 t[16][17]"), Some(16 * 17 * 4));
        assert_eq!(bytes(".shared .b64 one"), Some(8));
        assert_eq!(bytes(".extern .shared .align 16 .b8 s[]"), None);
        assert_eq!(shared_array(".reg .b32 %r<8>"), None);
        assert_eq!(shared_array("st.shared.b32 [%r1], %r2"), None);
    }

    #[test]
    fn arrays_in_constant_memory() {
        let module = ".visible .const .align 16 .b8 a[32];\n.const .f32 b[2] = {1.0, 2.0};\n\
                      .visible .global .align 4 .b8 c[4];";
        let module = Module::parse(module).unwrap();
        let arrays = module.constant.iter().map(|array| (&*array.name, array.bytes, array.align));
        assert_eq!(arrays.collect::<Vec<_>>(), [("a", Some(32), 16), ("b", Some(8), 4)]);
        assert_eq!(module.shared, []);
    }

    #[test]
    fn callees() {
        let callee = |text: &str| {
            let statement = Statement { line: 1, text: text.into(), predicate: String::new() };
            statement.callee().map(ToString::to_string)
        };
        assert_eq!(callee("call.uni (r), f, (a, b)").as_deref(), Some("f"));
        assert_eq!(callee("call.uni f, (a)").as_deref(), Some("f"));
        assert_eq!(callee("call f").as_deref(), Some("f"));
        assert_eq!(callee("call (r), %rd4, (a), prototype_0").as_deref(), Some(""));
        assert_eq!(callee("ret"), None);
    }

    #[test]
    fn an_unclosed_body_is_an_error_with_its_line() {
        let error = Module::parse(".version 8.3\n.entry k()\n{ ret;").unwrap_err();
        assert_eq!(format!("{error:#}"), "line 3: `{` is never closed");
    }

    #[test]
    fn a_bad_declaration_names_its_kernel() {
        let text = ".entry k()\n{\n// simt.kernel name=k params= size=3\nret; }";
        let error = format!("{:#}", Module::parse(text).unwrap_err());
        assert!(error.contains("kernel `k`") && error.contains("unknown key `size`"), "{error}");
    }
}
