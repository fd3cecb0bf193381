//! Retired words. A concept has one word, which the glossary names.

use std::collections::BTreeMap;

use super::{
    page::{Page, without_code},
    refusal::{OWN, Refusal},
};

type Row = (&'static str, &'static str, &'static str);

/// Retired words, what to write instead, and the folder where the rule holds. Small letters stand
/// for either case of a first letter. Anything else is an identifier, exactly.
const RETIRED: &[Row] = &[
    ("multiprocessor", "SM", ""),
    ("multiprocessors", "SMs", ""),
    ("second level cache", "L2", ""),
    ("tensor memory accelerator", "TMA", ""),
    ("the accelerator", "TMA", ""),
    ("tensor copies", "TMA", ""),
    ("turned over", "transposed", ""),
    ("lie along", "be K-major or MN-major", ""),
    ("lies along", "is K-major or MN-major", ""),
    ("begin anywhere", "are unaligned", ""),
    ("begins anywhere", "is unaligned", ""),
    ("ways to lie", "layouts", ""),
    ("way to lie", "layout", ""),
    ("step of k", "k-step", ""),
    ("steps of k", "k-steps", ""),
    ("product of slices", "emulated fp32", ""),
    ("products of slices", "emulated fp32", ""),
    ("in scaled slices", "emulated", ""),
    ("cut into slices", "split into slices", ""),
    ("on its way to c", "staged for C", ""),
    ("on their way to c", "staged for C", ""),
    ("are doubted", "are uncertain", ""),
    ("is doubted", "is uncertain", ""),
    ("go_on", "advance", "gpu/src"),
    ("BAND", "a raster group", "gpu/src"),
    ("InWords", "PackedStore", "gpu/src"),
    ("LastColumns", "the background work that packs the tail of B", "gpu/src"),
    ("Shifted", "UnalignedA", "gpu/src"),
    ("Orientation", "OperandPlan", "host"),
    ("choose_again", "a cached choice", "host"),
];

pub(super) fn check(pages: &[Page], sources: &[(String, String)]) -> Vec<Refusal> {
    let retired = Retired::new(RETIRED);
    let mut refusals = Vec::new();
    let mut look = |file: &str, text: &str| {
        for (line, (word, instead, _)) in retired.find(file, text) {
            let what = format!("`{word}` is retired: write `{instead}` (docs/glossary.md)");
            refusals.push(Refusal { file: file.to_owned(), line, what });
        }
    };
    // The glossary explains these words.
    for page in pages.iter().filter(|page| page.file != "docs/glossary.md") {
        // Blank lines replace what is not prose, so that line numbers stay.
        let mut lines = vec![String::new(); page.lines.len()];
        page.written().for_each(|line| lines[line.number - 1] = without_code(line.text));
        look(page.file, &lines.join("\n"));
    }
    for (file, text) in sources.iter().filter(|(file, _)| !file.starts_with(OWN)) {
        look(file, text);
    }
    refusals
}

/// The table by the first word of each row.
struct Retired {
    rows: BTreeMap<&'static str, Vec<(Vec<&'static str>, Row)>>,
    /// The bytes with which a first word can start, in either case.
    starts: [bool; 256],
}

impl Retired {
    fn new(table: &'static [Row]) -> Retired {
        let mut retired = Retired { rows: BTreeMap::new(), starts: [false; 256] };
        for row in table {
            let words = row.0.split(' ').collect::<Vec<_>>();
            let first = words[0].as_bytes()[0];
            retired.starts[usize::from(first)] = true;
            retired.starts[usize::from(first.to_ascii_uppercase())] = true;
            retired.rows.entry(words[0]).or_default().push((words, *row));
        }
        retired
    }

    /// The retired words in a file, and their lines.
    fn find(&self, file: &str, text: &str) -> Vec<(usize, Row)> {
        let mut found = Vec::new();
        let (mut line, mut counted) = (1, 0);
        let mut at = 0;
        while let Some((start, end)) = next_word(text.as_bytes(), at) {
            at = end;
            if !self.starts[usize::from(text.as_bytes()[start])] {
                continue;
            }
            let word = &text[start..end];
            let Some(rows) = self.rows.get(word).or_else(|| self.rows.get(&*small(word))) else {
                continue;
            };
            let is_here = |(words, row): &&(Vec<&str>, Row)| {
                file.starts_with(row.2) && follows(text, end, &words[1..])
            };
            if let Some((_, row)) = rows.iter().find(is_here) {
                line += text.as_bytes()[counted..start].iter().filter(|b| **b == b'\n').count();
                counted = start;
                found.push((line, *row));
            }
        }
        found
    }
}

/// The next word of letters, digits and underscores.
fn next_word(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let start = from + text[from..].iter().position(is_word)?;
    let length = text[start..].iter().position(|b| !is_word(b)).unwrap_or(text.len() - start);
    Some((start, start + length))
}

/// A word as in the table: `The` becomes `the`. An identifier stays.
fn small(word: &str) -> String {
    match word.len() > 1 && word[1..].bytes().all(|b| b.is_ascii_lowercase()) {
        true => word.to_ascii_lowercase(),
        false => word.to_owned(),
    }
}

/// Whether these words follow, with nothing in between but the ends and starts of lines.
fn follows(text: &str, mut at: usize, words: &[&str]) -> bool {
    words.iter().all(|wanted| {
        let Some((start, end)) = next_word(text.as_bytes(), at) else { return false };
        let between = &text[at..start];
        let is_next = between.bytes().all(|b| b" \t\n-/!#*".contains(&b));
        at = end;
        is_next && text[start..end].eq_ignore_ascii_case(wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(file: &str, text: &str) -> Vec<String> {
        let sources = [(file.to_owned(), text.to_owned())];
        check(&[], &sources).into_iter().map(|refusal| refusal.to_string()).collect()
    }

    #[test]
    fn retired_words_are_refused_with_the_line_and_the_word_to_write() {
        let text = "// It reads the second-level\n// cache. The accelerator\nfn the_accelerator(multiprocessors: u32) {}\n";
        assert_eq!(
            refused("a/b/c.rs", text),
            [
                "a/b/c.rs:1: `second level cache` is retired: write `L2` (docs/glossary.md)",
                "a/b/c.rs:2: `the accelerator` is retired: write `TMA` (docs/glossary.md)",
                "a/b/c.rs:3: `multiprocessors` is retired: write `SMs` (docs/glossary.md)",
            ]
        );
        let [shifted] = &refused("gpu/src/a.rs", "let x = Shifted::new(shifted);")[..] else {
            panic!("one")
        };
        assert!(shifted.contains("`Shifted` is retired: write `UnalignedA`"), "{shifted}");
        // Not words that are apart, parts of identifiers, or identifiers in other letters.
        assert_eq!(
            refused("a.rs", "// the, accelerator; most_multiprocessors, band, BANDS"),
            [""; 0]
        );
    }

    #[test]
    fn code_and_generated_text_of_a_page_may_have_them() {
        let text = "`multiprocessor`\n```\nmultiprocessor\n```\n<!-- ladder -->\nmultiprocessor\n<!-- end -->\n| multiprocessor |\n";
        let refusals = check(&[Page::new("docs/a.md", text)], &[]);
        assert_eq!(refusals.iter().map(|refusal| refusal.line).collect::<Vec<_>>(), [8]);
    }
}
