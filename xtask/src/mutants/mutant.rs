//! A mutant: a kernel file with one mistake made in it, among the others of its module.

use std::{collections::HashSet, ops::Range};

use super::source::{KernelFile, KernelModule};

/// The kinds of mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// A barrier left out.
    RemoveBarrier,
    /// A barrier that only some threads come to.
    BranchBarrier,
    /// A comparison that holds once too often.
    WeakenComparison,
    /// A comparison that holds once too rarely.
    StrengthenComparison,
    /// One condition of several left out.
    DropOperand,
    /// The next element.
    IndexPlusOne,
    /// The previous element.
    IndexMinusOne,
    /// Half the index.
    HalveIndex,
    /// Row and column exchanged.
    TransposeIndex,
    /// Nothing stored where a zero should be.
    DropZeroFill,
    /// A shared array of one row less.
    ShortenShared,
    /// Two blocks that do one block's work.
    HalveBlockIndex,
    /// Not waited for the copies of one group more.
    WaitForLess,
    /// Not waited for any copies.
    RemoveWait,
    /// Copies that become no group of their own.
    RemoveCommit,
    /// A stage of a tile in place of the other.
    WrongStage,
}

impl Operator {
    /// Every kind, in the order of the report.
    pub const ALL: [Operator; 16] = [
        Operator::RemoveBarrier,
        Operator::BranchBarrier,
        Operator::WeakenComparison,
        Operator::StrengthenComparison,
        Operator::DropOperand,
        Operator::IndexPlusOne,
        Operator::IndexMinusOne,
        Operator::HalveIndex,
        Operator::TransposeIndex,
        Operator::DropZeroFill,
        Operator::ShortenShared,
        Operator::HalveBlockIndex,
        Operator::WaitForLess,
        Operator::RemoveWait,
        Operator::RemoveCommit,
        Operator::WrongStage,
    ];

    /// Can it be made only where asynchronous copies are?
    #[cfg(test)]
    pub(super) fn is_of_copies(self) -> bool {
        use Operator::{RemoveCommit, RemoveWait, WaitForLess, WrongStage};
        matches!(self, WaitForLess | RemoveWait | RemoveCommit | WrongStage)
    }

    /// As a mutant's name has it.
    pub fn name(self) -> &'static str {
        match self {
            Operator::RemoveBarrier => "remove-barrier",
            Operator::BranchBarrier => "branch-barrier",
            Operator::WeakenComparison => "weaken-comparison",
            Operator::StrengthenComparison => "strengthen-comparison",
            Operator::DropOperand => "drop-operand",
            Operator::IndexPlusOne => "index-plus-one",
            Operator::IndexMinusOne => "index-minus-one",
            Operator::HalveIndex => "halve-index",
            Operator::TransposeIndex => "transpose-index",
            Operator::DropZeroFill => "drop-zero-fill",
            Operator::ShortenShared => "shorten-shared",
            Operator::HalveBlockIndex => "halve-block-index",
            Operator::WaitForLess => "wait-for-less",
            Operator::RemoveWait => "remove-wait",
            Operator::RemoveCommit => "remove-commit",
            Operator::WrongStage => "wrong-stage",
        }
    }
}

/// Other text in the place of some of a file's.
#[derive(Clone, Debug)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

impl Edit {
    pub fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        Edit { range, text: text.into() }
    }
}

/// One mistake, in one place of a file.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The kind of mistake.
    pub operator: Operator,
    /// Operator and place: `remove-barrier@49:9`; in another file than a folder's `mod.rs` with its name before:
    /// `operand/index-plus-one@86:13`. Unique in the module.
    pub name: String,
    /// The line it stands in, without the space around it.
    pub line: String,
    /// What stood there.
    pub from: String,
    /// What stands there now.
    pub to: String,
    /// The whole file with it.
    pub text: String,
    /// The file, by its place in [`KernelModule::files`].
    pub(super) file: usize,
    /// The function that it stands in, by its place in [`KernelModule::functions`].
    pub(super) function: usize,
}

/// Collects the mutants of a module.
pub struct Mutants<'a> {
    module: &'a KernelModule,
    /// The file that those to come are of.
    pub file: &'a KernelFile,
    number: usize,
    mutants: Vec<Mutant>,
    names: HashSet<String>,
    texts: HashSet<(usize, String)>,
}

impl<'a> Mutants<'a> {
    pub fn new(module: &'a KernelModule) -> Self {
        // What changes nothing is no mutant, nor is what another operator has made already.
        let texts = module.files.iter().map(|file| file.text.clone()).enumerate().collect();
        let (mutants, names) = (Vec::new(), HashSet::new());
        Mutants { module, file: &module.files[0], number: 0, mutants, names, texts }
    }

    /// From now on those of another file of the module.
    pub fn go_to(&mut self, file: usize) {
        (self.number, self.file) = (file, &self.module.files[file]);
    }

    /// Adds the mutant that these edits make. The first says where it is; `detail` tells apart those of
    /// one operator and place.
    pub fn add(&mut self, operator: Operator, function: usize, detail: &str, edits: Vec<Edit>) {
        let place = edits[0].range.clone();
        let text = apply(&self.file.text, &edits);
        if !self.texts.insert((self.number, text.clone())) {
            return;
        }
        let before = &self.file.text[..place.start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        let file = match self.number {
            0 => String::new(),
            _ => format!("{}/", self.file.name.trim_end_matches(".rs")),
        };
        let detail = detail.replace(char::is_whitespace, "");
        let plain = match &*detail {
            "" => format!("{file}{}@{line}:{column}", operator.name()),
            detail => format!("{file}{}@{line}:{column}[{detail}]", operator.name()),
        };
        let numbered = (2..).map(|number| format!("{plain}#{number}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let name = names.find(|name| self.names.insert(name.clone())).unwrap_or(plain);
        self.mutants.push(Mutant {
            operator,
            name,
            line: self.file.line_at(place.start).into(),
            from: on_one_line(&self.file.text[place]),
            to: on_one_line(&edits[0].text),
            text,
            file: self.number,
            function,
        });
    }

    pub fn done(self) -> Vec<Mutant> {
        self.mutants
    }
}

/// The text with the edits made, which do not overlap.
fn apply(text: &str, edits: &[Edit]) -> String {
    let mut edits = edits.iter().collect::<Vec<_>>();
    edits.sort_by_key(|edit| edit.range.start);
    let (mut result, mut done) = (String::new(), 0);
    for edit in edits {
        result += &text[done..edit.range.start];
        result += &edit.text;
        done = edit.range.end;
    }
    result + &text[done..]
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
