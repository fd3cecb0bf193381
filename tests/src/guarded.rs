//! Products between guard bands.

use gpu::registry::Entry;
use host::{Device, Result, product};

use crate::gemm::{Operand, Order, Place};

/// `C = A B` on a device, with A, B and C each between bands of NaN, and C full of NaN before.
///
/// A value read from outside a matrix makes a result NaN. A value written outside changes a band.
///
/// # Errors
/// Those of the launch.
///
/// # Panics
/// If a bit of a band, A or B has changed, or an element of C was not written.
pub fn multiply_guarded(
    device: &Device,
    entry: &'static Entry,
    shape: product::Shape,
    a: &[f32],
    b: &[f32],
) -> Result<Vec<f32>> {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let (a, b) = (Operand::dense((m, k), a), Operand::dense((k, n), b));
    let c = Operand::<f32>::noise((m, n), Place::dense((m, n), Order::Rows));
    let upload = |operand: &Operand<f32>| device.upload(&operand.stored);
    let (a_all, b_all, mut c_all) = (upload(&a)?, upload(&b)?, upload(&c)?);
    product::multiply_views(
        &device.stream()?,
        entry,
        shape,
        a_all.view(a.range())?,
        b_all.view(b.range())?,
        c_all.view_mut(c.range())?,
    )?;

    let context = || format!("{} on {}, {shape}", entry.name(), device.name());
    for (name, operand, all) in [("A", &a, a_all), ("B", &b, b_all)] {
        let unchanged = operand.unchanged(&all.to_vec()?);
        unchanged.unwrap_or_else(|at| panic!("{name} or a band by it, {at}: {}", context()));
    }
    let written = c.written(&c_all.to_vec()?);
    let written = written.unwrap_or_else(|at| panic!("a band by C, {at}: {}", context()));
    // No arithmetic makes a NaN with this payload.
    let before = &c.stored[c.range()];
    let same = written.iter().zip(before).position(|(x, y)| x.to_bits() == y.to_bits());
    assert!(same.is_none(), "C[{same:?}] was not written: {}", context());
    Ok(written)
}
