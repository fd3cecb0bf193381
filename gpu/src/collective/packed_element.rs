//! Elements of C packed into 32-bit words.

use super::{
    accumulators::each_pair_of,
    activation::half::smooth,
    device::{
        warpgroup::{Fragment, WgmmaSum},
        *,
    },
    stored::Stored,
    vector::FOUR,
};

/// An element of C that is staged in packed words.
pub trait PackedStore: Stored<Real: WgmmaSum> {
    /// Elements in a word.
    const PER_WORD: usize;

    /// Calls `act` for each pair of neighbouring accumulators of this thread in the `part`th
    /// `WORDS` words of a row, with row and column of the first. Columns are counted from the start
    /// of the part.
    fn each_pair_of<const WORDS: usize, const N: usize>(
        sums: &Fragment<N, Self::Real>,
        part: usize,
        act: impl FnMut(u32, u32, [Self::Real; 2]),
    );

    /// Rounds two neighbours of a row, and stages them from a word on.
    fn stage<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<Self::Real, ROWS, PITCH>,
        at: usize,
        two: [Self::Real; 2],
    );

    /// The two elements of a staged row from a word on.
    fn staged_two<const ROWS: usize, const PITCH: usize>(
        staged: &Shared<Self::Real, ROWS, PITCH>,
        at: usize,
    ) -> [Self::Real; 2];

    /// The elements from `index` on as four words if `valid`, otherwise zeros: sixteen bytes at a
    /// multiple of sixteen. It has no branch.
    fn load_words(view: &Out<Self>, index: usize, valid: bool) -> [Self::Real; FOUR];

    /// Replaces each two neighbouring accumulators of the `part`th `WORDS` words of a row by
    /// `with(row, column of the first, both)`. Columns are counted from the start of the part. On a
    /// GPU `part` is a number that the compiler knows.
    fn map_pairs_of<const WORDS: usize, const N: usize>(
        sums: &mut Fragment<N, Self::Real>,
        part: usize,
        with: impl FnMut(u32, u32, [Self::Real; 2]) -> [Self::Real; 2],
    );

    /// A smooth activation of a sum, where it is: of 16-bit elements alone.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn smooth(_kind: u32, sum: Self::Real) -> Self::Real {
        sum
    }

    /// Like [`stage`](Self::stage), but the first word may be odd.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn stage_misaligned<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<Self::Real, ROWS, PITCH>,
        at: usize,
        two: [Self::Real; 2],
    ) {
        Self::stage(staged, at, two);
    }

    /// The four `words`, or with `is_half` the four words that start half a word earlier. The first
    /// half word of these is from the word `before`.
    fn shifted(
        before: impl FnOnce() -> Self::Real,
        words: [Self::Real; FOUR],
        is_half: bool,
    ) -> [Self::Real; FOUR];

    /// Stores the elements of four words if `valid`: sixteen bytes at a multiple of sixteen.
    fn store_words(view: &mut Out<Self>, index: usize, words: [Self::Real; FOUR], valid: bool);

    /// An element of a word.
    fn element(word: Self::Real, number: usize) -> Self;
}

macro_rules! words {
    ($($word:ident)*) => {$(
        impl PackedStore for $word {
            const PER_WORD: usize = 1;

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            fn each_pair_of<const WORDS: usize, const N: usize>(
                sums: &Fragment<N, $word>,
                part: usize,
                act: impl FnMut(u32, u32, [$word; 2]),
            ) {
                each_pair_of::<_, WORDS, N>(sums, part, act);
            }

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            #[track_caller]
            fn stage<const ROWS: usize, const PITCH: usize>(
                staged: &mut Shared<$word, ROWS, PITCH>,
                at: usize,
                two: [$word; 2],
            ) {
                staged.store64(at, two);
            }

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            #[track_caller]
            fn staged_two<const ROWS: usize, const PITCH: usize>(
                staged: &Shared<$word, ROWS, PITCH>,
                at: usize,
            ) -> [$word; 2] {
                staged.load64_in_order(at)
            }

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            #[track_caller]
            fn load_words(view: &Out<$word>, index: usize, valid: bool) -> [$word; FOUR] {
                view.load128_if(index, valid)
            }

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            fn map_pairs_of<const WORDS: usize, const N: usize>(
                sums: &mut Fragment<N, $word>,
                part: usize,
                with: impl FnMut(u32, u32, [$word; 2]) -> [$word; 2],
            ) {
                sums.map_pairs_of::<WORDS>(part, with);
            }

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            #[track_caller]
            fn stage_misaligned<const ROWS: usize, const PITCH: usize>(
                staged: &mut Shared<$word, ROWS, PITCH>,
                at: usize,
                two: [$word; 2],
            ) {
                staged[at] = two[0];
                staged[at + 1] = two[1];
            }

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            fn shifted(_: impl FnOnce() -> $word, words: [$word; FOUR], _: bool) -> [$word; FOUR] {
                words
            }

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            #[track_caller]
            fn store_words(view: &mut Out<$word>, index: usize, words: [$word; FOUR], valid: bool) {
                view.store_if(index, words, valid);
            }

            #[cfg_attr(target_arch = "nvptx64", inline(always))]
            fn element(word: $word, _: usize) -> $word {
                word
            }
        }
    )*};
}

