//! Kinds of PTX instructions. The instruction set: NVIDIA, *Parallel Thread Execution ISA*,
//! chapter 9.

use anyhow::{Context, Result};

use super::{Instruction, Kind, Listing, Space};
use crate::ptx::{Function, Statement};

/// The instructions of a kernel, without those of functions that it calls.
///
/// # Errors
/// A branch to a label that the body does not have.
pub fn listing(kernel: &Function) -> Result<Listing> {
    // A body has declarations, too. This is the number of instructions before each statement.
    let mut before = Vec::new();
    let mut count = 0;
    for statement in &kernel.body {
        before.push(count);
        count += usize::from(statement.is_instruction());
    }
    before.push(count);
    let mut instructions = Vec::new();
    for (index, statement) in kernel.body.iter().enumerate() {
        if statement.is_instruction() {
            let target = branch_target(kernel, index, statement)
                .with_context(|| format!("line {}: `{}`", statement.line, statement.text))?;
            instructions.push(Instruction {
                line: statement.line,
                kind: kind(statement),
                jump: target.map(|statement| before[statement]),
            });
        }
    }
    Ok(Listing(instructions))
}

/// The target statement of a branch.
pub(crate) fn branch_target(
    kernel: &Function,
    index: usize,
    statement: &Statement,
) -> Result<Option<usize>> {
    if statement.opcode().next() != Some("bra") {
        return Ok(None);
    }
    let name = statement.text.split(' ').nth(1).unwrap_or_default();
    labelled(kernel, index, name).map(Some)
}

/// The target statements of the branch at `index` by a table (`brx.idx %r1, $table`).
pub(crate) fn table_targets(
    kernel: &Function,
    index: usize,
    statement: &Statement,
) -> Result<Vec<usize>> {
    let (_, table) = statement.text.rsplit_once(", ").unwrap_or_default();
    let at = labelled(kernel, index, table)?;
    let targets = kernel.body.get(at).and_then(|of| of.text.strip_prefix(".branchtargets "));
    let targets = targets.with_context(|| format!("`{table}` is no list of labels"))?;
    targets.split(',').map(|name| labelled(kernel, at, name.trim())).collect()
}

/// The statement after the label with that name, as seen from the statement at `index`.
fn labelled(kernel: &Function, index: usize, name: &str) -> Result<usize> {
    let labels = kernel.labels.iter().filter(|label| label.name == name);
    // A label in inner braces hides outer ones of the same name.
    let visible = labels.filter(|label| label.scope.contains(&index));
    let label = visible.min_by_key(|label| label.scope.len());
    Ok(label.with_context(|| format!("there is no label `{name}` to branch to"))?.statement)
}

/// The kind of an instruction.
fn kind(instruction: &Statement) -> Kind {
    let parts: Vec<&str> = instruction.opcode().collect();
    let has = |word: &str| parts.contains(&word);
    match parts[0] {
        "fma" => Kind::Fma,
        // For floating-point numbers `mad` is `fma`.
        "mad" if has("f32") || has("f64") => Kind::Fma,
        "mma" => Kind::Tensor,
        "wgmma" if has("mma_async") => Kind::Tensor,
        "wmma" if has("mma") => Kind::Tensor,
        "wgmma" => Kind::Barrier,
        "ld" | "ldu" if has("param") || has("const") => Kind::Other,
        "ld" | "ldu" => Kind::Load(space(&parts), bits(&parts)),
        "st" if has("param") => Kind::Other,
        "st" if has("async") => Kind::Copy,
        "st" => Kind::Store(space(&parts), bits(&parts)),
        "ldmatrix" => Kind::Load(Space::Shared, matrix_bits(&parts)),
        "stmatrix" => Kind::Store(Space::Shared, matrix_bits(&parts)),
        "red" if has("async") => Kind::Copy,
        "atom" | "red" | "multimem" => Kind::Atomic,
        "cp" if parts.iter().any(|p| p.contains("_group") || *p == "mbarrier") => Kind::Barrier,
        "cp" => Kind::Copy,
        "bar" | "barrier" | "mbarrier" | "membar" | "fence" | "griddepcontrol" => Kind::Barrier,
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" => Kind::Control,
        opcode if ARITHMETIC.contains(&opcode) => Kind::Arithmetic,
        _ => Kind::Other,
    }
}

/// Whether an instruction with that name computes from registers only.
pub(crate) fn is_arithmetic(opcode: &str) -> bool {
    ARITHMETIC.contains(&opcode)
}

const ARITHMETIC: [&str; 61] = [
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign",
    "cos", "cvt", "div", "dp2a", "dp4a", "ex2", "fns", "lg2", "lop3", "mad", "mad24", "madc",
    "max", "min", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "sad",
    "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "subc", "szext",
    "tanh", "testp", "vabsdiff", "vadd", "vmad", "vmax", "vmin", "vset", "vshl", "vshr", "vsub",
    "xor",
];

fn space(parts: &[&str]) -> Space {
    // `shared::cta` and the like are shared memory.
    let find = |name: &str| parts.iter().any(|part| part.split(':').next() == Some(name));
    match () {
        _ if find("global") => Space::Global,
        _ if find("shared") => Space::Shared,
        _ if find("local") => Space::Local,
        _ => Space::Generic,
    }
}

