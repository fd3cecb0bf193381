//! Makes a product that fails smaller and plainer, as long as it fails.

use gpu_gemm::Activation;
use tests::gemm::Place;

use crate::{
    memory::coincide,
    product::{Kernel, Product, Way},
};

/// Tries at most.
const MOST: usize = 300;

/// The plainest product found that fails, and what is wrong with it.
pub fn shrunk(
    mut product: Product,
    mut wrong: String,
    mut check: impl FnMut(&Product) -> Result<(), String>,
) -> (Product, String) {
    let mut tries = 0;
    // Another mistake is another product.
    let kind = |wrong: &str| {
        let end = wrong.find(|c: char| c == '=' || c.is_ascii_digit()).unwrap_or(wrong.len());
        wrong[..end].to_owned()
    };
    loop {
        let found = plainer(&product).into_iter().find_map(|plainer| {
            tries += 1;
            let error = if tries <= MOST { check(&plainer).err() } else { None };
            let error = error.filter(|error| kind(error) == kind(&wrong));
            error.map(|error| (plainer, error))
        });
        match found {
            Some(found) => (product, wrong) = found,
            None => return (product, wrong),
        }
    }
}

/// Each plainer in one respect, those that save most first.
fn plainer(product: &Product) -> Vec<Product> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Product)| {
        let mut other = *product;
        change(&mut other);
        // The matrices of an array are borrowed, each by itself.
        let is_shared = other.way == Way::Array && coincide(&other.places[2], other.sizes()[2]);
        if !is_shared && format!("{other:?}") != format!("{product:?}") {
            all.push(other);
        }
    };
    for of in [2, 4, 8].into_iter().rev() {
        for side in 0..3 {
            add(&|of_it| of_it.size[side] = of_it.size[side] * (of - 1) / of);
            add(&|of_it| of_it.size[side] /= of);
        }
    }
    for side in 0..3 {
        add(&|of_it| of_it.size[side] = of_it.size[side].saturating_sub(1));
    }
    add(&|of_it| {
        of_it.places =
            of_it.places.map(|place| Place { count: place.count.map(|n| n / 2), ..place });
    });
    add(&|of_it| {
        of_it.places = of_it.places.map(|place| Place { count: None, ..place });
        of_it.way = Way::Run;
    });
    add(&|of_it| of_it.prepares = false);
    add(&|of_it| of_it.again = false);
    add(&|of_it| of_it.wrong = None);
    add(&|of_it| of_it.bias = None);
    add(&|of_it| of_it.activation = Activation::Identity);
    add(&|of_it| of_it.beta = 0.0);
    add(&|of_it| of_it.alpha = 1.0);
    add(&|of_it| of_it.largest = 1);
    add(&|of_it| of_it.shared = false);
    add(&|of_it| of_it.prepared = [None; 2]);
    add(&|of_it| of_it.prepared[0] = None);
    add(&|of_it| of_it.prepared[1] = None);
    add(&|of_it| of_it.inverted = [[false; 2]; 3]);
    add(&|of_it| of_it.split_k = None);
    add(&|of_it| of_it.partials = None);
    add(&|of_it| of_it.workspace_limit = None);
    add(&|of_it| of_it.kernel = Kernel::Chosen);
    for i in 0..3 {
        add(&|of_it| of_it.places[i].offset = 0);
        add(&|of_it| of_it.places[i].transposed = false);
        add(&|of_it| of_it.places[i].strides = [of_it.sizes()[i].1, 1]);
    }
    all
}
