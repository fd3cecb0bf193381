//! The device compiler from Debian's packages, installed or unpacked in a folder.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    download,
    environment::{note, output, prepend},
    version::{OLDEST, Version, leading_numbers},
};

/// What to install: the compiler, core's source, LLVM's programs.
pub(crate) const PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", LLVM];
const LLVM: &str = "llvm-22";
const LIB_LLVM: &str = "libllvm22";

/// The content of the stamp of a finished folder. After a change here every machine unpacks again.
const STAMP: &str = "rustc-web rust-web-src llvm-22, 1\n";

/// A file system with Debian's compiler: the machine's own, or unpacked in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: PathBuf,
}

/// The compiler of the installed packages.
pub(crate) fn installed() -> Result<Tree> {
    Tree::at("/".into())
}

/// The compiler of packages that are unpacked in `folder`. Missing packages are downloaded.
pub(crate) fn private(folder: &Path, offline: bool) -> Result<Tree> {
    if let Some(tree) = unpacked(folder) {
        return tree;
    }
    ensure!(!offline, "not there yet, and --offline forbids to download it");
    ensure!(can_unpack(), "this is not a Debian machine");
    download::once(&place(folder), || unpacked(folder), |partial| unpack(partial, folder))?
}

/// Downloads the packages and unpacks them in a folder of their own. Returns the folder of their
/// content.
fn unpack(partial: &Path, folder: &Path) -> Result<PathBuf> {
    let [packages, tree] = ["packages", "tree"].map(|name| partial.join(name));
    for path in [&packages, &tree] {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    }
    // First with the system's package lists. If they are empty or old, with lists in the folder,
    // because only root can refresh the system's. Package lists are signed, and apt refuses a
    // package with another hash. The lists are not kept: the next download fetches new ones.
    if let Err(reason) = Apt::of_the_system().download(&packages, folder) {
        note(&format!("{reason:#}: fetching Debian's package lists\n"));
        Apt::with_own_lists(&partial.join("apt"))?.download(&packages, folder)?;
    }
    let mut archives: Vec<_> =
        fs::read_dir(&packages)?.flatten().map(|entry| entry.path()).collect();
    archives.sort();
    for archive in archives.iter().filter(|path| path.extension().is_some_and(|e| e == "deb")) {
        output(Command::new("dpkg").arg("-x").args([archive, &tree]))?;
    }
    Tree::at(tree.clone())?.version().context("the unpacked compiler does not run")?;
    fs::write(tree.join("complete"), STAMP)?;
    Ok(tree)
}

/// The folder for unpacked packages.
fn place(folder: &Path) -> PathBuf {
    folder.join("debian")
}

/// The compiler of packages that were unpacked in `folder`. `None` if none were.
pub(crate) fn unpacked(folder: &Path) -> Option<Result<Tree>> {
    let root = place(folder);
    let is_whole = fs::read_to_string(root.join("complete")).is_ok_and(|content| content == STAMP);
    is_whole.then(|| Tree::at(root))
}

/// Whether this machine has the programs for downloading and unpacking packages.
pub(crate) fn can_unpack() -> bool {
    Path::new("/etc/debian_version").exists() && on_path("apt-get") && on_path("dpkg")
}

