//! The epilogue. It is that of [`wgmma`](super::super::wgmma), with 32 staged columns in place of
//! 64, so that the pipeline has the rest of shared memory; and uncertain sums are recomputed on the
//! way.
//!
//! Most tiles have only certain sums, and C is `alpha A B` in 16-byte aligned rows. Those take a
//! way of their own ([`store_plain`]). It is so short that MMAs may be in flight meanwhile, which
//! leave it forty registers ([`f16x3`](super::f16x3)).

use super::{
    collective::{
        accumulators::{ROWS, each_pair_of},
        epilogue::Epilogue,
        misaligned_store,
        staged_epilogue::finish_elements,
        vector::FOUR,
    },
    device::{warpgroup::Fragment, *},
    recompute::{COLS, NonZeros, PITCH, Recompute},
    uniform::{reload, warp_place},
    warp_roles::{SplitScheme, TileArguments},
};

/// The lane's number, through a shuffle. Otherwise the compiler computes what follows from it
/// before the main loop, and keeps it in registers. All lanes of a warp call this.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn lane() -> usize {
    let lane = thread::thread_idx_x() % 32;
    warp::shuffle(warp::ALL, lane, lane) as usize
}

/// Whether C is `alpha A B` in 16-byte aligned rows. All lanes of a warp call this.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn is_plain<
    K: SplitScheme,
    S: Scope,
    const STAGES: usize,
    const GROUPS: usize,
    const STAGED: usize,
>(
    args: &mut TileArguments<K, S, STAGES, GROUPS, STAGED>,
    product: u32,
) -> bool {
    let problem = &reload(args.problem);
    let epilogue = Epilogue::of_product(problem, product as usize, args.c, args.bias);
    epilogue.is_scaled_in_rows() && epilogue.is_16_byte_aligned()
}

/// Stores a warpgroup's 64 x `N` sums to a C that [is plain](is_plain). The first is (product, row,
/// col).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store_plain<
    K: SplitScheme,
    S: Scope,
    const STAGES: usize,
    const GROUPS: usize,
    const STAGED: usize,
    const N: usize,
>(
    args: &mut TileArguments<K, S, STAGES, GROUPS, STAGED>,
    (product, row, col): (u32, u32, u32),
    sums: &Fragment<N>,
) {
    const { assert!(N <= 6 * COLS && COLS == 8 * FOUR) };
    let (problem, (group, warp), lane) = (&reload(args.problem), warp_place(), lane());
    let base = (4 * group + warp) * ROWS * PITCH;
    // Eight rows of four pairs are staged at a time, and four rows of eight pieces are read.
    let put = base + lane / 4 * PITCH + lane % 4 * 2;
    let take = base + lane / 8 * PITCH + lane % 8 * FOUR;
    let first = (row as usize + warp * ROWS + lane / 8, col as usize + lane % 8 * FOUR);
    let mut epilogue = Epilogue::of_product(problem, product as usize, args.c, args.bias);
    let (alpha, at, between_rows) =
        (epilogue.alpha(), epilogue.place(first), epilogue.between_rows());
    let (rows, cols) = epilogue.left(first);
    unrolled!(for part in [0 1 2 3 4 5] {
        if part * COLS < N {
            sums.for_each_pair_of::<COLS>(part, |row, col, two| {
                // In this form the compiler knows all but the lane's part.
                let (row, col) = (row as usize % ROWS / 8 * 8, col as usize / 8 * 8);
                args.staged.store64(put + row * PITCH + col, two);
            });
            warp::sync_warp(warp::ALL);
            for row in (0..ROWS).step_by(4) {
                let four: [f32; FOUR] = args.staged.load128(take + row * PITCH);
                let to = at + row * between_rows + part * COLS;
                let valid = row < rows && part * COLS < cols;
                epilogue.c().store_if(to, four.map(|sum| alpha * sum), valid);
            }
            warp::sync_warp(warp::ALL);
        }
    });
}

/// Stores a warpgroup's 64 x `N` sums to any C. The first is (product, row, col). If the sums of
/// this warp are not all `certain`, the uncertain ones are recomputed, except those of zeros alone.
/// (If they are, C is not [plain](is_plain).)
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<
    K: SplitScheme,
    S: Scope,
    const STAGES: usize,
    const GROUPS: usize,
    const STAGED: usize,
    const N: usize,
>(
    args: &mut TileArguments<K, S, STAGES, GROUPS, STAGED>,
    (product, row, col): (u32, u32, u32),
    sums: &mut Fragment<N>,
    (certain, non_zeros): (bool, NonZeros),
) {
    let (problem, (group, warp)) = (&reload(args.problem), warp_place());
    let (product, col) = (product as usize, col as usize);
    let base = (4 * group + warp) * ROWS * PITCH;
    let row = row as usize + warp * ROWS;
    let mut epilogue = Epilogue::of_product(problem, product, args.c, args.bias);
    if certain && epilogue.is_scaled_in_rows() && epilogue.alpha() == 1.0 {
        let place = (base, lane());
        misaligned_store::store_misaligned::<_, COLS, _, _, _>(
            sums,
            args.staged,
            place,
            &mut epilogue,
            (row, col),
        );
        return;
    }
    let parts = epilogue.left((row, col)).1.div_ceil(COLS).min(N / COLS);
    for part in 0..parts {
        // Reloaded, so that the compiler does not compute what follows before the loop, and keep
        // it.
        let (problem, lane) = (&reload(args.problem), lane());
        each_pair_of::<_, COLS, N>(sums, part, |row, col, two| {
            // In this form the compiler knows all but the lane's part.
            let row = lane / 4 + row as usize % ROWS / 8 * 8;
            let col = lane % 4 * 2 + col as usize / 8 * 8;
            args.staged.store64(base + row * PITCH + col, two);
        });
        warp::sync_warp(warp::ALL);
        let first = (row, col + part * COLS);
        if !certain {
            let again =
                Recompute { problem, originals: args.originals, product, first, base, lane };
            again.recompute_uncertain(args.staged, non_zeros.of_part(part, lane));
        }
        let mut epilogue = Epilogue::of_product(problem, product, args.c, args.bias);
        finish_elements::<_, COLS, _, _>(args.staged, (base, lane), &mut epilogue, first);
        warp::sync_warp(warp::ALL);
    }
}
