//! Pairs of products that have some rows in common. As invariant products these have the same bits
//! in both.

use std::fmt;

use gpu::registry::{Entry, SumOrder};
use host::{
    Activation, Batch, BatchMut, Bf16, Bias, Buffer, Compute, Device, Error, F16, Gemm, Shape,
    gemm::{Choice, Request, Scalar, Target},
};

use crate::gemm::{Number, Random, bytes};

/// One of the products: rows, products of the batch, and the SMs of the GPU that it is for.
#[derive(Clone, Copy, Debug)]
struct One {
    m: usize,
    batch: usize,
    sms: u32,
    /// Elements between the rows or columns of A and of C, besides their own.
    pads: [usize; 2],
    /// The product of the batch, and its row, from which on the rows are those of the other.
    common: (usize, usize),
}

/// Two products with `rows` rows in common.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    seed: u64,
    ty: usize,
    compute: Compute,
    capability: (u32, u32),
    n: usize,
    k: usize,
    rows: usize,
    both: [One; 2],
    /// Whether A, B and C are stored by columns.
    by_columns: [bool; 3],
    pad_b: usize,
    /// The first element of every matrix: its alignment.
    first: usize,
    /// The power of two that elements of A and B have on average: with the least one most products
    /// underflow.
    exponent: i32,
    scalars: [f64; 2],
    bias: u8,
    activation: Activation,
    workspace_limit: u64,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Types of A and B, and of C where it is another one.
pub const TYPES: [&str; 6] = ["f32", "f64", "bf16", "f16", "bf16_f32", "f16_f32"];

/// The SMs of GPUs: an H200, an H100 PCIe, an H20, a MIG slice.
const SMS: [u32; 5] = [132, 114, 78, 16, 1];

/// Calls a generic function with the types of a pair.
macro_rules! with_types {
    ($pair:ident, $function:ident $arguments:tt) => {
        match $pair.ty {
            0 => $pair.$function::<f32, f32> $arguments,
            1 => $pair.$function::<f64, f64> $arguments,
            2 => $pair.$function::<Bf16, Bf16> $arguments,
            3 => $pair.$function::<F16, F16> $arguments,
            4 => $pair.$function::<Bf16, f32> $arguments,
            _ => $pair.$function::<F16, f32> $arguments,
        }
    };
}

/// A number between two, with every size equally likely.
fn log(random: &mut Random, least: usize, most: usize) -> usize {
    let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
    let size = (least as f64).ln() + share * ((most + 1) as f64 / least as f64).ln();
    (size.exp() as usize).clamp(least, most)
}

impl Pair {
    /// A pair with the sizes of models: for plans.
    pub fn large(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let [m, more, n, k] = [20_000, 100_000, 30_000, 100_000].map(|most| log(random, 1, most));
        let batch = [1, 1, 1, log(random, 1, 100)][random.below(4)];
        let limit = u64::MAX >> 8;
        Pair::draw(seed, random, ([m, more, n, k], batch, limit))
    }

    /// A pair that the CPU device computes in about a second at most: with k long enough for every
    /// rule in one of `rare` pairs.
    pub fn small(seed: u64, rare: usize) -> Self {
        let random = &mut Random::new(seed);
        let is_long = random.below(rare) == 0;
        let [m, more] = [log(random, 1, 30), log(random, 1, if is_long { 70 } else { 200 })];
        let (n, k) = match (is_long, random.below(8)) {
            (true, 0) => (log(random, 1024, 1100), log(random, 1000, 9000)),
            (true, _) => (log(random, 1, 40), log(random, 1000, 20_000)),
            (false, 0) => (log(random, 1000, 1100), log(random, 1, 100)),
            (false, _) => (log(random, 1, 150), log(random, 1, 300)),
        };
        let batch = [1, 1, 2, 3][random.below(4)];
        // The least with which rows are computed 64 at a time.
        let limit = [256 << 20, 4 << 20][random.below(2)];
        Pair::draw(seed, random, ([m, more, n, k], batch, limit))
    }

    fn draw(
        seed: u64,
        random: &mut Random,
        ([m, more, n, k], batch, workspace_limit): ([usize; 4], usize, u64),
    ) -> Self {
        let ty = random.below(TYPES.len());
        let mut one = |m: usize, batch: usize| One {
            m,
            batch,
            sms: SMS[random.below(SMS.len())],
            pads: [0, 1].map(|_| [0, 0, 1, 8][random.below(4)]),
            common: (0, 0),
        };
        let (first, mut second) = (one(m, 1), one(m + more - 1, batch));
        second.common = (random.below(batch), random.below(more));
        let mut both = [first, second];
        both.rotate_left(random.below(2));
        // On aligned operands most kernels compete.
        let aligned = random.below(2) == 0;
        let up = |size: usize| if aligned { size.next_multiple_of(8) } else { size };
        let coin = |random: &mut Random| random.below(3) == 0;
        Pair {
            seed,
            ty,
            compute: [Compute::Native, Compute::Native, Compute::Tf32, Compute::Fp32F16x3]
                [random.below(4)],
            capability: [(9, 0), (9, 0), (9, 0), (8, 0)][random.below(4)],
            n: up(n),
            k: up(k),
            rows: m,
            both,
            by_columns: [(); 3].map(|()| coin(random)),
            pad_b: [0, 8, 3][random.below(3)],
            first: if aligned { 0 } else { random.below(3) },
            exponent: match random.below(6) {
                0 if ty == 1 => -538,
                0 if ty != 3 && ty != 5 => -76,
                _ => -4,
            },
            scalars: [[1.0, 1.0, -0.7][random.below(3)], [0.0, 0.0, 1.3][random.below(3)]],
            bias: random.below(3) as u8,
            activation: [
                Activation::Identity,
                Activation::Identity,
                Activation::Relu,
                Activation::Gelu,
                Activation::GeluTanh,
                Activation::Silu,
            ][random.below(6)],
            workspace_limit,
        }
    }

