//! The numbers of epilogues: the bias, and the old C.

use host::{
    baseline::Epilogue,
    operands,
    scaling::{ScaleKind, Scaling},
};

use super::case::Case;
use crate::cli::types::Value;

/// The numbers that are added to a product, row-major. Each is empty if no epilogue reads it.
#[derive(Clone, Debug)]
pub(super) struct Added<O> {
    /// An element for each column of C.
    pub(super) bias: Vec<O>,
    /// The old C.
    pub(super) before: Vec<O>,
    /// Of each kind that an epilogue has.
    pub(super) scaling: Vec<Scaling>,
}

/// Whether an epilogue of these reads a bias, and whether one reads the old C.
pub(super) fn reads(epilogues: &[Epilogue]) -> [bool; 2] {
    let any = |of: fn(&Epilogue) -> bool| epilogues.iter().any(of);
    [any(|epilogue| epilogue.bias), any(|epilogue| epilogue.beta != 0.0)]
}

impl<O: Value> Added<O> {
    /// Uniform numbers, or integers up to a magnitude.
    pub(super) fn draw(case: &Case, seed: u64, integers: Option<u32>) -> host::Result<Self> {
        let [has_bias, has_before] = reads(&case.epilogues);
        let draw = |is_read: bool, number: u64, len: usize| -> host::Result<Vec<O>> {
            let (seed, len) = (seed.wrapping_add(number << 32), if is_read { len } else { 0 });
            match integers {
                None => operands::uniform(seed, len),
                Some(magnitude) => operands::integers(seed, len, magnitude),
            }
        };
        let [_, _, c] = case.product.lens()?;
        let shape = case.product.shape;
        let is_there = |kind: &_| case.epilogues.iter().any(|of| of.scales == Some(*kind));
        let kinds = [ScaleKind::RowsCols, ScaleKind::Blocks].into_iter().filter(is_there);
        let scaling = kinds.map(|kind| Scaling::draw(kind, shape, seed, integers.is_some()));
        Ok(Added {
            bias: draw(has_bias, 1, case.product.shape.n())?,
            before: draw(has_before, 2, c)?,
            scaling: scaling.collect::<host::Result<_>>()?,
        })
    }
}
