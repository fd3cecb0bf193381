//! `cargo xtask new`: a crate with a kernel, its test and its PTX, copied from `xtask/template`.

use std::{
    fmt::{self, Write as _},
    fs,
    io::ErrorKind,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf, absolute},
};

use anyhow::{Context, Result, ensure};

use crate::environment::say;

/// The crate that is copied, relative to the workspace. It is a member of the workspace, so its
/// tests run with all others.
pub(crate) const TEMPLATE: &str = "xtask/template";

/// Its name, which is replaced in every file and in the names of files.
const NAME: &str = "mykernels";

/// What its CI calls.
const WORKFLOW: &str = ".github/workflows/check.yml";

const FILES: [&str; 9] = [
    WORKFLOW,
    ".gitignore",
    "Cargo.toml",
    "examples/transpose.rs",
    "ptx/mykernels.sm_80.ptx",
    "ptx/mykernels.sm_90a.ptx",
    "src/kernels.rs",
    "src/lib.rs",
    "tests/transpose.rs",
];

/// Where the template's manifest has the packages of this repository, relative to the template.
const PACKAGES: [&str; 2] = ["host/lib", "gpu/simt"];

/// Names of other crates that the new one is compiled with, and of its own example and test: as
/// they are in the source, with `_` for `-`. (What its files import may be its name: they write
/// `::` before it.)
const TAKEN: &str = "\
    alloc core cuda_dyn gpu_gemm gpu_gemm_kernels gpu_occupancy gpu_simt gpu_simt_macros \
    proc_macro ptx_specialise simt std test transpose";

/// Words that `syn` takes for names.
const WORDS: [&str; 1] = ["gen"];

/// Names that every file has without importing them. A crate of such a name hides the type.
const PRELUDE: &str = "\
    AsMut AsRef Box Clone Copy Default DoubleEndedIterator Drop Eq ExactSizeIterator Extend Fn \
    FnMut FnOnce From FromIterator Future Into IntoFuture IntoIterator Iterator Option Ord \
    PartialEq PartialOrd Result Send Sized String Sync ToOwned ToString TryFrom TryInto Unpin Vec \
    bool char f16 f32 f64 f128 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize";

/// The options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The crate's folder. It does not exist, or is empty.
    pub folder: PathBuf,
    /// The crate's name. If none is given, the folder's.
    pub name: Option<String>,
    /// Depend on the published packages, not on this checkout.
    pub published: bool,
}

