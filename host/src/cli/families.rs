//! The families of kernels that a device runs, for each type of product.

use host::{
    gemm::{Target, runs_on},
    gpu::registry::{Entry, Family, KERNELS, Scheme, Variant},
};

use super::{args::flags, types::words};

/// The kernels of a family for products of the same types.
pub(super) struct Runs {
    pub(super) family: Family,
    /// The types for people: `bf16, C f32`, `f32 as tf32`.
    pub(super) types: String,
    /// The flags that ask for such a product.
    pub(super) flags: String,
    pub(super) kernels: Vec<&'static Entry>,
}

/// The families that a device runs, without lessons, in the order of the registry.
pub(super) fn on(target: &Target) -> Vec<Runs> {
    let mut all = Vec::<Runs>::new();
    for entry in KERNELS.iter() {
        let Some(product) = entry.product.as_ref().filter(|product| !product.is_lesson()) else {
            continue;
        };
        if runs_on(entry, target).is_err() {
            continue;
        }
        let (Variant { family, operands, c, scheme, .. }, flags) =
            (product.variant, flags(product));
        let is_it = |of: &&mut Runs| of.family == family && of.flags == flags;
        if let Some(of) = all.iter_mut().find(is_it) {
            of.kernels.push(entry);
            continue;
        }
        let types = words(operands.name(), c.name());
        let types = match scheme {
            Scheme::Native => types,
            scheme => format!("{types} as {scheme}"),
        };
        all.push(Runs { family, types, flags, kernels: vec![entry] });
    }
    all
}
