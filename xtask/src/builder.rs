//! Builds a kernel crate, and checks the PTX.

use std::{
    collections::HashSet,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, BufRead, BufReader, IsTerminal, Read, stderr},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    check,
    declaration::Declaration,
    environment::{note, workspace_root},
    plain::plain,
    ptx::Module,
    target::Target,
    toolchain::{self, Toolchain},
};

/// Memory operations that Rust cannot express, as LLVM text. It is linked into every kernel crate.
const DEVICE_LIBRARY: &str = include_str!("../../gpu/simt/src/device.ll");

/// The build folder, relative to the workspace. It is separate from the outer cargo's, which is
/// locked while this program runs. It ignores `CARGO_TARGET_DIR`, for two reasons. The result has
/// the same name in every checkout, and these may share that folder. And the device library must
/// have the same path relative to the workspace on every machine.
pub(crate) const BUILD_FOLDER: &str = "target/ptx";

/// rustc's name for NVIDIA's GPUs.
const TRIPLE: &str = "nvptx64-nvidia-cuda";

/// Builds a kernel crate: a library crate for `nvptx64-nvidia-cuda` with kernels marked by
/// `#[kernel]`. What clones of a builder print of the crate is printed once: a kernel that does not
/// compile is an error for every target.
#[derive(Clone, Debug)]
pub struct PtxBuilder {
    krate: PathBuf,
    target: Target,
    toolchain: Option<Toolchain>,
    offline: bool,
    printed: Printed,
}

/// The compiler's messages that were printed, without colours.
type Printed = Arc<Mutex<HashSet<String>>>;

impl PtxBuilder {
    /// A builder for the crate in a folder, for [`Target::SM_80`].
    pub fn new(krate: impl Into<PathBuf>) -> Self {
        let (krate, printed) = (krate.into(), Printed::default());
        PtxBuilder { krate, target: Target::SM_80, toolchain: None, offline: false, printed }
    }

    /// The GPU to build for.
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// The compiler. By default it is [found](toolchain::find), which may download one into
    /// `device-toolchain` in the target folder.
    pub fn toolchain(mut self, toolchain: Toolchain) -> Self {
        self.toolchain = Some(toolchain);
        self
    }

    /// Whether not to use the network. Then a missing tool is an error.
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Builds the crate and [checks](check::check) the PTX. A message of the compiler is printed
    /// the first time alone: make a new builder for another attempt.
    ///
    /// # Errors
    /// [`ToolchainAbsent`](crate::ToolchainAbsent) as the source, if there is no toolchain; a crate
    /// that does not compile; PTX that breaks rules, with every broken rule.
    pub fn build(&self) -> Result<Ptx> {
        let root = workspace_root(&self.krate)?;
        let toolchain = match &self.toolchain {
            Some(toolchain) => toolchain,
            None => &toolchain::find(&root, self.offline)?,
        };
        let file = self.compile(&root, toolchain)?;
        let raw =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ptx::finish(&without_folders(raw, &root, toolchain), self.target, toolchain.compiler())
            .with_context(|| format!("wrong PTX from the compiler, {}", file.display()))
    }

