//! The report of `inspect`, as text and as JSON.

use std::collections::BTreeSet;

use occupancy::{Block, Occupancy, Sm, occupancy};
use serde_json::{Value, json};
use specialise::Constant;

use super::{
    machine::Machine,
    options::Options,
    view::{View, rounded},
};
use crate::{
    check,
    listing::{Kind, Mix},
    ptx::{Function, Module},
    ptxas::Usage,
    resources::Recorded,
};

/// Everything known about a kernel.
pub(super) struct Report<'a> {
    pub(super) file: &'a str,
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Function,
    /// The values of its constants.
    pub(super) constants: Vec<Constant>,
    pub(super) ptx: View,
    pub(super) machine: Machine,
    pub(super) options: &'a Options,
}

impl Report<'_> {
    /// Threads of a block, if the kernel declares them.
    fn threads(&self) -> Option<u32> {
        Some(check::declaration(self.kernel)?.block?.iter().product())
    }

    /// The number of its blocks on an SM.
    fn occupancy(&self) -> Option<Occupancy> {
        let usage = self.machine.usage.as_ref().map(|(_, usage)| (usage.registers, usage.shared));
        let recorded = self.machine.recorded.as_ref();
        let (registers, shared) = usage.or(recorded.map(|of| (of.registers, of.shared)))?;
        let sm = Sm::of(self.options.target.compute_capability()?)?;
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let block = Block {
            threads: self.threads()?,
            registers: narrow(registers),
            shared: narrow(shared),
        };
        Some(occupancy(&sm, &block))
    }

    /// Whether its launch adds an unknown amount of shared memory.
    fn has_dynamic_shared(&self) -> bool {
        check::shared_arrays(self.module, self.kernel).iter().any(|array| array.bytes.is_none())
    }

    /// Its declaration, without the mark.
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

    pub(super) fn text(&self) -> String {
        let Report { kernel, module, file, machine, .. } = self;
        let mut text =
            format!("{}: {file}, {}, PTX {}\n", kernel.name, module.target, module.version);
        text += &format!("declares   {}\n", self.declaration());
        if !self.constants.is_empty() {
            let value = |one: &Constant| format!("{}={}", one.name, one.value);
            let values = self.constants.iter().map(value).collect::<Vec<_>>();
            text += &format!("constants  {}\n", values.join(","));
        }
        if let Some((release, usage)) = &machine.usage {
            text += &format!("registers  {} a thread; {}\n", usage.registers, spills(usage));
            text += &self.shared_text(usage.shared, release);
        }
        if let Some(Recorded { release, registers, shared, spills, instructions }) =
            &machine.recorded
        {
            let spilled = match spills {
                0 => "nothing spilled".to_owned(),
                bytes => format!("{bytes} bytes of spill stores and loads"),
            };
            text += &format!("registers  {registers} a thread; {spilled}\n");
            text += &self.shared_text(*shared, release);
            if let Some(instructions) = instructions {
                text += &format!("code       {instructions} instructions\n");
            }
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

    fn shared_text(&self, shared: u64, release: &str) -> String {
        let more = if self.has_dynamic_shared() { ", more with the launch" } else { "" };
        let occupancy = self.occupancy_text();
        format!(
            "shared     {shared} bytes a block{more} (ptxas {release})\noccupancy  {occupancy}\n"
        )
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
            "{blocks} blocks, {warps} of {most_warps} warps an SM ({:.0} %), limited by \
             {limited_by}{dynamic}\n           blocks by {limits}",
            occupancy.percent()
        )
    }

    /// Instructions by kind, in PTX and in machine code, of the kernel and of its main loop.
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

    pub(super) fn json(&self) -> Value {
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
        let recorded = self.machine.recorded.as_ref().map(|of| {
            json!({
                "release": of.release,
                "registers": of.registers,
                "shared_bytes": of.shared,
                "spill_bytes": of.spills,
                "instructions": of.instructions,
            })
        });
        let occupancy = self.occupancy().map(|occupancy| {
            let limits = occupancy.limits.iter();
            json!({
                "blocks": occupancy.blocks,
                "warps": occupancy.warps,
                "percent": rounded(occupancy.percent()),
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
        let constants = self.constants.iter().map(|one| (one.name.clone(), json!(one.value)));
        json!({
            "kernel": self.kernel.name,
            "constants": constants.collect::<Value>(),
            "file": self.file,
            "target": self.module.target,
            "ptx_version": self.module.version,
            "declaration": self.declaration(),
            "ptxas": usage,
            "recorded": recorded,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;
    use crate::listing::sass::Sass;

    const FILE: &str = "\
// Generated by `cargo xtask build-ptx`. rustc
.version 8.3
.target sm_90a
.visible .entry k(
	.param .u32 k_param_0
)
.reqntid 16, 16, 1
{
	// simt.kernel name=k block=16,16,1 shared=2048 barriers=0 params=u32
	{ .shared .align 16 .b8 s[2048]; mov.u32 %r2, s; }
$LOOP:
	ld.shared.b32 %r3, [%r2];
	fma.rn.f32 %r4, %r3, %r3, %r4;
	@%p1 bra $LOOP;
	ret;
}
";

    const SASS: &str = "\
.text.k:
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_0:
        /*0010*/                   LDS.128 R4, [R0] ;
        /*0020*/                   FFMA R8, R4, R4, R8 ;
        /*0030*/                   FFMA R8, R5, R5, R8 ;
        /*0040*/               @P0 BRA `(.L_x_0) ;
        /*0050*/                   EXIT ;
";

    fn with_report<T>(options: &Options, machine: Machine, use_it: impl FnOnce(&Report) -> T) -> T {
        let module = Module::parse(FILE).unwrap();
        let kernel = module.function("k").unwrap();
        let ptx = View::of_ptx(FILE, kernel).unwrap();
        let constants = vec![Constant { name: "a".into(), default: "0".into(), value: "1".into() }];
        let file = "gpu.ptx";
        use_it(&Report { file, module: &module, kernel, constants, ptx, machine, options })
    }

    fn no_tools() -> Machine {
        Machine {
            usage: None,
            recorded: None,
            sass: None,
            missing: Some("there is no ptxas".into()),
        }
    }

    fn all_tools() -> Machine {
        let usage = Usage { kernel: "k".into(), registers: 32, shared: 2048, ..Usage::default() };
        let sass = View::of_sass(Sass::parse(SASS, "k").unwrap());
        Machine {
            usage: Some(("13.0".into(), usage)),
            recorded: None,
            sass: Some(("13.2".into(), sass)),
            missing: None,
        }
    }

    #[test]
    fn without_tools_there_are_figures_of_the_ptx_and_the_reason() {
        let options = Options { ptx: true, ..Options::default() };
        let text = with_report(&options, no_tools(), |report| report.text());
        assert!(text.contains("note       there is no ptxas"), "{text}");
        assert!(text.contains("name=k block=16,16,1 shared=2048"), "{text}");
        assert!(!text.contains("occupancy") && !text.contains("SASS"), "{text}");
        assert!(text.contains("\nconstants  a=1\n"), "{text}");
        let row =
            |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_string();
        let cells =
            |name: &str| row(name)[20..].split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(cells("fma"), ["1", "1"]);
        assert_eq!(cells("shared load 32"), ["1", "1"]);
        assert_eq!(cells("all"), ["5", "3"]);
        assert_eq!(cells("share of fma, tensor"), ["20.0", "%", "33.3", "%"]);
        // Shown as in the file. The loop is marked from its first instruction to its branch.
        assert!(
            text.contains("\n  $LOOP:\n| \tld.shared") && text.contains("LOOP;\n  \tret;"),
            "{text}"
        );
        let json = with_report(&options, no_tools(), |report| report.json());
        assert_eq!((&json["sass"], &json["occupancy"]), (&Value::Null, &Value::Null));
        assert_eq!(json["ptx"]["main_loop"]["first_line"], 12);
        assert_eq!(json["constants"], json!({ "a": "1" }));
        assert_eq!(json["ptx"]["main_loop"]["multiply_add_share"], 0.3333);
        assert!(json["ptx"]["text"].as_str().unwrap().starts_with(".visible .entry k("));
    }

    #[test]
    fn with_tools_there_are_occupancy_and_machine_code() {
        let options = Options { sass: true, ..Options::default() };
        let text = with_report(&options, all_tools(), |report| report.text());
        assert!(text.contains("registers  32 a thread; nothing spilled"), "{text}");
        assert!(text.contains("8 blocks, 64 of 64 warps an SM (100 %)"), "{text}");
        assert!(text.contains("| ") && text.contains("  .L_x_0:\n|  "), "{text}");
        let json = with_report(&options, all_tools(), |report| report.json());
        assert_eq!(json["occupancy"]["blocks_by"]["shared_memory"], 76);
        assert_eq!(json["ptxas"]["registers"], 32);
        let sass = &json["sass"];
        assert_eq!(
            (&sass["instructions"], &sass["kinds"]["shared_load_128"]),
            (&json!(6), &json!(1))
        );
        assert_eq!(sass["main_loop"]["multiply_add_share"], 0.5);
        assert_eq!(json["ptx"]["text"], Value::Null, "not asked for");
    }

    #[test]
    fn an_occupancy_that_cannot_be_known_says_why() {
        let options = Options { target: Target::new("sm_88", (7, 1)), ..Options::default() };
        let text = with_report(&options, all_tools(), |report| report.text());
        assert!(text.contains("occupancy  not known of sm_88"), "{text}");
    }

    #[test]
    fn spills_are_not_hidden() {
        let usage = Usage { stack: 8, spill_stores: 4, ..Usage::default() };
        assert_eq!(spills(&usage), "8 bytes of stack, 4 bytes of spill stores, 0 of spill loads");
    }
}
