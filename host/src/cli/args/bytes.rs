//! Numbers of bytes: `65536`, `64K`, `256M`, `1.5G`, `2T`, by 1024.

/// At least one byte.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    parse(text).filter(|&bytes| bytes > 0).ok_or_else(|| must_be("at least 1"))
}

/// Any number of bytes, also 0.
pub(super) fn bytes_or_none(text: &str) -> Result<u64, String> {
    parse(text).ok_or_else(|| must_be("at least 0"))
}

fn must_be(least: &str) -> String {
    format!("must be a number of bytes, {least}, or one with K, M, G or T: 256M")
}

fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[number.len()..].to_ascii_lowercase();
    let unit = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 1u64,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    let exact = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let fraction = || {
        let bytes = number.parse::<f64>().ok()? * unit as f64;
        (bytes >= 0.0 && bytes < 2f64.powi(63)).then_some(bytes as u64)
    };
    exact.or_else(fraction)
}

#[cfg(test)]
mod tests {
    use host::gemm::DEFAULT_WORKSPACE_LIMIT;

    use super::*;

    #[test]
    fn bytes_have_units() {
        for (text, wanted) in [
            ("65536", 65536),
            ("64K", 65536),
            ("256M", 256 << 20),
            ("1.5g", 3 << 29),
            ("2TiB", 2 << 40),
            ("10kb", 10240),
        ] {
            assert_eq!(bytes(text), Ok(wanted), "{text}");
            assert_eq!(bytes_or_none(text), Ok(wanted), "{text}");
        }
        for text in ["", "-1", "M", "1X", "1e99", "99999999999T", "NaN", "1 M x"] {
            assert!(bytes(text).is_err() && bytes_or_none(text).is_err(), "{text}");
        }
        assert!(bytes("0").is_err() && bytes_or_none("0") == Ok(0));
    }

    /// What the help says.
    #[test]
    fn the_default_workspace() {
        assert_eq!(bytes("256M"), Ok(DEFAULT_WORKSPACE_LIMIT));
    }
}
