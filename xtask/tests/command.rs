//! `cargo xtask` as it is built, in a small workspace of its own with stand-ins for NVIDIA's programs.

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

const PTX: &str = "\
.version 8.3
.target sm_90a
.address_size 64
.visible .entry k()
.reqntid 32, 1, 1
{
	// simt.kernel name=k block=32,1,1 barriers=0 params=
	fma.rn.f32 %r1, %r1, %r1, %r1;
	ret;
}
";

const PTXAS: &str = "\
echo \"ptxas info    : Compiling entry function 'k' for 'sm_90a'\" >&2
echo 'ptxas info    : Used 40 registers, used 0 barriers' >&2";

const NVDISASM: &str = "\
echo '.text.k:'
echo '        /*0000*/                   FFMA R1, R1, R1, R1 ;'
echo '        /*0010*/                   EXIT ;'
echo '.L_x_0:'
echo '        /*0020*/                   BRA `(.L_x_0);'
echo '        /*0030*/                   NOP;'
echo '//--------------------- .nv.shared.k --------------------------'
echo '.section .nv.shared.k'";

/// A workspace without packages, removed with this value.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Workspace {
        let root = env::temp_dir().join(format!("xtask-command-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("gpu/ptx/sm_90a")).unwrap();
        fs::write(root.join("Cargo.toml"), "[workspace]\nresolver = \"3\"\n").unwrap();
        fs::write(root.join("gpu/ptx/sm_90a/k.ptx"), PTX).unwrap();
        Workspace(root)
    }

    /// A program of NVIDIA's that says its release, and otherwise does what `script` does.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.0.join(name);
        let version = "[ \"$1\" = --version ] && { echo 'tools, release 13.0, V13.0.88'; exit; }";
        fs::write(&path, format!("#!/bin/sh\n{version}\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        // A child that another test started while the file was written has it open until it runs a
        // program of its own, and so long nobody can run this one.
        let busy = |error: io::Error| error.kind() == io::ErrorKind::ExecutableFileBusy;
        while Command::new(&path).output().is_err_and(busy) {}
        path
    }

    fn xtask(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(args).env("CARGO_MANIFEST_DIR", &self.0).current_dir(&self.0);
        command.env_remove("PTXAS").env_remove("NVDISASM").env_remove("CARGO_TARGET_DIR");
        command
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The exit code, standard output and standard error.
fn finish(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("ended by itself"), text(output.stdout), text(output.stderr))
}

fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain([Path::new("/usr/local/cuda/bin").into()]);
    folders.any(|folder| folder.join(program).is_file())
}

#[test]
fn inspect_with_every_tool() {
    let workspace = Workspace::new("tools");
    let mut command = workspace.xtask(&["inspect", "k", "--target", "sm_90a", "--json", "--sass"]);
    command.env("PTXAS", workspace.program("ptxas", PTXAS));
    command.env("NVDISASM", workspace.program("nvdisasm", NVDISASM));
    let (code, stdout, stderr) = finish(&mut command);
    assert_eq!((code, &*stderr), (0, ""));
    let object: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&object["kernel"], &object["missing"]), (&"k".into(), &Value::Null));
    assert_eq!(object["ptxas"]["registers"], 40);
    assert_eq!(object["sass"]["kinds"]["fma"], 1);
    let code = object["sass"]["text"].as_str().unwrap();
    assert!(code.starts_with(".text.k:") && code.ends_with("EXIT ;"), "{code}");
    assert_eq!(object["occupancy"]["limited_by"], "blocks");
}

