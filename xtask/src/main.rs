//! `cargo xtask`: the project's chores. This file reads arguments, and calls the library.

#![warn(clippy::print_stderr, clippy::print_stdout)] // they panic: `say` and `note` do not

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use lexopt::prelude::*;
use xtask::{
    ToolchainAbsent, browser, build_ptx, ci, course, doctor,
    inspect::{self, hint},
    licences, new, note, run_package, sass, say, site, tidy, times, wheel, workspace_root,
};

/// The `--help` of a task.
struct Manual {
    name: &'static str,
    /// The arguments after the name.
    arguments: &'static str,
    about: &'static str,
    options: &'static [[&'static str; 2]],
}

const MANUALS: [Manual; 15] = [
    Manual {
        name: "build-ptx",
        arguments: "[OPTIONS]",
        about: "build the kernels into gpu/ptx, and check the PTX",
        options: &[
            ["--check", "compare with what is committed instead of writing it"],
            ["--offline", "download nothing"],
            ["--fetch-ptxas", "download NVIDIA's assembler where there is none"],
            ["--crate DIR", "build that kernel crate instead of gpu"],
            ["--into DIR", "write its PTX there: PACKAGE.sm_80.ptx, PACKAGE.sm_90a.ptx"],
        ],
    },
    Manual {
        name: "new",
        arguments: "DIR [OPTIONS]",
        about: "a crate of your own: a kernel, its test under the checker, its PTX, an example",
        options: &[
            ["--name NAME", "the crate's name; if not given, the folder's"],
            ["--published", "depend on the published packages, not on this checkout"],
        ],
    },
    Manual {
        name: "inspect",
        arguments: "KERNEL [OPTIONS]",
        about: "what a kernel came to: registers, occupancy, instructions, main loop",
        options: &[
            ["--target NAME", "sm_80 or sm_90a (the default)"],
            ["--constants C", "values of its constants: half=f16,a_mn_major=1"],
            ["--ptx", "print its PTX too, the main loop marked"],
            ["--sass", "print its machine code too, the main loop marked"],
            ["--json", "one JSON object"],
            ["--fetch", "download NVIDIA's assembler and disassembler where there are none"],
        ],
    },
    Manual {
        name: "sass",
        arguments: "COMMIT",
        about: "compare the machine code of the committed kernels with a commit's",
        options: &[],
    },
    Manual {
        name: "doctor",
        arguments: "[OPTIONS]",
        about: "what this machine has for building and running kernels, and what is wrong",
        options: &[
            ["--json", "one JSON object a line"],
            ["--offline", "let cargo download nothing"],
        ],
    },
    Manual {
        name: "mutants",
        arguments: "[OPTIONS]",
        about: "make mistakes in the kernels and see whether they are found; `mutants --help` says more",
        options: &[],
    },
    Manual {
        name: "fit",
        arguments: "RECORD.. [OPTIONS]",
        about: "fit the figures by which kernels are selected to records of times; `fit --help` says more",
        options: &[],
    },
    Manual {
        name: "course",
        arguments: "[OPTIONS]",
        about: "write the generated parts of README.md and docs: excerpts, figures, lists of kernels",
        options: &[["--check", "compare with the documents instead of writing them"]],
    },
    Manual {
        name: "site",
        arguments: "[OPTIONS]",
        about: "build the course as a static site in target/site/book, by mdBook",
        options: &[[
            "--source",
            "write mdBook's pages into target/site/source, and do not call it",
        ]],
    },
    Manual {
        name: "browser",
        arguments: "[OPTIONS]",
        about: "open the pages with pictures in headless Chromium, and step through them",
        options: &[
            ["--all", "a page of every rung, not only of some"],
            ["--site", "the pages of target/site/book, too"],
            ["--screenshots", "keep a picture of each page in target/browser/screenshots"],
        ],
    },
    Manual {
        name: "tidy",
        arguments: "",
        about: "look for links that lead nowhere, retired words, long paragraphs and long comments",
        options: &[],
    },
    Manual {
        name: "licences",
        arguments: "[OPTIONS]",
        about: "write the licences that go into the Python package's wheel",
        options: &[["--check", "compare with the files instead of writing them"]],
    },
    Manual {
        name: "wheel",
        arguments: "",
        about: "build the Python package's wheel into target/wheels, without paths of this machine",
        options: &[],
    },
    Manual {
        name: "times",
        arguments: "",
        about: "build and test everything anew, and write docs/testing/times.md",
        options: &[],
    },
    Manual {
        name: "ci",
        arguments: "[PART..]",
        about: "run what CI runs: first, lint, ptx, test, check, packaging, python, mpi, mutants; sanitizers and fuzz where they are named",
        options: &[],
    },
];

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 a check failed or something does not compile, 2 usage, no such kernel or constant, a folder or
a name that no new crate can have,
3 no compiler for the device, or doctor found something to mend (the message says what to do).
";

