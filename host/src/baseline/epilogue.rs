//! What is done with a product: `C = activation(alpha A B + beta C + bias)`.

use std::fmt;

use gpu_gemm::{
    Activation, Bias, BufferView,
    gemm::{Gemm, Output, Scalar, Scales},
};

use crate::scaling::ScaleKind;

/// What is done with a product: `C = activation(alpha A B + beta C + bias)`, perhaps of an A and B
/// with scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epilogue {
    /// The factor of A B.
    pub alpha: f32,
    /// The factor of the old C. With 0 it is not read.
    pub beta: f32,
    /// Whether a vector of n elements of C's type is added to each row.
    pub bias: bool,
    /// What is applied to each element at the end.
    pub activation: Activation,
    /// What the scales of A and B are of, if there are any.
    pub scales: Option<ScaleKind>,
}

impl Epilogue {
    /// `C = A B`.
    pub const PLAIN: Epilogue = Epilogue {
        alpha: 1.0,
        beta: 0.0,
        bias: false,
        activation: Activation::Identity,
        scales: None,
    };

    /// Whether it is `C = A B`.
    pub fn is_plain(self) -> bool {
        self == Epilogue::PLAIN
    }

    /// A product with this epilogue. `bias`: the n elements that are added to each row, if any are.
    /// `scales`: those of this kind, if there are any.
    pub fn of<'a, T: Scalar<O>, O: Output>(
        self,
        gemm: Gemm<'a, T, O>,
        bias: Option<BufferView<'a, O>>,
        scales: Option<Scales<'a>>,
    ) -> Gemm<'a, T, O> {
        let gemm = gemm.alpha(self.alpha).beta(self.beta).activation(self.activation);
        let gemm = scales.map_or(gemm, |scales| gemm.scales(scales));
        match bias.filter(|_| self.bias) {
            Some(bias) => gemm.bias(Bias::PerCol(bias)),
            None => gemm,
        }
    }
}

impl Default for Epilogue {
    fn default() -> Self {
        Epilogue::PLAIN
    }
}

/// `plain`, or what it is beyond `A B`: `alpha=0.5 beta=1 bias relu`.
impl fmt::Display for Epilogue {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Epilogue { alpha, beta, bias, activation, scales } = *self;
        let words = [
            scales.map(|kind| format!("scales={kind}")),
            (alpha != 1.0).then(|| format!("alpha={alpha}")),
            (beta != 0.0).then(|| format!("beta={beta}")),
            bias.then(|| "bias".to_owned()),
            (activation != Activation::Identity).then(|| activation.to_string()),
        ];
        let words = words.into_iter().flatten().collect::<Vec<_>>();
        f.write_str(if words.is_empty() { "plain" } else { "" })?;
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_there_is_beyond_the_product() {
        let relu = Epilogue { activation: Activation::Relu, ..Epilogue::PLAIN };
        assert_eq!(Epilogue::default().to_string(), "plain");
        assert_eq!(relu.to_string(), "relu");
        let scales = Some(ScaleKind::RowsCols);
        let all = Epilogue { alpha: 0.5, beta: -1.0, bias: true, scales, ..relu };
        assert_eq!(all.to_string(), "scales=rows-cols alpha=0.5 beta=-1 bias relu");
        assert!(!relu.is_plain() && Epilogue { beta: 0.0, ..Epilogue::PLAIN }.is_plain());
    }
}
