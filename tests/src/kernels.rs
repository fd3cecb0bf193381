//! Kernels of the registry, launched by themselves.

use gpu::registry::{self, Entry, KERNELS, Product, Variant};
use simt::{
    Bound, Constants, Element, Elements, LaunchConfig, Named,
    check::{self, Report},
    cpu,
};

/// A kernel, and the product that it computes.
pub type Kernel = (&'static Entry, &'static Product);

/// The products' kernels for which `are` is true, in the order of the registry.
pub fn kernels(are: impl Fn(&Product) -> bool) -> Vec<Kernel> {
    let products = KERNELS.iter().filter_map(|entry| Some((entry, entry.product.as_ref()?)));
    products.filter(|(_, product)| are(product)).collect()
}

/// The variant of the product's kernel with that name.
///
/// # Panics
/// If there is none.
pub fn variant(name: &str) -> Variant {
    let entry = registry::find(name).unwrap_or_else(|| panic!("{name}: there is no such kernel"));
    entry.product.as_ref().unwrap_or_else(|| panic!("{name}: no product's kernel")).variant
}

/// Elements that a kernel reads.
///
/// # Safety
/// They outlive the launch, and nobody writes them meanwhile.
pub unsafe fn read<T: Element>(elements: &[T]) -> Bound<'static> {
    // SAFETY: the caller's.
    Bound::Elements(unsafe { Elements::read(elements.as_ptr(), elements.len()) })
}

/// Elements that a kernel writes.
///
/// # Safety
/// They outlive the launch, and nobody else uses them meanwhile.
pub unsafe fn write<T: Element>(elements: &mut [T]) -> Bound<'static> {
    // SAFETY: the caller's.
    Bound::Elements(unsafe { Elements::write(elements.as_mut_ptr(), elements.len()) })
}

/// The configuration with the entry's constants, if it has none.
fn with_constants(entry: &Entry, config: &LaunchConfig) -> LaunchConfig {
    let constants = match config.constants {
        Constants::NONE => entry.constants,
        said => said,
    };
    LaunchConfig { constants, ..*config }
}

/// Runs a kernel fast.
///
/// # Panics
/// If the launch fails.
///
/// # Safety
/// As for [`cpu::launch`].
pub unsafe fn run<'a>(
    entry: &'static Entry,
    config: &LaunchConfig,
    arguments: impl IntoIterator<Item = Named<'a>>,
) {
    let config = with_constants(entry, config);
    // SAFETY: the caller's.
    let done = unsafe { entry.kernel.launch_named(&config, arguments, &cpu::Options::default()) };
    done.unwrap_or_else(|stop| panic!("{}: {stop}", entry.name()));
}

/// Runs a kernel with every access checked.
///
/// # Panics
/// If the launch fails.
///
/// # Safety
/// As for [`check::launch`].
pub unsafe fn watch<'a>(
    entry: &'static Entry,
    config: &LaunchConfig,
    arguments: impl IntoIterator<Item = Named<'a>>,
    options: &check::Options,
) -> Report {
    let config = with_constants(entry, config);
    let kernel = entry.checked.expect("a product");
    // SAFETY: the caller's.
    let report = unsafe { kernel.check_named(&config, arguments, options) };
    report.unwrap_or_else(|stop| panic!("{}: {stop}", entry.name()))
}
