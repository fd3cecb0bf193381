//! What became of the mutants: a line for each, and the rates.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{
    equivalent::Equivalent,
    mutant::{Mutant, Operator},
};

/// Of the mutants that are mistakes, so many in a hundred must be found, by whatever finds them.
const CAUGHT_AT_LEAST: usize = 95;
/// So many by the checker, which needs no expected result.
const BY_CHECK_AT_LEAST: usize = 80;

/// One mutant of one kernel, and what it has shown.
#[derive(Debug)]
pub struct Outcome {
    /// `tiled16/remove-barrier@49:9`.
    pub id: String,
    /// The kernel's name.
    pub kernel: String,
    /// What was done to it.
    pub mutant: Mutant,
    /// What has become of it.
    pub end: End,
}

/// What has become of a mutant.
#[derive(Debug)]
pub enum End {
    /// It does not compile; the compiler's words.
    DoesNotCompile(String),
    /// It was run.
    Ran {
        /// What the checker found.
        check: Vec<String>,
        /// What was wrong with the result.
        verification: Vec<String>,
        /// The entry of the list that it is in.
        equivalent: Option<&'static Equivalent>,
    },
}

impl Outcome {
    /// Who found it: `check`, `verification`, `both`, or nobody.
    pub fn caught_by(&self) -> Option<&'static str> {
        let End::Ran { check, verification, .. } = &self.end else { return None };
        match (check.is_empty(), verification.is_empty()) {
            (false, true) => Some("check"),
            (true, false) => Some("verification"),
            (false, false) => Some("both"),
            (true, true) => None,
        }
    }

    /// A line for people.
    pub fn text(&self) -> String {
        let what = match &self.end {
            End::DoesNotCompile(message) => format!("does not compile: {message}"),
            End::Ran { check, verification, equivalent } => {
                let found = [check, verification].map(|found| found.first());
                let first = found.into_iter().flatten().next();
                match (self.caught_by(), first, equivalent) {
                    (Some(by), Some(first), _) => format!("caught by {by}: {first}"),
                    (_, _, Some(known)) => format!("equivalent: {}", known.reason),
                    _ => format!(
                        "MISSED: `{}` for `{}` in `{}`",
                        self.mutant.to, self.mutant.from, self.mutant.line
                    ),
                }
            }
        };
        format!("{}  {what}\n", self.id)
    }

    /// A line for programs. None of a mutant that does not compile, which is no mutant.
    pub fn json(&self) -> Option<Value> {
        let End::Ran { check, verification, equivalent } = &self.end else { return None };
        Some(json!({
            "mutant": self.id,
            "kernel": self.kernel,
            "operator": self.mutant.operator.name(),
            "from": self.mutant.from,
            "to": self.mutant.to,
            "line": self.mutant.line,
            "equivalent": equivalent.is_some(),
            "caught": self.caught_by().is_some(),
            "caught_by": self.caught_by(),
            "findings": check,
            "verification": verification.first(),
            "reason": equivalent.map(|known| known.reason),
        }))
    }
}

/// Counts of one operator, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    made: usize,
    compile: usize,
    equivalent: usize,
    by_check: usize,
    by_verification_only: usize,
    missed: usize,
}

impl Counts {
    fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Self {
        let mut counts = Counts::default();
        for outcome in outcomes {
            counts.made += 1;
            let End::Ran { equivalent, .. } = outcome.end else { continue };
            counts.compile += 1;
            match outcome.caught_by() {
                None if equivalent.is_some() => counts.equivalent += 1,
                Some("verification") => counts.by_verification_only += 1,
                Some(_) => counts.by_check += 1,
                None => counts.missed += 1,
            }
        }
        counts
    }

    fn row(&self, name: &str) -> String {
        let Counts { made, compile, equivalent, by_check, by_verification_only, missed } = self;
        format!(
            "{name:<22}{made:>6}{compile:>10}{equivalent:>12}{by_check:>10}\
             {by_verification_only:>22}{missed:>8}\n"
        )
    }
}

/// A table of the operators, and the rates.
pub fn summary(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{:<22}{:>6}{:>10}{:>12}{:>10}{:>22}{:>8}\n",
        "operator", "made", "compile", "equivalent", "by check", "by verification only", "missed"
    );
    for operator in Operator::ALL {
        let those = outcomes.iter().filter(|outcome| outcome.mutant.operator == operator);
        text += &Counts::of(those).row(operator.name());
    }
    let all = Counts::of(outcomes.iter());
    text += &all.row("all");
    let (caught, by_check, mistakes) = rates(&all);
    let percent = |count: usize| 100.0 * count as f64 / mistakes.max(1) as f64;
    text + &format!(
        "caught {caught} of {mistakes} mistakes: {:.1} % (at least {CAUGHT_AT_LEAST} %), \
         by the checker {by_check}: {:.1} % (at least {BY_CHECK_AT_LEAST} %)\n",
        percent(caught),
        percent(by_check)
    )
}

