//! NVIDIA's libraries, to compare products with. Nothing needs them. They are looked up at run
//! time, when they are asked for.
//!
//! [`DenseBatch`] describes a product for this library, cuBLAS and cublasLt alike, and [`Epilogue`]
//! what is done with it. The table of types has the numbers that
//! the libraries have for them.

#[cfg(feature = "cuda")]
mod copy;
#[cfg(feature = "cuda")]
mod cublas;
mod epilogue;
#[cfg(feature = "cuda")]
mod library;
#[cfg(feature = "cuda")]
mod lt;

pub use self::epilogue::Epilogue;
#[cfg(feature = "cuda")]
pub use self::{
    copy::Copy,
    cublas::Cublas,
    lt::{CublasLt, Plan},
};
use gpu_gemm::{
    BufferView, BufferViewMut, Error, Pod, Result, Shape, Stream,
    gemm::{Batch, BatchMut, Choice, Gemm, Output, Scalar},
};

/// `C = A B`, `count` times. The matrices are dense, and those of a batch follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseBatch {
    /// The sizes of each product.
    pub shape: Shape,
    /// Whether A, and B, is column-major. C is row-major.
    pub transposed: [bool; 2],
    /// The number of products.
    pub count: usize,
}

impl DenseBatch {
    /// One product of row-major matrices.
    pub fn one(shape: Shape) -> Self {
        DenseBatch { shape, transposed: [false; 2], count: 1 }
    }

    /// The numbers of elements of all As, all Bs, and all Cs.
    ///
    /// # Errors
    /// [`Error::Argument`] if they cannot be addressed.
    pub fn lens(&self) -> Result<[usize; 3]> {
        let DenseBatch { shape, count, .. } = *self;
        let mut lens = [shape.a_len(), shape.b_len(), shape.c_len()];
        for len in &mut lens {
            *len = len.checked_mul(count).ok_or_else(|| {
                let limit = format!("{count} matrices of {len} elements cannot be addressed");
                Error::argument("count", count, limit)
            })?;
        }
        Ok(lens)
    }

    /// Floating-point operations of all products.
    pub fn flop(&self) -> f64 {
        self.shape.flop() * self.count as f64
    }

    /// Bytes of all operands: A and B of `T`, C of `O`.
    pub fn bytes_of<T, O>(&self) -> u64 {
        self.shape.bytes_of::<T, O>().saturating_mul(self.count as u64)
    }

    /// The strides of A, B and C: elements between rows, and between columns.
    pub fn strides(&self) -> [[usize; 2]; 3] {
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        let [a, b] = self.transposed;
        [if a { [1, m] } else { [k, 1] }, if b { [1, k] } else { [n, 1] }, [n, 1]]
    }

    /// Queues them on a stream, by one launch of `Gemm`.
    ///
    /// # Errors
    /// As [`Gemm::launch_batch`].
    pub fn launch<T: Scalar<O>, O: Output>(
        &self,
        gemm: &Gemm<T, O>,
        stream: &Stream,
        a: BufferView<T>,
        b: BufferView<T>,
        c: BufferViewMut<O>,
    ) -> Result<Choice> {
        let DenseBatch { shape, count, .. } = *self;
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let [of_a, of_b, of_c] = self.strides();
        gemm.launch_batch(
            stream,
            Batch::new(a, (m, k), of_a, count, shape.a_len())?,
            Batch::new(b, (k, n), of_b, count, shape.b_len())?,
            BatchMut::new(c, (m, n), of_c, count, shape.c_len())?,
        )
    }

    /// Refuses operands on another device than the stream's, or with another length.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "for NVIDIA's libraries"))]
    fn check<T: Pod, O: Pod>(
        &self,
        stream: &Stream,
        a: &BufferView<T>,
        b: &BufferView<T>,
        c: &BufferViewMut<O>,
    ) -> Result<()> {
        let own = stream.device();
        let operands =
            [("A", a.device(), a.len()), ("B", b.device(), b.len()), ("C", c.device(), c.len())];
        for ((name, device, len), needed) in operands.into_iter().zip(self.lens()?) {
            if device != own {
                let limit = format!("must lie on {}", own.name());
                return Err(Error::argument(name, device.name(), limit));
            }
            if len != needed {
                let limit = format!("must be {needed} for {} of {}", self.count, self.shape);
                return Err(Error::argument(format!("{name}.len()"), len, limit));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::Device;

    #[test]
    fn what_lies_transposed_is_the_same_matrix() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let shape = Shape::new(2, 2, 3).unwrap();
        // Two products; A = [1 2 3; 4 5 6] and its double, B = [1 0; 0 1; 1 1].
        let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let cols = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        let b_rows = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        let b_cols = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0];
        for transposed in [[false, false], [true, false], [false, true], [true, true]] {
            let dense = DenseBatch { shape, transposed, count: 2 };
            let first = if transposed[0] { cols } else { rows };
            let a = [first, first.map(|x| 2.0 * x)].concat();
            let b = [if transposed[1] { b_cols } else { b_rows }; 2].concat();
            let (a, b) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
            let mut c = device.zeros::<f32>(8).unwrap();
            dense.launch(&Gemm::new(), &stream, a.all(), b.all(), c.all_mut()).unwrap();
            let c = c.view(..).unwrap().to_vec().unwrap();
            assert_eq!(c, [4.0, 5.0, 10.0, 11.0, 8.0, 10.0, 20.0, 22.0], "{transposed:?}");
            assert_eq!((dense.flop(), dense.bytes_of::<f32, f32>()), (48.0, 2 * 4 * (6 + 6 + 4)));
            assert_eq!(dense.bytes_of::<simt::Bf16, f32>(), 2 * (2 * (6 + 6) + 4 * 4));
        }
    }

    #[test]
    fn what_cannot_be_addressed_is_refused() {
        let shape = Shape::new(1 << 20, 1 << 20, 1 << 20).unwrap();
        let dense = DenseBatch { count: usize::MAX, ..DenseBatch::one(shape) };
        assert!(dense.lens().unwrap_err().to_string().starts_with("count = "));
        assert_eq!(dense.bytes_of::<f32, f32>(), u64::MAX);
    }
}
