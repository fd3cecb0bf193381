//! Why a header is refused.

/// A field with a wrong value.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) field: &'static str,
    pub(super) value: String,
    pub(super) limit: String,
}

pub(super) type Result<T> = std::result::Result<T, Refusal>;

pub(super) fn refuse<T>(
    field: &'static str,
    value: impl ToString,
    limit: impl ToString,
) -> Result<T> {
    Err(Refusal { field, value: value.to_string(), limit: limit.to_string() })
}

/// Bytes of a file for a message: shortened, and without control characters.
pub(super) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let bytes = bytes.trim_ascii();
    let text = bytes[..bytes.len().min(MOST)].escape_ascii().to_string().replace("\\'", "'");
    if bytes.len() > MOST { format!("{text}...") } else { text }
}
