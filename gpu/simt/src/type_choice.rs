//! Constants that choose the type of parameters' elements, as `half` does of [`Half`] and `fp8` of
//! [`Fp8`].

use std::any::TypeId;

use crate::{
    Constants, Fp8, Half,
    constants::{ConstantDeclaration, Value},
    declaration::{Declaration, ParamDeclaration},
    types::Type,
};

impl Half {
    /// The types that it chooses among. Their names are its values.
    pub const TYPES: [Type; 2] = [Type::BF16, Type::F16];

    /// Whether it chooses among that type and others.
    pub(crate) fn chooses(given: TypeId) -> bool {
        Type::of_id(given).is_some_and(|of| Half::TYPES.contains(&of))
    }
}

impl Fp8 {
    /// The types that it chooses among. Their names are its values.
    pub const TYPES: [Type; 2] = [Type::E4M3, Type::E5M2];

    /// Whether it chooses among that type and others.
    pub(crate) fn chooses(given: TypeId) -> bool {
        Type::of_id(given).is_some_and(|of| Fp8::TYPES.contains(&of))
    }
}

impl ConstantDeclaration {
    /// Whether it chooses among element types: its values are names in their table.
    pub fn chooses_a_type(&self) -> bool {
        let is_type =
            |value: &Value| matches!(value, Value::Word(word) if Type::of_name(word).is_some());
        self.values.iter().all(is_type)
    }

    /// The value for that type, if the constant has it.
    pub fn value_for(&self, of: Type) -> Option<Value> {
        let value = Value::Word(of.name());
        self.values.contains(&value).then_some(value)
    }
}

impl Constants {
    /// Whether the constant `half` is `f16`; `None` if it was not set.
    pub(crate) fn is_f16(&self) -> Option<bool> {
        self.is_of(Half::CONSTANT, Type::F16)
    }

    /// Whether the constant `fp8` is `e5m2`; `None` if it was not set.
    pub(crate) fn is_e5m2(&self) -> Option<bool> {
        self.is_of(Fp8::CONSTANT, Type::E5M2)
    }

    fn is_of(&self, constant: &str, of: Type) -> Option<bool> {
        match self.get(constant) {
            Some(Value::Word(word)) => Some(word == of.name()),
            _ => None,
        }
    }
}

impl ParamDeclaration {
    /// Whether the constant chooses the type of its elements, which has the constant's name: `half`
    /// of `in.half`, and of `tensormaps.halfx8`. A constant of another name may have words that are
    /// names of types, for a meaning of its own.
    pub fn is_chosen_by(&self, constant: &ConstantDeclaration) -> bool {
        let of = || self.ty.split_once('.')?.1.strip_prefix(constant.name);
        // Each launch asks this of all constants, so the names come first.
        [Half::CONSTANT, Fp8::CONSTANT].contains(&constant.name)
            && of().is_some_and(|rest| rest.is_empty() || rest.starts_with('x'))
            && constant.chooses_a_type()
    }
}

impl Declaration {
    /// The constants that choose the types of parameters' elements.
    pub fn type_choices(&self) -> impl Iterator<Item = &'static ConstantDeclaration> {
        let is_choice = |constant: &&ConstantDeclaration| {
            self.params.iter().any(|param| param.is_chosen_by(constant))
        };
        self.constants.iter().filter(is_choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_chooses_the_type_with_its_name() {
        let values = &[Value::Word("bf16"), Value::Word("f16")];
        let is_chosen = |ty: &'static str, name| {
            let param = ParamDeclaration { name: "x", ty };
            param.is_chosen_by(&ConstantDeclaration { name, values })
        };
        let types = ["in.half", "tensormaps.halfx8", "in.f16", "half", "in.halfway"];
        assert_eq!(types.map(|ty| is_chosen(ty, "half")), [true, true, false, false, false]);
        // Words of types, for another meaning.
        assert_eq!(types.map(|ty| is_chosen(ty, "mode")), [false; 5]);
        assert!(!is_chosen("in.f16", "f16x"));
        let half = ConstantDeclaration { name: "half", values };
        let numbers = ConstantDeclaration { name: "steps", values: &[Value::Number(4)] };
        assert!(half.chooses_a_type() && !numbers.chooses_a_type());
        let values = [Type::F16, Type::F32].map(|of| half.value_for(of));
        assert_eq!(values, [Some(Value::Word("f16")), None]);
    }
}
