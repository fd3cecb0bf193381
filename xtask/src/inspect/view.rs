//! A kernel as PTX or as machine code.

use std::ops::Range;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    listing::{self, Listing, Mix, sass::Sass},
    ptx::Function,
};

/// A kernel as PTX or as machine code.
pub(super) struct View {
    /// Its text.
    pub(super) text: String,
    /// The line number of the text's first line in its file.
    pub(super) first_line: usize,
    /// Its instructions, by the file's lines.
    pub(super) listing: Listing,
    pub(super) main_loop: Option<Range<usize>>,
}

impl View {
    pub(super) fn of_ptx(file: &str, kernel: &Function) -> Result<View> {
        let listing = listing::ptx::listing(kernel)?;
        let first_line = 1 + file[..kernel.text.start].matches('\n').count();
        Ok(View::new(file[kernel.text.clone()].into(), first_line, listing))
    }

    pub(super) fn of_sass(sass: Sass) -> View {
        View::new(sass.text, 1, sass.listing)
    }

    fn new(text: String, first_line: usize, listing: Listing) -> View {
        let main_loop = listing.main_loop();
        View { text, first_line, listing, main_loop }
    }

    pub(super) fn loop_mix(&self) -> Option<Mix> {
        Some(self.listing.mix_of(self.main_loop.clone()?))
    }

    /// The text with the lines of the main loop marked.
    pub(super) fn marked(&self) -> String {
        let main = self.main_loop.as_ref().map(|part| self.listing.lines(part));
        let mark = |line| match main {
            Some((first, last)) if (first..=last).contains(&line) => "| ",
            _ => "  ",
        };
        let lines = (self.first_line..).zip(self.text.lines());
        lines.map(|(line, text)| format!("{}{text}\n", mark(line))).collect()
    }

    pub(super) fn json(&self, with_text: bool) -> Value {
        let mut value = json!({ "instructions": self.listing.mix().total(), "kinds": kinds(&self.listing.mix()) });
        if let (Some(part), Some(mix)) = (&self.main_loop, self.loop_mix()) {
            let (first, last) = self.listing.lines(part);
            value["main_loop"] = json!({
                "instructions": mix.total(),
                "multiply_adds": mix.multiply_adds(),
                "multiply_add_share": rounded(mix.share()),
                "first_line": first,
                "last_line": last,
                "kinds": kinds(&mix),
            });
        }
        if with_text {
            value["text"] = json!(self.text);
        }
        value
    }
}

fn kinds(mix: &Mix) -> Value {
    mix.0.iter().map(|(kind, count)| (kind.to_string().replace(' ', "_"), json!(count))).collect()
}

/// Rounded to four decimals.
pub(super) fn rounded(share: f64) -> f64 {
    (1e4 * share).round() / 1e4
}
