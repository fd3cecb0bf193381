//! A tile's sums on their way to C: as those of [`gemm_wgmma`](super::super::gemm_wgmma), but 32 columns at a time in place of 64, so
//! that the ring has the rest of shared memory; and what cannot be relied on is computed again on the way.
//!
//! Most tiles can be relied on as they are, and are `alpha A B` in rows of whole pieces of sixteen bytes. These have a text of their
//! own ([`store_plain`]), so short that products may be under way meanwhile, which leave it forty registers ([`f16x3`](super::f16x3)).

use super::{
    collective::{
        accumulators::{ROWS, each_pair_of},
        epilogue::Epilogue,
        misaligned_store, packed_store,
        staged_epilogue::finish,
        vector::FOUR,
    },
    device::{warpgroup::Fragment, *},
    recompute::{COLS, NonZeros, PITCH, Recompute},
    uniform::{reload, warp_place},
    warp_roles::{SplitScheme, TileArguments},
};

/// The lane's number, through a shuffle: what follows from it would else be computed before the main loop, and take registers there.
/// All lanes of a warp come here.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn lane() -> usize {
    let lane = thread::thread_idx_x() % 32;
    warp::shuffle(warp::ALL, lane, lane) as usize
}

/// Is C `alpha A B` in rows of whole pieces of sixteen bytes? All lanes of a warp come here.
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

/// Writes the sums of a warpgroup, 64 x `N` elements of a C that [is plain](is_plain), the first of which is (product, row, col).
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
    // Eight rows of four pairs are put down at a time, and four rows of eight pieces are taken up.
    let put = base + lane / 4 * PITCH + lane % 4 * 2;
    let take = base + lane / 8 * PITCH + lane % 8 * FOUR;
    let first = (row as usize + warp * ROWS + lane / 8, col as usize + lane % 8 * FOUR);
    let mut epilogue = Epilogue::of_product(problem, product as usize, args.c, args.bias);
    let (alpha, at, between_rows) =
        (epilogue.alpha(), epilogue.place(first), epilogue.between_rows());
    let (rows, cols) = epilogue.left(first);
    // One by one, not in a loop: a register has no number that is computed.
    macro_rules! parts {
        ($($part:literal)*) => {$(
            if const { $part * COLS < N } {
                sums.for_each_pair_of::<COLS, $part>(|row, col, two| {
                    // Put so, all but the lane's part is known to the compiler.
                    let (row, col) = (row as usize % ROWS / 8 * 8, col as usize / 8 * 8);
                    args.staged.store64(put + row * PITCH + col, two);
                });
                warp::sync_warp(warp::ALL);
                for row in (0..ROWS).step_by(4) {
                    let four: [f32; FOUR] = args.staged.load128(take + row * PITCH);
                    let to = at + row * between_rows + $part * COLS;
                    let valid = row < rows && $part * COLS < cols;
                    epilogue.c().store_if(to, four.map(|sum| alpha * sum), valid);
                }
                warp::sync_warp(warp::ALL);
            }
        )*};
    }
    parts! { 0 1 2 3 4 5 }
}

/// Writes the sums of a warpgroup, 64 x `N` elements of C, the first of which is (product, row, col). Are those of this warp
/// `certain`? Others are computed again, but what zeros alone have made. (Where they are, C is not [plain](is_plain).)
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
    if certain && epilogue.is_scaled_in_rows() {
        let place = (base, lane());
        packed_store::scale(sums, &epilogue);
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
        // What follows from these would else be computed before the loop, and kept.
        let (problem, lane) = (&reload(args.problem), lane());
        each_pair_of::<COLS, N>(sums, part, |row, col, two| {
            // Put so, all but the lane's part is known to the compiler.
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
        finish::<_, COLS, _, _>(args.staged, (base, lane), &mut epilogue, first);
        warp::sync_warp(warp::ALL);
    }
}