impl Tree {
    /// The tree below `root`, if it has everything.
    fn at(root: PathBuf) -> Result<Tree> {
        let tree = Tree { root };
        let mut missing = Vec::new();
        for (package, file) in [
            (PACKAGES[0], tree.rustc()),
            (PACKAGES[1], tree.source().join("library/core/Cargo.toml")),
            (PACKAGES[2], tree.root.join("usr/lib").join(LLVM).join("bin/llc")),
        ] {
            if !file.exists() {
                missing.push(format!("{package} ({} is not there)", file.display()));
            }
        }
        ensure!(missing.is_empty(), "not installed: {}", missing.join(", "));
        Ok(tree)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn rustc(&self) -> PathBuf {
        self.root.join("usr/bin/rustc")
    }

    /// The source of core and of the compiler's tools.
    pub(crate) fn source(&self) -> PathBuf {
        self.root.join("usr/lib/rustlib/src/rust")
    }

    /// The folder with LLVM's programs under their plain names.
    pub(crate) fn llvm(&self, version: &Version) -> PathBuf {
        self.root.join(format!("usr/lib/llvm-{}/bin", version.llvm))
    }

    /// Makes a cargo use this tree's compiler and libraries.
    pub(crate) fn prepare(&self, command: &mut Command) -> Result<()> {
        command.env("RUSTC", self.rustc());
        if self.root != Path::new("/") {
            let triple = format!("{}-linux-gnu", env::consts::ARCH);
            let libraries = self.root.join("usr/lib").join(triple);
            command.env("LD_LIBRARY_PATH", prepend("LD_LIBRARY_PATH", &[libraries])?);
        }
        Ok(())
    }

    /// The compiler's version. Checks that LLVM's programs have the version of its bitcode.
    pub(crate) fn version(&self) -> Result<Version> {
        let mut rustc = Command::new(self.rustc());
        self.prepare(&mut rustc)?;
        let version = Version::of(&mut rustc)?;
        let llc = self.llvm(&version).join("llc");
        ensure!(
            llc.exists(),
            "the compiler needs llvm-{}: {} is not there",
            version.llvm,
            llc.display()
        );
        Ok(version)
    }
}

/// apt, run as any user, without changes to the system.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn of_the_system() -> Apt {
        // As root, apt would download as a user of its own, who cannot write here.
        Apt { options: vec!["-o".into(), "APT::Sandbox::User=root".into()] }
    }

    fn with_own_lists(folder: &Path) -> Result<Apt> {
        let mut apt = Apt::of_the_system();
        for (option, path) in [("Dir::State", "state"), ("Dir::Cache", "cache")] {
            apt.options.extend(["-o".into(), format!("{option}={}", folder.join(path).display())]);
        }
        // The installed packages are still the system's.
        apt.options.extend(["-o".into(), "Dir::State::status=/var/lib/dpkg/status".into()]);
        for path in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(path))
                .with_context(|| format!("cannot create {}", folder.join(path).display()))?;
        }
        output(apt.command("apt-get").args(["-qq", "update"]))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Downloads the packages into a folder. Before, it prints their size and where they will be
    /// unpacked.
    fn download(&self, packages: &Path, place: &Path) -> Result<()> {
        let names = self.names()?;
        let mut command = self.command("apt-get");
        command.args(["-q", "download"]).args(&names).current_dir(packages);
        let offers =
            output(self.command("apt-get").args(["download", "--print-uris"]).args(&names))?;
        note(&format!(
            "downloading Debian's {} and what they need into {}: {} MB, 1 GB unpacked, once (--offline \
             forbids it)\n",
            PACKAGES.join(", "),
            place.display(),
            total_bytes(&offers).div_ceil(1_000_000)
        ));
        output(&mut command)?;
        Ok(())
    }

    /// The packages to unpack: the three, their libraries, and LLVM's dependencies that are not
    /// installed.
    fn names(&self) -> Result<Vec<String>> {
        let mut policy = self.command("apt-cache");
        let policies = output(policy.arg("policy").args(PACKAGES))?;
        let compiler = candidate(&policies, PACKAGES[0]);
        let version = compiler.and_then(leading_numbers);
        for package in PACKAGES {
            if candidate(&policies, package).is_none() {
                bail!("Debian's package sources here have no {package}");
            }
        }
        let Some((major, minor)) = version.filter(|version| *version >= OLDEST) else {
            bail!(
                "Debian's package sources here have only {} {}, {}.{} is needed",
                PACKAGES[0],
                compiler.unwrap_or_default(),
                OLDEST.0,
                OLDEST.1
            );
        };
        let mut names: Vec<String> = PACKAGES.map(Into::into).into();
        names.push("libstd-rust-web-dev".into());
        names.push(format!("libstd-rust-web-{major}.{minor}"));
        names.push(LIB_LLVM.into());
        let mut simulation = self.command("apt-get");
        simulation.args(["install", "--simulate", "--no-install-recommends", LIB_LLVM]);
        // apt fails on a machine with conflicting packages. The packages may still be complete.
        for name in output(&mut simulation).iter().flat_map(|text| to_be_installed(text)) {
            if !names.iter().any(|known| known == name) {
                names.push(name.into());
            }
        }
        Ok(names)
    }
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The version of a package that `apt-cache policy` would install.
fn candidate<'a>(policies: &'a str, package: &str) -> Option<&'a str> {
    let mut lines = policies.lines().skip_while(|line| line.strip_suffix(':') != Some(package));
    let version = lines.find_map(|line| line.trim().strip_prefix("Candidate:"))?.trim();
    (version != "(none)").then_some(version)
}