    /// Runs cargo. Returns the file that the compiler wrote.
    fn compile(&self, root: &Path, toolchain: &Toolchain) -> Result<PathBuf> {
        let library = write_device_library(root)?;
        // Each target has its own folder. The result's name has no hash, so in a common folder
        // cargo would take one target's PTX for the other's.
        let folder = root.join(BUILD_FOLDER).join(self.target.cpu());
        let results = folder.join(TRIPLE).join("release");
        // Cargo copies the result even if nothing has changed. So old files can be removed before,
        // and the files afterwards are of this build.
        if results.is_dir() {
            for old in ptx_files(&results)? {
                fs::remove_file(&old)
                    .with_context(|| format!("cannot remove {}", old.display()))?;
            }
        }

        let mut cargo = toolchain.cargo()?;
        cargo.current_dir(&self.krate);
        cargo.args(["rustc", "--release", "--lib", "--crate-type", "cdylib"]);
        cargo.args(["-Zbuild-std=core", "--target", TRIPLE, "--target-dir"]).arg(folder);
        if self.offline {
            cargo.arg("--offline");
        }
        // For the last crate only (in RUSTFLAGS it would rebuild core). The path is relative to the
        // workspace, where cargo starts rustc: an absolute path would change every symbol's hash.
        cargo.arg("--").arg(format!("-Clink-arg={library}"));
        // An array that a loop indexes is in registers only if the loop is fully unrolled. 8 x 16
        // multiply-adds for 8 k-steps are far above LLVM's threshold.
        cargo.arg("-Cllvm-args=-unroll-threshold=4000");
        cargo.env("RUSTFLAGS", self.target.rustflags());
        // The workspace's profile is for the host's programs. These settings make the kernels
        // independent of it.
        for (key, value) in [
            ("PANIC", "abort"),
            ("DEBUG", "0"),
            ("OPT_LEVEL", "3"),
            ("LTO", "false"),
            ("CODEGEN_UNITS", "1"),
            ("DEBUG_ASSERTIONS", "false"),
            ("OVERFLOW_CHECKS", "false"),
            ("INCREMENTAL", "false"),
        ] {
            cargo.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
        }
        if stderr().is_terminal() {
            cargo.env("CARGO_TERM_COLOR", "always");
        }
        // Cargo's messages must not be in the standard output of a program that prints its results
        // there.
        let mut child =
            cargo.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().with_context(|| {
                format!("cannot run `{}`", cargo.get_program().to_string_lossy())
            })?;
        if let Some(messages) = child.stderr.take() {
            pass_on(messages, &self.printed, note);
        }
        let status = child.wait().context("cargo was lost")?;
        ensure!(
            status.success(),
            "{} does not compile for {} ({status})",
            self.krate.display(),
            self.target.cpu()
        );

        let mut found = ptx_files(&results)?;
        match found.pop() {
            Some(file) if found.is_empty() => Ok(file),
            _ => bail!("not one PTX file in {}: is the crate a library?", results.display()),
        }
    }
}

/// Writes the device library to the build folder. Returns its path relative to the workspace.
fn write_device_library(root: &Path) -> Result<String> {
    // Cargo does not read the linker's arguments. With the content's hash in the name a changed
    // library changes the argument, so cargo builds again.
    let mut hasher = DefaultHasher::new();
    DEVICE_LIBRARY.hash(&mut hasher);
    let path = format!("{BUILD_FOLDER}/device-{:016x}.ll", hasher.finish());
    fs::create_dir_all(root.join(BUILD_FOLDER))
        .and_then(|()| fs::write(root.join(&path), DEVICE_LIBRARY))
        .with_context(|| format!("cannot write {}", root.join(&path).display()))?;
    Ok(path)
}

/// The PTX files of a folder.
///
/// # Errors
/// A folder that cannot be read: of one that is not there nothing can be told.
pub(crate) fn ptx_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>();
    let mut paths: Vec<PathBuf> =
        read().with_context(|| format!("cannot read the folder {}", folder.display()))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    Ok(paths)
}

/// Passes on cargo's messages, each of the compiler's only once, and without one that nobody can
/// act on: that the PTX version is an unstable target feature. The count of warnings is also left
/// out if that is the only one.
fn pass_on(messages: impl Read, printed: &Mutex<HashSet<String>>, mut print: impl FnMut(&str)) {
    // A message of the compiler: lines up to an empty one. As printed, and without colours.
    let (mut message, mut plain) = (String::new(), String::new());
    let mut pass_on = |message: &mut String, plain: &mut String| {
        let is_known = plain.contains("unstable feature specified for `-Ctarget-feature`: `ptx");
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = plain.is_empty() || printed.insert(plain.trim_end().to_owned());
        if is_new && !is_known {
            print(message);
        }
        (message.clear(), plain.clear())
    };
    for line in BufReader::new(messages).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let text = without_colours(&line);
        if text.starts_with("warning: `") && text.contains("generated 1 warning") {
            continue;
        }
        if is_progress(&text) {
            pass_on(&mut message, &mut plain);
            message = format!("{line}\n");
            pass_on(&mut message, &mut plain);
            continue;
        }
        message += &format!("{line}\n");
        plain += &format!("{text}\n");
        if text.trim().is_empty() {
            pass_on(&mut message, &mut plain);
        }
    }
    pass_on(&mut message, &mut plain);
}