/// The bits that a thread moves: `ld.global.v4.b32` moves 128.
fn bits(parts: &[&str]) -> u32 {
    let number = |part: &str, letters: &[char]| part.strip_prefix(letters)?.parse::<u32>().ok();
    // The type is last: `.L2::128B` and `.v4` are before it.
    let element = parts.iter().rev().find_map(|part| number(part, &['b', 'u', 's', 'f']));
    let vector = parts.iter().find_map(|part| number(part, &['v']));
    element.unwrap_or(0) * vector.unwrap_or(1)
}

/// A thread's bits of one, two or four 8 x 8 matrices of 16-bit numbers.
fn matrix_bits(parts: &[&str]) -> u32 {
    32 * parts.iter().find_map(|part| part.strip_prefix('x')?.parse::<u32>().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::Module;

    fn kinds(code: &str) -> Vec<Kind> {
        let module = Module::parse(&format!(".entry k()\n{{\n{code}\n}}")).unwrap();
        let listing = listing(module.function("k").unwrap()).unwrap();
        listing.0.iter().map(|instruction| instruction.kind).collect()
    }

    #[test]
    fn instructions_and_their_kinds() {
        use Space::*;
        for (code, expected) in [
            ("fma.rn.f32 %r1, %r2, %r3, %r1;", Kind::Fma),
            ("mad.rn.f32 %r1, %r2, %r3, %r1;", Kind::Fma),
            ("mad.lo.s32 %r1, %r2, %r3, %r1;", Kind::Arithmetic),
            (
                "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%f1}, %rd1, %rd2, 1, 1, 1;",
                Kind::Tensor,
            ),
            ("wgmma.wait_group.sync.aligned 1;", Kind::Barrier),
            (
                "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f1};",
                Kind::Tensor,
            ),
            ("@%p1 setp.ne.b64 %p6, %rd35, 0;", Kind::Arithmetic),
            ("ld.global.b32 %r1, [%rd1];", Kind::Load(Global, 32)),
            ("ld.global.nc.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", Kind::Load(Global, 128)),
            ("ld.shared.v2.b64 {%rd1, %rd2}, [%r1];", Kind::Load(Shared, 128)),
            ("ld.shared::cluster.u8 %r1, [%r1];", Kind::Load(Shared, 8)),
            (
                "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];",
                Kind::Load(Shared, 128),
            ),
            ("st.local.b32 [%rd1], %r1;", Kind::Store(Local, 32)),
            ("st.v4.b32 [%rd1], {%r1, %r1, %r1, %r1};", Kind::Store(Generic, 128)),
            ("ld.param.b32 %r1, [k_param_0];", Kind::Other),
            ("mov.u32 %r1, %tid.x;", Kind::Other),
            ("atom.global.add.f32 %f1, [%rd1], %f2;", Kind::Atomic),
            ("cp.async.cg.shared.global [%r1], [%rd1], 16;", Kind::Copy),
            (
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
                Kind::Copy,
            ),
            ("cp.async.wait_group 1;", Kind::Barrier),
            ("barrier.cta.sync.aligned.all 0;", Kind::Barrier),
            ("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;", Kind::Barrier),
            ("ret;", Kind::Control),
        ] {
            assert_eq!(kinds(code), [expected], "{code}");
        }
        assert_eq!(kinds(".reg .b32 %r<8>;\n.pragma \"nounroll\";"), [], "no instructions");
    }

    const LOOP: &str = "\
.entry k()
{
	.reg .b32 %r<8>;
	ld.param.b32 %r1, [k_param_0];
	@%p1 bra $DONE;
$LOOP:
	.pragma \"nounroll\";
	fma.rn.f32 %r2, %r3, %r4, %r2;
	{
	WAIT:
	mbarrier.try_wait.shared.b64 %p2, [%r5];
	@!%p2 bra WAIT;
	}
	{ @%p3 bra.uni WAIT; add.u32 %r1, %r1, 1; WAIT: }
	@%p4 bra $LOOP;
$DONE:
	ret;
}
";

    #[test]
    fn the_main_loop_of_a_kernel() {
        let listing = listing(Module::parse(LOOP).unwrap().function("k").unwrap()).unwrap();
        let jumps: Vec<_> = listing.0.iter().map(|instruction| instruction.jump).collect();
        assert_eq!(
            jumps,
            [None, Some(8), None, None, Some(3), Some(7), None, Some(2), None],
            "each `WAIT` is the one between the branch's own braces"
        );
        let main = listing.main_loop().unwrap();
        assert_eq!((main.clone(), listing.lines(&main)), (2..8, (8, 15)));
        assert_eq!(listing.mix_of(main).share(), 1.0 / 6.0);
    }

    #[test]
    fn a_branch_to_nowhere_is_an_error_with_its_line() {
        let text = LOOP.replace("$LOOP:", "$POOL:");
        let module = Module::parse(&text).unwrap();
        let error = format!("{:#}", listing(module.function("k").unwrap()).unwrap_err());
        assert!(error.contains("line 15") && error.contains("no label `$LOOP`"), "{error}");
        // Outside its braces a label is unknown.
        let text = LOOP.replace("@%p4 bra $LOOP", "@%p4 bra WAIT");
        let module = Module::parse(&text).unwrap();
        assert!(listing(module.function("k").unwrap()).is_err());
    }
}
