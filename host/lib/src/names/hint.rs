//! The names that an unknown name probably means. (`xtask` uses this file, too.)

/// The most names with the same beginning that are listed.
const MOST_BEGUN: usize = 4;

/// A question to the user: the name that is most similar, or the names with the same beginning.
/// `None` if there is none.
pub fn hint(name: &str, known: &[&str]) -> Option<String> {
    if let Some(meant) = meant(name, known) {
        return Some(format!("did you mean {meant}?"));
    }
    let name = name.to_lowercase();
    let begins = |known: &&&str| !name.is_empty() && known.starts_with(&*name);
    let begun = known.iter().filter(begins).copied().collect::<Vec<_>>();
    let (first, more) = begun.split_at(begun.len().min(MOST_BEGUN));
    let (last, others) = first.split_last()?;
    Some(match (others, more.len()) {
        ([], _) => format!("did you mean {last}?"),
        (others, 0) => format!("did you mean {} or {last}?", others.join(", ")),
        (_, more) => {
            format!("did you mean {} or one of {more} more that begin so?", first.join(", "))
        }
    })
}

/// The most similar name, if at most a third of the letters are wrong, missing, surplus or
/// exchanged.
fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let letters = name.chars().count();
    let most = letters / 3;
    // At least so many letters are missing or surplus. The distance takes time by both lengths, and
    // somebody's name may have any.
    let is_near = |known: &&&str| known.chars().count().abs_diff(letters) <= most;
    let known = known.iter().filter(is_near);
    let distances = known.map(|known| (strsim::osa_distance(&name, known), *known));
    let nearest = distances.min_by_key(|(distance, _)| *distance);
    nearest.filter(|(distance, _)| *distance <= most).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] =
        ["basic", "tiled16", "tiled32", "gemm_f32_32x32x8", "gemm_f32_64x64x16", "async_copy"];

    #[test]
    fn a_slip_is_told_from_another_name() {
        for (name, wanted) in [
            ("gemm_f32_46x64x16", Some("gemm_f32_64x64x16")),
            ("gemm-f32-32x32", Some("gemm_f32_32x32x8")),
            ("gemm_f64_64x64x16", Some("gemm_f32_64x64x16")),
            ("Tiled_16", Some("tiled16")),
            ("asynccopy", Some("async_copy")),
            ("basc", Some("basic")),
            ("gemm", None),
            ("vec_add", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(meant(name, &KNOWN), wanted, "{name}");
        }
        assert_eq!(meant("gemm_f32_32x32x8", &[]), None);
        // A third of the letters may be surplus.
        assert_eq!(meant("tiled16abc", &KNOWN), Some("tiled16"));
        assert_eq!(meant("tiled16abcd", &KNOWN), None);
    }

    #[test]
    fn a_name_of_any_length_is_compared_at_once() {
        let known = vec!["gemm_f32_64x64x16"; 1000];
        for letter in ["x", "g", "\u{df}"] {
            let start = std::time::Instant::now();
            assert_eq!(hint(&letter.repeat(100_000), &known), None);
            let took = start.elapsed();
            assert!(took < std::time::Duration::from_secs(2), "{took:?}");
        }
    }

    #[test]
    fn a_name_that_others_begin_with_leads_to_them() {
        for (name, wanted) in [
            ("Tiled", Some("did you mean tiled16 or tiled32?")),
            ("gemm", Some("did you mean gemm_f32_32x32x8 or gemm_f32_64x64x16?")),
            ("async", Some("did you mean async_copy?")),
            ("basc", Some("did you mean basic?")),
            ("iled1", None),
            ("", None),
        ] {
            assert_eq!(hint(name, &KNOWN).as_deref(), wanted, "{name}");
        }
        let many = ["a1x", "a2x", "a3x", "a4x", "a5x", "a6x"];
        let wanted = "did you mean a1x, a2x, a3x, a4x or one of 2 more that begin so?";
        assert_eq!(hint("a", &many).as_deref(), Some(wanted));
    }
}
