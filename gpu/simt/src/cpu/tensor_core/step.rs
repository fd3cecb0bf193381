//! One step of a product, for one thread's part of D.

use super::{
    exact,
    format::Format,
    fragment::{self, ROWS, THREADS},
    operand::{Block, LANES, OperandB},
    truncating,
};

/// How a step adds its products to D.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulation {
    /// One after the other along K, each by a fused multiply-add: the fastest here, but no
    /// hardware's order.
    #[default]
    Fma,
    /// All at once, and rounded once to the nearest: as near as an `f32` can be.
    Exact,
    /// As Hopper does, to the bit if MMA-Sim is right: [`truncating`].
    Truncating,
}

/// The operands of a step as the tensor core reads them, and how it adds.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a, const K: usize> {
    /// What the operands were decoded from.
    pub format: Format,
    /// How products are added.
    pub accumulation: Accumulation,
    /// The rows of A.
    pub a: &'a [[f32; K]; ROWS],
    /// All of B.
    pub b: &'a OperandB<K>,
}

impl<const K: usize> Step<'_, K> {
    /// Adds A B to `d`, the N / 2 elements that [`fragment::accumulator`] gives to thread `thread`.
    ///
    /// # Panics
    /// If the sizes are not those of an instruction.
    pub fn multiply_accumulate(&self, thread: usize, d: &mut [f32]) {
        assert_eq!(K, self.format.step(), "a step of {:?}", self.format);
        assert_eq!(d.len(), self.b.columns() / 2, "a thread's part of D");
        assert!(thread < THREADS, "thread {thread} of a warpgroup");

        // Both versions give the same bits.
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            // SAFETY: this processor has the features.
            return unsafe { self.tuned(thread, d) };
        }
        self.add(thread, d);
    }

    /// # Safety
    /// 1. The processor has these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tuned(&self, thread: usize, d: &mut [f32]) {
        self.add(thread, d);
    }

    #[inline(always)]
    fn add(&self, thread: usize, d: &mut [f32]) {
        let (row, _) = fragment::accumulator(thread, 0);
        let rows = [&self.a[row], &self.a[row + 8]];
        for (d, b) in d.chunks_mut(2 * LANES).zip(self.b.of_thread(thread)) {
            let mut block = [0.0; 2 * LANES];
            block[..d.len()].copy_from_slice(d);
            let sums = by_rows(block);
            let sums = match self.accumulation {
                Accumulation::Fma => [fma(rows[0], b, sums[0]), fma(rows[1], b, sums[1])],
                Accumulation::Exact => {
                    [exact::add(rows[0], b, sums[0]), exact::add(rows[1], b, sums[1])]
                }
                Accumulation::Truncating => truncating::add(self.format, rows, b, sums),
            };
            d.copy_from_slice(&in_order(sums)[..d.len()]);
        }
    }
}

/// Of D a thread has two elements of its first row, then two of its second, and so on.
#[inline(always)]
fn by_rows(block: [f32; 2 * LANES]) -> [[f32; LANES]; 2] {
    let mut rows = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        for row in 0..2 {
            rows[row][lane] = block[lane / 2 * 4 + row * 2 + lane % 2];
        }
    }
    rows
}

/// The inverse of [`by_rows`].
#[inline(always)]
fn in_order(rows: [[f32; LANES]; 2]) -> [f32; 2 * LANES] {
    let mut block = [0.0; 2 * LANES];
    for lane in 0..LANES {
        for row in 0..2 {
            block[lane / 2 * 4 + row * 2 + lane % 2] = rows[row][lane];
        }
    }
    block
}

#[inline(always)]
fn fma<const K: usize>(a: &[f32; K], b: &Block<K>, mut d: [f32; LANES]) -> [f32; LANES] {
    for k in 0..K {
        for lane in 0..LANES {
            d[lane] = a[k].mul_add(b[k][lane], d[lane]);
        }
    }
    d
}

#[cfg(test)]
mod tests;
