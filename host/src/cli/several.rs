//! `--plan --devices N`: a product over several devices, which nobody opens.

use std::io::Write;

use host::{
    Shape, ShardLayout,
    gemm::{ShardedPlan, ShardedScalar, Target},
    simt::{self, with_types},
};

use super::{
    Failure,
    args::Run,
    plan::PlannedFor,
    types::{Value, not_multiplied},
};

/// Numbers of devices that are compared.
const COUNTS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The plan for so many devices with A and C by rows and B by columns.
fn planned<T, O>(
    args: &Run,
    shape: Shape,
    target: &Target,
    devices: usize,
) -> Result<ShardedPlan, Failure>
where
    T: ShardedScalar<O> + Value,
    O: Value,
{
    let gemm = args.product::<T, O>()?;
    let (rows, cols) =
        (ShardLayout::rows(shape.m(), devices), ShardLayout::cols(shape.n(), devices));
    let layouts = [&rows, &cols, &rows];
    let plans = gemm.plan_sharded_for(target, &simt::cpu::LIMITS, devices, shape, layouts)?;
    let plan = plans.into_iter().next();
    plan.ok_or_else(|| host::Error::argument("--devices", devices, "must have a plan").into())
}

/// The speed beside one device. (An empty product takes no time.)
fn share(one_us: f64, us: f64) -> f64 {
    if us > 0.0 { one_us / us } else { 1.0 }
}

/// Prints the plan, and the predicted times of other numbers of devices: of the same product, and
/// of products with as many rows of A for each device.
pub(super) fn plan(args: &Run, devices: u16, out: &mut impl Write) -> Result<(), Failure> {
    type Planned = fn(&Run, Shape, &Target, usize) -> Result<ShardedPlan, Failure>;
    let (types, devices) = (args.types.types()?, usize::from(devices));
    let planned = with_types!(types, |T, O| planned::<T, O> as Planned)
        .ok_or_else(|| not_multiplied(types.0, types.1))?;
    let shape = args.sizes.shape()?;
    let PlannedFor { target, words, hint, .. } = PlannedFor::of(args.on, args.device)?;
    let plan = planned(args, shape, &target, devices)?;
    writeln!(out, "planned for {devices} times {words}{hint}\n{plan}\n")?;
    writeln!(out, "predicted: this product, and one with {} rows of A a device", shape.m())?;
    writeln!(
        out,
        "{:>8} {:>12} {:>11} {:>12} {:>11}",
        "devices", "us", "efficiency", "us", "efficiency"
    )?;
    let [mut one, mut one_weak] = [None::<f64>; 2];
    for count in COUNTS {
        let us = planned(args, shape, &target, count)?.predicted_us();
        let rows = (shape.m() as u64).saturating_mul(count as u64);
        let weak = Shape::new(rows, shape.n() as u64, shape.k() as u64)
            .map_err(Failure::from)
            .and_then(|shape| planned(args, shape, &target, count));
        let strong = share(*one.get_or_insert(us), us) / count as f64;
        write!(out, "{count:>8} {us:>12.0} {:>10.0}%", 100.0 * strong)?;
        match weak {
            Ok(plan) => {
                let us = plan.predicted_us();
                let weak = share(*one_weak.get_or_insert(us), us);
                writeln!(out, " {us:>12.0} {:>10.0}%", 100.0 * weak)?;
            }
            // So many rows are too many.
            Err(_) => writeln!(out)?,
        }
    }
    Ok(())
}
