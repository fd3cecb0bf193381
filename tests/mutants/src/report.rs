//! The outcomes of mutants: a line each, the rates, and the table in `tests/mutants/record.txt`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::{
    mutant::{Mutant, on_one_line},
    operators::Operator,
    trial::Findings,
};

/// Of a hundred mutants that make a difference, the fewest that must be caught: by anything, and by
/// the checker, which needs no expected result.
pub type Least = [usize; 2];

/// For a run of all mutants.
pub const OF_ALL: Least = [97, 76];
/// For a run of some.
pub const OF_SOME: Least = [90, 60];

/// The outcome of a mutant.
#[derive(Clone, Debug)]
pub enum End {
    /// The compiler's message.
    DoesNotCompile(String),
    Ran(Findings),
}

/// A mutant, and its outcome.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub mutant: Mutant,
    /// The path of its file.
    pub file: String,
    /// The hash of what the file's mutants depend on.
    pub content: u64,
    pub end: End,
    /// Why it makes no difference, if listed.
    pub equivalent: Option<String>,
}

impl Outcome {
    fn findings(&self) -> Option<&Findings> {
        match &self.end {
            End::Ran(findings) => Some(findings),
            End::DoesNotCompile(_) => None,
        }
    }

    pub fn by_check(&self) -> bool {
        self.findings().is_some_and(|found| !found.check.is_empty())
    }

    pub fn caught(&self) -> bool {
        self.by_check() || self.findings().is_some_and(|found| found.result.is_some())
    }

    /// Whether it is a mistake that nothing finds.
    pub fn missed(&self) -> bool {
        self.findings().is_some() && !self.caught() && self.equivalent.is_none()
    }

    /// A line for people.
    pub fn text(&self) -> String {
        let what = match (&self.end, &self.equivalent) {
            (End::DoesNotCompile(message), _) => format!("does not compile: {message}"),
            (End::Ran(found), reason) => match (found.check.first(), &found.result, reason) {
                (Some(first), None, _) => format!("caught by check: {first}"),
                (Some(first), Some(_), _) => format!("caught by both: {first}"),
                (None, Some(result), _) => format!("caught by its result: {result}"),
                (None, None, Some(reason)) => format!("makes no difference: {reason}"),
                (None, None, None) if found.reached => {
                    format!("MISSED: {}", on_one_line(&self.mutant.to))
                }
                (None, None, None) => "MISSED: no trial reaches it".into(),
            },
        };
        format!("{}  {what}\n", self.mutant.name)
    }

    /// A line for programs.
    pub fn json(&self) -> Value {
        let found = self.findings();
        json!({
            "mutant": self.mutant.name,
            "file": self.file,
            "content": format!("{:016x}", self.content),
            "to": self.mutant.to,
            "compiles": found.is_some(),
            "equivalent": self.equivalent,
            "reached": found.is_some_and(|found| found.reached),
            "check": found.map(|found| &found.check),
            "result": found.and_then(|found| found.result.as_ref()),
        })
    }
}

/// Counts of one operator, of one file, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    made: usize,
    compile: usize,
    equivalent: usize,
    caught: usize,
    by_check: usize,
    missed: usize,
}

impl Counts {
    fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let mut counts = Counts::default();
        for outcome in outcomes {
            counts.made += 1;
            counts.compile += usize::from(outcome.findings().is_some());
            counts.caught += usize::from(outcome.caught());
            counts.by_check += usize::from(outcome.by_check());
            counts.missed += usize::from(outcome.missed());
        }
        counts.equivalent = counts.compile - counts.caught - counts.missed;
        counts
    }

    fn mistakes(&self) -> usize {
        self.caught + self.missed
    }
}

