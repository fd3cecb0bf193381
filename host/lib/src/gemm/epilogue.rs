//! The epilogue of a product: bias and activation.

use std::fmt;

use crate::buffer::BufferView;

/// A function that is applied to each element of C at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// `x`.
    #[default]
    Identity,
    /// `max(x, 0)`. NaN stays NaN.
    Relu,
    /// `x (1 + erf(x / sqrt(2))) / 2`.
    Gelu,
    /// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`, which is near GELU.
    GeluTanh,
    /// `x / (1 + exp(-x))`, also called swish.
    Silu,
}

/// A vector that is added to C before the activation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Bias<'a, T> {
    /// `m` elements. Element i is added to all of row i.
    PerRow(BufferView<'a, T>),
    /// `n` elements. Element j is added to all of column j.
    PerCol(BufferView<'a, T>),
}

impl<'a, T> Bias<'a, T> {
    /// The vector.
    pub(super) fn elements(self) -> BufferView<'a, T> {
        let (Bias::PerRow(elements) | Bias::PerCol(elements)) = self;
        elements
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Activation::Identity => "identity",
            Activation::Relu => "relu",
            Activation::Gelu => "gelu",
            Activation::GeluTanh => "gelu_tanh",
            Activation::Silu => "silu",
        })
    }
}
