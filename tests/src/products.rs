//! The kernels under test.

use gpu::registry::{Contract, Entry, KERNELS, Product};

/// Every product of the registry, with what its launch needs.
pub fn products() -> Vec<(&'static Entry, &'static Product)> {
    let product = |entry: &'static Entry| match &entry.contract {
        Contract::Product(product) => Some((entry, product)),
        _ => None,
    };
    let products = KERNELS.iter().filter_map(product).collect::<Vec<_>>();
    assert!(!products.is_empty(), "a registry without products: nothing would be tested");
    products
}
