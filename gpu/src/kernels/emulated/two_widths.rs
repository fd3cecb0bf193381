//! Tiles of two widths in one launch. Most columns of C are in wide tiles, and the last ones in
//! narrow tiles, so that all clusters end at about the same time.
//!
//! ```text
//!   C, 4096 x 4096, by 66 clusters:   18 x 192 columns + 5 x 128      288 wide tiles of 1.5 and 80 narrow ones of 1: time 8
//!                                     22 x 192                        352 wide tiles: 6 waves of 1.5 are 9
//!                                     32 x 128                        512 narrow tiles: 8 waves, which draw more power
//! ```
//!
//! Cluster i computes wide tiles i, i + number of clusters, and so on. If some clusters have one
//! wide tile less than others, they first compute two narrow tiles each, which take a third more
//! than one wide tile. All clusters then share the rest. The host says how many columns are in wide
//! tiles ([`wide_tiles_across`]), and the kernel finds its own tiles.

use super::{collective::tile_scheduler::TileScheduler, device::*};
use crate::params::GemmParams;

/// The tiles of one width that a block has still to compute.
///
/// Everything is recomputed from the parameters each time. If it were kept, it would take
/// registers, and so would an optional tile.
pub trait Tiles: Copy {
    /// Starts at the first tile.
    fn new(problem: &GemmParams) -> Self;

    /// Whether no tile is left.
    fn are_done(self, problem: &GemmParams) -> bool;

    /// The tile's product, first row and first column.
    fn place(self, problem: &GemmParams) -> (u32, u32, u32);

    /// Advances to the next tile.
    fn advance(&mut self, problem: &GemmParams);

    /// If clusters may keep pace: the largest number of tiles that a cluster has.
    fn rounds(self, problem: &GemmParams) -> Option<u32>;
}

/// All tiles of C, of one width.
#[derive(Clone, Copy)]
pub struct OneWidth<const ROWS: usize, const COLS: usize, const BLOCKS: usize>(u32);

/// The wide tiles of two widths.
#[derive(Clone, Copy)]
pub struct Wide<const ROWS: usize, const COLS: usize, const BLOCKS: usize>(
    OneWidth<ROWS, COLS, BLOCKS>,
);

/// The narrow tiles, of `NARROW` columns, after wide ones of `COLS`.
#[derive(Clone, Copy)]
pub struct Narrow<const ROWS: usize, const COLS: usize, const NARROW: usize, const BLOCKS: usize>(
    u32,
);

/// The block's rank in its cluster.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn rank<const BLOCKS: usize>() -> u32 {
    if BLOCKS == 1 { 0 } else { cluster::block_rank() }
}

