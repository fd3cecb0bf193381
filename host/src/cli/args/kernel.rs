//! A kernel as the command line names it.

use std::{fmt, str::FromStr};

use clap::builder::{PossibleValue, TypedValueParser};
use host::{
    Compute, Error, Gemm as GeneralProduct, Shape,
    gemm::{Output, Request, Scalar, Target},
    gpu::registry::{self, Entry, KERNELS, Product, Scheme, Variant},
    names::{must_be_one_of, what_it_is},
    product::counted,
};

use super::offering::Offering;

pub(super) fn kernels() -> impl TypedValueParser<Value = KernelChoice> {
    auto_or_named(KernelChoice::from_str)
}

/// Offers `auto`, and the kernels of all products.
pub(super) fn auto_or_named<P: TypedValueParser>(
    parser: P,
) -> impl TypedValueParser<Value = P::Value> {
    let named = all_products().map(|entry| PossibleValue::new(entry.name()).help(entry.summary));
    let auto = PossibleValue::new("auto").help("the one that is predicted to be the fastest");
    Offering { parser, values: std::iter::once(auto).chain(named).collect() }
}

/// A kernel as the command line names it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KernelChoice {
    Auto,
    Named(&'static Entry),
}

impl FromStr for KernelChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let name = name.trim(); // as in `basic, tiled16`
        match name {
            "auto" => Ok(KernelChoice::Auto),
            _ => find(name, "auto").map(KernelChoice::Named),
        }
    }
}

/// The kernels that compute a product of any type.
pub(super) fn all_products() -> impl Iterator<Item = &'static Entry> {
    KERNELS.iter().filter(|entry| entry.product.is_some())
}

/// Whether every access of the kernel can be counted and traced.
pub(crate) fn is_counted(entry: &'static Entry) -> bool {
    counted(entry).is_ok()
}

/// The kernel of that name for products of any type. Whether it has the types asked for is checked
/// later. The error also names `or_else`, which the caller accepts.
pub(super) fn find(name: &str, or_else: &str) -> Result<&'static Entry, String> {
    of_name(all_products().collect(), name, or_else)
}

/// The kernel of that name among `entries`.
pub(super) fn of_name(
    entries: Vec<&'static Entry>,
    name: &str,
    or_else: &str,
) -> Result<&'static Entry, String> {
    entries.iter().copied().find(|entry| entry.name() == name).ok_or_else(|| {
        let Some(what) = what_it_is(name) else {
            let names = entries.iter().map(|entry| entry.name()).collect::<Vec<_>>();
            let limit = must_be_one_of(name, &names);
            return format!("{limit} (`kernels` lists them), or {or_else}");
        };
        let product = registry::find(name).and_then(|entry| entry.product.as_ref());
        let (runs, another) = match product.map(flags) {
            None => (String::new(), "a product's"),
            Some(flags) => (format!(": `--m .. --n .. --k .. {flags}` asks for it"), "another"),
        };
        format!("{what}{runs}. It must be {another} kernel (`kernels` lists them), or {or_else}")
    })
}

/// The flags of a product that its kernel can compute.
pub(crate) fn flags(product: &Product) -> String {
    let Variant { operands, c, scheme, .. } = product.variant;
    match scheme {
        Scheme::Native if operands.usual_c() == c => format!("--type {operands}"),
        Scheme::Native => format!("--type {operands} --out-type {c}"),
        Scheme::Tf32 => "--compute tf32".to_owned(),
        Scheme::Bf16x6 => "--compute fp32-bf16x6".to_owned(),
        Scheme::F16x3 => "--compute fp32-f16x3".to_owned(),
    }
}

/// The product by a kernel.
///
/// # Errors
/// [`Error::Argument`] for a kernel of other types or of another arithmetic. It names the flags
/// that ask for it.
pub(crate) fn product_by<T: Scalar<O>, O: Output>(
    entry: &'static Entry,
    compute: Compute,
) -> host::Result<GeneralProduct<'static, T, O>> {
    let other = |error: Error| {
        let (Some(product), Some(what)) = (&entry.product, what_it_is(entry.name())) else {
            return error;
        };
        let asks = flags(product);
        let limit = format!(
            "{what}: `{asks}` asks for it. For {} there are others: see `kernels`",
            T::name()
        );
        Error::argument("--kernel", entry.name(), limit)
    };
    let gemm = GeneralProduct::of_types().compute(compute).entry(entry).map_err(other)?;
    let (what, its_own) = match entry.scheme() {
        Scheme::Native => return Ok(gemm),
        Scheme::Tf32 => ("rounds factors to tf32", Compute::Tf32),
        Scheme::Bf16x6 => ("cuts factors into slices of bf16", Compute::Fp32Bf16x6),
        Scheme::F16x3 => ("cuts factors into scaled slices of f16", Compute::Fp32F16x3),
    };
    match entry.product.as_ref().map(flags).filter(|_| compute != its_own) {
        None => Ok(gemm),
        Some(flags) => {
            let limit = format!("{what}, which `{flags}` asks for");
            Err(Error::argument("--kernel", entry.name(), limit))
        }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            KernelChoice::Auto => f.write_str("auto"),
            KernelChoice::Named(entry) => f.write_str(entry.name()),
        }
    }
}

impl KernelChoice {
    /// The product of these types, in this arithmetic, by this kernel.
    ///
    /// # Errors
    /// As [`product_by`].
    pub(crate) fn product<T: Scalar<O>, O: Output>(
        self,
        compute: Compute,
    ) -> host::Result<GeneralProduct<'static, T, O>> {
        match self {
            KernelChoice::Auto => Ok(GeneralProduct::<T, O>::of_types().compute(compute)),
            KernelChoice::Named(entry) => product_by(entry, compute),
        }
    }

    /// The kernel for a dense product of f32 on an H200.
    ///
    /// # Errors
    /// [`Error::Argument`] for a kernel that cannot compute the product.
    pub(super) fn on_h200(self, shape: Shape) -> host::Result<&'static Entry> {
        let gemm = self.product::<f32, f32>(Compute::Native)?;
        Ok(gemm.choose(&Request::dense(shape), &Target::H200)?.entry)
    }
}
