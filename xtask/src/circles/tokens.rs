//! Paths and items among a file's tokens.

use proc_macro2::{Delimiter, TokenTree};

/// A path, by its segments.
pub(super) type Segments = Vec<String>;

/// Words before the name of an item.
const ITEMS: [&str; 8] = ["struct", "enum", "trait", "fn", "type", "const", "static", "union"];

/// The name of the item in these tokens.
pub(super) fn name_of(item: &[TokenTree]) -> Option<String> {
    if matches!(&item[0], TokenTree::Ident(word) if word == "macro_rules") {
        return item.get(2).map(ToString::to_string);
    }
    let is_word = |token: &&TokenTree| !matches!(token, TokenTree::Punct(_) | TokenTree::Group(_));
    let words = item.iter().take_while(is_word).map(ToString::to_string).collect::<Vec<_>>();
    // `const fn f` and `const unsafe fn f` are no constants.
    let kind = words.iter().rposition(|word| ITEMS.contains(&word.as_str()))?;
    words.into_iter().nth(kind + 1)
}

/// The value of `#[path = "x"]`, from the attribute's text.
pub(super) fn path_of(attribute: &str) -> Option<String> {
    let rest = attribute.strip_prefix('[')?.trim_start().strip_prefix("path")?;
    let text = rest.trim_start().strip_prefix('=')?.split('"').nth(1)?;
    Some(text.to_owned())
}

/// The index of the semicolon that ends the statement starting there.
pub(super) fn end_of_statement(tokens: &[TokenTree], from: usize) -> usize {
    let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ';');
    tokens[from..].iter().position(is_end).map_or(tokens.len(), |end| from + end)
}

/// The index after the item that starts there: after its body in braces, or its semicolon.
pub(super) fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    // A word such as `pub` or `unsafe` before an item is not its end.
    tokens[from..].iter().position(is_end).map_or(tokens.len(), |end| from + end + 1)
}

/// Whether it is this character.
pub(super) fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

/// Whether there are two colons.
pub(super) fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let colon =
        |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(at) && colon(at + 1)
}

/// The path that starts there, as far as it has names, and the index after it.
pub(super) fn plain_path(tokens: &[TokenTree], mut at: usize) -> (Segments, usize) {
    let mut path = Vec::new();
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        path.push(name.to_string());
        at += 1;
        if !is_separator(tokens, at) || !matches!(tokens.get(at + 2), Some(TokenTree::Ident(_))) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// The names that a `use` tree imports, and their paths.
pub(super) fn use_tree(tokens: &[TokenTree], before: &[String]) -> Vec<(String, Segments)> {
    let mut all = Vec::new();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
    for branch in tokens.split(is_comma) {
        let start = if is_separator(branch, 0) { 2 } else { 0 };
        let (names, end) = plain_path(branch, start);
        let mut path = [before, &names].concat();
        // The tokens after the names and two colons.
        let behind = if is_separator(branch, end) { end + 2 } else { end };
        match branch.get(behind) {
            Some(TokenTree::Group(group)) => {
                let inside = group.stream().into_iter().collect::<Vec<_>>();
                all.extend(use_tree(&inside, &path));
            }
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                path.push("*".to_owned());
                all.push(("*".to_owned(), path));
            }
            Some(TokenTree::Ident(word)) if word == "as" => {
                let name = branch.get(behind + 1).map(ToString::to_string).unwrap_or_default();
                all.push((name, path));
            }
            _ if path.is_empty() => {}
            _ => {
                // `fiber::{self, Event}` imports `fiber`.
                if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                    path.pop();
                }
                all.push((path.last().cloned().unwrap_or_default(), path));
            }
        }
    }
    all
}