/// Whether a line is one of cargo's own on what it does, which ends a word in the twelfth column:
/// `   Compiling gpu v0.1.0`.
fn is_progress(line: &str) -> bool {
    line.split_at_checked(12).is_some_and(|(verb, rest)| {
        let verb = verb.trim_start();
        !verb.is_empty() && verb.chars().all(|c| c.is_ascii_alphabetic()) && rest.starts_with(' ')
    })
}

fn without_colours(line: &str) -> String {
    let mut plain = String::new();
    let mut in_sequence = false;
    for c in line.chars() {
        match c {
            '\x1b' => in_sequence = true,
            _ if in_sequence => in_sequence = !c.is_ascii_alphabetic(),
            _ => plain.push(c),
        }
    }
    plain
}

/// The PTX without the build machine's folders, if there are any: the same source must give the
/// same bytes everywhere.
fn without_folders(mut text: String, root: &Path, toolchain: &Toolchain) -> String {
    for folder in [Some(root), toolchain.folder()].into_iter().flatten() {
        if let Some(folder) = folder.to_str().filter(|folder| folder.len() > 1) {
            text = text.replace(&format!("{folder}/"), "");
        }
    }
    text
}

/// Built and checked PTX, with the directives that its kernels declare.
#[derive(Clone, Debug)]
pub struct Ptx {
    pub(crate) text: String,
    target: Target,
    pub(crate) module: Module,
}

impl Ptx {
    /// Checks the compiler's output, and adds directives and the header.
    pub(crate) fn finish(raw: &str, target: Target, compiler: &str) -> Result<Ptx> {
        let module = Module::parse(raw).context("the compiler's PTX cannot be read")?;
        let problems = check::check(&module, &target);
        if !problems.is_empty() {
            let count = problems.len();
            bail!("{count} rules broken\n  {}", problems.join("\n  "));
        }
        let (mut with_directives, mut done) = (String::new(), 0);
        for kernel in module.kernels() {
            let declaration = check::declaration(kernel);
            with_directives += &raw[done..kernel.text.start];
            let head = &raw[kernel.text.start..kernel.params_end];
            with_directives += &align_tensor_maps(head, declaration);
            with_directives += &declaration.map(|d| d.directives()).unwrap_or_default();
            done = kernel.params_end;
        }
        with_directives += &raw[done..];
        let text = format!("{COMPILER}{compiler}\n{}", plain(&with_directives));
        Ptx::written(&text, target)
    }

    /// A file's text, as [`finish`](Self::finish) has made it.
    pub(crate) fn written(text: &str, target: Target) -> Result<Ptx> {
        let module = Module::parse(text).context("the PTX cannot be read")?;
        Ok(Ptx { text: text.to_owned(), target, module })
    }

    /// The file's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The target.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The text with these kernels only.
    pub(crate) fn with_kernels(&self, stays: impl Fn(&str) -> bool) -> String {
        let (mut text, mut done) = (String::new(), 0);
        for kernel in self.module.kernels().filter(|kernel| !stays(&kernel.name)) {
            text += &self.text[done..kernel.text.start];
            done = kernel.text.end;
        }
        text += &self.text[done..];
        // A declaration of dynamic shared memory that no kernel uses.
        let declares = |line: &&str| line.starts_with(".extern .shared ");
        let Some(line) = text.lines().find(declares).map(str::to_owned) else { return text };
        let name = line.split_whitespace().last().and_then(|word| word.split('[').next());
        match name.is_some_and(|name| text.matches(name).count() > 1) {
            true => text,
            false => text.replacen(&line, "", 1),
        }
    }

    /// The PTX without these kernels.
    pub(crate) fn without(&self, goes: impl Fn(&str) -> bool) -> Result<Ptx> {
        let text = self.with_kernels(|kernel| !goes(kernel));
        let module = Module::parse(&text).context("the PTX cannot be read without them")?;
        Ok(Ptx { text, target: self.target, module })
    }

    /// The parsed text.
    pub fn module(&self) -> &Module {
        &self.module
    }
}

