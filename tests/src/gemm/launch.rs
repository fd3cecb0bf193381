//! Launches a kernel of the registry for a case without the library, fast or checked.

use gpu::{
    params::{COL_BIAS, GELU, GELU_TANH, GemmParams, IDENTITY, NO_BIAS, RELU, ROW_BIAS, SILU},
    registry::Entry,
};
use host::{Activation, gemm::Scalar};
use simt::{
    Bound, Elements, LaunchConfig, Named, check, cpu,
    device::{In, Out},
};

use super::{Case, Number, Operand, Side, operand::BAND};

/// The parameters of a kernel for a case, without swaps.
fn problem<T: Number>(case: &Case<T>) -> GemmParams {
    let [m, n, k] = case.sizes();
    let words = |operand: &Operand<T>| operand.place.strides.map(|stride| stride as u64);
    GemmParams {
        m: m as u32,
        n: n as u32,
        k: if case.multiplies() { k as u32 } else { 0 },
        bias: match case.bias {
            None => NO_BIAS,
            Some((Side::Row, _)) => ROW_BIAS,
            Some((Side::Col, _)) => COL_BIAS,
        },
        activation: match case.activation {
            Activation::Relu => RELU,
            Activation::Gelu => GELU,
            Activation::GeluTanh => GELU_TANH,
            Activation::Silu => SILU,
            _ => IDENTITY,
        },
        alpha: case.alpha,
        beta: case.beta,
        a: words(&case.a),
        b: words(&case.b),
        c: words(&case.c),
        batch: [&case.a, &case.b, &case.c].map(|operand| operand.place.step as u64),
        ..GemmParams::default()
    }
}

/// The kernel of that name for `T`, and the grid for a case.
fn kernel<T: Number>(name: &str, case: &Case<T>) -> (&'static Entry, LaunchConfig) {
    let mut kernels = <T as Scalar>::kernels();
    let kernel = kernels.find(|kernel| kernel.entry.name() == name).expect("a kernel's name");
    let [m, n, _] = case.sizes().map(|size| size as u32);
    let [rows, cols] = kernel.product.tile();
    let grid = [n.div_ceil(cols), m.div_ceil(rows), case.c.count() as u32];
    assert!(kernel.product.is_general(), "{name}");
    let entry = kernel.entry;
    let dynamic_shared = entry.declaration().dynamic_shared.unwrap_or(0);
    let config = LaunchConfig::new(grid, kernel.product.block);
    (
        entry,
        LaunchConfig { dynamic_shared, constants: entry.constants_of(&problem(case)), ..config },
    )
}

/// The parameters of a general kernel.
type Params<T> = (GemmParams, In<T>, In<T>, Out<T>, In<T>);

/// The first element, and the number of elements from the first to the last.
fn part<T: Number>(operand: &Operand<T>) -> (*const T, usize) {
    (operand.stored[BAND + operand.place.offset..].as_ptr(), operand.extent())
}

/// Runs a case by the kernel's checked version, in that order of blocks and fibers. Returns C's
/// elements, and the findings.
///
/// # Panics
/// If the launch fails, or something around C has changed.
pub fn watched<T: Number>(
    case: &Case<T>,
    name: &str,
    order: check::Order,
) -> (Vec<T>, Vec<check::Finding>) {
    let (kernel, config) = kernel(name, case);
    let mut c = case.c.stored.clone();
    let bias = case.bias.as_ref().map_or(&[][..], |(_, bias)| bias);
    let ((a, a_len), (b, b_len)) = (part(&case.a), part(&case.b));
    let (start, c_len) = (c[BAND + case.c.place.offset..].as_mut_ptr(), case.c.extent());
    let mut options = check::Options::default();
    options.order = order;
    // SAFETY: the views have these lengths, and are in vectors that nobody else uses meanwhile. The
    // kernels of the registry keep no references.
    let report = unsafe {
        let c = Elements::write(start, c_len);
        // With beta = 0 it must not be read: for the check it counts as not written.
        let c = if T::Sum::nearest(case.beta).into() == 0.0 { c.uninit() } else { c };
        let arguments: [Named; 5] = [
            ("problem", Bound::Value(&problem(case))),
            ("a", Bound::Elements(Elements::read(a, a_len))),
            ("b", Bound::Elements(Elements::read(b, b_len))),
            ("c", Bound::Elements(c)),
            ("bias", Bound::Elements(Elements::read(bias.as_ptr(), bias.len()))),
        ];
        kernel.checked.expect("a product").check_named(&config, arguments, &options)
    };
    let report = report.unwrap_or_else(|stop| panic!("{name}: {stop}: {case}"));
    let c = case.c.written(&c).unwrap_or_else(|changed| panic!("around C: {changed}: {case}"));
    (c, report.findings)
}

/// Runs a case by the portable version of the kernel, even if this processor would run another.
///
/// # Panics
/// As [`watched`].
pub fn portable<T: Number>(case: &Case<T>, name: &str) -> Vec<T> {
    let (kernel, config) = kernel(name, case);
    let kernel =
        kernel.kernel.of_params::<Params<T::Taken>>().expect("a general product of such numbers");
    // SAFETY: it is launched unchanged.
    let kernel = unsafe { kernel.portable() };
    let mut c = case.c.stored.clone();
    let bias = case.bias.as_ref().map_or(&[][..], |(_, bias)| bias);
    let ((a, a_len), (b, b_len)) = (part(&case.a), part(&case.b));
    let (start, c_len) = (c[BAND + case.c.place.offset..].as_mut_ptr(), case.c.extent());
    // SAFETY: as in `watched`.
    let done = unsafe {
        let (a, b) = (In::new(a.cast(), a_len), In::new(b.cast(), b_len));
        let (c, bias) = (Out::new(start.cast(), c_len), In::new(bias.as_ptr().cast(), bias.len()));
        cpu::launch(&kernel, &config, (problem(case), a, b, c, bias), &cpu::Options::default())
    };
    done.unwrap_or_else(|stop| panic!("{name}: {stop}: {case}"));
    case.c.written(&c).unwrap_or_else(|changed| panic!("around C: {changed}: {case}"))
}
