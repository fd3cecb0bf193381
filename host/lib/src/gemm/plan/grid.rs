//! The grids of a product. A grid has at most 65535 rows and layers of blocks: a taller product or
//! a larger batch takes several launches.

use gpu::{kernels::emulated::two_widths::wide_tiles_across, registry::Access};
use simt::{LaunchConfig, Limits};

use crate::{
    error::{Error, Result},
    gemm::scalar::Kernel,
    shape::Shape,
};

/// The rows of C, and the products of a batch, that one launch computes.
pub(super) struct Panel {
    pub(super) first_row: usize,
    pub(super) rows: usize,
    pub(super) first_product: usize,
    pub(super) products: usize,
    /// Columns of C in wide tiles, for a kernel with two tile widths.
    pub(super) wide: usize,
    pub(super) config: LaunchConfig,
}

impl Panel {
    /// All of a product.
    pub(super) fn of_rows(rows: usize) -> Self {
        let config = LaunchConfig::new([1; 3], [1; 3]);
        Panel { first_row: 0, rows, first_product: 0, products: 1, wide: 0, config }
    }
}

/// Launches of a plan at most: their number grows with a batch and with the rows of C, and the plan
/// is in host memory.
const MOST_PANELS: usize = 1 << 16;

/// The panels of `count` products of that shape, with so many at once at most. `on`: the device's
/// limits, and its SMs.
///
/// # Errors
/// [`Error::Argument`] for more than [`MOST_PANELS`].
pub(super) fn panels(
    Kernel { entry, product }: Kernel,
    shape: Shape,
    (count, at_once): (usize, usize),
    split_k: u32,
    (limits, sms): (&Limits, u32),
) -> Result<impl Iterator<Item = Panel>> {
    let (tile, block) = (product.tile().map(|size| size as usize), product.block);
    let declared = entry.declaration().dynamic_shared.unwrap_or(0);
    let is_for_hopper = product.requires_layouts() && product.variant.access != Access::Pieces;
    let (cluster, narrow) = (product.sharing(), product.narrow.map(|cols| cols as usize));
    let most_rows = match cluster {
        Some(_) => shape.m(),
        None => (limits.grid[1] as usize).saturating_mul(tile[0]).max(1),
    };
    let tiles_down = move |rows: usize| product.tiles_down(rows);
    let most_products = match cluster {
        // Tiles of all products are counted by 32 bits, and the grid of a copy has a layer for each
        // product.
        Some(_) => {
            let across = shape.n().div_ceil(narrow.unwrap_or(tile[1]));
            let tiles = across.saturating_mul(tiles_down(shape.m()));
            (limits.grid[0] as usize / tiles).min(limits.grid[2] as usize)
        }
        None => limits.grid[2] as usize / split_k as usize,
    };
    let most_products = most_products.min(at_once).max(1);
    let needed = count.div_ceil(most_products).saturating_mul(shape.m().div_ceil(most_rows));
    if needed > MOST_PANELS {
        let limit = format!("must need at most {MOST_PANELS} launches, and {shape} needs {needed}");
        return Err(Error::argument("batch", count, limit));
    }
    // Blocks that an SM runs at a time.
    let together = entry.declaration().min_blocks.unwrap_or(1);
    Ok((0..count).step_by(most_products).flat_map(move |first_product| {
        (0..shape.m()).step_by(most_rows).map(move |first_row| {
            let products = most_products.min(count - first_product);
            let rows = most_rows.min(shape.m() - first_row);
            let across = shape.n().div_ceil(tile[1]);
            let down = tiles_down(rows);
            let mut wide = 0;
            let [across, down, layers] = match (cluster.map(|blocks| blocks as usize), narrow) {
                // Each cluster that splits k has one tile.
                (Some(_), _) if split_k > 1 => [across * down * products, 1, 1],
                (Some(blocks), Some(narrow)) => {
                    let widths = (tile[1], narrow);
                    let most = ((sms * together) as usize / blocks).max(1);
                    let of_all = down.saturating_mul(products);
                    let (across, _) = wide_tiles_across((of_all, shape.n()), widths, most);
                    wide = across * widths.0;
                    let left = shape.n().saturating_sub(wide).div_ceil(widths.1);
                    let tiles = of_all.saturating_mul(across + left);
                    [tiles.min(most) * blocks, 1, 1]
                }
                // Persistent CTAs: as few clusters as take the fewest waves. Then neighbouring
                // tiles run together, and idle SMs leave their power to the others. At least one
                // cluster, on a device that is smaller than one.
                (Some(blocks), None) => {
                    let most = ((sms * together) as usize / blocks).max(1);
                    let tiles = across.saturating_mul(down).saturating_mul(products);
                    [tiles.div_ceil(tiles.div_ceil(most).max(1)) * blocks, 1, 1]
                }
                (None, _) => [across, down, products],
            };
            let grid = [across as u32, down as u32, layers as u32 * split_k];
            let dynamic_shared = match is_for_hopper {
                true => dynamic_shared(declared, grid, sms),
                false => declared,
            };
            let cluster = [cluster.unwrap_or(1), 1, split_k];
            let config = LaunchConfig { dynamic_shared, cluster, ..LaunchConfig::new(grid, block) };
            Panel { first_row, rows, first_product, products, wide, config }
        })
    }))
}

/// Dynamic shared memory of a launch on compute capability 9.0. If the grid has at most one block
/// an SM, a block takes more than half of the SM's shared memory. Then no SM gets a second block of
/// this launch, and none of the next launch, which begins early.
fn dynamic_shared(declared: u32, grid: [u32; 3], sms: u32) -> u32 {
    /// Of 228 KiB on compute capability 9.0.
    const MORE_THAN_HALF: u32 = 116 << 10;
    let blocks = grid.iter().map(|&count| u64::from(count)).product::<u64>();
    match blocks <= sms.into() {
        true => declared.max(MORE_THAN_HALF),
        false => declared,
    }
}
