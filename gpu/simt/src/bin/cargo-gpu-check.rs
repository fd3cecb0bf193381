//! `cargo gpu-check`: runs the `#[check]` cases of a crate, and shows what they find as the
//! compiler shows errors.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use simt::{
    check::{CASE_LINE, ERROR_LINE, FILE, NAME, PREFIX, SHOWN, explained, explanation},
    count_of,
};

const HELP: &str = "\
Runs the kernels of a crate under the checker, and shows what it finds as the compiler shows errors

A case is a function with `#[check(..)]`, of `simt`. It is run in ten orders of threads and blocks, on all cores.

Usage: cargo gpu-check [OPTIONS] [NAME]

  NAME                     only the cases whose path contains it, such as `tests::transposes`, or 'transposes(31)'
  --message-format FORMAT  human, or json: a line for each finding, as the compiler's, and for each case
  --explain KIND           what a kind of finding is, and what to write, such as read-after-write
  --help, --version

As of `cargo test`:
  --package, -p SPEC   --workspace   --exclude SPEC   --manifest-path PATH
  --features, -F LIST   --all-features   --no-default-features
  --release   --profile NAME   --target-dir DIR   --jobs, -j N   --config SETTING
  --locked   --offline   --frozen

Exit code: 0 nothing was found, 1 something was found or a case failed, 2 a wrong argument or no case, 101 the build
failed, as cargo says.
";

/// Cargo's options with a value, and those without.
const WITH_VALUE: &str = "\
    --package -p --exclude --manifest-path --features -F --profile --target-dir --jobs -j --config \
    --color -Z";
const PLAIN: &str = "\
    --workspace --all-features --no-default-features --release -r --locked --offline --frozen \
    --keep-going";

#[derive(Debug, Default, PartialEq)]
struct Arguments {
    /// What cargo is given as it is.
    of_cargo: Vec<OsString>,
    name: Option<String>,
    json: bool,
    /// What is printed instead of anything else.
    told: Option<String>,
}

impl Arguments {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut parsed = Arguments::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy().into_owned();
            let (option, joined) = match text.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (&*text, None),
            };
            let mut value = || match joined {
                Some(value) => Ok(value.into()),
                None => arguments.next().ok_or_else(|| format!("`{option}` has no value")),
            };
            match option {
                "--help" | "-h" => parsed.told = Some(HELP.to_owned()),
                "--version" | "-V" => {
                    parsed.told = Some(
                        concat!("cargo-gpu-check ", env!("CARGO_PKG_VERSION"), "\n").to_owned(),
                    );
                }
                "--explain" => {
                    let value: OsString = value()?;
                    let kind = value.to_string_lossy();
                    let known = || explained().collect::<Vec<_>>().join(", ");
                    let text = explanation(&kind)
                        .ok_or_else(|| format!("--explain = {kind}: must be one of {}", known()))?;
                    let before = parsed.told.take().map(|told| told + "\n").unwrap_or_default();
                    parsed.told = Some(format!("{before}{text}\n"));
                }
                "--message-format" => {
                    let value: OsString = value()?;
                    parsed.json = match value.to_str() {
                        Some("json") => true,
                        Some("human") => false,
                        _ => {
                            let value = value.display();
                            return Err(format!(
                                "--message-format = {value}: must be human or json"
                            ));
                        }
                    };
                }
                _ if WITH_VALUE.split(' ').any(|known| known == option) => {
                    let joined = joined.is_some();
                    parsed.of_cargo.push(argument.clone());
                    if !joined {
                        let value: OsString = value()?;
                        parsed.of_cargo.push(value);
                    }
                }
                // `-j4`, `-pfoo`
                _ if text.get(..2).is_some_and(|of| ["-F", "-Z", "-j", "-p"].contains(&of)) => {
                    parsed.of_cargo.push(argument);
                }
                _ if PLAIN.split(' ').any(|known| known == text) => parsed.of_cargo.push(argument),
                _ if option.starts_with('-') => {
                    return Err(format!(
                        "`{text}` is no option: `cargo gpu-check --help` lists them"
                    ));
                }
                _ if parsed.name.is_some() => {
                    return Err(format!(
                        "NAME = {text}: one name is taken, and there is one already"
                    ));
                }
                _ => parsed.name = Some(text),
            }
        }
        Ok(parsed)
    }
}

/// A file that is removed in the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes to standard error, as cargo does. If nobody reads it, nothing happens.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).peekable();
    // Cargo calls `cargo-gpu-check gpu-check ..`.
    arguments.next_if(|first| first == "gpu-check");
    let outcome = Arguments::parse(arguments)
        .map_err(|error| (2, error))
        .and_then(|arguments| run(&arguments));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err((code, error)) => {
            say(&format!("error: {error}\n"));
            ExitCode::from(code)
        }
    }
}

