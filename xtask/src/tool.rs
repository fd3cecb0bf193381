//! Programs of NVIDIA's toolkit that work without a toolkit: found on this machine, or fetched from
//! PyPI.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    download,
    environment::{note, output, shown, target_folder},
    version::leading_numbers,
};

/// The oldest release that knows PTX 8.3 and `sm_90a`.
const OLDEST: (u32, u32) = (12, 3);

/// A program, and its packages on PyPI.
#[derive(Debug)]
pub(crate) struct Tool {
    /// `ptxas`. The variable that names the program is the same in capitals.
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    pub(crate) megabytes: u32,
    pub(crate) wheels: [Wheel; 2],
}

/// A package for one kind of machine.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The architecture, as Rust names it.
    pub(crate) arch: &'static str,
    /// Its address on PyPI's file server.
    pub(crate) address: &'static str,
    /// PyPI's SHA-256 of it.
    pub(crate) digest: &'static str,
    /// The SHA-256 of the program in it.
    pub(crate) program: &'static str,
}

/// A program that can run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its release: `13.0`.
    pub(crate) release: String,
}

impl Tool {
    /// The first one found: the one that its variable names, the one on `PATH`, a CUDA toolkit's,
    /// one that was [fetched](Tool::fetch) for the workspace in `root`. One that is too old is
    /// skipped, with a note on standard error.
    pub(crate) fn find(&self, root: &Path) -> Option<Program> {
        let (found, refused) = self.look(root);
        for reason in refused {
            note(&format!("not used: {reason}\n"));
        }
        found
    }

    /// As [`find`](Tool::find), with the reasons for skipping others.
    pub(crate) fn look(&self, root: &Path) -> (Option<Program>, Vec<String>) {
        let on_path = env::var_os("PATH").unwrap_or_default();
        let installed = env::var_os(self.variable())
            .map(PathBuf::from)
            .into_iter()
            .chain(env::split_paths(&on_path).map(|folder| folder.join(self.name)))
            .chain([Path::new("/usr/local/cuda/bin").join(self.name)]);
        let installed = installed.filter(|path| path.is_file());
        let fetched = Some(self.fetched(root)).filter(|path| path.is_file());
        let fetched = fetched.into_iter().map(|path| (self.fetched_program(root), path));
        let mut refused = Vec::new();
        for (program, path) in installed.map(|path| (Program::at(&path), path)).chain(fetched) {
            match program {
                Ok(program) => return (Some(program), refused),
                Err(reason) => refused.push(format!("{}: {reason:#}", path.display())),
            }
        }
        (None, refused)
    }

    /// The environment variable that names the program.
    pub(crate) fn variable(&self) -> String {
        self.name.to_uppercase()
    }

    /// Downloads the program from PyPI into the target folder of the workspace in `root`, unless it
    /// is there.
    pub(crate) fn fetch(&self, root: &Path) -> Result<Program> {
        // pip knows the user's mirror and proxy. Without pip, curl downloads it.
        self.fetch_by(root, |address, folder| {
            self.with_pip(folder).or_else(|pip| {
                // pip's partial download.
                fs::remove_dir_all(folder)
                    .and_then(|()| fs::create_dir(folder))
                    .with_context(|| format!("cannot empty {}", folder.display()))?;
                with_curl(address, folder).with_context(|| format!("{pip:#}\nand without pip"))
            })
        })
    }

    /// As [`fetch`](Tool::fetch), with a function that downloads the wheel with that address, and
    /// nothing else, into a folder. The file is compared with PyPI's SHA-256 before it is used.
    fn fetch_by(
        &self,
        root: &Path,
        download: impl FnOnce(&str, &Path) -> Result<()>,
    ) -> Result<Program> {
        let Tool { name, package, version, megabytes, .. } = self;
        let &Wheel { address, digest, program: of_program, .. } = self.wheel()?;
        let done = self.fetched(root);
        let folder = done.parent().unwrap_or(root);
        download::once(
            folder,
            || self.fetched_program(root).ok(),
            |partial| {
                let [came, unpacked, result] =
                    ["wheel", "unpacked", "done"].map(|name| partial.join(name));
                for folder in [&came, &unpacked, &result] {
                    fs::create_dir(folder)
                        .with_context(|| format!("cannot create {}", folder.display()))?;
                }
                note(&format!(
                    "downloading {name} ({package} {version} of PyPI, {megabytes} MB, once) into {}\n",
                    shown(folder, root)
                ));
                download(address, &came)?;
                let files = fs::read_dir(&came)?.collect::<Result<Vec<_>, _>>()?;
                let [wheel] = &files[..] else {
                    bail!("{} files came for {package} {version}, and must be one", files.len());
                };
                download::verify(&wheel.path(), digest)?;
                unzip(&wheel.path(), &unpacked)?;
                let (program, result_program) =
                    (unpacked.join("nvidia/cu13/bin").join(name), result.join(name));
                make_executable(&program)
                    .and_then(|()| fs::rename(&program, &result_program))
                    .with_context(|| format!("{} is not in the package", program.display()))?;
                download::verify(&result_program, of_program)?;
                Program::at(&result_program)?;
                Ok(result)
            },
        )
    }

