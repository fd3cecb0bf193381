//! The families of kernels that a device runs, for each type of product.

use host::{
    gemm::Target,
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
        let is_for_another =
            needed(entry).is_some_and(|needed| target.cuda && target.capability != needed);
        if is_for_another || entry.declaration().dynamic_shared > Some(target.shared) {
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

/// The only compute capability that runs the kernel. `None`: any.
fn needed(entry: &Entry) -> Option<(u32, u32)> {
    entry.declaration().arch.map(|arch| (arch / 10, arch % 10))
}
