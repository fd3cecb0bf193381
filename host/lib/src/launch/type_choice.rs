//! Kernels of which a constant chooses among element types, such as bf16 and f16. The choice
//! follows from the arguments.

use gpu::registry::Type;
use simt::{ConstantDeclaration, Constants, Declaration};

/// The constants of a launch, with the choices from its arguments. `types`:
/// [`Named::element`](super::Named::element) of each argument.
pub(super) fn with_choices(
    declaration: &Declaration,
    constants: Constants,
    types: impl Fn() -> Vec<Option<Type>>,
) -> Result<Constants, String> {
    let mut choices = declaration.type_choices();
    choices.try_fold(constants, |constants, choice| with(declaration, constants, choice, types()))
}

/// The constants with one choice.
fn with(
    declaration: &Declaration,
    constants: Constants,
    choice: &ConstantDeclaration,
    types: Vec<Option<Type>>,
) -> Result<Constants, String> {
    let said = constants.get(choice.name);
    // The first argument that chooses, and its type.
    let mut chosen: Option<(&str, Type)> = None;
    let arguments = declaration.params.iter().zip(types);
    for (param, of) in arguments.filter(|(param, _)| param.is_chosen_by(choice)) {
        let Some((of, value)) = of.and_then(|of| Some((of, choice.value_for(of)?))) else {
            continue;
        };
        let other = match (said, chosen) {
            (Some(said), _) if said != value => {
                Some((format!("the constant {}", choice.name), said.to_string()))
            }
            (None, Some((other, word))) if word != of => Some((other.to_owned(), word.to_string())),
            _ => None,
        };
        if let Some((other, word)) = other {
            let name = param.name;
            return Err(format!(
                "{name} is of {of}, {other} of {word}: the kernel takes one of both"
            ));
        }
        chosen = chosen.or(Some((param.name, of)));
    }
    Ok(match chosen.filter(|_| said.is_none()) {
        Some((_, of)) => constants.with_word(choice.name, of.name()),
        None => constants,
    })
}
