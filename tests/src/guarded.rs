//! Products between guard bands.

use std::sync::LazyLock;

use gpu::registry::Entry;
use host::{Device, Result, product};

/// Elements of a guard band: more than the largest tile's rows and columns stick out at small sizes.
const BAND: usize = 4096;

/// `C = A B` on a device, with A, B and C each between bands of NaN, and C full of NaN before.
///
/// A value read from outside a matrix makes a result NaN; a value written outside changes a band.
///
/// # Errors
/// What the launch says.
///
/// # Panics
/// Where a band, A or B has changed in a single bit, or an element of C was not written.
pub fn multiply_guarded(
    device: &Device,
    entry: &Entry,
    shape: product::Shape,
    a: &[f32],
    b: &[f32],
) -> Result<Vec<f32>> {
    let bands = BANDS.each_ref().map(Vec::as_slice);
    let unwritten = vec![f32::from_bits(UNWRITTEN); shape.c_len()];
    let inputs = [bands[0], a, bands[1], b, bands[2]].concat();
    let output = [bands[3], &unwritten, bands[4]].concat();
    let (a_start, b_start) = (BAND, BAND + a.len() + BAND);

    let on_device = device.upload(&inputs)?;
    let mut c = device.upload(&output)?;
    product::multiply_views(
        &device.stream()?,
        entry,
        shape,
        on_device.view(a_start..a_start + a.len())?,
        on_device.view(b_start..b_start + b.len())?,
        c.view_mut(BAND..BAND + shape.c_len())?,
    )?;

    let context = || format!("{} on {}, {shape}", entry.name(), device.name());
    let written = c.to_vec()?;
    let (before, rest) = written.split_at(BAND);
    let (c, after) = rest.split_at(shape.c_len());
    same_bits(&on_device.to_vec()?, &inputs, || format!("A, B or a band by them: {}", context()));
    same_bits(before, bands[3], || format!("the band before C: {}", context()));
    same_bits(after, bands[4], || format!("the band after C: {}", context()));
    let unwritten = c.iter().position(|x| x.to_bits() == UNWRITTEN);
    assert!(unwritten.is_none(), "C[{unwritten:?}] was not written: {}", context());
    Ok(c.to_vec())
}

/// What C holds before the launch: a NaN that no arithmetic makes.
const UNWRITTEN: u32 = 0x7fed_cba9;

fn same_bits(found: &[f32], before: &[f32], what: impl Fn() -> String) {
    // Compared as a whole first: element by element would dominate the tests' time.
    if bits(found) == bits(before) {
        return;
    }
    let pairs = found.iter().zip(before);
    let changed = { pairs }.position(|(a, b)| a.to_bits() != b.to_bits());
    panic!("changed at {changed:?}, {}", what());
}

fn bits(values: &[f32]) -> &[u32] {
    // SAFETY: f32 and u32 have one size and alignment, and every pattern is a u32.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// NaNs of pseudo-random payload.
static BANDS: LazyLock<[Vec<f32>; 5]> = LazyLock::new(|| {
    [1u32, 2, 3, 4, 5].map(|seed| {
        let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let states = std::iter::successors(Some(seed), next);
        states.take(BAND).map(|state| f32::from_bits(0x7fc0_0000 | state >> 10)).collect()
    })
});