    /// The package for this machine.
    fn wheel(&self) -> Result<&Wheel> {
        let (arch, name) = (env::consts::ARCH, self.name);
        let wheel = self.wheels.iter().find(|wheel| wheel.arch == arch);
        wheel.with_context(|| format!("NVIDIA has no {name} for {arch}"))
    }

    /// The program that was fetched before. Its SHA-256 is compared each time before it runs,
    /// because it may have been changed.
    fn fetched_program(&self, root: &Path) -> Result<Program> {
        let path = self.fetched(root);
        download::verify(&path, self.wheel()?.program)?;
        Program::at(&path)
    }

    fn fetched(&self, root: &Path) -> PathBuf {
        target_folder(root).join(self.name).join(self.version).join(self.name)
    }

    fn with_pip(&self, folder: &Path) -> Result<()> {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]);
        let wanted = format!("{}=={}", self.package, self.version);
        output(pip.arg("--dest").arg(folder).arg(wanted))?;
        Ok(())
    }
}

/// Downloads a wheel from PyPI's file server.
fn with_curl(address: &str, folder: &Path) -> Result<()> {
    let file = folder.join(address.rsplit('/').next().unwrap_or(address));
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--retry", "3", "--output"]);
    curl.arg(&file).arg(format!("https://files.pythonhosted.org/packages/{address}"));
    output(&mut curl)?;
    Ok(())
}

/// Unpacks a wheel, which is a zip archive. It does not mark programs as executable.
fn unzip(wheel: &Path, folder: &Path) -> Result<()> {
    let unzip = Command::new("unzip").arg("-q").arg(wheel).arg("-d").arg(folder).output();
    if !unzip.is_ok_and(|done| done.status.success()) {
        let mut python = Command::new("python3");
        python.args(["-m", "zipfile", "-e"]).arg(wheel).arg(folder);
        output(&mut python).context("neither `unzip` nor `python3` unpacks it")?;
    }
    Ok(())
}

impl Program {
    fn at(path: &Path) -> Result<Program> {
        let said = output(Command::new(path).arg("--version"))?;
        let release = release(&said)?;
        Ok(Program { path: path.to_owned(), release })
    }
}

/// The release in a program's output, if it is new enough.
fn release(said: &str) -> Result<String> {
    let release = said.split("release ").nth(1).and_then(|rest| rest.split(',').next());
    let release = release.context("it does not say its release")?;
    ensure!(
        leading_numbers(release) >= Some(OLDEST),
        "release {release} is too old, {}.{} is needed",
        OLDEST.0,
        OLDEST.1
    );
    Ok(release.into())
}