impl Manual {
    fn of(name: &OsStr) -> Option<&'static Manual> {
        MANUALS.iter().find(|manual| manual.name == name)
    }

    /// How to call a task, or all of them.
    fn usage(manual: Option<&Manual>) -> String {
        let (name, arguments) = match manual {
            Some(manual) => (manual.name.to_owned(), manual.arguments),
            None => (MANUALS.map(|manual| manual.name).join("|"), "[OPTIONS]"),
        };
        format!("Usage: cargo xtask {name} {arguments}").trim_end().to_owned()
    }

    /// The output of `--help`, for a task or for all.
    fn help(manual: Option<&Manual>) -> String {
        let options = |manual: &Manual, indent: &str| -> String {
            let line = |[option, what]: &[&str; 2]| format!("{indent}{option:<13}  {what}\n");
            manual.options.iter().map(line).collect()
        };
        let mut text = match manual {
            Some(manual) => format!("{}: {}\n\n", manual.name, manual.about),
            None => "The project's chores.\n\n".to_owned(),
        };
        text += &format!("{}\n\n", Manual::usage(manual));
        if manual.is_none() {
            text += "Tasks:\n";
            for task in &MANUALS {
                let call = format!("{} {}", task.name, task.arguments);
                let call = call.trim_end_matches("[OPTIONS]").trim_end();
                text += &format!("  {call:<15}  {}\n{}", task.about, options(task, "      "));
            }
            text += "\n";
        }
        text += "Options:\n";
        text += &manual.map(|manual| options(manual, "  ")).unwrap_or_default();
        text +=
            &format!("  {:<13}  print help: of all tasks, or of the one before it\n", "-h, --help");
        text + "\n" + EXIT_CODES
    }
}

