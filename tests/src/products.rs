//! The kernels under test.

use gpu::registry::{self, Entry, Product};

/// Every product of the registry, with the data for its launch.
pub fn products() -> Vec<(&'static Entry, &'static Product)> {
    let products = registry::products().collect::<Vec<_>>();
    assert!(!products.is_empty(), "a registry without products: nothing would be tested");
    products
}
