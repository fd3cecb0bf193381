//! Types of elements, and the arithmetic for f32.

use std::fmt;

use clap::{Args, ValueEnum, builder::TypedValueParser};
use host::{Compute, gpu::registry::Scheme};

use super::offering::{Offering, name_of};

/// The types of a product's matrices.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TypeFlags {
    /// Type of A and B. Sums of products of bf16 and f16 are in f32. (f64 is multiplied from files:
    /// `gemm --help`)
    #[arg(long = "type", value_name = "f32|bf16|f16", default_value = "f32")]
    #[arg(value_parser = element_types(), hide_possible_values = true)]
    operands: ElementType,

    /// Type of C: f32, or that of A and B [default: that of A and B]
    #[arg(long = "out-type", value_name = "f32|bf16|f16")]
    #[arg(value_parser = element_types(), hide_possible_values = true)]
    c: Option<ElementType>,

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

/// A type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ElementType {
    /// IEEE's 32 bits
    F32,
    /// Its upper half: 8 bits of exponent, 7 of fraction
    Bf16,
    /// IEEE's 16 bits: 5 of exponent, 10 of fraction
    F16,
}

fn element_types() -> impl TypedValueParser<Value = ElementType> {
    let values = ElementType::value_variants();
    let values = values.iter().filter_map(ValueEnum::to_possible_value).collect();
    let parser = |text: &str| {
        ElementType::from_str(text, false).map_err(|_| {
            let limit = "must be one of f32, bf16, f16";
            match text {
                "f64" | "float64" | "double" => format!(
                    "{limit}; NumPy's files of f64 are multiplied by `gemm --a A.npy --b B.npy --out C.npy`"
                ),
                _ => limit.to_owned(),
            }
        })
    };
    Offering { parser, values }
}

/// The types of A and B, and of C, that can be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Types {
    F32,
    Bf16,
    /// With C of f32.
    Bf16F32,
    F16,
    /// With C of f32.
    F16F32,
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

    /// The name of the arithmetic: `fp32`.
    pub(crate) fn compute_name(self) -> String {
        name_of(&self.compute)
    }

    pub(crate) fn types(self) -> host::Result<Types> {
        use ElementType::{Bf16, F16, F32};
        if self.compute != ComputeMode::Fp32 && self.operands != F32 {
            let limit = match self.compute {
                ComputeMode::Tf32 => "must be fp32: what is no f32 is not rounded to tf32",
                _ => "must be fp32: only f32 is split into slices",
            };
            return Err(host::Error::argument("--compute", self.compute_name(), limit));
        }
        match (self.operands, self.c.unwrap_or(self.operands)) {
            (F32, F32) => Ok(Types::F32),
            (Bf16, Bf16) => Ok(Types::Bf16),
            (Bf16, F32) => Ok(Types::Bf16F32),
            (F16, F16) => Ok(Types::F16),
            (F16, F32) => Ok(Types::F16F32),
            (F32, c) => {
                Err(host::Error::argument("--out-type", name_of(&c), "must be f32 with --type f32"))
            }
            (operands, c) => {
                let limit = format!("must be {0} or f32 with --type {0}", name_of(&operands));
                Err(host::Error::argument("--out-type", name_of(&c), limit))
            }
        }
    }
}

/// As flags, except the defaults.
impl fmt::Display for TypeFlags {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.operands != ElementType::F32 {
            write!(f, " --type {}", name_of(&self.operands))?;
        }
        if self.compute != ComputeMode::Fp32 {
            write!(f, " --compute {}", name_of(&self.compute))?;
        }
        self.c.map_or(Ok(()), |c| write!(f, " --out-type {}", name_of(&c)))
    }
}
