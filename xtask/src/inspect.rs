//! `cargo xtask inspect`: what a kernel came to. Registers, occupancy, instructions, the main loop.
//!
//! It reads the committed PTX, so it needs no compiler for the device. With NVIDIA's assembler and
//! disassembler it also sees what the GPU really runs.

use std::{collections::BTreeSet, fmt, fs, ops::Range, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{
    Target, build_ptx, check,
    listing::{self, Kind, Listing, Mix, sass::Nvdisasm, sass::Sass},
    occupancy::{Block, Multiprocessor, Occupancy, occupancy},
    ptx::{Function, Module},
    ptxas::{Ptxas, Usage},
};

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kernel.
    pub kernel: String,
    /// The GPU, as the files in `gpu/ptx` are named.
    pub target: Target,
    /// Show its PTX.
    pub ptx: bool,
    /// Show its machine code.
    pub sass: bool,
    /// One JSON object instead of text.
    pub json: bool,
    /// Download NVIDIA's assembler and disassembler where they are not there.
    pub fetch: bool,
}

impl Default for Options {
    /// Figures of a kernel on Hopper; which kernel is yet to be said.
    fn default() -> Self {
        let (kernel, target) = (String::new(), Target::SM_90A);
        Options { kernel, target, ptx: false, sass: false, json: false, fetch: false }
    }
}

/// A kernel that the file does not have: the caller's mistake, unlike every other failure here.
#[derive(Debug)]
pub struct UnknownKernel {
    name: String,
    file: String,
    known: Vec<String>,
}

impl std::error::Error for UnknownKernel {}

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let UnknownKernel { name, file, known } = self;
        write!(f, "{file} has no kernel `{name}`: there are {}", known.join(", "))
    }
}

/// The target of that name.
///
/// # Errors
/// With the names there are.
pub fn target(name: &str) -> Result<Target> {
    let found = build_ptx::TARGETS.into_iter().find(|target| target.cpu() == name);
    found.with_context(|| {
        let names = build_ptx::TARGETS.map(|target| target.cpu());
        format!("--target is one of {}", names.join(", "))
    })
}

/// Inspects a kernel of the workspace in `root`.
///
/// # Errors
/// [`UnknownKernel`]; where the committed file or what a tool wrote cannot be read.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let file = format!("{}/{}", build_ptx::FOLDER, build_ptx::file_name(options.target));
    let text =
        fs::read_to_string(root.join(&file)).with_context(|| format!("cannot read {file}"))?;
    let module = Module::parse(&text).with_context(|| format!("cannot read {file}"))?;
    let kernel = kernel(&module, &options.kernel, &file)?;
    let ptx =
        View::of_ptx(&text, kernel).with_context(|| format!("{file}: kernel `{}`", kernel.name))?;
    let machine = Machine::of(root, &text, options)?;
    if options.sass && machine.sass.is_none() {
        bail!("--sass: {}", machine.missing.unwrap_or_default());
    }
    let report = Report { file: &file, module: &module, kernel, ptx, machine, options };
    match options.json {
        true => println!("{}", report.json()),
        false => print!("{}", report.text()),
    }
    Ok(())
}

fn kernel<'m>(module: &'m Module, name: &str, file: &str) -> Result<&'m Function, UnknownKernel> {
    module.kernels().find(|kernel| kernel.name == name).ok_or_else(|| UnknownKernel {
        name: name.into(),
        file: file.into(),
        known: module.kernels().map(|kernel| kernel.name.clone()).collect(),
    })
}

/// A kernel in one of its languages.
struct View {
    /// Its text.
    text: String,
    /// The number of the text's first line in its file.
    first_line: usize,
    /// Its instructions, by the file's lines.
    listing: Listing,
    main_loop: Option<Range<usize>>,
}

impl View {
    fn of_ptx(file: &str, kernel: &Function) -> Result<View> {
        let listing = listing::ptx::listing(kernel)?;
        let first_line = 1 + file[..kernel.text.start].matches('\n').count();
        Ok(View::new(file[kernel.text.clone()].into(), first_line, listing))
    }

    fn of_sass(sass: Sass) -> View {
        View::new(sass.text, 1, sass.listing)
    }

    fn new(text: String, first_line: usize, listing: Listing) -> View {
        let main_loop = listing.main_loop();
        View { text, first_line, listing, main_loop }
    }

    fn loop_mix(&self) -> Option<Mix> {
        Some(self.listing.mix_of(self.main_loop.clone()?))
    }

