//! A product that is timed.

use host::{
    Buffer, BufferView, BufferViewMut, Device, Shape,
    baseline::{DenseBatch, Epilogue},
    operands,
    scaling::Scaling,
};

use crate::cli::{
    Failure,
    args::{Group, Layouts},
    types::Value,
};

/// A product or a batch, and its group of sizes.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Case {
    pub(in crate::cli) group: Option<String>,
    /// For a random shape.
    pub(in crate::cli) draw: Option<Draw>,
    pub(in crate::cli) product: DenseBatch,
    /// What is done with it. Each is timed, in the same rounds.
    pub(in crate::cli) epilogues: Vec<Epilogue>,
}

/// The place of a random shape among those of its seed.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Draw {
    /// Counted from 1.
    pub(in crate::cli) number: usize,
    /// The number of shapes asked for, in all parts.
    pub(in crate::cli) of: usize,
    pub(in crate::cli) aligned: bool,
}

impl Case {
    pub(in crate::cli) fn new((group, product): (Option<Group>, DenseBatch)) -> Self {
        let epilogues = vec![Epilogue::PLAIN];
        Case { group: group.map(Group::name), draw: None, product, epilogues }
    }

    /// The name in messages: `4096x4096x4096`, `32*64x64x64 nt`.
    pub(in crate::cli) fn name(&self) -> String {
        let DenseBatch { shape, transposed, count } = self.product;
        name_of_product(count, [shape.m(), shape.n(), shape.k()], &Layouts(transposed).to_string())
    }

    /// The number of operand sets that together exceed twice the device's L2.
    pub(in crate::cli) fn sets<T, O>(&self, device: &Device) -> u64 {
        match (device.l2_bytes(), self.product.bytes_of::<T, O>()) {
            (0, _) => 1,
            (l2, bytes) => (2 * l2 / bytes.max(1) + 1).clamp(2, 1000),
        }
    }
}

/// A product in messages. `trans`: its layouts as on the command line.
pub(in crate::cli) fn name_of_product(count: usize, [m, n, k]: [usize; 3], trans: &str) -> String {
    let count = if count == 1 { String::new() } else { format!("{count}*") };
    let trans = if trans == "nn" { String::new() } else { format!(" {trans}") };
    format!("{count}{m}x{n}x{k}{trans}")
}

/// A product's operands on a device.
pub(in crate::cli) struct Views<'a, T, O> {
    pub(in crate::cli) a: BufferView<'a, T>,
    pub(in crate::cli) b: BufferView<'a, T>,
    /// An element for each column of C, if an epilogue reads it.
    pub(in crate::cli) bias: Option<BufferView<'a, O>>,
    /// Of each kind that an epilogue has.
    pub(in crate::cli) scaling: &'a [Scaling<Buffer<f32>>],
    pub(in crate::cli) c: BufferViewMut<'a, O>,
}

/// Several sets of operands of one product, for consecutive launches.
pub(in crate::cli) trait Sets<T, O> {
    fn count(&self) -> usize;

    /// The set with that number.
    fn views(&mut self, set: usize) -> host::Result<Views<'_, T, O>>;
}

/// Operands in buffers of their own.
pub(in crate::cli) struct Set<T, O> {
    pub(in crate::cli) a: Buffer<T>,
    pub(in crate::cli) b: Buffer<T>,
    pub(in crate::cli) bias: Option<Buffer<O>>,
    pub(in crate::cli) scaling: Vec<Scaling<Buffer<f32>>>,
    pub(in crate::cli) c: Buffer<O>,
}

impl<T: Value, O: Value> Set<T, O> {
    /// Operands with these row-major elements, in the product's layouts on the device. C is zero.
    pub(in crate::cli) fn upload(
        device: &Device,
        product: &DenseBatch,
        [a, b]: [&[T]; 2],
    ) -> Result<Self, Failure> {
        let DenseBatch { shape, transposed, .. } = *product;
        let put = |values: &[T], rows: usize, cols: usize, transposed: bool| match transposed {
            false => device.upload(values),
            true => device.upload(&transpose(values, rows, cols)),
        };
        Ok(Set {
            a: put(a, shape.m(), shape.k(), transposed[0])?,
            b: put(b, shape.k(), shape.n(), transposed[1])?,
            bias: None,
            scaling: Vec::new(),
            c: device.zeros(product.lens()?[2])?,
        })
    }

