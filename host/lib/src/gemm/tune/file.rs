//! The file of a cache: text, a first line with the version, and a line an answer, whose fields
//! are separated by tabs.
//!
//! ```text
//! gpu-gemm tuning 1
//! wgmma_bf16_128x128x64_nn<tab>1<tab>1<tab>12.5<tab>8<tab>NVIDIA H200 9.0 of 132 SMs; ..
//! ```
//!
//! The fields: kernel, split of k, partial products, microseconds, number of candidates, question.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    error::{Error, Result},
    gemm::select::{MOST_PARTIALS, MOST_SPLITS},
};

/// The first line.
const FIRST: &str = "gpu-gemm tuning 1";

/// Bytes at most: more than 100,000 answers.
const MOST_BYTES: u64 = 64 << 20;

/// The fastest of the candidates of a question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) kernel: String,
    pub(super) split_k: u32,
    pub(super) partials: u32,
    /// Microseconds of a product.
    pub(super) us: f64,
    /// The number of candidates that were timed.
    pub(super) timed: u32,
}

/// Answers by the text of their questions.
pub(super) type Answers = BTreeMap<String, Answer>;

/// Where the answers are kept.
#[derive(Debug)]
pub(super) struct File(PathBuf);

impl File {
    /// The file of that path, also after the process has changed its folder. If it is a link, the
    /// file that it names.
    ///
    /// # Errors
    /// [`Error::File`] for a path that has no folder.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| refused(path, error.to_string());
        let whole = match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::path::absolute(path).map_err(failed)?
            }
            whole => whole.map_err(failed)?,
        };
        if !whole.parent().is_some_and(Path::is_dir) {
            return Err(refused(path, "its folder does not exist"));
        }
        Ok(File(whole))
    }

    /// The answers in the file. None if it does not exist.
    ///
    /// # Errors
    /// [`Error::File`].
    pub(super) fn read(&self) -> Result<Answers> {
        let path = &*self.0;
        let failed = |error: io::Error| refused(path, error.to_string());
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Answers::new()),
            metadata => metadata.map_err(failed)?,
        };
        if !metadata.is_file() {
            return Err(refused(path, "must be a file"));
        }
        if metadata.len() > MOST_BYTES {
            let limit = format!("must be at most {MOST_BYTES} bytes, as a file of answers is");
            return Err(Error::file(path, "bytes", metadata.len(), limit));
        }
        parse(path, &fs::read_to_string(path).map_err(failed)?)
    }

    /// Replaces the file in one step.
    ///
    /// # Errors
    /// [`Error::Unwritten`]. The file is as it was.
    pub(super) fn write(&self, answers: &Answers) -> Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut new = self.0.clone().into_os_string();
        new.push(format!(".{}-{number}.new", process::id()));
        let new = PathBuf::from(new);
        let written = || -> io::Result<()> {
            let mut file = fs::File::options().write(true).create_new(true).open(&new)?;
            if let Ok(old) = fs::metadata(&self.0) {
                file.set_permissions(old.permissions())?;
            }
            file.write_all(text(answers).as_bytes())?;
            // Its contents are on the disk before its name is.
            file.sync_all()?;
            fs::rename(&new, &self.0)
        };
        written().map_err(|error| {
            let _ = fs::remove_file(&new);
            let (argument, file) = ("path".to_owned(), self.0.display().to_string());
            Error::Unwritten { argument, file, reason: error.to_string() }
        })
    }
}

fn refused(path: &Path, what: impl Into<String>) -> Error {
    Error::File { file: path.display().to_string(), what: what.into() }
}

fn text(answers: &Answers) -> String {
    let mut text = format!("{FIRST}\n");
    for (question, answer) in answers {
        let Answer { kernel, split_k, partials, us, timed } = answer;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{kernel}\t{split_k}\t{partials}\t{us}\t{timed}\t{question}");
    }
    text
}

fn parse(path: &Path, text: &str) -> Result<Answers> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first != FIRST {
        let limit =
            format!("must be {FIRST:?}: this is no file of answers, or one of another version");
        return Err(Error::file(path, "line 1", format!("{:?}", shortened(first)), limit));
    }
    if !text.ends_with('\n') {
        return Err(refused(path, "its last line has no end: the file is cut off"));
    }
    let mut answers = Answers::new();
    for (line, number) in rest.lines().zip(2..) {
        let wrong = |limit: &str| {
            let field = format!("line {number}");
            Error::file(path, &field, format!("{:?}", shortened(line)), limit)
        };
        let (question, answer) = answer_of(line).map_err(wrong)?;
        if answers.insert(question.to_owned(), answer).is_some() {
            return Err(wrong("must be the only answer to its question"));
        }
    }
    Ok(answers)
}

/// The question and the answer of a line.
///
/// # Errors
/// What the line must be.
fn answer_of(line: &str) -> std::result::Result<(&str, Answer), &'static str> {
    let fields = line.split('\t').collect::<Vec<_>>();
    let [kernel, split_k, partials, us, timed, question] = fields[..] else {
        return Err(
            "must have six fields and tabs between: kernel, split_k, partials, microseconds, candidates, question",
        );
    };
    let count = |text: &str, most: u32, limit| {
        text.parse().ok().filter(|count| (1..=most).contains(count)).ok_or(limit)
    };
    let us = us.parse().ok().filter(|us: &f64| us.is_finite() && *us >= 0.0);
    if kernel.is_empty() || question.is_empty() {
        return Err("must name a kernel and a question");
    }
    let answer = Answer {
        kernel: kernel.to_owned(),
        split_k: count(split_k, MOST_SPLITS, "its split_k must be 1 to 8")?,
        partials: count(partials, MOST_PARTIALS, "its partials must be 1 to 4096")?,
        us: us.ok_or("its microseconds must be a number from 0 on")?,
        timed: count(timed, u32::MAX, "its number of candidates must be positive")?,
    };
    Ok((question, answer))
}

/// At most 80 characters of a line, for a message.
fn shortened(line: &str) -> String {
    line.chars().take(80).collect()
}
