//! The general product of f32 on Hopper's tensor cores: factors of tf32, sums of f32.
//!
//! A tf32 is an f32 of whose fraction 10 bits are left. The accelerator that copies boxes rounds to it, so C's error is that
//! of factors with 11 bits, about 3e-4; and the tensor cores do half as many operations a cycle as of bf16. What makes this
//! kernel another than bf16's ([`gemm_wgmma`](super::gemm_wgmma), where tiles, stages, the producer and the walk are
//! explained) is that of tf32 the tensor cores read *K-major* operands alone: in shared memory, steps of k lie side by side.
//! A of k side by side does, and B, whose columns lie side by side, does not.
//!
//! But one operand may come from registers, which any thread can load from anywhere. That is the instruction's A, so what
//! is multiplied is
//!
//! ```text
//!   C^T = B^T A^T     n of C are the instruction's 64 rows, in registers ([`columns`])
//!                     m of C are its columns, up to 256, K-major in shared memory as they lie
//!
//!   kernel                      warpgroups   a warpgroup's part (m x n)   stages of 32 steps   blocks of a cluster
//!   wgmma_tf32_256x256x32_c2_nn    2 + 1           256 x 64                       4                    2
//!   wgmma_tf32_256x256x32_c2_ua8_nn    2 + 1           256 x 64                       4                    2
//!   wgmma_tf32_192x256x32_c2_nn    2 + 1           192 x 64                       5                    2
//!   wgmma_tf32_256x128x32_nn    2 + 1           256 x 64                       4                    1
//!   wgmma_tf32_128x128x32_nn    2 + 1           128 x 64                       6                    1
//!   wgmma_tf32_128x64x32_nn     1 + 1           128 x 64                       8                    1
//!   wgmma_tf32_128x64x32_ua8_nn     1 + 1           128 x 64                       8                    1
//! ```
//!
//! Of few rows or few columns of C smaller tiles take less: another text ([`narrow`]).
//!
//! * **A warpgroup has columns of C for itself**, 64 of them: what goes through registers is loaded once. Two such groups
//!   read the same rows of A. For 64 x 256 a stage is 512 cycles of the tensor cores, and eight loads of 64 bits a thread.
//! * **A stage is four products**, of 8 steps of k each, from four sets of registers: while three are under way, the fourth's
//!   are loaded. A set is loaded again when the product that reads it has been waited for.
//! * **Two blocks of a cluster have tiles beside each other.** Each copies half of their rows of A, to both: 32 KiB a block and stage
//!   are read from the second-level cache, in place of 48, of which that cache gives no more than 64 in the time. Without it, blocks
//!   that drift apart are soon a third slower.
//! * **The sums are C's transpose**, and are turned over on their way to C ([`output`]).
//!
//! Operands that lie otherwise are turned over before, or exchanged with each other, by the host. Rows begin at multiples of
//! sixteen bytes, but those of A in `ua8` begin anywhere ([`rows`]); and k is not 0.
//!
//! The sums are rounded as of bf16, 8 products at a time.

mod columns;
mod narrow;
mod output;
mod rows;

pub use self::rows::CLASSES;
use self::{
    columns::{Columns, SPAN},
    rows::{Anywhere, InOrder, Rows},
};
use super::{
    device::{warpgroup::*, *},
    gemm::epilogue::Epilogue,
    gemm_wgmma::walk::Walk,
};
use crate::problem::Problem;

/// Steps of k in a stage: 128 bytes, the widest span of the swizzle.
pub const DEPTH: usize = 32;

/// Steps of k of a product.
const STEP: usize = 8;

/// Columns of C of a warpgroup.
const GROUP: usize = 64;

/// Tiles of `TILE_ROWS x TILE_COLS` elements of C, one after the other, by one warpgroup for each 64 columns and one more.
/// `STAGED` is the rows of what is on its way to C: `ROWS` for each warpgroup, whose warps wait for each other at one of the
/// `GROUPS` barriers; all that multiply, so many threads, at another behind these. `BLOCKS` blocks of a cluster have tiles
/// beside each other, `ACROSS` columns in all, and each copies a `PART` of the rows.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn multiply<
    A: Rows,
    S: Scope,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const BLOCKS: usize,
    const PART: usize,
    const ACROSS: usize,
    const STAGES: usize,
    const ROWS: usize,
    const STAGED: usize,
    const GROUPS: u32,
    const MULTIPLYING: u32,
