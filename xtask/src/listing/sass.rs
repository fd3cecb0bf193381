//! Kinds of machine code instructions, from the output of NVIDIA's disassembler.
//!
//! The instruction set is documented only as a list of names: NVIDIA, *CUDA Binary Utilities*,
//! "Instruction Set Reference".

use std::{collections::HashMap, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};

use super::{Instruction, Kind, Listing, Space};
use crate::{
    environment::output,
    tool::{Program, Tool, Wheel},
};

/// The disassembler. It reads the code of every assembler that is not newer than itself.
pub(crate) const TOOL: Tool = Tool {
    name: "nvdisasm",
    package: "nvidia-cuda-nvdisasm",
    version: "13.2.86",
    megabytes: 4,
    wheels: [
        Wheel {
            arch: "x86_64",
            address: "b2/99/754bd821ec8557ae95192c0fc397c1df47be79e983e4458dc16b26310313/\
             nvidia_cuda_nvdisasm-13.2.86-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
            digest: "53606e719ecae07a2335f95902d5a1393a0cc1c317499ee7ffcf628a44385f2c",
            program: "6df0054fac801e7ab7d251506cfe52a1171c207de0923d8a3d57fdd5a1f6d982",
        },
        Wheel {
            arch: "aarch64",
            address: "04/6f/cbd8bedea7843c2917572ee7c5c613a686fefc463cdb14598101cf446005/\
             nvidia_cuda_nvdisasm-13.2.86-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl",
            digest: "d02c627f7aecfcac4dd5e923e94adeaa6607c5fdae8df750b01ad948d38941d3",
            program: "90f6cae050df0f9bc7ded0ad09e331fd69a948c7c368c03d72edb603a931b225",
        },
    ],
};

/// A disassembler that can run.
#[derive(Clone, Debug)]
pub struct Nvdisasm(Program);

impl Nvdisasm {
    /// The first one found: `$NVDISASM`, the one on `PATH`, a CUDA toolkit's, one that was
    /// [fetched](Nvdisasm::fetch) for the workspace in `root`. One that is too old is skipped.
    pub fn find(root: &Path) -> Option<Nvdisasm> {
        TOOL.find(root).map(Nvdisasm)
    }

    /// Downloads the disassembler from PyPI into the target folder of the workspace in `root`.
    pub fn fetch(root: &Path) -> Result<Nvdisasm> {
        TOOL.fetch(root).map(Nvdisasm)
    }

    /// Its release: `13.2`.
    pub fn release(&self) -> &str {
        &self.0.release
    }

    /// The code of a kernel in the assembler's output.
    pub fn disassemble(&self, cubin: &Path, kernel: &str) -> Result<Sass> {
        let said = output(Command::new(&self.0.path).arg("--print-code").arg(cubin))?;
        Sass::parse(&said, kernel)
            .with_context(|| format!("cannot read what {} wrote", self.0.path.display()))
    }
}

/// The machine code of a kernel.
#[derive(Clone, Debug)]
pub struct Sass {
    /// Its text up to the last instruction, without the filling and what follows.
    pub text: String,
    /// Its instructions, by the lines of `text`.
    pub listing: Listing,
}

impl Sass {
    /// Finds a kernel in the output of a disassembler, and parses it.
    ///
    /// # Errors
    /// A missing kernel, and a line or a branch that is not understood.
    pub fn parse(said: &str, kernel: &str) -> Result<Sass> {
        let start = format!(".text.{kernel}:");
        let lines = said.lines().skip_while(|line| line.trim() != start);
        let lines: Vec<&str> =
            lines.take_while(|line| !line.trim_start().starts_with(".section")).collect();
        ensure!(!lines.is_empty(), "there is no code of a kernel `{kernel}`");
        let (mut code, mut labels) = (Vec::new(), HashMap::new());
        for (line, text) in (1..).zip(&lines) {
            let text = text.trim();
            if text.starts_with("/*") {
                let place = || format!("line {line}: `{text}`");
                code.push((line, Operation::parse(text).with_context(place)?));
            } else if let Some(name) = text.strip_suffix(':') {
                labels.insert(name, code.len());
            }
        }
        ensure!(!code.is_empty(), "the kernel `{kernel}` has no instructions");
        let used = code.len() - filling(&code, &labels);
        let mut instructions = Vec::new();
        for (line, operation) in &code[..used] {
            let jump = operation.jump(&labels).with_context(|| format!("line {line}"))?;
            instructions.push(Instruction { line: *line, kind: operation.kind(), jump });
        }
        let end = instructions.last().map_or(lines.len(), |last| last.line);
        Ok(Sass { text: lines[..end].join("\n"), listing: Listing(instructions) })
    }
}