fn run(arguments: &Arguments) -> Result<u8, (u8, String)> {
    let failed = |what: &str, error: io::Error| (101, format!("{what}: {error}"));
    if let Some(text) = &arguments.told {
        let _ = io::stdout().lock().write_all(text.as_bytes());
        return Ok(0);
    }
    let cargo = env::var_os("CARGO").unwrap_or("cargo".into());
    // Without `--tests` it would run the examples in documentation, too.
    let test = || {
        let mut command = Command::new(&cargo);
        command.args(["test", "--tests"]).args(&arguments.of_cargo);
        command
    };
    let mut build = test();
    build.arg("--no-run").args(arguments.json.then_some("--message-format=json"));
    let built = build.status().map_err(|error| failed("cargo cannot be run", error))?;
    if !built.success() {
        return Ok(built.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(101));
    }

    // The tests have another working folder.
    let folder = std::path::absolute(env::temp_dir());
    let folder = folder.map_err(|error| failed("the folder of temporary files", error))?;
    let file = folder.join(format!("cargo-gpu-check-{}.json", std::process::id()));
    let created = fs::File::create_new(&file);
    created.map_err(|error| failed(&file.display().to_string(), error))?;
    let file = Scratch(file);
    let mut tests = test();
    // Warnings were shown by the build. Here they are lines of JSON, which nobody sees.
    tests.args(["--no-fail-fast", "--quiet", "--message-format=json", "--", PREFIX]);
    tests.env(FILE, &file.0).env(SHOWN, shown(arguments)).env_remove(NAME);
    if let Some(name) = &arguments.name {
        tests.env(NAME, name);
    }
    let ran = tests.stderr(Stdio::inherit()).output();
    let ran = ran.map_err(|error| failed("cargo cannot be run", error))?;
    let lines = fs::read_to_string(&file.0).unwrap_or_default();
    if arguments.json {
        let _ = io::stdout().lock().write_all(lines.as_bytes());
    }
    if !ran.status.success() {
        let printed = String::from_utf8_lossy(&ran.stdout);
        let of_tests = printed.lines().filter(|line| !line.starts_with("{\"reason\":"));
        say(&of_tests.map(|line| format!("{line}\n")).collect::<String>());
    }
    let cases = lines.lines().filter(|line| line.starts_with(CASE_LINE)).count();
    let errors = lines.lines().filter(|line| line.contains(ERROR_LINE)).count();
    let checked = format!("{} in ten orders", count_of(cases, "case"));
    match (ran.status.success(), errors) {
        (true, 0) if cases == 0 => Err((
            2,
            match &arguments.name {
                Some(name) => format!("NAME = {name}: no `#[check]` case has that in its path"),
                None => {
                    "there is no `#[check]` case: it is a function in a test, see `simt::check`"
                        .to_owned()
                }
            },
        )),
        (true, 0) => {
            say(&format!("     Checked {checked}: nothing found\n"));
            Ok(0)
        }
        (true, _) => Err((1, format!("{}; {checked}", count_of(errors, "finding")))),
        (false, _) => {
            Err((1, format!("{}, and a case failed: see above", count_of(errors, "finding"))))
        }
    }
}

/// How the tests show findings.
fn shown(arguments: &Arguments) -> &'static str {
    let set = |name: &str, value: &str| env::var_os(name).is_some_and(|is| is == OsStr::new(value));
    let asked = |how: &str| {
        let of_cargo = &arguments.of_cargo;
        of_cargo.contains(&format!("--color={how}").into())
            || of_cargo.windows(2).any(|pair| pair[0] == "--color" && pair[1] == how)
    };
    let colours = match () {
        () if asked("always") => true,
        () if asked("never") => false,
        () if set("CARGO_TERM_COLOR", "always") => true,
        () if set("CARGO_TERM_COLOR", "never") || env::var_os("NO_COLOR").is_some() => false,
        () => io::stderr().is_terminal(),
    };
    match (arguments.json, colours) {
        (true, _) => "none",
        (_, true) => "colour",
        (_, false) => "plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Arguments, String> {
        Arguments::parse(text.split_whitespace().map(OsString::from))
    }

    #[test]
    fn cargos_options_are_passed_on() {
        let text = "-p kernels --features=a,b name --message-format json --offline";
        let arguments = parsed(text).unwrap();
        assert_eq!(arguments.of_cargo, ["-p", "kernels", "--features=a,b", "--offline"]);
        assert_eq!((arguments.name.as_deref(), arguments.json), (Some("name"), true));
        assert!(parsed("--help").unwrap().told.unwrap().contains("Usage: cargo gpu-check"));
        let told = parsed("--explain barrier-skipped").unwrap().told.unwrap();
        assert!(told.starts_with("barrier-skipped\n") && told.contains("// wrong"), "{told}");
    }

    #[test]
    fn a_wrong_argument_is_named() {
        for (text, error) in [
            ("--sizes 3", "`--sizes` is no option"),
            ("--release=yes", "`--release=yes` is no option"),
            ("--message-format xml", "--message-format = xml: must be human or json"),
            ("--explain nothing", "--explain = nothing: must be one of race, uninitialised"),
            ("-p", "`-p` has no value"),
            ("one two", "NAME = two: one name is taken"),
        ] {
            let refused = parsed(text).unwrap_err();
            assert!(refused.contains(error), "{refused}");
        }
    }
}
