//! Programs of NVIDIA's toolkit that work without a toolkit: found where they are, or fetched from PyPI.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    environment::{output, shown, target_folder},
    toolchain::leading_numbers,
};

/// The oldest release that knows PTX 8.3 and `sm_90a`.
const OLDEST: (u32, u32) = (12, 3);

/// A program, and the package on PyPI that has it.
#[derive(Debug)]
pub(crate) struct Tool {
    /// `ptxas`. The variable that names the program is the same in capitals.
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    pub(crate) megabytes: u32,
    /// For a machine without pip: its architecture, the wheel's address below PyPI's file server (which
    /// carries a hash of the content), and PyPI's SHA-256.
    pub(crate) wheels: [(&'static str, &'static str, &'static str); 2],
}

/// A program that can be run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its release: `13.0`.
    pub(crate) release: String,
}

impl Tool {
    /// The first that is there of: the one that its variable names, the one on `PATH`, a CUDA toolkit's,
    /// one that was [fetched](Tool::fetch) for the workspace in `root`. One that is too old counts as not
    /// there, and standard error says so.
    pub(crate) fn find(&self, root: &Path) -> Option<Program> {
        let (found, refused) = self.look(root);
        for reason in refused {
            eprintln!("not used: {reason}");
        }
        found
    }

    /// As [`find`](Tool::find), with the reasons against each that was passed over.
    pub(crate) fn look(&self, root: &Path) -> (Option<Program>, Vec<String>) {
        let on_path = env::var_os("PATH").unwrap_or_default();
        let candidates = env::var_os(self.variable())
            .map(PathBuf::from)
            .into_iter()
            .chain(env::split_paths(&on_path).map(|folder| folder.join(self.name)))
            .chain([Path::new("/usr/local/cuda/bin").join(self.name), self.fetched(root)]);
        let mut refused = Vec::new();
        for path in candidates.filter(|path| path.is_file()) {
            match Program::at(path.clone()) {
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

    /// Downloads the program from PyPI into the target folder of the workspace in `root`.
    pub(crate) fn fetch(&self, root: &Path) -> Result<Program> {
        let Tool { name, package, version, megabytes, .. } = self;
        let done = self.fetched(root);
        let folder = target_folder(root).join(name);
        let partial = folder.join("partial");
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fs::create_dir_all(&partial)
            .with_context(|| format!("cannot create {}", partial.display()))?;
        eprintln!(
            "downloading {name} ({package} {version} of PyPI, {megabytes} MB, once) into {}",
            shown(&folder, root)
        );
        // pip knows the user's mirror and proxy; where there is none, curl will do.
        if let Err(pip) = self.with_pip(&partial) {
            self.with_curl(&partial).with_context(|| format!("{pip:#}\nand without pip"))?;
        }
        let Some(wheel) = fs::read_dir(&partial)?.flatten().map(|entry| entry.path()).next() else {
            bail!("no file came for {package} {version}");
        };
        // A wheel is a zip archive, whose programs are not marked as such.
        let unzip = Command::new("unzip").arg("-q").arg(&wheel).current_dir(&partial).output();
        if !unzip.is_ok_and(|done| done.status.success()) {
            let mut python = Command::new("python3");
            python.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&partial);
            output(&mut python).context("neither `unzip` nor `python3` unpacks it")?;
        }
        let program = partial.join("nvidia/cu13/bin").join(name);
        make_executable(&program)
            .with_context(|| format!("{} is not in the package", program.display()))?;
        Program::at(program.clone())?;
        // Only now, and in one step, under the name that `find` looks for.
        fs::create_dir_all(done.parent().unwrap_or(root))?;
        fs::rename(program, &done)?;
        fs::remove_dir_all(partial)?;
        Program::at(done)
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

    fn with_curl(&self, folder: &Path) -> Result<()> {
        let wheel = self.wheels.iter().find(|(arch, ..)| *arch == env::consts::ARCH);
        let Some((_, address, digest)) = wheel else {
            bail!("NVIDIA has no {} for {}", self.name, env::consts::ARCH);
        };
        let file = folder.join("program.whl");
        let mut curl = Command::new("curl");
        curl.args(["--fail", "--silent", "--show-error", "--location", "--retry", "3", "--output"]);
        curl.arg(&file).arg(format!("https://files.pythonhosted.org/packages/{address}"));
        output(&mut curl)?;
        let sum = output(Command::new("sha256sum").arg(&file))?;
        ensure!(sum.starts_with(digest), "the downloaded file is not PyPI's: SHA-256 {sum}");
        Ok(())
    }
}

impl Program {
    fn at(path: PathBuf) -> Result<Program> {
        let said = output(Command::new(&path).arg("--version"))?;
        let release = release(&said)?;
        Ok(Program { path, release })
    }
}

/// The release that a program names, where it is new enough.
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
    use super::*;

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