    /// The text with the main loop's lines marked.
    fn marked(&self) -> String {
        let main = self.main_loop.as_ref().map(|part| self.listing.lines(part));
        let mark = |line| match main {
            Some((first, last)) if (first..=last).contains(&line) => "| ",
            _ => "  ",
        };
        let lines = (self.first_line..).zip(self.text.lines());
        lines.map(|(line, text)| format!("{}{text}\n", mark(line))).collect()
    }

    fn json(&self, with_text: bool) -> Value {
        let mut value = json!({ "instructions": self.listing.mix().total(), "kinds": kinds(&self.listing.mix()) });
        if let (Some(part), Some(mix)) = (&self.main_loop, self.loop_mix()) {
            let (first, last) = self.listing.lines(part);
            value["main_loop"] = json!({
                "instructions": mix.total(),
                "multiply_adds": mix.multiply_adds(),
                "multiply_add_share": mix.share(),
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

/// What NVIDIA's tools say of a kernel, as far as they are there.
struct Machine {
    /// The assembler's release, and what it says.
    usage: Option<(String, Usage)>,
    /// The disassembler's release, and what it says.
    sass: Option<(String, View)>,
    /// Why something is not known, and what to do about it.
    missing: Option<String>,
}

impl Machine {
    fn of(root: &Path, ptx: &str, options: &Options) -> Result<Machine> {
        let mut machine = Machine { usage: None, sass: None, missing: None };
        let ptxas = match Ptxas::find(root) {
            None if options.fetch => Some(Ptxas::fetch(root)?),
            found => found,
        };
        let nvdisasm = match Nvdisasm::find(root) {
            None if options.fetch => Some(Nvdisasm::fetch(root)?),
            found => found,
        };
        let Some(ptxas) = ptxas else {
            machine.missing = Some(
                "there is no ptxas, so registers, occupancy and machine code are not known (--fetch \
                 downloads it; $PTXAS names one)"
                    .into(),
            );
            return Ok(machine);
        };
        let (usages, cubin) = ptxas.assemble(ptx, options.target.cpu(), root)?;
        let usage = usages.into_iter().find(|usage| usage.kernel == options.kernel);
        let usage = usage.context("ptxas did not report on the kernel")?;
        machine.usage = Some((ptxas.release().into(), usage));
        match nvdisasm {
            Some(nvdisasm) => {
                let sass = nvdisasm.disassemble(&cubin, &options.kernel)?;
                machine.sass = Some((nvdisasm.release().into(), View::of_sass(sass)));
            }
            None => {
                machine.missing = Some(
                    "there is no nvdisasm, so machine code is not shown (--fetch downloads it; \
                     $NVDISASM names one)"
                        .into(),
                );
            }
        }
        Ok(machine)
    }
}

/// Everything that is known of a kernel.
struct Report<'a> {
    file: &'a str,
    module: &'a Module,
    kernel: &'a Function,
    ptx: View,
    machine: Machine,
    options: &'a Options,
}

impl Report<'_> {
    /// Threads of a block, where the kernel declares them.
    fn threads(&self) -> Option<u32> {
        Some(check::declaration(self.kernel)?.block?.iter().product())
    }

    /// How many of its blocks a multiprocessor holds.
    fn occupancy(&self) -> Option<Occupancy> {
        let (_, usage) = self.machine.usage.as_ref()?;
        let sm = Multiprocessor::of(self.options.target.compute_capability()?)?;
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let block = Block {
            threads: self.threads()?,
            registers: narrow(usage.registers),
            shared: narrow(usage.shared),
        };
        Some(occupancy(&sm, &block))
    }

    /// Whether its launch adds shared memory that nothing here knows of.
    fn has_dynamic_shared(&self) -> bool {
        check::shared_arrays(self.module, self.kernel).iter().any(|array| array.bytes.is_none())
    }

    /// The line with which it declares itself, without the mark.
    fn declaration(&self) -> String {
        match self.kernel.declarations.first() {
            Some((line, _)) => {
                let text = self.ptx.text.lines().nth(line - self.ptx.first_line);
                let (_, said) = text.unwrap_or_default().split_once("name=").unwrap_or_default();
                format!("name={said}")
            }
            None => "nothing".into(),
        }
    }

    fn text(&self) -> String {
        let Report { kernel, module, file, machine, .. } = self;
        let mut text =
            format!("{}: {file}, {}, PTX {}\n", kernel.name, module.target, module.version);
        text += &format!("declares   {}\n", self.declaration());
        if let Some((release, usage)) = &machine.usage {
            text += &format!("registers  {} a thread; {}\n", usage.registers, spills(usage));
            text += &format!("shared     {} bytes a block", usage.shared);
            text += if self.has_dynamic_shared() { ", more with the launch" } else { "" };
            text += &format!(" (ptxas {release})\n");
            text += &format!("occupancy  {}\n", self.occupancy_text());
        }
        if let Some(missing) = &machine.missing {
            text += &format!("note       {missing}\n");
        }
        text += "\n";
        text += &self.table();
        if self.options.ptx {
            text += &format!("\n{file}, the main loop marked\n{}", self.ptx.marked());
        }
        if let (true, Some((release, sass))) = (self.options.sass, &machine.sass) {
            text += &format!("\nnvdisasm {release}, the main loop marked\n{}", sass.marked());
        }
        text
    }

    fn occupancy_text(&self) -> String {
        let Some(occupancy) = self.occupancy() else {
            return match self.threads() {
                None => "not known: the kernel declares no block".into(),
                Some(_) => format!("not known of {}", self.options.target.cpu()),
            };
        };
        let Occupancy { blocks, warps, most_warps, limited_by, limits } = occupancy;
        let limits =
            limits.iter().filter_map(|(what, limit)| Some(format!("{what} {}", (*limit)?)));
        let limits = limits.collect::<Vec<_>>().join(", ");
        let dynamic =
            if self.has_dynamic_shared() { ", without the launch's shared memory" } else { "" };
        format!(
            "{blocks} blocks, {warps} of {most_warps} warps a multiprocessor ({:.0} %), limited by \
             {limited_by}{dynamic}\n           blocks by {limits}",
            occupancy.percent()
        )
    }

    /// Instructions by kind, in PTX and in machine code, all and those of the main loop.
    fn table(&self) -> String {
        let mut columns: Vec<(&str, Option<Mix>)> = Vec::new();
        let views =
            [Some(("PTX", &self.ptx)), self.machine.sass.as_ref().map(|(_, v)| ("SASS", v))];
        for (name, view) in views.into_iter().flatten() {
            columns.push((name, Some(view.listing.mix())));
            columns.push(("main loop", view.loop_mix()));
        }
        let kinds: BTreeSet<Kind> = columns
            .iter()
            .flat_map(|(_, mix)| mix.iter().flat_map(|mix| mix.0.keys()))
            .copied()
            .collect();
        let row = |name: &str, cell: &dyn Fn(&Mix) -> String| {
            let cells = columns.iter().map(|(_, mix)| mix.as_ref().map_or("-".into(), cell));
            let cells: String = cells.map(|cell| format!("  {cell:>9}")).collect();
            format!("{name:<20}{cells}\n")
        };
        let heads: String = columns.iter().map(|(name, _)| format!("  {name:>9}")).collect();
        let mut text = format!("{:<20}{heads}\n", "instructions");
        for kind in kinds {
            text += &row(&kind.to_string(), &|mix| mix.count(kind).to_string());
        }
        text += &row("all", &|mix| mix.total().to_string());
        text += &row("share of fma, tensor", &|mix| format!("{:.1} %", 100.0 * mix.share()));
        text
    }

    fn json(&self) -> Value {
        let usage = self.machine.usage.as_ref().map(|(release, usage)| {
            json!({
                "release": release,
                "registers": usage.registers,
                "shared_bytes": usage.shared,
                "stack_bytes": usage.stack,
                "spill_store_bytes": usage.spill_stores,
                "spill_load_bytes": usage.spill_loads,
                "barriers": usage.barriers,
            })
        });
        let occupancy = self.occupancy().map(|occupancy| {
            let limits = occupancy.limits.iter();
            json!({
                "blocks": occupancy.blocks,
                "warps": occupancy.warps,
                "percent": occupancy.percent(),
                "limited_by": occupancy.limited_by.to_string(),
                "blocks_by": limits.map(|(what, limit)| (what.to_string().replace(' ', "_"), json!(limit)))
                    .collect::<Value>(),
            })
        });
        let sass = self.machine.sass.as_ref().map(|(release, view)| {
            let mut value = view.json(self.options.sass);
            value["release"] = json!(release);
            value
        });
        json!({
            "kernel": self.kernel.name,
            "file": self.file,
            "target": self.module.target,
            "ptx_version": self.module.version,
            "declaration": self.declaration(),
            "ptxas": usage,
            "occupancy": occupancy,
            "ptx": self.ptx.json(self.options.ptx),
            "sass": sass,
            "missing": self.machine.missing,
        })
    }
}

fn spills(usage: &Usage) -> String {
    match usage {
        Usage { stack: 0, spill_stores: 0, spill_loads: 0, .. } => "nothing spilled".into(),
        Usage { stack, spill_stores, spill_loads, .. } => format!(
            "{stack} bytes of stack, {spill_stores} bytes of spill stores, {spill_loads} of spill loads"
        ),
    }
}
