//! A kernel's instructions by kind, and its main loop, for PTX and for machine code.

pub mod ptx;
pub mod sass;

use std::{collections::BTreeMap, fmt, ops::Range};

/// The kind of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A fused multiply-add of floating-point numbers.
    Fma,
    /// A tensor core instruction: many multiply-adds.
    Tensor,
    /// Other arithmetic: addresses, comparisons, conversions.
    Arithmetic,
    /// A load. The number is that of bits for a thread.
    Load(Space, u32),
    /// A store. The number is that of bits for a thread.
    Store(Space, u32),
    /// An atomic operation.
    Atomic,
    /// An asynchronous copy between memories.
    Copy,
    /// A barrier, a fence, or a wait for copies.
    Barrier,
    /// A branch, a call, or an end.
    Control,
    /// Moves, parameters, everything else.
    Other,
}

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Global memory.
    Global,
    /// Shared memory.
    Shared,
    /// Local memory, where registers are spilled.
    Local,
    /// Any of them: the hardware decides by the address.
    Generic,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Kind::Fma => f.write_str("fma"),
            Kind::Tensor => f.write_str("tensor"),
            Kind::Arithmetic => f.write_str("other arithmetic"),
            Kind::Load(space, bits) => write!(f, "{space} load {bits}"),
            Kind::Store(space, bits) => write!(f, "{space} store {bits}"),
            Kind::Atomic => f.write_str("atomic"),
            Kind::Copy => f.write_str("asynchronous copy"),
            Kind::Barrier => f.write_str("barrier or wait"),
            Kind::Control => f.write_str("branch or control"),
            Kind::Other => f.write_str("other"),
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Generic => "generic",
        })
    }
}

/// An instruction, as far as it is needed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its line in the text, from 1.
    pub line: usize,
    /// Its kind.
    pub kind: Kind,
    /// The target of its jump, as an index into the listing.
    pub jump: Option<usize>,
}

/// The instructions of a kernel, in the order of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(pub Vec<Instruction>);

/// The number of instructions of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix(pub BTreeMap<Kind, usize>);

impl Listing {
    /// Counts all instructions.
    pub fn mix(&self) -> Mix {
        Mix::of(&self.0)
    }

    /// Counts the instructions of a part.
    pub fn mix_of(&self, part: Range<usize>) -> Mix {
        Mix::of(&self.0[part])
    }

    /// The first and the last line of a part.
    pub fn lines(&self, part: &Range<usize>) -> (usize, usize) {
        (self.0[part.start].line, self.0[part.end - 1].line)
    }

    /// The innermost loop with the most multiply-adds. If tensor cores do them, the one with the
    /// most of theirs. A loop without multiply-adds, such as waiting for a copy, does not make the
    /// loop around it an outer one. If no loop multiplies and adds in one instruction, it is the
    /// longest innermost loop.
    ///
    /// A loop is the code between a backward branch and its target. A block that the assembler has
    /// moved behind the kernel's end is not part of it.
    pub fn main_loop(&self) -> Option<Range<usize>> {
        let mut ends = BTreeMap::new();
        for (index, instruction) in self.0.iter().enumerate() {
            if let Some(start) = instruction.jump.filter(|start| *start <= index) {
                // Several branches to one target, such as `continue`, are one loop.
                ends.insert(start, index + 1);
            }
        }
        // One tensor core instruction multiplies more than all other instructions of the kernel.
        let on_tensor_cores = self.mix().count(Kind::Tensor) > 0;
        let multiply_adds = |part: &Range<usize>| match on_tensor_cores {
            true => self.mix_of(part.clone()).count(Kind::Tensor),
            false => self.mix_of(part.clone()).multiply_adds(),
        };
        let loops: Vec<Range<usize>> = ends.into_iter().map(|(start, end)| start..end).collect();
        let working: Vec<_> = loops.iter().filter(|part| multiply_adds(part) > 0).collect();
        let chosen = if working.is_empty() { loops.iter().collect() } else { working };
        let innermost = chosen.iter().filter(|part| {
            !chosen
                .iter()
                .any(|other| other != *part && part.start <= other.start && other.end <= part.end)
        });
        // The same number of multiply-adds in less code is the better candidate. Of equal ones, the
        // first.
        let key = |part: &Range<usize>| match (multiply_adds(part), part.len() as isize) {
            (0, length) => (0, length),
            (count, length) => (count, -length),
        };
        innermost.rev().max_by_key(|part| key(part)).map(|part| (*part).clone())
    }
}

impl Mix {
    fn of(instructions: &[Instruction]) -> Mix {
        let mut mix = Mix::default();
        for instruction in instructions {
            *mix.0.entry(instruction.kind).or_default() += 1;
        }
        mix
    }

    /// The number of instructions of that kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    /// All instructions.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Instructions that multiply and add, on tensor cores or not.
    pub fn multiply_adds(&self) -> usize {
        self.count(Kind::Fma) + self.count(Kind::Tensor)
    }

    /// Their share of all instructions, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.multiply_adds() as f64 / self.total().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listing in shorthand: `f` multiplies and adds, `.` does something else, a digit jumps to
    /// that index.
    fn listing(text: &str) -> Listing {
        let instruction = |(line, c): (usize, char)| Instruction {
            line,
            kind: match c {
                'f' => Kind::Fma,
                '.' => Kind::Other,
                _ => Kind::Control,
            },
            jump: c.to_digit(10).map(|digit| digit as usize),
        };
        Listing((1..).zip(text.chars()).map(instruction).collect())
    }

    #[test]
    fn the_main_loop_is_the_innermost_with_the_most_multiply_adds() {
        let main = |text: &str| listing(text).main_loop();
        assert_eq!(main("..ff2.f"), Some(2..5));
        assert_eq!(main("f..f3ff5.1."), Some(5..8), "of two inner loops the busier");
        assert_eq!(main("f.ff2fff1"), Some(2..5), "an outer loop has more, and is not innermost");
        assert_eq!(main(".f.2ff1"), Some(1..7), "a loop that waits is not the inner one");
        assert_eq!(main(".ff1ff1."), Some(1..7), "two branches to one place are one loop");
        assert_eq!(main("..0...4..9"), Some(0..3), "nothing to choose by but the length");
        assert_eq!(main("ff5.ff"), None, "forward is no loop");
        assert_eq!(main(""), None);
    }

    #[test]
    fn equals_are_decided_by_length_and_then_by_order() {
        assert_eq!(listing("f.0f3.f.6").main_loop(), Some(3..5));
        assert_eq!(listing("f0f2").main_loop(), Some(0..2));
    }

    #[test]
    fn a_mix_counts_and_names_what_it_counts() {
        let mix = listing("ff..0").mix();
        assert_eq!((mix.total(), mix.multiply_adds(), mix.share()), (5, 2, 0.4));
        assert_eq!(Mix::default().share(), 0.0);
        assert_eq!(Kind::Load(Space::Global, 128).to_string(), "global load 128");
        assert_eq!(Kind::Store(Space::Shared, 32).to_string(), "shared store 32");
    }
}
