//! Several new files of one folder.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{
    NewFile,
    draft::Draft,
    is_full,
    place::{Place, folder_of},
    unfinished::{new_name, placing},
    unwritten,
};
use crate::error::{Error, Result};

/// New files of one folder, which get their names when all are complete ([`finish`](Self::finish)).
/// If they are dropped, or the process ends, nothing is left, and no new folder either.
///
/// A folder without other files is replaced in one step, and keeps its mode. Otherwise all files
/// are written, and then replaced one after another. This is so for a folder with other files, for
/// one in use by this process, and on a file system that cannot exchange folders.
#[derive(Debug)]
pub struct NewSet {
    argument: String,
    /// The path as the user gave it.
    named: PathBuf,
    /// The path after following links.
    path: PathBuf,
    files: Vec<NewFile>,
    /// Whether the folder exists.
    exists: bool,
}

impl NewSet {
    /// Makes the files. Outputs that cannot be written are an error here, before anything is
    /// computed. `argument`: the name of the argument that gave the folder. A folder that does not
    /// exist is made by [`finish`](Self::finish), with its parents.
    ///
    /// # Errors
    /// [`Error::Argument`] for a path to something that is no folder, and for a folder in which no
    /// file can be made; as [`NewFile::create`].
    pub fn create(argument: &str, named: &Path, names: &[&str]) -> Result<Self> {
        let refuse = |why: String| Error::argument(argument, named.display(), why);
        let Place { path, existing } = Place::of(named).map_err(refuse)?;
        if existing.as_ref().is_some_and(|existing| !existing.is_dir()) {
            return Err(refuse("is there, and no folder".to_owned()));
        }
        let exists = existing.is_some();
        let files = names.iter().map(|name| match exists {
            true => NewFile::create(argument, &named.join(name)),
            false => {
                let folder = path.ancestors().find(|folder| folder.exists());
                let folder = folder.unwrap_or(Path::new("."));
                let draft = Draft::new(folder, None).map_err(|error| match is_full(&error) {
                    true => unwritten(argument, named, &error),
                    false => {
                        let folder = folder.display();
                        refuse(format!("the folder cannot be made in {folder}: {error}"))
                    }
                })?;
                let (argument, named) = (argument.to_owned(), named.join(name));
                Ok(NewFile { argument, named, path: path.join(name), draft })
            }
        });
        let files = files.collect::<Result<_>>()?;
        let (argument, named) = (argument.to_owned(), named.to_owned());
        Ok(NewSet { argument, named, path, files, exists })
    }

    /// Writes all files and gives them their names. `contents`: name and bytes of each. An old file
    /// is removed if its name was announced to [`create`](Self::create) and has no contents.
    ///
    /// # Errors
    /// [`Error::Unwritten`] if the system does not write them; [`Error::Interrupted`].
    pub fn finish(self, contents: &[(&str, Vec<u8>)]) -> Result<()> {
        let NewSet { argument, named, path, files, exists } = self;
        let (mut written, mut stale) = (Vec::new(), Vec::new());
        for file in files {
            match contents.iter().find(|(name, _)| *name == file.name()) {
                Some((_, bytes)) => {
                    let write = || {
                        file.file().write_all(bytes)?;
                        file.file().sync_all()
                    };
                    write().map_err(|error| file.unwritten(&error))?;
                    written.push(file);
                }
                None => stale.push(Stale::of(file)),
            }
        }
        crate::check_interrupt()?;
        let _placing = placing();
        let cannot = |error: io::Error| unwritten(&argument, &named, &error);
        match exists {
            true => replace(&path, &written, &stale).map_err(cannot),
            false => make(&path, &written).map_err(cannot),
        }
    }
}

impl NewFile {
    /// The name in the folder. It may be a link to another.
    fn name(&self) -> &OsStr {
        self.named.file_name().unwrap_or_default()
    }
}

/// An old file of the folder, which is removed. The draft of a new one is removed before: where
/// drafts have names, it would count as another file of the folder.
struct Stale {
    name: OsString,
    path: PathBuf,
}

impl Stale {
    fn of(file: NewFile) -> Self {
        Stale { name: file.name().to_owned(), path: file.path }
    }
}

