//! A finding, and the summary of all.

use std::{fmt, process::ExitCode};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::environment::{note, say};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    /// Something optional is absent.
    Absent,
    /// Something is missing that some need.
    Warn,
    /// Something is broken.
    Fail,
}

impl Status {
    const ALL: [Status; 4] = [Status::Ok, Status::Absent, Status::Warn, Status::Fail];

    /// The name in JSON.
    fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Absent => "absent",
            Status::Warn => "warn",
            Status::Fail => "fail",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        // An absent thing must not look as if it had been found.
        f.pad(if *self == Status::Absent { "-" } else { self.name() })
    }
}

/// A check of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) found: String,
    /// What to do.
    pub(super) advice: Option<String>,
}

impl Line {
    pub(super) fn ok(name: impl Into<String>, found: impl Into<String>) -> Line {
        Line { name: name.into(), status: Status::Ok, found: found.into(), advice: None }
    }

    pub(super) fn absent(name: impl Into<String>, found: impl Into<String>) -> Line {
        Line { status: Status::Absent, ..Line::ok(name, found) }
    }

    pub(super) fn new(
        status: Status,
        name: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Line {
        Line { name: name.into(), status, found: found.into(), advice: Some(advice.into()) }
    }

    /// Parses a line of `host doctor --json`.
    pub(super) fn parse(text: &str) -> Result<Line> {
        let value: Value = serde_json::from_str(text)?;
        let field = |key: &str| {
            value[key].as_str().map(String::from).with_context(|| format!("`{key}` is no text"))
        };
        let status = field("status")?;
        let known = Status::ALL.into_iter().find(|known| known.name() == status);
        Ok(Line {
            name: field("name")?,
            status: known.with_context(|| format!("status `{status}`"))?,
            found: field("found")?,
            advice: match &value["advice"] {
                Value::Null => None,
                _ => Some(field("advice")?),
            },
        })
    }

    pub(super) fn json(&self) -> Value {
        json!({ "name": self.name, "status": self.status.name(), "found": self.found, "advice": self.advice })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:<4}  {:<24}  {}", self.status, self.name, self.found)?;
        match &self.advice {
            Some(advice) => write!(f, "\n      {:<24}  -> {advice}", ""),
            None => Ok(()),
        }
    }
}

/// The summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verdict {
    pub(super) warnings: usize,
    pub(super) failures: usize,
    /// A product on a device of this machine was wrong.
    pub(super) wrong: bool,
}

impl Verdict {
    /// 0 without a failure, 1 if a product was wrong, 3 for other failures.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Verdict { wrong: true, .. } => 1,
            Verdict { failures: 0, .. } => 0,
            _ => 3,
        })
    }

    /// Counts a line and prints it, as JSON or as text.
    pub(super) fn tell(&mut self, json: bool, line: &Line) {
        match line.status {
            Status::Ok | Status::Absent => {}
            Status::Warn => self.warnings += 1,
            Status::Fail => self.failures += 1,
        }
        let said = say(&match json {
            true => format!("{}\n", line.json()),
            false => format!("{line}\n"),
        });
        if let Err(error) = said {
            note(&format!("error: {error:#}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_and_read_alike() {
        for line in [
            Line::ok("disk \"a\"", "12 GB"),
            Line::absent("compiler", "not needed"),
            Line::new(Status::Warn, "driver", "none\nat all", "install it"),
            Line::new(Status::Fail, "cpu", "wrong", "report it"),
        ] {
            assert_eq!(Line::parse(&line.json().to_string()).unwrap(), line);
        }
        for bad in [
            "",
            "{}",
            "[1]",
            r#"{"name":"a","status":"good","found":"b","advice":null}"#,
            r#"{"name":"a","status":"ok","found":1,"advice":null}"#,
            r#"{"name":"a","status":"ok","found":"b","advice":7}"#,
        ] {
            assert!(Line::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_exit_code_tells_wrong_from_broken() {
        let code =
            |failures, wrong| format!("{:?}", Verdict { warnings: 9, failures, wrong }.exit_code());
        let expected = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(code(0, false), expected(0));
        assert_eq!(code(2, false), expected(3));
        assert_eq!(code(1, true), expected(1));
    }
}