/// The head of a kernel in which tensor map parameters are aligned as TMA requires. Rust cannot
/// align a parameter.
fn align_tensor_maps(head: &str, declaration: Option<&Declaration>) -> String {
    let mut head = head.to_owned();
    let Some(Declaration { name, params, .. }) = declaration else { return head };
    let is_map = |ty: &str| {
        ["tensormap.", "tensormaps.", "tensormapmut."].iter().any(|start| ty.starts_with(start))
    };
    for (number, _) in params.iter().enumerate().filter(|(_, ty)| is_map(ty)) {
        let param = format!(" .b8 {name}_param_{number}[");
        head = head.replace(&format!(".align 8{param}"), &format!(".align 64{param}"));
    }
    head
}

/// The start of the first line, before the compiler. It is short: every clone carries it once a
/// kernel.
const COMPILER: &str = "// Generated by `cargo xtask build-ptx`. ";

/// The compiler in a PTX file's header.
pub fn compiler_of(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix(COMPILER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &str = "\
.version 8.3
.target sm_90a
.address_size 64

.visible .entry first(
	.param .u32 first_param_0
)
{
	// simt.kernel name=first block=32,4,1 barriers=0 min_blocks=2 cluster=2,1,1 params=u32
	ret;
}
.visible .entry second()
{
	// simt.kernel name=second params=
	ret;
}
";

    #[test]
    fn directives_go_after_the_parameters() {
        let ptx = Ptx::finish(RAW, Target::SM_90A, "rustc 1.96.0, LLVM 22.1").unwrap();
        let start = "\
// Generated by `cargo xtask build-ptx`. rustc 1.96.0, LLVM 22.1
.version 8.3
";
        assert!(ptx.text().starts_with(start), "{}", ptx.text());
        assert_eq!(compiler_of(ptx.text()), Some("rustc 1.96.0, LLVM 22.1"));
        let directives: Vec<_> = ptx.module().kernels().map(|k| k.directives.as_str()).collect();
        let first = ".reqntid 32, 4, 1 .minnctapersm 2 .explicitcluster .reqnctapercluster 2, 1, 1";
        assert_eq!(directives, [first, ""]);
        assert!(ptx.text().contains("simt.kernel name=first"), "the host reads the declarations");
    }

    #[test]
    fn broken_rules_are_errors_all_of_them() {
        let raw = RAW.replace("barriers=0", "barriers=1").replace("name=second", "name=third");
        let error = Ptx::finish(&raw, Target::SM_90A, "").unwrap_err().to_string();
        assert!(error.contains("`first`") && error.contains("`second`"), "{error}");
    }

    #[test]
    fn targets() {
        assert_eq!(Target::SM_90A.compute_capability(), Some(90));
        assert_eq!(Target::SM_80.compute_capability(), Some(80));
        assert_eq!(Target::new("sm_120", (8, 7)).compute_capability(), Some(120));
        assert!(Target::SM_80.rustflags().contains("+ptx71"));
    }

    #[test]
    fn what_the_compiler_says_of_every_target_is_printed_once() {
        let of_all = "\x1b[31merror\x1b[0m: no `x`\n  --> k.rs:1:9\n   |\n1  | x\n   | ^\n\n";
        let of_one = "error: no `y`\n\n";
        let known = "warning: unstable feature specified for `-Ctarget-feature`: `ptx87`\n  |\n\n";
        let count = "warning: `k` (lib) generated 1 warning\n";
        let (progress, last) = ("   Compiling k v0.1.0\n", "error: could not compile `k` (lib)\n");
        let printed = Printed::default();
        let pass_on = |messages: &str| {
            let mut text = String::new();
            pass_on(messages.as_bytes(), &printed, |message| text += message);
            text
        };
        let first = [progress, known, of_all, count, last].concat();
        assert_eq!(pass_on(&first), [progress, of_all, last].concat());
        let second = [progress, known, of_all, of_one, count, last].concat();
        assert_eq!(pass_on(&without_colours(&second)), [progress, of_one].concat());
    }

    #[test]
    fn colours_are_seen_through() {
        assert_eq!(without_colours("\x1b[1m\x1b[33mwarning\x1b[0m: `k`"), "warning: `k`");
    }
}