#[test]
fn inspect_without_tools_shows_the_ptx_alone_and_says_so() {
    let workspace = Workspace::new("bare");
    if is_there("ptxas") {
        return println!("skipped: this machine has a ptxas");
    }
    let (code, stdout, _) = finish(&mut workspace.xtask(&["inspect", "k"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("there is no ptxas") && stdout.contains("--fetch"), "{stdout}");
    assert!(stdout.contains("fma") && !stdout.contains("SASS"), "{stdout}");
    let (code, stdout, stderr) = finish(&mut workspace.xtask(&["inspect", "k", "--sass"]));
    assert_eq!((code, &*stdout), (1, ""));
    assert!(stderr.contains("--sass: there is no ptxas"), "{stderr}");
}

/// What pip or curl bring from a mirror that has other bytes than PyPI: it is not run.
#[test]
fn a_wheel_that_is_not_pypis_is_refused() {
    if is_there("ptxas") {
        return println!("skipped: this machine has a ptxas");
    }
    let workspace = Workspace::new("wheel");
    let wheel = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ptxas.whl");
    let programs = workspace.0.join("programs");
    fs::create_dir(&programs).unwrap();
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    // `python3 -m pip download .. --dest FOLDER PACKAGE` and `curl .. --output FILE ADDRESS`.
    let brings = |option: &str, file: &str| {
        let until = format!("while [ $# -gt 0 ] && [ \"$1\" != {option} ]; do shift; done");
        format!("{until}\n[ $# -eq 0 ] || cp '{wheel}' \"$2{file}\"")
    };
    let (pip, curl) = (brings("--dest", "/nvidia.whl"), brings("--output", ""));
    for (python, curl) in [(&*pip, "exit 7"), ("exit 1", &*curl)] {
        for (name, script) in [("python3", python), ("curl", curl)] {
            fs::rename(workspace.program(name, script), programs.join(name)).unwrap();
        }
        let was_run = workspace.0.join("was-run");
        let mut command = workspace.xtask(&["inspect", "k", "--fetch"]);
        let (code, stdout, stderr) = finish(command.env("PATH", &path).env("RUN", &was_run));
        assert!(!was_run.exists(), "what came was run");
        assert_eq!((code, &*stdout), (1, ""), "{stderr}");
        let refused = "its SHA-256 is 67609b4856cfc37efbc2d46837894ed3eeb033c61aa108801958bfb8e27921b8, and must be ";
        assert!(stderr.contains(refused), "{stderr}");
        let left = fs::read_dir(workspace.0.join("target/ptxas")).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!(left, ["13.0.88.lock"]);
    }
}

#[test]
fn inspect_of_a_specialisation() {
    let workspace = Workspace::new("constants");
    let with = "constants=a:0|1 params=\n\tmov.u32 %r2, /* simt.constant a */ 0;";
    let ptx = PTX.replace("params=", with).replace("entry k(", "entry c(").replace("=k ", "=c ");
    fs::write(workspace.0.join("gpu/ptx/sm_90a/c.ptx"), ptx).unwrap();
    // What the assembler gets, too, has the value.
    let script = "for file; do :; done\ngrep -q 'constant a \\*/ 1;' \"$file\" || exit 1\n";
    let ptxas = workspace.program("ptxas", &format!("{script}{}", PTXAS.replace("'k'", "'c'")));
    for args in [&["c", "--constants", "a=1"][..], &["c__a_1"]] {
        let args = [&["inspect"][..], args, &["--json", "--ptx"]].concat();
        let (code, stdout, stderr) = finish(workspace.xtask(&args).env("PTXAS", &ptxas));
        assert_eq!((code, &*stderr), (0, ""), "{args:?}");
        let object: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((&object["kernel"], &object["constants"]["a"]), (&"c".into(), &"1".into()));
        assert!(object["ptx"]["text"].as_str().unwrap().contains("/* simt.constant a */ 1;"));
        assert_eq!(object["ptxas"]["registers"], 40);
    }
    let (code, _, stderr) = finish(&mut workspace.xtask(&["inspect", "c", "--constants", "a=2"]));
    assert_eq!((code, &*stderr), (2, "error: constant a = 2: may be 0, 1\n"));
}

#[test]
fn inspect_with_tools_that_fail() {
    let workspace = Workspace::new("broken");
    let mut command = workspace.xtask(&["inspect", "k"]);
    command.env("PTXAS", workspace.program("ptxas", "echo 'ptxas fatal   : no' >&2; exit 255"));
    let (code, _, stderr) = finish(&mut command);
    assert!(code == 1 && stderr.contains("ptxas refuses the PTX"), "{stderr}");
    let mut command = workspace.xtask(&["inspect", "k"]);
    command.env("PTXAS", workspace.program("ptxas", PTXAS));
    command.env("NVDISASM", workspace.program("nvdisasm", "echo 'no code'"));
    let (code, _, stderr) = finish(&mut command);
    assert!(code == 1 && stderr.contains("no code of a kernel `k`"), "{stderr}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let workspace = Workspace::new("pipe");
    let mut command = workspace.xtask(&["inspect", "k", "--ptx"]);
    command.env("PTXAS", workspace.program("ptxas", PTXAS));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
}

#[test]
fn usage_errors() {
    let workspace = Workspace::new("usage");
    for (args, words) in [
        (&["inspect", "tiled17"][..], "gpu/ptx/sm_90a has no kernel `tiled17`: there are k"),
        (&["inspect"], "inspect which kernel?"),
        (&["inspect", "k", "l"], "\"l\""),
        (&["inspect", "k", "--target", "sm_70"], "sm_80, sm_90a"),
        (&["inspect", "k", "--check"], "--check"),
        (&["inspect", "k", "--constants", "half"], "must be like half=f16,a_mn_major=1"),
        (&["inspect", "k", "--constants", "half=f16"], "constant half = f16: k has none"),
        (&["build-ptx", "--crate", "gpu"], "--crate and --into go together"),
        (&["build-ptx", "--crate", "gpu", "--into", ".", "--check"], "without --check"),
        (&["doctor", "k"], "\"k\""),
        (&["doctor", "--fetch"], "--fetch"),
        (&["ci", "all"], "\"all\""),
        (&["course", "k"], "\"k\""),
        (&["course", "--write"], "--write"),
        (&["mend"], "\"mend\""),
        (&[], "which task?"),
    ] {
        let (code, stdout, stderr) = finish(&mut workspace.xtask(args));
        assert_eq!((code, &*stdout), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(words), "{args:?}: {stderr}");
        // What needs the kernel's file is no matter of how to call it.
        if words.contains("has no kernel") || words.contains("k has none") {
            continue;
        }
        // And how to call it in a line, not everything that there is to say.
        let task = args.first().filter(|task| **task != "mend");
        let usage = match task {
            Some(task) => format!("\nUsage: cargo xtask {task} "),
            None => {
                "\nUsage: cargo xtask build-ptx|inspect|doctor|mutants|course|times|ci [OPTIONS]\n"
                    .into()
            }
        };
        let help = match task {
            Some(task) => format!("\n`cargo xtask {task} --help` says more\n"),
            None => "\n`cargo xtask --help` says more\n".into(),
        };
        assert!(stderr.contains(&usage) && stderr.ends_with(&help), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 3, "{args:?}: {stderr}");
    }
}

#[test]
fn help_is_of_everything_or_of_a_task() {
    let workspace = Workspace::new("help");
    let help = |args: &[&str]| {
        let (code, stdout, stderr) = finish(&mut workspace.xtask(args));
        assert_eq!((code, &*stderr), (0, ""), "{args:?}");
        assert!(stdout.contains("Exit codes: 0 done") && stdout.contains("-h, --help"), "{stdout}");
        stdout
    };
    let flags = ["--check", "--target NAME", "--constants C", "--sass", "--offline"];
    let all = help(&["--help"]);
    for part in ["  build-ptx ", "  inspect KERNEL ", "  doctor ", "  ci "].iter().chain(&flags) {
        assert!(all.contains(part), "{part}: {all}");
    }
    for (task, its_flags) in [
        ("build-ptx", &["--check", "--offline"][..]),
        ("inspect", &["--target NAME", "--constants C", "--sass"]),
        ("doctor", &["--offline"]),
        ("times", &[]),
        ("course", &["--check"]),
        ("ci", &[]),
    ] {
        for word in ["--help", "-h"] {
            let text = help(&[task, word]);
            assert!(text.contains(&format!("\nUsage: cargo xtask {task}")), "{text}");
            for flag in flags {
                assert_eq!(text.contains(flag), its_flags.contains(&flag), "{flag}: {text}");
            }
        }
    }
}

#[test]
fn doctor_where_host_cannot_be_built() {
    let workspace = Workspace::new("doctor");
    let mut command = workspace.xtask(&["doctor", "--json", "--offline"]);
    command.env("PTXAS", workspace.program("ptxas", PTXAS));
    let (code, stdout, stderr) = finish(&mut command);
    assert_eq!(code, 3, "{stdout}{stderr}");
    assert!(stderr.contains("compiling `host`"), "{stderr}");
    let lines: Vec<Value> = stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let status = |name: &str| lines.iter().find(|l| l["name"] == name).unwrap()["status"].clone();
    for (name, expected) in [
        ("ptxas", "ok"),
        ("gpu/ptx/sm_90a", "ok"),
        ("gpu/ptx/sm_80", "fail"),
        ("write access to target", "ok"),
        ("write access to gpu/ptx", "ok"),
        ("compiler in target", "absent"),
        ("host doctor", "fail"),
    ] {
        assert_eq!(status(name), expected, "{name}: {stdout}");
    }
    assert!(!workspace.0.join("target/device-toolchain").exists(), "nothing is got");

    // The same for people, with what to do.
    let (code, stdout, _) = finish(&mut workspace.xtask(&["doctor", "--offline"]));
    assert!(code == 3 && stdout.contains("\nfail  host doctor"), "{stdout}");
    assert!(stdout.contains("\n-     compiler in target"), "{stdout}");
    assert!(stdout.contains("-> `cargo run -p host -- doctor`"), "{stdout}");
    assert!(stdout.lines().last().unwrap().starts_with("failures: "), "{stdout}");
}

#[test]
fn doctor_and_tools_take_cargos_target_folder() {
    let workspace = Workspace::new("target");
    let target = workspace.0.join("elsewhere/target");
    // Where --fetch would have put it.
    let fetched = target.join("ptxas/13.0.88");
    fs::create_dir_all(&fetched).unwrap();
    fs::rename(workspace.program("ptxas", PTXAS), fetched.join("ptxas")).unwrap();
    fs::create_dir_all(target.join("debug")).unwrap();
    fs::write(target.join("debug/host"), "").unwrap();
    let mut command = workspace.xtask(&["doctor", "--offline"]);
    // Relative to where cargo was called, which need not be the workspace's root.
    let folder = workspace.0.join("elsewhere");
    command.env("CARGO_TARGET_DIR", "target").current_dir(&folder);
    let (_, stdout, stderr) = finish(&mut command);
    assert!(stdout.contains("ok    write access to elsewhere/target"), "{stdout}");
    assert!(!stderr.contains("compiling"), "it is there: {stderr}");
    if !is_there("ptxas") {
        let line = stdout.lines().find(|line| line.starts_with("ok    ptxas")).unwrap_or_default();
        assert!(line.contains("elsewhere/target/ptxas/13.0.88/ptxas"), "{stdout}");
    }
}

#[test]
fn the_course_is_written_and_checked() {
    let workspace = Workspace::new("course");
    let course = |args: &[&str]| finish(workspace.xtask(&["course"]).args(args));
    let (code, _, stderr) = course(&[]);
    assert!(code == 1 && stderr.contains("cannot read"), "{stderr}");

    let (text, source) = (workspace.0.join("docs/course.md"), workspace.0.join("k.rs"));
    fs::create_dir_all(workspace.0.join("docs")).unwrap();
    fs::write(&text, "A\n<!-- source: k.rs fn k -->\n<!-- end -->\nB\n").unwrap();
    fs::write(&source, "/// K.\nfn k() {}\n").unwrap();
    for document in ["docs/kernels.md", "README.md"] {
        fs::write(workspace.0.join(document), "No markers.\n").unwrap();
    }
    let (code, stdout, stderr) = course(&[]);
    assert_eq!((code, &*stderr), (0, ""));
    let others =
        ["docs/kernels.md", "README.md"].map(|of| format!("{of}: 0 markers, 0 written anew\n"));
    assert_eq!(stdout, format!("docs/course.md: 1 markers, 1 written anew\n{}", others.concat()));
    let written = fs::read_to_string(&text).unwrap();
    let expected =
        "A\n<!-- source: k.rs fn k -->\n```rust\n/// K.\nfn k() {}\n```\n<!-- end -->\nB\n";
    assert_eq!(written, expected);
    let (code, stdout, _) = course(&["--check"]);
    assert_eq!(code, 0);
    assert!(stdout.starts_with("docs/course.md: 1 markers, all up to date\n"), "{stdout}");

    // The source goes on, and the text does not.
    fs::write(&source, "/// K.\nfn k() { k() }\n").unwrap();
    let (code, stdout, stderr) = course(&["--check"]);
    assert_eq!((code, &*stdout), (1, ""));
    for part in ["out of date", "`cargo xtask course` writes it", "line 2: <!-- source: k.rs fn k"]
    {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    assert_eq!(fs::read_to_string(&text).unwrap(), written, "a check writes nothing");
    fs::write(&source, "fn other() {}\n").unwrap();
    let (code, _, stderr) = course(&["--check"]);
    assert!(code == 1 && stderr.contains("k.rs: has no function `k`"), "{stderr}");
}
