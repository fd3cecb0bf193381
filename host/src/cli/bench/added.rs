//! The numbers of epilogues: the bias, and the old C.

use host::{baseline::Epilogue, operands};

use super::case::Case;
use crate::cli::types::Value;

/// The numbers that are added to a product, row-major. Each is empty if no epilogue reads it.
#[derive(Clone, Debug, Default)]
pub(super) struct Added {
    /// An element for each column of C.
    pub(super) bias: Vec<f32>,
    /// The old C.
    pub(super) before: Vec<f32>,
}

/// Whether an epilogue of these reads a bias, and whether one reads the old C.
pub(super) fn reads(epilogues: &[Epilogue]) -> [bool; 2] {
    let any = |of: fn(&Epilogue) -> bool| epilogues.iter().any(of);
    [any(|epilogue| epilogue.bias), any(|epilogue| epilogue.beta != 0.0)]
}

impl Added {
    /// Uniform numbers of `O`, or integers up to a magnitude.
    pub(super) fn draw<O: Value>(
        case: &Case,
        seed: u64,
        integers: Option<u32>,
    ) -> host::Result<Self> {
        let [has_bias, has_before] = reads(&case.epilogues);
        let draw = |is_read: bool, number: u64, len: usize| -> host::Result<Vec<f32>> {
            let (seed, len) = (seed.wrapping_add(number << 32), if is_read { len } else { 0 });
            let mut values = match integers {
                None => operands::uniform(seed, len),
                Some(magnitude) => operands::integers(seed, len, magnitude),
            }?;
            O::round(&mut values);
            Ok(values)
        };
        let [_, _, c] = case.product.lens()?;
        Ok(Added {
            bias: draw(has_bias, 1, case.product.shape.n())?,
            before: draw(has_before, 2, c)?,
        })
    }
}
