//! Specialisation constants: values that are set when a kernel is loaded.
//!
//! A kernel declares each constant with its allowed values:
//! `constants(a_mn_major = 0 | 1, half = bf16 | f16)`. The first value is the default. In the PTX a
//! comment marks each use of a constant, and the PTX is valid with the default:
//!
//! ```text
//!   mov.u32 %r7, /* simt.constant a_mn_major */ 0;                      a number, which the kernel reads once
//!   cvt.rn/* simt.constant half */.bf16x2.f32 %r1, %r2, %r3;            a word of an instruction
//!   mov.f32 %f1, /* simt.constant half */ bf16;                         a register of that name
//! ```
//!
//! The host writes other values there before the driver compiles the kernel. The driver's compiler
//! then treats them as literals of the source (like Vulkan's specialisation constants and Metal's
//! function constants). On the CPU they are values of the launch.

use std::fmt;

/// The most constants of a kernel.
pub const MOST_CONSTANTS: usize = 4;

/// The most specialisations of a kernel. For the driver's compiler each is a kernel of its own.
pub const MOST_SPECIALISATIONS: usize = 32;

/// The value of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number, which a kernel reads as a `u32`.
    Number(u32),
    /// A word of an instruction.
    Word(&'static str),
}

impl fmt::Display for Value {
    /// As in the PTX.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Word(word) => f.write_str(word),
        }
    }
}

/// A constant that a kernel declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantDeclaration {
    /// Its name.
    pub name: &'static str,
    /// Its allowed values. The first is the default.
    pub values: &'static [Value],
}

impl fmt::Display for ConstantDeclaration {
    /// As in the PTX comment: `a_mn_major:0|1`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let values = self.values.iter().map(ToString::to_string).collect::<Vec<_>>();
        write!(f, "{}:{}", self.name, values.join("|"))
    }
}

/// The values that a launch sets for a kernel's constants.
///
/// ```
/// use simt::{Constants, LaunchConfig, device::*};
///
/// /// y[i] = x[step i].
/// #[kernel(block = (64), len(x = 4 * n, y = n), constants(step = 1 | 2 | 4))]
/// pub fn every_step(n: u32, x: In<f32>, mut y: Out<f32>) {
///     let i = thread::thread_idx_x() as usize;
///     if i < n as usize {
///         y[i] = x[step as usize * i];
///     }
/// }
///
/// let x = (0..40).map(|i| i as f32).collect::<Vec<_>>();
/// let mut y = vec![0.0; 10];
/// let constants = Constants::NONE.with("step", 4);
/// let config = LaunchConfig { constants, ..LaunchConfig::new([1; 3], [64, 1, 1]) };
/// // SAFETY: the vectors outlive the launch, and a thread touches its own element of `y` alone.
/// unsafe {
///     let params = (10, In::new(x.as_ptr(), x.len()), Out::new(y.as_mut_ptr(), y.len()));
///     simt::cpu::launch(&every_step, &config, params, &Default::default())
/// }?;
/// assert_eq!(y[9], 36.0);
/// # Ok::<(), simt::cpu::Stop>(())
/// ```
///
/// On a GPU each value is a kernel of its own, which the driver compiles at the first launch; the
/// multiplication becomes a shift. So a value should not depend on a user's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Constants {
    /// The name of the kernel with these values, for profilers and messages.
    variant: Option<&'static str>,
    set: [Option<(&'static str, Value)>; MOST_CONSTANTS],
}

impl Constants {
    /// No values: every constant has its default.
    pub const NONE: Constants = Constants { variant: None, set: [None; MOST_CONSTANTS] };

    /// Sets a constant to this number.
    ///
    /// # Panics
    /// If there are more than [`MOST_CONSTANTS`].
    #[must_use]
    pub const fn with(self, name: &'static str, number: u32) -> Self {
        self.with_value(name, Value::Number(number))
    }

    /// Sets a constant to this word.
    ///
    /// # Panics
    /// If there are more than [`MOST_CONSTANTS`].
    #[must_use]
    pub const fn with_word(self, name: &'static str, word: &'static str) -> Self {
        self.with_value(name, Value::Word(word))
    }

    const fn with_value(mut self, name: &'static str, value: Value) -> Self {
        let mut place = 0;
        while self.set[place].is_some() {
            place += 1;
            assert!(place < MOST_CONSTANTS, "a kernel has four constants at most");
        }
        self.set[place] = Some((name, value));
        self
    }

    /// The same values, with this name for the kernel.
    #[must_use]
    pub const fn named(self, variant: &'static str) -> Self {
        Constants { variant: Some(variant), ..self }
    }

    /// The name of the kernel with these values, if it was set.
    pub fn variant(&self) -> Option<&'static str> {
        self.variant
    }

    /// The value of that constant, if it was set.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The constants that were set.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.set.into_iter().flatten()
    }
}