>(
    problem: &Problem,
    (a, b): (&A, &TensorMap<Tf32>),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES, S>,
    staged: &mut Shared<f32, STAGED, GROUP>,
    (barriers, together): (&NamedBarriers<1, GROUPS, 128>, NamedBarrier<MULTIPLYING>),
) {
    const {
        assert!(A::PART == PART && PART * BLOCKS == TILE_ROWS && ACROSS == TILE_COLS * BLOCKS);
        assert!(TILE_COLS == GROUPS as usize * GROUP && MULTIPLYING == GROUPS * 128);
        assert!(STAGED == GROUPS as usize * ROWS, "each warpgroup has a part");
    }
    let cols_of_b = b.boxes::<DEPTH, SPAN, { 4 * SPAN }>();
    let mut tiles = dynamic_shared![Tf32];
    let (len_a, len_b) = (TILE_ROWS * DEPTH, TILE_COLS * DEPTH);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let (group, warp) = (warp / 4, warp % 4);
    let groups = TILE_COLS / GROUP;
    // Rows of a tile are `STEP` apart: a class of rows has whole tiles, and the classes lie one below the other.
    let step = A::STEP as u32;
    let of_class = problem.m.div_ceil(step).next_multiple_of(TILE_ROWS as u32);
    let m = if A::STEP == 1 { problem.m } else { of_class * step.min(problem.m) };
    // Where a block's rows to copy begin, and its columns.
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    let (part, beside) = (rank * PART as u32, rank * TILE_COLS as u32);
    // A cluster has as many rows as the parts of its blocks one below the other.
    let mut walk = Walk::<PART, ACROSS, BLOCKS>::new(&Problem { m, ..*problem }, 0);
    // A tile's first row among its class's, the class, the shift, and stages.
    let rows_of = |row: u32| {
        let (row, class) = if A::STEP == 1 { (row, 0) } else { (row % of_class, row / of_class) };
        let shift = A::shift(problem, class);
        (row, class, shift, (problem.k + shift).div_ceil(DEPTH as u32))
    };

    if t == 0 {
        // Every warp reads columns of B for itself.
        pipeline.init(4 * groups as u32);
    }
    match BLOCKS {
        1 => thread::sync_threads(),
        _ => cluster::sync(),
    }
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if group == groups {
        // With one other warpgroup there are registers enough.
        if groups > 1 {
            give_registers::<40>();
        }
        if warp > 0 {
            return;
        }
        let mut producer = pipeline.producer();
        while let Some((product, row, col)) = walk.next() {
            let (row, class, shift, stages) = rows_of(row);
            for stage in 0..stages {
                let at = producer.acquire_warp() * (len_a + len_b);
                if warp::elect() {
                    let p = stage * DEPTH as u32;
                    producer.announce(((len_a + len_b) * size_of::<Tf32>()) as u32);
                    let (of_part, place) = (at + part as usize * DEPTH, (product, row + part, p));
                    a.load::<BLOCKS>(&mut tiles, of_part, place, class, producer.full());
                    for span in 0..TILE_COLS / SPAN {
                        let (at, col) =
                            (at + len_a + span * SPAN * DEPTH, col + beside + (span * SPAN) as u32);
                        let place = (product, p.wrapping_sub(shift), col);
                        tiles.load_box(at, &cols_of_b, place, producer.full());
                    }
                }
                producer.advance();
            }
        }
        if BLOCKS > 1 {
            producer.drain_warp();
        }
        return;
    }

    if groups > 1 {
        take_registers::<232>();
    }
    let columns = Columns::new(group * GROUP, warp, t % 32);
    // What is begun, and what has been read: a stage behind.
    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    while let Some((product, row, col)) = walk.next() {
        let (row, class, shift, stages) = rows_of(row);
        if A::STEP > 1 && shift > 0 {
            let at = next.wait_warp() * (len_a + len_b);
            for row in (t..TILE_ROWS).step_by(MULTIPLYING as usize) {
                A::clear_before(&mut tiles, at, row, shift);
            }
            // Of what these threads have written, before what their tensor cores read: all warpgroups read all rows.
            fence_proxy_async();
            together.sync();
        }
        let mut sums = Accumulators::<TILE_ROWS>::zeroed();
        for stage in 0..stages {
            let at = next.wait_warp() * (len_a + len_b);
            let rows = tiles.operand::<KMajor<DEPTH, 4>>(at);
            next.advance();

            // (No branch may stand between two products, or ptxas does not see that they read other registers, and lets
            // each begin after the one before has ended: C7513.)
            for step in 0..DEPTH / STEP {
                // All but the last three have ended, also the one whose registers are loaded again.
                wait::<3>();
                let eight = columns.load(&tiles, at + len_a, step);
                sums.multiply_add_registers(&[eight], rows, step);
                commit();
            }

            // And with these all of the stage before has been read.
            if stage > 0 {
                read.release_warp();
                read.advance();
            }
        }
        let sums = sums.wait::<0>();
        read.release_warp();
        read.advance();
        let first = (row as usize, (col + beside) as usize + group * GROUP);
        let rows = (class as usize, A::STEP);
        let mut epilogue = Epilogue::of_rows(problem, product as usize, rows, c, bias);
        output::store::<_, ROWS, _>(sums, staged, &mut epilogue, first, barriers.at(group));
    }
}

