//! The end of a product: bias and activation.

use std::fmt;

use crate::buffer::BufferView;

/// What becomes of an element of C at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// It stays.
    #[default]
    Identity,
    /// `max(x, 0)`; NaN stays NaN.
    Relu,
    /// `x (1 + erf(x / sqrt(2))) / 2`.
    Gelu,
}

/// What is added to C, before the activation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Bias<'a, T> {
    /// Element i to all of row i: m elements.
    PerRow(BufferView<'a, T>),
    /// Element j to all of column j: n elements.
    PerCol(BufferView<'a, T>),
}

impl<'a, T> Bias<'a, T> {
    /// What is added.
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
        })
    }
}
