//! Random operands, drawn once for all shapes.

use std::ops::Range;

use host::{Buffer, Device, operands};

use super::super::case::{Case, Sets, Views};
use crate::cli::{Failure, types::Value};

/// The number of random numbers that are drawn. On the device they repeat. It is a prime, so that
/// no two rows of a matrix are equal.
const PERIOD: usize = 16_777_259;

/// The alignment of each operand in bytes, as of a buffer.
const ALIGNMENT: usize = 256;

/// A buffer that repeats the drawn numbers.
pub(super) struct Repeated<T> {
    /// The numbers, rounded to `T`.
    period: Vec<f32>,
    buffer: Buffer<T>,
}

impl<T: Value> Repeated<T> {
    fn new(
        device: &Device,
        len: usize,
        draw: impl FnOnce(usize) -> host::Result<Vec<f32>>,
    ) -> host::Result<Self> {
        let mut period = draw(PERIOD.min(len))?;
        T::round(&mut period);
        let mut buffer = device.uninit(len)?;
        let elements = T::narrowed(&period);
        for start in (0..len).step_by(elements.len().max(1)) {
            buffer.write(start, &elements[..elements.len().min(len - start)])?;
        }
        drop(elements);
        Ok(Repeated { period, buffer })
    }

    /// The element at that index.
    pub(super) fn at(&self, index: usize) -> f32 {
        self.period[index % self.period.len()]
    }
}

/// Operands for all products of a run.
pub(super) struct Pool<T, O> {
    /// A and B of several sets, one set after another.
    pub(super) real: Repeated<T>,
    /// A and B of one set: 1 and -1, so that sums are exact in any order. `None` if nothing is
    /// compared.
    pub(super) integers: Option<Repeated<T>>,
    c: Buffer<O>,
}

/// The places of a product's operands in a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    lens: [usize; 3],
    /// Elements from an A to the B of its set, from one A to the next, and from one C to the next.
    steps: [usize; 3],
    sets: usize,
}

impl Places {
    pub(super) fn new<T, O>(case: &Case, device: &Device) -> host::Result<Self> {
        let lens = case.product.lens()?;
        let whole = |len: usize, element: usize| len.next_multiple_of(ALIGNMENT / element);
        let [a, b] = [lens[0], lens[1]].map(|len| whole(len, size_of::<T>()));
        let sets = case.sets::<T, O>(device) as usize;
        Ok(Places { lens, steps: [a, a + b, whole(lens[2], size_of::<O>())], sets })
    }

    /// The ranges of A and B of a set in a pool.
    pub(super) fn operands(self, set: usize) -> [Range<usize>; 2] {
        let [a, b] = [set * self.steps[1], set * self.steps[1] + self.steps[0]];
        [a..a + self.lens[0], b..b + self.lens[1]]
    }

    fn c(self, set: usize) -> Range<usize> {
        set * self.steps[2]..set * self.steps[2] + self.lens[2]
    }
}

/// The number of elements that a pool needs for several products.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needed {
    operands: usize,
    /// For one set.
    integers: usize,
    c: usize,
}

impl Needed {
    pub(super) fn for_all(places: impl Iterator<Item = Places>) -> Self {
        places.fold(Needed::default(), |most, Places { steps, sets, .. }| Needed {
            operands: most.operands.max(sets * steps[1]),
            integers: most.integers.max(steps[1]),
            c: most.c.max(sets * steps[2]),
        })
    }

    /// Bytes of host memory, and on the device.
    pub(super) fn bytes<T, O>(self) -> [u64; 2] {
        let on_device = (self.operands + self.integers) * size_of::<T>() + self.c * size_of::<O>();
        // Two periods as f32, one of them also as `T`, and the elements that are compared.
        let here = 3 * size_of::<f32>() * PERIOD.min(self.operands) + (1 << 30);
        [here as u64, on_device as u64]
    }
}

impl<T: Value, O: Value> Pool<T, O> {
    pub(super) fn new(
        device: &Device,
        needed: Needed,
        seed: u64,
        compare: bool,
    ) -> Result<Self, Failure> {
        let real = Repeated::new(device, needed.operands, |len| operands::uniform(seed, len))?;
        let integers = compare.then(|| {
            Repeated::new(device, needed.integers, |len| operands::integers(seed, len, 1))
        });
        Ok(Pool { real, integers: integers.transpose()?, c: device.zeros(needed.c)? })
    }

    /// The operand sets of a product.
    pub(super) fn of(&mut self, places: Places) -> PoolSets<'_, T, O> {
        PoolSets { operands: &self.real.buffer, c: &mut self.c, places }
    }

    /// The operand set of integers.
    pub(super) fn integers_of(&mut self, places: Places) -> Option<PoolSets<'_, T, O>> {
        let integers = self.integers.as_ref()?;
        Some(PoolSets {
            operands: &integers.buffer,
            c: &mut self.c,
            places: Places { sets: 1, ..places },
        })
    }
}

/// The operand sets of a product in a pool.
pub(super) struct PoolSets<'p, T, O> {
    operands: &'p Buffer<T>,
    c: &'p mut Buffer<O>,
    places: Places,
}

impl<T: Value, O: Value> Sets<T, O> for PoolSets<'_, T, O> {
    fn count(&self) -> usize {
        self.places.sets
    }

    fn views(&mut self, set: usize) -> host::Result<Views<'_, T, O>> {
        let PoolSets { operands, c, places } = self;
        PoolSets { operands, c, places: *places }.into_views(set)
    }
}

impl<'p, T: Value, O: Value> PoolSets<'p, T, O> {
    /// As [`Sets::views`].
    pub(super) fn into_views(self, set: usize) -> host::Result<Views<'p, T, O>> {
        let PoolSets { operands, c, places } = self;
        let [a, b] = places.operands(set);
        let c = c.view_mut(places.c(set))?;
        Ok(Views { a: operands.view(a)?, b: operands.view(b)?, c })
    }
}