/// A table of the operators, and the rates.
pub fn summary(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{:<24}{:>6}{:>9}{:>15}{:>8}{:>10}{:>8}\n",
        "operator", "made", "compile", "no difference", "caught", "by check", "missed"
    );
    let mut row = |name: &str, counts: Counts| {
        let Counts { made, compile, equivalent, caught, by_check, missed } = counts;
        let _ = writeln!(
            text,
            "{name:<24}{made:>6}{compile:>9}{equivalent:>15}{caught:>8}{by_check:>10}{missed:>8}"
        );
    };
    for (operator, name) in Operator::ALL {
        row(name, Counts::of(outcomes.iter().filter(|one| one.mutant.operator == operator)));
    }
    let all = Counts::of(outcomes);
    row("all", all);
    let percent = |count: usize| 100.0 * count as f64 / all.mistakes().max(1) as f64;
    let _ = writeln!(
        text,
        "caught {} of {} mistakes: {:.1} %, by the checker {}: {:.1} %",
        all.caught,
        all.mistakes(),
        percent(all.caught),
        all.by_check,
        percent(all.by_check)
    );
    text
}

/// Why too few are found, if so.
pub fn too_few(outcomes: &[Outcome], [caught, by_check]: Least) -> Option<String> {
    let all = Counts::of(outcomes);
    let enough = all.caught * 100 >= all.mistakes() * caught
        && all.by_check * 100 >= all.mistakes() * by_check;
    (!enough).then(|| format!("{caught} % must be caught, {by_check} % by the checker"))
}

/// Mutants that are listed as making no difference, but are caught.
pub fn wrongly_listed(outcomes: &[Outcome]) -> Vec<&str> {
    let wrong = outcomes.iter().filter(|one| one.equivalent.is_some() && one.caught());
    wrong.map(|one| &*one.mutant.name).collect()
}

/// The known results of each file: a row of the table in `tests/mutants/record.txt`.
#[derive(Default)]
pub struct Record {
    rows: BTreeMap<String, Row>,
}

struct Row {
    /// The columns between the file's name and its hash.
    counts: String,
    content: String,
    commit: String,
    missed: BTreeSet<String>,
}

impl Record {
    /// Reads the document.
    pub fn parse(document: &str) -> Self {
        let mut record = Record::default();
        for line in document.lines() {
            let cells = line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
            if let [file, counts @ .., content, commit] = &*cells
                && let Some(file) =
                    file.strip_prefix('`').and_then(|file| file.strip_suffix(".rs`"))
            {
                let (counts, missed) = (counts.join(" | "), BTreeSet::new());
                let (content, commit) = (content.to_string(), commit.to_string());
                let row = Row { counts, content, commit, missed };
                record.rows.insert(format!("{file}.rs"), row);
            } else if let Some((file, name)) =
                line.strip_prefix("* ").and_then(|missed| missed.split_once(": `"))
                && let Some(row) = record.rows.get_mut(file)
            {
                row.missed.insert(name.trim_end_matches('`').to_owned());
            }
        }
        record
    }

    /// Whether a file's current content was run.
    pub fn is_current(&self, file: &str, content: u64) -> bool {
        self.rows.get(file).is_some_and(|row| row.content == format!("{content:016x}"))
    }

    /// Whether the table says that nothing finds this mutant.
    pub fn knows(&self, outcome: &Outcome) -> bool {
        self.rows.get(&outcome.file).is_some_and(|row| row.missed.contains(&outcome.mutant.name))
    }

    /// Takes in the outcomes of all mutants of a file.
    pub fn renew(&mut self, file: &str, content: u64, commit: &str, outcomes: &[&Outcome]) {
        let Counts { made, compile, equivalent, caught, by_check, missed } =
            Counts::of(outcomes.iter().copied());
        let counts = [made, compile, equivalent, caught, by_check, missed];
        let counts = counts.map(|count| count.to_string()).join(" | ");
        let missed = outcomes.iter().filter(|outcome| outcome.missed());
        let missed = missed.map(|outcome| outcome.mutant.name.clone()).collect();
        let (content, commit) = (format!("{content:016x}"), commit.to_owned());
        self.rows.insert(file.to_owned(), Row { counts, content, commit, missed });
    }

    /// Removes files that no longer exist.
    pub fn retain(&mut self, files: &BTreeSet<&str>) {
        self.rows.retain(|file, _| files.contains(&**file));
    }