/// The packages that `apt-get install --simulate` would install.
fn to_be_installed(simulation: &str) -> impl Iterator<Item = &str> {
    simulation.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next())
}

/// The bytes that `apt-get download --print-uris` would download.
fn total_bytes(offers: &str) -> u64 {
    let size = |line: &str| line.split(' ').nth(2)?.parse::<u64>().ok();
    offers.lines().filter_map(size).sum()
}

#[cfg(test)]
mod tests {
    use std::{io, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::version::VERSION_TEXT;

    const POLICIES: &str = "\
rustc-web:
  Installed: (none)
  Candidate: 1.96.0+dfsg1-1~deb12u2
  Version table:
     1.85.0+dfsg3-1~deb12u3 500
rust-web-src:
  Installed: (none)
  Candidate: (none)
";

    #[test]
    fn apts_answers_are_read() {
        assert_eq!(candidate(POLICIES, "rustc-web"), Some("1.96.0+dfsg1-1~deb12u2"));
        assert_eq!(candidate(POLICIES, "rust-web-src"), None);
        assert_eq!(candidate(POLICIES, "llvm-22"), None);
        let simulation = "NOTE: only a simulation\nInst libz3-4 (4.8.12 Debian:12 [amd64])\n\
                          Inst libllvm22 (1:22.1.8 Debian)\nConf libz3-4 (4.8.12)\n";
        assert_eq!(to_be_installed(simulation).collect::<Vec<_>>(), ["libz3-4", "libllvm22"]);
        let offers =
            "'http://a/b_1.deb' b_1.deb 1000 SHA256:00\n'http://a/c_1.deb' c_1.deb 24 SHA256:11\n";
        assert_eq!(total_bytes(offers), 1024);
    }

    /// A machine's file system with empty files in the necessary places.
    fn machine(rustc: &str) -> tempfile::TempDir {
        let machine = tempfile::tempdir().unwrap();
        let root = machine.path();
        for folder in ["usr/bin", "usr/lib/rustlib/src/rust/library/core", "usr/lib/llvm-22/bin"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("usr/lib/rustlib/src/rust/library/core/Cargo.toml"), "").unwrap();
        fs::write(root.join("usr/lib/llvm-22/bin/llc"), "").unwrap();
        let script = format!("#!/bin/sh\ncat <<'END'\n{rustc}END\n");
        fs::write(root.join("usr/bin/rustc"), script).unwrap();
        fs::set_permissions(root.join("usr/bin/rustc"), fs::Permissions::from_mode(0o755)).unwrap();
        // A child process of another test may have inherited the open file until it runs its own
        // program. Until then this one cannot be run.
        let busy = |error: io::Error| error.kind() == io::ErrorKind::ExecutableFileBusy;
        while Command::new(root.join("usr/bin/rustc")).output().is_err_and(busy) {}
        machine
    }

    #[test]
    fn a_machine_with_the_packages_is_recognised() {
        let root = machine(VERSION_TEXT);
        let version = Tree::at(root.path().into()).unwrap().version().unwrap();
        assert_eq!((version.release.as_str(), version.llvm), ("1.96.0", 22));
    }

    #[test]
    fn what_is_missing_is_named() {
        let root = machine(VERSION_TEXT);
        fs::remove_dir_all(root.path().join("usr/lib/rustlib")).unwrap();
        fs::remove_dir_all(root.path().join("usr/lib/llvm-22")).unwrap();
        let error = Tree::at(root.path().into()).unwrap_err().to_string();
        assert!(error.contains("rust-web-src") && error.contains("llvm-22"), "{error}");
        assert!(!error.contains("rustc-web"), "{error}");
    }

    #[test]
    fn an_old_compiler_and_another_llvm_are_refused() {
        for (from, to, words) in [
            ("release: 1.96.0", "release: 1.85.0", "too old"),
            ("LLVM version: 22", "LLVM version: 23", "needs llvm-23"),
        ] {
            let root = machine(&VERSION_TEXT.replace(from, to));
            let error = Tree::at(root.path().into()).unwrap().version().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn offline_downloads_nothing_and_a_half_folder_is_no_toolchain() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("debian/usr/bin")).unwrap();
        fs::write(folder.path().join("debian/usr/bin/rustc"), "").unwrap();
        let error = private(folder.path(), true).unwrap_err().to_string();
        assert!(error.contains("--offline forbids"), "{error}");
    }
}