/// Are enough mistakes found?
pub fn enough(outcomes: &[Outcome]) -> bool {
    let (caught, by_check, mistakes) = rates(&Counts::of(outcomes.iter()));
    caught * 100 >= mistakes * CAUGHT_AT_LEAST && by_check * 100 >= mistakes * BY_CHECK_AT_LEAST
}

/// Holds the list of equivalent mutants to what was found.
pub fn rightly_listed(outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        // The same line may stand at two places, of which one matters.
        let is_same = |other: &&Outcome| match (&other.end, &outcome.end) {
            (End::Ran { equivalent: Some(one), .. }, End::Ran { equivalent: Some(other), .. }) => {
                std::ptr::eq(*one, *other)
            }
            _ => false,
        };
        let elsewhere = || outcomes.iter().filter(is_same).any(|one| one.caught_by().is_none());
        if let End::Ran { equivalent: Some(known), .. } = &outcome.end
            && let Some(by) = outcome.caught_by()
            && !elsewhere()
        {
            bail!("{} is caught by {by}, but listed as equivalent: {}", outcome.id, known.reason);
        }
    }
    Ok(())
}

/// Mistakes that were found, that the checker found, and all that there are.
fn rates(all: &Counts) -> (usize, usize, usize) {
    (all.by_check + all.by_verification_only, all.by_check, all.compile - all.equivalent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Equivalent = Equivalent {
        kernels: &["k"],
        operator: "halve-index",
        line: "a[i]",
        from: "i",
        to: "i / 2",
        reason: "i is 0",
    };

    fn outcome(check: &[&str], verification: &[&str], known: bool) -> Outcome {
        let mutant = Mutant {
            operator: Operator::HalveIndex,
            name: "halve-index@1:3".into(),
            line: "a[i]".into(),
            from: "i".into(),
            to: "i / 2".into(),
            text: "a[i / 2]".into(),
            file: 0,
            function: 0,
        };
        assert!(KNOWN.is("k", &mutant) && !KNOWN.is("l", &mutant));
        let found = |found: &[&str]| found.iter().map(ToString::to_string).collect();
        let equivalent = known.then_some(&KNOWN);
        let (check, verification) = (found(check), found(verification));
        let end = End::Ran { check, verification, equivalent };
        Outcome { id: "k/halve-index@1:3".into(), kernel: "k".into(), mutant, end }
    }

    #[test]
    fn a_line_for_programs() {
        let json = |check: &[&str], verification: &[&str], known| {
            let line = outcome(check, verification, known).json().unwrap();
            ["caught", "caught_by", "equivalent", "reason"].map(|key| line[key].clone())
        };
        let null = Value::Null;
        assert_eq!(json(&["race"], &[], false), [true.into(), "check".into(), false.into(), null]);
        let wrong = &["C(0, 0) = 1, not 2"];
        assert_eq!(json(&[], wrong, false)[1], "verification");
        assert_eq!(json(&["race"], wrong, false)[1], "both");
        let known = json(&[], &[], true);
        assert_eq!(known, [false.into(), Value::Null, true.into(), "i is 0".into()]);
        let broken =
            Outcome { end: End::DoesNotCompile("E0425".into()), ..outcome(&[], &[], false) };
        assert_eq!(broken.json(), None);
        assert!(broken.text().contains("does not compile: E0425"));
    }

    #[test]
    fn the_list_of_equivalents_is_held_to_what_was_found() {
        let listed =
            |outcomes: &[Outcome]| rightly_listed(outcomes).map_err(|error| error.to_string());
        assert_eq!(listed(&[outcome(&[], &[], true)]), Ok(()));
        let found = listed(&[outcome(&[], &["wrong"], true)]).unwrap_err();
        assert!(
            found.contains("caught by verification, but listed as equivalent: i is 0"),
            "{found}"
        );
        assert_eq!(listed(&[]), Ok(()));
    }

    #[test]
    fn rates_are_of_mistakes_alone() {
        let mut outcomes = (0..16).map(|_| outcome(&["race"], &[], false)).collect::<Vec<_>>();
        outcomes.extend((0..3).map(|_| outcome(&[], &["wrong"], false)));
        outcomes.push(outcome(&[], &[], true));
        assert!(enough(&outcomes));

        // 19 of 20 are 95 %, and 16 of 20 are 80 %; one less of either is too little.
        outcomes.push(outcome(&[], &[], false));
        assert!(enough(&outcomes));
        let text = summary(&outcomes);
        assert!(text.contains("caught 19 of 20 mistakes: 95.0 %"), "{text}");
        assert!(text.contains("by the checker 16: 80.0 %"), "{text}");
        assert!(outcomes.last().unwrap().text().contains("MISSED: `i / 2` for `i` in `a[i]`"));
        outcomes.push(outcome(&[], &["wrong"], false));
        assert!(!enough(&outcomes), "16 of 21 by the checker");
        outcomes.extend((0..5).map(|_| outcome(&["race"], &[], false)));
        assert!(enough(&outcomes));
        outcomes.push(outcome(&[], &[], false));
        assert!(!enough(&outcomes), "25 of 27 by anything");
    }
}
