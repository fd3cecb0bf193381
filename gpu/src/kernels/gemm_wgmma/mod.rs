//! The general product of bf16 and of f16 on Hopper's tensor cores: sums of f32.
//!
//! An instruction of the tensor cores (`wgmma`) multiplies 64 rows of A by up to 256 columns of B, both in shared memory,
//! and adds to sums in the registers of four warps, a *warpgroup*. In the time in which it does 16 steps of k of 64 x 256,
//! 128 cycles, a multiprocessor must be brought what the next one multiplies. Hence:
//!
//! * **a tile** is 128 x 256 elements of C: two warpgroups compute 64 rows each and share the columns of B. What they read
//!   from the second-level cache is 48 KiB for 64 steps of k, and the tensor cores take 1024 cycles for it;
//! * **a third warpgroup** begins copies (one lane of it does), as far ahead as there are stages. It gives its
//!   registers up to the others, which have 128 sums a thread;
//! * **a product is always under way**: a warpgroup begins the next stage's before it waits for the one before to end, and
//!   only then says that that one's stage may be filled again;
//! * **a tile ends** for one warpgroup after the other ([`turns`]): of its last four stages, a whole ring, first the one multiplies,
//!   and while it writes its sums, the other. Of the last stage only those instructions are begun that have steps of k;
//! * **a block** goes on to its next tile ([`walk`]) with the ring of stages as it is: while sums are written
//!   ([`output`]), the next tile's first stages are filled;
//! * **warps that have nothing to do** may copy B's last columns meanwhile, whose tiles come last ([`beside`]);
//! * **two blocks of a cluster** may have tiles one below the other. Each copies half of their columns of B, to both
//!   (*multicast*): then 32 KiB a block and stage are read from the second-level cache, in place of 48. Of 192 columns,
//!   tiles for where those of 256 leave most of the last round of blocks idle, each copies half of the steps of k.
//!
//! ```text
//!   kernel               warpgroups   a warpgroup's part   stages of 64 steps   blocks of a cluster
//!   wgmma_half_128x256x64      2 + 1          64 x 256               4                  1
//!   wgmma_half_256x256x64_c2      2 + 1          64 x 256               4                  2
//!   wgmma_half_256x192x64_c2      2 + 1          64 x 192               4                  2
//! ```
//!
//! A multiprocessor has one block. Smaller tiles, for where there are fewer of these than multiprocessors, are another source
//! ([`parts`]), and so is one for rows that begin anywhere ([`gathered`]). [`entries`] lists the kernels: each has a C of its
//! operands' type, or of f32.
//!
//! Three constants are set when a kernel is loaded ([`simt::Constants`]): whether A and B are bf16 or f16 (`half`), and whether
//! A, and B, are K-major or MN-major (`a_mn_major`, `b_mn_major`). Names say it as BLAS does: `nn` of A and B row by row, `nt`,
//! `tn`, `tt`. The tensor cores read both ways, and only what copies the operands knows of it ([`operand`]).
//!
//! Row starts are 16-byte aligned, except in the kernels whose warps load A and B themselves, and for a K-major A beside an
//! N-major B in tiles of two blocks (`ua8`, `ua16`: [`shifted`]). k is positive: an empty matrix has no tensor map.
//!
//! The sums are rounded as the tensor cores do: 16 products and the sum before are added exactly to 25 bits below the
//! greatest, and what is below is cut off, also of the f32 that comes out (measured elsewhere: MMA-Sim).

pub mod beside;
mod entries;
mod gather;
mod gathered;
pub(crate) mod operand;
pub(crate) mod output;
mod parts;
pub(crate) mod shifted;
pub(crate) mod turns;
pub(crate) mod walk;
pub(crate) mod words;

use self::{
    beside::Beside,
    operand::{GROUP, Operand},
    turns::Turns,
    walk::Walk,
    words::InWords,
};
pub use self::{
    entries::*,
    gathered::*,
    shifted::{CLASSES, SECTOR_CLASSES},
};
use super::{
    device::{warpgroup::*, *},
    gemm::epilogue::Epilogue,
};
use crate::problem::Problem;

/// Warps of the warpgroup that copies which have nothing to do with it.
const BESIDE: u32 = 3;

/// Steps of k in a stage: 128 bytes, the widest span of the swizzle.
pub const DEPTH: usize = 64;

/// Tiles of `TILE_ROWS x TILE_COLS` elements of C, one after the other, by one warpgroup for each 64 rows and one more.
/// `BLOCKS` blocks of a cluster have tiles one below the other. `STAGED` is the rows of what is on its way to C: 16 for each
/// warp. The [warps](BESIDE) of a block that neither copy nor multiply do what is to be done `beside`, and the tiles that wait for that
/// are the last.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn multiply<
    A: Operand,
    B: Operand<Element = A::Element>,
    C: InWords,
    S: Scope,
    W: Beside,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const BLOCKS: usize,
    const STAGES: usize,
    const STAGED: usize,
