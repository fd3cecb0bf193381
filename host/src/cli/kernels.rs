//! `kernels`: the list of kernels, by what they compute.

use std::io::Write;

use host::{
    Error, Type,
    gpu::registry::{Entry, Family, KERNELS, Layout, Product, Program, Scheme, Variant},
    names::hint,
};
use serde::Serialize;

use super::{
    Failure,
    args::{Kernels, flags},
    list::json,
};

/// The JSON object of a kernel.
#[derive(Serialize)]
struct KernelLine {
    name: &'static str,
    summary: &'static str,
    /// What it computes.
    contract: String,
    /// The types of A and B, and of C, of a product.
    operands: Option<&'static str>,
    c: Option<&'static str>,
    /// The flags that ask for such a product. None for f64, which is multiplied from files.
    flags: Option<String>,
    /// The layouts of A and B, if the kernel requires them.
    layout: Option<&'static str>,
    /// Rows and columns of C in a tile of a product.
    tile: Option<[u32; 2]>,
    /// Threads of a block, if declared.
    block: Option<[u32; 3]>,
    shared_bytes: Option<usize>,
    barriers: Option<u32>,
    /// For a rung of the course: its idea, and the derived operations per byte.
    idea: Option<&'static str>,
    flop_per_byte: Option<f64>,
    /// What runs it, if it computes no product.
    run: Option<String>,
    file: &'static str,
}

/// Lists the registry: lessons, other products by their types, then programs.
pub(super) fn kernels(args: &Kernels, out: &mut impl Write) -> Result<(), Failure> {
    let words = args.words.iter().map(|word| word.to_lowercase()).collect::<Vec<_>>();
    let asked = KERNELS.iter().filter(|entry| words.iter().all(|word| is_about(entry, word)));
    let asked = asked.collect::<Vec<_>>();
    if asked.is_empty() {
        let names = KERNELS.iter().map(Entry::name).collect::<Vec<_>>();
        let words = args.words.join(" ");
        let hint = hint(&words, &names).map_or(String::new(), |hint| format!(": {hint}"));
        let limit = format!(
            "no kernel has that in its name, its type or what is said of it{hint} (`kernels` lists all)"
        );
        return Err(Error::argument("WORDS", words, limit).into());
    }
    match args.json {
        true => asked.iter().try_for_each(|entry| json(out, &line(entry))),
        false => Ok(print(out, &asked)?),
    }
}

fn line(entry: &Entry) -> KernelLine {
    let declaration = entry.declaration();
    let product = entry.product.as_ref();
    KernelLine {
        name: entry.name(),
        summary: entry.summary,
        contract: product.map_or("another program".to_owned(), contract),
        operands: product.map(|product| product.variant.operands.name()),
        c: product.map(|product| product.variant.c.name()),
        flags: product.map(flags),
        layout: product.and_then(|product| product.variant.layout).map(Layout::name),
        tile: product.map(Product::tile),
        block: product.map(|product| product.block).or(declaration.block),
        shared_bytes: declaration.shared,
        barriers: declaration.barriers,
        idea: entry.rung.as_ref().map(|rung| rung.idea),
        flop_per_byte: entry.rung.as_ref().map(|rung| rung.flop_per_byte),
        run: entry.program.as_ref().map(Program::to_string),
        file: declaration.file,
    }
}

/// What a product's kernel computes.
fn contract(product: &Product) -> String {
    let Variant { family, operands, c, scheme, .. } = product.variant;
    let of = match scheme {
        Scheme::Native if product.is_of_f32_views() => String::new(),
        Scheme::Native => format!(" in {operands}"),
        Scheme::Tf32 => " of f32 as tf32".to_owned(),
        Scheme::Bf16x6 => " of f32 in slices".to_owned(),
        Scheme::F16x3 => " of emulated f32".to_owned(),
    };
    let by = match family {
        Family::Wgmma => " on Hopper's tensor cores",
        Family::Mma => " on any GPU's tensor cores",
        Family::Tma => " by TMA",
        Family::Lesson(_) if !product.is_of_f32_views() => " on tensor cores",
        Family::Lesson(_) | Family::Gemm => "",
    };
    let c = if operands == c { String::new() } else { format!(", C in {c}") };
    format!("C = A B{of}{by}{c}")
}

