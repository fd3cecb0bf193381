//! Reads the source line of a finding from its file.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::place::Place;

/// The text of a line; `None` where the file does not exist, or is newer than the program and so
/// may have changed.
pub(super) fn line(place: &Place) -> Option<String> {
    line_at(place).map(|(_, line)| line)
}

/// Where a line begins in its file, in bytes, and its text.
pub(super) fn line_at(place: &Place) -> Option<(usize, String)> {
    let path = find(&env::current_dir().ok()?, Path::new(&place.file))?;
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    if changed(&path)? > changed(&env::current_exe().ok()?)? {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().nth((place.line as usize).checked_sub(1)?)?;
    let start = line.as_ptr().addr() - text.as_ptr().addr();
    // A line that is too short is of another file of that name.
    (line.chars().count() >= place.column as usize).then(|| (start, line.to_owned()))
}

/// Finds a file by its path from the workspace's folder, which the compiler was given. Tests run
/// there, or in a package's folder below.
fn find(folder: &Path, file: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join(file)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(line: u32, column: u32) -> Place {
        Place { file: file!().to_owned(), line, column }
    }

    #[test]
    fn a_line_is_read_where_it_can_be() {
        let number = line!() + 1;
        let (start, said) = line_at(&here(number, 9)).unwrap();
        assert_eq!(said.trim(), "let (start, said) = line_at(&here(number, 9)).unwrap();");
        assert!(include_str!("source.rs")[start..].starts_with(&said));
        assert_eq!(line(&here(number, 1000)), None, "no line of this file is so long");
        assert_eq!(line(&here(100_000, 1)), None);
        assert_eq!(line(&here(0, 1)), None);
        let elsewhere = Place { file: "no/such/file.rs".to_owned(), ..here(1, 1) };
        assert_eq!(line(&elsewhere), None);
    }
}
