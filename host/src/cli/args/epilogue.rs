//! Flags of a product's epilogue.

use std::{fmt, str::FromStr};

use clap::{Args, ValueEnum};
use host::{Activation, baseline::Epilogue, scaling::ScaleKind, verify};

/// What is done with each product. Lists are combined, each with each.
#[derive(Args, Clone, Debug)]
pub(crate) struct EpilogueFlags {
    /// Add a bias to each row of C, a vector of n elements of C's type; no,yes compares both
    #[arg(
        long,
        value_name = "no|yes",
        value_delimiter = ',',
        value_enum,
        hide_possible_values = true
    )]
    #[arg(num_args = 0..=1, default_missing_value = "yes")]
    bias: Vec<YesNo>,

    /// Apply functions to C's elements, separated by commas: none, relu, gelu (the exact form, with
    /// erf), gelu_tanh, silu. With any epilogue the plain product is timed beside it, and each line
    /// says what it takes beyond that. cublasLt has relu and gelu_tanh. For the others it computes
    /// the product with the bias, and a copy of C stands for the kernel that would apply the
    /// function: a lower limit of its time
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    activation: Vec<Named>,

    /// Factors of A B, separated by commas
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', value_parser = factor)]
    #[arg(allow_negative_numbers = true)]
    alpha: Vec<f32>,

    /// Factors of the old C, separated by commas. Launches follow one another on the same C
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', value_parser = finite)]
    #[arg(allow_negative_numbers = true)]
    beta: Vec<f32>,

    /// Multiply A and B by scales, of 8-bit numbers: rows-cols has one for each row of A and column
    /// of B, blocks one for each 1 x 128 of A and 128 x 128 of B. Separated by commas
    #[arg(long, value_name = "rows-cols|blocks", value_delimiter = ',')]
    scales: Vec<ScaleKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum YesNo {
    No,
    Yes,
}

/// An activation by its name.
#[derive(Clone, Copy, Debug)]
struct Named(Activation);

/// The name of an activation in flags and records.
fn name(activation: Activation) -> String {
    match activation {
        Activation::Identity => "none".to_owned(),
        other => other.to_string(),
    }
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = verify::activations().find(|&activation| name(activation) == text.trim());
        let names = || verify::activations().map(name).collect::<Vec<_>>().join(", ");
        found.map(Named).ok_or_else(|| format!("must be one of {}", names()))
    }
}

fn finite(text: &str) -> Result<f32, &'static str> {
    let value = text.trim().parse().ok().filter(|value: &f32| value.is_finite());
    value.ok_or("must be a finite number of f32")
}

fn factor(text: &str) -> Result<f32, &'static str> {
    let value = finite(text).ok().filter(|value| *value != 0.0);
    value.ok_or("must be a finite number of f32, and not 0")
}

impl EpilogueFlags {
    /// The epilogues asked for. If there is one, the plain product comes first.
    pub(crate) fn all(&self) -> Vec<Epilogue> {
        fn or<T: Copy>(given: &[T], usual: T) -> Vec<T> {
            if given.is_empty() { vec![usual] } else { given.to_vec() }
        }
        let mut all = vec![Epilogue::PLAIN];
        let scales = self.scales.iter().copied().map(Some).collect::<Vec<_>>();
        let scales = or(&scales, None);
        for bias in or(&self.bias, YesNo::No) {
            for Named(activation) in or(&self.activation, Named(Activation::Identity)) {
                for alpha in or(&self.alpha, 1.0) {
                    for beta in or(&self.beta, 0.0) {
                        let bias = bias == YesNo::Yes;
                        for &scales in &scales {
                            let epilogue = Epilogue { alpha, beta, bias, activation, scales };
                            if !all.contains(&epilogue) {
                                all.push(epilogue);
                            }
                        }
                    }
                }
            }
        }
        all
    }
}

/// An epilogue as flags, each with a space before it.
pub(crate) struct AsFlags(pub(crate) Epilogue);

impl fmt::Display for AsFlags {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Epilogue { alpha, beta, bias, activation, scales } = self.0;
        if let Some(kind) = scales {
            write!(f, " --scales {kind}")?;
        }
        if bias {
            write!(f, " --bias")?;
        }
        if activation != Activation::Identity {
            write!(f, " --activation {}", name(activation))?;
        }
        if alpha != 1.0 {
            write!(f, " --alpha {alpha}")?;
        }
        if beta == 0.0 { Ok(()) } else { write!(f, " --beta {beta}") }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: EpilogueFlags,
    }

    fn words(line: &str) -> Vec<String> {
        let line = Line::try_parse_from(line.split_whitespace()).unwrap();
        line.flags.all().iter().map(Epilogue::to_string).collect()
    }

    #[test]
    fn lists_are_combined_and_the_plain_product_is_first() {
        assert_eq!(words("bench"), ["plain"]);
        assert_eq!(words("bench --bias"), ["plain", "bias"]);
        assert_eq!(words("bench --bias --activation none,relu"), ["plain", "bias", "bias relu"]);
        assert_eq!(words("bench --bias no,yes --beta 1"), ["plain", "beta=1", "beta=1 bias"]);
        assert_eq!(
            words("bench --bias --scales blocks,rows-cols"),
            ["plain", "scales=blocks bias", "scales=rows-cols bias"]
        );
        assert_eq!(
            words("bench --activation gelu --alpha 1,-0.5"),
            ["plain", "gelu", "alpha=-0.5 gelu"]
        );
    }

    #[test]
    fn flags_are_what_was_asked_for() {
        let line = "bench --scales blocks --bias --activation relu --alpha 0.5 --beta -1";
        let all = Line::try_parse_from(line.split_whitespace()).unwrap().flags.all();
        assert_eq!(format!("bench{}", AsFlags(all[1])), line);
        assert_eq!(AsFlags(all[0]).to_string(), "");
    }

    #[test]
    fn what_is_no_factor_or_function_is_refused() {
        for (flag, value, limit) in [
            ("--alpha", "0", "must be a finite number of f32, and not 0"),
            ("--alpha", "1e39", "must be a finite"),
            ("--beta", "inf", "must be a finite number of f32"),
            ("--activation", "sigmoid", "must be one of none, relu, gelu, gelu_tanh, silu"),
            ("--bias", "maybe", "no, yes"),
        ] {
            let error = Line::try_parse_from(["bench", flag, value]).err().unwrap().to_string();
            assert!(error.contains(flag) && error.contains(limit), "{error}");
        }
    }
}
