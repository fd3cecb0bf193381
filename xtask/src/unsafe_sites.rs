//! Every unsafe block and implementation has a comment `SAFETY:`. Clippy asks for it too, but does
//! not see the device library, which is compiled for a GPU alone, nor what a macro writes.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::environment::known_files;

/// The comment is at most so many lines above, or the first line of the block.
const NEAR: usize = 10;

/// Checks the files of `gpu` and `host`. The fakes of NVIDIA's libraries say why once for a file.
pub fn check(root: &Path) -> Result<()> {
    let files = known_files(root, &["gpu/**.rs", "host/**.rs"])?.into_iter();
    let files = files.filter(|(file, _)| !file.contains("/tests/fake/"));
    let bare = files
        .flat_map(|(file, text)| bare(&text).into_iter().map(move |line| format!("{file}:{line}")));
    let bare = bare.collect::<Vec<_>>();
    ensure!(bare.is_empty(), "unsafe code that no comment `// SAFETY:` explains: {bare:?}");
    Ok(())
}

/// The numbers of the lines that begin unsafe code without such a comment.
fn bare(text: &str) -> Vec<usize> {
    let lines = text.lines().collect::<Vec<_>>();
    let is_bare = |at: &usize| {
        let code = lines[*at].split("//").next().unwrap_or_default();
        let near = &lines[at.saturating_sub(NEAR)..lines.len().min(at + 2)];
        (code.contains("unsafe {") || code.contains("unsafe impl"))
            && !near.iter().any(|line| line.contains("SAFETY:"))
    };
    (0..lines.len()).filter(is_bare).map(|at| at + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_or_an_implementation_needs_a_comment() {
        for text in ["let x = unsafe { x() };", "unsafe impl Sync for X {}"] {
            assert_eq!(bare(text), [1]);
            assert_eq!(bare(&format!("// SAFETY: it is true.\n{text}")), [0usize; 0]);
            assert_eq!(bare(&format!("// SAFETY: far.{}{text}", "\n".repeat(11))), [12]);
        }
        assert_eq!(bare("unsafe fn f() {}\n/// unsafe { x }"), [0usize; 0]);
    }
}
