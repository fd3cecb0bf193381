//! Random operands, drawn once for all shapes.

use std::ops::Range;

use host::{Buffer, BufferViewMut, Device, operands};

use super::super::{
    added::reads,
    case::{Case, Sets, Views},
};
use crate::cli::{Failure, types::Value};

/// The number of random numbers that are drawn. On the device they repeat. It is a prime, so that
/// no two rows of a matrix are equal.
const PERIOD: usize = 16_777_259;

/// The alignment of each operand in bytes, as of a buffer.
const ALIGNMENT: usize = 256;

/// A buffer that repeats the drawn numbers.
pub(super) struct Repeated<T> {
    period: Vec<T>,
    buffer: Buffer<T>,
}

impl<T: Value> Repeated<T> {
    fn new(
        device: &Device,
        len: usize,
        draw: impl FnOnce(usize) -> host::Result<Vec<T>>,
    ) -> host::Result<Self> {
        let period = draw(PERIOD.min(len))?;
        let mut buffer = device.uninit(len)?;
        for start in (0..len).step_by(period.len().max(1)) {
            buffer.write(start, &period[..period.len().min(len - start)])?;
        }
        Ok(Repeated { period, buffer })
    }

    /// The element at that index.
    pub(super) fn at(&self, index: usize) -> T {
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
    /// Of real numbers, and of integers.
    biases: [Option<Buffer<O>>; 2],
}

/// The numbers of a bias begin at this one of those drawn, and those of an old C at this one.
const BIAS: usize = 7_000_003;
const BEFORE: usize = 11_000_027;

impl<T: Value> Repeated<T> {
    /// An element of a bias.
    pub(super) fn bias<O: Value>(&self, col: usize) -> O {
        O::nearest(self.at(BIAS + col).into())
    }

    /// An element of an old C.
    pub(super) fn before<O: Value>(&self, index: usize) -> O {
        O::nearest(self.at(BEFORE + index).into())
    }

    /// A bias of that many elements. `None` for none.
    fn upload_bias<O: Value>(
        &self,
        device: &Device,
        len: usize,
    ) -> host::Result<Option<Buffer<O>>> {
        let bias = (0..len).map(|col| self.bias(col)).collect::<Vec<_>>();
        (len > 0).then(|| device.upload(&bias)).transpose()
    }

    /// Makes C an old C.
    fn restore<O: Value>(&self, c: &mut BufferViewMut<O>) -> host::Result<()> {
        let count = self.period.len().min(c.len());
        let elements = (0..count).map(|index| self.before(index)).collect::<Vec<_>>();
        for start in (0..c.len()).step_by(count.max(1)) {
            c.write(start, &elements[..count.min(c.len() - start)])?;
        }
        Ok(())
    }
}

/// The places of a product's operands in a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    lens: [usize; 3],
    /// Elements from an A to the B of its set, from one A to the next, and from one C to the next.
    steps: [usize; 3],
    sets: usize,
    /// Elements of the bias. 0 if none is read.
    bias: usize,
}

impl Places {
    pub(super) fn new<T, O>(case: &Case, device: &Device) -> host::Result<Self> {
        let lens = case.product.lens()?;
        let whole = |len: usize, element: usize| len.next_multiple_of(ALIGNMENT / element);
        let [a, b] = [lens[0], lens[1]].map(|len| whole(len, size_of::<T>()));
        let sets = case.sets::<T, O>(device) as usize;
        let [has_bias, _] = reads(&case.epilogues);
        let bias = if has_bias { case.product.shape.n() } else { 0 };
        Ok(Places { lens, steps: [a, a + b, whole(lens[2], size_of::<O>())], sets, bias })
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
    bias: usize,
}

impl Needed {
    pub(super) fn for_all(places: impl Iterator<Item = Places>) -> Self {
        places.fold(Needed::default(), |most, Places { steps, sets, bias, .. }| Needed {
            operands: most.operands.max(sets * steps[1]),
            integers: most.integers.max(steps[1]),
            c: most.c.max(sets * steps[2]),
            bias: most.bias.max(bias),
        })
    }

    /// Bytes of host memory, and on the device.
    pub(super) fn bytes<T, O>(self) -> [u64; 2] {
        let of_c = self.c + 2 * self.bias;
        let on_device = (self.operands + self.integers) * size_of::<T>() + of_c * size_of::<O>();
        // Two periods, and the elements that are compared.
        let here = 2 * size_of::<T>() * PERIOD.min(self.operands) + (1 << 30);
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
        let integers = integers.transpose()?;
        let of_integers = integers
            .as_ref()
            .map(|numbers| numbers.upload_bias(device, needed.bias))
            .transpose()?;
        let biases = [real.upload_bias(device, needed.bias)?, of_integers.flatten()];
        Ok(Pool { real, integers, c: device.zeros(needed.c)?, biases })
    }

    /// The operand sets of a product.
    pub(super) fn of(&mut self, places: Places) -> PoolSets<'_, T, O> {
        let bias = self.biases[0].as_ref();
        PoolSets { operands: &self.real, bias, c: &mut self.c, places }
    }

    /// The operand set of integers.
    pub(super) fn integers_of(&mut self, places: Places) -> Option<PoolSets<'_, T, O>> {
        let integers = self.integers.as_ref()?;
        Some(PoolSets {
            operands: integers,
            bias: self.biases[1].as_ref(),
            c: &mut self.c,
            places: Places { sets: 1, ..places },
        })
    }
}

/// The operand sets of a product in a pool.
pub(super) struct PoolSets<'p, T, O> {
    operands: &'p Repeated<T>,
    bias: Option<&'p Buffer<O>>,
    c: &'p mut Buffer<O>,
    places: Places,
}

impl<T: Value, O: Value> Sets<T, O> for PoolSets<'_, T, O> {
    fn count(&self) -> usize {
        self.places.sets
    }

    fn views(&mut self, set: usize) -> host::Result<Views<'_, T, O>> {
        let PoolSets { operands, bias, c, places } = self;
        PoolSets { operands, bias: *bias, c, places: *places }.into_views(set)
    }
}

impl<'p, T: Value, O: Value> PoolSets<'p, T, O> {
    /// As [`Sets::views`].
    pub(super) fn into_views(self, set: usize) -> host::Result<Views<'p, T, O>> {
        let PoolSets { operands: Repeated { buffer, .. }, bias, c, places } = self;
        let [a, b] = places.operands(set);
        let c = c.view_mut(places.c(set))?;
        let bias = bias.filter(|_| places.bias > 0).map(|bias| bias.view(..places.bias));
        let (a, b) = (buffer.view(a)?, buffer.view(b)?);
        Ok(Views { a, b, bias: bias.transpose()?, scaling: &[], c })
    }

    /// The first set. C is the old one if it is read, otherwise full of NaN.
    pub(super) fn start(self, reads_before: bool) -> host::Result<Views<'p, T, O>> {
        let numbers = self.operands;
        let mut views = self.into_views(0)?;
        match reads_before {
            true => numbers.restore(&mut views.c)?,
            false => views.c.fill_bytes(0xff)?,
        }
        Ok(views)
    }
}
