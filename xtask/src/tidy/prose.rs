//! Paragraphs and sentences that are too long.

use super::{
    page::{Kind, Page, without_code},
    refusal::Refusal,
};

/// The most letters of a paragraph: eight lines.
const LETTERS: usize = 700;
/// The most sentences of a paragraph.
const SENTENCES: usize = 8;
/// The most words of a sentence.
const WORDS: usize = 40;

/// Pages that are not rewritten yet, and the number of their long paragraphs. The list only
/// shrinks.
const LONG: [(&str, usize); 0] = [];

pub(super) fn check(pages: &[Page]) -> Vec<Refusal> {
    check_but(pages, &LONG)
}

fn check_but(pages: &[Page], long: &[(&str, usize)]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for page in pages {
        let paragraphs = paragraphs(page).into_iter();
        let found = paragraphs.filter_map(|(line, text)| Some((line, too_long(&text)?)));
        let found = found.collect::<Vec<_>>();
        let listed =
            long.iter().find(|(file, _)| *file == page.file).map_or(0, |&(_, count)| count);
        if found.len() == listed {
            continue;
        }
        if found.len() < listed {
            let what = format!(
                "{} paragraphs are too long, fewer than {listed}: lower that in xtask/src/tidy/prose.rs",
                found.len()
            );
            refusals.push(Refusal { file: page.file.to_owned(), line: 1, what });
            continue;
        }
        refusals.extend(found.into_iter().map(|(line, what)| Refusal {
            file: page.file.to_owned(),
            line,
            what,
        }));
    }
    let is_page = |file: &str| pages.iter().any(|page| page.file == file);
    refusals.extend(long.iter().filter(|(file, _)| !is_page(file)).map(|(file, _)| Refusal {
        file: (*file).to_owned(),
        line: 1,
        what: "is no page: take it off the list in xtask/src/tidy/prose.rs".to_owned(),
    }));
    refusals
}

/// Each paragraph or list item, with its first line.
fn paragraphs(page: &Page) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for line in &page.lines {
        let text = line.text.trim();
        if line.kind != Kind::Prose || text.is_empty() {
            goes_on = false;
            continue;
        }
        match paragraphs.last_mut().filter(|_| goes_on && !is_item(text)) {
            Some((_, paragraph)) => *paragraph += &format!(" {text}"),
            None => paragraphs.push((line.number, text.to_owned())),
        }
        goes_on = true;
    }
    paragraphs
}

/// Whether it starts a list item.
fn is_item(text: &str) -> bool {
    let number = text.split_once(". ").map(|(number, _)| number);
    text.starts_with("* ")
        || text.starts_with("- ")
        || number
            .is_some_and(|number| number.len() < 3 && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Why a paragraph is too long.
fn too_long(text: &str) -> Option<String> {
    let text = without_targets(text);
    let letters = text.chars().count();
    if letters > LETTERS {
        return Some(format!(
            "a paragraph of {letters} letters, and {LETTERS} are allowed: make it two, or a list"
        ));
    }
    let text = without_code(&text);
    let sentences = sentences(&text);
    if sentences.len() > SENTENCES {
        let count = sentences.len();
        return Some(format!(
            "a paragraph of {count} sentences, and {SENTENCES} are allowed: make it two, or a list"
        ));
    }
    let longest = sentences.iter().max_by_key(|sentence| sentence.len())?;
    let count = longest.len();
    (count > WORDS).then(|| {
        let start = longest[..6].join(" ");
        format!(
            "a sentence of {count} words, and {WORDS} are allowed: make it two (\"{start} ..\")"
        )
    })
}

/// The words of each sentence.
fn sentences(text: &str) -> Vec<Vec<&str>> {
    let words = text.split_whitespace().collect::<Vec<_>>();
    let mut sentences = vec![Vec::new()];
    for (i, word) in words.iter().enumerate() {
        sentences.last_mut().expect("there is one").push(*word);
        let end = word.trim_end_matches([')', '"', '*', ']', '\'']);
        let next = words
            .get(i + 1)
            .and_then(|next| next.trim_start_matches(['(', '*', '[', '"']).chars().next());
        let begins = next.is_some_and(|c| c.is_uppercase() || c.is_ascii_digit() || c == '`');
        if end.ends_with(['.', '?', '!']) && !end.ends_with("..") && begins {
            sentences.push(Vec::new());
        }
    }
    sentences
}

/// Links without their targets.
fn without_targets(text: &str) -> String {
    let mut pieces = text.split("](");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        shown += "]";
        shown += piece.split_once(')').map_or(piece, |(_, rest)| rest);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, long: &[(&str, usize)]) -> Vec<String> {
        let refusals = check_but(&[Page::new("a.md", text)], long);
        refusals.into_iter().map(|refusal| refusal.to_string()).collect()
    }

    #[test]
    fn long_paragraphs_and_sentences_are_refused() {
        let words = |count: usize| format!("# A\n\nIt{}.\n", " is".repeat(count - 1));
        assert_eq!(refused(&words(40), &[]), [""; 0]);
        let expected = "a.md:3: a sentence of 41 words, and 40 are allowed: make it two (\"It is is is is is ..\")";
        assert_eq!(refused(&words(41), &[]), [expected]);
        let many = "One. ".repeat(9);
        assert_eq!(
            refused(&many, &[]),
            ["a.md:1: a paragraph of 9 sentences, and 8 are allowed: make it two, or a list"]
        );
        // List items are paragraphs of their own. Code, tables and link targets do not count.
        let fine =
            format!("* {0}\n* {0}\n| {1} |\n\n    {1}\n", "One. ".repeat(8), "x".repeat(800));
        assert_eq!(refused(&fine, &[]), [""; 0]);
        assert_eq!(refused(&format!("[a]({})\n", "x".repeat(800)), &[]), [""; 0]);
        assert_eq!(
            refused(&"x".repeat(701), &[]),
            ["a.md:1: a paragraph of 701 letters, and 700 are allowed: make it two, or a list"]
        );
    }

    #[test]
    fn the_list_of_long_pages_is_exact() {
        let two = format!("{0}\n\n{0}\n", "One. ".repeat(9));
        assert_eq!(refused(&two, &[("a.md", 2)]), [""; 0]);
        assert_eq!(
            refused(&two, &[("a.md", 3)]),
            [
                "a.md:1: 2 paragraphs are too long, fewer than 3: lower that in xtask/src/tidy/prose.rs"
            ]
        );
        assert_eq!(refused(&two, &[("a.md", 1)]).len(), 2);
        assert_eq!(
            refused("", &[("b.md", 1)]),
            ["b.md:1: is no page: take it off the list in xtask/src/tidy/prose.rs"]
        );
    }
}
