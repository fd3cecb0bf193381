//! Where parts of matrices may begin, so that sums have the bits of one device.

use gpu::params::BLOCKS;

use super::{build::Whole, pieces::UNIT};
use crate::{
    error::{Error, Result},
    gemm::Scales,
};

/// An operand's name and number, and a side: its rows (0) or its columns (1).
type Side = (&'static str, usize, usize);

impl Whole<'_> {
    /// Refuses shards that begin within an alignment class: their sums would have other bits; and
    /// columns that begin within a block of scales.
    pub(super) fn check_starts(&self) -> Result<()> {
        let cols = [("B.layout", 1, 1), ("C.layout", 2, 1)];
        if self.classes() > 1 {
            let kernel = self.choice.entry.name();
            let why = format!("for kernel {kernel}, whose rows are in alignment classes");
            self.must_begin_at(&[("A.layout", 0, 0), ("C.layout", 2, 0)], 16, &why)?;
            self.must_begin_at(&cols, 16, &why)?;
        }
        if self.product.scales == BLOCKS {
            self.must_begin_at(&cols, Scales::BLOCK, "with scales of blocks")?;
        }
        Ok(())
    }

    fn must_begin_at(&self, sides: &[Side], multiple: usize, why: &str) -> Result<()> {
        for &(name, operand, side) in sides {
            let size = self.size(operand);
            for place in 0..self.places {
                let block = self.block(operand, place);
                let start = if side == 0 { block.rows.start } else { block.cols.start };
                if !start.is_multiple_of(multiple) && start != size[side] {
                    let limit = format!("parts must begin at multiples of {multiple} {why}");
                    return Err(Error::argument(name, self.layouts[operand], limit));
                }
            }
        }
        Ok(())
    }

    /// The rows (side 0) or columns (side 1) that panels are multiples of: those of a tile, where
    /// that leaves enough panels, and at least.
    pub(super) fn units(&self, side: usize) -> [usize; 2] {
        let are_blocks = self.product.scales == BLOCKS && side == 1;
        let least = if are_blocks { Scales::BLOCK } else { UNIT };
        let tile = self.kernel.product.tile();
        let swaps = self.choice.operands.swap_ab;
        let size = tile[if swaps { 1 - side } else { side }] as usize;
        [if size.is_multiple_of(least) { size } else { least }, least]
    }
}
