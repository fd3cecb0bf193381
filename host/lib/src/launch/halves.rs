//! Kernels for either 16-bit type. The constant `half` says which one; it follows from the
//! arguments.

use simt::{Constants, Declaration, Value};

/// The constants of a launch, with `half` from its arguments. `halves`:
/// [`Named::half`](super::Named::half) of each argument.
pub(super) fn with_half(
    declaration: &Declaration,
    constants: Constants,
    halves: impl FnOnce() -> Vec<Option<&'static str>>,
) -> Result<Constants, String> {
    if !declaration.constants.iter().any(|constant| constant.name == "half") {
        return Ok(constants);
    }
    let mut known = match constants.get("half") {
        Some(Value::Word(word)) => Some(("the constant half", word)),
        _ => None,
    };
    let is_said = known.is_some();
    for (param, half) in declaration.params.iter().zip(halves()) {
        match (known, half) {
            (Some((other, word)), Some(half)) if word != half => {
                return Err(format!(
                    "{} is of {half}, {other} of {word}: the kernel takes one of both",
                    param.name
                ));
            }
            (None, Some(half)) => known = Some((param.name, half)),
            _ => {}
        }
    }
    Ok(match known {
        Some((_, word)) if !is_said => constants.with_word("half", word),
        _ => constants,
    })
}
