//! A source file, or the text of a function in it.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use syn::{ImplItem, Item, spanned::Spanned};

/// `FILE fn NAME`: that function, with its comments and attributes, as a block of Rust. `FILE`: the
/// file without the comment at its head.
pub fn excerpt(root: &Path, arguments: &str) -> Result<String> {
    let (file, name) = match arguments.split_once(" fn ") {
        Some((file, name)) => (file, Some(name)),
        None => (arguments, None),
    };
    let text =
        fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
    let excerpt = match name {
        Some(name) => function(&text, name).with_context(|| file.to_owned())?,
        None => body(&text),
    };
    Ok(format!("```rust\n{excerpt}\n```"))
}

/// A file without the comment at its head.
pub(crate) fn body(text: &str) -> String {
    let lines = text.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// A function of a file, with its comments and attributes.
///
/// # Errors
/// The file has none of that name, or cannot be parsed.
pub(crate) fn function(text: &str, name: &str) -> Result<String> {
    let parsed = syn::parse_file(text).context("cannot be parsed")?;
    // A function of the file, or a method in it: the first with that name.
    let found = parsed.items.iter().find_map(|item| match item {
        Item::Fn(function) if function.sig.ident == name => Some(function.span()),
        Item::Impl(block) => block.items.iter().find_map(|item| match item {
            ImplItem::Fn(method) if method.sig.ident == name => Some(method.span()),
            _ => None,
        }),
        _ => None,
    });
    let span = found.with_context(|| format!("has no function `{name}`"))?;
    // A span's lines are counted from 1. It starts at the first comment or attribute.
    let (first, last) = (span.start().line - 1, span.end().line);
    // A method is indented.
    let dedent = |line: &'_ str| line.get(span.start().column..).unwrap_or_default().to_owned();
    let lines = text.lines().skip(first).take(last - first).map(dedent).collect::<Vec<_>>();
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_without_the_comment_at_its_head() {
        assert_eq!(
            body("//! A file.\n//! More.\n\nuse a;\n\n// why\nfn f() {}\n"),
            "use a;\n\n// why\nfn f() {}"
        );
    }

    #[test]
    fn a_function_comes_with_its_comments_and_attributes() {
        let text = "//! A file.\n\nfn f() {}\n\n/// Says\n/// why.\n#[a(\n    b,\n)]\npub fn g<T>() {\n    \
                    // inside\n    f()\n}\n// after\n";
        let expected =
            "/// Says\n/// why.\n#[a(\n    b,\n)]\npub fn g<T>() {\n    // inside\n    f()\n}";
        assert_eq!(function(text, "g").unwrap(), expected);
        assert_eq!(function(text, "f").unwrap(), "fn f() {}");
        let text =
            "struct S;\n\nimpl S {\n    /// A method.\n    fn h() {\n\n        f()\n    }\n}\n";
        assert_eq!(function(text, "h").unwrap(), "/// A method.\nfn h() {\n\n    f()\n}");
        let text = "fn f() {}";
        assert!(function(text, "h").unwrap_err().to_string().contains("no function `h`"));
        assert!(function("fn", "h").unwrap_err().to_string().contains("cannot be parsed"));
    }
}
