//! The types of a product's matrices, and their values as f32. f32 holds all values of bf16 and
//! f16, so operands are drawn and results compared in it.

use std::borrow::Cow;

use host::{
    Bf16, Compute, Error, F16, Type,
    gemm::Output,
    gpu::registry::{Entry, Scheme},
};

use super::Failure;

/// An element type of the command's products.
pub(super) trait Value: Output + Send + Sync {
    /// Rounds each value to this type.
    fn round(values: &mut [f32]);

    /// The values as elements of this type.
    fn narrowed(values: &[f32]) -> Cow<'_, [Self]>;

    /// Elements as f32.
    fn widened(values: Vec<Self>) -> Vec<f32>;
}

impl Value for f32 {
    fn round(_: &mut [f32]) {}

    fn narrowed(values: &[f32]) -> Cow<'_, [f32]> {
        Cow::Borrowed(values)
    }

    fn widened(values: Vec<f32>) -> Vec<f32> {
        values
    }
}

macro_rules! halves {
    ($($half:ident)*) => {$(
        impl Value for $half {
            fn round(values: &mut [f32]) {
                values.iter_mut().for_each(|value| *value = $half::from_f32(*value).to_f32());
            }

            fn narrowed(values: &[f32]) -> Cow<'_, [$half]> {
                values.iter().map(|&value| $half::from_f32(value)).collect()
            }

            fn widened(values: Vec<$half>) -> Vec<f32> {
                values.into_iter().map($half::to_f32).collect()
            }
        }
    )*};
}

halves! { Bf16 F16 }

impl Value for f64 {
    fn round(_: &mut [f32]) {}

    fn narrowed(values: &[f32]) -> Cow<'_, [f64]> {
        values.iter().map(|&value| value.into()).collect()
    }

    fn widened(values: Vec<f64>) -> Vec<f32> {
        values.into_iter().map(|value| value as f32).collect()
    }
}

/// The error for types of which no product is computed.
pub(super) fn not_multiplied(operands: Type, c: Type) -> Failure {
    let limit = format!("no product of it has a C of {c}");
    Error::argument("--type", operands, limit).into()
}

/// A type of C that is narrower than f32, the type of the sums.
pub(super) fn rounded(c: &str) -> Option<&str> {
    Some(c).filter(|c| ["bf16", "f16"].contains(c))
}

/// The types of A and B, and of C, for people: `bf16, C f32`.
pub(super) fn words(operands: &str, c: &str) -> String {
    if operands == c { c.to_owned() } else { format!("{operands}, C {c}") }
}

/// A line for a kernel that does not round f32 although it may. On the CPU device that is every
/// kernel that was not named.
pub(super) fn as_it_is(compute: Compute, entry: &Entry) -> Option<&'static str> {
    match compute {
        _ if entry.scheme() != Scheme::Native => None,
        Compute::Native => None,
        Compute::Tf32 => Some("compute   f32 as it is: this kernel rounds nothing to tf32"),
        _ => Some("compute   f32 as it is: this kernel cuts nothing into slices"),
    }
}
