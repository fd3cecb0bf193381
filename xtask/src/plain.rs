//! The compiler's text without what changes while the code does not.

/// The compiler's text without comments and empty lines, and with labels numbered within their
/// function. It changes only if the code does.
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

/// A line without comments, except those of `simt`.
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

/// `$L__BB12_3` is the twelfth function's label. It becomes `$L_3`.
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

    #[test]
    fn only_what_changes_with_the_code_is_kept() {
        let raw = "\t// begin inline asm\n\tmov.u32 \t%r1, /* simt.constant a */ 0; // a register\n\
                   \n\t/* %r1 */\n$L__BB12_3:                 // %for.body\n\t@%p1 bra \t$L__BB12_3;\n\
                   \t// simt.kernel name=k constants=a:0|1 params=\n\tcvt.f32/* simt.constant half */.bf16 %f1, %rs1;";
        let wanted = "\tmov.u32 %r1, /* simt.constant a */ 0;\n$L_3:\n\t@%p1 bra $L_3;\n\
                      \t// simt.kernel name=k constants=a:0|1 params=\n\tcvt.f32/* simt.constant half */.bf16 %f1, %rs1;";
        assert_eq!(plain(raw), wanted);
    }
}