/// Every declared constant with its value: the launch's, or the default.
pub(crate) fn resolve(
    declared: &[ConstantDeclaration],
    said: &Constants,
) -> Result<Constants, String> {
    for (number, (name, value)) in said.iter().enumerate() {
        let Some(constant) = declared.iter().find(|constant| constant.name == name) else {
            let names = declared.iter().map(|constant| constant.name).collect::<Vec<_>>();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("constant {name} = {value}: the kernel has {names}"));
        };
        if !constant.values.contains(&value) {
            let values = constant.values.iter().map(ToString::to_string).collect::<Vec<_>>();
            return Err(format!("constant {name} = {value}: may be {}", values.join(", ")));
        }
        if said.iter().take(number).any(|(other, _)| other == name) {
            return Err(format!("constant {name} = {value}: is given twice"));
        }
    }
    let mut all = Constants { variant: said.variant, ..Constants::NONE };
    for (place, constant) in all.set.iter_mut().zip(declared) {
        *place = Some((constant.name, said.get(constant.name).unwrap_or(constant.values[0])));
    }
    Ok(all)
}

/// All combinations of values.
pub(crate) fn specialisations(declared: &[ConstantDeclaration]) -> Vec<Constants> {
    declared.iter().fold(vec![Constants::NONE], |before, constant| {
        let with = |so_far: Constants| {
            constant.values.iter().map(move |&value| so_far.with_value(constant.name, value))
        };
        before.into_iter().flat_map(with).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &[ConstantDeclaration] = &[
        ConstantDeclaration { name: "steps", values: &[Value::Number(4), Value::Number(8)] },
        ConstantDeclaration { name: "half", values: &[Value::Word("bf16"), Value::Word("f16")] },
    ];

    #[test]
    fn what_is_not_said_is_the_first_value() {
        let of = |said: Constants| resolve(DECLARED, &said).unwrap();
        let texts = |constants: Constants| {
            constants.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(texts(of(Constants::NONE)), ["steps=4", "half=bf16"]);
        let said = Constants::NONE.with_word("half", "f16").named("k_f16");
        assert_eq!(texts(of(said)), ["steps=4", "half=f16"]);
        assert_eq!(of(said).variant(), Some("k_f16"));
        assert_eq!(DECLARED[1].to_string(), "half:bf16|f16");
    }

    #[test]
    fn what_is_not_declared_or_not_allowed_is_named() {
        let refused = |said: Constants| resolve(DECLARED, &said).unwrap_err();
        let none = Constants::NONE;
        assert_eq!(
            refused(none.with("stages", 3)),
            "constant stages = 3: the kernel has steps, half"
        );
        assert_eq!(refused(none.with("steps", 5)), "constant steps = 5: may be 4, 8");
        assert_eq!(refused(none.with("half", 0)), "constant half = 0: may be bf16, f16");
        let twice = none.with("steps", 8).with("steps", 8);
        assert_eq!(refused(twice), "constant steps = 8: is given twice");
        let of_none = resolve(&[], &none.with("steps", 4)).unwrap_err();
        assert_eq!(of_none, "constant steps = 4: the kernel has none");
    }

    #[test]
    fn every_combination_is_a_specialisation() {
        let all = specialisations(DECLARED);
        let pairs = all.iter().map(|one| (one.get("steps"), one.get("half"))).collect::<Vec<_>>();
        let pair = |steps, half| (Some(Value::Number(steps)), Some(Value::Word(half)));
        assert_eq!(pairs, [pair(4, "bf16"), pair(4, "f16"), pair(8, "bf16"), pair(8, "f16")]);
        assert_eq!(specialisations(&[]), [Constants::NONE]);
    }
}