    /// Writes the document again. The text before the table stays.
    pub fn document(&self, before: &str) -> Result<String> {
        let head = before.lines().position(|line| line.starts_with("| file"));
        let head = head.context("the document has no table `| file ..`")?;
        let mut text = before.lines().take(head).fold(String::new(), |all, line| all + line + "\n");
        text += "| file | made | compile | no difference | caught | by check | missed | content | commit |\n";
        text += "|---|--:|--:|--:|--:|--:|--:|---|---|\n";
        let mut sums = [0; 6];
        for (file, Row { counts, content, commit, .. }) in &self.rows {
            let _ = writeln!(text, "| `{file}` | {counts} | {content} | {commit} |");
            let counts = counts.split(" | ").map(|count| count.parse().unwrap_or(0));
            sums.iter_mut().zip(counts).for_each(|(sum, count): (&mut usize, usize)| *sum += count);
        }
        let all = sums.map(|sum| sum.to_string()).join(" | ");
        let [.., caught, by_check, missed] = sums;
        let percent = |count: usize| 100.0 * count as f64 / (caught + missed).max(1) as f64;
        let _ = writeln!(text, "| all | {all} | | |");
        let (of_all, of_check) = (percent(caught), percent(by_check));
        let _ = writeln!(text, "\nCaught: {of_all:.1} %, by the checker: {of_check:.1} %.");
        text += "\n## Missed\n\n";
        for (file, Row { missed, .. }) in &self.rows {
            missed.iter().for_each(|name| text += &format!("* {file}: `{name}`\n"));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(check: &[&str], result: Option<&str>, equivalent: Option<&str>) -> Outcome {
        let mutant = Mutant {
            id: 1,
            site: 1,
            name: "walk/f/halve-index/i".into(),
            operator: Operator::HalveIndex,
            file: 0,
            range: 0..1,
            to: "i / 2".into(),
        };
        let check = check.iter().map(ToString::to_string).collect();
        let end = End::Ran(Findings { check, result: result.map(Into::into), reached: true });
        Outcome {
            mutant,
            file: "walk/rows.rs".into(),
            content: 0xab,
            end,
            equivalent: equivalent.map(Into::into),
        }
    }

    #[test]
    fn rates_are_of_mistakes_alone() {
        let mut all = (0..77).map(|_| outcome(&["race"], None, None)).collect::<Vec<_>>();
        all.extend((0..20).map(|_| outcome(&[], Some("C"), None)));
        all.extend([outcome(&[], None, Some("i is 0")), outcome(&[], None, Some("i is 0"))]);
        all.extend((0..3).map(|_| outcome(&[], None, None)));
        assert_eq!(too_few(&all, [97, 77]), None);
        assert!(
            summary(&all).contains("caught 97 of 100 mistakes: 97.0 %, by the checker 77: 77.0 %")
        );
        assert!(all.last().unwrap().text().contains("MISSED: i / 2"));
        assert!(wrongly_listed(&all).is_empty());
        all.push(outcome(&[], None, None));
        assert!(too_few(&all, [97, 77]).is_some());
        all.push(outcome(&["race"], None, Some("i is 0")));
        assert_eq!(wrongly_listed(&all), ["walk/f/halve-index/i"]);
        assert_eq!(all[0].json()["check"], json!(["race"]));
    }

    #[test]
    fn the_table_is_read_as_it_is_written() {
        let mut record = Record::default();
        let (caught, missed) = (outcome(&["race"], None, None), outcome(&[], None, None));
        record.renew("walk/rows.rs", 0xab, "1234567", &[&caught, &missed]);
        let before = "# Mutants\n\nWhat it is.\n\n| file | old |\n";
        let document = record.document(before).unwrap();
        assert!(document.starts_with("# Mutants\n\nWhat it is.\n\n| file | made |"), "{document}");
        let row = "| `walk/rows.rs` | 2 | 2 | 0 | 1 | 1 | 1 | 00000000000000ab | 1234567 |";
        assert!(document.contains(row), "{document}");
        assert!(document.contains("| all | 2 | 2 | 0 | 1 | 1 | 1 |"), "{document}");
        let mut again = Record::parse(&document);
        assert_eq!(again.document(before).unwrap(), document);
        assert!(again.is_current("walk/rows.rs", 0xab) && !again.is_current("walk/rows.rs", 0xac));
        assert!(again.knows(&missed));
        again.retain(&BTreeSet::new());
        assert!(!again.knows(&missed));
        assert!(Record::default().document("no table").is_err());
    }
}
