//! Python's literals in a header: comments, dictionaries, strings.

use super::refusal::{Result, refuse, shown};

/// Replaces Python's comments by spaces.
pub(super) fn without_comments(text: &[u8]) -> Vec<u8> {
    let (mut text, mut quote, mut escaped, mut comment) = (text.to_vec(), None, false, false);
    for byte in &mut text {
        match (quote, *byte) {
            (_, b'\n' | b'\r') if comment => comment = false,
            _ if comment => *byte = b' ',
            _ if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, open @ (b'\'' | b'"')) => quote = Some(open),
            (None, b'#') => (comment, *byte) = (true, b' '),
            (None, _) => {}
        }
    }
    text
}

/// The keys and values of a Python dictionary: keys without quotes, values as text. It takes linear
/// time for any text.
pub(super) fn entries(text: &[u8]) -> Result<Vec<(&[u8], &[u8])>> {
    let text = text.trim_ascii();
    let broken = || refuse("header", shown(text), "must be a dictionary of Python's");
    let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}"));
    let Some(mut rest) = inner.map(<[u8]>::trim_ascii) else { return broken() };
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let Some(colon) = until(b':', rest).filter(|&colon| colon < rest.len()) else {
            return broken();
        };
        let Some(key) = unquote(rest[..colon].trim_ascii()) else { return broken() };
        rest = &rest[colon + 1..];
        let Some(end) = until(b',', rest) else { return broken() };
        let value = rest[..end].trim_ascii();
        if value.is_empty() {
            return broken();
        }
        entries.push((key, value));
        rest = rest.get(end + 1..).unwrap_or_default().trim_ascii();
    }
    Ok(entries)
}

/// The index of the first `end` outside of quotes and brackets, or the length of the text. `None`
/// if a quote or a bracket is not closed.
fn until(end: u8, text: &[u8]) -> Option<usize> {
    let (mut quote, mut depth, mut escaped) = (None, 0usize, false);
    for (place, &byte) in text.iter().enumerate() {
        match (quote, byte) {
            _ if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth = depth.checked_sub(1)?,
            (None, _) if byte == end && depth == 0 => return Some(place),
            (None, _) => {}
        }
    }
    (quote.is_none() && depth == 0).then_some(text.len())
}

/// A string without its quotes. `None` for a string with escapes, and for other text.
pub(super) fn unquote(text: &[u8]) -> Option<&[u8]> {
    // The prefix of Python 2's Unicode or of a raw string. Without escapes it means nothing.
    let text = match text {
        [b'u' | b'U' | b'r' | b'R', text @ ..] => text,
        text => text,
    };
    match text {
        [open @ (b'\'' | b'"'), inner @ .., close] if open == close => {
            (!inner.contains(open) && !inner.contains(&b'\\')).then_some(inner)
        }
        _ => None,
    }
}
