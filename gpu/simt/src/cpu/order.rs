//! The order of blocks in a launch, and of the threads of a block between two waits.

use std::{fmt, str::FromStr};

/// An order of blocks, warps and lanes. CUDA promises none, so a kernel must be correct in every
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Ascending.
    #[default]
    Forward,
    /// Descending.
    Reverse,
    /// A random order, by its seed.
    Random(u64),
}

/// As [`FromStr`] reads it.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Order::Forward => write!(f, "forward"),
            Order::Reverse => write!(f, "reverse"),
            Order::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

impl FromStr for Order {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seed = text.strip_prefix("random:").map(str::parse);
        match (text, seed) {
            ("forward", _) => Ok(Order::Forward),
            ("reverse", _) => Ok(Order::Reverse),
            (_, Some(Ok(seed))) => Ok(Order::Random(seed)),
            _ => Err("must be forward, reverse, or random:SEED with a SEED from 0 to 2^64 - 1"),
        }
    }
}

impl Order {
    /// The number of the `number`th block to be run, of `blocks`.
    pub(super) fn block(self, number: u64, blocks: u64) -> u64 {
        match self {
            Order::Forward => number,
            Order::Reverse => blocks - 1 - number,
            // A random block comes first, and the others follow in turn, which keeps neighbours
            // together.
            Order::Random(seed) => (number + Random(seed).next() % blocks) % blocks,
        }
    }

    /// The order within a block. It depends on the block's number, and neither on the worker nor on
    /// time.
    pub(super) fn of_block(self, number: u64) -> BlockOrder {
        match self {
            Order::Forward => BlockOrder::Forward,
            Order::Reverse => BlockOrder::Reverse,
            Order::Random(seed) => {
                BlockOrder::Random(Random(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            }
        }
    }
}

/// The order within one block.
pub(super) enum BlockOrder {
    Forward,
    Reverse,
    Random(Random),
}

impl BlockOrder {
    /// Appends the order in which threads start; nothing for the ascending order.
    pub(super) fn threads(&mut self, threads: u32, order: &mut Vec<u32>) {
        if !matches!(self, BlockOrder::Forward) {
            order.extend(0..threads);
            self.arrange(order);
        }
    }

    /// Orders the fibers that are to be resumed, which are in the order of the last round.
    pub(super) fn fibers(&mut self, fibers: &mut [usize]) {
        // A descending order is so since the first round.
        if let BlockOrder::Random(_) = self {
            self.arrange(fibers);
        }
    }

    /// Which of the asynchronous operations in flight is carried out next. `None` where none is
    /// due; with `must` one is, if there is any.
    pub(super) fn copy(&mut self, copies: usize, must: bool) -> Option<usize> {
        match self {
            // As late as possible, which finds most bugs.
            _ if copies == 0 => None,
            BlockOrder::Forward => must.then_some(0),
            BlockOrder::Reverse => must.then_some(copies - 1),
            BlockOrder::Random(random) => {
                let comes = must || random.next() % 4 == 0;
                comes.then(|| (random.next() % copies as u64) as usize)
            }
        }
    }

    fn arrange<T>(&mut self, items: &mut [T]) {
        match self {
            BlockOrder::Forward => {}
            BlockOrder::Reverse => items.reverse(),
            BlockOrder::Random(random) => {
                // Fisher-Yates shuffle.
                for last in (1..items.len()).rev() {
                    items.swap(last, (random.next() % (last as u64 + 1)) as usize);
                }
            }
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood): small, and every seed is good.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