/// Makes the folder with all files.
fn make(path: &Path, files: &[NewFile]) -> io::Result<()> {
    let parent = folder_of(path);
    fs::create_dir_all(parent)?;
    let ((), beside) = new_name(parent, |path| fs::create_dir(path))?;
    let placed = place_all(files, &beside).and_then(|()| fs::rename(&beside, path));
    let outcome = match placed {
        // Another program has made the folder meanwhile.
        Err(_) if path.is_dir() => place_inside(files, &[], Some(&beside)),
        outcome => outcome,
    };
    if outcome.is_err() {
        let _ = fs::remove_dir_all(&beside);
    } else {
        let _ = fs::remove_dir(&beside);
    }
    outcome
}

/// Puts the files into an existing folder, in one step if possible.
fn replace(folder: &Path, files: &[NewFile], stale: &[Stale]) -> io::Result<()> {
    let names = || files.iter().map(NewFile::name).chain(stale.iter().map(|file| &*file.name));
    let beside = if is_in_use(folder) { None } else { another_like(folder).ok() };
    let Some(beside) = beside else { return place_inside(files, stale, None) };
    // The folder is read after our files have left it.
    let exchanged =
        place_all(files, &beside).and_then(|()| match holds_no_others(folder, names().collect()) {
            true => exchange(&beside, folder),
            false => Err(io::ErrorKind::DirectoryNotEmpty.into()),
        });
    match exchanged {
        // The other folder has the old files now.
        Ok(()) => names().for_each(|name| drop(fs::remove_file(beside.join(name)))),
        // The files get their names one by one. Some have a name in the other folder already.
        Err(_) => place_inside(files, stale, Some(&beside))?,
    }
    fs::remove_dir(&beside).map_err(|error| {
        let why = format!("the other files are in {} now: {error}", beside.display());
        io::Error::new(error.kind(), why)
    })
}

fn place_all(files: &[NewFile], folder: &Path) -> io::Result<()> {
    files.iter().try_for_each(|file| file.draft.place(&folder.join(file.name())))
}

/// Gives the files their names one after another. `beside`: a folder in which some of them have a
/// name already.
fn place_inside(files: &[NewFile], stale: &[Stale], beside: Option<&Path>) -> io::Result<()> {
    for file in files {
        let placed = beside.map(|beside| beside.join(file.name())).filter(|path| path.exists());
        match placed {
            Some(placed) => fs::rename(placed, &file.path)?,
            None => file.draft.place(&file.path)?,
        }
    }
    for file in stale {
        match fs::remove_file(&file.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a folder has only files with these names.
fn holds_no_others(folder: &Path, names: Vec<&OsStr>) -> bool {
    let is_one = |entry: fs::DirEntry| {
        entry.file_type().is_ok_and(|of| of.is_file()) && names.contains(&&*entry.file_name())
    };
    let entries = fs::read_dir(folder);
    entries.is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(is_one)))
}

/// Whether the folder, or one in it, is the current folder of this process, and so perhaps of its
/// shell. Replacing it would leave the shell in a folder that no longer exists.
fn is_in_use(folder: &Path) -> bool {
    std::env::current_dir().is_ok_and(|current| current.starts_with(folder))
}

/// A new empty folder next to another, with its mode and its owner.
fn another_like(folder: &Path) -> io::Result<PathBuf> {
    let metadata = fs::metadata(folder)?;
    let ((), beside) = new_name(folder_of(folder), |path| fs::create_dir(path))?;
    let alike = || {
        fs::set_permissions(&beside, metadata.permissions())?;
        match owner(&fs::metadata(&beside)?) == owner(&metadata) {
            true => Ok(beside.clone()),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    };
    alike().inspect_err(|_| drop(fs::remove_dir(&beside)))
}

#[cfg(unix)]
fn owner(of: &fs::Metadata) -> [u32; 2] {
    use std::os::unix::fs::MetadataExt;
    [of.uid(), of.gid()]
}

#[cfg(not(unix))]
fn owner(_: &fs::Metadata) {}

/// Exchanges two folders in one step.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
