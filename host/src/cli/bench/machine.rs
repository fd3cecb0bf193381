//! The machine of a measurement: card, driver, clocks, power, libraries, commit.

use std::{
    collections::BTreeMap,
    fs,
    process::Command,
    time::{Duration, SystemTime},
};

use host::{Device, timing::telemetry::Card};
use serde::{Deserialize, Serialize};

use super::library::Library;
use crate::cli::args::Bench;

/// machine.json. `null`: not known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Machine {
    /// In UTC, when the run began.
    pub(super) date: String,
    /// The command line.
    pub(super) command: String,
    /// The version of the command.
    pub(super) version: String,
    pub(super) profile: String,
    /// The commit of the sources. `-dirty` if there were changes.
    pub(super) commit: Option<String>,
    pub(super) seconds: Option<f64>,
    /// How far a run came that ended early.
    #[serde(default)]
    pub(super) cut_short: Option<String>,

    pub(super) device: String,
    pub(super) description: String,
    pub(super) sms: u32,
    pub(super) memory_bytes: u64,
    /// The CUDA version that the driver supports.
    pub(super) cuda: Option<String>,
    /// Driver, power limit and highest clocks, from NVML.
    pub(super) card: Option<Card>,
    /// File and version of each.
    pub(super) libraries: BTreeMap<String, String>,

    pub(super) cpu: Option<String>,
    pub(super) cores: usize,
    pub(super) os: Option<String>,
}

impl Machine {
    pub(super) fn of<T, O>(
        args: &Bench,
        device: &Device,
        libraries: &[Box<dyn Library<T, O> + '_>],
    ) -> host::Result<Self> {
        let (_, memory_bytes) = device.memory()?;
        let version = |library: &dyn Library<T, O>| (library.name().to_owned(), library.version());
        let cuda = Device::cuda_version().ok().filter(|_| device.is_cuda());
        Ok(Machine {
            date: date(SystemTime::now()),
            command: command(std::env::args().skip(1)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            commit: args.commit.clone().or_else(commit),
            seconds: None,
            cut_short: None,
            device: device.name(),
            description: device.description(),
            sms: device.sms(),
            memory_bytes,
            cuda: cuda.map(|(major, minor)| format!("{major}.{minor}")),
            card: Card::of(device).ok(),
            libraries: libraries.iter().map(|library| version(&**library)).collect(),
            cpu: line_of("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os: line_of("/etc/os-release", "PRETTY_NAME"),
        })
    }

    pub(super) fn took(&mut self, time: Duration) {
        self.seconds = Some(time.as_secs_f64().round());
    }
}

/// The command line, as a person would type it for a shell.
fn command(args: impl Iterator<Item = String>) -> String {
    let plain = |word: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=.,:/*".contains(letter);
        !word.is_empty() && word.chars().all(plain)
    };
    let quoted = |word: String| format!("'{}'", word.replace('\'', r"'\''"));
    let words = args.map(|word| if plain(&word) { word } else { quoted(word) });
    let profile = if cfg!(debug_assertions) { "" } else { "--release " };
    format!("cargo run {profile}-p host -- {}", words.collect::<Vec<_>>().join(" "))
}

/// The commit of the sources of this build, if they are still there.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output =
            Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR")]).args(args).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    let head = git(&["rev-parse", "HEAD"]).filter(|head| !head.is_empty())?;
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if dirty.is_empty() { head } else { format!("{head}-dirty") })
}

/// The value in the line of a file that starts with `key`, after a colon or an equals sign.
fn line_of(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let (_, value) = line.split_once([':', '='])?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// A day in UTC: `2026-11-21`.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (mut day, mut year) = (seconds / 86_400, 1970);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days() {
        let of = |seconds| date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(of(0), "1970-01-01");
        assert_eq!(of(951_782_400), "2000-02-29");
        assert_eq!(of(1_709_251_199), "2024-02-29");
        assert_eq!(of(1_795_219_200), "2026-11-21");
        assert_eq!(of(1_798_761_599), "2026-12-31");
    }

    #[test]
    fn a_command_that_can_be_typed_again() {
        let words =
            ["bench", "--sizes", "4*8,square", "--out", "a b", "it's $HOME"].map(str::to_owned);
        let typed = command(words.into_iter());
        assert!(
            typed.ends_with("-p host -- bench --sizes 4*8,square --out 'a b' 'it'\\''s $HOME'"),
            "{typed}"
        );
    }
}