/// A kernel of [`multiply`]: a block's tile of C, of how many blocks of a cluster, warpgroups that multiply, stages of the ring, rows of
/// C on their way at a time, and A's [`rows`], with their maps. Shared memory holds the ring, sums on their way to C, and the ring's
/// barriers: two of eight bytes a stage.
macro_rules! wide {
    // A block alone waits at one barrier of its own, until the ring is there; those of a cluster at the cluster's.
    ($name:ident: $rows:tt x $cols:tt of 1, $($rest:tt)*) => {
        wide! { @ $name [barriers = 1] pipeline: $rows x $cols of 1, $($rest)* }
    };
    ($name:ident: $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        wide! { @ $name [cluster = ($blocks)] cluster_pipeline: $rows x $cols of $blocks, $($rest)* }
    };
    (
        @ $name:ident [$($together:tt)*] $ring:ident: $rows:tt x $cols:tt of $blocks:tt, $groups:tt of $stages:tt stages,
        by $staged:tt rows, $kind:ident of $($maps:tt)*
    ) => {
        #[doc = concat!(
            $rows, " x ", $cols, " elements a block's tile, blocks of a cluster: ", $blocks, "; A lies along k, in rows [`",
            stringify!($kind), "`], B along n."
        )]
        #[kernel(
            block = (128 * ($groups + 1)),
            $($together)*,
            dynamic_shared = $stages * DEPTH * ($rows + $cols) * size_of::<Tf32>(),
            shared = $groups * $staged * GROUP * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: $($maps)*,
            b: TensorMap<Tf32>,
            mut c: Out<f32>,
            bias: In<f32>,
        ) {
            const PART: usize = $rows / $blocks;
            const ACROSS: usize = $cols * $blocks;
            let operands = (&$kind::<PART>::new(&a), &b);
            let (out, ring) = ((&mut c, &bias), $ring![$stages]);
            let mut staged = shared![f32; $groups * $staged, GROUP];
            let barriers = named_barriers![1, $groups; 128];
            let together = named_barriers![1 + $groups, 1; 128 * $groups].at(0);
            multiply::<_, _, $rows, $cols, $blocks, PART, ACROSS, _, $staged, _, _, _>(
                &problem, operands, out, &ring, &mut staged, (&barriers, together),
            );
        }
    };
}

/// A kernel of [`narrow::multiply`], likewise.
macro_rules! narrow {
    ($name:ident: $rows:literal x $cols:literal, $stages:literal stages) => {
        #[doc = concat!(
            $rows, " x ", $cols, " elements a tile, whose k a cluster may split; A lies along k, B along n."
        )]
        #[kernel(
            block = (narrow::THREADS),
            dynamic_shared = $stages * DEPTH * ($rows + $cols) * size_of::<Tf32>(),
            shared = narrow::rows($rows) * $cols * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            barriers = 1,
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMap<Tf32>,
            b: TensorMap<Tf32>,
            mut c: Out<f32>,
            bias: In<f32>,
        ) {
            let (operands, out, ring) = ((&a, &b), (&mut c, &bias), pipeline![$stages]);
            let mut staged = shared![f32; narrow::rows($rows), $cols];
            let together = named_barriers![1, 1; narrow::MULTIPLYING];
            narrow::multiply::<$rows, $cols, _, _>(&problem, operands, out, &ring, &mut staged, together.at(0));
        }
    };
}

wide! { wgmma_tf32_256x256x32_c2_nn: 256 x 128 of 2, 2 of 4 stages, by 64 rows, InOrder of TensorMap<Tf32> }
wide! { wgmma_tf32_192x256x32_c2_nn: 192 x 128 of 2, 2 of 5 stages, by 32 rows, InOrder of TensorMap<Tf32> }
wide! { wgmma_tf32_256x128x32_nn: 256 x 128 of 1, 2 of 4 stages, by 64 rows, InOrder of TensorMap<Tf32> }
wide! { wgmma_tf32_128x128x32_nn: 128 x 128 of 1, 2 of 6 stages, by 64 rows, InOrder of TensorMap<Tf32> }
wide! { wgmma_tf32_128x64x32_nn: 128 x 64 of 1, 1 of 8 stages, by 64 rows, InOrder of TensorMap<Tf32> }

// (With 64 rows registers spill.)
wide! { wgmma_tf32_256x256x32_c2_ua8_nn: 256 x 128 of 2, 2 of 4 stages, by 32 rows, Anywhere of TensorMaps<Tf32, 8> }
wide! { wgmma_tf32_128x64x32_ua8_nn: 128 x 64 of 1, 1 of 8 stages, by 64 rows, Anywhere of TensorMaps<Tf32, 8> }

narrow! { wgmma_tf32_32x32x32_nn: 32 x 32, 20 stages }
narrow! { wgmma_tf32_64x32x32_nn: 64 x 32, 16 stages }