/// The number of instructions that only fill the last cache line: the assembler ends a kernel with
/// a branch to itself, for an instruction fetch that runs ahead, and with `NOP`s.
fn filling(code: &[(usize, Operation)], labels: &HashMap<&str, usize>) -> usize {
    let is_filling = |(index, (_, operation)): &(usize, &(usize, Operation))| {
        let to_itself = || {
            operation.predicate.is_none()
                && matches!(operation.jump(labels), Ok(Some(target)) if target == *index)
        };
        operation.opcode == "NOP" || to_itself()
    };
    code.iter().enumerate().rev().take_while(is_filling).count()
}

/// One instruction: `/*0430*/ @!P2 LDG.E R29, desc[UR10][R8.64] ;`.
struct Operation<'a> {
    predicate: Option<&'a str>,
    opcode: &'a str,
    /// The parts after the opcode's dots.
    modifiers: Vec<&'a str>,
    operands: &'a str,
}

impl<'a> Operation<'a> {
    fn parse(line: &'a str) -> Result<Self> {
        let rest = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
        let (address, rest) = rest.context("an address is missing")?;
        ensure!(u64::from_str_radix(address, 16).is_ok(), "`{address}` is no address");
        let (text, _) = rest.split_once(';').context("it does not end with `;`")?;
        let text = text.trim();
        let (predicate, text) = match text.strip_prefix('@').and_then(|t| t.split_once(' ')) {
            Some((predicate, rest)) => (Some(predicate), rest.trim_start()),
            None => (None, text),
        };
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let mut parts = name.split('.');
        let opcode = parts.next().unwrap_or_default();
        ensure!(opcode.starts_with(|c: char| c.is_ascii_uppercase()), "`{name}` is no opcode");
        Ok(Operation { predicate, opcode, modifiers: parts.collect(), operands })
    }

    /// The target of its jump.
    fn jump(&self, labels: &HashMap<&str, usize>) -> Result<Option<usize>> {
        if self.opcode != "BRA" {
            return Ok(None);
        }
        let label = self.operands.split_once("`(").and_then(|(_, rest)| rest.split_once(')'));
        let Some((label, _)) = label else {
            bail!("a branch to `{}`, which is no label", self.operands);
        };
        match labels.get(label) {
            Some(target) => Ok(Some(*target)),
            None => bail!("there is no label `{label}` to branch to"),
        }
    }

    fn kind(&self) -> Kind {
        use Space::*;
        match self.opcode {
            // A constant moved to a register by an arithmetic unit.
            "HFMA2" | "FFMA" | "IMAD" if self.only_moves() => Kind::Other,
            "FFMA" | "FFMA2" | "DFMA" | "HFMA2" => Kind::Fma,
            opcode if opcode.ends_with("MMA") => Kind::Tensor,
            "LDG" => Kind::Load(Global, self.bits()),
            "STG" => Kind::Store(Global, self.bits()),
            "LDS" => Kind::Load(Shared, self.bits()),
            "STS" => Kind::Store(Shared, self.bits()),
            "LDSM" => Kind::Load(Shared, self.matrix_bits()),
            "STSM" => Kind::Store(Shared, self.matrix_bits()),
            "LDL" => Kind::Load(Local, self.bits()),
            "STL" => Kind::Store(Local, self.bits()),
            "LD" => Kind::Load(Generic, self.bits()),
            "ST" => Kind::Store(Generic, self.bits()),
            "ATOM" | "ATOMG" | "ATOMS" | "RED" | "REDG" => Kind::Atomic,
            "LDGSTS" | "STAS" | "UBLKCP" | "UBLKRED" | "UTMALDG" | "UTMASTG" | "UTMAREDG"
            | "UTMACMDFLUSH" => Kind::Copy,
            "BAR" | "SYNCS" | "DEPBAR" | "LDGDEPBAR" | "ARRIVES" | "MEMBAR" | "ERRBAR"
            | "FENCE" | "WARPSYNC" | "WARPGROUP" | "UCGABAR_ARV" | "UCGABAR_WAIT" | "UTMACCTL" => {
                Kind::Barrier
            }
            "BRA" | "BRX" | "BRXU" | "JMP" | "JMX" | "CALL" | "RET" | "EXIT" | "BSSY" | "BSYNC"
            | "BREAK" | "BMOV" | "BPT" | "KILL" | "YIELD" => Kind::Control,
            opcode if is_arithmetic(opcode) => Kind::Arithmetic,
            _ => Kind::Other,
        }
    }

