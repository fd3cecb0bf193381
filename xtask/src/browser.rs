//! `cargo xtask browser`: the pages with pictures, opened in headless Chromium.
//!
//! Node.js and puppeteer-core drive the browser (`tests/browser`). A machine that lacks one of them
//! skips the test, and says so; in CI that is a failure.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    environment::{output, say, shown, target_folder},
    site::Host,
};

/// The options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Open the pages of the built site that have pictures, too.
    pub site: bool,
    /// A page of every rung, not only of some.
    pub all: bool,
    /// Keep a picture of each page in `target/browser/screenshots`.
    pub screenshots: bool,
    /// Take the command that `cargo test --workspace` has left in the target folder.
    pub of_tests: bool,
}

/// Names of the browser, of which the first on `PATH` counts. The variable `CHROMIUM` names
/// another.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Rungs that stand for all: of each kind of picture one.
const SOME: [&str; 6] = [
    "basic",
    "tiled_conflicts",
    "async_copy",
    "tensor_ldmatrix",
    "tensor_producer",
    "tensor_tma_store",
];

/// Opens pages of rungs of the course, and one of a profile.
///
/// # Errors
/// What is wrong with a page. In CI, a missing program.
pub fn run(root: &Path, options: Options) -> Result<()> {
    let (chromium, npm, node) = match programs() {
        Ok(programs) => programs,
        Err(missing) if env::var_os("CI").is_some_and(|ci| !ci.is_empty()) => {
            bail!("{missing}: CI must have it")
        }
        Err(missing) => {
            return say(&format!("browser: SKIPPED, no page was opened: {missing}\n"));
        }
    };
    let folder = target_folder(root).join("browser");
    let (pages, screenshots) = (folder.join("pages"), folder.join("screenshots"));
    for folder in [&pages, &screenshots] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut files = write_pages(root, &pages, options)?;
    if options.site {
        files.extend(pages_of_the_site(root)?);
    }
    install(root, &folder, &npm)?;
    let mut command = Command::new(node);
    command.current_dir(&folder).arg("pages.mjs").arg(chromium);
    command.arg(if options.screenshots { &screenshots } else { Path::new("-") });
    let status = command.args(files).status().context("cannot run node")?;
    ensure!(status.success(), "a page is wrong in the browser: see above");
    if options.screenshots {
        say(&format!("browser: screenshots in {}\n", shown(&screenshots, root)))?;
    }
    Ok(())
}

/// The browser, npm and Node.js; or what is missing, and what brings it.
fn programs() -> Result<(PathBuf, PathBuf, PathBuf), String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        env::split_paths(&path).map(|folder| folder.join(name)).find(|place| place.is_file())
    };
    let named = env::var_os("CHROMIUM").map(PathBuf::from);
    let chromium = named.or_else(|| BROWSERS.iter().find_map(|name| find(name)));
    let lacks = |what: &str, package: &str| {
        format!("there is no {what} on PATH (the package {package} of Debian has it)")
    };
    Ok((
        chromium.filter(|path| path.is_file()).ok_or_else(|| lacks("Chromium", "chromium"))?,
        find("npm").ok_or_else(|| lacks("npm", "npm"))?,
        find("node").ok_or_else(|| lacks("Node.js", "nodejs"))?,
    ))
}

/// Pages of rungs, and of a profile.
fn write_pages(root: &Path, folder: &Path, options: Options) -> Result<Vec<PathBuf>> {
    let host = Host::build(root, options.of_tests)?;
    let path = |name: &str| folder.join(format!("{name}.html"));
    let write = |arguments: &[&str], path: &Path| {
        let path = path.to_str().context("the target folder's name is no text")?;
        host.run(&[arguments, &["--html", path]].concat())
    };
    let mut files = Vec::new();
    for name in host.rungs()?.into_iter().filter(|name| options.all || SOME.contains(&&**name)) {
        write(&["explain", &name], &path(&name))?;
        files.push(path(&name));
    }
    let sizes = ["--m", "40", "--n", "33", "--k", "20"];
    let profile = path("profile");
    write(&[&["profile", "--kernel", "tiled_conflicts"], &sizes[..]].concat(), &profile)?;
    files.push(profile);
    Ok(files)
}

/// The pages of the built site that have a picture.
fn pages_of_the_site(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = target_folder(root).join("site/book/course");
    let entries = fs::read_dir(&folder).with_context(|| {
        format!("cannot read {}: `cargo xtask site` makes it", folder.display())
    })?;
    let mut pages = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_page = path.extension().is_some_and(|extension| extension == "html");
        if is_page && fs::read_to_string(&path)?.contains("<div class=\"trace\">") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// Brings puppeteer-core into the folder, in the version of the lock file, unless it is there.
fn install(root: &Path, folder: &Path, npm: &Path) -> Result<()> {
    let from = root.join("tests/browser");
    let copy = |name: &str| {
        fs::copy(from.join(name), folder.join(name)).with_context(|| format!("cannot copy {name}"))
    };
    copy("pages.mjs")?;
    let (lock, known) = (from.join("package-lock.json"), folder.join("package-lock.json"));
    let is_there = folder.join("node_modules/puppeteer-core").is_dir();
    if is_there && fs::read(&lock).ok() == fs::read(&known).ok() {
        return Ok(());
    }
    copy("package.json")?;
    copy("package-lock.json")?;
    let mut command = Command::new(npm);
    command.current_dir(folder).args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    output(&mut command).map(|_| ()).inspect_err(|_| {
        // Not taken for complete next time.
        let _ = fs::remove_file(&known);
    })
}
