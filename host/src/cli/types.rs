//! The types of a product's matrices.

use host::{
    Compute, Error, Type,
    gemm::Output,
    gpu::registry::{Entry, Scheme},
    operands::Drawn,
};

use super::Failure;

/// An element type of the command's products.
pub(super) trait Value: Output + Drawn {}

impl<T: Output + Drawn> Value for T {}

/// The error for types of which no product is computed.
pub(super) fn not_multiplied(operands: Type, c: Type) -> Failure {
    let limit = format!("no product of it has a C of {c}");
    Error::argument("--type", operands, limit).into()
}

/// A type of C that is narrower than its sums.
pub(super) fn rounded(c: &str) -> Option<&str> {
    let of = Type::of_name(c)?;
    of.sums().filter(|sums| sums.bits() > of.format().bits()).map(|_| c)
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