    /// The name of the types.
    pub fn ty(&self) -> &'static str {
        TYPES[self.ty]
    }

    /// Plans both products, each for its GPU, and compares the orders in which products are added.
    /// `None` if one was refused: copies that fit for few rows may not fit for many.
    ///
    /// # Errors
    /// What differs.
    pub fn plan(&self) -> Result<Option<(SumOrder, u32, u32)>, String> {
        with_types!(self, plan_of())
    }

    /// Computes both products, one with the kernel that is chosen, the other with any that could
    /// be, and compares the bits of the common rows: on a GPU for it, on the CPU device each for
    /// its own GPU. `None` if one was refused.
    ///
    /// # Errors
    /// What differs, or was refused though it had been chosen.
    pub fn run(&self, device: &Device) -> Result<Option<[&'static str; 2]>, String> {
        with_types!(self, run_of(device))
    }

    fn target(&self, one: &One) -> Target {
        Target::gpu(self.capability, one.sms)
    }

    /// The GPU whose kernels compute it there.
    fn target_on(&self, one: &One, device: &Device) -> Target {
        if device.is_cuda() { Target::of(device) } else { self.target(one) }
    }

    /// The sizes and strides of A, B and C, and the elements from one of a batch to the next.
    fn places(&self, one: &One) -> [((usize, usize), [usize; 2], usize); 3] {
        let sizes = [(one.m, self.k), (self.k, self.n), (one.m, self.n)];
        let pads = [one.pads[0], self.pad_b, one.pads[1]];
        [0, 1, 2].map(|i: usize| {
            let (rows, cols) = sizes[i];
            match self.by_columns[i] {
                true => (sizes[i], [1, rows + pads[i]], cols * (rows + pads[i])),
                false => (sizes[i], [cols + pads[i], 1], rows * (cols + pads[i])),
            }
        })
    }

    fn gemm<'a, T: Scalar<O>, O: Number>(&self) -> Gemm<'a, T, O> {
        Gemm::of_types()
            .alpha(self.scalars[0])
            .beta(self.scalars[1])
            .activation(self.activation)
            .compute(self.compute)
            .workspace_limit(self.workspace_limit)
    }

    fn request<T: Scalar<O>, O: Number>(&self, one: &One) -> Result<Request, Error> {
        let shape = Shape::new(one.m as u64, self.n as u64, self.k as u64)?;
        let places = self.places(one);
        let mut request = Request::new(shape, places.map(|(_, strides, _)| strides));
        request.batch = one.batch;
        let is_aligned = |i: usize, bytes: usize| {
            let step = if one.batch > 1 { places[i].2 } else { 0 };
            ((step | self.first) * bytes).is_multiple_of(16)
        };
        let bytes = [size_of::<T>(), size_of::<T>(), size_of::<O>()];
        request.aligned = [0, 1, 2].map(|i: usize| is_aligned(i, bytes[i]));
        request.plain = false;
        Ok(request)
    }

    fn choice<T: Scalar<O>, O: Number>(&self, one: &One, target: &Target) -> Result<Choice, Error> {
        self.gemm::<T, O>().invariant().choose(&self.request::<T, O>(one)?, target)
    }

    fn plan_of<T: Scalar<O>, O: Number>(&self) -> Result<Option<(SumOrder, u32, u32)>, String> {
        let orders = self.both.map(|one| {
            let Choice { entry, split_k, partials, .. } =
                self.choice::<T, O>(&one, &self.target(&one))?;
            let order = entry.product.as_ref().map(|product| product.sum_order(self.k));
            Ok::<_, Error>((order.unwrap_or(SumOrder::Own), split_k, partials))
        });
        match orders {
            [Err(_), _] | [_, Err(_)] => Ok(None),
            [Ok(one), Ok(other)] if one == other && one.0 != SumOrder::Own => Ok(Some(one)),
            [Ok(one), Ok(other)] => Err(format!("{one:?} and {other:?}: {self}")),
        }
    }

    fn run_of<T: Number + Scalar<O>, O: Number>(
        &self,
        device: &Device,
    ) -> Result<Option<[&'static str; 2]>, String> {
        let named = |error: Error| format!("{error}: {self}");
        let targets = self.both.map(|one| self.target_on(&one, device));
        let [first, second] = [0, 1].map(|i| self.choice::<T, O>(&self.both[i], &targets[i]));
        let (Ok(first), Ok(second)) = (first, second) else { return Ok(None) };
        let request = self.request::<T, O>(&self.both[1]).map_err(named)?;
        let gemm = self.gemm::<T, O>().invariant();
        let candidates = gemm.candidates(&request, &targets[1]).into_iter();
        let others = candidates.filter(|candidate| candidate.ineligible.is_none());
        let others = others.map(|candidate| candidate.entry).collect::<Vec<_>>();
        let other = match second.partials {
            1 if !others.is_empty() => Random::new(self.seed).choose(&others),
            _ => second.entry,
        };
        let entries = [first.entry, other];
        let rows = |i: usize| self.rows_of::<T, O>(&self.both[i], entries[i], device);
        let (a, b) = (rows(0).map_err(named)?, rows(1).map_err(named)?);
        let names = entries.map(|entry| entry.name());
        if bytes(&a) != bytes(&b) {
            let count = a.iter().zip(&b).filter(|(a, b)| bytes(&[**a]) != bytes(&[**b])).count();
            let of = a.len();
            return Err(format!("{count} of {of} elements differ, {names:?}: {self}"));
        }
        Ok(Some(names))
    }

    /// The common rows of C of one of the products.
    fn rows_of<T: Number + Scalar<O>, O: Number>(
        &self,
        one: &One,
        entry: &'static Entry,
        device: &Device,
    ) -> Result<Vec<O>, Error> {
        let (product, first_row) = one.common;
        // Equal numbers for what both have in common.
        let is_common = |p: usize, row: usize| {
            p == product && (first_row..first_row + self.rows).contains(&row)
        };
        let row_of = |p: usize, row: usize| match is_common(p, row) {
            true => row - first_row,
            false => (1 + p) << 32 | row,
        };
        let b_of = |p: usize| if p == product { 0 } else { 1 + p };
        let stream = device.stream()?;
        let [of_a, of_b, of_c] = self.places(one);
        let a = self.filled(device, one.batch, of_a, |p, row, col| {
            self.number::<T>(1, row_of(p, row), col)
        })?;
        let b = self.filled(device, one.batch, of_b, |p, row, col| {
            self.number::<T>(2 + b_of(p), row, col)
        })?;
        let mut c = self.filled(device, one.batch, of_c, |p, row, col| {
            self.number::<O>(3 << 20, row_of(p, row), col)
        })?;
        let lens = [one.m, self.n];
        let biases = [0, 1].map(|side: usize| {
            let of = |i: usize| if side == 0 { row_of(product, i) } else { i };
            let all = (0..lens[side]).map(|i| self.number::<O>(4 << 20, side, of(i)));
            device.upload(&all.collect::<Vec<_>>())
        });
        let [by_row, by_col] = biases;
        let (by_row, by_col) = (by_row?, by_col?);
        let gemm = self.gemm::<T, O>().invariant_as_on(self.target_on(one, device)).entry(entry)?;
        let gemm = match self.bias {
            1 => gemm.bias(Bias::PerCol(by_col.all())),
            2 => gemm.bias(Bias::PerRow(by_row.all())),
            _ => gemm,
        };
        let first = self.first;
        let [a, b] = [(&a, of_a), (&b, of_b)].map(|(of, (size, strides, step))| {
            Batch::new(of.view(first..)?, size, strides, one.batch, step)
        });
        let (size, strides, step) = of_c;
        let to = BatchMut::new(c.view_mut(first..)?, size, strides, one.batch, step)?;
        gemm.launch_batch(&stream, a?, b?, to)?;
        let c = c.to_vec()?;
        let at =
            |row: usize, col: usize| first + product * step + row * strides[0] + col * strides[1];
        let rows = first_row..first_row + self.rows;
        Ok(rows
            .flat_map(|row| (0..self.n).map(move |col| (row, col)))
            .map(|(row, col)| c[at(row, col)])
            .collect())
    }

    /// Matrices of a batch whose elements follow from the product, the row and the column.
    fn filled<E: Number>(
        &self,
        device: &Device,
        count: usize,
        ((rows, cols), strides, step): ((usize, usize), [usize; 2], usize),
        element: impl Fn(usize, usize, usize) -> E,
    ) -> Result<Buffer<E>, Error> {
        let mut all = vec![E::nearest(f64::NAN); self.first + count * step];
        for p in 0..count {
            for row in 0..rows {
                for col in 0..cols {
                    all[self.first + p * step + row * strides[0] + col * strides[1]] =
                        element(p, row, col);
                }
            }
        }
        device.upload(&all)
    }

    /// A number of many sizes, so that another order of summation has other bits.
    fn number<E: Number>(&self, matrix: usize, row: usize, col: usize) -> E {
        let mut hash = self.seed ^ (matrix as u64) << 40;
        for part in [row as u64, col as u64] {
            hash = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        let fraction = (hash >> 12) as f64 / (1u64 << 51) as f64 - 1.0;
        let exponent = if matrix < 3 << 20 { self.exponent } else { -4 };
        E::nearest(fraction * 2f64.powi((hash & 7) as i32 + exponent))
    }
}
