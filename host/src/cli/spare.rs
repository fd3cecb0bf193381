//! Inputs are replaced on request only.

use std::{fs, path::Path};

use host::Error;

/// Refuses an output that is also an input, under any name, unless there is `--force`. Each has its
/// flag and its path.
pub(super) fn spare_inputs(
    force: bool,
    (flag, out): (&str, &Path),
    inputs: &[(&str, &Path)],
) -> Result<(), Error> {
    let input = inputs.iter().find(|(_, input)| are_one_file(out, input));
    match input {
        Some((of, input)) if !force => {
            let limit = format!("is the file of {of} {} too: --force replaces it", input.display());
            Err(Error::argument(flag, out.display(), limit))
        }
        _ => Ok(()),
    }
}

/// Whether both are the same file, also through links. A file that does not exist is no input.
#[cfg(unix)]
fn are_one_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let file = |path| fs::metadata(path).map(|of| (of.dev(), of.ino())).ok();
    file(one).is_some_and(|one| Some(one) == file(other))
}

#[cfg(not(unix))]
fn are_one_file(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}
