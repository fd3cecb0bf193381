//! Runs a product of arrays whose addresses, sizes and strides are known.

use gpu_gemm::{
    Activation, Batch, BatchMut, Bias, Buffer, Compute, Device, Error, Gemm, Result, Stream,
    TuningCache, Type,
    gemm::{Output, Scalar, Scales},
    simt::with_types,
};

use crate::{
    array::types,
    shape::{Geometry, Level},
};

/// The arrays of a product at most, as their arguments have them.
pub(crate) const NAMES: [&str; ARRAYS] = ["a", "b", "out", "bias", "scale_a", "scale_b"];
pub(crate) const ARRAYS: usize = 6;

/// What a product adds to `A B`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) activation: Activation,
    pub(crate) compute: Compute,
    pub(crate) invariant: bool,
    pub(crate) tune: Option<&'static TuningCache>,
}

/// A bias in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BiasAt {
    pub(crate) address: u64,
    pub(crate) len: usize,
    pub(crate) per_col: bool,
}

/// A product and where its arrays are.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// The types of A and B, and of C and the bias.
    pub(crate) dtypes: [Type; 2],
    pub(crate) geometry: Geometry,
    /// Of the first elements of A, B and C.
    pub(crate) addresses: [u64; 3],
    pub(crate) bias: Option<BiasAt>,
    /// Whether scales are of blocks, and the first of A's and of B's.
    pub(crate) scales: Option<(bool, [u64; 2])>,
    pub(crate) settings: Settings,
}

/// Runs a generic function for the types of a product.
macro_rules! for_types {
    ($dtypes:expr, $function:ident($($argument:expr),*)) => {
        match $dtypes {
            [operands, c] => with_types!((operands, c), |T, O| $function::<T, O>($($argument),*))
                .unwrap_or_else(|| Err(refused("out.dtype", operands, c))),
        }
    };
}

/// The error for a C of another type, as the argument of that name has it.
fn refused(name: &str, operands: Type, c: Type) -> Error {
    let usual = operands.usual_c();
    let mut limit = match usual == operands {
        true => format!("must be {}, as a", usual.numpy()),
        false => format!("must be {}, where a is {}", usual.numpy(), operands.numpy()),
    };
    for other in types().filter(|c| *c != usual && operands.multiplies_to(*c)) {
        limit += &format!(", or {}", other.numpy());
    }
    Error::argument(name, c.numpy(), limit)
}

impl Product {
    /// Checks that there are kernels for the types. `name`: the argument that says that of C.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub(crate) fn check_types(name: &str, [operands, c]: [Type; 2]) -> Result<()> {
        match operands.multiplies_to(c) {
            true => Ok(()),
            false => Err(refused(name, operands, c)),
        }
    }

    /// Queues the product on a stream. `after`: other streams whose work so far writes A, B, C, the
    /// bias, and the scales.
    ///
    /// # Errors
    /// Those of the library.
    ///
    /// # Safety
    /// 1. The elements of all arrays are in the memory of the stream's device, and exist until the
    ///    work has ended.
    /// 2. Until then nobody else writes them, or reads those of C, but by work that the stream
    ///    waits for.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        after: [Option<&Stream>; ARRAYS],
    ) -> Result<()> {
        // SAFETY: the caller's promises.
        for_types!(self.dtypes, launch(self, stream, after, unsafe { InPlace::new() }))
    }

    /// The product of arrays in host memory on a GPU: copies A, B, the bias and the scales to the
    /// device, and C back. Waits for it.
    ///
    /// # Errors
    /// Those of the library.
    ///
    /// # Safety
    /// 1. The arrays are in host memory and exist until this returns. Nobody else writes their
    ///    elements, or those between them, until then.
    /// 2. Nobody else reads C.
    pub(crate) unsafe fn run_copied(&self, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's promises.
        for_types!(self.dtypes, copied(self, stream, unsafe { InPlace::new() }))
    }
}

/// Stands for the promises about arrays: of the caller of [`Product::launch`] or
/// [`Product::run_copied`], or of [`quantised`](crate::quantise::quantised).
#[derive(Clone, Copy)]
pub(crate) struct InPlace(());

impl InPlace {
    /// # Safety
    /// 1. The value is given to the functions for one launch, or one copied product. Until it has
    ///    ended its arrays exist where they are said to be, nobody else writes them, and nobody
    ///    else reads those that it writes.
    pub(crate) unsafe fn new() -> Self {
        InPlace(())
    }
}

/// A buffer of elements where they are. Work on `after` so far is waited for by the next stream
/// that uses it.
pub(crate) fn foreign<T: Output>(
    device: &Device,
    address: u64,
    len: usize,
    after: Option<&Stream>,
    _promise: InPlace,
) -> Result<Buffer<T>> {
    // An empty array may be anywhere.
    let address = if len == 0 { 0 } else { address };
    // SAFETY: the promise.
    let mut buffer = unsafe { device.foreign::<T>(address, len) }?;
    if let Some(stream) = after.filter(|_| len > 0) {
        buffer.all_mut().address_on(stream)?;
    }
    Ok(buffer)
}

fn launch<T: Scalar<O>, O: Output>(
    product: &Product,
    stream: &Stream,
    after: [Option<&Stream>; ARRAYS],
    promise: InPlace,
) -> Result<()> {
    let Product { geometry, addresses, bias, scales, .. } = product;
    let device = stream.device();
    let [a, b, c, of_scales @ ..] = geometry.extents;
    let a = foreign::<T>(device, addresses[0], a, after[0], promise)?;
    let b = foreign::<T>(device, addresses[1], b, after[1], promise)?;
    let mut c = foreign::<O>(device, addresses[2], c, after[2], promise)?;
    let bias = bias.map(|bias| foreign::<O>(device, bias.address, bias.len, after[3], promise));
    let scales = scales.map(|(_, addresses)| -> Result<_> {
        let of = |i: usize| foreign(device, addresses[i], of_scales[i], after[4 + i], promise);
        Ok([of(0)?, of(1)?])
    });
    let added = (bias.transpose()?, scales.transpose()?);
    multiply(product, stream, &a, &b, &mut c, &added)
}

