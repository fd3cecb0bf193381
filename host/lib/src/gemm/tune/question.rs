//! All that the fastest kernel depends on.

use std::fmt;

use gpu::registry::Type;

use crate::{
    device::Device,
    gemm::{Activation, Request, Target},
};

/// A product, as far as its kernel's time depends on it, and the device.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) device: Device,
    pub(super) target: Target,
    pub(super) types: [Type; 2],
    /// With A and B swapped where C is column-major.
    pub(super) request: Request,
    pub(super) alpha: Factor,
    pub(super) beta: Factor,
    pub(super) bias: Side,
    pub(super) activation: Activation,
}

/// A factor, as far as the work depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Factor {
    Zero,
    One,
    Other,
}

impl Factor {
    pub(super) fn of(value: f64) -> Self {
        match value {
            0.0 => Factor::Zero,
            1.0 => Factor::One,
            _ => Factor::Other,
        }
    }
}

/// What a bias is added to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Side {
    Nothing,
    Rows,
    Cols,
}

impl Question {
    /// m, n and k.
    pub(super) fn sizes(&self) -> [usize; 3] {
        let shape = self.request.shape;
        [shape.m(), shape.n(), shape.k()]
    }
}

/// The text in a file: one line, of printable characters alone.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Question { device, target, types: [of_ab, of_c], request, .. } = self;
        let Question { alpha, beta, bias, activation, .. } = self;
        let (major, minor) = target.capability;
        write!(f, "{} {major}.{minor} of {} SMs; {}; ", name(device), target.sms, driver(device))?;
        write!(f, "gpu-gemm {}; ", env!("CARGO_PKG_VERSION"))?;
        let shape = request.shape;
        write!(f, "{} to {}; ", of_ab.name(), of_c.name())?;
        write!(f, "{}x{}x{} {} times; ", shape.m(), shape.n(), shape.k(), request.batch)?;
        write!(f, "strides {:?}; aligned {:?}; ", request.strides, request.aligned)?;
        write!(f, "{:?}; alpha {alpha:?}; beta {beta:?}; ", request.compute)?;
        write!(f, "bias {bias:?}; {activation:?}; plain {}; ", request.plain)?;
        write!(f, "prepared {:?}; split_k {:?}; ", request.prepared, request.split_k)?;
        write!(f, "partials {:?}; invariant {:?}; ", request.partials, request.invariant)?;
        write!(f, "as on {:?}; scales {}; ", request.ordered_as_on, request.scales)?;
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