    pub(in crate::cli) fn views(&mut self) -> Views<'_, T, O> {
        let bias = self.bias.as_ref().map(Buffer::all);
        let (a, b, scaling) = (self.a.all(), self.b.all(), &self.scaling[..]);
        Views { a, b, bias, scaling, c: self.c.all_mut() }
    }

    /// Adds what epilogues read, if there is any.
    pub(in crate::cli) fn with(self, bias: &[O], scaling: &[Scaling]) -> host::Result<Self> {
        let device = self.c.device();
        let bias = (!bias.is_empty()).then(|| device.upload(bias)).transpose()?;
        let scaling = scaling.iter().map(|of| of.upload(device)).collect::<host::Result<_>>()?;
        Ok(Set { bias, scaling, ..self })
    }

    /// Uniform operands drawn from `seed`.
    pub(in crate::cli) fn uniform(
        device: &Device,
        product: &DenseBatch,
        seed: u64,
    ) -> Result<Self, Failure> {
        let [a, b] = draw::<T>(product, seed, None)?;
        // The transpose of random numbers is as random.
        let [_, _, c] = product.lens()?;
        let c = device.zeros(c)?;
        let (a, b) = (device.upload(&a)?, device.upload(&b)?);
        Ok(Set { a, b, bias: None, scaling: Vec::new(), c })
    }
}

impl<T: Value, O: Value> Sets<T, O> for Vec<Set<T, O>> {
    fn count(&self) -> usize {
        self.len()
    }

    fn views(&mut self, set: usize) -> host::Result<Views<'_, T, O>> {
        Ok(self[set].views())
    }
}

/// A and B: uniform numbers of `T`, or integers up to a magnitude.
pub(in crate::cli) fn draw<T: Value>(
    product: &DenseBatch,
    seed: u64,
    integers: Option<u32>,
) -> host::Result<[Vec<T>; 2]> {
    let [a, b, _] = product.lens()?;
    let draw = |seed, len| match integers {
        None => operands::uniform(seed, len),
        Some(magnitude) => operands::integers(seed, len, magnitude),
    };
    Ok([draw(seed, a)?, draw(operands::seed_of_b(seed), b)?])
}

/// The column-major elements of each `rows x cols` matrix.
fn transpose<T: Value>(values: &[T], rows: usize, cols: usize) -> Vec<T> {
    // Squares that fit into the cache.
    const SIDE: usize = 32;
    let mut all = vec![T::default(); values.len()];
    let each = (rows * cols).max(1);
    for (from, to) in values.chunks(each).zip(all.chunks_mut(each)) {
        for first_row in (0..rows).step_by(SIDE) {
            for first_col in (0..cols).step_by(SIDE) {
                for row in first_row..(first_row + SIDE).min(rows) {
                    for col in first_col..(first_col + SIDE).min(cols) {
                        to[col * rows + row] = from[row * cols + col];
                    }
                }
            }
        }
    }
    all
}

/// A, B and C of one product of a batch.
pub(in crate::cli) fn of_batch<'a, T, O>(
    shape: Shape,
    index: usize,
    (a, b, c): (&'a [T], &'a [T], &'a [O]),
) -> (&'a [T], &'a [T], &'a [O]) {
    let part = |len: usize| index * len..(index + 1) * len;
    (&a[part(shape.a_len())], &b[part(shape.b_len())], &c[part(shape.c_len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_column_by_column() {
        assert_eq!(
            transpose(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3),
            [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
        );
        let values = (0..2 * 40 * 35).map(|x| x as f32).collect::<Vec<_>>();
        let twice = transpose(&transpose(&values, 40, 35), 35, 40);
        assert_eq!(twice, values);
    }
}