/// A folder or a name that no crate can have.
#[derive(Debug)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Writes the crate.
///
/// # Errors
/// [`Refused`] for a folder that has files already, and for a name that is none of a crate: nothing
/// is written. Errors of files.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let folder =
        absolute(&options.folder).with_context(|| format!("DIR = {}", options.folder.display()))?;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    check_name(&name)?;
    check_folder(&folder)?;
    let root = root.canonicalize().with_context(|| format!("no folder {}", root.display()))?;
    // All files are read before the first is written.
    let mut files = Vec::new();
    for file in FILES {
        let path = root.join(TEMPLATE).join(file);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = match file {
            "Cargo.toml" => manifest(&root, &text, &name, options.published)?,
            WORKFLOW => workflow(&root, &text, options.published)?,
            // The files are named after the package, as `build-ptx` names them. In the source a
            // crate's name has no dashes.
            "src/lib.rs" => {
                // What replaces a name is not replaced again.
                let krate = name.replace('-', "_");
                let path = format!("ptx/{NAME}.");
                let parts = text.split(&path).map(|part| part.replace(NAME, &krate));
                parts.collect::<Vec<_>>().join(&format!("ptx/{name}."))
            }
            _ => text.replace(NAME, &name.replace('-', "_")),
        };
        files.push((folder.join(file.replace(NAME, &name)), text));
    }
    for (path, text) in &files {
        fs::create_dir_all(path.parent().unwrap_or(path))
            .and_then(|()| fs::write(path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    say(&told(&root, &folder, files.len(), options.published))
}

/// `cargo install` of the package with `cargo gpu-check`.
fn install(root: &Path, published: bool) -> String {
    match published {
        true => concat!("cargo install gpu-simt@", env!("CARGO_PKG_VERSION")).to_owned(),
        false => format!("cargo install --locked --path {}", quoted(&root.join("gpu/simt"))),
    }
}

/// The file of its CI, with the package that the manifest names.
fn workflow(root: &Path, template: &str, published: bool) -> Result<String> {
    let there = "run: cargo install --locked --path ../../gpu/simt\n";
    ensure!(template.contains(there), "{TEMPLATE}/{WORKFLOW} does not say `{}`", there.trim());
    // As a block, in which no letter of a path means anything.
    let here = format!("run: |\n          {}\n", install(root, published));
    Ok(template.replace(there, &here))
}

/// What is said when the files are there.
fn told(root: &Path, folder: &Path, files: usize, published: bool) -> String {
    let shown = quoted(folder);
    let mut text = format!("{shown}: {files} files written. Next, in that folder:\n");
    if published {
        text += "  (once the packages are on crates.io: its manifest asks for them there)\n";
    }
    text += "  cargo test                                     the kernel under the checker\n";
    text += "  cargo gpu-check                                the same, shown as the compiler's errors; once before:\n";
    text += &format!("    {}\n", install(root, published));
    text += "  cargo run --example transpose --features gpu   the kernel on the GPU, or on the CPU without one\n";
    text += "and after a change of a kernel, here:\n";
    let into = quoted(&folder.join("ptx"));
    text + &format!("  cargo xtask build-ptx --crate {shown} --into {into}\n")
}

/// A path as a word of a shell's command.
fn quoted(path: &Path) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(byte);
    let bytes = path.as_os_str().as_bytes();
    match path.to_str() {
        Some(text) if bytes.iter().all(is_plain) => text.to_owned(),
        Some(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        // A terminal would do what a control character says, and other bytes are no text.
        _ => {
            let mut word = "$'".to_owned();
            for byte in bytes {
                match is_plain(byte) {
                    true => word.push(char::from(*byte)),
                    false => _ = write!(word, "\\x{byte:02x}"),
                }
            }
            word + "'"
        }
    }
}

/// A string as TOML has it. (`{:?}` writes `\u{308}`.)
fn toml(text: &str) -> String {
    // As JSON has it, but for one character.
    serde_json::Value::from(text).to_string().replace('\x7f', "\\u007f")
}

/// The manifest with its own name and dependencies.
fn manifest(root: &Path, template: &str, name: &str, published: bool) -> Result<String> {
    let mut text = template.replace(NAME, name);
    for package in PACKAGES {
        let there = format!(", path = \"../../{package}\"");
        ensure!(text.contains(&there), "{TEMPLATE}/Cargo.toml does not say `{there}`");
        let path = root.join(package);
        let path = path.to_str().with_context(|| format!("{}: no UTF-8", path.display()))?;
        let here = if published { String::new() } else { format!(", path = {}", toml(path)) };
        text = text.replace(&there, &here);
    }
    text += "\n# A workspace of its own. In a workspace of yours, remove this line.\n[workspace]\n";
    Ok(text)
}

/// Refuses a folder that has files.
fn check_folder(folder: &Path) -> Result<()> {
    let refused = |what: &str| Err(Refused(format!("DIR = {}: {what}", folder.display())).into());
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            Some(_) => refused("must not exist, or be empty: nothing was written"),
            None => Ok(()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            refused("must not exist, or be an empty folder: nothing was written")
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", folder.display())),
    }
}

/// Refuses a name that is none of a crate.
fn check_name(name: &str) -> Result<(), Refused> {
    let refused =
        |what: &str| Err(Refused(format!("crate name = `{name}`: {what} (--name gives another)")));
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let continues = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-');
    if !begins || !continues {
        return refused(
            "must begin with an ASCII letter, and have ASCII letters, digits, `_` and `-`",
        );
    }
    if name.len() > 64 {
        return refused("must have at most 64 letters");
    }
    let in_source = name.replace('-', "_");
    let is_word = WORDS.contains(&&*in_source) || syn::parse_str::<syn::Ident>(&in_source).is_err();
    if is_word {
        return refused("must not be a word of Rust");
    }
    let is_among = |names: &str| names.split(' ').any(|name| name == in_source);
    if is_among(PRELUDE) {
        return refused("must not be a type or a trait that every file of Rust knows");
    }
    if is_among(TAKEN) {
        return refused("must not be a name that the crate uses already");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::environment::workspace_root;

    #[test]
    fn names_of_crates_are_told_from_others() {
        for name in
            ["mykernels", "a", "my-kernels", "Blur_2", "gpu", "check", "In", "Order", "kernels"]
        {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for (name, what) in [
            ("", "must begin"),
            ("2blur", "must begin"),
            ("_blur", "must begin"),
            ("my kernels", "ASCII letters"),
            ("küche", "ASCII letters"),
            ("../x", "must begin"),
            ("match", "a word of Rust"),
            ("gen", "a word of Rust"),
            ("Self", "a word of Rust"),
            ("Vec", "every file of Rust knows"),
            ("u32", "every file of Rust knows"),
            ("simt", "uses already"),
            ("gpu-gemm", "uses already"),
            ("gpu_simt_macros", "uses already"),
            ("std", "uses already"),
            ("proc-macro", "uses already"),
        ] {
            let error = check_name(name).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(name), "{error}");
        }
        assert!(check_name(&"x".repeat(65)).unwrap_err().to_string().contains("at most 64"));
    }

    #[test]
    fn a_path_is_toml_whatever_its_letters() {
        let template = "a = { path = \"x\", path = \"../../host/lib\" }\nb = { v = 1, path = \"../../gpu/simt\" }";
        // A `u` and two dots by themselves, quotes, a backslash, and characters that TOML escapes.
        for (folder, expected) in [
            ("/tmp/ku\u{308}che", "\"/tmp/ku\u{308}che/gpu/simt\""),
            ("/tmp/a'b \"c\" \\d", r#""/tmp/a'b \"c\" \\d/gpu/simt""#),
            ("/tmp/\u{200d}\u{feff}", "\"/tmp/\u{200d}\u{feff}/gpu/simt\""),
            ("/tmp/\t\u{7f}\u{1b}", r#""/tmp/\t\u007f\u001b/gpu/simt""#),
        ] {
            let text = manifest(Path::new(folder), template, "blur", false).unwrap();
            assert!(text.contains(&format!("path = {expected} }}")), "{text}");
        }
    }

    #[test]
    fn the_printed_command_is_one_that_a_shell_takes() {
        for path in
            ["/tmp/a b", "/tmp/it's", "/tmp/$(id)`id`", "/tmp/ku\u{308}che;#", "/tmp/a\nb\t'\\"]
        {
            let told = told(Path::new("/a"), Path::new(path), 9, false);
            let command = told.lines().last().unwrap().trim();
            assert!(command.starts_with("cargo xtask build-ptx --crate "), "{told}");
            let script = command.replacen("cargo xtask build-ptx", "printf '%s\\0'", 1);
            let said = Command::new("bash").args(["-c", &script]).output().unwrap();
            let said = String::from_utf8(said.stdout).unwrap();
            let words = said.split('\0').collect::<Vec<_>>();
            assert_eq!(words, ["--crate", path, "--into", &format!("{path}/ptx"), ""], "{script}");
        }
        assert_eq!(quoted(Path::new("/tmp/my-kernels_2")), "/tmp/my-kernels_2");
        let bytes = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
        assert_eq!(quoted(bytes), r"$'/tmp/\xff'");
    }

    #[test]
    fn a_crate_has_its_name_and_its_paths() {
        let root = workspace_root(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let of_test = tempfile::tempdir().unwrap();
        let folder = of_test.path().join("blur-2");
        let options = Options { folder: folder.clone(), ..Default::default() };
        run(&root, &options).unwrap();
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        let lib = read("src/lib.rs");
        assert!(lib.contains("include_str!(\"../ptx/blur-2.sm_80.ptx\")"), "{lib}");
        assert!(read("ptx/blur-2.sm_90a.ptx").contains(".entry transpose("));
        assert!(read("tests/transpose.rs").contains("use ::blur_2::checked"));
        let manifest = read("Cargo.toml");
        let simt = format!("path = {:?}", root.join("gpu/simt"));
        assert!(manifest.contains("name = \"blur-2\"") && manifest.contains(&simt), "{manifest}");
        let install =
            format!("cargo install --locked --path {}\n", root.join("gpu/simt").display());
        assert!(read(WORKFLOW).contains(&install), "{}", read(WORKFLOW));
        for file in ["Cargo.toml", "src/lib.rs", "examples/transpose.rs", "tests/transpose.rs"] {
            assert!(!read(file).contains(NAME), "{file}");
        }

        // A second time nothing is written.
        let error = run(&root, &options).unwrap_err();
        assert!(error.downcast_ref::<Refused>().is_some(), "{error}");
        assert!(error.to_string().contains("must not exist, or be empty"), "{error}");
        // A file is no folder.
        let folder = folder.join("Cargo.toml");
        let options = Options { folder, name: Some("blur".into()), published: true };
        let error = run(&root, &options).unwrap_err().to_string();
        assert!(error.contains("empty folder"), "{error}");
    }

    #[test]
    fn a_crate_by_published_packages_has_no_path() {
        let root = workspace_root(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let name = Some("blur".to_owned());
        run(&root, &Options { folder: folder.path().into(), name, published: true }).unwrap();
        let manifest = fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
        assert!(!manifest.contains("path = "), "{manifest}");
        assert!(manifest.contains("gpu-simt = { version = \"=0.1.0\" }"), "{manifest}");
        let workflow = fs::read_to_string(folder.path().join(WORKFLOW)).unwrap();
        assert!(workflow.contains("  cargo install gpu-simt@0.1.0\n"), "{workflow}");
    }

    #[test]
    fn a_name_that_contains_the_templates_is_written_once() {
        let root = workspace_root(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let name = Some("my-mykernels2".to_owned());
        run(&root, &Options { folder: folder.path().into(), name, published: false }).unwrap();
        let lib = fs::read_to_string(folder.path().join("src/lib.rs")).unwrap();
        assert!(lib.contains("include_str!(\"../ptx/my-mykernels2.sm_80.ptx\")"), "{lib}");
        assert!(folder.path().join("ptx/my-mykernels2.sm_80.ptx").is_file());
    }
}
