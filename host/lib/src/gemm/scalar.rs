//! The types of a product, and their kernels.

use std::sync::LazyLock;

use gpu::{
    params::NO_SCALES,
    registry::{Entry, KERNELS, Product, Type},
};
use simt::types::{MultipliesTo, Typed};

use crate::{
    boxes::BoxElement,
    error::{Error, Result},
    names::must_be_a_kernel_of,
};

/// The type of a product's C and bias: f32, f64, i32, [`Bf16`](simt::Bf16) or [`F16`](simt::F16).
pub trait Output: BoxElement + Typed {}

impl<T: BoxElement + Typed> Output for T {}

/// The type of A and B, for C and bias of type `O`:
///
/// | A and B | C and bias | sums |
/// |---|---|---|
/// | f32 | f32 | f32 |
/// | f64 | f64 | f64 |
/// | [`Bf16`](simt::Bf16) | [`Bf16`](simt::Bf16) or f32 | f32 |
/// | [`F16`](simt::F16) | [`F16`](simt::F16) or f32 | f32 |
/// | i8 | i32 | i32 |
/// | i8 | f32, [`Bf16`](simt::Bf16) or [`F16`](simt::F16) | i32, converted to f32 |
/// | [`E4m3`](simt::E4m3), [`E5m2`](simt::E5m2) | f32, [`Bf16`](simt::Bf16) or [`F16`](simt::F16) | f32 |
///
/// Sums of i32 are exact up to k = 131,071, since a product is at most 2^14. Beyond, they wrap
/// around, modulo 2^32, with a C of i32. Another C is refused.
///
/// These are the rows of the table of types. Nobody else implements it:
///
/// ```compile_fail,E0277
/// fn of<T: gpu_gemm::gemm::Scalar<O>, O: gpu_gemm::gemm::Output>() {}
/// of::<f32, gpu_gemm::Bf16>();
/// ```
#[diagnostic::on_unimplemented(
    message = "no product has A and B of `{Self}` and C of `{O}`",
    label = "A and B are of f32, f64, Bf16 or F16, and C of the same type or f32; or i8 and i32, f32, Bf16 or F16; or E4m3 or E5m2 and f32, Bf16 or F16"
)]
pub trait Scalar<O: Output = Self>: Output + MultipliesTo<O, Sums: Output> + Send + Sync {
    /// The types, for people: `f32`, `bf16 with C of f32`.
    fn name() -> String {
        words([Self::TYPE, O::TYPE])
    }

    /// The kernels for these types, in the order of the registry.
    #[doc(hidden)]
    fn kernels() -> impl Iterator<Item = Kernel> {
        kernels_of([Self::TYPE, O::TYPE])
    }

    /// Rounds a scalar to the type of the sums.
    #[doc(hidden)]
    fn rounded(value: f64) -> f64 {
        Self::Sums::FORMAT.nearest(value)
    }
}

impl<T: Output + MultipliesTo<O, Sums: Output> + Send + Sync, O: Output> Scalar<O> for T {}

/// The types of A and B, and of C, for people.
fn words([operands, c]: [Type; 2]) -> String {
    match operands == c {
        true => operands.to_string(),
        false => format!("{operands} with C of {c}"),
    }
}

/// A kernel that computes products.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub entry: &'static Entry,
    pub product: &'static Product,
}

/// The kernels for each pair of types of A and B and of C, in the order of the registry: a thread
/// looks through those of a product, not through all, for each request that it does not remember.
static OF_TYPES: LazyLock<Vec<([Type; 2], Vec<Kernel>)>> = LazyLock::new(|| {
    let mut all = Vec::<([Type; 2], Vec<Kernel>)>::new();
    for entry in KERNELS.iter() {
        let Some(product) = &entry.product else { continue };
        let (types, kernel) =
            ([product.variant.operands, product.variant.c], Kernel { entry, product });
        match all.iter_mut().find(|(others, _)| *others == types) {
            Some((_, kernels)) => kernels.push(kernel),
            None => all.push((types, vec![kernel])),
        }
    }
    all
});

/// The kernels for A and B, and C, of these types.
pub(super) fn kernels_of(types: [Type; 2]) -> impl Iterator<Item = Kernel> {
    let of_types = OF_TYPES.iter().find(|(others, _)| *others == types);
    of_types.into_iter().flat_map(|(_, kernels)| kernels.iter().copied())
}

