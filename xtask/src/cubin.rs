//! The machine code of a kernel in the assembler's output: an ELF file. Only the names
//! and places of sections are read.
//!
//! ELF: *System V Application Binary Interface*, "Object Files". NVIDIA's disassembler shows that
//! an instruction has sixteen bytes from compute capability 7.0 on, with the operation in the
//! lowest twelve bits.

use anyhow::{Context, Result, ensure};

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;

/// `NOP`, with which the assembler fills the last cache line.
const NOP: u16 = 0x918;

/// `BRA`: before the `NOP`s there is a branch to itself, for an instruction fetch that runs ahead.
const BRA: u16 = 0x947;

/// The number of a kernel's instructions, without the filling after the last, and their bytes.
pub(crate) fn machine_code<'a>(file: &'a [u8], kernel: &str) -> Result<(u64, &'a [u8])> {
    let code = section(file, &format!(".text.{kernel}"))
        .with_context(|| format!("the machine code of `{kernel}` cannot be read"))?;
    ensure!(code.len() % INSTRUCTION == 0, "`{kernel}` has {} bytes of machine code", code.len());
    let operation = |index: usize| {
        let first = index * INSTRUCTION;
        u16::from_le_bytes([code[first], code[first + 1]]) & 0xfff
    };
    let mut count = code.len() / INSTRUCTION;
    while count > 0 && operation(count - 1) == NOP {
        count -= 1;
    }
    if count > 0 && operation(count - 1) == BRA {
        count -= 1;
    }
    Ok((count as u64, &code[..count * INSTRUCTION]))
}

/// The content of a section in a 64-bit little-endian ELF file.
fn section<'a>(file: &'a [u8], name: &str) -> Result<&'a [u8]> {
    ensure!(file.starts_with(b"\x7fELF\x02\x01"), "it is no 64-bit ELF file");
    let (table, size) = (number(file, 0x28, 8)?, number(file, 0x3a, 2)?);
    let (count, names) = (number(file, 0x3c, 2)?, number(file, 0x3e, 2)?);
    // A section's name, as an offset into the table of names, and its place in the file.
    let header = |index: usize| -> Result<(usize, &'a [u8])> {
        let at = table + index * size;
        let (start, length) = (number(file, at + 0x18, 8)?, number(file, at + 0x20, 8)?);
        // Some sections have no content in the file.
        let content = start.checked_add(length).and_then(|end| file.get(start..end));
        Ok((number(file, at, 4)?, content.unwrap_or_default()))
    };
    let (_, names) = header(names)?;
    for index in 0..count {
        let (at, content) = header(index)?;
        let rest = names.get(at..).unwrap_or_default();
        if rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(&[0])) {
            return Ok(content);
        }
    }
    anyhow::bail!("there is no section `{name}`")
}

/// A number of `bytes` bytes.
fn number(file: &[u8], at: usize, bytes: usize) -> Result<usize> {
    let found = at.checked_add(bytes).and_then(|end| file.get(at..end)).context("it is cut off")?;
    let value = found.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).context("it is too large")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A file with that machine code.
    pub(crate) fn file(kernel: &str, code: &[u8]) -> Vec<u8> {
        let names = format!("\0.text.{kernel}2\0.text.{kernel}\0");
        let (names_at, code_at) = (64, 64 + names.len());
        let table = code_at + code.len();
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(0x28, 0);
        file.extend((table as u64).to_le_bytes());
        file.resize(0x3a, 0);
        for word in [64_u16, 4, 3] {
            file.extend(word.to_le_bytes());
        }
        file.extend(names.bytes());
        file.extend(code);
        let other = 1 + ".text.".len() + kernel.len() + 2;
        // An empty section, one with a longer name and no content, the code, the names.
        for (name, at, length) in [
            (0, 0, 0),
            (1, usize::MAX / 2, 160),
            (other, code_at, code.len()),
            (0, names_at, names.len()),
        ] {
            let start = file.len();
            file.extend((name as u32).to_le_bytes());
            file.resize(start + 0x18, 0);
            file.extend((at as u64).to_le_bytes());
            file.extend((length as u64).to_le_bytes());
            file.resize(start + 64, 0);
        }
        file
    }

    /// Instructions with these operations.
    pub(crate) fn code(operations: &[u16]) -> Vec<u8> {
        let one = |operation: &u16| {
            let mut bytes = vec![0; INSTRUCTION];
            bytes[..2].copy_from_slice(&(0x7000 | operation).to_le_bytes());
            bytes
        };
        operations.iter().flat_map(one).collect()
    }

    #[test]
    fn what_fills_the_end_does_not_count() {
        let of = |operations: &[u16]| {
            let file = file("k", &code(operations));
            let (count, bytes) = machine_code(&file, "k").unwrap();
            assert_eq!(bytes, &code(operations)[..count as usize * INSTRUCTION]);
            count
        };
        assert_eq!(of(&[0x223, NOP, 0x94d, BRA, NOP, NOP]), 3);
        // A loop's branch is before the branch to itself.
        assert_eq!(of(&[0x223, BRA, BRA, NOP]), 2);
        assert_eq!(of(&[0x223, 0x94d]), 2);
        assert_eq!(of(&[]), 0);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let error = |file: &[u8]| format!("{:#}", machine_code(file, "k").unwrap_err());
        let good = file("k", &code(&[NOP]));
        assert!(error(b"").contains("`k` cannot be read: it is no 64-bit ELF file"));
        assert!(error(&good[..70]).contains("it is cut off"));
        assert!(error(&file("l", &[])).contains("there is no section `.text.k`"));
        assert!(error(&file("k", &[0; 8])).contains("`k` has 8 bytes"));
    }
}