fn copied<T: Scalar<O>, O: Output>(
    product: &Product,
    stream: &Stream,
    promise: InPlace,
) -> Result<()> {
    let Product { geometry, addresses, bias, scales, settings, .. } = product;
    let (device, host) = (stream.device(), Device::cpu());
    let [a_len, b_len, c_len, of_scales @ ..] = geometry.extents;
    fn upload<T: Output>(
        device: &Device,
        host: &Device,
        (address, len): (u64, usize),
        promise: InPlace,
    ) -> Result<Buffer<T>> {
        let elements = foreign::<T>(host, address, len, None, promise)?;
        device.upload(elements.as_slice().unwrap_or_default())
    }
    let a = upload::<T>(device, &host, (addresses[0], a_len), promise)?;
    let b = upload::<T>(device, &host, (addresses[1], b_len), promise)?;
    let mut c = match settings.beta == 0.0 {
        true => device.uninit::<O>(c_len)?,
        false => upload::<O>(device, &host, (addresses[2], c_len), promise)?,
    };
    let bias = bias.map(|bias| upload::<O>(device, &host, (bias.address, bias.len), promise));
    let scales = scales.map(|(_, addresses)| -> Result<_> {
        let of = |i: usize| upload(device, &host, (addresses[i], of_scales[i]), promise);
        Ok([of(0)?, of(1)?])
    });
    let added = (bias.transpose()?, scales.transpose()?);
    multiply(product, stream, &a, &b, &mut c, &added)?;
    let mut to = foreign::<O>(&host, addresses[2], c_len, None, promise)?;
    c.read(0, to.as_mut_slice().unwrap_or_default())
}

/// Queues the products of a batch: one call of the library for the last leading dimension, and a
/// loop for the others.
fn multiply<T: Scalar<O>, O: Output>(
    product: &Product,
    stream: &Stream,
    a: &Buffer<T>,
    b: &Buffer<T>,
    c: &mut Buffer<O>,
    (bias, scales): &(Option<Buffer<O>>, Option<[Buffer<f32>; 2]>),
) -> Result<()> {
    let Product { geometry, settings, .. } = product;
    if geometry.is_empty() {
        return Ok(());
    }
    let Settings { alpha, beta, activation, compute, invariant, tune } = *settings;
    let mut gemm = Gemm::<T, O>::of_types().alpha(alpha).beta(beta);
    gemm = gemm.activation(activation).compute(compute);
    if invariant {
        gemm = gemm.invariant();
    }
    if let Some(cache) = tune {
        gemm = gemm.tuned(cache);
    }
    if let (Some(elements), Some(at)) = (bias, product.bias) {
        gemm = gemm.bias(match at.per_col {
            true => Bias::PerCol(elements.all()),
            false => Bias::PerRow(elements.all()),
        });
    }
    let ([m, n, k], [of_a, of_b, of_c, of_scales @ ..]) = (geometry.sizes, geometry.strides);
    // No two elements of all of C share memory, which the library's test of a batch would find in
    // the same way.
    let (inner, outer) = match geometry.levels.split_first() {
        Some((level, outer)) => (*level, outer),
        None => (Level { count: 1, steps: [0; 5] }, &*geometry.levels),
    };
    let Level { count, steps } = inner;
    let mut at = vec![0usize; outer.len()];
    loop {
        let start = |of: usize| -> usize {
            let steps = outer.iter().zip(&at).map(|(level, index)| level.steps[of] * index);
            // With k = 0, A and B have no elements, and neither have scales of blocks.
            if geometry.extents[of] == 0 { 0 } else { steps.sum() }
        };
        let one = Batch::new(a.view(start(0)..)?, (m, k), of_a, count, steps[0]);
        let other = Batch::new(b.view(start(1)..)?, (k, n), of_b, count, steps[1]);
        let first = start(2);
        let to = BatchMut::new(c.view_mut(first..)?, (m, n), of_c, count, steps[2]);
        let to = to.map_err(of_out)?;
        if let (Some(both), Some((are_blocks, _))) = (scales, product.scales) {
            let of = |i: usize, rows, cols| {
                let (elements, step) = (both[i].view(start(3 + i)..)?, steps[3 + i]);
                Batch::new(elements, (rows, cols), of_scales[i], count, step)
            };
            let [of_k, of_n] = [k, n].map(|size| size.div_ceil(Scales::BLOCK));
            gemm = gemm.scales(match are_blocks {
                false => Scales::RowsCols { a: of(0, m, 1)?, b: of(1, 1, n)? },
                true => Scales::Blocks { a: of(0, m, of_k)?, b: of(1, of_k, of_n)? },
            });
        }
        gemm.launch_batch(stream, one?, other?, to)?;
        // The next product: the first of the outer dimensions is the fastest.
        let next = at.iter_mut().zip(outer).find_map(|(index, level)| {
            *index += 1;
            (*index < level.count).then_some(()).or_else(|| {
                *index = 0;
                None
            })
        });
        if next.is_none() {
            return Ok(());
        }
    }
}

/// The error of a C, with its argument's name.
fn of_out(error: Error) -> Error {
    error.renamed(|argument| format!("out.{argument}"))
}
