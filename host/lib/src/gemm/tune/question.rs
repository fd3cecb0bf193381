//! All that the fastest kernel depends on.

use std::fmt;

use gpu::registry::Type;

use crate::{
    device::Device,
    gemm::{Activation, Bias, Gemm, Output, Request, Scalar, Target, operands::Operands},
};

/// A product, as far as its kernel's time depends on it, and the device.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    device: Device,
    pub(super) target: Target,
    types: [Type; 2],
    /// With A and B swapped where C is column-major.
    pub(super) request: Request,
    alpha: Factor,
    beta: Factor,
    bias: Side,
    activation: Activation,
    /// Whether there are slices of A, and of B.
    prepared: [bool; 2],
}

/// A factor, as far as the work depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Factor {
    Zero,
    One,
    Other,
}

impl Factor {
    fn of(value: f64) -> Self {
        match value {
            0.0 => Factor::Zero,
            1.0 => Factor::One,
            _ => Factor::Other,
        }
    }
}

/// What a bias is added to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Nothing,
    Rows,
    Cols,
}

impl Side {
    /// Of C as it is launched.
    fn of<T: Scalar<O>, O: Output>(gemm: &Gemm<T, O>, is_swapped: bool) -> Self {
        match (gemm.bias, is_swapped) {
            (None, _) => Side::Nothing,
            (Some(Bias::PerRow(_)), false) | (Some(Bias::PerCol(_)), true) => Side::Rows,
            (Some(Bias::PerCol(_)), false) | (Some(Bias::PerRow(_)), true) => Side::Cols,
        }
    }
}

impl Question {
    /// That of a launch. Its request has A and B swapped already.
    pub(super) fn of_operands<T: Scalar<O>, O: Output>(
        gemm: &Gemm<T, O>,
        device: &Device,
        request: &Request,
        operands: &Operands<T, O>,
    ) -> Self {
        let Operands { a, b, is_swapped, .. } = operands;
        let prepared = [a, b].map(|operand| {
            gemm.prepared.iter().flatten().any(|prepared| operand.is(&prepared.view()))
        });
        Question { prepared, ..Question::new(gemm, device, *request, *is_swapped) }
    }

    /// That of a plan, as it was requested.
    pub(super) fn of_request<T: Scalar<O>, O: Output>(
        gemm: &Gemm<T, O>,
        device: &Device,
        request: &Request,
    ) -> Self {
        Question::new(gemm, device, request.as_launched(), request.is_swapped())
    }

    fn new<T: Scalar<O>, O: Output>(
        gemm: &Gemm<T, O>,
        device: &Device,
        request: Request,
        is_swapped: bool,
    ) -> Self {
        Question {
            device: device.clone(),
            target: Target::of(device),
            types: [T::TYPE, O::TYPE],
            request,
            alpha: Factor::of(gemm.alpha),
            beta: Factor::of(gemm.beta),
            bias: Side::of(gemm, is_swapped),
            activation: gemm.activation,
            prepared: [false; 2],
        }
    }
}

/// The text in a file: one line, of printable characters alone.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Question { device, target, types: [of_ab, of_c], request, .. } = self;
        let Question { alpha, beta, bias, activation, prepared, .. } = self;
        let (major, minor) = target.capability;
        write!(f, "{} {major}.{minor} of {} SMs; {}; ", name(device), target.sms, driver(device))?;
        write!(f, "gpu-gemm {}; ", env!("CARGO_PKG_VERSION"))?;
        let shape = request.shape;
        write!(f, "{} to {}; ", of_ab.name(), of_c.name())?;
        write!(f, "{}x{}x{} {} times; ", shape.m(), shape.n(), shape.k(), request.batch)?;
        write!(f, "strides {:?}; aligned {:?}; ", request.strides, request.aligned)?;
        write!(f, "{:?}; alpha {alpha:?}; beta {beta:?}; ", request.compute)?;
        write!(f, "bias {bias:?}; {activation:?}; plain {}; ", request.plain)?;
        write!(f, "prepared {prepared:?}; split_k {:?}; ", request.split_k)?;
        write!(f, "partials {:?}; invariant {:?}; ", request.partials, request.invariant)?;
        write!(f, "as on {:?}; ", request.ordered_as_on)?;
        write!(f, "workspace {}", request.workspace_limit)
    }
}

/// The device's product name.
fn name(device: &Device) -> String {
    #[cfg(feature = "cuda")]
    if let Some(properties) = device.cuda_properties() {
        return properties.name.replace(|it: char| it.is_control(), " ");
    }
    // CPU devices are one machine.
    let _ = device;
    "CPU".to_owned()
}

/// The driver's version.
fn driver(device: &Device) -> String {
    #[cfg(feature = "cuda")]
    if let Some(properties) = device.cuda_properties() {
        let (major, minor) = properties.driver;
        return format!("driver of CUDA {major}.{minor}");
    }
    let _ = device;
    "no driver".to_owned()
}