    /// Whether a factor is zero.
    fn only_moves(&self) -> bool {
        let mut operands = self.operands.split(',').map(|operand| operand.trim().trim_matches('-'));
        self.modifiers.contains(&"MOV")
            || (self.opcode == "HFMA2"
                && operands.nth(1) == Some("RZ")
                && operands.next() == Some("RZ"))
    }

    /// The bits that a thread moves. 32 if the opcode does not say.
    fn bits(&self) -> u32 {
        let number = |word: &&str| word.trim_start_matches(['U', 'S']).parse().ok();
        self.modifiers.iter().find_map(number).unwrap_or(32)
    }

    /// A thread's bits of one, two or four 8 x 8 matrices: `LDSM.16.M88.4`.
    fn matrix_bits(&self) -> u32 {
        32 * self
            .modifiers
            .last()
            .and_then(|word| word.parse().ok())
            .filter(|n| *n <= 4)
            .unwrap_or(1)
    }
}

/// Whether an opcode computes: on floating-point numbers, on integers, or for a whole warp (opcodes
/// with `U`).
fn is_arithmetic(opcode: &str) -> bool {
    const NAMES: &str = "\
        BMSK BREV DADD DMUL DSETP F2F F2FP F2I F2IP FADD FADD2 FCHK FLO FMNMX FMNMX3 FMUL FMUL2 \
        FRND FSEL FSET FSETP FSWZADD HADD2 HMNMX2 HMUL2 HSET2 HSETP2 I2F I2FP I2I I2IP IABS IADD \
        IADD3 IDP IDP4A IMAD IMNMX IMUL ISCADD ISETP LEA LOP LOP3 MUFU PLOP3 POPC PRMT SEL SGXT \
        SHF SHL SHR VABSDIFF VABSDIFF4 VADD VHMNMX VIADD VIADDMNMX VIMNMX VIMNMX3 IADD2";
    let is_one = |opcode: &str| NAMES.split(' ').any(|name| name == opcode);
    is_one(opcode) || opcode.strip_prefix('U').is_some_and(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
	.headerflags	@\"EF_CUDA_SM90\"
	.section	.text.other,\"ax\",@progbits
.text.other:
        /*0000*/                   EXIT ;
	.section	.text.tiled,\"ax\",@progbits
	.sectioninfo	@\"SHI_REGISTERS=32\"
	.align	128
        .global         tiled
.text.tiled:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P1 BRA `(.L_x_0) ;
.L_x_1:
        /*0020*/               @P1 LDG.E R15, desc[UR10][R10.64] ;
        /*0030*/                   STS [R2+UR5], R15 ;
        /*0040*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0050*/                   FFMA R12, R12, R28, R27 ;
        /*0060*/                   FFMA R11, R9, R13.reuse, R12 ;
        /*0070*/               @P2 BRA `(.L_x_1) ;
.L_x_0:
        /*0080*/                   STG.E desc[UR4][R2.64], R5 ;
        /*0090*/                   EXIT ;
.L_x_2:
        /*00a0*/                   BRA `(.L_x_2);
        /*00b0*/                   NOP;
        /*00c0*/                   NOP;


//--------------------- .nv.shared.tiled          --------------------------
	.section	.nv.shared.tiled,\"aw\",@nobits
	.align	16
";

    #[test]
    fn a_kernel_is_found_and_its_filling_left_out() {
        let sass = Sass::parse(SAID, "tiled").unwrap();
        assert!(sass.text.starts_with(".text.tiled:\n") && sass.text.ends_with("EXIT ;"));
        assert_eq!(sass.listing.0.len(), 10);
        let main = sass.listing.main_loop().unwrap();
        assert_eq!((main.clone(), sass.listing.lines(&main)), (2..8, (5, 10)));
        let mix = sass.listing.mix_of(main);
        assert_eq!((mix.total(), mix.count(Kind::Fma), mix.count(Kind::Barrier)), (6, 2, 1));
        assert_eq!(Sass::parse(SAID, "other").unwrap().listing.0.len(), 1);
    }

    #[test]
    fn code_behind_the_last_exit_is_code() {
        let said = SAID.replace("BRA `(.L_x_2);", "BRA `(.L_x_1);");
        assert_eq!(Sass::parse(&said, "tiled").unwrap().listing.0.len(), 11);
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_its_line() {
        let fails = |kernel: &str, from: &str, to: &str, words: &str| {
            assert!(from.is_empty() || SAID.contains(from), "`{from}`");
            let error = format!("{:#}", Sass::parse(&SAID.replace(from, to), kernel).unwrap_err());
            assert!(error.contains(words), "`{words}` is missing: {error}");
        };
        fails("tile", "EXIT", "EXIT", "no code of a kernel `tile`");
        fails("tiled", "/*0050*/", "/*005x*/", "line 8: `/*005x*/");
        fails("tiled", "BAR.SYNC.DEFER_BLOCKING 0x0 ;", "BAR.SYNC", "does not end with `;`");
        fails("tiled", "LDC R1,", "{R1,", "is no opcode");
        fails("tiled", "@P2 BRA `(.L_x_1)", "@P2 BRA `(.L_x_7)", "no label `.L_x_7`");
        fails("tiled", "@P2 BRA `(.L_x_1)", "@P2 BRA 0x20", "which is no label");
        fails(
            "other",
            "        /*0000*/                   EXIT ;\n\t.section",
            "\t.section",
            "no instructions",
        );
    }

    #[test]
    fn instructions_and_their_kinds() {
        use Space::*;
        for (text, expected) in [
            ("FFMA R12, R12, R28, R27", Kind::Fma),
            ("HFMA2.MMA R5, -RZ, RZ, 0, 0", Kind::Other),
            ("HFMA2.MMA R5, R6, R7, R8", Kind::Fma),
            ("HGMMA.64x128x8.F32.TF32 R24, gdesc[UR8], R24, gsb0", Kind::Tensor),
            ("HMMA.1688.F32.TF32 R4, R8, R10, R4", Kind::Tensor),
            ("IMAD.WIDE.U32 R24, R7, 0x20, R4", Kind::Arithmetic),
            ("IMAD.MOV.U32 R27, RZ, RZ, RZ", Kind::Other),
            ("@!P2 IADD3.X R17, R7, UR13, R2, P1, P2", Kind::Arithmetic),
            ("UIADD3 UR8, UP0, UR12, 0x1f, URZ", Kind::Arithmetic),
            ("LDG.E.128.CONSTANT R4, desc[UR4][R2.64]", Kind::Load(Global, 128)),
            ("LDG.E.U8 R4, desc[UR4][R2.64]", Kind::Load(Global, 8)),
            ("LDS.64 R4, [R2]", Kind::Load(Shared, 64)),
            ("STS.U16 [R2], R3", Kind::Store(Shared, 16)),
            ("LDSM.16.MT88.4 R4, [R2]", Kind::Load(Shared, 128)),
            ("LDSM.16.M88 R4, [R2]", Kind::Load(Shared, 32)),
            ("STL [R1], R3", Kind::Store(Local, 32)),
            ("UTMALDG.2D [UR8], [UR4]", Kind::Copy),
            ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3", Kind::Barrier),
            ("WARPGROUP.DEPBAR.LE gsb0, 0x1", Kind::Barrier),
            ("@P0 EXIT", Kind::Control),
            ("S2R R7, SR_CTAID.X", Kind::Other),
        ] {
            let line = format!("/*0000*/ {text} ;");
            assert_eq!(Operation::parse(&line).unwrap().kind(), expected, "{text}");
        }
    }
}