/// The kernel of an entry, if it is for these types.
pub(super) fn kernel_of<T: Scalar<O>, O: Output>(entry: &'static Entry) -> Result<Kernel> {
    match &entry.product {
        Some(product) if (product.variant.operands, product.variant.c) == (T::TYPE, O::TYPE) => {
            Ok(Kernel { entry, product })
        }
        _ => find::<T, O>(entry.name()),
    }
}

/// The kernel of that name.
pub(super) fn find<T: Scalar<O>, O: Output>(name: &str) -> Result<Kernel> {
    named([T::TYPE, O::TYPE], name)
}

/// The same, by the types.
pub(super) fn named(types: [Type; 2], name: &str) -> Result<Kernel> {
    kernels_of(types).find(|kernel| kernel.entry.name() == name).ok_or_else(|| {
        let names = kernels_of(types).map(|kernel| kernel.entry.name()).collect::<Vec<_>>();
        let limit = format!("{} for {}", must_be_a_kernel_of(name, &names), words(types));
        Error::argument("kernel", name, limit)
    })
}

/// The first of the general kernels, which take every product.
pub(super) fn general<T: Scalar<O>, O: Output>() -> Result<Kernel> {
    general_of([T::TYPE, O::TYPE])
}

pub(super) fn general_of(types: [Type; 2]) -> Result<Kernel> {
    kernels_of(types).find(|kernel| kernel.product.is_general()).ok_or_else(|| {
        let limit = format!("no kernel for {} computes every product", words(types));
        Error::argument("kernel", "auto", limit)
    })
}

/// Whether `C^T = B^T A^T` makes C row-major. `scales`: the kind of scales of A and B. Those of
/// blocks are not alike for A and B, and a row's bits do not depend on the number of rows: so these
/// are swapped only where C asks for it.
pub(super) fn swaps([a, b, c]: [[usize; 2]; 3], (rows, cols): (usize, usize), scales: u32) -> bool {
    let by_columns =
        |[between_rows, between_cols]: [usize; 2]| between_cols != 1 && between_rows == 1;
    match (rows, cols) {
        (0, _) | (_, 0) => false,
        (1, _) | (_, 1) if scales != NO_SCALES => false,
        // A single row or column is both row-major and column-major: the other operand decides.
        (1, _) => by_columns(b),
        (_, 1) => by_columns(a),
        _ => by_columns(c),
    }
}

#[cfg(test)]
mod tests {
    use simt::{Bf16, F16};

    use super::*;

    #[test]
    fn a_kernel_is_known_by_its_name_and_its_type() {
        assert_eq!(find::<f32, f32>("gemm_f32_64x64x16").unwrap().product.tile(), [64, 64]);
        assert!(find::<f32, f32>("tiled16").unwrap().product.is_lesson());
        assert!(find::<f32, f32>("tma_f32_64x64x64_tn").unwrap().product.is_tma_or_ldg());
        let other = "gemm_f32_64x64x16";
        let error = find::<f64, f64>(other).unwrap_err().to_string();
        let (start, end) = error.split_once(", mma_f64_128x128x32, ").unwrap_or_default();
        assert_eq!(
            start,
            format!(
                "kernel = {other}: is for A and B of f32; it must be one of gemm_f64_64x64x16, gemm_f64_4x64x1, gemm_f64_4x4x256_dot, gemm_f64_8x16x64_dot, gemm_f64_8x64x16_dot, mma_f64_64x64x32"
            )
        );
        assert!(end.ends_with(", mma_f64_32x64x32_tt for f64"), "{error}");
        assert_eq!(find::<Bf16, Bf16>("gemm_bf16_64x64x16").unwrap().product.tile(), [64, 64]);
        let error = find::<Bf16, f32>("tiled16").unwrap_err().to_string();
        assert!(
            error.starts_with(
                "kernel = tiled16: is for A and B of f32; it must be one of gemm_bf16_f32_64x64x16"
            ),
            "{error}"
        );
        assert!(error.ends_with(" for bf16 with C of f32"), "{error}");
        assert_eq!(find::<F16, f32>("gemm_f16_f32_64x64x16").unwrap().product.tile(), [64, 64]);
        let error = find::<F16, F16>("gemm_bf16_64x64x16").unwrap_err().to_string();
        assert!(
            error.contains(
                "of bf16; it must be one of gemm_f16_64x64x16, gemm_f16_4x64x1, gemm_f16_4x4x256_dot"
            ),
            "{error}"
        );
    }
}
