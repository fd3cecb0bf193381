//! The commands in README and in the pages of `docs`: each has a subcommand and flags that exist,
//! each example that they run is there, and what two of them print is what the pages show.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use self::common::{finish, host, succeeds};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// README, and the pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let (mut pages, mut folders) = (vec![root().join("README.md")], vec![root().join("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "md") => pages.push(path),
                false => {}
            }
        }
    }
    pages
}

/// The commands of the blocks of a page that show a console: the words of each, without comments
/// and files that the shell writes.
fn commands(page: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(page).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
    let words = |line: &str| {
        let own = line.split_whitespace().take_while(|word| !["#", ">", "|"].contains(word));
        own.map(str::to_owned).collect()
    };
    lines.map(words).collect()
}

/// The word after a flag.
fn after<'a>(words: &'a [String], flag: &str) -> Option<&'a str> {
    let place = words.iter().position(|word| word == flag)?;
    words.get(place + 1).map(String::as_str)
}

/// The lines that a page shows below a command, in the next block.
fn shown(page: &str, command: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let (_, after) = text.split_once(command).unwrap_or_else(|| panic!("{page}: {command}"));
    let (_, block) = after.split_once("```text\n").unwrap();
    block.split("\n```").next().unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Times depend on the machine; so do its cores, and the kernel that is fast on them.
#[test]
fn the_first_command_prints_what_readme_shows() {
    let args = ["--m", "1000", "--n", "700", "--k", "513"];
    let shown = shown("README.md", &format!("$ cargo run -p host -- {}", args.join(" ")));
    let (code, stdout, stderr) = finish(host(&args));
    assert_eq!(code, 0, "{stderr}");
    let printed = stderr.lines().chain(stdout.lines()).collect::<Vec<_>>();
    assert_eq!(printed.len(), shown.len(), "{stderr}{stdout}");
    for (printed, shown) in printed.into_iter().zip(&shown) {
        let word = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        match ["device", "kernel", "time"].contains(&&*word(shown)) {
            true => assert_eq!(word(printed), word(shown), "{stdout}"),
            false => assert_eq!(printed, shown, "{stdout}"),
        }
    }
}

#[test]
fn a_profile_prints_what_the_guide_shows() {
    let args = ["profile", "--kernel", "tiled16", "--m", "1000", "--n", "700", "--k", "513"];
    let command = format!("$ cargo run -p host -- {}", args.join(" "));
    let stdout = succeeds(host(&args));
    for line in shown("docs/guide/command-line.md", &command) {
        // Dots stand for lines that are left out, and the time is another each time.
        let known = line.split(" blocks in ").next().unwrap_or_default();
        assert!(line == "..." || stdout.contains(known), "{line}: {stdout}");
    }
}

/// The commands of the guides that take no GPU, no file and no minute. Those with output on the
/// page have their own tests, as have `tour`, `ladder` and `gemm`.
#[test]
fn commands_of_the_guides_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for page in pages().iter().filter(|page| page.parent().unwrap().ends_with("guide")) {
        for words in commands(page) {
            let own = words.iter().skip_while(|word| *word != "--").skip(1).map(String::as_str);
            let own = own.collect::<Vec<_>>();
            let is_quick =
                ["check", "explain", "profile"].map(Some).contains(&own.first().copied());
            if words.get(1).is_none_or(|word| word != "run")
                || after(&words, "-p") != Some("host")
                || !is_quick
            {
                continue;
            }
            let mut command = host(&own);
            command.current_dir(folder.path());
            let (code, stdout, stderr) = finish(command);
            assert_eq!(code, 0, "{}: {own:?}: {stderr}", page.display());
            match after(&words, "--html") {
                Some(file) => {
                    let html = fs::read_to_string(folder.path().join(file)).unwrap();
                    let kernel = after(&words, "--kernel").unwrap_or(own[1]);
                    assert!(html.contains("<script") && html.contains(kernel), "{own:?}");
                }
                None if own.contains(&"--json") => {
                    let json = serde_json::from_str::<serde_json::Value>(&stdout).unwrap();
                    assert!(json["requests"].is_array(), "{own:?}: {stdout}");
                }
                None => {
                    assert!(stdout.contains(own[1].trim_start_matches('-')), "{own:?}: {stdout}")
                }
            }
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen} commands");
}

#[test]
fn commands_in_the_pages_have_flags_that_exist() {
    let (mut helps, mut seen) = (BTreeMap::new(), 0);
    for page in pages() {
        for words in commands(&page) {
            let of_host = after(&words, "-p") == Some("host");
            let Some(place) = words.iter().position(|word| word == "--").filter(|_| of_host) else {
                continue;
            };
            // An example has arguments of its own.
            if words.get(1).is_none_or(|word| word != "run") || after(&words, "--example").is_some()
            {
                continue;
            }
            let own = &words[place + 1..];
            let name = own.first().filter(|word| !word.starts_with('-'));
            let help = helps.entry(name.cloned()).or_insert_with_key(|name| {
                let args = name.iter().map(String::as_str).chain(["--help"]).collect::<Vec<_>>();
                let (code, stdout, stderr) = finish(host(&args));
                assert_eq!(code, 0, "{}: {name:?}: {stderr}", page.display());
                stdout
            });
            for flag in own.iter().filter(|word| word.starts_with("--")) {
                let flag = flag.split('=').next().unwrap_or_default();
                let line = words.join(" ");
                assert!(help.contains(flag), "{}: {line}: no {flag}", page.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} commands");
}

#[test]
fn examples_in_the_pages_are_there() {
    let folders = BTreeMap::from([
        ("host", "host/examples"),
        ("gpu-gemm", "host/lib/examples"),
        ("gpu-simt", "gpu/simt/examples"),
    ]);
    let mut seen = 0;
    for page in pages() {
        for words in commands(&page) {
            let (Some(package), Some(name)) = (after(&words, "-p"), after(&words, "--example"))
            else {
                continue;
            };
            let folder = folders.get(package).unwrap_or_else(|| panic!("{package}: {words:?}"));
            let file = root().join(folder).join(format!("{name}.rs"));
            assert!(file.is_file(), "{}: {words:?}: no {}", page.display(), file.display());
            seen += 1;
        }
    }
    assert!(seen > 6, "{seen} examples");
}
