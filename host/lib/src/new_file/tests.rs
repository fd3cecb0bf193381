use std::{
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use tempfile::TempDir;

use super::{unfinished::Unfinished, *};

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What creating a file, or a set, is refused with.
fn refusal<T>(created: Result<T>) -> String {
    created.err().expect("refused").to_string()
}

#[test]
fn what_is_on_its_way_has_no_name() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new");
    let file = NewFile::create("--out", &path).unwrap();
    file.file().write_all(b"x").unwrap();
    assert!(names(folder.path()).is_empty());
    file.finish().unwrap();
    // One that is there is replaced, also if it has come meanwhile.
    let late = folder.path().join("late");
    for (path, bytes) in [(&path, b"y"), (&late, b"z")] {
        let file = NewFile::create("--out", path).unwrap();
        file.file().write_all(bytes).unwrap();
        fs::write(&late, "meanwhile").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read(path).unwrap(), bytes);
    }
    assert_eq!(names(folder.path()), ["late", "new"]);
}

/// As of a file system that has no files without a name.
#[test]
fn a_name_is_removed_before_the_process_ends_at_once() {
    let folder = TempDir::new().unwrap();
    let make = |path: &Path| File::create_new(path).map(drop);
    let new = || Unfinished::new(folder.path(), make).unwrap().1;
    let [dropped, renamed, left] = [new(), new(), new()];
    assert_eq!(names(folder.path()).len(), 3);
    drop(dropped);
    renamed.rename(&folder.path().join("finished")).unwrap();
    drop(renamed);
    assert_eq!(without_unfinished(|| names(folder.path())), ["finished"]);
    drop(left);
    assert_eq!(names(folder.path()), ["finished"]);
}

#[test]
fn a_name_may_be_as_long_as_names_can_be() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("n".repeat(255));
    for _ in 0..2 {
        NewFile::create("--out", &path).unwrap().finish().unwrap();
    }
    let longer = folder.path().join("n".repeat(256));
    assert!(refusal(NewFile::create("--out", &longer)).contains("name too long"), "{longer:?}");
    symlink(&longer, folder.path().join("link")).unwrap();
    let link = NewFile::create("--out", &folder.path().join("link"));
    assert!(refusal(link).contains("name too long"));
    assert_eq!(names(folder.path()), ["link".to_owned(), "n".repeat(255)]);
}

#[test]
fn links_are_followed_also_to_nothing() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    symlink("../b", at("sub/a")).unwrap();
    symlink("c", at("b")).unwrap();
    let file = NewFile::create("--out", &at("sub/a")).unwrap();
    assert_eq!(file.path(), NewFile::create("--out", &at("c")).unwrap().path());
    file.finish().unwrap();
    assert!(fs::symlink_metadata(at("c")).unwrap().is_file());
    assert_eq!(names(folder.path()), ["b", "c", "sub"]);
    symlink("circle", at("circle")).unwrap();
    symlink("none/x", at("nowhere")).unwrap();
    symlink("x/", at("folder")).unwrap();
    let slash = format!("{}/", at("x").display());
    for (path, why) in [
        (at("circle"), "symbolic links"),
        (at("nowhere"), "there is no folder"),
        (at("folder"), "x/, which names no file"),
        (slash.into(), "names no file"),
        (at("sub/."), "names no file"),
        (at("sub"), "no file but a folder"),
        (at("c/x"), "Not a directory"),
        ("/dev/null".into(), "no file but a device"),
        ("-".into(), "not standard output"),
        ("".into(), "names no file"),
    ] {
        let message = refusal(NewFile::create("--out", &path));
        assert!(message.starts_with("--out = ") && message.contains(why), "{message}");
    }
}

const NAMES: [&str; 2] = ["rows", "table"];

#[track_caller]
fn write_set(folder: &Path, contents: &[(&str, &str)]) {
    let set = NewSet::create("--out", folder, &NAMES).unwrap();
    let contents = contents.iter().map(|(name, text)| (*name, text.as_bytes().to_vec()));
    set.finish(&contents.collect::<Vec<_>>()).unwrap();
}

/// The folder's number in its file system, which another folder does not have.
fn number(folder: &Path) -> u64 {
    fs::metadata(folder).unwrap().ino()
}

#[test]
fn a_set_is_there_when_all_of_all_is() {
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("made/here");
    drop(NewSet::create("--out", &folder, &NAMES).unwrap());
    assert!(names(outer.path()).is_empty());
    write_set(&folder, &[("rows", "1"), ("table", "2")]);
    assert_eq!(names(&folder), NAMES);

    // The next one takes its place as a whole, with its mode, and what belongs to the older one
    // goes.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
    let before = number(&folder);
    write_set(&folder, &[("rows", "3")]);
    assert_ne!(number(&folder), before);
    assert_eq!(names(&folder), ["rows"]);
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o750);
    assert_eq!(names(&outer.path().join("made")), ["here"]);

    // Other files stay where they are, and so does the folder; links in it are followed.
    symlink("../linked", folder.join("table")).unwrap();
    fs::write(folder.join("notes"), "mine").unwrap();
    let before = number(&folder);
    write_set(&folder, &[("rows", "4"), ("table", "5")]);
    assert_eq!(number(&folder), before);
    assert_eq!(names(&folder), ["notes", "rows", "table"]);
    assert_eq!(fs::read(folder.join("rows")).unwrap(), b"4");
    assert_eq!(fs::read(outer.path().join("made/linked")).unwrap(), b"5");
    assert_eq!(names(&outer.path().join("made")), ["here", "linked"]);
}

#[test]
fn a_set_whose_folder_comes_meanwhile_loses_nothing() {
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("here");
    let set = NewSet::create("--out", &folder, &NAMES).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("notes"), "mine").unwrap();
    set.finish(&[("rows", b"1".to_vec())]).unwrap();
    assert_eq!(names(&folder), ["notes", "rows"]);
    assert_eq!(names(outer.path()), ["here"]);
}

#[test]
fn a_set_that_cannot_be_is_refused() {
    let outer = TempDir::new().unwrap();
    let at = |name: &str| outer.path().join(name);
    fs::write(at("file"), "").unwrap();
    fs::create_dir_all(at("folder/rows")).unwrap();
    for (path, why) in [
        (at("file"), "is there, and no folder"),
        (at("file/in"), "Not a directory"),
        (at("folder"), "folder/rows: is there, and no file but a folder"),
        ("-".into(), "not standard output"),
    ] {
        let message = refusal(NewSet::create("--out", &path, &NAMES));
        assert!(message.starts_with("--out = ") && message.contains(why), "{message}");
    }
}
