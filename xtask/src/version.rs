//! The compiler's version.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::environment::output;

/// The oldest compiler whose PTX backend can build these kernels.
pub(crate) const OLDEST: (u32, u32) = (1, 96);

/// The output of `rustc -vV`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// Compiler and LLVM in one line: of a release their numbers, of others also the commit.
    pub(crate) text: String,
    /// `1.96.0`.
    pub(crate) release: String,
    /// LLVM's major version.
    pub(crate) llvm: u32,
    /// The compiler's host: `x86_64-unknown-linux-gnu`.
    pub(crate) host: String,
}

impl Version {
    /// Asks a compiler, and refuses one that is too old.
    pub(crate) fn of(rustc: &mut Command) -> Result<Version> {
        let version = Version::parse(&output(rustc.arg("-vV"))?)?;
        ensure!(
            leading_numbers(&version.release) >= Some(OLDEST),
            "{} is too old: {}.{} or later is needed",
            version.text,
            OLDEST.0,
            OLDEST.1
        );
        Ok(version)
    }

    fn parse(text: &str) -> Result<Version> {
        let field = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.map(str::trim).with_context(|| format!("`rustc -vV` has no line `{key}`:\n{text}"))
        };
        let llvm = field("LLVM version:")?;
        let release = field("release:")?;
        let compiler = match release.contains('-') {
            true => text.lines().next().unwrap_or_default().to_owned(),
            false => format!("rustc {release}"),
        };
        Ok(Version {
            text: format!("{compiler}, LLVM {llvm}"),
            release: release.into(),
            llvm: leading_numbers(llvm).with_context(|| format!("LLVM version `{llvm}`"))?.0,
            host: field("host:")?.into(),
        })
    }
}

/// The first two numbers of a version: 1 and 96 of `1.96.0+dfsg1-1~deb12u2`.
pub(crate) fn leading_numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
pub(crate) const VERSION_TEXT: &str = "\
rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)
binary: rustc
host: x86_64-unknown-linux-gnu
release: 1.96.0
LLVM version: 22.1.8
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compilers_version_is_read() {
        let version = Version::parse(VERSION_TEXT).unwrap();
        assert_eq!(
            version,
            Version {
                text: "rustc 1.96.0, LLVM 22.1.8".into(),
                release: "1.96.0".into(),
                llvm: 22,
                host: "x86_64-unknown-linux-gnu".into(),
            }
        );
        let nightly = VERSION_TEXT.replace("1.96.0", "1.98.0-nightly");
        let text = Version::parse(&nightly).unwrap().text;
        assert!(text.starts_with("rustc 1.98.0-nightly (ac68faa20 2026-05-25)"), "{text}");
        assert!(Version::parse("rustc 1.0").is_err());
    }

    #[test]
    fn versions_are_compared_by_numbers() {
        assert_eq!(leading_numbers("1.96.0+dfsg1-1~deb12u2"), Some((1, 96)));
        assert!(leading_numbers("1.101.0-nightly") > Some(OLDEST));
        assert!(leading_numbers("1.85.0+dfsg3-1") < Some(OLDEST));
        assert!(leading_numbers("(none)") < Some(OLDEST));
    }
}