>(
    problem: &Problem,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<C>, &In<C>),
    pipeline: &Pipeline<STAGES, S>,
    staged: &mut Shared<f32, STAGED, { output::PITCH }>,
    beside: &mut W,
) {
    const {
        assert!(TILE_ROWS.is_multiple_of(GROUP) && TILE_COLS.is_multiple_of(GROUP));
        assert!(STAGED == TILE_ROWS, "each row of the tile is that of one warp");
        assert!(A::TILE == TILE_ROWS, "a block copies its own rows");
        assert!(B::TILE * BLOCKS == TILE_COLS, "a cluster's blocks copy columns for each other");
    }
    let mut tiles = dynamic_shared![A::Element];
    let (len_a, len_b) = (TILE_ROWS * DEPTH, TILE_COLS * DEPTH);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let (group, warp) = (warp / 4, warp % 4);
    let groups = TILE_ROWS / GROUP;
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    // Rows of a tile are `STEP` apart: a class of rows has whole tiles, and the classes lie one below the other.
    let step = A::STEP as u32;
    let of_class = problem.m.div_ceil(step).next_multiple_of((TILE_ROWS * BLOCKS) as u32);
    let m = if A::STEP == 1 { problem.m } else { of_class * step.min(problem.m) };
    // First the columns of C that wait for nothing; behind these come those that wait for what is done beside.
    let first = Problem { m, n: problem.n - beside.last_columns(), ..*problem };
    let (mut start, mut walk) = (0, Walk::<TILE_ROWS, TILE_COLS, BLOCKS>::new(&first, rank));
    // A tile's first row among its class's, the class, the shift, and stages.
    let rows_of = |row: u32| {
        let (row, class) = if A::STEP == 1 { (row, 0) } else { (row % of_class, row / of_class) };
        let shift = A::shift(problem, class);
        (row, class, shift, (problem.k + shift).div_ceil(DEPTH as u32))
    };
    // Where the first steps of k must be cleared, the second stage's come before them, and are multiplied meanwhile. (Not the last
    // stage's, which may be few.)
    let turn_of_first = |shift: u32, stages: u32| u32::from(shift > 0 && stages > 2);

    // By a warp that does not prepare the ring meanwhile.
    if t == 32 {
        a.prefetch();
        b.prefetch();
    }
    if t == 0 {
        pipeline.init(groups as u32);
    }
    match BLOCKS {
        1 => thread::sync_threads(),
        _ => cluster::sync(),
    }
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if group == groups {
        // What is copied beside goes through registers. (Each way there are 3 x 168 in all: those that a launch begins with.)
        if W::IS_ANYTHING {
            give_registers::<88>();
        } else {
            give_registers::<40>();
        }
        if warp > 0 {
            beside.work();
            return;
        }
        let mut producer = pipeline.producer();
        loop {
            while let Some((product, row, col)) = walk.next() {
                let (row, class, shift, stages) = rows_of(row);
                let (row, col) = (row * step + class, start + col);
                let of_first = turn_of_first(shift, stages);
                for turn in 0..stages {
                    let at = producer.acquire_warp() * (len_a + len_b);
                    if warp::elect() {
                        let stage = if turn > of_first { turn } else { of_first - turn };
                        let p = stage * DEPTH as u32;
                        producer.announce(((len_a + len_b) * size_of::<A::Element>()) as u32);
                        a.load::<1>(&mut tiles, at, product, (row, p), producer.full());
                        let (at, place) = (at + len_a, (col, p.wrapping_sub(shift)));
                        b.load_part::<BLOCKS>(
                            &mut tiles,
                            at,
                            product,
                            place,
                            rank,
                            producer.full(),
                        );
                    }
                    producer.advance();
                }
            }
            if start > 0 || beside.last_columns() == 0 {
                break;
            }
            start = walk.go_on(beside.last_columns());
            beside.wait();
        }
        beside.leave();
        if BLOCKS > 1 {
            producer.drain_warp();
        }
        return;
    }

    if W::IS_ANYTHING {
        take_registers::<208>();
    } else {
        take_registers::<232>();
    }
    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    let turns = Turns::new(group, groups);
    loop {
        while let Some((product, row, col)) = walk.next() {
            let (row, class, shift, stages) = rows_of(row);
            let clear = |tiles: &mut DynamicShared<A::Element>, turn: u32, at: usize| {
                if A::STEP > 1 && shift > 0 && turn == turn_of_first(shift, stages) {
                    let together = named_barriers![3, 2; 128].at(group);
                    A::clear_before(tiles, at + group * GROUP * DEPTH, shift, together);
                }
            };
            let mut sums = Accumulators::<TILE_COLS>::zeroed();
            // Whose turn is the second's has read all but these: else the ring had no room for the last, which the first
            // waits for.
            let before = stages - stages.min(STAGES as u32);
            add_products::<_, A::Layout, B::Layout, S, TILE_ROWS, TILE_COLS, STAGES>(
                &mut tiles,
                (group, warp),
                (before, instructions_of::<A::Element>(0)),
                (&mut next, &mut read),
                &mut sums,
                clear,
                || (),
            );
            turns.begin(group);
            let sums = add_products::<_, A::Layout, B::Layout, S, TILE_ROWS, TILE_COLS, STAGES>(
                &mut tiles,
                (group, warp),
                (stages - before, instructions_of::<A::Element>(problem.k + shift)),
                (&mut next, &mut read),
                &mut sums,
                |tiles, turn, at| clear(tiles, before + turn, at),
                || turns.end(group),
            );
            let rows = (class as usize, A::STEP);
            let mut epilogue = Epilogue::of_rows(problem, product as usize, rows, c, bias);
            let first = (row as usize + group * GROUP, (start + col) as usize);
            output::store(sums, staged, &mut epilogue, first);
        }
        if start > 0 || beside.last_columns() == 0 {
            break;
        }
        start = walk.go_on(beside.last_columns());
    }
    turns.finish(group);
}