words! { f32 i32 }

/// A word of two 16-bit values; the first is the lower half.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn packed([first, second]: [u16; 2]) -> u32 {
    u32::from(first) | u32::from(second) << 16
}

impl PackedStore for Half {
    const PER_WORD: usize = 2;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn each_pair_of<const WORDS: usize, const N: usize>(
        sums: &Fragment<N>,
        part: usize,
        mut act: impl FnMut(u32, u32, [f32; 2]),
    ) {
        const { assert!(WORDS == 64, "two parts of 64 columns each") };
        match part {
            0 => {
                sums.for_each_pair_of::<64>(0, &mut act);
                sums.for_each_pair_of::<64>(1, |row, col, two| act(row, 64 + col, two));
            }
            _ => {
                sums.for_each_pair_of::<64>(2, &mut act);
                sums.for_each_pair_of::<64>(3, |row, col, two| act(row, 64 + col, two));
            }
        }
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn stage<const ROWS: usize, const PITCH: usize>(
        staged: &mut Shared<f32, ROWS, PITCH>,
        at: usize,
        two: [f32; 2],
    ) {
        staged[at] = f32::from_bits(packed(Half::from_two_f32(two).map(Half::to_bits)));
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn staged_two<const ROWS: usize, const PITCH: usize>(
        staged: &Shared<f32, ROWS, PITCH>,
        at: usize,
    ) -> [f32; 2] {
        let word = staged[at];
        [0, 1].map(|number| Half::element(word, number).to_f32())
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load_words(view: &Out<Half>, index: usize, valid: bool) -> [f32; FOUR] {
        view.load_words_if(index, valid).map(f32::from_bits)
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn map_pairs_of<const WORDS: usize, const N: usize>(
        sums: &mut Fragment<N>,
        part: usize,
        with: impl FnMut(u32, u32, [f32; 2]) -> [f32; 2],
    ) {
        const { assert!(WORDS == 64, "128 columns") };
        sums.map_pairs_of::<128>(part, with);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn smooth(kind: u32, sum: f32) -> f32 {
        smooth(kind, sum)
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn shifted(before: impl FnOnce() -> f32, words: [f32; FOUR], is_half: bool) -> [f32; FOUR] {
        let by = 16 * u32::from(is_half);
        let mut before = before().to_bits();
        words.map(|word| {
            let both = u64::from(word.to_bits()) << 32 | u64::from(before);
            before = word.to_bits();
            f32::from_bits((both << by >> 32) as u32)
        })
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn store_words(view: &mut Out<Half>, index: usize, words: [f32; FOUR], valid: bool) {
        let words = words.map(f32::to_bits);
        let eight: [Half; 2 * FOUR] =
            core::array::from_fn(|i| Half::from_bits((words[i / 2] >> (16 * (i % 2))) as u16));
        view.store_if(index, eight, valid);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn element(word: f32, number: usize) -> Half {
        Half::from_bits((word.to_bits() >> (16 * number)) as u16)
    }
}

/// Words of a row that are staged at a time, for `N` columns.
pub const fn staged_words<C: PackedStore, const WORDS: usize, const N: usize>() -> usize {
    if N / C::PER_WORD < WORDS { N / C::PER_WORD } else { WORDS }
}

/// Rows that a warp reads at a time.
pub const fn rows_at_once_of(words: usize) -> usize {
    32 * FOUR / words
}
