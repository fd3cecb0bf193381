//! Types of elements, and the arithmetic for f32.

use std::fmt;

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, TypedValueParser},
};
use host::{Compute, Type, gpu::registry::Scheme, verify::NumberFormat};

use super::offering::{Offering, name_of};

/// The types of a product's matrices.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TypeFlags {
    /// Type of A and B. Sums of products of bf16, f16, e4m3 and e5m2 are in f32, of i8 in i32
    #[arg(long = "type", value_name = "f32|f64|bf16|f16|e4m3|e5m2|i8", default_value_t = Type::F32)]
    #[arg(value_parser = element_types(), hide_possible_values = true)]
    operands: Type,

    /// Type of C: that of A and B, or f32 for bf16 and f16; f32, bf16 or f16 for e4m3 and e5m2
    /// [default: that of A and B; i32 for i8, f32 for e4m3 and e5m2]
    #[arg(long = "out-type", value_name = "f32|f64|bf16|f16|i32")]
    #[arg(value_parser = types_of_c(), hide_possible_values = true)]
    c: Option<Type>,

    /// How f32 is multiplied. With fp32 factors are not rounded. With tf32 tensor cores may round
    /// factors to 10 bits of fraction. With fp32-bf16x6 and fp32-f16x3 tensor cores multiply slices
    /// of each factor: as accurate as fp32, and faster; fp32-f16x3 is the faster of the two if
    /// numbers have similar sizes. The CPU device does not round or split f32, unless a kernel that
    /// does is named
    #[arg(long, value_enum, default_value_t = ComputeMode::Fp32, hide_possible_values = true)]
    #[arg(value_name = "fp32|fp32-bf16x6|fp32-f16x3|tf32")]
    compute: ComputeMode,
}

/// How f32 is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ComputeMode {
    /// Not rounded
    Fp32,
    /// Split into slices of bf16, if there are tensor cores for it
    #[value(name = "fp32-bf16x6")]
    Fp32Bf16x6,
    /// Split into scaled slices of f16, if there are tensor cores for it
    #[value(name = "fp32-f16x3")]
    Fp32F16x3,
    /// Rounded to tf32, if there are tensor cores for it
    Tf32,
}

impl From<ComputeMode> for Compute {
    fn from(mode: ComputeMode) -> Compute {
        match mode {
            ComputeMode::Fp32 => Compute::Native,
            ComputeMode::Fp32Bf16x6 => Compute::Fp32Bf16x6,
            ComputeMode::Fp32F16x3 => Compute::Fp32F16x3,
            ComputeMode::Tf32 => Compute::Tf32,
        }
    }
}

/// The types that the flags take, f32 first.
fn element_types() -> impl TypedValueParser<Value = Type> {
    one_of(Type::multiplied().collect())
}

/// The types that some C has.
fn types_of_c() -> impl TypedValueParser<Value = Type> {
    let is_of_c = |c: &Type| Type::multiplied().any(|of| of.multiplies_to(*c));
    let mut all = Type::ALL.iter().copied().filter(is_of_c).collect::<Vec<_>>();
    all.sort_by_key(|c| !c.format().is_float());
    one_of(all)
}

/// Takes the types among `all`, by their names.
pub(super) fn one_of(all: Vec<Type>) -> impl TypedValueParser<Value = Type> {
    let values = all.iter().map(|of| PossibleValue::new(of.name())).collect();
    let parser = move |text: &str| {
        all.iter().copied().find(|of| of.name() == text).ok_or_else(|| {
            let names = all.iter().map(|of| of.name()).collect::<Vec<_>>().join(", ");
            format!("must be one of {names}")
        })
    };
    Offering { parser, values }
}

impl TypeFlags {
    /// The arithmetic.
    pub(crate) fn compute(self) -> Compute {
        self.compute.into()
    }

    /// The scheme of the kernels that are made for it.
    pub(crate) fn scheme(self) -> Scheme {
        match self.compute {
            ComputeMode::Fp32 => Scheme::Native,
            ComputeMode::Fp32Bf16x6 => Scheme::Bf16x6,
            ComputeMode::Fp32F16x3 => Scheme::F16x3,
            ComputeMode::Tf32 => Scheme::Tf32,
        }
    }

    /// The name of the arithmetic: `fp32`, or `fp64` or `int32` where sums are of that type.
    pub(crate) fn compute_name(self) -> String {
        match self.operands.sums() {
            Some(NumberFormat::F64) => "fp64".to_owned(),
            Some(NumberFormat::Signed { bits }) => format!("int{bits}"),
            _ => name_of(&self.compute),
        }
    }

    /// The types of A and B, and of C.
    ///
    /// # Errors
    /// [`Error::Argument`](host::Error::Argument) for types that no kernel combines, and an
    /// arithmetic that is not for them.
    pub(crate) fn types(self) -> host::Result<(Type, Type)> {
        let TypeFlags { operands, c, .. } = self;
        if self.compute != ComputeMode::Fp32 && operands != Type::F32 {
            let limit = match self.compute {
                ComputeMode::Tf32 => "must be fp32: tf32 is for A and B of f32",
                _ => "must be fp32: only f32 is split into slices",
            };
            return Err(host::Error::argument("--compute", name_of(&self.compute), limit));
        }
        let c = c.unwrap_or(operands.usual_c());
        if operands.multiplies_to(c) {
            return Ok((operands, c));
        }
        let of_c = Type::ALL.iter().copied().filter(|c| operands.multiplies_to(*c));
        let mut of_c = of_c.collect::<Vec<_>>();
        of_c.sort_by_key(|c| *c != operands);
        let of_c = of_c.into_iter().map(Type::name).collect::<Vec<_>>().join(" or ");
        let limit = format!("must be {of_c} with --type {operands}");
        Err(host::Error::argument("--out-type", c, limit))
    }
}

/// As flags, except the defaults.
impl fmt::Display for TypeFlags {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.operands != Type::F32 {
            write!(f, " --type {}", self.operands)?;
        }
        if self.compute != ComputeMode::Fp32 {
            write!(f, " --compute {}", name_of(&self.compute))?;
        }
        self.c.map_or(Ok(()), |c| write!(f, " --out-type {c}"))
    }
}
