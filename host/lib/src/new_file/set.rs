//! Several files that belong together, in a folder.

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

/// Files of a folder that will be there when all of all of them is. Dropped before, or with the process, they leave
/// nothing behind, and of the folder nothing either.
///
/// A folder that has no other files is replaced as a whole, in one step, and keeps its mode. In one that has, that is in
/// use by this process, or whose file system cannot exchange folders, the files are replaced one right after the
/// other, when all are written.
#[derive(Debug)]
pub struct NewSet {
    argument: String,
    /// As the argument has it.
    named: PathBuf,
    /// The place, past links.
    path: PathBuf,
    files: Vec<NewFile>,
    /// Is the folder there?
    exists: bool,
}

impl NewSet {
    /// Makes sure that the files can be written before anything is computed. `argument` is the name under which
    /// messages know the folder, which is made at the end where it is not there, with those that it is in.
    ///
    /// # Errors
    /// [`Error::Argument`] where they cannot: for what is there and is no folder, for folders that take no new files,
    /// and as of [`NewFile::create`]; [`Error::Unwritten`] where the disk is full.
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

    /// Writes all files and puts them in their places. One of `names` that has no contents now is removed where it
    /// was: it belongs to what was there.
    ///
    /// # Errors
    /// [`Error::Unwritten`] where the system does not; [`Error::Interrupted`].
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
    /// Its name in the folder, also where that is a link to another.
    fn name(&self) -> &OsStr {
        self.named.file_name().unwrap_or_default()
    }
}

/// A file that belongs to what was in a folder, and goes with it. The draft of a new one is gone already: it would count as
/// another file of the folder, where drafts have names.
struct Stale {
    name: OsString,
    path: PathBuf,
}

impl Stale {
    fn of(file: NewFile) -> Self {
        Stale { name: file.name().to_owned(), path: file.path }
    }
}

/// Makes the folder, with all of the files.
fn make(path: &Path, files: &[NewFile]) -> io::Result<()> {
    let parent = folder_of(path);
    fs::create_dir_all(parent)?;
    let ((), beside) = new_name(parent, |path| fs::create_dir(path))?;
    let placed = place_all(files, &beside).and_then(|()| fs::rename(&beside, path));
    let outcome = match placed {
        // Somebody has made it meanwhile.
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

/// Puts the files in a folder that is there, if possible all in one step.
fn replace(folder: &Path, files: &[NewFile], stale: &[Stale]) -> io::Result<()> {
    let names = || files.iter().map(NewFile::name).chain(stale.iter().map(|file| &*file.name));
    let beside = if is_in_use(folder) { None } else { another_like(folder).ok() };
    let Some(beside) = beside else { return place_inside(files, stale, None) };
    // Looked at when all that is ours has left it.
    let exchanged =
        place_all(files, &beside).and_then(|()| match holds_no_others(folder, names().collect()) {
            true => exchange(&beside, folder),
            false => Err(io::ErrorKind::DirectoryNotEmpty.into()),
        });
    match exchanged {
        // What was there is beside now.
        Ok(()) => names().for_each(|name| drop(fs::remove_file(beside.join(name)))),
        // First of all it is finished: what has a name beside gets another, and cannot go back to none.
        Err(_) => place_inside(files, stale, Some(&beside))?,
    }
    fs::remove_dir(&beside).map_err(|error| {
        let why = format!("what else was there is in {} now: {error}", beside.display());
        io::Error::new(error.kind(), why)
    })
}

fn place_all(files: &[NewFile], folder: &Path) -> io::Result<()> {
    files.iter().try_for_each(|file| file.draft.place(&folder.join(file.name())))
}

/// Puts the files in their places one after the other, also those that have been put beside.
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

/// Is all that a folder has a file of one of these names?
fn holds_no_others(folder: &Path, names: Vec<&OsStr>) -> bool {
    let is_one = |entry: fs::DirEntry| {
        entry.file_type().is_ok_and(|of| of.is_file()) && names.contains(&&*entry.file_name())
    };
    let entries = fs::read_dir(folder);
    entries.is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(is_one)))
}

/// Is it, or a folder in it, this process's, and so its shell's? That one would be left in a folder that is gone.
fn is_in_use(folder: &Path) -> bool {
    std::env::current_dir().is_ok_and(|current| current.starts_with(folder))
}

/// An empty folder beside another, of its mode and its owner.
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

/// Gives each of two folders the other's place, in one step.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
