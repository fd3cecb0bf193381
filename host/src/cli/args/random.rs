//! Flags of a benchmark of random shapes.

use std::{ops::Range, str::FromStr};

use clap::Args;

use super::{Verify, name_of, within};

/// The most shapes of a run: a record with three rows for each can be read back.
const MOST: u32 = 3000;

/// Random shapes instead of named sizes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Random {
    /// Time N random shapes, the same number of each class, and sum up ratio_low: --vs cublas
    /// --random 200 --seed 7
    ///
    /// ratio_low is the lower end of the 95 % interval of the baseline's time over ours. Shown are
    /// its geometric mean (above 2 it counts as 2), the share at or above 0.99, the fifth
    /// percentile and the worst, by class and by half. The classes, with the ranges of their sizes,
    /// whose logarithms are uniform:
    ///
    /// square: m = n = k from 64 to 8192.
    ///
    /// skinny: m or n from 1 to 64, the other and k from 256 to 16384.
    ///
    /// long-k: m and n from 1 to 256, k from 10000 to 10^7.
    ///
    /// tall: m from 16384 to 2^20, n and k from 4 to 1024.
    ///
    /// batched: 16 to 8192 products, m, n and k from 4 to 256.
    ///
    /// transformer: queries, keys and values, the projection, up or down, of 16 to 16384 tokens and
    /// a width from 512 to 8192; or of 8 to 128 heads of 32 to 128 the scores or what they weigh,
    /// of 128 to 4096 tokens.
    ///
    /// convolution (im2col): m is 1 to 64 images of a side squared from 7 to 224, n 16 to 512
    /// filters, k 3 to 512 channels times 1, 9, 25 or 49.
    ///
    /// Half of each class is aligned: m, n, k and all leading dimensions are multiples of 16 bytes.
    /// In the other half a leading dimension is not. Each of A and B is row-major or column-major,
    /// all matrices are dense. A shape of more than 2 10^12 operations or 2^29 elements is drawn
    /// again. The first shapes of a seed are the same for every N. On the CPU device the sizes are
    /// cube roots of these.
    ///
    /// Every third shape has an epilogue, drawn as well: a bias, an activation, alpha = 0.5, beta =
    /// 1, one or several.
    #[arg(long = "random", value_name = "N", value_parser = within::<1, MOST>, allow_negative_numbers = true)]
    #[arg(requires = "vs", conflicts_with_all = ["sizes", "kernels", "trans", "bias", "activation", "alpha", "beta", "scales", "sustained", "from"])]
    pub(crate) count: Option<u32>,

    /// Only part I of P of the random shapes; --from joins the parts
    #[arg(long, value_name = "I/P", requires = "count", allow_negative_numbers = true)]
    pub(crate) part: Option<Part>,

    /// Time all kernels at each shape, with each split of k, instead of auto: those predicted to
    /// take at most 2.5 times as long as the best, and 5 % of the others at random. The model's
    /// figures are fitted to such records
    #[arg(long, requires = "count")]
    pub(crate) all_candidates: bool,

    /// Draw the cube root of each size: to try the command in seconds, not to measure
    #[arg(long, requires = "count")]
    pub(crate) small: bool,
}

impl Random {
    /// The number of shapes. `None` if sizes are named. Contradicting flags are refused.
    pub(crate) fn shapes(&self, verify: Verify) -> host::Result<Option<usize>> {
        let Some(count) = self.count else { return Ok(None) };
        if verify == Verify::Full {
            let limit = "must be sample or none with --random";
            return Err(host::Error::argument("--verify", name_of(&verify), limit));
        }
        if let Some(Part { index, of }) = self.part
            && of > count
        {
            let limit = format!("must be of at most {count} parts: --random {count}");
            return Err(host::Error::argument("--part", format!("{index}/{of}"), limit));
        }
        Ok(Some(count as usize))
    }
}

/// One of several parts of about equal size, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    index: u32,
    of: u32,
}

impl Part {
    /// The shapes of this part, among `count`.
    pub(crate) fn of(self, count: usize) -> Range<usize> {
        let end = |index: u32| count * index as usize / self.of as usize;
        end(self.index - 1)..end(self.index)
    }
}

impl FromStr for Part {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(index, of)| {
            Some(Part { index: index.trim().parse().ok()?, of: of.trim().parse().ok()? })
        });
        numbers
            .filter(|part| (1..=part.of).contains(&part.index))
            .ok_or("must be I/P: part I, from 1 to P, of P parts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_of_it_and_nothing_twice() {
        for (count, of) in [(200, 4), (10, 3), (3, 3), (7, 1)] {
            let parts = (1..=of).map(|index| Part { index, of }.of(count));
            let all = parts.flatten().collect::<Vec<_>>();
            assert_eq!(all, (0..count).collect::<Vec<_>>(), "{count} {of}");
        }
        assert_eq!("2/4".parse(), Ok(Part { index: 2, of: 4 }));
        for bad in ["", "2", "0/4", "5/4", "1/0", "-1/2", "a/b", "1/2/3"] {
            assert!(bad.parse::<Part>().is_err(), "{bad}");
        }
    }
}
