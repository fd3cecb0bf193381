//! Matrices among noise: NaNs with all kinds of payloads before, between and behind the elements.

use std::ops::Range;

use tests::gemm::{Number, Place, Random, bytes};

use crate::product::{each, extent};

/// Elements of noise on each side.
const BAND: usize = 160;

/// A matrix, or a batch of matrices, and the memory around it.
#[derive(Clone, Debug)]
pub struct Memory<T> {
    /// Noise, the elements with what is between them, noise.
    pub stored: Vec<T>,
    /// The first element.
    first: usize,
    /// From the first element to the last.
    len: usize,
}

impl<T: Number> Memory<T> {
    /// Noise alone, with room for `len` elements, which begin `offset` elements after a multiple of
    /// sixteen bytes.
    pub fn noise(len: usize, offset: usize, random: &mut Random) -> Self {
        let (first, all) = (BAND + offset, BAND + offset + len + BAND);
        let pool = T::noise();
        let mut stored = Vec::with_capacity(all);
        let mut start = random.below(pool.len());
        while stored.len() < all {
            let part = &pool[start..];
            stored.extend_from_slice(&part[..part.len().min(all - stored.len())]);
            start = 0;
        }
        Memory { stored, first, len }
    }

    /// The range of the elements.
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.len
    }

    /// Sets the elements at that place to the integers that lie as far from the first.
    pub fn fill(&mut self, place: &Place, size: (usize, usize), integers: &[i64]) {
        self.fill_by(place, size, |at| integers[at] as f64);
    }

    /// Sets the elements at that place, each by its distance from the first.
    pub fn fill_by(&mut self, place: &Place, size: (usize, usize), value: impl Fn(usize) -> f64) {
        let elements = &mut self.stored[self.first..];
        each(place, size, |_, at| elements[at] = T::nearest(value(at)));
    }

    /// Checks that `after` is equal to what is stored, bit by bit.
    ///
    /// # Errors
    /// The first place that differs.
    pub fn unchanged(&self, after: &[T]) -> Result<(), String> {
        if bytes(&self.stored) == bytes(after) {
            return Ok(());
        }
        let differs = |at: &usize| bytes(&self.stored[*at..=*at]) != bytes(&after[*at..=*at]);
        let at = (0..after.len()).find(differs).unwrap_or_default();
        let (before, now) = (self.stored[at], after[at]);
        let from = at as i128 - self.first as i128;
        Err(format!("{from} elements from its first: {now:?}, before {before:?}"))
    }
}

/// Integers from `-largest` to `largest`, none of them 0: by place, so that two matrices in one
/// memory agree.
pub fn integers(random: &mut Random, largest: u64, len: usize) -> Vec<i64> {
    let one = |_| {
        let bits = random.next();
        let value = ((bits >> 1) % largest + 1) as i64;
        if bits & 1 == 0 { value } else { -value }
    };
    (0..len).map(one).collect()
}

/// Whether two elements of these matrices are one.
pub fn coincide(place: &Place, size: (usize, usize)) -> bool {
    let mut seen = vec![false; extent(place, size)];
    let mut found = false;
    each(place, size, |_, at| found |= std::mem::replace(&mut seen[at], true));
    found
}

/// Whether each side's distance is beyond all that the smaller distances span: then no two elements
/// are one.
pub fn is_nested(place: &Place, size: (usize, usize)) -> bool {
    if place.extent(size) == 0 {
        return true;
    }
    let count = place.count.unwrap_or(1);
    let mut sides = [(size.0, place.strides[0]), (size.1, place.strides[1]), (count, place.step)];
    sides.sort_by_key(|(_, distance)| *distance);
    let mut span = 0;
    sides.into_iter().filter(|(count, _)| *count > 1).all(|(count, distance)| {
        let fits = distance > span;
        span += (count - 1) * distance;
        fits
    })
}