#[cfg(unix)]
fn make_executable(program: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(program: &Path) -> std::io::Result<()> {
    fs::metadata(program).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// A package whose program is a script that prints its release. (Made with Python's `zipfile`.)
    const WHEEL: &[u8] = include_bytes!("../tests/data/ptxas.whl");
    const DIGEST: &str = "67609b4856cfc37efbc2d46837894ed3eeb033c61aa108801958bfb8e27921b8";
    const PROGRAM: &str = "2553b8b2c9cb8982096bb8e9eb7c98696bf4279599d770bec322882cf7687ae5";

    fn tool(digest: &'static str) -> Tool {
        let none = Wheel { arch: "none", address: "", digest: "", program: "" };
        let address = "ab/cd/ptxas.whl";
        let this = Wheel { arch: env::consts::ARCH, address, digest, program: PROGRAM };
        let (package, version, wheels) = ("a-package", "of-a-test", [this, none]);
        Tool { name: "ptxas", package, version, megabytes: 1, wheels }
    }

    /// An empty root, and the folder for fetched programs. (Cargo's target folder may be
    /// elsewhere.)
    fn workspace() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let programs = target_folder(root.path()).join("ptxas");
        (root, programs)
    }

    fn of_the_test(programs: &Path) -> Vec<String> {
        let entries = fs::read_dir(programs).unwrap().map(|entry| entry.unwrap().file_name());
        let names = entries.map(|name| name.into_string().unwrap());
        let mut names = names.filter(|name| name.starts_with("of-a-test")).collect::<Vec<_>>();
        names.sort();
        names
    }

    #[test]
    fn only_the_known_wheel_is_taken_and_two_fetches_at_once_both_have_it() {
        let (folder, programs) = workspace();
        let root = folder.path();
        let _ = fs::remove_dir_all(programs.join("of-a-test"));
        let known = tool(DIGEST);
        let comes = |bytes: &[u8], folder: &Path| Ok(fs::write(folder.join("x.whl"), bytes)?);
        // Another wheel: nothing of it is kept.
        let other = [WHEEL, b"x"].concat();
        let error = known.fetch_by(root, |_, folder| comes(&other, folder)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("x.whl: its SHA-256 is ") && error.contains(DIGEST), "{error}");
        assert_eq!(of_the_test(&programs), ["of-a-test.lock"]);
        let error = known.fetch_by(root, |_, _| Ok(())).unwrap_err().to_string();
        assert_eq!(error, "0 files came for a-package of-a-test, and must be one");

        let (downloading, downloads_now) = mpsc::channel();
        let (starting, starts_now) = mpsc::channel();
        let known_tool = &known;
        thread::scope(|scope| {
            let first = scope.spawn(move || {
                known_tool.fetch_by(root, |address, folder| {
                    assert_eq!(address, "ab/cd/ptxas.whl");
                    downloading.send(()).unwrap();
                    starts_now.recv().unwrap();
                    comes(WHEEL, folder)
                })
            });
            downloads_now.recv().unwrap();
            let second = scope.spawn(move || {
                starting.send(()).unwrap();
                known_tool.fetch_by(root, |_, _| bail!("it was downloaded twice"))
            });
            for program in [first, second].map(|thread| thread.join().unwrap().unwrap()) {
                assert_eq!((&*program.release, &program.path), ("13.0", &known.fetched(root)));
            }
        });
        assert_eq!(of_the_test(&programs), ["of-a-test", "of-a-test.lock"]);
        assert_eq!(fs::read_dir(programs.join("of-a-test")).unwrap().count(), 1);
        fs::remove_dir_all(programs.join("of-a-test")).unwrap();
        fs::remove_file(programs.join("of-a-test.lock")).unwrap();
    }

    #[test]
    fn what_was_fetched_and_is_another_now_is_not_run() {
        let (folder, programs) = workspace();
        let root = folder.path();
        let known = Tool { version: "changed", ..tool(DIGEST) };
        let folder = programs.join("changed");
        let _ = fs::remove_dir_all(&folder);
        let comes = |_: &str, folder: &Path| Ok(fs::write(folder.join("x.whl"), WHEEL)?);
        let program = known.fetch_by(root, comes).unwrap();
        known.fetched_program(root).unwrap();
        // It would print a release, and create a file.
        let was_run = folder.join("was-run");
        let script =
            format!("#!/bin/sh\ntouch '{}'\necho 'release 13.0, V13.0'\n", was_run.display());
        fs::write(&program.path, script).unwrap();
        let error = known.fetched_program(root).unwrap_err().to_string();
        assert!(error.starts_with("ptxas: its SHA-256 is ") && error.contains(PROGRAM), "{error}");
        let (_, refused) = known.look(root);
        assert!(!was_run.exists(), "it was run");
        // The machine may have a program of its own, which comes first.
        let said = refused.iter().any(|reason| reason.contains("its SHA-256 is "));
        assert!(said || known.find(root).is_some_and(|found| found.path != program.path));
        // It is fetched again.
        known.fetch_by(root, comes).unwrap();
        assert!(!was_run.exists() && known.fetched_program(root).is_ok());
        fs::remove_dir_all(&folder).unwrap();
        fs::remove_file(programs.join("changed.lock")).unwrap();
    }

    #[test]
    fn a_machine_without_a_wheel_is_told() {
        let (folder, _) = workspace();
        let mut tool = tool(DIGEST);
        tool.wheels[0].arch = "other";
        let error =
            tool.fetch_by(folder.path(), |_, _| panic!("there is none")).unwrap_err().to_string();
        assert_eq!(error, format!("NVIDIA has no ptxas for {}", env::consts::ARCH));
    }

    #[test]
    fn a_release_is_read_and_an_old_one_refused() {
        let said = |release: &str| format!("Cuda compilation tools, release {release}, V{release}");
        assert_eq!(release(&said("13.0")).unwrap(), "13.0");
        assert_eq!(release(&said("12.3")).unwrap(), "12.3");
        let error = release(&said("12.2")).unwrap_err().to_string();
        assert!(error.contains("12.2 is too old, 12.3"), "{error}");
        assert!(release(&said("next")).is_err());
        assert!(release("GNU assembler 2.40").unwrap_err().to_string().contains("does not say"));
    }
}