/// The heading above a kernel.
fn group(entry: &Entry) -> String {
    let Some(product) = &entry.product else {
        return "other programs than products, and what runs them".to_owned();
    };
    let what = match product {
        product if product.is_lesson() && product.is_of_f32_views() => {
            "the course's lessons: C = A B in f32".to_owned()
        }
        product if product.is_lesson() => format!("the course's lessons: {}", contract(product)),
        product if product.is_of_f32_views() => "C = A B in f32".to_owned(),
        product => contract(product),
    };
    format!("{what} ({})", flags(product))
}

/// The sort key of a group: lessons, then products by their types and arithmetic, then programs.
type Place = (bool, usize, u8, u8);

fn place_of(entry: &Entry) -> Place {
    match &entry.product {
        None => (true, 0, 0, 0),
        Some(Product { variant: Variant { operands, scheme, c, .. }, .. }) => {
            let number = Type::ALL.iter().position(|of| of == operands).unwrap_or(Type::ALL.len());
            (false, number, *scheme as u8, u8::from(c != operands))
        }
    }
}

/// Whether a word is the type of its operands, or the start of a word in its name or summary.
fn is_about(entry: &Entry, word: &str) -> bool {
    let operands = entry.product.as_ref().map(|product| product.variant.operands.name());
    if Type::multiplied().any(|of| of.name() == word) {
        return operands == Some(word);
    }
    let said = format!("{} {} {}", entry.name(), group(entry), entry.summary).to_lowercase();
    let begins =
        |said: &str, at: usize| !said[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    said.match_indices(word).any(|(at, _)| begins(&said, at))
}

/// A row: kernels that differ in the layouts of A and B only.
struct Row {
    group: String,
    stem: &'static str,
    layouts: Vec<&'static str>,
    summary: &'static str,
}

impl Row {
    fn name(&self) -> String {
        match &self.layouts[..] {
            [] => self.stem.to_owned(),
            layouts => format!("{}_{}", self.stem, layouts.join("|")),
        }
    }
}

/// A kernel's row, without the layouts if other kernels have other layouts.
fn row(entry: &Entry) -> Row {
    let (name, summary, group) = (entry.name(), entry.summary, group(entry));
    let layout = entry.product.as_ref().and_then(|product| product.variant.layout);
    let stem = layout.and_then(|layout| name.strip_suffix(layout.name())?.strip_suffix('_'));
    match (layout, stem, summary.split_once(';')) {
        (Some(layout), Some(stem), Some((summary, _))) => {
            Row { group, stem, layouts: vec![layout.name()], summary }
        }
        _ => Row { group, stem: name, layouts: Vec::new(), summary },
    }
}

/// Prints the groups for people.
fn print(out: &mut impl Write, asked: &[&Entry]) -> std::io::Result<()> {
    let mut groups = Vec::<(String, Place, Vec<Row>)>::new();
    for entry in asked {
        let mut row = row(entry);
        let place = groups.iter().position(|(group, ..)| *group == row.group);
        let place = place.unwrap_or_else(|| {
            groups.push((row.group.clone(), place_of(entry), Vec::new()));
            groups.len() - 1
        });
        let rows = &mut groups[place].2;
        match rows.iter_mut().find(|other| other.stem == row.stem && other.summary == row.summary) {
            Some(other) => other.layouts.append(&mut row.layouts),
            None => rows.push(row),
        }
    }
    groups.sort_by_key(|(_, place, _)| *place);
    let rows = || groups.iter().flat_map(|(.., rows)| rows);
    let width = rows().map(|row| row.name().len()).max().unwrap_or(0);
    for (group, _, rows) in &groups {
        writeln!(out, "{group}")?;
        for row in rows {
            let program = KERNELS.iter().find(|entry| entry.name() == row.stem);
            let program = program.and_then(|entry| entry.program);
            let run = program.map_or(String::new(), |program| format!("; {program}"));
            writeln!(out, "  {:<width$}  {}{run}", row.name(), row.summary)?;
        }
        writeln!(out)?;
    }
    if rows().any(|row| !row.layouts.is_empty()) {
        writeln!(
            out,
            "NAME_nn|nt is two kernels, NAME_nn and NAME_nt: A's letter, then B's; n is stored row by row, t column by column"
        )?;
    }
    writeln!(
        out,
        "`kernels WORDS` lists those about these words, as `kernels lessons` or `kernels bf16 mma`; --json says more of each"
    )
}