impl<const ROWS: usize, const COLS: usize, const BLOCKS: usize> Tiles
    for OneWidth<ROWS, COLS, BLOCKS>
{
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn new(_: &GemmParams) -> Self {
        OneWidth(cluster::numbers().0)
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn are_done(self, problem: &GemmParams) -> bool {
        self.0 >= TileScheduler::<ROWS, COLS, BLOCKS>::new(problem, 0).tiles()
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn place(self, problem: &GemmParams) -> (u32, u32, u32) {
        TileScheduler::<ROWS, COLS, BLOCKS>::new(problem, rank::<BLOCKS>()).place(self.0)
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn advance(&mut self, _: &GemmParams) {
        self.0 += cluster::numbers().1;
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn rounds(self, problem: &GemmParams) -> Option<u32> {
        let tiles = TileScheduler::<ROWS, COLS, BLOCKS>::new(problem, 0).tiles();
        // Not zero. The compiler cannot know that.
        Some(tiles.div_ceil(cluster::numbers().1.max(1)))
    }
}

/// The same product with C's wide columns only.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn of_wide(problem: &GemmParams) -> GemmParams {
    GemmParams { n: problem.wide_cols, ..*problem }
}

impl<const ROWS: usize, const COLS: usize, const BLOCKS: usize> Tiles for Wide<ROWS, COLS, BLOCKS> {
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn new(problem: &GemmParams) -> Self {
        Wide(OneWidth::new(problem))
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn are_done(self, problem: &GemmParams) -> bool {
        self.0.are_done(&of_wide(problem))
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn place(self, problem: &GemmParams) -> (u32, u32, u32) {
        self.0.place(&of_wide(problem))
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn advance(&mut self, problem: &GemmParams) {
        self.0.advance(problem);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn rounds(self, problem: &GemmParams) -> Option<u32> {
        self.0.rounds(&of_wide(problem))
    }
}

impl<const ROWS: usize, const COLS: usize, const NARROW: usize, const BLOCKS: usize>
    Narrow<ROWS, COLS, NARROW, BLOCKS>
{
    /// The scheduler of the columns that wide tiles leave.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn scheduler(problem: &GemmParams, rank: u32) -> TileScheduler<ROWS, NARROW, BLOCKS> {
        let left = problem.n.saturating_sub(problem.wide_cols);
        TileScheduler::new(&GemmParams { n: left, ..*problem }, rank)
    }
}

impl<const ROWS: usize, const COLS: usize, const NARROW: usize, const BLOCKS: usize> Tiles
    for Narrow<ROWS, COLS, NARROW, BLOCKS>
{
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn new(problem: &GemmParams) -> Self {
        Narrow(NarrowOrder::of::<ROWS, COLS, BLOCKS>(problem).first())
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn are_done(self, problem: &GemmParams) -> bool {
        self.0 >= Self::scheduler(problem, 0).tiles()
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn place(self, problem: &GemmParams) -> (u32, u32, u32) {
        let (product, row, col) = Self::scheduler(problem, rank::<BLOCKS>()).place(self.0);
        (product, row, problem.wide_cols + col)
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn advance(&mut self, problem: &GemmParams) {
        self.0 = NarrowOrder::of::<ROWS, COLS, BLOCKS>(problem).after(self.0);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn rounds(self, _: &GemmParams) -> Option<u32> {
        None
    }
}

/// The order of narrow tiles.
#[derive(Clone, Copy)]
struct NarrowOrder {
    own: u32,
    clusters: u32,
    /// Clusters that have one wide tile more than the others. 0 if all have the same number.
    ahead: u32,
}

impl NarrowOrder {
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn of<const ROWS: usize, const COLS: usize, const BLOCKS: usize>(
        problem: &GemmParams,
    ) -> NarrowOrder {
        let (own, clusters) = cluster::numbers();
        let wide = TileScheduler::<ROWS, COLS, BLOCKS>::new(&of_wide(problem), 0);
        // Not zero. The compiler cannot know that.
        NarrowOrder { own, clusters, ahead: wide.tiles() % clusters.max(1) }
    }

    /// Clusters with one wide tile less, and the narrow tiles that they compute first.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn lagging(self) -> (u32, u32) {
        let lagging = if self.ahead == 0 { 0 } else { self.clusters - self.ahead };
        (lagging, 2 * lagging)
    }

    /// The first narrow tile.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn first(self) -> u32 {
        let (lagging, first) = self.lagging();
        match lagging > 0 && self.own >= self.ahead {
            true => self.own - self.ahead,
            false => first + self.own,
        }
    }

    /// The narrow tile after `number`.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn after(self, number: u32) -> u32 {
        let (lagging, first) = self.lagging();
        match number {
            number if number >= first => number + self.clusters,
            number if number + lagging < first => number + lagging,
            _ => first + self.own,
        }
    }
}

/// The number of wide tiles across a C of `n` columns and `down` tiles down (in all products), and
/// the time that this takes, in halves of a narrow tile. A wide tile has `cols` columns and takes
/// three halves of the time of a narrow one, which has `narrow` columns.
///
/// The last cluster should end as early as possible. Among equal choices, the one with the least
/// work wins, and then the one with the most wide tiles.
pub fn wide_tiles_across(
    (down, n): (usize, usize),
    (cols, narrow): (usize, usize),
    clusters: usize,
) -> (usize, usize) {
    let cost = |across: usize| {
        let left = n.saturating_sub(across * cols);
        let (wide, narrow) = (down * across, down * left.div_ceil(narrow));
        (latest(wide, narrow, clusters.max(1)), 3 * wide + 2 * narrow, usize::MAX - across)
    };
    let most = n.div_ceil(cols);
    let (end, _, across) = (0..=most).map(cost).min().unwrap_or_default();
    (usize::MAX - across, end)
}

/// The time when the last cluster ends.
fn latest(wide: usize, narrow: usize, clusters: usize) -> usize {
    let (each, ahead) = (wide / clusters, wide % clusters);
    if ahead == 0 {
        return 3 * each + 2 * narrow.div_ceil(clusters);
    }
    let lagging = clusters - ahead;
    let first = narrow.min(2 * lagging);
    let rest = narrow - first;
    // The first cluster with one wide tile more, and the first of the others, have the most to do.
    let of_ahead = 3 * each + 3 + 2 * rest.div_ceil(clusters);
    let of_rest = rest / clusters + usize::from(ahead < rest % clusters);
    of_ahead.max(3 * each + 2 * (first.div_ceil(lagging) + of_rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The narrow tiles of each cluster, and when it ends.
    fn shared(wide: u32, narrow: u32, clusters: u32) -> Vec<(Vec<u32>, usize)> {
        let of = |own: u32| {
            let turn = NarrowOrder { own, clusters, ahead: wide % clusters };
            let numbers =
                core::iter::successors(Some(turn.first()), |&last| Some(turn.after(last)));
            let own_wide = (own..wide).step_by(clusters as usize).count();
            let numbers = numbers.take_while(|&number| number < narrow).collect::<Vec<_>>();
            let end = 3 * own_wide + 2 * numbers.len();
            (numbers, end)
        };
        (0..clusters).map(of).collect()
    }

    #[test]
    fn each_narrow_tile_is_one_clusters_and_the_last_ends_when_it_is_said_to() {
        for clusters in [1, 2, 3, 7, 66] {
            for wide in 0..3 * clusters {
                for narrow in 0..4 * clusters {
                    let shared = shared(wide, narrow, clusters);
                    let mut all =
                        shared.iter().flat_map(|(numbers, _)| numbers.clone()).collect::<Vec<_>>();
                    all.sort_unstable();
                    assert_eq!(all, (0..narrow).collect::<Vec<_>>(), "{clusters} {wide} {narrow}");
                    let last = shared.iter().map(|(_, end)| *end).max().unwrap();
                    let said = latest(wide as usize, narrow as usize, clusters as usize);
                    assert_eq!(last, said, "{clusters} {wide} {narrow}");
                }
            }
        }
    }

    #[test]
    fn rounds_come_out_even() {
        let across = |size: usize| wide_tiles_across((size / 256, size), (192, 128), 66);
        // Time 8, where wide tiles alone take 9.
        assert_eq!(across(4096), (18, 16));
        assert_eq!(across(2048), (0, 4));
        // One cluster: the least work.
        let alone = |n: usize| wide_tiles_across((1, n), (192, 128), 1);
        assert_eq!([70, 128, 192, 256, 300, 384].map(|n| alone(n).0), [0, 0, 1, 0, 1, 2]);
    }
}
