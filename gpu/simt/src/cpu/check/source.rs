//! The line of a kernel's source that a finding points at, read from its file.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::Place;

/// The line's text, where the file is at hand and older than the program: else the line may be another by now.
pub(super) fn line(place: &Place) -> Option<String> {
    let path = find(&env::current_dir().ok()?, Path::new(&place.file))?;
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    if changed(&path)? > changed(&env::current_exe().ok()?)? {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().nth((place.line as usize).checked_sub(1)?)?;
    // Shorter than it must be: another file of that name.
    (line.chars().count() >= place.column as usize).then(|| line.to_owned())
}

/// A file as the compiler was given it, by a path from the workspace's folder: tests run there, or in a package's folder below.
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
        let said = line(&here(number, 9)).unwrap();
        assert_eq!(said.trim(), "let said = line(&here(number, 9)).unwrap();");
        assert_eq!(line(&here(number, 1000)), None, "no line of this file is so long");
        assert_eq!(line(&here(100_000, 1)), None);
        assert_eq!(line(&here(0, 1)), None);
        let elsewhere = Place { file: "no/such/file.rs".to_owned(), ..here(1, 1) };
        assert_eq!(line(&elsewhere), None);
    }
}
