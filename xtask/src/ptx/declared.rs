//! Declarations in PTX: arrays, and names.

/// An array in shared or constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Its size. `None` if the launch sets it (`name[]`).
    pub bytes: Option<u64>,
    /// Its alignment.
    pub align: u64,
}

/// The name in a declaration at the top level. `None` for `.version` and the like.
pub(super) fn declared_name(head: &str) -> Option<&str> {
    if let Some((_, rest)) = head.split_once(".func") {
        // A result is in parentheses before the name.
        let rest = rest.trim_start();
        let rest = match rest.starts_with('(') {
            true => rest.split_once(')')?.1,
            false => rest,
        };
        return rest.split(|c: char| c.is_whitespace() || c == '(').find(|word| !word.is_empty());
    }
    let memory = [".global", ".const", ".shared"];
    let declaration = head.split('=').next()?.trim_end();
    let words = || declaration.split_whitespace();
    if !words().any(|word| memory.contains(&word)) {
        return None;
    }
    words().last()?.split('[').next()
}

/// Parses `.shared .align 16 .b8 name[1024]`, for an array in that memory.
pub(super) fn array(declaration: &str, memory: &str) -> Option<Array> {
    // An initial value is not part of it.
    let declaration = declaration.split('=').next().unwrap_or_default().trim_end();
    let words: Vec<&str> = declaration.split_whitespace().collect();
    if !words.contains(&memory) || !declaration.starts_with('.') {
        return None;
    }
    let element = words.iter().rev().find_map(|word| element_bytes(word))?;
    let align = words.iter().position(|word| *word == ".align").and_then(|at| words.get(at + 1));
    let (_, declarator) = declaration.rsplit_once([' ', '\t'])?;
    let (name, mut dimensions) =
        declarator.split_at(declarator.find('[').unwrap_or(declarator.len()));
    let mut bytes = Some(element);
    while let Some((dimension, rest)) = dimensions.strip_prefix('[').and_then(|d| d.split_once(']'))
    {
        bytes = bytes.zip(dimension.trim().parse::<u64>().ok()).map(|(b, d)| b.saturating_mul(d));
        dimensions = rest;
    }
    Some(Array {
        name: name.into(),
        bytes,
        align: align.and_then(|align| align.parse().ok()).unwrap_or(element),
    })
}

/// The bytes of a PTX type: `.b8`, `.f32`.
fn element_bytes(word: &str) -> Option<u64> {
    let bits: u64 = word.strip_prefix(['.'])?.strip_prefix(['b', 'u', 's', 'f'])?.parse().ok()?;
    matches!(bits, 8 | 16 | 32 | 64 | 128).then_some(bits / 8)
}