/// Instructions that the last stage of so many steps of k takes: behind these there are zeros. A whole one takes as many as that of
/// none.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn instructions_of<T: Factor>(steps: u32) -> u32 {
    let beyond = steps % DEPTH as u32;
    (if beyond == 0 { DEPTH as u32 } else { beyond }).div_ceil(const { T::STEP as u32 })
}

/// Adds the products of so many stages of the ring, of the last one's first so many instructions, for a warpgroup of that number: 64
/// rows of the tile. Before each stage's begin, there is something to be done with what is in shared memory there; all have ended when
/// this does; when the last has `begun` that is told. Of the ring's two turns the one is at what is begun next, the other at what has
/// been read: a stage behind.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn add_products<
    'a,
    T: Factor,
    A: Layout,
    B: Layout,
    S: Scope,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const STAGES: usize,
>(
    tiles: &mut DynamicShared<T>,
    (group, warp): (usize, usize),
    (stages, of_last): (u32, u32),
    (next, read): (&mut Consumer<STAGES, S>, &mut Consumer<STAGES, S>),
    sums: &'a mut Accumulators<TILE_COLS>,
    before: impl Fn(&mut DynamicShared<T>, u32, usize),
    begun: impl FnOnce(),
) -> &'a mut Fragment<TILE_COLS> {
    let release = |read: &mut Consumer<STAGES, S>| {
        // The tensor cores have read for all of the warpgroup.
        if warp == 0 {
            read.release_multiplied();
        }
        read.advance();
    };
    let release_one_before = |read: &mut Consumer<STAGES, S>| {
        wait::<1>();
        release(read);
    };
    let mut operands = |stage: u32, next: &Consumer<STAGES, S>| {
        let at = next.wait_warp() * ((TILE_ROWS + TILE_COLS) * DEPTH);
        before(tiles, stage, at);
        let rows = tiles.operand::<A>(at + group * GROUP * DEPTH);
        (rows, tiles.operand::<B>(at + TILE_ROWS * DEPTH))
    };
    // Is the last stage one of which not all is multiplied? Its instructions are a group each: how many they are is not known here.
    let is_less = stages > 0 && of_last < instructions_of::<T>(0);
    let whole = stages - u32::from(is_less);
    for stage in 0..whole {
        let (rows, cols) = operands(stage, next);
        sums.multiply_add(rows, cols);
        commit();
        next.advance();
        if stage > 0 {
            release_one_before(read);
        }
    }
    if is_less {
        let (rows, cols) = operands(whole, next);
        // Written out, so that where each instruction's operands begin is known before.
        let mut step = |number: u32| {
            sums.multiply_add_step(number, rows, cols);
            commit();
            if number == 0 && whole > 0 {
                release_one_before(read);
            }
        };
        const { assert!(DEPTH / T::STEP == 4, "so many instructions take a stage") };
        step(0);
        if of_last > 1 {
            step(1);
            if of_last > 2 {
                step(2);
            }
        }
        next.advance();
    }
    begun();
    let sums = sums.wait::<0>();
    if stages > 0 {
        release(read);
    }
    sums
}
