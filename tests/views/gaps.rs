//! Kernels of every family, with every access checked: one to a gap is a finding, however near an
//! element is.

use std::collections::BTreeSet;

use host::{
    Batch, BatchMut, Device, Result,
    gemm::{Kernel, Scalar, checked},
};
use simt::{
    Bf16, F16,
    check::{Options, Order, Report},
};
use tests::gemm::{Case, Number, Operand, Want};

use crate::cases;

/// The reports of the launches of a case.
fn watch<T: Number + Scalar<O>, O: Number>(
    kernel: Kernel,
    case: &Case<T, O>,
    want: &Want,
    order: Order,
) -> Result<Vec<Report>> {
    let device = Device::cpu();
    let bias = case.bias.as_ref().map_or(&[][..], |(_, bias)| bias);
    let (a, b) = (device.upload(&case.a.stored)?, device.upload(&case.b.stored)?);
    let (mut c, bias) = (device.upload(&case.c.stored)?, device.upload(bias)?);
    let gemm = cases::gemm(kernel.entry, case, bias.view(..)?)?;
    let batch = |of: &Operand<T>| (of.size, of.place.strides, of.count(), of.place.step);
    let (size, strides, count, step) = batch(&case.a);
    let a = Batch::new(a.view(case.a.range())?, size, strides, count, step)?;
    let (size, strides, count, step) = batch(&case.b);
    let b = Batch::new(b.view(case.b.range())?, size, strides, count, step)?;
    let (place, count) = (case.c.place, case.c.count());
    let view = c.view_mut(case.c.range())?;
    let of_c = BatchMut::new(view, case.c.size, place.strides, count, place.step)?;
    let options = |_: &_| {
        let mut options = Options::default();
        options.order = order;
        options
    };
    let reports = checked::product(&gemm, a, b, of_c, options)?;
    let c = case.c.written(&c.to_vec()?).unwrap_or_else(|changed| panic!("around C: {changed}"));
    cases::check(want, c).unwrap_or_else(|wrong| panic!("{wrong}"));
    Ok(reports)
}

/// Runs the kernels that read or write in different ways, each with its cases. Returns what was
/// found.
fn all<T: Number + Scalar<O>, O: Number>(of: fn(Case<T>) -> Case<T, O>) -> Vec<String> {
    let mut kernels: Vec<Kernel> = <T as Scalar<O>>::kernels().collect();
    // The smallest tiles first: they stand for the others.
    kernels.sort_by_key(|kernel| kernel.product.variant.tile.iter().product::<u32>());
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (before, kernel) in kernels.into_iter().enumerate() {
        let variant = kernel.product.variant;
        let way_of_loading = format!(
            "{:?} {:?} {:?} {:?} {}",
            variant.family,
            variant.scheme,
            variant.access,
            variant.layout,
            kernel.product.packs_tail
        );
        if kernel.product.is_lesson() || !seen.insert(way_of_loading) {
            continue;
        }
        for (number, way) in cases::ways(kernel.product, before).into_iter().enumerate() {
            let (case, want) = cases::case::<T>(way, kernel.entry.is_emulated());
            let order = [Order::Forward, Order::Reverse, Order::Random(1)][number % 3];
            let name = kernel.entry.name();
            match watch(kernel, &of(case), &want, order) {
                Ok(reports) => {
                    let of_it = reports.iter().filter(|report| !report.is_clean());
                    found.extend(of_it.map(|report| format!("{name}, {way:?}: {report}")));
                }
                Err(error) if cases::is_refused(&error) => {}
                Err(error) => panic!("{name}, {way:?}: {error}"),
            }
        }
    }
    found
}

fn are_clean(found: Vec<String>) {
    assert!(found.is_empty(), "{} launches: {}", found.len(), found.join("\n"));
}

#[test]
fn kernels_for_f32_keep_to_the_elements() {
    are_clean(all::<f32, f32>(|case| case));
}

#[test]
fn kernels_for_f64_keep_to_the_elements() {
    are_clean(all::<f64, f64>(|case| case));
}

#[test]
fn kernels_for_16_bits_keep_to_the_elements() {
    are_clean(all::<Bf16, Bf16>(|case| case));
}

#[test]
fn kernels_for_16_bits_with_a_c_of_32_keep_to_the_elements() {
    are_clean(all::<F16, f32>(|case| case.widened()));
}