enum Task {
    Help(Option<&'static Manual>),
    BuildPtx(build_ptx::Options),
    New(new::Options),
    Inspect(inspect::Options),
    /// The commit to compare with.
    Sass(String),
    Doctor(doctor::Options),
    /// Another program of the workspace, and its arguments.
    Package(&'static str, Vec<OsString>),
    Course(course::Options),
    Site(site::Options),
    Browser(browser::Options),
    Tidy,
    Licences(licences::Options),
    Wheel,
    Times,
    Ci(Vec<String>),
}

fn main() -> ExitCode {
    if let Some(code) = times::as_compiler() {
        return code;
    }
    let mut manual = None;
    let task = match arguments(&mut manual) {
        Ok(task) => task,
        Err(error) => {
            let task = manual.map(|manual| format!("{} ", manual.name)).unwrap_or_default();
            note(&format!("error: {error}\n{}\n", Manual::usage(manual)));
            note(&format!("`cargo xtask {task}--help` says more\n"));
            return ExitCode::from(2);
        }
    };
    match run(task) {
        Ok(code) => code,
        Err(error) => {
            note(&format!("error: {error:#}\n"));
            // The error may have the context of a step of `ci`.
            ExitCode::from(match () {
                _ if error.downcast_ref::<inspect::UnknownKernel>().is_some() => 2,
                _ if error.downcast_ref::<inspect::BadConstant>().is_some() => 2,
                _ if error.downcast_ref::<new::Refused>().is_some() => 2,
                _ if error.downcast_ref::<ToolchainAbsent>().is_some() => 3,
                _ => 1,
            })
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    // Cargo sets the package's folder. The path of the compilation may be another checkout's.
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let root = || workspace_root(Path::new(&package));
    match task {
        Task::Help(manual) => say(&Manual::help(manual))?,
        Task::BuildPtx(options) => build_ptx::run(&root()?, options)?,
        Task::New(options) => new::run(&root()?, &options)?,
        Task::Inspect(options) => inspect::run(&root()?, &options)?,
        Task::Sass(commit) => sass::run(&root()?, &commit)?,
        Task::Doctor(options) => return Ok(doctor::run(&root()?, options).exit_code()),
        Task::Package(package, args) => return run_package(&root()?, package, &args),
        Task::Tidy => tidy::run(&root()?)?,
        Task::Licences(options) => licences::run(&root()?, options)?,
        Task::Wheel => wheel::run(&root()?)?,
        Task::Times => times::run(&root()?)?,
        Task::Course(options) => course::run(&root()?, options)?,
        Task::Site(options) => site::run(&root()?, options)?,
        Task::Browser(options) => browser::run(&root()?, options)?,
        Task::Ci(parts) => ci::run(&root()?, &parts)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses the command line. `manual` becomes the task's when it is known.
fn arguments(manual: &mut Option<&'static Manual>) -> Result<Task, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let mut task = None;
    let (mut krate, mut into) = (None, None);
    while let Some(argument) = parser.next()? {
        if let (Value(name), None) = (&argument, *manual) {
            *manual = Manual::of(name);
        }
        match (argument, &mut task) {
            (Short('h') | Long("help"), _) => return Ok(Task::Help(*manual)),
            (Value(name), None) if name == "build-ptx" => {
                task = Some(Task::BuildPtx(build_ptx::Options::default()));
            }
            (Value(name), None) if name == "new" => {
                task = Some(Task::New(new::Options::default()));
            }
            (Value(name), None) if name == "inspect" => {
                task = Some(Task::Inspect(inspect::Options::default()));
            }
            (Value(name), None) if name == "sass" => task = Some(Task::Sass(String::new())),
            (Value(commit), Some(Task::Sass(known))) if known.is_empty() => {
                *known = commit.string()?;
            }
            (Value(name), None) if name == "doctor" => {
                task = Some(Task::Doctor(doctor::Options::default()));
            }
            (Value(name), None) if name == "mutants" || name == "fit" => {
                let package = if name == "fit" { "fit" } else { "mutants" };
                return Ok(Task::Package(package, parser.raw_args()?.collect()));
            }
            (Value(name), None) if name == "course" => {
                task = Some(Task::Course(course::Options::default()));
            }
            (Value(name), None) if name == "site" => {
                task = Some(Task::Site(site::Options::default()));
            }
            (Value(name), None) if name == "browser" => {
                task = Some(Task::Browser(browser::Options::default()));
            }
            (Value(name), None) if name == "tidy" => task = Some(Task::Tidy),
            (Value(name), None) if name == "licences" => {
                task = Some(Task::Licences(licences::Options::default()));
            }
            (Value(name), None) if name == "wheel" => task = Some(Task::Wheel),
            (Value(name), None) if name == "times" => task = Some(Task::Times),
            (Value(name), None) if name == "ci" => task = Some(Task::Ci(Vec::new())),
            (Value(part), Some(Task::Ci(parts)))
                if ci::PARTS.iter().any(|(name, _)| part == *name) =>
            {
                parts.push(part.string()?);
            }
            (Value(part), Some(Task::Ci(_))) => {
                let parts = ci::PARTS.map(|(name, _)| name).join(", ");
                return Err(format!("ci {}: must be one of {parts}", part.display()).into());
            }
            (Long("check"), Some(Task::BuildPtx(options))) => options.check = true,
            (Long("offline"), Some(Task::BuildPtx(options))) => options.offline = true,
            (Long("fetch-ptxas"), Some(Task::BuildPtx(options))) => options.fetch_ptxas = true,
            (Long("crate"), Some(Task::BuildPtx(_))) => krate = Some(folder(&mut parser)?),
            (Long("into"), Some(Task::BuildPtx(_))) => into = Some(folder(&mut parser)?),
            (Value(name), Some(Task::New(options))) if options.folder.as_os_str().is_empty() => {
                options.folder = name.into();
            }
            (Long("name"), Some(Task::New(options))) => {
                options.name = Some(parser.value()?.string()?);
            }
            (Long("published"), Some(Task::New(options))) => options.published = true,
            (Value(name), Some(Task::Inspect(options))) if options.kernel.is_empty() => {
                options.kernel = name.string()?;
            }
            (Long("target"), Some(Task::Inspect(options))) => {
                options.target = parser.value()?.parse_with(inspect::target)?;
            }
            (Long("constants"), Some(Task::Inspect(options))) => {
                options.constants.extend(parser.value()?.parse_with(inspect::constants)?);
            }
            (Long("ptx"), Some(Task::Inspect(options))) => options.ptx = true,
            (Long("sass"), Some(Task::Inspect(options))) => options.sass = true,
            (Long("json"), Some(Task::Inspect(options))) => options.json = true,
            (Long("fetch"), Some(Task::Inspect(options))) => options.fetch = true,
            (Long("json"), Some(Task::Doctor(options))) => options.json = true,
            (Long("offline"), Some(Task::Doctor(options))) => options.offline = true,
            (Long("check"), Some(Task::Course(options))) => options.check = true,
            (Long("check"), Some(Task::Licences(options))) => options.check = true,
            (Long("source"), Some(Task::Site(options))) => options.source = true,
            (Long("all"), Some(Task::Browser(options))) => options.all = true,
            (Long("site"), Some(Task::Browser(options))) => options.site = true,
            (Long("screenshots"), Some(Task::Browser(options))) => options.screenshots = true,
            (Value(name), None) => {
                let hint = hint(&name.to_string_lossy(), &MANUALS.map(|manual| manual.name));
                let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
                return Err(format!("there is no task {name:?}{hint}").into());
            }
            (argument, _) => return Err(argument.unexpected()),
        }
    }
    match (&mut task, krate, into) {
        (_, None, None) => {}
        (Some(Task::BuildPtx(options)), Some(krate), Some(into)) => {
            options.other = Some(build_ptx::Other { krate, into });
        }
        _ => return Err("--crate and --into go together".into()),
    }
    match task {
        Some(Task::New(options)) if options.folder.as_os_str().is_empty() => {
            Err("new in which folder?".into())
        }
        Some(Task::Inspect(options)) if options.kernel.is_empty() => {
            Err("inspect which kernel?".into())
        }
        Some(Task::Sass(commit)) if commit.is_empty() => Err("sass of which commit?".into()),
        Some(task) => Ok(task),
        None => Err("which task?".into()),
    }
}

/// The value of an option: a folder.
fn folder(parser: &mut lexopt::Parser) -> Result<PathBuf, lexopt::Error> {
    Ok(parser.value()?.into())
}
