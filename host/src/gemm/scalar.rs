//! The types of a product, and the kernels that there are for each.

use gpu::{
    kernels::gemm::pad::{pad_rows, pad_rows_u16, turn_rows, turn_rows_u16},
    registry::{
        Contract, Entry, GemmKernel, GeneralProduct, KERNELS, Product, ProductKernel, TensorProduct,
    },
};
use simt::{Bf16, F16, Taken};

use super::tensor::CopyKernel;
use crate::{
    boxes::BoxElement,
    buffer::{BufferView, Pod, Written},
    error::{Error, Result},
    launch::Stream,
    names::must_be_one_of,
    product::{self, Shape},
};

/// The type of a product's C and bias.
pub trait Output: Pod + Taken<As: Pod> {}

impl<O: Pod + Taken<As: Pod>> Output for O {}

/// The type of a product's operands, with the type of its C and bias: f32 or f64, and C of the same; [`Bf16`] or [`F16`],
/// and C of that or of f32.
pub trait Scalar<O: Output = Self>:
    BoxElement + Taken<As: BoxElement> + Send + Sync + private::Sealed<O>
{
    /// Its name: `f32`, `bf16 with C of f32`.
    const NAME: &'static str;

    /// What it is copied as: any elements of its size.
    #[doc(hidden)]
    type Bits: Pod;

    /// The kernel of an entry of the registry, if it is for this type.
    #[doc(hidden)]
    fn kernel(entry: &'static Entry) -> Option<Kernel<Self, O>>;

    /// The kernels for it, in the order of the registry.
    #[doc(hidden)]
    fn kernels() -> impl Iterator<Item = Kernel<Self, O>> {
        KERNELS.iter().filter_map(Self::kernel)
    }

    /// A factor as it is computed with: the nearest number of the type that sums are kept in.
    #[doc(hidden)]
    fn rounded(value: f64) -> f64;

    /// Launches a lesson's kernel on dense row-major matrices.
    #[doc(hidden)]
    fn lesson(
        stream: &Stream,
        entry: &Entry,
        shape: Shape,
        a: BufferView<Self>,
        b: BufferView<Self>,
        c: Written<O>,
    ) -> Result<()>;

    /// The kernels that copy operands for those that take them by tensor copies, as they are and turned over; none where
    /// there are none of these.
    #[doc(hidden)]
    fn copies() -> Option<[&'static CopyKernel<Self::Bits>; 2]>;
}

mod private {
    /// Of both types: else another crate could say that f32 makes a type of its own.
    pub trait Sealed<O> {}
    impl Sealed<f32> for f32 {}
    impl Sealed<f64> for f64 {}
    impl Sealed<super::Bf16> for super::Bf16 {}
    impl Sealed<f32> for super::Bf16 {}
    impl Sealed<super::F16> for super::F16 {}
    impl Sealed<f32> for super::F16 {}
}

/// A kernel that computes products of `T`, with C and the bias of `O`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Kernel<T: Taken, O: Taken = T> {
    pub entry: &'static Entry,
    pub tile: [u32; 2],
    pub block: [u32; 3],
    pub text: Text<T, O>,
}

/// What kind of kernel it is.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Text<T: Taken, O: Taken = T> {
    /// A lesson's: it computes `A B` of dense row-major matrices, and nothing else.
    Lesson,
    /// It takes every product.
    General(GemmKernel<T::As, O::As>),
    /// It takes matrices that the tensor memory accelerator copies.
    Tensor(&'static TensorProduct<T, O>),
}

impl Scalar for f32 {
    const NAME: &'static str = "f32";

    type Bits = f32;

    fn kernel(entry: &'static Entry) -> Option<Kernel<f32>> {
        match &entry.contract {
            &Contract::Product(Product { tile, block, kernel, .. }) => {
                let text = match kernel {
                    ProductKernel::Gemm(general) => Text::General(general),
                    _ => Text::Lesson,
                };
                Some(Kernel { entry, tile, block, text })
            }
            Contract::ProductTf32(product) => Some(Kernel::general(entry, product)),
            Contract::TensorProduct(product) => Some(Kernel::tensor(entry, product)),
            _ => None,
        }
    }

    fn rounded(value: f64) -> f64 {
        (value as f32).into()
    }

    fn lesson(
        stream: &Stream,
        entry: &Entry,
        shape: Shape,
        a: BufferView<f32>,
        b: BufferView<f32>,
        c: Written<f32>,
    ) -> Result<()> {
        product::multiply_written(stream, entry, shape, a, b, c)
    }

    fn copies() -> Option<[&'static CopyKernel<f32>; 2]> {
        Some([&pad_rows, &turn_rows])
    }
}

impl<T: Taken, O: Taken> Kernel<T, O> {
    /// That of a general product of the registry.
    fn general(entry: &'static Entry, product: &GeneralProduct<T, O>) -> Self {
        let GeneralProduct { tile, block, kernel, .. } = *product;
        Kernel { entry, tile, block, text: Text::General(kernel) }
    }

    /// That of a product by tensor copies.
    fn tensor(entry: &'static Entry, product: &'static TensorProduct<T, O>) -> Self {
        let block = entry.declaration().block.unwrap_or([1; 3]);
        Kernel { entry, tile: product.tile, block, text: Text::Tensor(product) }
    }
}

const OF_TWO_BYTES: Option<[&CopyKernel<u16>; 2]> = Some([&pad_rows_u16, &turn_rows_u16]);

/// Types that have no lessons: the contracts of their general products, and of those by tensor copies, if there are; and the
/// type of their sums; and what their operands are copied as, and the kernels that do it.
macro_rules! without_lessons {
    ($($name:literal: $operand:ty => $c:ty, $sum:ty, [$contract:ident $(, $tensor:ident)?], $bits:ty, $copies:expr;)*) => {$(
        impl Scalar<$c> for $operand {
            const NAME: &'static str = $name;

            type Bits = $bits;

            fn kernel(entry: &'static Entry) -> Option<Kernel<$operand, $c>> {
                match &entry.contract {
                    Contract::$contract(product) => Some(Kernel::general(entry, product)),
                    $(Contract::$tensor(product) => Some(Kernel::tensor(entry, product)),)?
                    _ => None,
                }
            }

            fn rounded(value: f64) -> f64 {
                (value as $sum).into()
            }

            fn lesson(
                _: &Stream,
                entry: &Entry,
                _: Shape,
                _: BufferView<$operand>,
                _: BufferView<$operand>,
                _: Written<$c>,
            ) -> Result<()> {
                Err(Error::argument("kernel", entry.name(), "lessons compute in f32"))
            }

            fn copies() -> Option<[&'static CopyKernel<$bits>; 2]> {
                $copies
            }
        }
    )*};
}

without_lessons! {
    "f64": f64 => f64, f64, [ProductF64], f64, None;
    "bf16": Bf16 => Bf16, f32, [ProductBf16, TensorProductBf16], u16, OF_TWO_BYTES;
    "bf16 with C of f32": Bf16 => f32, f32, [ProductBf16F32, TensorProductBf16F32], u16, OF_TWO_BYTES;
    "f16": F16 => F16, f32, [ProductF16, TensorProductF16], u16, OF_TWO_BYTES;
    "f16 with C of f32": F16 => f32, f32, [ProductF16F32, TensorProductF16F32], u16, OF_TWO_BYTES;
}

/// The kernel of that name.
pub(super) fn find<T: Scalar<O>, O: Output>(name: &str) -> Result<Kernel<T, O>> {
    T::kernels().find(|kernel| kernel.entry.name() == name).ok_or_else(|| {
        let names = T::kernels().map(|kernel| kernel.entry.name()).collect::<Vec<_>>();
        let limit = format!("{} for {}", must_be_one_of(name, &names), T::NAME);
        Error::argument("kernel", name, limit)
    })
}

/// The first of the general kernels, which take every product.
pub(super) fn general<T: Scalar<O>, O: Output>() -> Result<Kernel<T, O>> {
    T::kernels().find(|kernel| matches!(kernel.text, Text::General(_))).ok_or_else(|| {
        let limit = format!("there is none for {} that takes every product", T::NAME);
        Error::argument("kernel", "auto", limit)
    })
}

/// A problem whose C has its rows' elements side by side, where that can be had by exchanging rows and columns of
/// everything: `C^T = B^T A^T`.
pub(super) fn exchanges([a, b, c]: [[usize; 2]; 3], (rows, cols): (usize, usize)) -> bool {
    let by_columns =
        |[between_rows, between_cols]: [usize; 2]| between_cols != 1 && between_rows == 1;
    match (rows, cols) {
        (0, _) | (_, 0) => false,
        // A row or a column alone is of either kind, so what it is made of decides.
        (1, _) => by_columns(b),
        (_, 1) => by_columns(a),
        _ => by_columns(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_known_by_its_name_and_its_type() {
        assert_eq!(find::<f32, f32>("gemm_64").unwrap().tile, [64, 64]);
        assert!(matches!(find::<f32, f32>("tiled16").unwrap().text, Text::Lesson));
        assert!(matches!(find::<f32, f32>("gemm_tma_64_tn").unwrap().text, Text::Tensor(_)));
        let error = find::<f64, f64>("gemm_64").unwrap_err().to_string();
        assert_eq!(error, "kernel = gemm_64: must be one of gemm_f64_64 for f64");
        assert_eq!(find::<Bf16, Bf16>("gemm_bf16_64").unwrap().tile, [64, 64]);
        let error = find::<Bf16, f32>("tiled16").unwrap_err().to_string();
        assert!(error.starts_with("kernel = tiled16: must be one of gemm_bf16_f32_64"), "{error}");
        assert!(error.ends_with(" for bf16 with C of f32"), "{error}");
        assert_eq!(find::<F16, f32>("gemm_f16_f32_64").unwrap().tile, [64, 64]);
        let error = find::<F16, F16>("gemm_bf16_64").unwrap_err().to_string();
        assert!(error.contains("must be one of gemm_f16_64, gemm_mma_f16_64x64"), "{error}");
    }
}
