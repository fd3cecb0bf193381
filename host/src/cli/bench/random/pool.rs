//! Operands of random numbers: drawn once, on the device for all shapes.

use std::ops::Range;

use host::{Buffer, Device, operands};

use super::super::case::{Case, Sets, Views};
use crate::cli::{Failure, types::Value};

/// Random numbers that are drawn. The device has them over and over: a prime, so that no rows of a matrix are alike.
const PERIOD: usize = 16_777_259;

/// Bytes at whose multiples each operand begins, as a buffer does.
const ALIGNMENT: usize = 256;

/// Elements of a buffer that repeats what was drawn.
pub(super) struct Repeated<T> {
    /// As numbers of `T`.
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

    /// The element of that number.
    pub(super) fn at(&self, index: usize) -> f32 {
        self.period[index % self.period.len()]
    }
}

/// Operands for all products of a run.
pub(super) struct Pool<T, O> {
    /// A and B of several sets, one after another.
    pub(super) real: Repeated<T>,
    /// A and B of one set: 1 and -1, so that sums are exact in any order. Nothing where nothing is compared.
    pub(super) integers: Option<Repeated<T>>,
    c: Buffer<O>,
}

/// Where a product's operands are in a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    lens: [usize; 3],
    /// Elements from one A to the B of the same set, from one A to the next, and from one C to the next.
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

    /// Elements of A and of B in a pool, where they begin, in a set.
    pub(super) fn operands(self, set: usize) -> [Range<usize>; 2] {
        let [a, b] = [set * self.steps[1], set * self.steps[1] + self.steps[0]];
        [a..a + self.lens[0], b..b + self.lens[1]]
    }

    fn c(self, set: usize) -> Range<usize> {
        set * self.steps[2]..set * self.steps[2] + self.lens[2]
    }
}

/// Elements of a pool for several products.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needed {
    operands: usize,
    /// Of one set alone.
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

    /// Bytes here and on the device.
    pub(super) fn bytes<T, O>(self) -> [u64; 2] {
        let on_device = (self.operands + self.integers) * size_of::<T>() + self.c * size_of::<O>();
        // Two periods as f32, one of them also as `T`, and what is read back and compared.
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

    /// A product's sets.
    pub(super) fn of(&mut self, places: Places) -> PoolSets<'_, T, O> {
        PoolSets { operands: &self.real.buffer, c: &mut self.c, places }
    }

    /// One set of integers.
    pub(super) fn integers_of(&mut self, places: Places) -> Option<PoolSets<'_, T, O>> {
        let integers = self.integers.as_ref()?;
        Some(PoolSets {
            operands: &integers.buffer,
            c: &mut self.c,
            places: Places { sets: 1, ..places },
        })
    }
}

/// A product's sets of operands in a pool.
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
