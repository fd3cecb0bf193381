//! The element type in a header.

use std::{borrow::Cow, slice};

use simt::types::Type;

use super::{
    dtype::types,
    literal::unquote,
    refusal::{Result, refuse, shown},
};

/// The element type, and whether it is big-endian.
///
/// The spellings are NumPy's: a byte order and a code, a code alone, or a name alone. `bf16`:
/// whether two raw bytes are a bfloat16.
pub(super) fn parse(descr: &[u8], bf16: bool) -> Result<(Type, bool)> {
    let limit = |what: &str| {
        format!("{what}: must be floats of 16, 32 or 64 bits, such as '<f2', '<f4' or '<f8'")
    };
    if descr.first() == Some(&b'[') {
        return refuse("descr", shown(descr), limit("a structure"));
    }
    let Some(name) = unquote(descr) else {
        return refuse("descr", shown(descr), limit("no type"));
    };
    let (order, kind) = match name {
        [order @ (b'<' | b'>' | b'=' | b'|'), kind @ ..] => (Some(order), kind),
        kind => (None, kind),
    };
    let kind = without_zeros(kind);
    let known = match (order, &*kind) {
        // Other spellings of the table's.
        (_, b"e") | (None, b"half") => Some(Type::F16),
        (_, b"f") | (None, b"single") => Some(Type::F32),
        (_, b"d") | (None, b"double" | b"float") => Some(Type::F64),
        (_, code) if code.starts_with(b"V") => {
            types().find(|of| bf16 && of.numpy_code().as_bytes() == code)
        }
        (_, code) => types().find(|of| {
            // NumPy knows the name of bfloat16 if `ml_dtypes` is imported.
            of.numpy_code().as_bytes() == code || order.is_none() && of.numpy().as_bytes() == code
        }),
    };
    let dtype = match (known, &*kind) {
        (Some(of), _) => of,
        (_, b"V2") => {
            let limit = "two raw bytes, which is how ml_dtypes writes bfloat16: if they are that, say so by --type \
                         bf16 (in a program by Meaning::bf16)";
            return refuse("descr", shown(descr), limit);
        }
        _ => {
            let what = match &*kind {
                [b'f', ..] | b"g" | b"longdouble" => "floats of another kind",
                b"?" | b"b1" | b"bool" => "truth values",
                [b'i' | b'u', ..] => "integers",
                [b'b' | b'B' | b'h' | b'H' | b'I' | b'l' | b'L' | b'q' | b'Q'] => "integers",
                [b'c', ..] | [b'F' | b'D' | b'G'] => "complex numbers",
                [b'O', ..] => "objects, which Python alone can read",
                [b'S' | b'U' | b'a', ..] => "text",
                [b'M' | b'm', ..] => "times",
                [b'V', ..] => "raw bytes",
                _ => "an unknown type",
            };
            return refuse("descr", shown(descr), limit(what));
        }
    };
    // Without `<` or `>` it is the byte order of the machine that reads, as in NumPy.
    let big_endian = match order {
        Some(b'<') => false,
        Some(b'>') => true,
        _ => cfg!(target_endian = "big"),
    };
    Ok((dtype, big_endian))
}

/// A code without leading zeros in its number, which NumPy ignores.
fn without_zeros(kind: &[u8]) -> Cow<'_, [u8]> {
    let Some((letter, number)) = kind.split_first() else { return kind.into() };
    let zeros = number.iter().take_while(|&&byte| byte == b'0').count();
    match number.get(zeros) {
        Some(b'1'..=b'9') => [slice::from_ref(letter), &number[zeros..]].concat().into(),
        _ => kind.into(),
    }
}
